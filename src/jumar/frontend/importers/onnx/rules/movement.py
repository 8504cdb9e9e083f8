"""Operators of ONNX that move elements, ask for sizes or make constants.   Sizes come as inputs; they are known by then, or made known."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any

import numpy as np

from jumar.base import DType, bool_, i64
from jumar.frontend.importers.onnx.node import OnnxNode, dtype_of_onnx
from jumar.frontend.importers.onnx.rule import rule
from jumar.frontend.importers.onnx.trace import Tensor, Trace
from jumar.frontend.importers.onnx.value import Value
from jumar.ir import Node, constant
from jumar.operators import (  # fmt: skip
    Concat,
    Gather,
    GatherElements,
    GatherNd,
    Iota,
    Or,
    Pad,
    ScatterElements,
    ScatterNd,
    Select,
    Slice,
    add,
    broadcast,
    broadcast_to,
    cast,
    equal,
    greater_equal,
    less,
    less_equal,
    normal_axes,
    normal_axis,
    number,
    numel,
    reshape,
    select,
    slice_axis,
    sub,
    transpose,
)


def ints_of(t: Trace, n: OnnxNode, name: str, value: Value) -> tuple[int, ...] | None:
    """Ints that old versions give as attribute `name` and new ones as an input; None where neither is there."""
    found = n.attribute(name) if n.has(name) else None if value is None else t.ints(value)
    return None if found is None else tuple(int(i) for i in found)


# --------------------------------------------------------------------------------------------------------------- shape
@rule("Reshape")
def reshape_(t: Trace, n: OnnxNode, data: Value, shape: Value) -> Node:
    """0 copies a size (unless allowzero), -1 is what remains."""
    x = t.node(data)
    asked = ints_of(t, n, "shape", shape)
    if asked is None:
        raise n.fault("shape must be given, got none")
    if not n.attribute("allowzero", 0):
        if any(d == 0 and i >= x.rank for i, d in enumerate(asked)):
            raise n.fault(f"shape must copy dimensions that are there, got {list(asked)} for {x.type}")
        asked = tuple(x.shape[i] if d == 0 else d for i, d in enumerate(asked))
    if asked.count(-1) > 1 or any(d < -1 for d in asked):
        raise n.fault(f"shape must have one -1 at most, got {list(asked)}")
    rest = numel([d for d in asked if d != -1])
    return reshape(x, tuple((numel(x.shape) // rest if rest else 0) if d == -1 else d for d in asked))


@rule("Flatten")
def flatten(t: Trace, n: OnnxNode, data: Value) -> Node:
    x = t.node(data)
    axis = n.attribute("axis", 1)
    axis = axis + x.rank if axis < 0 else axis
    return reshape(x, (numel(x.shape[:axis]), numel(x.shape[axis:])))


@rule("Squeeze")
def squeeze(t: Trace, n: OnnxNode, data: Value, axes: Value) -> Node:
    x = t.node(data)
    asked = ints_of(t, n, "axes", axes)
    gone = tuple(i for i, d in enumerate(x.shape) if d == 1) if asked is None else normal_axes("squeeze", asked, x.rank)
    if any(x.shape[i] != 1 for i in gone):
        raise n.fault(f"axes must name dimensions of size 1, got {list(gone)} for {x.type}")
    return reshape(x, tuple(d for i, d in enumerate(x.shape) if i not in gone))


@rule("Unsqueeze")
def unsqueeze(t: Trace, n: OnnxNode, data: Value, axes: Value) -> Node:
    x = t.node(data)
    asked = ints_of(t, n, "axes", axes) or ()
    rank = x.rank + len(asked)
    new = normal_axes("unsqueeze", asked, rank)
    old = iter(x.shape)
    return reshape(x, tuple(1 if i in new else next(old) for i in range(rank)))


@rule("Transpose")
def transpose_(t: Trace, n: OnnxNode, data: Value) -> Node:
    x = t.node(data)
    perm = n.attribute("perm", tuple(reversed(range(x.rank))))
    return transpose(x, tuple(p + x.rank if p < 0 else p for p in perm))


@rule("Expand")
def expand(t: Trace, n: OnnxNode, data: Value, shape: Value) -> Node:
    x = t.node(data)
    return broadcast_to(x, tuple(int(d) for d in broadcast("expand", x.shape, t.ints(shape))))


@rule("Tile")
def tile(t: Trace, n: OnnxNode, data: Value, repeats: Value, axis: Value) -> Node:
    """Each dimension is repeated as a new one before it, then both are one again."""
    x = t.node(data)
    times = t.ints(repeats)
    if axis is not None:  # version 1: one dimension only
        times = tuple(times[0] if i == normal_axis("tile", int(t.scalar(axis)), x.rank) else 1 for i in range(x.rank))
    if len(times) != x.rank:
        raise n.fault(f"repeats must have {x.rank} numbers, got {list(times)}")
    if all(r == 1 or d == 1 for r, d in zip(times, x.shape)):
        return broadcast_to(x, tuple(r * d for r, d in zip(times, x.shape)))
    spread = reshape(x, tuple(d for size in x.shape for d in (1, size)))
    wide = broadcast_to(spread, tuple(d for r, size in zip(times, x.shape) for d in (r, size)))
    return reshape(wide, tuple(r * d for r, d in zip(times, x.shape)))


@rule("DepthToSpace")
def depth_to_space(t: Trace, n: OnnxNode, data: Value) -> Node:
    x = t.node(data)
    size = n.attribute("blocksize")
    b, c, h, w = x.shape
    depth = c // size**2
    if n.attribute("mode", "DCR") == "DCR":
        y = transpose(reshape(x, (b, size, size, depth, h, w)), (0, 3, 4, 1, 5, 2))
    else:
        y = transpose(reshape(x, (b, depth, size, size, h, w)), (0, 1, 4, 2, 5, 3))
    return reshape(y, (b, depth, h * size, w * size))


@rule("SpaceToDepth")
def space_to_depth(t: Trace, n: OnnxNode, data: Value) -> Node:
    x = t.node(data)
    size = n.attribute("blocksize")
    b, c, h, w = x.shape
    blocks = reshape(x, (b, c, h // size, size, w // size, size))
    order = (0, 3, 5, 1, 2, 4) if n.attribute("mode", "DCR") == "DCR" else (0, 1, 3, 5, 2, 4)
    return reshape(transpose(blocks, order), (b, c * size**2, h // size, w // size))


# ------------------------------------------------------------------------------------------------------ parts and wholes
@rule("Concat")
def concat_(t: Trace, n: OnnxNode, *inputs: Value) -> Node:
    nodes = [t.node(i) for i in inputs]
    return nodes[0] if len(nodes) == 1 else Concat(n.attribute("axis", 1))(*nodes)


@rule("Split")
def split(t: Trace, n: OnnxNode, data: Value, sizes: Value) -> tuple[Node, ...]:
    x = t.node(data)
    axis = normal_axis("split", n.attribute("axis", 0), x.rank)
    parts = ints_of(t, n, "split", sizes)
    if parts is None:
        count = n.attribute("num_outputs", len(n.output_names))
        each = -(-x.shape[axis] // count)
        parts = tuple(max(0, min(each, x.shape[axis] - i * each)) for i in range(count))
    if sum(parts) != x.shape[axis]:
        raise n.fault(f"parts must make up the {x.shape[axis]} elements of dimension {axis}, got {list(parts)}")
    edges = np.cumsum((0, *parts)).tolist()
    return tuple(slice_axis(x, axis, a, b) for a, b in pairwise(edges))


@rule("Slice")
def slice_(t: Trace, n: OnnxNode, data: Value, starts: Value, ends: Value, axes: Value, steps: Value) -> Node:
    x = t.node(data)
    first, last = ints_of(t, n, "starts", starts) or (), ints_of(t, n, "ends", ends) or ()
    chosen = ints_of(t, n, "axes", axes)
    which = [a + x.rank if a < 0 else a for a in (range(len(first)) if chosen is None else chosen)]
    by = (1,) * len(first) if steps is None else t.ints(steps)
    if not len(first) == len(last) == len(which) == len(by) or 0 in by or any(not 0 <= a < x.rank for a in which):
        raise n.fault(f"starts, ends, axes and steps must fit, got {list(first)}, {list(last)}, {which} and {list(by)} for {x.type}")
    bounds = [(0, d, 1) for d in x.shape]
    for axis, *asked in zip(which, first, last, by):
        bounds[axis] = slice(*asked).indices(x.shape[axis])  # clamps as ONNX does, but for an end that means "to the front"
        if asked[2] > 0:
            bounds[axis] = (min(bounds[axis][0], x.shape[axis]), max(bounds[axis][1], 0), asked[2])
        elif bounds[axis][0] < 0:  # nothing before the first element
            bounds[axis] = (0, 0, asked[2])
    return x if all(b == (0, d, 1) for b, d in zip(bounds, x.shape)) else Slice(*(tuple(b) for b in zip(*bounds)))(x)


@rule("Pad")
def pad(t: Trace, n: OnnxNode, data: Value, pads: Value, value: Value, axes: Value) -> Node:
    """Negative pads cut off."""
    x = t.node(data)
    sizes = ints_of(t, n, "paddings" if n.has("paddings") else "pads", pads) or ()
    which = range(x.rank) if axes is None else [a + x.rank if a < 0 else a for a in t.ints(axes)]
    low, high = [0] * x.rank, [0] * x.rank
    if len(sizes) != 2 * len(which):
        raise n.fault(f"pads must have {2 * len(which)} numbers, got {list(sizes)}")
    for i, axis in enumerate(which):
        low[axis], high[axis] = sizes[i], sizes[i + len(which)]
    for axis, (a, b) in enumerate(zip(low, high)):
        x = slice_axis(x, axis, max(-a, 0), max(x.shape[axis] - max(-b, 0), -a, 0))
    before, after = tuple(max(a, 0) for a in low), tuple(max(b, 0) for b in high)
    if not any(before + after):
        return x
    mode = n.attribute("mode", "constant")
    if mode != "constant":
        return Pad(before, after, mode)(x)
    if value is None:
        return Pad(before, after, value=_plain(np.asarray(n.attribute("value", 0.0)), x.dtype))(x)
    known = t.known(value)
    if known is not None:
        return Pad(before, after, value=_plain(known, x.dtype))(x)
    inside = Pad(before, after, value=False)(constant(np.ones(x.shape, np.bool_)))
    return select(inside, Pad(before, after)(x), reshape(t.node(value), ()))


def _plain(array: Any, dtype: DType) -> float | int | bool:
    """The one number in an array as a Python number of the kind of `dtype`."""
    one = array.reshape(-1)[0] if array.size else 0
    return bool(one) if dtype == bool_ else float(one) if dtype.is_float else int(one)


@rule("CenterCropPad")
def center_crop_pad(t: Trace, n: OnnxNode, data: Value, shape: Value) -> Node:
    x = t.node(data)
    axes = n.attribute("axes", tuple(range(x.rank)))
    low, high = [0] * x.rank, [0] * x.rank
    for axis, wanted in zip((a + x.rank if a < 0 else a for a in axes), t.ints(shape)):
        have = x.shape[axis]
        if wanted < have:
            start = (have - wanted) // 2
            x = slice_axis(x, axis, start, start + wanted)
        else:
            low[axis] = (wanted - have) // 2
            high[axis] = wanted - have - low[axis]
    return Pad(tuple(low), tuple(high))(x) if any(low + high) else x


@rule("ReverseSequence")
def reverse_sequence(t: Trace, n: OnnxNode, data: Value, lengths: Value) -> Node:
    """Position p below its row's length is taken from length - 1 - p, the others stay."""
    x = t.node(data)
    time, batch = n.attribute("time_axis", 0), n.attribute("batch_axis", 1)
    at = Iota(_along(x, time), time, i64)()
    length = reshape(cast(t.node(lengths), i64), _along(x, batch))
    source = select(less(at, length), sub(sub(length, at), 1), at)
    return GatherElements(time)(x, broadcast_to(source, x.shape))


