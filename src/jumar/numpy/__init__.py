"""`mindspore.numpy`: NumPy's functions on tensors.

In: tensors, numbers, lists and arrays, with NumPy's names and arguments.  Out: tensors, by the functions of `ops`.
Types follow MindSpore: lists of floats give float32, integers keep their width.
"""

# ruff: noqa: PLE0605  (the names are those of the tables)

from __future__ import annotations

import builtins
import itertools
import math
from typing import Any

import numpy as np

from jumar import operators as o
from jumar.frontend import dtype as types
from jumar.frontend.dtype import as_type, of_numpy
from jumar.ops import arithmetic as a
from jumar.ops import creation as c
from jumar.ops import decompose, image, linalg, movement, ordering, places, random
from jumar.ops import reduction as r
from jumar.ops.operands import I64, Tensor, apply, as_tensor, axis_of, cast, floating, ints, lenient, missing, numpy_dtype, operands

s = movement
pi, e, inf, nan, euler_gamma = math.pi, math.e, math.inf, math.nan, np.euler_gamma
PINF, NINF, NAN, newaxis = math.inf, -math.inf, math.nan, None


# ------------------------------------------------------------------------------------------------------------ elementwise
def _as(result: Any, dtype: Any) -> Any:
    return result if dtype is None else cast(result, as_type(dtype))


def _unary(function: Any) -> Any:
    def call(x: Any, dtype: Any = None) -> Tensor:
        return _as(function(as_tensor(x)), dtype)  # type: ignore[no-any-return]

    call.__doc__ = function.__doc__
    return call


def _binary(function: Any) -> Any:
    def call(x1: Any, x2: Any, dtype: Any = None) -> Tensor:
        return _as(  # type: ignore[no-any-return]
            function(as_tensor(x1) if isinstance(x1, list | tuple) else x1, as_tensor(x2) if isinstance(x2, list | tuple) else x2), dtype
        )

    call.__doc__ = function.__doc__
    return call


_UNARY = (
    "abs absolute arccos arccosh arcsin arcsinh arctan arctanh ceil cos cosh deg2rad exp exp2 expm1 floor isfinite isinf isnan isneginf isposinf log "
    "log10 log1p log2 logical_not negative positive rad2deg reciprocal sign signbit sin sinh sqrt square tan tanh trunc bitwise_not invert"
)
_BINARY = (
    "add arctan2 bitwise_and bitwise_or bitwise_xor copysign divide equal floor_divide fmod greater greater_equal heaviside hypot less less_equal "
    "logaddexp logaddexp2 logical_and logical_or logical_xor maximum minimum mod multiply not_equal remainder subtract true_divide float_power"
)
_TABLE: dict[str, Any] = {name: _unary(getattr(a, name)) for name in _UNARY.split()}
_TABLE |= {name: _binary(getattr(a, name)) for name in _BINARY.split()}
_TABLE |= {
    "power": _binary(a.pow), "fix": _unary(a.trunc), "rint": _unary(a.round), "radians": _unary(a.deg2rad), "degrees": _unary(a.rad2deg),
    "fabs": _unary(a.abs), "matmul": _binary(linalg.matmul), "gcd": _binary(decompose.gcd), "lcm": _binary(decompose.lcm),
    "cbrt": _unary(lambda x: a.mul(a.sign(x), a.pow(a.abs(floating(x)), 1 / 3))), "conj": _unary(decompose.conj), "real": _unary(decompose.real),
    "imag": _unary(decompose.imag),
}  # fmt: skip


def divmod(x1: Any, x2: Any, dtype: Any = None) -> tuple[Tensor, Tensor]:
    """Quotient and remainder."""
    return _as(a.floor_divide(x1, x2), dtype), _as(a.remainder(x1, x2), dtype)


def clip(x: Any, xmin: Any, xmax: Any, dtype: Any = None) -> Tensor:
    """x within xmin .. xmax."""
    return _as(a.clamp(x, xmin, xmax), dtype)  # type: ignore[no-any-return]


