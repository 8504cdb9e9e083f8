"""Sorting, searching, selecting; losses that select; what reads texts and n-grams."""

from __future__ import annotations

from typing import Any

import numpy as np

from jumar.frontend.importers.onnx.node import OnnxNode
from jumar.frontend.importers.onnx.rule import rule
from jumar.frontend.importers.onnx.trace import Trace
from jumar.frontend.importers.onnx.value import Tensor, Value
from jumar.ir import Data, Node
from jumar.operators import Compress, Det, Ngrams, NonMaxSuppression, NonZero, TopK, Unique


@rule("TopK")
def top_k(t: Trace, n: OnnxNode, x: Tensor, k: Tensor | None) -> tuple[Node, ...]:
    count = int(t.scalar(k)) if k is not None else n.attribute("k")
    op = TopK(count, n.attribute("axis", -1), bool(n.attribute("largest", 1)), bool(n.attribute("sorted", 1)))
    return op(t.node(x)).results


@rule("NonZero")
def non_zero(t: Trace, n: OnnxNode, x: Tensor) -> Value:
    found: Value = t.run(NonZero(), x)
    return found


@rule("Unique")
def unique(t: Trace, n: OnnxNode, x: Tensor) -> Any:
    return t.run(Unique(n.attribute("axis", None), bool(n.attribute("sorted", 1))), x)


@rule("Compress")
def compress(t: Trace, n: OnnxNode, x: Tensor, keep: Tensor) -> Any:
    return t.run(Compress(n.attribute("axis", None)), x, keep)


@rule("NonMaxSuppression")
def non_max_suppression(
    t: Trace, n: OnnxNode, boxes: Tensor, scores: Tensor, most: Tensor | None, iou: Tensor | None, score: Tensor | None
) -> Any:
    op = NonMaxSuppression(
        int(t.scalar(most)) if most is not None else 0,
        float(t.scalar(iou)) if iou is not None else 0.0,
        float(t.scalar(score)) if score is not None else None,
        bool(n.attribute("center_point_box", 0)),
    )
    return t.run(op, boxes, scores)


@rule("Det")
def det(t: Trace, n: OnnxNode, x: Tensor) -> Node:
    return Det()(t.node(x))


@rule("TfIdfVectorizer")
def tf_idf(t: Trace, n: OnnxNode, x: Tensor) -> Node:
    texts = n.attribute("pool_strings", None)
    pool = np.array(texts, object) if texts else np.array(n.attribute("pool_int64s", ()), np.int64)
    op = Ngrams(
        Data(pool), n.attribute("ngram_counts"), n.attribute("ngram_indexes"), n.attribute("weights", ()) or (),
        n.attribute("min_gram_length"), n.attribute("max_gram_length"), n.attribute("max_skip_count"), n.attribute("mode"),
    )  # fmt: skip
    return op(t.node(x))
