"""Storage formats of an Ascend NPU: the shape in which a tensor lies in memory, and arrays moved into it and back.

In: a tensor's own shape and element type, and a format by CANN's name.  Out: `stored_shape`, `to_format`, `from_format`.
A cube unit multiplies blocks of 16 rows by C0 numbers, so what it reads is cut into such blocks and padded with zeros:

    NC1HWC0        images      [n, c, h, w]      -> [n, c1, h, w, c0]             channels in blocks
    NDC1HWC0       volumes     [n, c, d, h, w]   -> [n, d, c1, h, w, c0]
    FRACTAL_Z      filters     [k, c, h, w]      -> [c1 h w, k1, 16, c0]
    FRACTAL_Z_3D   filters     [k, c, d, h, w]   -> [d c1 h w, k1, 16, c0]
    C1HWNCoC0      depthwise   [c, 1, h, w]      -> [c1, h, w, 1, c0, c0]         a block holds its diagonal
    FRACTAL_NZ     matrices    [..., m, n]       -> [..., n1, m1, 16, c0]         blocks column by column

A name may carry the C0 it is meant with: `NC1HWC0:8` is what the cube of a 910B reads of fp32, where a vector kernel counts in 16.
Comes before: task.py, whose operands are of stored shapes.  After: compiler/passes/formats.py, which chooses.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from jumar.base import Array, DeviceError, DType, dtype_of, nearest

ND, NCHW, NHWC = PLAIN = ("ND", "NCHW", "NHWC")
NC1HWC0, NDC1HWC0, FRACTAL_Z, FRACTAL_Z_3D, C1HWNCOC0, FRACTAL_NZ = PRIVATE = (
    "NC1HWC0", "NDC1HWC0", "FRACTAL_Z", "FRACTAL_Z_3D", "C1HWNCoC0", "FRACTAL_NZ",
)  # fmt: skip
FORMATS = (*PLAIN, "NCDHW", *PRIVATE)
BLOCK_ROWS = 16  # rows of a block, whatever the element type
RANKS = {NC1HWC0: (2, 3, 4), NDC1HWC0: (5,), FRACTAL_Z: (3, 4), FRACTAL_Z_3D: (5,), C1HWNCOC0: (4,)}
Shape = tuple[int, ...]


def base_format(format: str) -> str:
    """The name as CANN's tools print it, without the C0.

    >>> base_format("NC1HWC0:8")
    'NC1HWC0'
    """
    return format.partition(":")[0]


def is_private(format: str) -> bool:
    """Whether the format is one of the device's own, which only a TransData makes of a plain one."""
    return base_format(format) in PRIVATE


def channel_block(dtype: DType, format: str = NC1HWC0) -> int:
    """C0: how many channels, or columns, a block holds.

    >>> from jumar.base import f16, i8
    >>> channel_block(f16), channel_block(i8), channel_block(f16, "NC1HWC0:8")
    (16, 32, 8)
    """
    said = format.partition(":")[2]
    if said:
        return int(said)
    return {4: 64, 8: 16 if dtype.kind == "b" else 32}.get(dtype.bits, BLOCK_ROWS)