def where(condition: Any, x: Any = None, y: Any = None) -> Any:
    """x where the condition holds, else y; the places where it holds, given the condition alone."""
    return places.nonzero(condition, as_tuple=True) if x is None else a.where(as_tensor(condition), x, y)


def isclose(a: Any, b: Any, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False) -> Tensor:
    """True where a and b are close."""
    from jumar.ops.arithmetic import isclose as close  # noqa: PLC0415  (`a` is an argument here)

    return close(a, b, rtol, atol, equal_nan)


def around(a: Any, decimals: int = 0) -> Tensor:
    """The nearest number with so many decimals."""
    from jumar.ops.arithmetic import round as nearest  # noqa: PLC0415

    return nearest(a, decimals=decimals)


# --------------------------------------------------------------------------------------------------------------- creation
def array(obj: Any, dtype: Any = None, copy: bool = True, ndmin: int = 0) -> Tensor:
    """A tensor of numbers, lists or arrays."""
    made = Tensor(_narrow(obj)) if copy or not isinstance(obj, Tensor) else obj
    made = _as(made, dtype)
    return s.reshape(made, (1,) * (ndmin - made.ndim) + made.shape) if made.ndim < ndmin else made


def _narrow(obj: Any) -> Any:
    """Lists and numbers in the types that MindSpore's numpy takes: int32 for ints."""
    if isinstance(obj, bool | int | list | tuple) and not isinstance(obj, Tensor):
        value = as_tensor(obj).array
        return value.astype(np.int32) if value.dtype == np.int64 else value
    return obj


def asarray(a: Any, dtype: Any = None) -> Tensor:
    """A tensor; the tensor itself where it is one."""
    return array(a, dtype, copy=False)


def asfarray(a: Any, dtype: Any = types.float32) -> Tensor:
    """A tensor of floats."""
    return array(a, dtype, copy=False)


def copy(a: Any) -> Tensor:
    """A tensor of its own with the same elements."""
    return s.copy(asarray(a))


def zeros(shape: Any, dtype: Any = types.float32) -> Tensor:
    """Zeros."""
    return c.zeros(shape, dtype=dtype)


def ones(shape: Any, dtype: Any = types.float32) -> Tensor:
    """Ones."""
    return c.ones(shape, dtype=dtype)


def empty(shape: Any, dtype: Any = types.float32) -> Tensor:
    """Room for a tensor, filled with zeros."""
    return c.zeros(shape, dtype=dtype)


def full(shape: Any, fill_value: Any, dtype: Any = None) -> Tensor:
    """One number everywhere."""
    value = fill_value if isinstance(fill_value, Tensor) else array(fill_value)
    return s.copy(s.broadcast_to(_as(value, dtype), ints(shape)))


def _like(value: int) -> Any:
    def call(a: Any, dtype: Any = None, shape: Any = None) -> Tensor:
        x = asarray(a)
        return c.filled(x.shape if shape is None else ints(shape), value, numpy_dtype(x) if dtype is None else as_type(dtype).numpy)

    call.__doc__ = "One number everywhere, in the tensor's shape and type."
    return call


zeros_like, ones_like, empty_like = _like(0), _like(1), _like(0)


def full_like(a: Any, fill_value: Any, dtype: Any = None, shape: Any = None) -> Tensor:
    """One number everywhere, in the tensor's shape and type."""
    x = asarray(a)
    return full(x.shape if shape is None else shape, fill_value, x.dtype if dtype is None else dtype)


def arange(start: Any, stop: Any = None, step: Any = None, dtype: Any = None) -> Tensor:
    """From start to before stop by step."""
    first, last, by = (0, start, 1 if step is None else step) if stop is None else (start, stop, 1 if step is None else step)
    whole = builtins.all(isinstance(v, int | np.integer) for v in (first, last, by))
    return c.arange(first, last, by, dtype=dtype if dtype is not None else types.int32 if whole else None)


