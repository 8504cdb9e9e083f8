"""Operators on strings, on the host while tracing.  In: known string arrays (see texts.py).  Out: known arrays."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from jumar.base import Array
from jumar.frontend.importers.onnx.node import OnnxNode, dtype_of_onnx
from jumar.frontend.importers.onnx.rule import rule
from jumar.frontend.importers.onnx.trace import Trace
from jumar.frontend.importers.onnx.value import Value


def texts(words: Sequence[Any], shape: Sequence[int]) -> Array:
    """An array of texts."""
    array = np.empty(len(words), object)
    array[:] = words
    return array.reshape(shape)


def each(function: Callable[[Any], Any], array: Array) -> Array:
    return texts([function(x) for x in array.ravel()], array.shape)


@rule("Cast", domain="text")
def cast(t: Trace, n: OnnxNode, x: Value) -> Array:
    array = t.array(x)
    to = dtype_of_onnx(int(n.attribute("to", 0)), "attribute to")
    return cast_text(n, array, to)


@rule("CastLike", domain="text")
def cast_like(t: Trace, n: OnnxNode, x: Value, like: Any) -> Array:
    return cast_text(n, t.array(x), like.dtype)


def cast_text(n: OnnxNode, array: Array, to: Any) -> Array:
    """Numbers of texts, or texts of numbers, as the standard writes them."""
    if to.kind == "s":
        return array if array.dtype == object else each(_shown, array)
    try:
        if to.kind == "b":
            return np.array([bool(float(w)) if w not in ("True", "False") else w == "True" for w in array.ravel()], np.bool_).reshape(
                array.shape
            )
        number: Any = int if to.is_integer else float
        values = [number(w) for w in array.ravel()]
    except ValueError as error:
        raise n.fault(f"texts must be numbers to be cast to {to}, got {error}") from error
    return np.array(values, object if to.is_integer else np.float64).reshape(array.shape).astype(to.numpy)


def _shown(value: Any) -> str:
    if isinstance(value, np.bool_):
        return str(int(value))
    if np.issubdtype(type(value), np.integer):
        return str(int(value))
    number = float(value)
    if np.isnan(number):
        return "NaN"
    if np.isinf(number):
        return "INF" if number > 0 else "-INF"
    return str(value) if isinstance(value, np.floating) else repr(number)


@rule("StringConcat", domain="text")
def string_concat(t: Trace, n: OnnxNode, a: Value, b: Value) -> Array:
    left, right = np.broadcast_arrays(t.array(a), t.array(b))
    return texts([x + y for x, y in zip(left.ravel(), right.ravel(), strict=True)], left.shape)


@rule("StringSplit", domain="text")
def string_split(t: Trace, n: OnnxNode, x: Value) -> tuple[Array, Array]:
    array = t.array(x)
    delimiter = n.attribute("delimiter", "") or None
    most = n.attribute("maxsplit", None)
    rows = [w.split(delimiter, -1 if most is None else int(most)) for w in array.ravel()]
    # an empty text split at whitespace gives no piece, as in Python
    widest = max((len(r) for r in rows), default=0)
    padded = [w for r in rows for w in [*r, *[""] * (widest - len(r))]]
    return texts(padded, (*array.shape, widest)), np.array([len(r) for r in rows], np.int64).reshape(array.shape)


@rule("RegexFullMatch", domain="text")
def regex_full_match(t: Trace, n: OnnxNode, x: Value) -> Array:
    try:
        pattern = re.compile(n.attribute("pattern", ""))
    except re.error as error:
        raise n.fault(f"pattern must be a regular expression, got {n.attribute('pattern')!r}: {error}") from error
    array = t.array(x)
    return np.array([pattern.fullmatch(w) is not None for w in array.ravel()], np.bool_).reshape(array.shape)


@rule("StringNormalizer", domain="text")
def string_normalizer(t: Trace, n: OnnxNode, x: Value) -> Array:
    array = t.array(x)
    action = n.attribute("case_change_action", "NONE")
    sensitive = bool(n.attribute("is_case_sensitive", 0))
    stop = list(n.attribute("stopwords", ()))
    change: Callable[[str], str] = {"LOWER": str.lower, "UPPER": str.upper}.get(action, str)
    fold: Callable[[str], str] = str if sensitive else str.lower
    banned = {fold(w) for w in stop}
    rows = [[change(w) for w in row if fold(w) not in banned] for row in (array if array.ndim == 2 else [array])]
    kept = rows[0] or [""]
    return texts(kept, (1, len(kept)) if array.ndim == 2 else (len(kept),))


@rule("LabelEncoder", domain="text")
@rule("LabelEncoder", domain="ai.onnx.ml")
def label_encoder(t: Trace, n: OnnxNode, x: Value) -> Array:
    array = t.array(x)
    keys, values, default = _labels(n)
    # NaN is a key like any other, though it equals nothing
    table = {_key(k): v for k, v in zip(keys, values, strict=True)}
    found = [table.get(_key(k), default) for k in array.ravel()]
    if isinstance(default, str):
        return texts(found, array.shape)
    return np.array(found, np.asarray(values).dtype if not isinstance(default, float) else np.float32).reshape(array.shape)


def _key(value: Any) -> Any:
    if isinstance(value, str):
        return value
    number = np.float32(value) if not np.issubdtype(type(value), np.integer) else int(value)
    return "nan" if number != number else number  # noqa: PLR0124


def _labels(n: OnnxNode) -> tuple[list[Any], list[Any], Any]:
    tables: dict[str, list[Any]] = {}
    for side in ("keys", "values"):
        for kind in ("strings", "int64s", "floats", "tensor"):
            given = n.attribute(f"{side}_{kind}", None)
            if given is not None:
                tables[side] = list(given.ravel()) if kind == "tensor" else list(given)
                tables[f"{side}_kind"] = [kind]
    if "keys" not in tables or "values" not in tables or len(tables["keys"]) != len(tables["values"]):
        raise n.fault("keys and values must be given, as many of one as of the other")
    first = n.attribute("default_tensor", None)
    if first is not None:
        return tables["keys"], tables["values"], first.ravel()[0]
    kind = tables["values_kind"][0]
    name, unused = {"strings": ("default_string", "_Unused"), "int64s": ("default_int64", -1)}.get(kind, ("default_float", -0.0))
    return tables["keys"], tables["values"], n.attribute(name, unused)
