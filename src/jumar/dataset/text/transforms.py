"""Operations on texts and on rows of tokens.

In: texts, arrays of tokens or ids.  Out: the same, changed.
"""

from __future__ import annotations

import re
import unicodedata
from typing import Any

import numpy as np

from jumar.dataset.enums import NormalizeForm
from jumar.dataset.errors import DataFault, DataTypeFault, DataValueFault, check_bool, check_int
from jumar.dataset.text.base import Array, texts
from jumar.dataset.text.tokenizers import FORMS
from jumar.dataset.transforms.base import Transform
from jumar.dataset.values import numpy_type, to_value


class _EachText(Transform):
    """A change of each text."""

    def change(self, text: str) -> str:
        raise NotImplementedError(type(self).__name__)

    def apply(self, value: Any) -> Array:
        found = texts(value, type(self).__name__)
        return np.array([self.change(t) for t in found.reshape(-1).tolist()]).reshape(found.shape) if found.size else found


class CaseFold(_EachText):
    """Lower case, also for letters that have none of one character."""

    def change(self, text: str) -> str:
        return text.casefold()


class NormalizeUTF8(_EachText):
    """One of Unicode's normal forms."""

    def __init__(self, normalize_form: NormalizeForm = NormalizeForm.NFKC) -> None:
        if not isinstance(normalize_form, NormalizeForm):
            raise DataTypeFault(f"NormalizeUTF8: normalize_form must be a NormalizeForm, got {normalize_form!r}")
        self.form = normalize_form

    def change(self, text: str) -> str:
        return text if self.form is NormalizeForm.NONE else unicodedata.normalize(FORMS[self.form], text)


class RegexReplace(_EachText):
    """Matches of a pattern replaced: all, or the first."""

    def __init__(self, pattern: str, replace: str, replace_all: bool = True) -> None:
        try:
            self.pattern = re.compile(pattern)
        except re.error as error:
            raise DataValueFault(f"RegexReplace: pattern must be a pattern, got {pattern!r}: {error}") from error
        self.replace = re.sub(r"\$(\d)", r"\\\1", replace)
        self.count = 0 if check_bool("RegexReplace", "replace_all", replace_all) else 1

    def change(self, text: str) -> str:
        return self.pattern.sub(self.replace, text, count=self.count)


class FilterWikipediaXML(_EachText):
    """Letters, and digits as words, of a Wikipedia dump."""

    DIGITS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")
    STEPS = (
        (r"<[^>]*>", ""), (r"&amp;", "&"), (r"&lt;", "<"), (r"&gt;", ">"), (r"<ref[^<]*</ref>", ""), (r"<[^>]*>", ""), (r"\[http:[^] ]*", "["),
        (r"\|thumb|\|left|\|right|\|\d+px", ""), (r"\[\[image:[^\[\]]*\|", ""), (r"\[\[category:([^|\]]*)[^]]*\]\]", r"[[\1]]"),
        (r"\[\[[a-z\-]*:[^\]]*\]\]", ""), (r"\[\[[^\|\]]*\|", "[["), (r"\{\{([^}]*)\}\}", r"\1"), (r"\{[^}]*\}", ""), (r"\[|\]", ""), (r"&[^;]*;", " "),
    )  # fmt: skip

    def change(self, text: str) -> str:
        for pattern, by in self.STEPS:
            text = re.sub(pattern, by, text, flags=re.IGNORECASE)
        text = re.sub(r"\d", lambda m: f" {self.DIGITS[int(m.group())]} ", text.lower())
        return re.sub(r"[^a-z]+", " ", text).strip()


class ToNumber(Transform):
    """Numbers out of texts."""

    def __init__(self, data_type: Any) -> None:
        self.data_type = numpy_type(data_type)
        if self.data_type is None or self.data_type.kind not in "iuf":
            raise DataTypeFault(f"ToNumber: data_type must be a type of numbers, got {data_type!r}")

    def apply(self, value: Any) -> Array:
        found, kind = texts(value, "ToNumber"), self.data_type
        assert kind is not None
        numbers = []
        for text in found.reshape(-1).tolist():
            try:
                number = int(text) if kind.kind in "iu" else float(text)
            except ValueError as error:
                raise DataFault(f"ToNumber: a text must be a number of type {kind}, got {text!r}") from error
            if kind.kind in "iu" and not np.iinfo(kind).min <= number <= np.iinfo(kind).max:
                raise DataFault(f"ToNumber: a number must fit {kind}, got {text!r}")
            if kind.kind == "f" and np.isfinite(number) and abs(number) > np.finfo(kind).max:
                raise DataFault(f"ToNumber: a number must fit {kind}, got {text!r}")
            numbers.append(number)
        return np.asarray(np.array(numbers, kind).reshape(found.shape))