def linspace(start: Any, stop: Any, num: int = 50, endpoint: bool = True, retstep: bool = False, dtype: Any = None, axis: int = 0) -> Any:
    """So many numbers from start to stop at equal distances."""
    first, last = floating(start), floating(stop)
    count = builtins.max(num - 1 if endpoint else num, 1)
    at = c.made((np.arange(num) / count).astype(np.float32))
    steps = a.sub(last, first)
    rank = builtins.max(first.ndim, last.ndim)
    line = s.reshape(at, (num, *[1] * rank))
    values = _as(a.add(a.mul(line, steps), first), dtype)
    values = s.movedim(values, 0, axis) if rank else values
    return (values, a.div(steps, float(count))) if retstep else values


def logspace(start: Any, stop: Any, num: int = 50, endpoint: bool = True, base: float = 10.0, dtype: Any = None, axis: int = 0) -> Tensor:
    """base to the power of `linspace`."""
    return _as(a.pow(base, linspace(start, stop, num, endpoint, axis=axis)), dtype)  # type: ignore[no-any-return]


def geomspace(start: Any, stop: Any, num: int = 50, endpoint: bool = True, dtype: Any = None, axis: int = 0) -> Tensor:
    """So many numbers from start to stop at equal ratios."""
    return _as(a.exp(linspace(a.log(start), a.log(stop), num, endpoint, axis=axis)), dtype)  # type: ignore[no-any-return]


def eye(N: int, M: int | None = None, k: int = 0, dtype: Any = types.float32) -> Tensor:
    """Ones on a diagonal."""
    return c.made(np.eye(N, M, k, dtype=as_type(dtype).numpy))


def identity(n: int, dtype: Any = types.float32) -> Tensor:
    """Ones on the diagonal of a square."""
    return eye(n, dtype=dtype)


def tri(N: int, M: int | None = None, k: int = 0, dtype: Any = types.float32) -> Tensor:
    """Ones on and below a diagonal."""
    return c.made(np.tri(N, M, k, dtype=as_type(dtype).numpy))


def indices(dimensions: Any, dtype: Any = types.int32, sparse: bool = False) -> Any:
    """The coordinates of a grid."""
    grid: Any = np.indices(ints(dimensions), sparse=True) if sparse else np.indices(ints(dimensions))
    return [c.made(g.astype(as_type(dtype).numpy)) for g in grid]


def meshgrid(*xi: Any, sparse: bool = False, indexing: str = "xy") -> Any:
    """Coordinates of a grid, one tensor for each dimension."""
    found = c.meshgrid(*map(asarray, xi), indexing=indexing)
    if sparse:
        axes = [1, 0, *range(2, len(found))] if indexing == "xy" and len(found) > 1 else list(range(len(found)))
        return [s.reshape(asarray(x), tuple(-1 if i == axis else 1 for i in range(len(found)))) for x, axis in zip(xi, axes, strict=True)]
    return list(found)


def rand(*shape: Any, dtype: Any = types.float32) -> Tensor:
    """Uniform numbers from 0 to before 1."""
    return random.rand(*shape, dtype=dtype)


def randn(*shape: Any, dtype: Any = types.float32) -> Tensor:
    """Normal numbers of mean 0 and deviation 1."""
    return random.randn(*shape, dtype=dtype)


def randint(minval: int, maxval: int | None = None, shape: Any = None, dtype: Any = types.int32) -> Tensor:
    """Whole numbers from minval to before maxval."""
    low, high = (0, minval) if maxval is None else (minval, maxval)
    return random.randint(low, high, () if shape is None else shape, dtype=dtype)


# --------------------------------------------------------------------------------------------------------------- movement
def transpose(a: Any, axes: Any = None) -> Tensor:
    """Dimensions in another order: reversed where none is given."""
    x = asarray(a)
    return s.permute(x, tuple(reversed(range(x.ndim))) if axes is None else ints(axes))


def concatenate(arrays: Any, axis: int | None = 0) -> Tensor:
    """The tensors one after another along an axis."""
    if isinstance(arrays, Tensor):
        arrays = s.unbind(arrays)
    return s.cat([s.ravel(x) for x in arrays], 0) if axis is None else s.cat([asarray(x) for x in arrays], axis)