def stored_shape(shape: Sequence[int], format: str, dtype: DType, groups: int = 1) -> Shape:
    """The shape in memory of a tensor of that shape.   groups: of the convolution whose filters they are.

    >>> from jumar.base import f16, f32
    >>> stored_shape((32, 3, 224, 224), "NC1HWC0", f16)
    (32, 1, 224, 224, 16)
    >>> stored_shape((64, 3, 11, 11), "FRACTAL_Z:8", f32)
    (121, 4, 16, 8)
    """
    dims = tuple(shape)
    name = _checked(dims, format)
    c0 = channel_block(dtype, format)
    match name:
        case "NC1HWC0":
            n, c, *spatial = dims
            h, w = {0: (1, 1), 1: (1, *spatial), 2: tuple(spatial)}[len(spatial)]
            return (n, _blocks(c, c0), h, w, c0)
        case "NDC1HWC0":
            n, c, d, h, w = dims
            return (n, d, _blocks(c, c0), h, w, c0)
        case "FRACTAL_Z" | "FRACTAL_Z_3D":
            k, c, *kernel = dims
            together = _groups_together(c, k // groups, c0, groups)
            c1 = -(-groups // together) * _blocks(together * c, c0)
            return (c1 * math.prod(kernel), _blocks(together * (k // groups), BLOCK_ROWS), BLOCK_ROWS, c0)
        case "C1HWNCoC0":
            c, n, h, w = dims
            return (_blocks(c, c0), h, w, n, c0, c0)
        case "FRACTAL_NZ":
            *batch, m, n = dims if len(dims) > 1 else (1, *dims)
            return (*batch, _blocks(n, c0), _blocks(m, BLOCK_ROWS), BLOCK_ROWS, c0)
    return dims


def stored_nbytes(shape: Sequence[int], format: str, dtype: DType, groups: int = 1) -> int:
    """Bytes in memory, the padding among them."""
    return -(-math.prod(stored_shape(shape, format, dtype, groups)) * dtype.bits // 8)


def to_format(array: Array, format: str) -> Array:
    """The array as it lies in memory in a format, padded with zeros: what a TransData computes.

    >>> to_format(np.arange(6.0).reshape(1, 3, 1, 2), "NC1HWC0:4")[0, 0]
    array([[[0., 2., 4., 0.],
            [1., 3., 5., 0.]]])
    """
    name = _checked(array.shape, format)
    c0 = channel_block(dtype_of(array.dtype), format)
    match name:
        case "NC1HWC0":
            image = array.reshape(*array.shape[:2], *((1, 1, *array.shape[2:])[-2:] if array.ndim > 2 else (1, 1)))
            return np.ascontiguousarray(_cut(image, 1, c0).transpose(0, 1, 3, 4, 2))
        case "NDC1HWC0":
            return np.ascontiguousarray(_cut(array, 1, c0).transpose(0, 3, 1, 4, 5, 2))
        case "FRACTAL_Z" | "FRACTAL_Z_3D":
            filters = array.reshape(*array.shape[:2], *(1,) * (5 - array.ndim), *array.shape[2:])  # [k, c, d, h, w]
            cut = _cut(_cut(filters, 1, c0), 0, BLOCK_ROWS)  # [k1, 16, c1, c0, d, h, w]
            blocks = cut.transpose(4, 2, 5, 6, 0, 1, 3)
            return np.ascontiguousarray(blocks.reshape(-1, *blocks.shape[4:]))
        case "C1HWNCoC0":
            blocks = _cut(array, 0, c0).transpose(0, 3, 4, 2, 1)  # [c1, h, w, n, c0]
            return np.ascontiguousarray(blocks[..., None] * np.eye(c0, dtype=array.dtype))
        case "FRACTAL_NZ":
            matrix = array if array.ndim > 1 else array[None]
            rank = matrix.ndim
            cut = _cut(_cut(matrix, rank - 1, c0), rank - 2, BLOCK_ROWS)  # [..., m1, 16, n1, c0]
            return np.ascontiguousarray(cut.transpose(*range(rank - 2), rank, rank - 2, rank - 1, rank + 1))
    return array


def from_format(array: Array, format: str, shape: Sequence[int]) -> Array:
    """The array of a shape that `to_format` had moved.

    >>> x = np.arange(24.0).reshape(2, 3, 4)
    >>> bool((from_format(to_format(x, "FRACTAL_NZ"), "FRACTAL_NZ", x.shape) == x).all())
    True
    """
    dims = tuple(shape)
    name = _checked(dims, format)
    whole: Array = array
    match name:
        case "NC1HWC0":
            n, c1, h, w, c0 = array.shape
            whole = array.transpose(0, 1, 4, 2, 3).reshape(n, c1 * c0, h, w)[:, : dims[1]].reshape(dims)
        case "NDC1HWC0":
            n, d, c1, h, w, c0 = array.shape
            whole = array.transpose(0, 2, 5, 1, 3, 4).reshape(n, c1 * c0, d, h, w)[:, : dims[1]]
        case "FRACTAL_Z" | "FRACTAL_Z_3D":
            k, c, *kernel = dims
            d, h, w = (1,) * (3 - len(kernel)) + tuple(kernel)
            _, k1, rows, c0 = array.shape
            blocks = array.reshape(d, -1, h, w, k1, rows, c0).transpose(4, 5, 1, 6, 0, 2, 3)
            whole = blocks.reshape(k1 * rows, -1, d, h, w)[:k, :c].reshape(dims)
        case "C1HWNCoC0":
            blocks = np.diagonal(array, axis1=4, axis2=5)  # [c1, h, w, n, c0]
            whole = blocks.transpose(0, 4, 3, 1, 2).reshape(-1, *dims[1:])[: dims[0]]
        case "FRACTAL_NZ":
            *batch, n1, m1, rows, c0 = array.shape
            rank = len(batch)
            matrix = array.transpose(*range(rank), rank + 1, rank + 2, rank, rank + 3).reshape(*batch, m1 * rows, n1 * c0)
            m, n = dims[-2:] if len(dims) > 1 else (1, dims[-1])
            whole = matrix[..., :m, :n].reshape(dims)
    return whole


def _checked(dims: Shape, format: str) -> str:
    """The format's name, where the shape fits it."""
    name = base_format(format)
    if name not in FORMATS:
        what = f"format: name must be one of {', '.join(FORMATS)}, got {format!r}"
        raise DeviceError(what, hint=nearest(name, FORMATS), code="npu-format")
    allowed = RANKS.get(name)
    if (allowed and len(dims) not in allowed) or (name == FRACTAL_NZ and not dims):
        ranks = " or ".join(map(str, allowed)) if allowed else "1 or more"
        raise DeviceError(f"format: a tensor in {name} must have {ranks} dimensions, got shape {list(dims)}", code="npu-format")
    return name


def _blocks(size: int, block: int) -> int:
    return -(-size // block)


def _groups_together(c: int, k: int, c0: int, groups: int) -> int:
    """How many groups of a convolution share a block, so that neither their inputs nor their filters leave much of it empty."""
    if groups == 1:
        return 1
    return min(math.lcm(math.lcm(c, c0) // c, math.lcm(k, BLOCK_ROWS) // k), groups)


def _cut(array: Array, axis: int, block: int) -> Array:
    """Axis [size] as two, [blocks, block], padded with zeros."""
    size = array.shape[axis]
    extra = _blocks(size, block) * block - size
    if extra:
        array = np.pad(array, [(0, extra if i == axis else 0) for i in range(array.ndim)])
    return array.reshape(*array.shape[:axis], -1, block, *array.shape[axis + 1 :])
