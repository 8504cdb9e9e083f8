"""Reductions of ONNX.   Axes are an attribute in old versions and an input in new ones; none at all means all, or (if asked for) none."""

from __future__ import annotations

from collections.abc import Callable

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
    number,
    reshape,
    select,
    sqrt,
    square,
    sub,
)

Reduce = Callable[[type[Reduction], Node], Node]  # applies a reduction over the axes that the node asks for


def _reduction(meaning: Callable[[Node, Reduce], Node], *, wide: bool = False) -> RuleFunction:
    """A rule from what a reduction means.   wide: it computes in floats of 32 bits at least."""

    def rule_(t: Trace, n: OnnxNode, value: Value, axes: Value) -> Node:
        x = t.node(value)
        chosen = n.attribute("axes") if n.has("axes") else () if axes is None else t.ints(axes)
        chosen = normal_axes(n.op, chosen or (), x.rank)
        nothing = not chosen and bool(n.attribute("noop_with_empty_axes", 0))
        keepdims = bool(n.attribute("keepdims", 1))

        def reduce(op: type[Reduction], y: Node) -> Node:
            return y if nothing else op(chosen, keepdims)(y)

        return cast(meaning(cast(x, _wide(x.dtype)) if wide else x, reduce), x.dtype)

    return rule_


def _wide(dtype: DType) -> DType:
    if dtype.is_float:
        return f32 if dtype.bits < 32 else dtype
    return f64 if dtype.bits > 16 else f32


def _log_sum_exp(x: Node, reduce: Reduce) -> Node:
    """The largest is taken out, so that exp stays finite; where that itself is infinite nothing is."""
    top = ReduceMax(_axes_of(x, reduce), keepdims=True)(x)
    top = select(IsInf()(top), number(0, x), top)
    total = log(reduce(ReduceSum, exp(sub(x, top))))
    return add(total, reshape(top, total.shape))


def _axes_of(x: Node, reduce: Reduce) -> tuple[int, ...]:
    op = reduce(ReduceSum, x).op
    return op.axes if isinstance(op, ReduceSum) else ()


def _log_sum_exp_rule(x: Node, reduce: Reduce) -> Node:
    return x if reduce(ReduceSum, x) is x else _log_sum_exp(x, reduce)


def _or_bool(op: type[Reduction], for_bool: type[Reduction]) -> Callable[[Node, Reduce], Node]:
    return lambda x, reduce: reduce(for_bool if x.dtype == bool_ else op, x)


rule("ReduceSum")(_reduction(lambda x, reduce: reduce(ReduceSum, x)))
rule("ReduceMean")(_reduction(lambda x, reduce: reduce(ReduceMean, x)))
rule("ReduceProd")(_reduction(lambda x, reduce: reduce(ReduceProd, x)))
rule("ReduceMax")(_reduction(_or_bool(ReduceMax, ReduceAny)))
rule("ReduceMin")(_reduction(_or_bool(ReduceMin, ReduceAll)))
rule("ReduceL1")(_reduction(lambda x, reduce: reduce(ReduceSum, Abs()(x))))
rule("ReduceL2")(_reduction(lambda x, reduce: sqrt(reduce(ReduceSum, square(x))), wide=True))
rule("ReduceSumSquare")(_reduction(lambda x, reduce: reduce(ReduceSum, square(x))))
rule("ReduceLogSum")(_reduction(lambda x, reduce: log(reduce(ReduceSum, x)), wide=True))
rule("ReduceLogSumExp")(_reduction(_log_sum_exp_rule, wide=True))


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