def append(arr: Any, values: Any, axis: int | None = None) -> Tensor:
    """Values behind a tensor."""
    return concatenate([arr, values], axis)


def repeat(a: Any, repeats: Any, axis: int | None = None) -> Tensor:
    """Each element so many times."""
    return s.repeat_interleave(asarray(a), repeats, axis)


def split(x: Any, indices_or_sections: Any, axis: int = 0) -> Any:
    """So many equal parts, or parts that end at the places given."""
    if isinstance(indices_or_sections, int):
        return s.split_evenly(asarray(x), axis, indices_or_sections)
    return list(s.tensor_split(asarray(x), indices_or_sections, axis))


def flip(m: Any, axis: Any = None) -> Tensor:
    """The elements backwards along axes, all of them where none is given."""
    x = asarray(m)
    return s.flip(x, tuple(range(x.ndim)) if axis is None else ints(axis))


def rot90(a: Any, k: int = 1, axes: Any = (0, 1)) -> Tensor:
    """Turned by 90 degrees, k times."""
    return s.rot90(asarray(a), k, axes)


def rollaxis(x: Any, axis: int, start: int = 0) -> Tensor:
    """One axis before another."""
    tensor = asarray(x)
    at = axis_of(axis, tensor.ndim)
    start = start + tensor.ndim if start < 0 else start
    return s.movedim(tensor, at, start - 1 if at < start else start)


def pad(arr: Any, pad_width: Any, mode: str = "constant", constant_values: Any = 0, **options: Any) -> Tensor:
    """More elements around.   mode: constant, edge, reflect, symmetric, wrap."""
    x = asarray(arr)
    words = {"edge": "replicate", "wrap": "circular"}
    if mode not in ("constant", "edge", "reflect", "symmetric", "wrap") or options:
        raise NotImplementedError(
            f"pad: modes constant, edge, reflect, symmetric and wrap without options are supported, got {mode!r} {options}"
        )
    widths = np.broadcast_to(np.asarray(pad_width), (x.ndim, 2))
    value = constant_values if isinstance(constant_values, int | float) else np.asarray(constant_values).flat[0].item()
    return image.padded(x, [int(p) for p in widths[:, 0]], [int(p) for p in widths[:, 1]], words.get(mode, mode), value)


def broadcast_arrays(*args: Any) -> list[Tensor]:
    """The tensors repeated up to one shape."""
    parts = [asarray(x) for x in args]
    shape = np.broadcast_shapes(*(p.shape for p in parts))
    return [s.broadcast_to(p, shape) for p in parts]


# ------------------------------------------------------------------------------------------------------------- reductions
def _reduction(function: Any) -> Any:
    def call(a: Any, axis: Any = None, dtype: Any = None, keepdims: bool = False, initial: Any = None) -> Tensor:
        x = asarray(a)
        y = function(x, axis, keepdims)
        y = _as(y, dtype)
        return y if initial is None else _joined(function, y, initial)

    call.__doc__ = function.__doc__
    return call


def _joined(function: Any, y: Tensor, initial: Any) -> Tensor:
    return a.add(y, initial) if function is r.sum else a.mul(y, initial)


sum = _reduction(r.sum)
prod = _reduction(r.prod)


def mean(a: Any, axis: Any = None, keepdims: bool = False, dtype: Any = None) -> Tensor:
    """The mean."""
    x = asarray(a)
    return _as(r.mean(x, axis, keepdims), dtype)  # type: ignore[no-any-return]


def average(x: Any, axis: Any = None, weights: Any = None, returned: bool = False) -> Any:
    """The weighted mean."""
    tensor = floating(x)
    if weights is None:
        y = r.mean(tensor, axis)
        total = c.full_like(y, tensor.size / builtins.max(y.size, 1))
    else:
        w = floating(weights)
        if w.ndim != tensor.ndim and axis is not None:
            w = s.reshape(w, tuple(-1 if i == axis_of(axis, tensor.ndim) else 1 for i in range(tensor.ndim)))
        total = r.sum(s.broadcast_to(w, tensor.shape), axis)
        y = a.div(r.sum(a.mul(tensor, w), axis), total)
    return (y, total) if returned else y