def _along(x: Node, axis: int) -> tuple[int, ...]:
    """The shape that broadcasts to x and is as long along one axis."""
    return tuple(d if i == axis % x.rank else 1 for i, d in enumerate(x.shape))


# ----------------------------------------------------------------------------------------------------- gather and scatter
@rule("Gather")
def gather(t: Trace, n: OnnxNode, data: Value, indices: Value) -> Node:
    return Gather(n.attribute("axis", 0))(t.node(data), t.node(indices))


@rule("GatherElements")
def gather_elements(t: Trace, n: OnnxNode, data: Value, indices: Value) -> Node:
    return GatherElements(n.attribute("axis", 0))(t.node(data), t.node(indices))


@rule("GatherND")
def gather_nd(t: Trace, n: OnnxNode, data: Value, indices: Value) -> Node:
    return GatherNd(n.attribute("batch_dims", 0))(t.node(data), t.node(indices))


@rule("Scatter", "ScatterElements")
def scatter_elements(t: Trace, n: OnnxNode, data: Value, indices: Value, updates: Value) -> Node:
    return ScatterElements(n.attribute("axis", 0), n.attribute("reduction", "none"))(t.node(data), t.node(indices), t.node(updates))


@rule("ScatterND")
def scatter_nd(t: Trace, n: OnnxNode, data: Value, indices: Value, updates: Value) -> Node:
    return ScatterNd(n.attribute("reduction", "none"))(t.node(data), t.node(indices), t.node(updates))


