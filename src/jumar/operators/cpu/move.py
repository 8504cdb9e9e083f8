"""Moving elements: slices, broadcasts, concatenations, pads and reshapes as strided copies of bytes.

In: movement nodes.  Out: tasks.  Elements are copied as integers of their width, wider ones where rows allow it, so all types share
kernels; a reshape is no task at all, since it is the memory of its input.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from jumar.base import NATIVE, DType, TensorType, u8, u16, u32, u64
from jumar.device import Target
from jumar.ir import Node, param
from jumar.operators.cpu.expression import Expression, Step, number_of
from jumar.operators.cpu.indexed import indexed_task
from jumar.operators.cpu.pointwise import lower_pointwise
from jumar.operators.cpu.region import Operand, Region, region_of
from jumar.operators.cpu.transpose import is_transposing, transpose_task
from jumar.operators.elementwise import convert
from jumar.operators.families import normal_axis
from jumar.operators.movement import BitCast, Broadcast, Concat, Iota, Pad, Reshape, Slice, Transpose
from jumar.operators.schedule import Lowered, Packed, Place, Task, TaskArg, schedule

WIDTHS: dict[int, DType] = {1: u8, 2: u16, 4: u32, 8: u64}


@dataclass(frozen=True)
class View:
    """Elements of a value, in memory at `place`: element strides along the axes of a copy, from element `offset` on."""

    place: TaskArg
    strides: tuple[int, ...]
    offset: int = 0


def copy_tasks(shape: Sequence[int], nbytes: int, source: View, result: View, target: Target, label: str) -> tuple[Task, ...]:
    """Copies elements of `nbytes` bytes from one view to another, both of `shape`."""
    if math.prod(shape) == 0:
        return ()
    shape, nbytes, source, result = widened(tuple(shape), nbytes, source, result)
    kind = WIDTHS[nbytes]
    nodes = [param(name, TensorType(tuple(shape), kind)) for name in ("source", "result")]
    operand, written = (Operand(n, v.strides, v.offset) for n, v in zip(nodes, (source, result), strict=True))
    region = Region(tuple(shape), frozenset(), Expression((kind,), (), (0,)), (operand,), (written,))
    places = {nodes[0]: source.place, nodes[1]: result.place}
    if is_transposing(region):
        return (transpose_task(region, places, target, label),)
    return lower_pointwise(region, places, target, label).tasks


def widened(shape: tuple[int, ...], nbytes: int, source: View, result: View) -> tuple[tuple[int, ...], int, View, View]:
    """The same copy in elements as wide as all rows are multiples of."""
    kept = [i for i, n in enumerate(shape) if n != 1]
    while kept and nbytes < 8:
        last = kept[-1]
        others = [s for v in (source, result) for i, s in enumerate(v.strides) if i in kept and i != last]
        if (
            source.strides[last] != 1
            or result.strides[last] != 1
            or any(n % 2 for n in (shape[last], source.offset, result.offset, *others))
        ):
            break
        shape = tuple(n // 2 if i == last else n for i, n in enumerate(shape))
        nbytes *= 2
        source, result = (
            replace(v, strides=tuple(s if i == last or i not in kept else s // 2 for i, s in enumerate(v.strides)), offset=v.offset // 2)
            for v in (source, result)
        )
        if shape[last] == 1:
            break
    return shape, nbytes, source, result


def dense(shape: Sequence[int]) -> tuple[int, ...]:
    """Element strides of a value in memory."""
    strides = [1]
    for n in reversed(shape[1:]):
        strides.append(strides[-1] * n)
    return tuple(reversed(strides[: len(shape)]))


def movable(*nodes: Node) -> bool:
    """Whether the elements have a width that the copies know."""
    return all(n.dtype in NATIVE or (n.dtype.nbytes in WIDTHS and n.dtype.kind != "s") for n in nodes)


@schedule("cpu", Reshape, BitCast)
def lower_reshape(node: Node, target: Target) -> Lowered | None:
    """The memory of the input."""
    if isinstance(node.op, BitCast) and node.dtype.bits < 8:
        return None
    return Lowered(alias=Place(node.inputs[0]))


@schedule("cpu", Slice, Broadcast, Transpose)
def lower_view(node: Node, target: Target) -> Lowered | None:
    """A copy of a view of the input."""
    (x,) = node.inputs
    if not movable(x):
        return None
    if node.type.size == 0:
        return Lowered()
    # as bytes, so that the view is found for types without arithmetic, too
    source = param("x", TensorType(x.shape, WIDTHS[x.dtype.nbytes]))
    region = region_of([Node(node.op, (source,), TensorType(node.shape, WIDTHS[x.dtype.nbytes]))], [source])
    if region is None:
        return None
    views = [View(p, o.strides, o.offset) for p, o in zip((Place(x), Place(node)), (region.operands[0], region.targets[0]), strict=True)]
    return Lowered(copy_tasks(region.space, x.dtype.nbytes, views[0], views[1], target, str(node.op.name)))


@schedule("cpu", Concat)
def lower_concat(node: Node, target: Target) -> Lowered | None:
    """One copy for each input."""
    if not movable(node):
        return None
    assert isinstance(node.op, Concat), "registered for Concat"
    axis = normal_axis("concat", node.op.axis, node.rank)
    outer, inner = math.prod(node.shape[:axis]), math.prod(node.shape[axis + 1 :])
    row, at = node.shape[axis] * inner, 0
    tasks: list[Task] = []
    for x in node.inputs:
        run = x.shape[axis] * inner
        views = View(Place(x), (run, 1)), View(Place(node), (row, 1), at)
        tasks += copy_tasks((outer, run), node.dtype.nbytes, *views, target, "concat")
        at += run
    return Lowered(tuple(tasks))


@schedule("cpu", Pad)
def lower_pad(node: Node, target: Target) -> Lowered | None:
    """Borders are filled, the inside is copied; other modes look every element's place up in tables."""
    op, (x,) = node.op, node.inputs
    assert isinstance(op, Pad), "registered for Pad"
    if not movable(node) or (node.dtype not in NATIVE and op.mode == "constant"):
        return None
    if node.type.size == 0:
        return Lowered()
    if op.mode != "constant":
        modes = {"edge": "edge", "reflect": "reflect", "wrap": "wrap"}
        tables = [
            np.pad(np.arange(n), (low, high), mode=modes[op.mode])  # type: ignore[call-overload]
            for n, low, high in zip(x.shape, op.low, op.high, strict=True)
        ]
        strides = dense(x.shape)
        moved = [t.astype(np.int64) * s for t, s in zip(tables, strides, strict=True)]
        return Lowered((indexed_task(moved, WIDTHS[node.dtype.nbytes], Place(x), Place(node), "pad"),))
    strides = dense(node.shape)
    tasks: list[Task] = []
    box = [(0, n) for n in node.shape]  # what is not filled yet
    for axis, (low, size) in enumerate(zip(op.low, x.shape, strict=True)):
        for begin, end in ((0, low), (low + size, node.shape[axis])):
            if end > begin:
                slab = [*box[:axis], (begin, end), *box[axis + 1 :]]
                tasks += fill_tasks(node, slab, op.value, target)
        box[axis] = (low, low + size)
    offset = sum(low * s for low, s in zip(op.low, strides, strict=True))
    views = View(Place(x), dense(x.shape)), View(Place(node), strides, offset)
    return Lowered((*tasks, *copy_tasks(x.shape, node.dtype.nbytes, *views, target, "pad")))