def _nan_aware(function: Any, filler: float | None) -> Any:
    def call(a: Any, axis: Any = None, dtype: Any = None, keepdims: bool = False) -> Tensor:
        x = floating(a)
        from jumar.ops import arithmetic  # noqa: PLC0415  (`a` is an argument here)

        y = function(x if filler is None else arithmetic.where(arithmetic.isnan(x), filler, x), axis, keepdims)
        return _as(y, dtype)  # type: ignore[no-any-return]

    return call


nansum, nanmean = _nan_aware(r.nansum, None), _nan_aware(r.nanmean, None)
nanmax, nanmin = _nan_aware(r.amax, -math.inf), _nan_aware(r.amin, math.inf)


def count_nonzero(x: Any, axis: Any = None, keepdims: bool = False) -> Tensor:
    """How many elements are not zero."""
    return r.count_nonzero(asarray(x), axis, keepdims, types.int32)


def cumsum(a: Any, axis: int | None = None, dtype: Any = None) -> Tensor:
    """The sum of all elements so far."""
    x = asarray(a)
    return r.cumsum(s.ravel(x) if axis is None else x, axis or 0, dtype)


def cumprod(a: Any, axis: int | None = None, dtype: Any = None) -> Tensor:
    """The product of all elements so far."""
    x = asarray(a)
    return r.cumprod(s.ravel(x) if axis is None else x, axis or 0, dtype)


def norm(x: Any, ord: Any = None, axis: Any = None, keepdims: bool = False) -> Tensor:
    """The norm of vectors or matrices."""
    return r.norm(floating(x), ord, axis, keepdims)


def argsort(a: Any, axis: int = -1) -> Tensor:
    """The places of the elements in order."""
    return ordering.argsort(asarray(a), axis)


def unique(x: Any, return_inverse: bool = False) -> Any:
    """The different elements in order of appearance; asked for: which of them each element is."""
    found = places.unique(asarray(x))
    return found if return_inverse else found[0]


def array_equal(a1: Any, a2: Any, equal_nan: bool = False) -> Tensor:
    """Whether shapes and elements are the same."""
    x, y = asarray(a1), asarray(a2)
    if x.shape != y.shape:
        return c.made(np.array(False))
    same = a.equal(x, y)
    return r.all(a.logical_or(same, a.logical_and(a.isnan(x), a.isnan(y))) if equal_nan else same)


# ---------------------------------------------------------------------------------------------------------------- products
def dot(a: Any, b: Any) -> Tensor:
    """Sums of products over the last dimension of a and the last but one of b."""
    x, y = operands(asarray(a), asarray(b))
    if not x.ndim or not y.ndim:
        from jumar.ops.arithmetic import mul  # noqa: PLC0415

        return mul(x, y)
    return linalg.tensor_dot(x, y, ([x.ndim - 1], [builtins.max(y.ndim - 2, 0)]))


def tensordot(a: Any, b: Any, axes: Any = 2) -> Tensor:
    """Sums of products over pairs of axes."""
    return linalg.tensor_dot(asarray(a), asarray(b), axes)


def multi_dot(arrays: Any) -> Tensor:
    """The product of several matrices."""
    first, *rest = map(asarray, arrays)
    for m in rest:
        first = linalg.matmul(first, m)
    return first


# ----------------------------------------------------------------------------------------------------------------- places
def take(a: Any, indices: Any, axis: int | None = None, mode: str = "clip") -> Tensor:
    """The slices at the places; mode clip, wrap or raise says what places out of range are."""
    x, at = asarray(a), cast(asarray(indices), I64)
    x = s.ravel(x) if axis is None else x
    number = axis_of(axis or 0, x.ndim)
    return places.gather(x, _bounded(at, x.shape[number], mode), number)


