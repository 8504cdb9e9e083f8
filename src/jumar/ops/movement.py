"""Functions that move elements: reshape, transpose, join, split, repeat, pad, roll, flip.

In: tensors and shapes.  Out: tensors.  Where nothing records, what can be a view of its base is one, as in NumPy and PyTorch:
no copy, and writes are seen on both sides; under a recorder views.py keeps that so.
"""

from __future__ import annotations

import builtins
import itertools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from jumar import operators as o
from jumar.ops import views
from jumar.ops.operands import (
    Tensor,
    apply,
    as_tensor,
    as_type,
    axis_of,
    cast,
    constant,
    eager,
    ints,
    numpy_dtype,
    operands,
    sizes,
    wrap,
)


# ------------------------------------------------------------------------------------------------------------ one shape
def reshape(input: Any, *shape: Any) -> Tensor:
    """The same elements under another shape, in which one -1 stands for what is left."""
    x = as_tensor(input)
    wanted = sizes(*shape)
    if eager():
        try:
            return wrap(x.array.reshape(wanted))
        except ValueError:
            filled(wanted, x.shape)
            raise
    wanted = filled(wanted, x.shape)
    if wanted == x.shape:
        return x
    y: Tensor = apply(o.Reshape(wanted), x)
    return views.note(x, y, views.Reshaped(wanted)) if views.can_view(x, wanted) else y