class TruncateSequencePair(Transform):
    """Two sequences cut, the longer first, until together they have `max_length`."""

    def __init__(self, max_length: int) -> None:
        self.max_length = check_int("TruncateSequencePair", "max_length", max_length, 0)

    def __call__(self, *values: Any) -> Any:
        if len(values) != 2:
            raise DataTypeFault(f"TruncateSequencePair: must be called with two sequences, got {len(values)}")
        first, second = (to_value(v, "TruncateSequencePair") for v in values)
        if first.ndim != 1 or second.ndim != 1:
            raise DataFault(f"TruncateSequencePair: sequences must have one dimension, got {first.ndim} and {second.ndim}")
        a, b = len(first), len(second)
        while a + b > self.max_length:
            if a > b:
                a -= 1
            else:
                b -= 1
        return first[:a], second[:b]


class Truncate(Transform):
    """The first `max_seq_len` of the last dimension."""

    def __init__(self, max_seq_len: int) -> None:
        self.max_seq_len = check_int("Truncate", "max_seq_len", max_seq_len, 1)

    def apply(self, value: Any) -> Array:
        array = to_value(value, "Truncate")
        if array.ndim not in (1, 2):
            raise DataFault(f"Truncate: input must have one or two dimensions, got {array.ndim}")
        return np.asarray(array[..., : self.max_seq_len])


class AddToken(Transform):
    """A token before (or after) each sequence."""

    def __init__(self, token: str, begin: bool = True) -> None:
        if not isinstance(token, str):
            raise DataTypeFault(f"AddToken: token must be a text, got {token!r}")
        self.token, self.begin = token, check_bool("AddToken", "begin", begin)

    def apply(self, value: Any) -> Array:
        found = texts(value, "AddToken")
        if found.ndim not in (1, 2):
            raise DataFault(f"AddToken: input must have one or two dimensions, got {found.ndim}")
        extra = np.full((*found.shape[:-1], 1), self.token)
        return np.concatenate([extra, found] if self.begin else [found, extra], -1)


class SlidingWindow(Transform):
    """All stretches of `width` along an axis."""

    def __init__(self, width: int, axis: int = 0) -> None:
        self.width, self.axis = check_int("SlidingWindow", "width", width, 1), check_int("SlidingWindow", "axis", axis, -1, 0)

    def apply(self, value: Any) -> Array:
        array = to_value(value, "SlidingWindow")
        if array.ndim != 1:
            raise DataFault(f"SlidingWindow: input must have one dimension, got {array.ndim}")
        if len(array) < self.width:
            return np.zeros((0, self.width), array.dtype)
        return np.asarray(np.lib.stride_tricks.sliding_window_view(array, self.width).copy())


class Ngram(Transform):
    """Stretches of n tokens joined; `left_pad` and `right_pad`: (token, how many at most)."""

    def __init__(self, n: Any, left_pad: tuple[str, int] = ("", 0), right_pad: tuple[str, int] = ("", 0), separator: str = " ") -> None:
        self.sizes = [check_int("Ngram", "n", i, 1) for i in ([n] if isinstance(n, int) else list(n))]
        for name, pad in (("left_pad", left_pad), ("right_pad", right_pad)):
            if not isinstance(pad, tuple) or len(pad) != 2 or not isinstance(pad[0], str) or not isinstance(pad[1], int) or pad[1] < 0:
                raise DataTypeFault(f"Ngram: {name} must be (token, count), got {pad!r}")
        self.left, self.right, self.separator = left_pad, right_pad, separator

    def apply(self, value: Any) -> Array:
        found = texts(value, "Ngram").reshape(-1).tolist()
        grams: list[str] = []
        for n in self.sizes:
            padded = [self.left[0]] * min(self.left[1], n - 1) + found + [self.right[0]] * min(self.right[1], n - 1)
            grams += [self.separator.join(padded[i : i + n]) for i in range(len(padded) - n + 1)]
        return np.array(grams or [""])


def to_str(array: Any, encoding: str = "utf8") -> Array:
    """Bytes as texts."""
    found = np.asarray(array)
    if found.dtype.kind not in "SU":
        raise DataTypeFault(f"to_str: array must be bytes, got {found.dtype}")
    return np.char.decode(found, encoding) if found.dtype.kind == "S" else found


def to_bytes(array: Any, encoding: str = "utf8") -> Array:
    """Texts as bytes."""
    found = np.asarray(array)
    if found.dtype.kind not in "SU":
        raise DataTypeFault(f"to_bytes: array must be texts, got {found.dtype}")
    return np.char.encode(found, encoding) if found.dtype.kind == "U" else found