def _bounded(at: Tensor, size: int, mode: str) -> Tensor:
    if mode == "wrap":
        return a.remainder(at, size)
    return a.clamp(a.where(a.less(at, 0), a.add(at, size), at), 0, size - 1) if mode == "clip" else at


def take_along_axis(arr: Any, indices: Any, axis: int | None) -> Tensor:
    """For each place the element there along an axis."""
    x = asarray(arr)
    return places.gather_elements(s.ravel(x), 0, s.ravel(indices)) if axis is None else places.gather_elements(x, axis, indices)


def flatnonzero(a: Any) -> Tensor:
    """The places of the elements that are not zero, in the tensor laid flat."""
    return places.nonzero(s.ravel(asarray(a)), as_tuple=True)[0]  # type: ignore[no-any-return]


def isin(element: Any, test_elements: Any, invert: bool = False) -> Tensor:
    """True where the element is among the test elements."""
    return places.isin(asarray(element), asarray(test_elements), invert=invert)


def unravel_index(indices: Any, shape: Any, order: str = "C") -> tuple[Tensor, ...]:
    """Coordinates of places in a tensor laid flat."""
    found = []
    rest = asarray(indices)
    for d in reversed(ints(shape)) if order == "C" else ints(shape):
        found.append(a.remainder(rest, d))
        rest = a.floor_divide(rest, d)
    return tuple(reversed(found)) if order == "C" else tuple(found)


def ravel_multi_index(multi_index: Any, dims: Any, mode: str = "clip", order: str = "C") -> Tensor:
    """Places in a tensor laid flat, of coordinates."""
    total: Any = 0
    pairs = list(zip(multi_index, ints(dims), strict=True))
    for index, d in pairs if order == "C" else reversed(pairs):
        total = a.add(a.mul(total, d) if isinstance(total, Tensor) else 0, _bounded(cast(asarray(index), I64), d, mode))
    return total  # type: ignore[no-any-return]


def select(condlist: Any, choicelist: Any, default: Any = 0) -> Tensor:
    """The choice of the first condition that holds."""
    y: Any = default
    for condition, choice in zip(reversed(list(condlist)), reversed(list(choicelist)), strict=True):
        y = a.where(asarray(condition), asarray(choice), y)
    return y  # type: ignore[no-any-return]


def diag_indices(n: int, ndim: int = 2) -> tuple[Tensor, ...]:
    """The places of a diagonal."""
    return tuple(arange(n) for _ in range(ndim))


def ix_(*args: Any) -> tuple[Tensor, ...]:
    """Vectors as an open grid."""
    return tuple(s.reshape(asarray(x), tuple(-1 if i == n else 1 for i in range(len(args)))) for n, x in enumerate(args))


def searchsorted(a: Any, v: Any, side: str = "left", sorter: Any = None) -> Tensor:
    """Where the values would go in the sorted vector."""
    return cast(ordering.searchsorted(asarray(a), asarray(v), side=side, sorter=sorter), types.int32)


def digitize(x: Any, bins: Any, right: bool = False) -> Tensor:
    """Which bin each element falls into."""
    return searchsorted(asarray(bins), x, "left" if right else "right")


def interp(x: Any, xp: Any, fp: Any, left: Any = None, right: Any = None) -> Tensor:
    """Linear between the points (xp, fp)."""
    at, knots, values = floating(x), floating(xp), floating(fp)
    n = knots.shape[0]
    high = a.clamp(ordering.searchsorted(knots, at, right=True), 1, n - 1)
    low = a.sub(high, 1)
    x0, x1, y0, y1 = (places.gather(t, i, 0) for t, i in ((knots, low), (knots, high), (values, low), (values, high)))
    y = a.lerp(y0, y1, a.clamp(a.div(a.sub(at, x0), a.sub(x1, x0)), 0.0, 1.0))
    if left is not None:
        y = a.where(a.less(at, s.select(knots, 0, 0)), left, y)
    return y if right is None else a.where(a.greater(at, s.select(knots, 0, n - 1)), right, y)


