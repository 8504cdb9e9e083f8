"""Tokens and where they are: what all tokenizers share.

In: a text.  Out: an array of texts; with offsets also the first byte and the byte after the last of each token.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from jumar.dataset.errors import DataTypeFault, check_bool
from jumar.dataset.transforms.base import Transform

Array = np.ndarray[Any, np.dtype[Any]]


@dataclass(frozen=True)
class Token:
    """A piece of a text.   start, end: bytes of the UTF-8 text that it came from."""

    text: str
    start: int
    end: int


def one_text(value: Any, who: str) -> str:
    """A single text out of a value."""
    if isinstance(value, str):
        return value
    array = np.asarray(value)
    if array.dtype.kind == "S":
        array = np.char.decode(array, "utf-8")
    if array.dtype.kind != "U" or array.size != 1:
        raise DataTypeFault(f"{who}: input must be one text, got {array.dtype} of shape {list(array.shape)}")
    return str(array.reshape(-1)[0])


def texts(value: Any, who: str) -> Array:
    """Texts as an array of `<U`."""
    array = np.asarray(value)
    if array.dtype.kind == "S":
        array = np.char.decode(array, "utf-8")
    if array.dtype.kind != "U":
        raise DataTypeFault(f"{who}: input must be texts, got {array.dtype}")
    return array


class Tokenizer(Transform):
    """A text to tokens."""

    def __init__(self, with_offsets: bool = False) -> None:
        self.with_offsets = check_bool(type(self).__name__, "with_offsets", with_offsets)

    def tokens(self, text: str) -> list[Token]:
        raise NotImplementedError(type(self).__name__)

    def __call__(self, *values: Any) -> Any:
        who = type(self).__name__
        if len(values) != 1:
            raise DataTypeFault(f"{who}: must be called with one text, got {len(values)} values")
        return self.result(self.tokens(one_text(values[0], who)))

    def result(self, found: list[Token]) -> Any:
        found = found or [Token("", 0, 0)]
        words = np.array([t.text for t in found])
        if not self.with_offsets:
            return words
        return words, np.array([t.start for t in found], np.uint32), np.array([t.end for t in found], np.uint32)


def width(text: str) -> int:
    """Bytes of a text in UTF-8."""
    return len(text.encode("utf-8"))
