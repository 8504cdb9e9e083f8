"""Mixed precision: the names of `jumar.amp` where MindSpore's training room has them, too."""

from jumar.amp import *  # noqa: F403
