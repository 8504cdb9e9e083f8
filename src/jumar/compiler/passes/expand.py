"""What CANN has no operator for, said in operators that it has: the expansions that select.py tries before the AI CPU.

In: a node that no kernel of the chip takes.  Out: its results in other operators of ours (which may need expanding themselves), or None.
An operator's own `decompose` is the commonest one; those here hang on what chips lack: f32 on the cube, unsigned codes, look-ups.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from jumar.base import f16, f32, i8, i16, i32, i64, u8
from jumar.compiler.passes.decompose import decomposed
from jumar.device.npu import Chip, library
from jumar.ir import Node, constant, located
from jumar.operators import (
    BatchNormGradReduce,
    BatchNormGradUpdate,
    BatchNormReduce,
    BatchNormUpdate,
    BitCast,
    Clip,
    Concat,
    Conv,
    Formula,
    Gather,
    IsNan,
    MatMul,
    Quantize,
    ReduceSum,
    Resize,
    Round,
    Slice,
    add,
    bounds,
    cast,
    div,
    mul,
    normal_axis,
    select,
    slice_axis,
    sub,
)


@dataclass(frozen=True)
class Expansion:
    """Results of a node in other operators, and why it is taken apart."""

    results: tuple[Node, ...]
    why: str


def expand(node: Node, chip: Chip) -> Expansion | None:
    """The node in other operators, None where there is no way to say it."""
    with located(node.loc):
        for rule in RULES.get(node.op.name, ()):
            found = rule(node, chip)
            if found is not None:
                return found
        if isinstance(node.op, Formula):
            return Expansion(
                (node.op.decompose(*node.inputs),), f"CANN has no kernel for this {node.op.name} on {chip.name}: its formula in parts"
            )
    parts = decomposed(node)
    return None if parts is None else Expansion(parts, f"CANN has no kernel for this {node.op.name} on {chip.name}: computed in parts")


def _in_f16(node: Node, chip: Chip) -> Expansion | None:
    """A product of f32 on a cube without f32: of f16 with sums of f32, between casts."""
    if node.inputs[0].dtype != f32 or "f32" in chip.cube_macs or "f16" not in chip.cube_macs:
        return None
    op: Any = node.op
    result = op(*(cast(i, f16) if i.dtype == f32 else i for i in node.inputs))
    return Expansion((cast(result, f32),), f"the cube of {chip.name} multiplies no f32: multiplied in f16, between casts")


def _of_signed(node: Node, chip: Chip) -> Expansion | None:
    """Products of unsigned codes: of signed ones, 128 less, which the zero code of x and sums over x make good."""
    x, w, *bias = node.inputs
    op: Any = node.op
    if bias or "i8" not in chip.cube_macs or not {x.dtype, w.dtype} <= {u8, i8} or x.dtype == w.dtype == i8:
        return None
    zero = op.x_zero
    if x.dtype == u8:
        x, zero = _less_128(x), zero - 128
    op = replace(op, x_zero=zero)
    total = op(x, _less_128(w) if w.dtype == u8 else w)
    if w.dtype == u8:
        if isinstance(op, MatMul):
            sums = ReduceSum((x.rank - 1,), keepdims=w.rank > 1)(sub(cast(x, i32), zero))
        else:
            ones = w.shape if op.groups > 1 else (1, *w.shape[1:])
            sums = op(x, constant(np.ones(ones, np.int8), i8))
        total = add(total, mul(sums, 128))
    return Expansion((total,), "the cube multiplies signed codes: 128 is taken off the unsigned ones")


def _narrow_filters(node: Node, chip: Chip) -> Expansion | None:
    """Filters of codes less their zero codes, which the importer keeps in 16 bits: in 8, or as the sum of two halves where they do not fit."""
    x, w, *bias = node.inputs
    op: Any = node.op
    if bias or w.array is None or w.dtype != i16 or x.dtype not in (i8, u8) or np.abs(w.array).max(initial=0) > 254:
        return None
    if w.array.min(initial=0) >= -128 and w.array.max(initial=0) <= 127:
        return Expansion(
            (op(x, constant(w.array.astype(np.int8), i8, loc=w.loc)),), "the cube multiplies codes of 8 bits, which hold these filters"
        )
    half = w.array // 2
    parts = [op(x, constant(v.astype(np.int8), i8, loc=w.loc)) for v in (half, w.array - half)]
    return Expansion((add(*parts),), "the cube multiplies codes of 8 bits: filters of 9 bits are the sum of two halves")


def _less_128(x: Node) -> Node:
    """Codes 0..255 as -128..127, by way of f16, which every vector unit converts."""
    return cast(sub(cast(x, f16), 128), i8)


def _by_gather(node: Node, chip: Chip) -> Expansion | None:
    """A look-up in 256 codes: a gather."""
    op: Any = node.op
    (x,) = node.inputs
    table = constant(np.array(op.table, np.int16).astype(op.dtype.numpy), op.dtype)
    return Expansion((Gather(0)(table, cast(x if x.dtype == u8 else BitCast(u8)(x), i32)),), "a table of 256 codes is read by a gather")


def _quantized(node: Node, chip: Chip) -> Expansion | None:
    """Codes step by step, for types that AscendQuant does not make."""
    op: Any = node.op
    x, scale, *zero = node.inputs
    if not op.dtype.is_integer:
        return Expansion((replace_cast(div(x, scale), op),), "AscendQuant makes i8 only: divided and cast")
    if op.dtype == u8:
        moved = _less_128(zero[0]) if zero else constant(np.full((1,) * x.rank, -128, np.int8), i8)
        codes = Quantize(i8)(x, scale, moved)
        made = cast(add(cast(codes, f16), 128), u8)
        return Expansion((made,), "AscendQuant makes signed codes: 128 is put on them")
    low, high = bounds(op.dtype)
    y = Round()(div(x, scale))
    y = add(y, cast(zero[0], y.dtype)) if zero else y
    y = Clip(float(low), float(high))(y)
    return Expansion(
        (cast(select(IsNan()(y), 0, y), op.dtype),), "AscendQuant makes i8 only: divided, rounded, held within bounds and cast"
    )


def replace_cast(x: Node, op: Any) -> Node:
    """A cast that saturates as the quantization does."""
    made = cast(x, op.dtype)
    return replace(made.op, saturate=op.saturate)(x)  # type: ignore[type-var]


def _dequantized(node: Node, chip: Chip) -> Expansion | None:
    """Numbers of codes step by step, for types that AscendAntiQuant and AscendDequant do not take or make."""
    x, scale, *zero = node.inputs
    code = cast(x, scale.dtype)
    code = sub(code, cast(zero[0], scale.dtype)) if zero else code
    return Expansion((mul(code, scale),), "CANN's dequantization gives f16 or bf16 of i8 and i32: cast, moved and scaled")


def _last_of_equals(node: Node, chip: Chip) -> Expansion | None:
    """The last of equal elements is the first from behind."""
    op: Any = node.op
    if not op.select_last:
        return None
    (x,) = node.inputs
    axis = normal_axis(op.name, op.axis, x.rank)
    n = x.shape[axis]
    starts, stops, steps = [0] * x.rank, list(x.shape), [1] * x.rank
    starts[axis], stops[axis], steps[axis] = n - 1, -1, -1
    backwards = Slice(tuple(starts), tuple(stops), tuple(steps))(x)
    first = replace(op, select_last=False)(backwards)
    return Expansion((sub(n - 1, first),), "CANN gives the first of equal elements: searched from behind")


def _in_f16_exactly(node: Node, chip: Chip) -> Expansion | None:
    """What picks among codes of 8 bits, in f16, which holds each of them, and back."""
    codes = {i.dtype for i in node.inputs}
    if node.dtype not in (i8, u8) or codes != {node.dtype} or "f16" not in chip.dtypes:
        return None
    op: Any = node.op
    if isinstance(op, Resize) and (op.mode != "nearest" or op.roi):
        return None
    made = op(*(cast(i, f16) for i in node.inputs))
    return Expansion(
        (cast(made, node.dtype),), f"its kernel on {chip.name} takes no {node.dtype}: computed in f16, which holds all codes, and back"
    )


def _summed_in_i64(node: Node, chip: Chip) -> Expansion | None:
    """A sum of i32 in i64, where the AI Core adds those up and not the others (310P)."""
    known = library.find_core("ReduceSum", library.column(chip.family))
    if node.dtype != i32 or known is None or "i64" not in known.dtypes or "i32" in known.dtypes:
        return None
    op: Any = node.op
    return Expansion((cast(op(cast(node.inputs[0], i64)), i32),), f"the AI Core of {chip.name} adds up i64 and no i32: by way of i64")


def _normed_in_two(node: Node, chip: Chip) -> Expansion | None:
    """A batch normalization in training: sums, then every element."""
    op: Any = node.op
    x, scale, bias = node.inputs
    sums = BatchNormReduce()(x)
    made = BatchNormUpdate(op.epsilon)(x, sums[0], sums[1], scale, bias)
    return Expansion(made.results, f"graphs of {chip.name} have two kernels for it: BNTrainingReduce and BNTrainingUpdate")


def _normed_back_in_two(node: Node, chip: Chip) -> Expansion | None:
    """Its gradient: sums, which are those of scale and bias, then every element."""
    op: Any = node.op
    x, scale, mean, var, dy = node.inputs
    sums = BatchNormGradReduce(op.epsilon)(dy, x, mean, var)
    dx = BatchNormGradUpdate(op.epsilon)(dy, x, scale, mean, var, sums[0], sums[1])
    return Expansion(
        (dx, sums[0], sums[1]), f"graphs of {chip.name} have two kernels for it: BNTrainingUpdateGrad and BNTrainingReduceGrad"
    )


def _wrapped(node: Node, chip: Chip) -> Expansion | None:
    """Periodic padding: the two ends of each dimension stand before and after it."""
    op: Any = node.op
    (y,) = node.inputs
    if op.mode != "wrap":
        return None
    for axis, (low, high) in enumerate(zip(op.low, op.high, strict=True)):
        n = y.shape[axis]
        if not n or min(low, high) < 0:
            return None
        if low or high:
            copies = -(-low // n) + 1 + -(-high // n)
            start = -low % n
            y = Concat(axis)(*[y] * copies) if copies > 1 else y
            y = slice_axis(y, axis, start, start + low + n + high)
    return Expansion((y,), "CANN pads with constants, edges and mirrors: a period is put together")


def _mean_of_holes(node: Node, chip: Chip) -> Expansion | None:
    """A mean over a window with holes: a depthwise convolution, and the count of each window."""
    op: Any = node.op
    (x,) = node.inputs
    if not any(d > 1 for d in op.dilations) or op.channels_last:
        return None
    c, spatial = x.shape[1], x.shape[2:]
    ones = constant(np.ones((c, 1, *op.kernel), x.dtype.numpy))
    total = Conv(op.strides, op.pads_low, op.pads_high, op.dilations, c)(x, ones)
    counts = np.asarray(op.counts(spatial), np.float64)[None, None]
    return Expansion(
        (mul(total, constant((1 / counts).astype(x.dtype.numpy))),), "CANN's average pools have no dilation: a depthwise convolution"
    )


RULES: dict[str, tuple[Callable[[Node, Chip], Expansion | None], ...]] = {
    "conv": (_in_f16, _narrow_filters, _of_signed),
    "matmul": (_in_f16, _of_signed),
    **dict.fromkeys(("conv_transpose", "conv_grad_input", "conv_grad_weight"), (_in_f16,)),
    **dict.fromkeys(("max_pool", "relu", "clip", "maximum", "minimum", "reduce_max", "reduce_min", "resize"), (_in_f16_exactly,)),
    "reduce_sum": (_summed_in_i64,),
    "batch_norm_train": (_normed_in_two,),
    "batch_norm_grad": (_normed_back_in_two,),
    "lookup": (_by_gather,),
    "quantize": (_quantized,),
    "dequantize": (_dequantized,),
    "pad": (_wrapped,),
    "avg_pool": (_mean_of_holes,),
    "arg_max": (_last_of_equals,),
    "arg_min": (_last_of_equals,),
}
