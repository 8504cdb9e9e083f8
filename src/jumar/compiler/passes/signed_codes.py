"""Unsigned codes as signed ones, 128 less, all the way between quantization and dequantization: an Ascend cube multiplies i8 only.

In: a quantized graph.  Out: the same function in which what was u8 between its ends is i8.  Zero codes move along, so nothing is added anywhere.
Comes before recognize_dequantize.py and precision.py.  A reader that wants the u8 values themselves gets them back by a cast, a sum and a cast.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from jumar.base import event, f16, i8, u8
from jumar.ir import Constant, Graph, Node, Param, apply, constant, same_node
from jumar.operators import (
    Broadcast,
    Cast,
    Concat,
    Conv,
    Dequantize,
    Gather,
    Identity,
    Lookup,
    MatMul,
    Maximum,
    MaxPool,
    Minimum,
    Pad,
    Quantize,
    ReduceMax,
    ReduceMin,
    Reshape,
    Resize,
    Slice,
    Transpose,
    add,
    cast,
)

PICKS = (
    Reshape,
    Transpose,
    Slice,
    Broadcast,
    Concat,
    Identity,
    MaxPool,
    Maximum,
    Minimum,
    ReduceMax,
    ReduceMin,
)  # give codes that they are given


@dataclass(frozen=True)
class SignedCodes:
    """No options."""

    name = "signed_codes"

    def __call__(self, graph: Graph) -> Graph:
        if not any(isinstance(n.op, Quantize) and n.dtype is u8 for n in graph.nodes):
            return graph
        return _Work().run(graph)


@dataclass(eq=False)
class _Work:
    """One run.   new: successors of the same type; low: of u8 values, those 128 less (a class, since casts back are made once and only where asked for)."""

    new: dict[Node, Node] = field(default_factory=dict)
    low: dict[Node, Node] = field(default_factory=dict)

    def run(self, graph: Graph) -> Graph:
        for node in graph.nodes:
            if isinstance(node.op, Param | Constant):
                self.new[node] = node
            elif (made := self._signed(node)) is not None:
                self.low[node] = made
            else:
                self.new[node] = self._read(node) or same_node(node, tuple(self._whole(i) for i in node.inputs))
        event("signed_codes", values=len(self.low))
        return graph.with_outputs(self._whole(o) for o in graph.outputs)

    def _whole(self, node: Node) -> Node:
        """The value itself."""
        if node not in self.new:
            self.new[node] = cast(add(cast(self.low[node], f16), 128), u8)
        return self.new[node]

    def _less(self, node: Node) -> Node | None:
        """The value less 128 as i8, None where only the value itself is there."""
        if node.array is not None and node.dtype is u8:
            return constant((node.array.astype(np.int16) - 128).astype(np.int8), i8, loc=node.loc)
        return self.low.get(node)

    def _signed(self, node: Node) -> Node | None:
        """A u8 value as codes 128 less, where it can be made so at once."""
        op: Any = node.op
        if getattr(node.type, "dtype", None) is not u8:
            return None
        match op:
            case Quantize():
                x, scale, *zero = node.inputs
                moved = self._less(zero[0]) if zero else constant(np.full((1,) * x.rank, -128, np.int8), i8)
                return None if moved is None else Quantize(i8)(self._whole(x), self._whole(scale), moved, loc=node.loc)
            case Lookup():
                return self._turned(node, signed=True)
            case Gather() | Pad():
                (x, *rest) = node.inputs
                less = self.low.get(x)
                if less is None:
                    return None
                if isinstance(op, Pad) and op.mode == "constant":
                    op = replace(op, value=int(op.value) - 128)
                return apply(op, less, *(self._whole(r) for r in rest), loc=node.loc)
            case _ if (isinstance(op, PICKS) or (isinstance(op, Resize) and op.mode == "nearest" and not op.roi)) and any(
                i in self.low for i in node.inputs
            ):
                less_all = [self._less(i) for i in node.inputs]
                return apply(op, *(v for v in less_all if v is not None), loc=node.loc) if None not in less_all else None
        return None

    def _read(self, node: Node) -> Node | None:
        """What reads codes less 128 as well as codes."""
        op: Any = node.op
        less = self.low.get(node.inputs[0]) if node.inputs else None
        if less is None:
            return None
        rest = tuple(self._whole(i) for i in node.inputs[1:])
        match op:
            case Conv() | MatMul():
                return apply(replace(op, x_zero=op.x_zero - 128), less, *rest, loc=node.loc)
            case Dequantize():
                scale, *zero = node.inputs[1:]
                moved = self._less(zero[0]) if zero else constant(np.full((1,) * scale.rank, -128, np.int8), i8)
                return None if moved is None else Dequantize()(less, self._whole(scale), moved, loc=node.loc)
            case Lookup():
                return self._turned(node)
            case Cast() if op.dtype.is_float or op.dtype.bits > 8:
                return add(apply(op, less, loc=node.loc), 128)
        return None

    def _turned(self, node: Node, *, signed: bool = False) -> Node | None:
        """A look-up by codes less 128: their bits begin with those of the upper half.   signed: what it gives is 128 less, too."""
        less, op = self.low.get(node.inputs[0]), node.op
        if less is None:
            return None
        assert isinstance(op, Lookup), "asked of look-ups"
        table = op.table[128:] + op.table[:128]
        made = Lookup(i8, tuple(t - 128 for t in table)) if signed else replace(op, table=table)
        return made(less, loc=node.loc)
