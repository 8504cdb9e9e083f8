"""`vision` under its other name of MindSpore 1, with the names that were only there."""

from jumar.dataset.vision import *  # noqa: F403
