"""`transforms` under its other name of MindSpore 1: scripts of that time import it."""

from jumar.dataset.transforms.transforms import *  # noqa: F403
