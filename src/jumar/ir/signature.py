"""Signatures: how many inputs an operator takes, and of which shapes, as its `signature` says.

In: the text (`x[n, c, *spatial], bias[k]? -> y[n, k, *out]`).  Out: a check that `apply` makes before it asks an operator for its type.
A mark `?` makes an input, or as in NumPy's own signatures a dimension, optional; `...` and `*name` stand for any number of dimensions,
and `...` after the brackets for any number of inputs.  A dimension that is a plain name has one size wherever it stands, one that is a
number has that size; anything else (`c/groups`, `d or 1`) is for the reader, and for the operator to check.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from typing import NamedTuple

from jumar.base import DTYPES, Dim, DType, OpError, TensorType

_INPUT = re.compile(r"(?:(\w+) )?(\w+)\[([^\]]*)\](\?|\.\.\.)?")


class Input(NamedTuple):
    """What a signature says of one input.   most: of its rank, None where it has no end; dtype: None for any; dims: (position, name) of
    those that can be told, counted from the end behind a part of any length."""

    name: str
    text: str
    least: int
    most: int | None
    dtype: DType | None
    dims: tuple[tuple[int, str], ...]


class Inputs(NamedTuple):
    """What a signature says of all inputs.   least: how many must be there; many: the last one stands for any number, but one at least."""

    each: tuple[Input, ...]
    least: int
    many: bool


@cache
def inputs_of(signature: str) -> Inputs:
    """The inputs that a signature names.

    >>> inputs_of("x[..., m?, k], i32 at[n]? -> y[m?, k]").least
    1
    """
    found = _INPUT.findall(signature.partition("->")[0])
    each = [_input(name, dims, dtype) for dtype, name, dims, _ in found]
    return Inputs(tuple(each), sum(mark != "?" for *_, mark in found), any(mark == "..." for *_, mark in found))


def _input(name: str, text: str, dtype: str) -> Input:
    listed = [d.strip() for d in text.split(",") if d.strip()]
    anything = [i for i, d in enumerate(listed) if d == "..." or d.startswith("*")]
    optional = any(d.endswith("?") for d in listed)
    told = [(i, i if not anything or i < anything[0] else i - len(listed)) for i in range(len(listed))]
    dims = [(at, listed[i]) for i, at in told if listed[i].isalnum() and not anything[:1] <= [i] <= anything[-1:]]
    fixed = len(listed) - len(anything)
    least = fixed - sum(d.endswith("?") for d in listed)
    most = None if anything else fixed
    return Input(name, f"{name}[{text}]", least, most, DTYPES.get(dtype), () if optional else tuple(dims))


def check_inputs(name: str, signature: str, types: Sequence[TensorType]) -> None:
    """Refuses a wrong number of inputs, and inputs of wrong ranks, sizes or (where the signature names one) element types."""
    inputs = inputs_of(signature)
    most = len(inputs.each)
    if len(types) < inputs.least or (len(types) > most and not inputs.many):
        wanted = f"{inputs.least} or more" if inputs.many else f"{inputs.least} to {most}" if inputs.least < most else f"{most}"
        raise OpError(f"{name}: inputs must be {wanted}, as in {signature!r}, got {len(types)}", code="operand-count")
    sizes: dict[str, tuple[Dim, str]] = {}
    for one, type_ in zip(inputs.each, types, strict=False):
        if type_.rank < one.least or (one.most is not None and type_.rank > one.most):
            raise OpError(f"{name}: rank of {one.name} must be that of {one.text}, got {type_}", code="rank")
        if one.dtype is not None and type_.dtype != one.dtype:
            raise OpError(f"{name}: {one.name} must be of {one.dtype}, got {type_}", code="dtype-mismatch")
        for at, dim in one.dims:
            size = type_.shape[at]
            wanted_, where = (int(dim), "") if dim.isdigit() else sizes.setdefault(dim, (size, f", as in {one.name}{list(type_.shape)}"))
            if size != wanted_:
                what = f"{name}: dimension {dim} of {one.text} must be {wanted_}{where}, got {type_}"
                raise OpError(what, code="dimension-mismatch")
