"""Operators on strings.  Strings are always known while tracing, so these run at once; most need no rule of their own.

In: a node with string inputs.  Out: its rule from `rules/text.py` (domain "text"), or the operator's usual rule applied to numbers that stand for
the strings: moving, selecting and comparing numbers is the same as moving, selecting and comparing texts, in sorted order too.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from jumar.base import Array, str_
from jumar.frontend.importers.onnx.node import OnnxNode
from jumar.frontend.importers.onnx.rule import Rule, find_rule
from jumar.frontend.importers.onnx.value import Known, Value, leaves

GIVES_NO_TEXT = {
    "Equal",
    "Shape",
    "Size",
    "Greater",
    "Less",
    "GreaterOrEqual",
    "LessOrEqual",
    "SequenceLength",
    "OptionalHasElement",
    "TopK",
}
PASSES_VALUES = {"If", "Loop", "Scan", "Optional", "OptionalGetElement", "OptionalHasElement", "Identity", "Constant", "SequenceAt", "SequenceConstruct",
                 "SequenceEmpty", "SequenceErase", "SequenceInsert", "SequenceLength", "SequenceMap"}  # fmt: skip


def text_rule(node: OnnxNode, values: Sequence[Value]) -> Rule | None:
    """The rule of a node that reads or writes strings; None where it does neither."""
    writes_text = node.op == "Cast" and node.protos.get("to") is not None and node.protos["to"].i == 8
    reads_text = any(v.dtype is str_ for value in values for v in leaves(value) if isinstance(v, Known))
    if not (reads_text or writes_text) or node.domain not in ("", "ai.onnx.ml"):
        return None
    own = find_rule(node.op, "text")
    usual = find_rule(node.op, node.domain)
    if own or usual is None or node.op in PASSES_VALUES or node.domain:
        return own
    return Rule(node.op, "text", _on_numbers(usual), None)


def _on_numbers(usual: Rule) -> Callable[..., Any]:
    def rule(t: Any, n: OnnxNode, *values: Value) -> Any:
        words = sorted(
            {w for value in values for v in leaves(value) if isinstance(v, Known) and v.dtype is str_ for w in v.array.ravel()} | {""}
        )
        number = {w: i for i, w in enumerate(words)}

        def encode(value: Value) -> Value:
            match value:
                case Known(array=array) if array.dtype == object:
                    return Known(np.array([number[w] for w in array.ravel()], np.int64).reshape(array.shape))
                case list():
                    return [encode(v) for v in value]
            return value

        result = usual.function(t, n, *usual.pad([encode(v) for v in values]))
        several = isinstance(result, tuple)
        results = [t.value(r, eager=True) for r in (result if several else (result,))]
        first = 0 if n.op in GIVES_NO_TEXT else 1 if n.op == "Unique" else len(results)
        decoded = [_decode(r, words) if i < first else r for i, r in enumerate(results)]
        return tuple(decoded) if several else decoded[0]

    return rule


def _decode(value: Value, words: Sequence[str]) -> Value:
    match value:
        case Known(array=array):
            return Known(_texts([words[i] for i in array.ravel()], array.shape))
        case list():
            return [_decode(v, words) for v in value]
    return value


def _texts(words: Sequence[str], shape: tuple[int, ...]) -> Array:
    array = np.empty(len(words), object)
    array[:] = words
    return array.reshape(shape)