def histogram(a: Any, bins: int = 10, range: Any = None, weights: Any = None, density: bool = False) -> tuple[Tensor, Tensor]:
    """How many elements fall into each bin, and the bins' edges."""
    if weights is not None or density or not isinstance(bins, int):
        raise NotImplementedError("histogram: a number of bins without weights and density is supported")
    x = floating(a)
    low, high = (float(r.amin(x).item()), float(r.amax(x).item())) if range is None else range
    return ordering.histc(x, bins, low, high), linspace(low, high, bins + 1)


def polyval(p: Any, x: Any) -> Tensor:
    """The polynomial with those coefficients, the highest power first."""
    y: Any = 0
    for coefficient in s.unbind(asarray(p)):
        y = a.add(a.mul(y, x), coefficient)
    return y  # type: ignore[no-any-return]


def gradient(f: Any, *varargs: Any, axis: int | None = None, edge_order: int = 1) -> Any:
    """Central differences inside, one-sided ones at the ends."""
    x = floating(f)
    step = float(varargs[0]) if varargs else 1.0
    found = []
    for at in range(x.ndim) if axis is None else (axis_of(axis, x.ndim),):
        n = x.shape[at]
        middle = a.div(a.sub(s.part(x, at, 2, n), s.part(x, at, 0, n - 2)), 2 * step)
        first = a.div(a.sub(s.part(x, at, 1, 2), s.part(x, at, 0, 1)), step)
        last = a.div(a.sub(s.part(x, at, n - 1, n), s.part(x, at, n - 2, n - 1)), step)
        found.append(s.cat([first, middle, last], at))
    return found[0] if len(found) == 1 else found