def filled(wanted: tuple[int, ...], shape: tuple[int, ...]) -> tuple[int, ...]:
    """A shape with the number for its -1."""
    total = math.prod(shape)
    if wanted.count(-1) > 1:
        raise ValueError(f"reshape: shape must have one -1 at most, got {wanted}")
    if -1 in wanted:
        rest = math.prod(d for d in wanted if d != -1)
        if rest == 0 or total % rest:
            raise ValueError(f"reshape: shape must hold the {total} elements of {shape}, got {wanted}")
        return tuple(total // rest if d == -1 else d for d in wanted)
    if math.prod(wanted) != total or any(d < 0 for d in wanted):
        raise ValueError(f"reshape: shape must hold the {total} elements of {shape}, got {wanted}")
    return wanted


def view(input: Tensor, *shape: Any) -> Tensor:
    """As `reshape`; given an element type of the same width, the bits read as that."""
    if len(shape) == 1 and not isinstance(shape[0], int | tuple | list | Tensor | np.ndarray):
        return view_type(input, shape[0])
    return reshape(input, *shape)


def view_type(input: Tensor, dtype: Any) -> Tensor:
    """The bits of the tensor read as another element type of the same width."""
    wanted = as_type(dtype)
    if eager():
        return wrap(input.array.view(wanted.numpy))
    return apply(o.BitCast(wanted.dtype), input)  # type: ignore[arg-type, no-any-return]


def reshape_as(input: Tensor, other: Tensor) -> Tensor:
    """The elements under another tensor's shape."""
    return reshape(input, other.shape)


def flatten(input: Any, order: str = "C", *, start_dim: int = 1, end_dim: int = -1) -> Tensor:
    """The dimensions from start_dim to end_dim as one."""
    x = as_tensor(input)
    if order == "F":
        x = permute(x, (0, *range(x.ndim - 1, 0, -1)))
    elif order != "C":
        raise ValueError(f"flatten: order must be 'C' or 'F', got {order!r}")
    return flatten_from(x, start_dim if x.ndim > 1 else 0, end_dim)


def flatten_from(input: Any, start_dim: int = 0, end_dim: int = -1) -> Tensor:
    """The dimensions from start_dim to end_dim as one."""
    x = as_tensor(input)
    if not x.ndim:
        return reshape(x, (1,))
    start, end = axis_of(start_dim, x.ndim, "flatten"), axis_of(end_dim, x.ndim, "flatten")
    if start > end:
        raise ValueError(f"flatten: start_dim must not be after end_dim, got {start_dim} and {end_dim}")
    return reshape(x, (*x.shape[:start], math.prod(x.shape[start : end + 1]), *x.shape[end + 1 :]))


def ravel(input: Any) -> Tensor:
    """All elements in one row."""
    return reshape(input, (-1,))


def unflatten(input: Tensor, dim: int, sizes: Any) -> Tensor:
    """One dimension as several."""
    axis = axis_of(dim, input.ndim)
    return reshape(input, (*input.shape[:axis], *filled(ints(sizes), (input.shape[axis],)), *input.shape[axis + 1 :]))


def squeeze(input: Any, dim: Any = None) -> Tensor:
    """Without dimensions of size 1: all, or those named (which must be 1 where ops are asked, and stay where they are not)."""
    x = as_tensor(input)
    if dim is None:
        return reshape(x, tuple(d for d in x.shape if d != 1))
    axes = {axis_of(a, x.ndim, "squeeze") for a in ints(dim)}
    if not axes:
        return reshape(x, tuple(d for d in x.shape if d != 1))
    return reshape(x, tuple(d for i, d in enumerate(x.shape) if i not in axes or d != 1))


def unsqueeze(input: Any, dim: Any) -> Tensor:
    """With one more dimension of size 1 there."""
    x = as_tensor(input)
    axis = axis_of(dim, x.ndim + 1, "unsqueeze")
    return reshape(x, (*x.shape[:axis], 1, *x.shape[axis:]))


def expand_dims(input: Any, axis: Any) -> Tensor:
    """With more dimensions of size 1, at the places in the result."""
    x = as_tensor(input)
    if isinstance(axis, int | np.integer | Tensor):
        return unsqueeze(x, axis)
    places = {axis_of(a, x.ndim + len(axis), "expand_dims") for a in axis}
    rest = iter(x.shape)
    return reshape(x, tuple(1 if i in places else next(rest) for i in range(x.ndim + len(places))))


# -------------------------------------------------------------------------------------------------------- order of axes
def permute(input: Any, *dims: Any) -> Tensor:
    """Dimension i of the result is dimension dims[i] of the tensor."""
    x = as_tensor(input)
    perm = tuple(axis_of(d, x.ndim, "permute") for d in sizes(*dims))
    if sorted(perm) != list(range(x.ndim)):
        raise ValueError(f"permute: dims must be an order of 0..{x.ndim - 1}, got {dims}")
    if eager():
        return wrap(x.array.transpose(perm))
    return x if perm == tuple(range(x.ndim)) else views.note(x, apply(o.Transpose(perm), x), views.Permuted(perm), False)


def transpose(input: Any, *dims: Any) -> Tensor:
    """Dimensions in another order: all of them, two that change places, or none given: reversed."""
    x = as_tensor(input)
    if not dims or dims == (None,):
        return permute(x, tuple(reversed(range(x.ndim))))
    if len(dims) == 2 and (x.ndim != 2 or not isinstance(dims[0], tuple | list)):
        return swapaxes(x, *dims)
    return permute(x, *dims)


def swapaxes(input: Any, dim0: int, dim1: int) -> Tensor:
    """Two dimensions change places."""
    x = as_tensor(input)
    if not x.ndim:
        return x
    a, b = axis_of(dim0, x.ndim, "transpose"), axis_of(dim1, x.ndim, "transpose")
    perm = list(range(x.ndim))
    perm[a], perm[b] = b, a
    return permute(x, perm)


def movedim(x: Any, source: Any, destination: Any) -> Tensor:
    """Dimensions at other places, the rest in order."""
    tensor = as_tensor(x)
    rank = tensor.ndim
    start = [axis_of(a, rank, "movedim") for a in ints(source)]
    end = [axis_of(a, rank, "movedim") for a in ints(destination)]
    if len(start) != len(end):
        raise ValueError(f"movedim: source and destination must be as many, got {source} and {destination}")
    order = [a for a in range(rank) if a not in start]
    for to, of in sorted(zip(end, start, strict=True)):
        order.insert(to, of)
    return permute(tensor, order)


def t(input: Any) -> Tensor:
    """The matrix turned; vectors and scalars stay."""
    x = as_tensor(input)
    if x.ndim > 2:
        raise ValueError(f"t: input must have two dimensions at most, got {x.shape}")
    return permute(x, tuple(reversed(range(x.ndim))))


def adjoint(x: Tensor) -> Tensor:
    """The last two dimensions change places."""
    return swapaxes(x, -1, -2)


# ----------------------------------------------------------------------------------------------------------- repetition
def broadcast_to(input: Any, *shape: Any) -> Tensor:
    """The tensor repeated up to a shape, in which -1 keeps a dimension."""
    x = as_tensor(input)
    wanted = sizes(*shape)
    if len(wanted) < x.ndim:
        raise ValueError(f"broadcast_to: shape must have {x.ndim} dimensions or more, got {wanted}")
    own = (1,) * (len(wanted) - x.ndim) + x.shape
    wanted = tuple(d if w == -1 else w for d, w in zip(own, wanted, strict=True))
    if any(d not in (1, w) for d, w in zip(own, wanted, strict=True)):
        raise ValueError(f"broadcast_to: {x.shape} must broadcast to the shape, got {wanted}")
    if eager():
        return wrap(np.broadcast_to(x.array, wanted))
    return x if wanted == x.shape else apply(o.Broadcast(wanted), x)


def expand_as(input: Tensor, other: Tensor) -> Tensor:
    """The tensor repeated up to another's shape."""
    return broadcast_to(input, other.shape)


def tile(input: Any, *dims: Any) -> Tensor:
    """The whole repeated so many times along each dimension."""
    x = as_tensor(input)
    repeats = sizes(*dims)
    rank = max(len(repeats), x.ndim)
    repeats = (1,) * (rank - len(repeats)) + repeats
    shape = (1,) * (rank - x.ndim) + x.shape
    if all(r == 1 for r in repeats):
        return reshape(x, shape) if shape != x.shape else copy(x)
    split = reshape(x, tuple(v for d in shape for v in (1, d)))
    whole = broadcast_to(split, tuple(v for r, d in zip(repeats, shape, strict=True) for v in (r, d)))
    return reshape(whole, tuple(r * d for r, d in zip(repeats, shape, strict=True)))


def copy(input: Any) -> Tensor:
    """A tensor of its own with the same elements."""
    return apply(o.Identity(), as_tensor(input))  # type: ignore[no-any-return]


def repeat_interleave(input: Any, repeats: Any, dim: int | None = None, *, output_size: Any = None) -> Tensor:
    """Each element along a dimension repeated so many times."""
    x = as_tensor(input)
    if dim is None:
        x, dim = ravel(x), 0
    axis = axis_of(dim, x.ndim, "repeat_interleave")
    counts = ints(repeats)
    if len(counts) == 1:
        (count,) = counts
        if count < 0:
            raise ValueError(f"repeat_interleave: repeats must be 0 or more, got {count}")
        if count == 1:
            return copy(x)
        shape = x.shape
        x = reshape(x, (*shape[: axis + 1], 1, *shape[axis + 1 :]))
        x = broadcast_to(x, (*shape[: axis + 1], count, *shape[axis + 1 :]))
        return reshape(x, (*shape[:axis], shape[axis] * count, *shape[axis + 1 :]))
    if len(counts) != x.shape[axis]:
        raise ValueError(f"repeat_interleave: repeats must be one or {x.shape[axis]} numbers, got {len(counts)}")
    where = np.repeat(np.arange(x.shape[axis]), counts)
    return apply(o.Gather(axis), x, constant(where))  # type: ignore[no-any-return]


def repeat_elements(x: Any, rep: int, axis: int = 0) -> Tensor:
    """Each element along a dimension repeated so many times."""
    return repeat_interleave(x, rep, axis)


# -------------------------------------------------------------------------------------------------------- join and split
def cat(tensors: Any, dim: int = 0) -> Tensor:
    """The tensors one after another along a dimension."""
    parts = _alike(tensors, "concat")
    if len(parts) == 1:
        return copy(parts[0])
    axis = axis_of(dim, max(p.ndim for p in parts), "concat")
    rank = max(p.ndim for p in parts)
    if any(p.ndim != rank for p in parts):
        parts = [p for p in parts if p.shape != (0,)]  # as torch: an empty vector joins with anything
    return apply(o.Concat(axis), *parts)  # type: ignore[no-any-return]


def _alike(tensors: Any, name: str) -> list[Tensor]:
    """The tensors in the element type in which they all meet."""
    parts = [as_tensor(t) for t in tensors]
    if not parts:
        raise ValueError(f"{name}: tensors must be one or more, got none")
    first = numpy_dtype(parts[0])
    if all(numpy_dtype(p) == first for p in parts):
        return parts
    like = parts[0]
    for p in parts[1:]:
        like = operands(like, p)[0]
    meet = numpy_dtype(like)
    return [cast(p, meet) for p in parts]


def stack(tensors: Any, dim: int = 0) -> Tensor:
    """The tensors beside one another along a new dimension."""
    parts = _alike(tensors, "stack")
    if any(p.shape != parts[0].shape for p in parts):
        raise ValueError(f"stack: tensors must have one shape, got {', '.join(str(p.shape) for p in parts)}")
    axis = axis_of(dim, parts[0].ndim + 1, "stack")
    return cat([unsqueeze(p, axis) for p in parts], axis)


def part(x: Tensor, axis: int, start: int, stop: int, step: int = 1) -> Tensor:
    """From start to before stop along one axis; bounds as `Slice` has them."""
    if eager():
        return wrap(x.array[(slice(None),) * axis + (slice(start, None if stop < 0 else stop, step),)])
    if (start, stop, step) == (0, x.shape[axis], 1):
        return x
    starts, stops, steps = [0] * x.ndim, list(x.shape), [1] * x.ndim
    starts[axis], stops[axis], steps[axis] = start, stop, step
    return sliced(x, tuple(starts), tuple(stops), tuple(steps))


def sliced(x: Tensor, starts: tuple[int, ...], stops: tuple[int, ...], steps: tuple[int, ...]) -> Tensor:
    """A part of a tensor, while something records: a view."""
    return views.note(x, apply(o.Slice(starts, stops, steps), x), views.Sliced(starts, stops, steps), False)


def split(tensor: Any, split_size_or_sections: Any, dim: int = 0) -> tuple[Tensor, ...]:
    """Parts of one size (the last may be smaller), or of the sizes given."""
    x = as_tensor(tensor)
    axis = axis_of(dim, x.ndim, "split")
    size = x.shape[axis]
    if isinstance(split_size_or_sections, int | np.integer):
        step = int(split_size_or_sections)
        if step <= 0:
            raise ValueError(f"split: split_size must be 1 or more, got {step}")
        pieces = [min(step, size - at) for at in range(0, max(size, 1), step)]
    else:
        pieces = list(ints(split_size_or_sections))
        if sum(pieces) != size or any(p < 0 for p in pieces):
            raise ValueError(f"split: sizes must add up to {size}, the size of axis {axis}, got {pieces}")
    return _pieces(x, axis, pieces)


def _pieces(x: Tensor, axis: int, pieces: Sequence[int]) -> tuple[Tensor, ...]:
    found, at = [], 0
    for p in pieces:
        found.append(part(x, axis, at, at + p))
        at += p
    return tuple(found)


def chunk(input: Any, chunks: int, dim: int = 0) -> tuple[Tensor, ...]:
    """So many parts of one size, or fewer: the last may be smaller."""
    x = as_tensor(input)
    if chunks <= 0:
        raise ValueError(f"chunk: chunks must be 1 or more, got {chunks}")
    axis = axis_of(dim, x.ndim, "chunk")
    return split(x, builtins.max(1, -(-x.shape[axis] // chunks)), axis)


def split_evenly(x: Tensor, axis: int, count: int) -> tuple[Tensor, ...]:
    """So many parts of exactly one size."""
    at = axis_of(axis, x.ndim, "Split")
    if count <= 0 or x.shape[at] % count:
        raise ValueError(f"Split: output_num must divide {x.shape[at]}, the size of axis {at}, got {count}")
    return _pieces(x, at, [x.shape[at] // count] * count)


def tensor_split(input: Any, indices_or_sections: Any, dim: int = 0) -> tuple[Tensor, ...]:
    """So many nearly equal parts, or parts that end at the places given."""
    x = as_tensor(input)
    axis = axis_of(dim, x.ndim, "tensor_split")
    size = x.shape[axis]
    if isinstance(indices_or_sections, int):
        n = indices_or_sections
        if n <= 0:
            raise ValueError(f"tensor_split: sections must be 1 or more, got {n}")
        return _pieces(x, axis, [size // n + (i < size % n) for i in range(n)])
    bounds = [0, *(builtins.min(builtins.max(i + size if i < 0 else i, 0), size) for i in ints(indices_or_sections)), size]
    return tuple(part(x, axis, a, builtins.max(a, b)) for a, b in itertools.pairwise(bounds))


def hsplit(input: Any, indices_or_sections: Any) -> tuple[Tensor, ...]:
    """`tensor_split` along the second dimension (the first of a vector)."""
    return tensor_split(input, indices_or_sections, 0 if as_tensor(input).ndim == 1 else 1)


def vsplit(input: Any, indices_or_sections: Any) -> tuple[Tensor, ...]:
    """`tensor_split` along the first dimension."""
    return tensor_split(input, indices_or_sections, 0)


def dsplit(input: Any, indices_or_sections: Any) -> tuple[Tensor, ...]:
    """`tensor_split` along the third dimension."""
    return tensor_split(input, indices_or_sections, 2)


def unbind(input: Any, dim: int = 0) -> tuple[Tensor, ...]:
    """The slices along a dimension, without it."""
    x = as_tensor(input)
    axis = axis_of(dim, x.ndim, "unbind")
    if not x.ndim:
        raise ValueError("unbind: input must have a dimension, got a scalar")
    return tuple(select(x, axis, i) for i in range(x.shape[axis]))


def select(input: Any, dim: int, index: Any) -> Tensor:
    """One slice along a dimension, without it."""
    x = as_tensor(input)
    axis, at = axis_of(dim, x.ndim, "select"), int(index)
    if not -x.shape[axis] <= at < x.shape[axis]:
        raise IndexError(f"select: index must be within {-x.shape[axis]}..{x.shape[axis] - 1}, got {at}")
    at %= x.shape[axis]
    return reshape(part(x, axis, at, at + 1), (*x.shape[:axis], *x.shape[axis + 1 :]))


def narrow(input: Any, dim: int, start: Any, length: int) -> Tensor:
    """So many elements from start on, along a dimension."""
    x = as_tensor(input)
    axis, at = axis_of(dim, x.ndim, "narrow"), int(start)
    at = at + x.shape[axis] if at < 0 else at
    if length < 0 or at < 0 or at + length > x.shape[axis]:
        raise IndexError(f"narrow: start and length must lie within {x.shape[axis]}, got {start} and {length}")
    return part(x, axis, at, at + length)


def hstack(tensors: Any) -> Tensor:
    """Beside one another: along the second dimension (the first of vectors)."""
    parts = [atleast_1d(x) for x in tensors]
    return cat(parts, 0 if parts[0].ndim == 1 else 1)


def vstack(inputs: Any) -> Tensor:
    """Below one another: along the first dimension, vectors as rows."""
    return cat([atleast_2d(x) for x in inputs], 0)


def dstack(tensors: Any) -> Tensor:
    """Behind one another: along the third dimension."""
    return cat([atleast_3d(x) for x in tensors], 2)


def column_stack(tensors: Any) -> Tensor:
    """Vectors as columns of a matrix, matrices beside one another."""
    return cat([unsqueeze(reshape(x, (-1,)), 1) if x.ndim < 2 else x for x in map(as_tensor, tensors)], 1)


def atleast_1d(inputs: Any) -> Any:
    """Scalars as vectors of one element."""
    if isinstance(inputs, tuple | list):
        return type(inputs)(atleast_1d(x) for x in inputs)
    x = as_tensor(inputs)
    return reshape(x, (1,)) if not x.ndim else x


def atleast_2d(inputs: Any) -> Any:
    """Vectors as rows."""
    if isinstance(inputs, tuple | list):
        return type(inputs)(atleast_2d(x) for x in inputs)
    x = as_tensor(inputs)
    return reshape(x, (1, -1)) if x.ndim < 2 else x


def atleast_3d(inputs: Any) -> Any:
    """Matrices with a third dimension behind; vectors as [1, n, 1]."""
    if isinstance(inputs, tuple | list):
        return type(inputs)(atleast_3d(x) for x in inputs)
    x = as_tensor(inputs)
    return reshape(x, (1, -1, 1)) if x.ndim < 2 else unsqueeze(x, 2) if x.ndim == 2 else x


# --------------------------------------------------------------------------------------------------------- turn and shift
def flip(input: Any, *dims: Any) -> Tensor:
    """The elements backwards along dimensions."""
    x = as_tensor(input)
    for axis in {axis_of(d, x.ndim, "flip") for d in sizes(*dims)}:
        if x.shape[axis] > 1:
            x = apply(o.Slice(*_backwards(x.shape, axis)), x)
    return x if x is not input else copy(x)


def _backwards(shape: tuple[int, ...], axis: int) -> tuple[tuple[int, ...], ...]:
    starts = tuple(d - 1 if i == axis else 0 for i, d in enumerate(shape))
    stops = tuple(-1 if i == axis else d for i, d in enumerate(shape))
    return starts, stops, tuple(-1 if i == axis else 1 for i in range(len(shape)))


def fliplr(input: Any) -> Tensor:
    """Backwards along the second dimension."""
    return flip(input, (1,))


def flipud(input: Any) -> Tensor:
    """Backwards along the first dimension."""
    return flip(input, (0,))


def reverse(x: Any, axis: Any) -> Tensor:
    """Backwards along dimensions."""
    return flip(x, ints(axis))


def rot90(input: Any, k: int, dims: Any) -> Tensor:
    """Turned by 90 degrees, k times, in the plane of two dimensions."""
    a, b = ints(dims)
    k %= 4
    if k == 0:
        return copy(input)
    if k == 2:
        return flip(input, (a, b))
    return swapaxes(flip(input, (b,)), a, b) if k == 1 else flip(swapaxes(input, a, b), (b,))


def roll(input: Any, shifts: Any, dims: Any = None) -> Tensor:
    """Shifted along dimensions; what falls out comes in at the other end."""
    x = as_tensor(input)
    if dims is None:
        return reshape(roll(ravel(x), sum(ints(shifts)), 0), x.shape)
    steps, axes = ints(shifts), ints(dims)
    if len(steps) != len(axes):
        raise ValueError(f"roll: shifts and dims must be as many, got {shifts} and {dims}")
    for step, dim in zip(steps, axes, strict=True):
        axis = axis_of(dim, x.ndim, "roll")
        size = x.shape[axis]
        if size and step % size:
            cut = size - step % size
            x = cat([part(x, axis, cut, size), part(x, axis, 0, cut)], axis)
    return copy(x) if x is input else x


def unfold_dim(input: Tensor, dimension: int, size: int, step: int) -> Tensor:
    """All windows of that size along a dimension, as a new last dimension."""
    axis = axis_of(dimension, input.ndim, "unfold")
    count = (input.shape[axis] - size) // step + 1
    where = np.arange(count)[:, None] * step + np.arange(size)
    windows = apply(o.Gather(axis), input, constant(where))
    return movedim(windows, axis + 1, -1)


# ------------------------------------------------------------------------------------------------------------ diagonals
def diagonal(input: Any, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Tensor:
    """The diagonals of the matrices in two dimensions, as the last dimension."""
    x = as_tensor(input)
    a, b = axis_of(dim1, x.ndim, "diagonal"), axis_of(dim2, x.ndim, "diagonal")
    if a == b:
        raise ValueError(f"diagonal: dim1 and dim2 must differ, got {dim1} and {dim2}")
    x = permute(x, (*(i for i in range(x.ndim) if i not in (a, b)), a, b))
    rows, columns = x.shape[-2:]
    first = offset if offset >= 0 else -offset * columns
    count = builtins.max(0, builtins.min(rows, columns - offset) if offset >= 0 else builtins.min(rows + offset, columns))
    flat = reshape(x, (*x.shape[:-2], rows * columns))
    return apply(o.Gather(flat.ndim - 1), flat, constant(first + np.arange(count) * (columns + 1)))  # type: ignore[no-any-return]


def diag_embed(input: Any, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Tensor:
    """Matrices whose diagonals are the last dimension, zero elsewhere."""
    x = as_tensor(input)
    n = x.shape[-1] + builtins.abs(offset)
    a, b = axis_of(dim1, x.ndim + 1, "diag_embed"), axis_of(dim2, x.ndim + 1, "diag_embed")
    below, right = builtins.max(-offset, 0), builtins.max(offset, 0)
    none = (0,) * (x.ndim - 1)
    row = apply(o.Pad((*none, right), (*none, below)), x)  # element j stands in column j
    mask = np.eye(n, n, offset, dtype=np.bool_)
    whole = broadcast_to(unsqueeze(row, -2), (*x.shape[:-1], n, n))
    made: Tensor = apply(o.Select(), constant(mask), whole, constant(np.zeros((), numpy_dtype(x))))
    order = [i for i in range(made.ndim) if i not in (a, b)]
    back = [0] * made.ndim
    for i, axis in enumerate(order):
        back[axis] = i
    back[a], back[b] = made.ndim - 2, made.ndim - 1
    return permute(made, back)


_diagonal = diagonal


def diag(input: Any, diagonal: int = 0) -> Tensor:
    """A matrix of that diagonal, or the diagonal of a matrix."""
    x = as_tensor(input)
    if x.ndim == 1:
        return diag_embed(x, diagonal)
    if x.ndim != 2:
        raise ValueError(f"diag: input must be a vector or a matrix, got {x.shape}")
    return _diagonal(x, diagonal)


def diagflat(input: Any, offset: int = 0) -> Tensor:
    """A matrix with all elements on its diagonal."""
    return diag_embed(ravel(input), offset)


def triu(input: Any, diagonal: int = 0) -> Tensor:
    """The matrices with zeros below the diagonal."""
    return _triangle(input, diagonal, upper=True)


def tril(input: Any, diagonal: int = 0) -> Tensor:
    """The matrices with zeros above the diagonal."""
    return _triangle(input, diagonal, upper=False)


def _triangle(input: Any, diagonal: int, *, upper: bool) -> Tensor:
    x = as_tensor(input)
    if x.ndim < 2:
        raise ValueError(f"{'triu' if upper else 'tril'}: input must be matrices, got {x.shape}")
    rows, columns = x.shape[-2:]
    keep = np.tri(rows, columns, diagonal - 1 if upper else diagonal, dtype=np.bool_)
    return apply(o.Select(), constant(~keep if upper else keep), x, constant(np.zeros((), numpy_dtype(x))))  # type: ignore[no-any-return]


concat, moveaxis, swapdims, unstack = cat, movedim, swapaxes, unbind
row_stack = vstack

__all__ = [
    "adjoint", "atleast_1d", "atleast_2d", "atleast_3d", "broadcast_to", "cat", "chunk", "column_stack", "concat", "diag", "diag_embed", "diagflat",
    "diagonal", "dsplit", "dstack", "expand_dims", "flatten", "flip", "fliplr", "flipud", "hsplit", "hstack", "moveaxis", "movedim", "narrow",
    "permute", "ravel", "repeat_elements", "repeat_interleave", "reshape", "reverse", "roll", "rot90", "row_stack", "split", "squeeze", "stack",
    "swapaxes", "swapdims", "t", "tensor_split", "tile", "transpose", "tril", "triu", "unbind", "unsqueeze", "unstack", "vsplit", "vstack",
]  # fmt: skip
