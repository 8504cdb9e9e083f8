"""`vision` under the name of MindSpore's file."""

from jumar.dataset.vision import *  # noqa: F403