def fill_tasks(node: Node, box: Sequence[tuple[int, int]], value: float | int | bool, target: Target) -> tuple[Task, ...]:
    """One number into the part of a node's value that `box` bounds."""
    shape, strides = tuple(b - a for a, b in box), dense(node.shape)
    if math.prod(shape) == 0:
        return ()
    item = convert(np.asarray(value), node.dtype).item()
    expression = Expression((), (Step(number_of(item), (), node.dtype),), (0,))
    written = Operand(node, strides, sum(a * s for (a, _), s in zip(box, strides, strict=True)))
    return lower_pointwise(Region(shape, frozenset(), expression, (), (written,)), {node: Place(node)}, target, "fill").tasks


@schedule("cpu", Iota)
def lower_iota(node: Node, target: Target) -> Lowered | None:
    """A copy of the numbers, made now."""
    assert isinstance(node.op, Iota), "registered for Iota"
    if not movable(node):
        return None
    axis = normal_axis("iota", node.op.axis, node.rank)
    numbers = np.arange(node.shape[axis]).astype(node.dtype.numpy)
    views = View(Packed(numbers, "iota"), tuple(int(i == axis) for i in range(node.rank))), View(Place(node), dense(node.shape))
    return Lowered(copy_tasks(node.shape, node.dtype.nbytes, *views, target, "iota"))