def convolve(a: Any, v: Any, mode: str = "full") -> Tensor:
    """The convolution of two vectors."""
    x, w = operands(floating(a), floating(v))
    if x.shape[0] < w.shape[0]:
        x, w = w, x
    n, k = x.shape[0], w.shape[0]
    pads = {"full": (k - 1, k - 1), "same": ((k - 1) // 2 + (k - 1) % 2, (k - 1) // 2), "valid": (0, 0)}[mode]
    op = o.Conv((1,), (pads[0],), (pads[1],), (1,))
    y = apply(op, s.reshape(x, (1, 1, n)), s.reshape(s.flip(w, 0), (1, 1, k)))
    return s.reshape(y, (-1,))


def correlate(a: Any, v: Any, mode: str = "valid") -> Tensor:
    """The correlation of two vectors."""
    return convolve(a, s.flip(asarray(v), 0), mode)


def cov(m: Any, y: Any = None, rowvar: bool = True, bias: bool = False, ddof: int | None = None, **weights: Any) -> Tensor:
    """The covariances of the rows."""
    x = floating(m)
    x = s.reshape(x, (1, -1)) if x.ndim < 2 else x if rowvar else s.t(x)
    if y is not None:
        other = floating(y)
        x = s.cat([x, s.reshape(other, (1, -1)) if other.ndim < 2 else other if rowvar else s.t(other)], 0)
    found = decompose.cov(x, correction=(0 if bias else 1) if ddof is None else ddof, **weights)
    return s.reshape(found, ()) if found.size == 1 else found


def promote_types(type1: Any, type2: Any) -> Any:
    """The type in which two meet."""
    return operands(c.zeros((), dtype=type1), c.zeros((), dtype=type2))[0].dtype


def result_type(*arrays_and_dtypes: Any) -> Any:
    """The type in which all meet."""
    found = [
        v.dtype if isinstance(v, Tensor) else as_type(v) if not isinstance(v, int | float) else asarray(v).dtype for v in arrays_and_dtypes
    ]
    for first, second in itertools.pairwise(found):
        found[found.index(second)] = promote_types(first, second)
    return found[-1]


def issubdtype(arg1: Any, arg2: Any) -> bool:
    """Whether a type is of a kind."""
    kind = as_type(arg1).numpy if not isinstance(arg1, type) or not issubclass(arg1, np.generic) else np.dtype(arg1)
    return bool(np.issubdtype(kind, arg2 if isinstance(arg2, type) else as_type(arg2).numpy))


def size(a: Any, axis: int | None = None) -> int:
    """How many elements."""
    x = asarray(a)
    return x.size if axis is None else x.shape[axis]


def shape(a: Any) -> tuple[int, ...]:
    """The shape."""
    return asarray(a).shape


def isscalar(element: Any) -> bool:
    """Whether it is a number or a string."""
    return isinstance(element, int | float | complex | str | np.generic)


def _plain(function: Any) -> Any:
    """A function whose first argument may be a list."""

    def call(x: Any, *args: Any, **kwargs: Any) -> Any:
        return lenient(function)(asarray(x), *args, **kwargs)

    call.__doc__ = function.__doc__
    return call


_TABLE |= {
    "amax": _plain(r.amax), "amin": _plain(r.amin), "max": _plain(r.amax), "min": _plain(r.amin), "all": _plain(r.all), "any": _plain(r.any),
    "sometrue": _plain(r.any), "argmax": _plain(r.argmax), "argmin": _plain(r.argmin), "std": _plain(r.std), "var": _plain(r.var),
    "ptp": _plain(r.ptp), "diff": _plain(r.diff), "expand_dims": _plain(s.expand_dims), "reshape": _plain(s.reshape), "squeeze": _plain(s.squeeze),
    "swapaxes": _plain(s.swapaxes), "moveaxis": _plain(s.movedim), "tile": _plain(s.tile), "roll": _plain(s.roll), "ravel": _plain(s.ravel),
    "broadcast_to": _plain(s.broadcast_to), "diag": _plain(s.diag), "diagflat": _plain(s.diagflat), "diagonal": _plain(s.diagonal),
    "tril": _plain(s.tril), "triu": _plain(s.triu), "fliplr": _plain(s.fliplr), "flipud": _plain(s.flipud), "stack": s.stack, "hstack": s.hstack,
    "vstack": s.vstack, "dstack": s.dstack, "column_stack": s.column_stack, "array_split": _plain(s.tensor_split), "hsplit": _plain(s.hsplit),
    "vsplit": _plain(s.vsplit), "dsplit": _plain(s.dsplit), "atleast_1d": s.atleast_1d, "atleast_2d": s.atleast_2d, "atleast_3d": s.atleast_3d,
    "inner": linalg.inner, "outer": linalg.outer, "kron": linalg.kron, "trace": _plain(linalg.trace), "cross": linalg.cross,
    "matrix_power": decompose.matrix_power, "vander": decompose.vander, "trapz": decompose.trapz, "argwhere": _plain(places.argwhere),
    "bincount": _plain(places.bincount), "round": around, "nan_to_num": a.nan_to_num, "nonzero": lambda x: places.nonzero(asarray(x), as_tuple=True),
    "hanning": lambda M: c.hann_window(M, False, dtype=types.float32), "hamming": lambda M: c.hamming_window(M, False),
    "bartlett": lambda M: c.bartlett_window(M, False), "blackman": lambda M: c.blackman_window(M, False),
    "sort": _plain(lambda x, axis=-1: ordering.sorted_pair(x, axis)[0]),
    "in1d": isin, "array_equiv": array_equal, "rand": rand, "randn": randn,
    "tril_indices": lambda n, k=0, m=None: tuple(s.unbind(c.tril_indices(n, n if m is None else m, k))),
    "triu_indices": lambda n, k=0, m=None: tuple(s.unbind(c.triu_indices(n, n if m is None else m, k))),
}  # fmt: skip
globals().update(_TABLE)
for _name in ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16", "float32", "float64", "bool_"):
    globals()[_name] = types.NAMES[_name]
numeric_types = tuple(of_numpy(t) for t in (np.int8, np.int16, np.int32, np.int64, np.uint8, np.float16, np.float32, np.float64))
__all__ = sorted(
    n for n in globals() if not n.startswith("_") and callable(globals()[n]) and n not in ("Any", "as_type", "missing", "lenient")
)


def __getattr__(name: str) -> Any:
    raise missing("numpy", name, __all__)
