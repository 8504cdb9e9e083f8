"""Losses that pick the score of a label."""

from __future__ import annotations

from jumar.base import i64
from jumar.frontend.importers.onnx.node import OnnxNode
from jumar.frontend.importers.onnx.rule import rule
from jumar.frontend.importers.onnx.trace import Trace
from jumar.frontend.importers.onnx.value import Tensor
from jumar.ir import Node, constant
from jumar.operators import Gather, GatherElements, LogSoftmax, ReduceMean, ReduceSum, cast, div, equal, mul, neg, reshape, select


@rule("NegativeLogLikelihoodLoss")
def negative_log_likelihood(t: Trace, n: OnnxNode, x: Tensor, target: Tensor, weight: Tensor | None) -> Node:
    return _picked(n, t.node(x), t.node(target), None if weight is None else t.node(weight))


@rule("SoftmaxCrossEntropyLoss")
def softmax_cross_entropy(t: Trace, n: OnnxNode, x: Tensor, target: Tensor, weight: Tensor | None) -> tuple[Node, Node]:
    logarithms = LogSoftmax(1)(t.node(x))
    return _picked(n, logarithms, t.node(target), None if weight is None else t.node(weight)), logarithms


def _picked(n: OnnxNode, x: Node, target: Node, weight: Node | None) -> Node:
    """-weight[label] * x[:, label], summed, averaged or as it is; a label equal to ignore_index counts nothing."""
    labels, ignored = cast(target, i64), n.attribute("ignore_index", None)
    kept = None
    if ignored is not None:
        out = equal(labels, ignored)
        labels = select(out, 0, labels)
        kept = select(out, constant(0, x.dtype), 1)
    loss = neg(reshape(GatherElements(1)(x, reshape(labels, (labels.shape[0], 1, *labels.shape[1:]))), labels.shape))
    each = None if weight is None else Gather(0)(weight, labels)
    if kept is not None:
        each = kept if each is None else mul(each, kept)
    loss = loss if each is None else mul(loss, each)
    match n.attribute("reduction", "mean"):
        case "none":
            return loss
        case "sum":
            return ReduceSum()(loss)
        case "mean":
            return ReduceMean()(loss) if each is None else div(ReduceSum()(loss), ReduceSum()(each))
    raise n.fault(f"reduction must be none, sum or mean, got {n.attribute('reduction')!r}")