@rule("TensorScatter")
def tensor_scatter(t: Trace, n: OnnxNode, cache: Value, update: Value, starts: Value) -> Node:
    """The update written into the cache from each row's start on; a circular cache goes round."""
    past, new = t.node(cache), t.node(update)
    axis = normal_axis("tensor_scatter", n.attribute("axis", -2), past.rank)
    at = Iota(_along(new, axis), axis, i64)()
    if starts is not None:
        at = add(at, reshape(cast(t.node(starts), i64), _along(new, 0)))
    if n.attribute("mode", "linear") == "circular":
        at = select(less(at, past.shape[axis]), at, sub(at, past.shape[axis]))
    return ScatterElements(axis)(past, broadcast_to(at, new.shape), new)


# ------------------------------------------------------------------------------------------------- sizes and constants
@rule("Shape")
def shape(t: Trace, n: OnnxNode, x: Tensor) -> Any:
    return np.array(x.shape[slice(n.attribute("start", 0), n.attribute("end"))], np.int64)


@rule("Size")
def size(t: Trace, n: OnnxNode, x: Tensor) -> Any:
    return np.array(math.prod(x.shape), np.int64)


CONSTANTS = {
    "value": None, "sparse_value": None, "value_string": object, "value_strings": object,
    "value_float": np.float32, "value_floats": np.float32, "value_int": np.int64, "value_ints": np.int64,
}  # fmt: skip


