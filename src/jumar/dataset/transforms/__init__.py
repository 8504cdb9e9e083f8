"""`dataset.transforms`: operations on any values, and ways to put operations together."""

from jumar.dataset import vision
from jumar.dataset.enums import Relational
from jumar.dataset.transforms.transforms import (
    Compose,
    Concatenate,
    Duplicate,
    Fill,
    Mask,
    OneHot,
    PadEnd,
    Plugin,
    RandomApply,
    RandomChoice,
    RandomOrder,
    Slice,
    TypeCast,
    Unique,
)

__all__ = [
    "Compose", "Concatenate", "Duplicate", "Fill", "Mask", "OneHot", "PadEnd", "Plugin", "RandomApply", "RandomChoice", "RandomOrder",
    "Relational", "Slice", "TypeCast", "Unique", "vision",
]  # fmt: skip
