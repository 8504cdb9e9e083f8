"""Products of quantized numbers become products of their codes, and values between layers stay codes.

In: a graph with quantize and dequantize around float operators, as a static quantizer writes it.  Out: the same function, where
a contraction of dequantized codes is one of integers, scaled afterwards, and reshapes, transposes, concatenations, pools and the like move
codes.  Comes before weights are folded into numbers.

What the integers mean is exact.  Scales are joined: (x - zx) sx times (w - zw) sw, quantized by sy, is the integer sum times sx sw / sy
with one rounding instead of three, so a code may differ by one from the operators one by one where their result lies within some
roundings of the middle between two codes.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from jumar.base import Array, event, f32, i8, i32, u8
from jumar.compiler.match import either, with_constant
from jumar.compiler.passes.fold import fold_node
from jumar.compiler.rules import Alone, Table, apply_rules, rule, user_rule
from jumar.ir import Graph, Node, apply, constant
from jumar.operators import (
    Add,
    Cast,
    Clip,
    Concat,
    Conv,
    Dequantize,
    Elementwise,
    Elu,
    Erf,
    Exp,
    Gather,
    Gelu,
    LeakyRelu,
    Lookup,
    MatMul,
    MaxPool,
    Mish,
    Mul,
    Quantize,
    Relu,
    Reshape,
    Resize,
    Sigmoid,
    Silu,
    Slice,
    Softplus,
    Tanh,
    Transpose,
    integer_conv,
    integer_matmul,
    reshape,
)

CODES: Table = {}
TABLES: Table = {}  # where any function of a code is to be a table
DEAR_TABLES: Table = {}  # where only one that takes long to compute is
MOVES = (Reshape, Transpose, MaxPool, Resize)  # with `Concat`: what a quantize may pass on its way up
DOWN = (*MOVES, Slice, Gather)  # what a dequantize may pass on its way down


@dataclass(frozen=True)
class QuantizedProducts:
    """Applies the rules below until none applies.   tables: whether the machine looks bytes up in registers; None: it looks nothing up."""

    tables: bool | None = False
    name = "quantize"

    def __call__(self, graph: Graph) -> Graph:
        if not any(isinstance(n.op, Dequantize) for n in graph.nodes):
            return graph
        result, hits = apply_rules(graph, CODES)
        if self.tables is not None:
            result, more = apply_rules(result, TABLES if self.tables else DEAR_TABLES)
            hits += more
        if hits:
            event("quantize", **hits)
        return result


@dataclass(frozen=True)
class Codes:
    """What a dequantize reads.   scale, zero: as arrays that broadcast to the codes."""

    codes: Node
    scale: Array
    zero: Array

    @property
    def uniform(self) -> bool:
        """One scale and one zero point for all."""
        return self.scale.size == 1 and self.zero.size == 1

    @property
    def zero_code(self) -> int:
        return int(self.zero.reshape(-1)[0])


def codes_of(node: Node) -> Codes | None:
    """The codes of 8 bits behind a dequantize to f32 by known scales."""
    if not isinstance(node.op, Dequantize) or node.dtype is not f32 or node.inputs[0].dtype not in (u8, i8):
        return None
    codes, *rest = node.inputs
    arrays = [r.array for r in rest]
    if any(a is None for a in arrays) or codes.shape != node.shape:
        return None
    scale, zero = arrays[0], arrays[1] if len(arrays) > 1 else np.zeros((), codes.dtype.numpy)
    assert scale is not None and zero is not None, "checked"
    return Codes(codes, scale, zero) if (scale > 0).all() else None


def numbers(found: Codes, codes: Node) -> Node:
    """Other codes of the same one scale as numbers."""
    zero = constant(found.zero.reshape(()), codes.dtype, loc=codes.loc)
    return Dequantize()(codes, constant(found.scale.reshape(()), f32, loc=codes.loc), zero, loc=codes.loc)


# ------------------------------------------------------------------------------------------------------- contractions
@rule(CODES, MatMul)
def product_of_codes(node: Node) -> Node | None:
    """matmul (dequantize x) (dequantize w) -> (matmul x w of integers) * scale"""
    x, w = (codes_of(i) for i in node.inputs)
    if x is None or w is None or not x.uniform:
        return None
    columns = node.inputs[1].shape[-1]
    per_column = (1, columns) if w.codes.rank > 1 else ()
    scale, zero = (_along(a, w.codes.shape, (*(1,) * (w.codes.rank - 2), *per_column)) for a in (w.scale, w.zero))
    if scale is None or zero is None:
        return None
    total = integer_matmul(x.codes, w.codes, x.zero_code, zero)
    return None if total is None else _scaled_total(total, _factor(x, scale.reshape(-1) if scale.size > 1 else scale.reshape(())))


@rule(CODES, Conv)
def convolution_of_codes(node: Node) -> Node | None:
    """conv (dequantize x) (dequantize w) b -> (conv x w of integers + b / scale) * scale"""
    op = node.op
    assert isinstance(op, Conv), "listed under Conv"
    x, w = (codes_of(i) for i in node.inputs[:2])
    if x is None or w is None or not x.uniform or w.codes.array is None or op.channels_last:
        return None
    filters = node.inputs[1].shape[0]
    scale, zero = (_along(a, w.codes.shape, (filters, *(1,) * (w.codes.rank - 1))) for a in (w.scale, w.zero))
    if scale is None or zero is None:
        return None
    total = integer_conv(op, x.codes, w.codes, x.zero_code, zero)
    if total is None:
        return None
    spread = (-1, *(1,) * (node.rank - 2))
    y = _scaled_total(total, _factor(x, scale.reshape(spread) if scale.size > 1 else scale.reshape(())))
    if len(node.inputs) > 2:
        y = Add()(y, reshape(node.inputs[2], (filters, *spread[1:])) if node.inputs[2].array is None else _spread(node.inputs[2], spread))
    return y


def _spread(bias: Node, shape: tuple[int, ...]) -> Node:
    assert bias.array is not None, "a constant"
    return constant(bias.array.reshape(shape), bias.dtype, loc=bias.loc)


def _along(values: Array, shape: tuple[int, ...], wanted: tuple[int, ...]) -> Array | None:
    """Scales in a shape that broadcasts to `shape`, if they are one or lie along one dimension as `wanted`."""
    if values.size == 1:
        return values.reshape(())
    whole = (1,) * (len(shape) - values.ndim) + values.shape
    return values.reshape(wanted) if whole == wanted else None


def _factor(x: Codes, scale: Array) -> Array:
    """What the integer sums are multiplied by."""
    return np.asarray(x.scale.reshape(()).astype(np.float64) * scale, np.float32)


def _scaled_total(total: Node, factor: Array) -> Node:
    return Mul()(Cast(f32)(total), constant(factor, f32))


@user_rule(CODES, Add)
def bias_of_codes(node: Node, alone: Alone) -> Node | None:
    """total * s + b -> (total + b / s) * s, where b is a code of that scale, as quantizers make it"""
    for y, b in with_constant(node):
        match y:
            case Node(op=Mul(), inputs=(Node(op=Cast(), inputs=(total,)) as cast, factor)) if (
                total.dtype is i32 and y.type == node.type and factor.array is not None and b.array is not None and alone(y)
            ):
                wanted = b.array.astype(np.float64) / factor.array
                found = np.rint(wanted)
                if found.shape != b.array.shape or np.abs(found).max(initial=0) >= 1 << 30:
                    return None
                if (np.abs(found - wanted) > 0.01 + 1e-6 * np.abs(found)).any():
                    return None
                moved = Add()(total, constant(found.astype(np.int32), i32, loc=b.loc), loc=node.loc)
                return Mul()(apply(cast.op, moved, loc=node.loc), factor, loc=node.loc)
    return None


# ------------------------------------------------------------------------------------------------------------- moves
@rule(CODES, *DOWN)
def move_codes(node: Node) -> Node | None:
    """move (dequantize x) -> dequantize (move x)"""
    found = codes_of(node.inputs[0])
    if found is None or not _moves(node):
        return None
    if not found.uniform:
        return _transposed_weights(node, found)
    moved = apply(node.op, found.codes, *node.inputs[1:], loc=node.loc)
    return numbers(found, fold_node(moved) or moved)


def _transposed_weights(node: Node, found: Codes) -> Node | None:
    """The transpose of codes with several scales, which are turned, too."""
    if not isinstance(node.op, Transpose) or found.codes.array is None:
        return None
    perm, rank = node.op.perm, node.rank
    turned = [np.transpose(a.reshape((1,) * (rank - a.ndim) + a.shape), perm) for a in (found.scale, found.zero)]
    codes = constant(np.transpose(found.codes.array, perm), found.codes.dtype, loc=node.loc)
    return Dequantize()(codes, constant(turned[0], f32), constant(turned[1], codes.dtype), loc=node.loc)


def _moves(node: Node) -> bool:
    """Whether an operator only moves elements, or takes the largest."""
    return not isinstance(node.op, Resize) or (node.op.mode == "nearest" and not node.op.roi)


@rule(CODES, Concat)
def concat_codes(node: Node) -> Node | None:
    """concat of dequantized codes of one scale -> dequantize (concat)"""
    found = [codes_of(i) for i in node.inputs]
    first = found[0]
    if first is None or not first.uniform or any(f is None or not _same(first, f) for f in found):
        return None
    return numbers(first, apply(node.op, *(f.codes for f in found if f), loc=node.loc))


def _same(a: Codes, b: Codes) -> bool:
    return b.uniform and a.codes.dtype is b.codes.dtype and float(a.scale.item()) == float(b.scale.item()) and a.zero_code == b.zero_code


# -------------------------------------------------------------------------------------------------------- quantize
def step_of(node: Node) -> tuple[float, int] | None:
    """The one scale and zero code of a quantize of f32 to 8 bits."""
    x, scale, *zero = node.inputs
    arrays = [scale.array, *(z.array for z in zero)]
    if x.dtype is not f32 or node.dtype not in (u8, i8) or any(a is None or a.size != 1 for a in arrays) or x.shape != node.shape:
        return None
    step, code = float(arrays[0].item()), int(arrays[1].item()) if zero else 0  # type: ignore[union-attr]
    return (step, code) if step > 0 and np.isfinite(step) else None


@rule(CODES, Quantize)
def quantize_codes(node: Node) -> Node | None:
    """quantize (dequantize x) by the same scale -> x"""
    found, step = codes_of(node.inputs[0]), step_of(node)
    if found is None or step is None or not found.uniform or found.codes.dtype is not node.dtype:
        return None
    return found.codes if step == (float(found.scale.item()), found.zero_code) else None


@user_rule(CODES, Quantize)
def quantize_before_move(node: Node, alone: Alone) -> Node | None:
    """quantize (move x) -> move (quantize x)"""
    x, *step = node.inputs
    if step_of(node) is None or not isinstance(x.op, (*MOVES, Concat)) or not alone(x) or not _moves(x):
        return None
    return apply(x.op, *(apply(node.op, i, *step, loc=node.loc) for i in x.inputs), loc=x.loc)


@user_rule(CODES, Quantize)
def quantize_scaled(node: Node, alone: Alone) -> Node | None:
    """quantize (x * a) by s -> quantize (x * (a / s)) by 1"""
    step = step_of(node)
    if step is None or step[0] == 1:
        return None
    scaled = times(node.inputs[0], 1 / step[0], alone)
    if scaled is None or scaled.type != node.inputs[0].type:
        return None
    return apply(node.op, scaled, constant(np.float32(1), f32), *node.inputs[2:], loc=node.loc)


def times(node: Node, factor: float, alone: Alone) -> Node | None:
    """node * factor, for a positive number that disappears into the constants of what nobody else reads; None where it does not."""
    found = codes_of(node)
    if found is not None:
        scale = constant((found.scale.astype(np.float64) * factor).astype(np.float32), f32, loc=node.loc)
        return Dequantize()(found.codes, scale, constant(found.zero, found.codes.dtype), loc=node.loc)
    if node.array is not None:
        return constant((node.array.astype(np.float64) * factor).astype(np.float32), f32, loc=node.loc)
    if not alone(node):
        return None
    match node:
        case Node(op=Mul(), inputs=(a, b)):
            for one, other in either(node):
                if one.array is not None or (a.array is None and b.array is None):
                    scaled = times(one, factor, alone)
                    if scaled is not None:
                        return Mul()(scaled, other, loc=node.loc)
        case Node(op=Add(), inputs=(a, b)):
            left, right = times(a, factor, alone), times(b, factor, alone)
            return Add()(left, right, loc=node.loc) if left is not None and right is not None else None
        case Node(op=Relu() | LeakyRelu(), inputs=(a,)):
            scaled = times(a, factor, alone)
            return None if scaled is None else apply(node.op, scaled, loc=node.loc)
        case Node(op=Clip(low=low, high=high), inputs=(a,)):
            scaled = times(a, factor, alone)
            low, high = (None if bound is None else float(bound) * factor for bound in (low, high))
            return None if scaled is None else Clip(low, high)(scaled, loc=node.loc)
    return None


# ---------------------------------------------------------------------------------------------------------- tables
MOST_STEPS = 24  # of a function that becomes a table
DEAR = (
    Sigmoid,
    Erf,
    Exp,
    Tanh,
    Elu,
    Gelu,
    Mish,
    Silu,
    Softplus,
)  # dozens of instructions for a vector, where a table is three for each of its elements


@rule(TABLES, Quantize)
def lookup_codes(node: Node) -> Node | None:
    """quantize (f (dequantize x)) -> table of f, looked up by the code"""
    found = function_of_codes(node)
    return None if found is None else table_of(node, *found)


@rule(DEAR_TABLES, Quantize)
def lookup_dear_codes(node: Node) -> Node | None:
    """quantize (f (dequantize x)) -> table of f, where f has exponentials and the like"""
    found = function_of_codes(node)
    return table_of(node, *found) if found is not None and any(isinstance(n.op, DEAR) for n in found[1]) else None


def function_of_codes(node: Node) -> tuple[Node, list[Node]] | None:
    """The one node of 8-bit codes that a quantize is a function of, element by element, and the nodes of that function, inputs first."""
    if node.dtype not in (u8, i8):
        return None
    codes: set[Node] = set()
    steps: dict[Node, None] = {}

    def walk(at: Node) -> bool:
        if at in steps or at in codes or (at.array is not None and at.array.size == 1):
            return True
        if at.shape != node.shape or len(steps) >= MOST_STEPS:
            return False
        if at.dtype in (u8, i8) and at is not node:
            codes.add(at)
            return len(codes) == 1
        if not isinstance(at.op, Elementwise) or not all(walk(i) for i in at.inputs):
            return False
        steps[at] = None
        return True

    if not walk(node) or len(codes) != 1:
        return None
    return codes.pop(), list(steps)


def table_of(node: Node, codes: Node, steps: list[Node]) -> Node:
    """The function as a table, by the operators' references."""
    values: dict[Node, Array] = {codes: np.arange(256, dtype=np.uint8).view(codes.dtype.numpy)}
    for step in steps:
        arrays = [values[i] if i in values else _one(i) for i in step.inputs]
        values[step] = np.asarray(step.op.reference(*arrays)).astype(step.dtype.numpy)
    return Lookup(node.dtype, tuple(values[node].tolist()))(codes, loc=node.loc)


def _one(node: Node) -> Array:
    assert node.array is not None, "a number"
    return node.array.reshape(())