@rule("Constant")
def constant_(t: Trace, n: OnnxNode) -> Any:
    for name, dtype in CONSTANTS.items():
        if n.has(name):
            return np.asarray(n.attribute(name), dtype)
    raise n.fault("node must have a value, got none")


@rule("ConstantOfShape")
def constant_of_shape(t: Trace, n: OnnxNode, shape: Value) -> Node:
    return broadcast_to(constant(np.asarray(n.attribute("value", np.zeros(1, np.float32))).reshape(())), t.ints(shape))


@rule("Range")
def range_(t: Trace, n: OnnxNode, start: Tensor, limit: Value, delta: Value) -> Any:
    first, last, step = (v if isinstance(v, int) else float(v) for v in map(t.scalar, (start, limit, delta)))
    count = max(0, math.ceil((last - first) / step))
    at: Any = np.arange(count, dtype=np.int64 if isinstance(first, int) else np.float64)
    return (first + at * step).astype(start.dtype.numpy)


@rule("EyeLike")
def eye_like(t: Trace, n: OnnxNode, x: Tensor) -> Node:
    rows, columns = x.shape
    on = equal(add(Iota((rows, 1))(), n.attribute("k", 0)), Iota((1, columns), 1)())
    return cast(on, dtype_of_onnx(n.attribute("dtype")) if n.has("dtype") else x.dtype)


@rule("Trilu")
def trilu(t: Trace, n: OnnxNode, data: Value, k: Value) -> Node:
    x = t.node(data)
    diagonal = sub(Iota((1, x.shape[-1]), 1)(), Iota((x.shape[-2], 1))())
    shift = 0 if k is None else int(t.scalar(k))
    kept = greater_equal(diagonal, shift) if n.attribute("upper", 1) else less_equal(diagonal, shift)
    return Select()(kept, x, number(0, x))


@rule("OneHot")
def one_hot(t: Trace, n: OnnxNode, indices: Value, depth: Value, values: Value) -> Node:
    """Below zero counts from the end; what lies outside is off everywhere."""
    chosen, off_on = cast(t.node(indices), i64), t.node(values)
    count = int(t.scalar(depth))
    axis = normal_axis("one_hot", n.attribute("axis", -1), chosen.rank + 1)
    at = reshape(chosen, (*chosen.shape[:axis], 1, *chosen.shape[axis:]))
    place = Iota(tuple(count if i == axis else 1 for i in range(at.rank)), axis)()
    hit = Or()(equal(at, place), equal(add(at, count), place))
    off, on = (reshape(slice_axis(off_on, 0, i, i + 1), ()) for i in (0, 1))
    return Select()(hit, on, off)
