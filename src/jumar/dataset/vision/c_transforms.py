"""`vision` under its name of MindSpore 1: scripts of that time import it."""

from jumar.dataset.vision import *  # noqa: F403
