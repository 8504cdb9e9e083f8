"""Reductions of ONNX.   Axes are an attribute in old versions and an input in new ones; none at all means all, or (if asked for) none."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from jumar.base import DType, bool_, f32, f64
from jumar.frontend.importers.onnx.node import OnnxNode
from jumar.frontend.importers.onnx.rule import RuleFunction, rule
from jumar.frontend.importers.onnx.trace import Trace
from jumar.frontend.importers.onnx.value import Value
from jumar.ir import Node
from jumar.operators import (
    Abs,
    ArgMax,
    ArgMin,
    CumProd,
    CumSum,
    IsInf,
    ReduceAll,
    ReduceAny,
    ReduceMax,
    ReduceMean,
    ReduceMin,
    ReduceProd,
    ReduceSum,
    Reduction,
    add,
    cast,
    exp,
    log,
    normal_axes,
    reshape,
    select,
    sqrt,
    square,
    sub,
)


@dataclass(frozen=True)
class Over:
    """Applies reductions over the axes that a node asks for.   nothing: over none, though the rest of the formula is computed."""

    axes: tuple[int, ...]
    keepdims: bool
    nothing: bool

    def __call__(self, op: type[Reduction], x: Node) -> Node:
        return x if self.nothing else op(self.axes, self.keepdims)(x)


Meaning = Callable[[Node, Over], Node]


def _reduction(meaning: Meaning, *, wide: bool = False) -> RuleFunction:
    """A rule from what a reduction means.   wide: it computes in floats of 32 bits at least."""

    def reduce(t: Trace, n: OnnxNode, value: Value, axes: Value) -> Node:
        x = t.node(value)
        chosen = n.attribute("axes") if n.has("axes") else () if axes is None else t.ints(axes)
        chosen = normal_axes(n.op, chosen, x.rank)
        over = Over(chosen, bool(n.attribute("keepdims", 1)), not chosen and bool(n.attribute("noop_with_empty_axes", 0)))
        return cast(meaning(cast(x, _wide(x.dtype)) if wide else x, over), x.dtype)

    return reduce


def _wide(dtype: DType) -> DType:
    if dtype.is_float:
        return f32 if dtype.bits < 32 else dtype
    return f64 if dtype.bits > 16 else f32


def _log_sum_exp(x: Node, over: Over) -> Node:
    """The largest is taken out, so that exp stays finite; where that itself is infinite nothing is."""
    if over.nothing:
        return x
    top = ReduceMax(over.axes, keepdims=True)(x)
    top = select(IsInf()(top), 0, top)
    total = log(over(ReduceSum, exp(sub(x, top))))
    return add(total, reshape(top, total.shape))


def _or_bool(op: type[Reduction], for_bool: type[Reduction]) -> Meaning:
    return lambda x, over: over(for_bool if x.dtype == bool_ else op, x)


rule("ReduceSum")(_reduction(lambda x, over: over(ReduceSum, x)))
rule("ReduceMean")(_reduction(lambda x, over: over(ReduceMean, x)))
rule("ReduceProd")(_reduction(lambda x, over: over(ReduceProd, x)))
rule("ReduceMax")(_reduction(_or_bool(ReduceMax, ReduceAny)))
rule("ReduceMin")(_reduction(_or_bool(ReduceMin, ReduceAll)))
rule("ReduceL1")(_reduction(lambda x, over: over(ReduceSum, Abs()(x))))
rule("ReduceL2")(_reduction(lambda x, over: sqrt(over(ReduceSum, square(x))), wide=True))
rule("ReduceSumSquare")(_reduction(lambda x, over: over(ReduceSum, square(x))))
rule("ReduceLogSum")(_reduction(lambda x, over: log(over(ReduceSum, x)), wide=True))
rule("ReduceLogSumExp")(_reduction(_log_sum_exp, wide=True))


@rule("ArgMax")
def arg_max(t: Trace, n: OnnxNode, x: Value) -> Node:
    return ArgMax(n.attribute("axis", 0), bool(n.attribute("keepdims", 1)), bool(n.attribute("select_last_index", 0)))(t.node(x))


@rule("ArgMin")
def arg_min(t: Trace, n: OnnxNode, x: Value) -> Node:
    return ArgMin(n.attribute("axis", 0), bool(n.attribute("keepdims", 1)), bool(n.attribute("select_last_index", 0)))(t.node(x))


@rule("CumSum")
def cum_sum(t: Trace, n: OnnxNode, x: Value, axis: Value) -> Node:
    return CumSum(int(t.scalar(axis)), bool(n.attribute("exclusive", 0)), bool(n.attribute("reverse", 0)))(t.node(x))


@rule("CumProd")
def cum_prod(t: Trace, n: OnnxNode, x: Value, axis: Value) -> Node:
    return CumProd(int(t.scalar(axis)), bool(n.attribute("exclusive", 0)), bool(n.attribute("reverse", 0)))(t.node(x))
