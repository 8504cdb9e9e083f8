"""A contraction with what is fused around it, read from a node: `RootGroup`.

In: a plain node, or a `Fused` one with one contraction (the root) and elementwise operators, reshapes and transposes behind it.
Out: the root, where its inputs are in memory, and the epilogue's layout.  contraction.py has `fits`, the rule that the fuse pass asks.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from jumar.base import Array
from jumar.ir import Constant, Node, Param, same_node, topological
from jumar.operators.contraction import MatMul
from jumar.operators.cpu.epilogue import Axes, Layout, lay_out
from jumar.operators.cpu.region import region_of
from jumar.operators.fused import Fused
from jumar.operators.fusible import ROOTS
from jumar.operators.movement import Transpose
from jumar.operators.schedule import Packed, Place, TaskArg


@dataclass(frozen=True)
class RootGroup:
    """node: whose memory is written; root: the contraction; outer: the node outside for each parameter of the body."""

    node: Node
    root: Node
    results: tuple[Node, ...]
    outer: dict[Node, Node]

    def place(self, node: Node) -> TaskArg:
        """Where a value that the body reads is: an input of the group, or a constant inside of it."""
        if node in self.outer:
            return Place(self.outer[node])
        if node.array is not None:
            return Packed(np.ascontiguousarray(node.array), "constant")
        return Place(node)

    def array(self, node: Node) -> Array | None:
        """The value of an input, where it is constant."""
        return self.outer.get(node, node).array

    def layout(self, axes: Axes, panel: int) -> Layout | None:
        """How operands and results lie along the root's result."""
        region = region_of(self.results, (self.root,))
        return lay_out(region, self.root, axes, panel) if region else None

    def replaced(self, root: Node, value: Node) -> RootGroup:
        """The same with `root` as its root, where `value`, made from it, stands for the old one."""
        new: dict[Node, Node] = {self.root: value}
        for node in topological(self.results, (self.root,)):
            if node not in new:
                new[node] = same_node(node, tuple(new[i] for i in node.inputs))
        return RootGroup(self.node, root, tuple(new[r] for r in self.results), self.outer)

    def writer_args(self, layout: Layout) -> tuple[TaskArg, ...]:
        """The epilogue's arguments."""
        outputs = [Place(self.node, 0, i) for i in range(len(layout.outputs))]
        return layout.args([*outputs, *(self.place(s.node) for s in layout.operands)])


def from_memory(root: Node, value: Node) -> bool:
    """Whether a contraction reads an input of its group, or a constant, where it lies; a product takes its second one turned, too."""
    if isinstance(value.op, Param | Constant):
        return True
    return value is root.inputs[1] and value is not root.inputs[0] and turned(root, value) is not None


def turned(root: Node, value: Node) -> Node | None:
    """What the second input of a matrix product is the transpose of, if it is one of its last two dimensions and packing can undo it."""
    if not isinstance(root.op, MatMul) or not isinstance(value.op, Transpose):
        return None
    (source,) = value.inputs
    rank = source.rank
    swapped = (*range(rank - 2), rank - 1, rank - 2)
    return source if rank >= 2 and value.op.perm == swapped and isinstance(source.op, Param | Constant) else None


def root_group(node: Node) -> RootGroup | None:
    """The group of a node whose root is a contraction; None where it has none, or several."""
    if isinstance(node.op, ROOTS):
        return RootGroup(node, node, (node,), {})
    if not isinstance(node.op, Fused):
        return None
    body = node.op.body
    roots = [n for n in body.nodes if isinstance(n.op, ROOTS)]
    if len(roots) != 1:
        return None
    outer = dict(zip(body.params, node.inputs, strict=True))
    if not all(from_memory(roots[0], i) for i in roots[0].inputs):
        return None
    return RootGroup(node, roots[0], body.outputs, outer)


def matrix_axes(batches: int, rows: int, columns: int) -> Axes:
    """The result as [batches, rows, columns]."""
    return Axes((("columns", columns), ("rows", rows * columns), ("batch", batches * rows * columns)))


def grouped_axes(rows: int, groups: int, columns: int) -> Axes:
    """The result as [rows, groups, columns]."""
    return Axes((("columns", columns), ("batch", groups * columns), ("rows", rows * groups * columns)))
