"""The methods and operators of `Tensor`: a table of names and functions, hung on the class when this module is imported.

In: the functions of this room.  Out: `x + y`, `x[i] = v`, `x.mean(0)`, `x.add_(1)` ...   Methods that end in _ write into the tensor and return it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from jumar import operators as o
from jumar.frontend import dtype as types
from jumar.frontend.dtype import Type, as_type
from jumar.ir import Op
from jumar.ops import (
    activation,
    arithmetic,
    creation,
    decompose,
    image,
    indexing,
    linalg,
    movement,
    normalization,
    ordering,
    places,
    random,
    reduction,
    views,
)
from jumar.ops.operands import F32, Tensor, apply, as_tensor, cast, eager, lenient, numpy_dtype, wrap

a, r, s, g = arithmetic, reduction, movement, places


# ------------------------------------------------------------------------------------------------------------ operators
def _binary(op: Op, function: Any) -> tuple[Any, Any]:
    """The operator of two operands, and the same with operands exchanged; tensors of one float type go straight to `apply`."""

    def forward(self: Tensor, other: Any) -> Any:
        if isinstance(other, Tensor):
            kind = numpy_dtype(self)
            if kind == F32 and numpy_dtype(other) == F32:
                return apply(op, self, other)
        elif not isinstance(other, _OPERANDS):
            return NotImplemented
        return function(self, other)

    def backward(self: Tensor, other: Any) -> Any:
        return function(other, self) if isinstance(other, _OPERANDS) else NotImplemented

    return forward, backward


def _comparison(op: Op, function: Any) -> Any:
    """`==` and `!=`: with what is no number, such as a list or None, Python decides by identity."""
    forward, _ = _binary(op, function)

    def call(self: Tensor, other: Any) -> Any:
        return NotImplemented if isinstance(other, list | tuple) else forward(self, other)

    return call


def _array_ufunc(self: Tensor, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
    """NumPy's functions on tensors: a NumPy scalar times a tensor is a tensor; all else is NumPy's, on arrays."""
    if method == "__call__" and len(inputs) == 2 and not options and any(isinstance(i, np.generic) for i in inputs):
        name = {"true_divide": "truediv", "divide": "truediv", "subtract": "sub", "multiply": "mul", "floor_divide": "floordiv", "remainder": "mod",
                "power": "pow", "equal": "eq", "not_equal": "ne", "less": "lt", "less_equal": "le", "greater": "gt", "greater_equal": "ge",
                }.get(ufunc.__name__, ufunc.__name__)  # fmt: skip
        found = _ARITHMETIC.get(name) or _COMPARISON.get(name)
        if found is not None:
            return found[1](*inputs)
    return getattr(ufunc, method)(*(i.asnumpy() if isinstance(i, Tensor) else i for i in inputs), **options)


_OPERANDS = (Tensor, bool, int, float, complex, list, tuple, np.ndarray, np.generic)
_ARITHMETIC: dict[str, tuple[Op, Any]] = {
    "add": (o.Add(), a.add), "sub": (o.Sub(), a.sub), "mul": (o.Mul(), a.mul), "truediv": (o.Div(), a.div),
    "floordiv": (o.FloorDiv(), a.floor_divide), "mod": (o.Mod(), a.remainder), "pow": (o.Pow(), a.pow), "matmul": (o.MatMul(), linalg.matmul),
    "and": (o.And(), a.bitwise_and), "or": (o.Or(), a.bitwise_or), "xor": (o.Xor(), a.bitwise_xor),
    "lshift": (o.ShiftLeft(), a.bitwise_left_shift), "rshift": (o.ShiftRight(), a.bitwise_right_shift),
}  # fmt: skip
_COMPARISON: dict[str, tuple[Op, Any]] = {
    "eq": (o.Equal(), a.equal), "ne": (o.NotEqual(), a.not_equal), "lt": (o.Less(), a.less), "le": (o.LessEqual(), a.less_equal),
    "gt": (o.Greater(), a.greater), "ge": (o.GreaterEqual(), a.greater_equal),
}  # fmt: skip


def write(self: Tensor, new: Tensor) -> Tensor:
    """Puts the new value into the tensor, in the tensor's element type."""
    if new.shape != self.shape:
        if len(new.shape) > self.ndim or np.broadcast_shapes(new.shape, self.shape) != self.shape:
            raise ValueError(f"in place: the result must have the tensor's shape {self.shape}, got {new.shape}")
        new = s.broadcast_to(new, self.shape)
    self._write(cast(new, numpy_dtype(self)))
    return self


def _in_place(function: Any) -> Any:
    """The method that writes the function's result into the tensor."""

    def call(self: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        return write(self, function(self, *args, **kwargs))

    call.__doc__ = "In place: " + (function.__doc__ or "")
    return call


def _contains(self: Tensor, element: Any) -> bool:
    return bool(r.any(a.equal(self, element)))


def _iter(self: Tensor) -> Any:
    if not self.ndim:
        raise TypeError("iteration over a 0-d tensor")
    return iter([indexing.getitem(self, i) for i in range(self.shape[0])])


def _round(self: Tensor, digits: int | None = None) -> Tensor:
    return a.round(self, decimals=digits or 0)


# -------------------------------------------------------------------------------------------------------------- methods
def to(self: Tensor, *args: Any, dtype: Any = None, device: Any = None, non_blocking: bool = False, copy: bool = False) -> Tensor:
    """The tensor in another element type: a type, a device, both, or another tensor's type."""
    for value in args:
        if isinstance(value, Tensor):
            dtype = value.dtype
        elif isinstance(value, Type) or (isinstance(value, str) and value in types.NAMES) or isinstance(value, type | np.dtype):
            dtype = value
    return (s.copy(self) if copy else self) if dtype is None else cast(self, as_type(dtype))


def astype(self: Tensor, dtype: Any, copy: bool = True) -> Tensor:
    """The tensor in another element type; a copy where it has that already."""
    wanted = as_type(dtype)
    return (s.copy(self) if copy else self) if self.dtype is wanted else cast(self, wanted)


def as_other(self: Tensor, dtype: Any = None) -> Any:
    """The name of the element type; given one, the tensor in it."""
    return str(self.dtype) if dtype is None else cast(self, as_type(dtype))


def type_as(self: Tensor, other: Tensor) -> Tensor:
    """The tensor in another's element type."""
    return cast(self, other.dtype)


def _converter(kind: Type) -> Callable[[Tensor], Tensor]:
    def call(self: Tensor) -> Tensor:
        return cast(self, kind)

    call.__doc__ = f"The tensor as {kind}."
    return call


def expand(self: Tensor, *size: Any) -> Tensor:
    """The tensor repeated up to a shape, in which -1 keeps a dimension."""
    return s.broadcast_to(self, *size)


def copy_(self: Tensor, src: Any, non_blocking: bool = False) -> Tensor:
    """Takes over another tensor's elements."""
    return write(self, as_tensor(src))


def fill_(self: Tensor, value: Any) -> Tensor:
    """One number everywhere, in place."""
    return write(self, creation.full_like(self, value))


def zero_(self: Tensor) -> Tensor:
    """Zeros everywhere, in place."""
    return write(self, creation.zeros_like(self))


def fill(self: Tensor, value: Any) -> Tensor:
    """One number everywhere, in the tensor's shape and type."""
    return creation.full_like(self, value)


def masked_fill_(self: Tensor, mask: Any, value: Any) -> Tensor:
    """One number where the mask holds, in place."""
    return write(self, a.masked_fill(self, mask, value))


def fill_diagonal_(self: Tensor, fill_value: Any, wrap: bool = False) -> Tensor:
    """One number on the diagonal, in place."""
    return write(self, g.fill_diagonal(self, fill_value, wrap))


def repeat(self: Tensor, *repeats: Any) -> Tensor:
    """The whole repeated so many times along each dimension."""
    return s.tile(self, *repeats)


def _size_of(self: Tensor, *shape: Any, dtype: Any, value: Any) -> Tensor:
    from jumar.ops.operands import sizes  # noqa: PLC0415

    return creation.filled(sizes(*shape), value, numpy_dtype(self) if dtype is None else as_type(dtype).numpy)


def new_zeros(self: Tensor, *size: Any, dtype: Any = None) -> Tensor:
    """Zeros of the tensor's type."""
    return _size_of(self, *size, dtype=dtype, value=0)


def new_ones(self: Tensor, *size: Any, dtype: Any = None) -> Tensor:
    """Ones of the tensor's type."""
    return _size_of(self, *size, dtype=dtype, value=1)


def new_empty(self: Tensor, *size: Any, dtype: Any = None, device: Any = None) -> Tensor:
    """Room for a tensor of the tensor's type, filled with zeros."""
    return _size_of(self, *size, dtype=dtype, value=0)


def new_full(self: Tensor, size: Any, fill_value: Any, *, dtype: Any = None) -> Tensor:
    """One number everywhere, in the tensor's type."""
    return creation.full(size, fill_value, dtype=self.dtype if dtype is None else dtype)


def new_tensor(self: Tensor, data: Any, *, dtype: Any = None) -> Tensor:
    """A tensor of that data in the tensor's type."""
    return Tensor(data, self.dtype if dtype is None else dtype)


_NUMPY_NAMES = frozenset(
    {"keepdims", "initial", "where", "return_indices"}
)  # whoever uses one of them means NumPy's form, which gives values only


def _max_or_min(place: Any, value: Any, pairwise: Any) -> Any:
    """`max` and `min`: (dim, keepdim) gives values and places; the keyword axis gives values, with return_indices places, too."""

    def call(self: Tensor, *args: Any, **kwargs: Any) -> Any:
        if args and isinstance(args[0], Tensor):
            return pairwise(self, args[0])
        if "dim" not in kwargs and (not args or not _NUMPY_NAMES.isdisjoint(kwargs)):
            axis, keep = args[0] if args else kwargs.get("axis"), kwargs.get("keepdims", False)
            if kwargs.get("return_indices") and axis is not None:
                return r.with_place(place, self, axis, keep)
            where = kwargs.get("where")
            return value(self, axis, keep, initial=kwargs.get("initial"), where=None if where is True else where)
        dim = args[0] if args else kwargs["dim"]
        keep = args[1] if len(args) > 1 else kwargs.get("keepdim", kwargs.get("keepdims", False))
        return value(self, None, keep) if dim is None else r.with_place(place, self, dim, keep)

    call.__doc__ = "The extreme of all elements; with dim the extremes along it and their places."
    return call


def gather_of(self: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """The elements at places along a dimension (dim, index); or the slices at places (input_indices, axis, batch_dims)."""
    if "dim" in kwargs or "index" in kwargs or (args and not isinstance(args[0], Tensor)):
        return g.gather_elements(self, *args, **kwargs)
    return g.gather(self, *args, **kwargs)


def requires_grad_(self: Tensor, requires_grad: bool = True) -> Tensor:
    """Whether optimisers take the tensor."""
    self.requires_grad = requires_grad  # type: ignore[attr-defined]
    return self


def itself(self: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """The tensor itself."""
    return self


def is_contiguous(self: Tensor) -> bool:
    """Whether the elements lie in row-major order."""
    return views.is_plain(self)


def contiguous(self: Tensor) -> Tensor:
    """The tensor with its elements in row-major order."""
    if views.is_plain(self):
        return self
    return wrap(np.ascontiguousarray(self.array)) if eager() else s.copy(self)


def stride(self: Tensor, dim: int | None = None) -> Any:
    """Elements from one to the next along each dimension."""
    found = [b // self.itemsize for b in self.strides]
    return found if dim is None else found[dim]


def unfold(self: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """All windows along a dimension (dimension, size, step), or the patches of images (kernel_size, dilation, padding, stride)."""
    if "dimension" in kwargs or (len(args) == 3 and all(isinstance(v, int) for v in args) and self.ndim != 4):
        return s.unfold_dim(self, *args, **kwargs)
    from jumar.ops.image import unfold as patches  # noqa: PLC0415

    return patches(self, *args, **kwargs)


def item_set(self: Tensor, *args: Any) -> None:
    """One element written."""
    *where, value = args
    indexing.setitem(self, where[0] if len(where) == 1 else tuple(where) or Ellipsis, value)


def from_numpy(array: Any) -> Tensor:
    """A tensor that shares the array's memory."""
    if not isinstance(array, np.ndarray):
        raise TypeError(f"from_numpy: input must be a NumPy array, got {type(array).__name__}")
    types.of_numpy(array.dtype)
    return wrap(array)


def equal_whole(self: Tensor, other: Any) -> bool:
    """Whether all elements and the shapes are the same."""
    y = as_tensor(other)
    return self.shape == y.shape and bool(r.all(a.equal(self, y)))


def resize(self: Tensor, *new_shape: Any) -> Tensor:
    """The elements in row-major order under another shape: cut off, or filled up with zeros."""
    from jumar.ops.operands import sizes  # noqa: PLC0415

    wanted = sizes(*new_shape)
    count = int(np.prod(wanted))
    flat = s.ravel(self)
    flat = s.part(flat, 0, 0, count) if count <= self.size else apply(o.Pad((0,), (count - self.size,)), flat)
    return s.reshape(flat, wanted)


def sum_to_size(self: Tensor, *size: Any) -> Tensor:
    """The sum over what broadcasting from that shape would repeat."""
    from jumar.ops.operands import sizes  # noqa: PLC0415

    wanted = sizes(*size)
    extra = self.ndim - len(wanted)
    axes = (*range(extra), *(i + extra for i, d in enumerate(wanted) if d == 1 and self.shape[i + extra] != 1))
    return s.reshape(r.sum(self, axes), wanted) if axes else self


def where_of(self: Tensor, condition: Any, y: Any) -> Tensor:
    """The tensor where the condition holds, else y."""
    return a.where(condition, self, y)


def pow_(self: Tensor, exponent: Any) -> Tensor:
    """The tensor to the power of the exponent, in place."""
    return write(self, a.pow(self, exponent))


def squeeze(self: Tensor, *axis: Any) -> Tensor:
    """Without dimensions of size 1: all, or those named."""
    return s.squeeze(self, axis[0] if len(axis) == 1 else axis or None)


def split(self: Tensor, split_size_or_sections: Any, axis: int = 0) -> tuple[Tensor, ...]:
    """Parts of one size (the last may be smaller), or of the sizes given."""
    return s.split(self, split_size_or_sections, axis)


def mean(self: Tensor, axis: Any = None, keep_dims: bool = False, *, dtype: Any = None) -> Tensor:
    """The mean."""
    return r.mean(self, axis, keep_dims, dtype=dtype)


def total(self: Tensor, axis: Any = None, dtype: Any = None, keepdims: bool = False, initial: Any = None) -> Tensor:
    """The sum."""
    if isinstance(dtype, bool):  # torch's order: dim, keepdim
        dtype, keepdims = None, dtype
    y = r.sum(self, axis, keepdims, dtype=dtype)
    return y if initial is None else a.add(y, initial)


def all_any(function: Any) -> Any:
    def call(self: Tensor, axis: Any = None, keep_dims: bool = False) -> Tensor:
        return function(self, axis, keep_dims)  # type: ignore[no-any-return]

    call.__doc__ = function.__doc__
    return call


def hook(self: Tensor, function: Any) -> Any:
    """Calls `function(gradient)` when the tensor's gradient is known; what it returns replaces it."""
    from jumar.frontend.grad import register_hook  # noqa: PLC0415

    return register_hook(self, function)


def set_dtype(self: Tensor, dtype: Any) -> Tensor:
    """The element type changed in place."""
    found = as_type(dtype)
    if found is not self.dtype:
        self._value, self._node, self._recorder = cast(self, found).array, None, None
    return self


def assign_value(self: Tensor, value: Any) -> Tensor:
    """Takes over another tensor's elements."""
    return write(self, as_tensor(value))


def uniform(self: Tensor, from_: float = 0.0, to: float = 1.0, generator: Any = None) -> Tensor:
    """Uniform numbers in the tensor's shape and type."""
    return s.copy(self).uniform_(from_, to, generator=generator)  # type: ignore[no-any-return]


def index(self: Tensor, indices: Any) -> Tensor:
    """The elements at the places that the indices name together."""
    return indexing.getitem(self, tuple(indices))


def allclose(self: Tensor, other: Any, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False) -> bool:
    """Whether all elements are close."""
    return bool(r.all(a.isclose(self, other, rtol, atol, equal_nan)))


def _alpha(function: Any) -> Any:
    def call(self: Tensor, other: Any, *, alpha: Any = 1) -> Tensor:
        return function(self, other, alpha)  # type: ignore[no-any-return]

    call.__doc__ = function.__doc__
    return call


def flatten(self: Tensor, order: Any = "C", end_dim: int = -1, *, start_dim: int = 0) -> Tensor:
    """The dimensions from start_dim to end_dim as one."""
    if isinstance(order, int):
        start_dim, order = order, "C"
    return s.flatten(self, order, start_dim=start_dim, end_dim=end_dim) if order != "C" else s.flatten_from(self, start_dim, end_dim)


METHODS: dict[str, Any] = {
    # types
    "to": to, "astype": astype, "type": as_other, "type_as": type_as, "float": _converter(types.float32), "half": _converter(types.float16),
    "double": _converter(types.float64), "bfloat16": _converter(types.bfloat16), "int": _converter(types.int32), "long": _converter(types.int64),
    "short": _converter(types.int16), "byte": _converter(types.uint8), "char": _converter(types.int8), "bool": _converter(types.bool_),
    # shapes
    "reshape": s.reshape, "view": s.view, "view_as": s.reshape_as, "reshape_as": s.reshape_as, "flatten": flatten, "ravel": s.ravel,
    "squeeze": squeeze, "unsqueeze": s.unsqueeze, "expand_dims": s.expand_dims, "permute": s.permute, "transpose": s.transpose,
    "swapaxes": s.swapaxes, "swapdims": s.swapaxes, "movedim": s.movedim, "moveaxis": s.movedim, "t": s.t, "adjoint": s.adjoint,
    "broadcast_to": s.broadcast_to, "expand": expand, "expand_as": s.expand_as, "tile": s.tile, "repeat": repeat,
    "repeat_interleave": s.repeat_interleave, "chunk": s.chunk, "split": split, "tensor_split": s.tensor_split, "hsplit": s.hsplit,
    "vsplit": s.vsplit, "dsplit": s.dsplit, "unbind": s.unbind, "select": s.select, "narrow": s.narrow, "flip": s.flip, "fliplr": s.fliplr,
    "flipud": s.flipud, "reverse": s.reverse, "rot90": s.rot90, "roll": s.roll, "diagonal": s.diagonal, "diag": s.diag, "diagflat": s.diagflat,
    "triu": s.triu, "tril": s.tril, "unfold": unfold, "unflatten": s.unflatten, "resize": resize, "sum_to_size": sum_to_size,
    "contiguous": contiguous, "is_contiguous": is_contiguous, "clone": s.copy, "copy": s.copy, "stride": stride,
    # places
    "gather": gather_of, "gather_elements": g.gather_elements, "gather_nd": g.gather_nd, "index_select": g.index_select, "take": g.take_along,
    "scatter": g.scatter, "scatter_add": g.scatter_add, "index_add": g.index_add, "index_fill": g.index_fill, "index_put": g.index_put,
    "index_copy": g.index_copy, "masked_select": g.masked_select, "masked_fill": a.masked_fill, "masked_scatter": g.masked_scatter,
    "nonzero": g.nonzero, "argwhere": g.argwhere, "select_scatter": g.select_scatter, "slice_scatter": g.slice_scatter,
    "fill_diagonal": g.fill_diagonal, "where": where_of, "unique": g.unique_torch, "unique_consecutive": g.unique_consecutive,
    "bincount": g.bincount, "isin": g.isin, "unsorted_segment_max": g.unsorted_segment_max, "unsorted_segment_min": g.unsorted_segment_min,
    "unsorted_segment_prod": g.unsorted_segment_prod, "scatter_sub": g.tensor_scatter_sub, "scatter_mul": g.tensor_scatter_mul,
    "scatter_div": g.tensor_scatter_div, "scatter_max": g.tensor_scatter_max, "scatter_min": g.tensor_scatter_min,
    # reductions
    "sum": total, "mean": mean, "prod": r.prod, "all": all_any(r.all), "any": all_any(r.any),
    "max": _max_or_min(o.ArgMax, r.amax, a.maximum), "min": _max_or_min(o.ArgMin, r.amin, a.minimum),
    "amax": r.amax,
    "amin": r.amin, "aminmax": r.aminmax, "argmax": r.argmax, "argmin": r.argmin, "argmax_with_value": r.argmax_with_value,
    "argmin_with_value": r.argmin_with_value, "var": r.var, "std": r.std, "logsumexp": r.logsumexp, "count_nonzero": r.count_nonzero,
    "nansum": r.nansum, "nanmean": r.nanmean, "norm": r.norm, "ptp": r.ptp, "cumsum": r.cumsum, "cumprod": r.cumprod, "diff": r.diff,
    "logcumsumexp": r.logcumsumexp, "sort": ordering.sort, "argsort": ordering.argsort, "topk": ordering.topk, "top_k": ordering.top_k, "msort": ordering.msort,
    "kthvalue": ordering.kthvalue, "median": ordering.median_pair, "nanmedian": ordering.nanmedian, "quantile": ordering.quantile, "cummax": ordering.cummax,
    "cummin": ordering.cummin, "histc": ordering.histc, "softmax": activation.softmax, "log_softmax": activation.log_softmax,
    # products
    "matmul": linalg.matmul, "mm": linalg.matmul, "bmm": linalg.bmm, "mv": linalg.mv, "dot": linalg.dot, "outer": linalg.outer, "ger": linalg.outer,
    "inner": linalg.inner, "addmm": linalg.addmm, "addmv": linalg.addmv, "addr": linalg.addr, "baddbmm": linalg.baddbmm, "addbmm": linalg.addbmm,
    "trace": linalg.trace, "cross": linalg.cross,
    # elementwise
    "add": _alpha(a.add), "sub": _alpha(a.sub), "subtract": _alpha(a.sub), "mul": a.mul, "multiply": a.mul, "div": a.div, "divide": a.div,
    "true_divide": a.div, "floor_divide": a.floor_divide, "remainder": a.remainder, "fmod": a.fmod, "pow": a.pow, "clamp": a.clamp,
    "clip": a.clamp, "round": a.round, "relu": activation.relu, "hardshrink": activation.hardshrink, "soft_shrink": activation.softshrink,
    "equal": a.equal, "fmax": a.fmax, "fmin": a.fmin,
    # new ones
    "new_zeros": new_zeros, "new_ones": new_ones, "new_empty": new_empty, "new_full": new_full, "new_tensor": new_tensor, "fill": fill,
    # in place
    "copy_": copy_, "fill_": fill_, "zero_": zero_, "masked_fill_": masked_fill_, "fill_diagonal_": fill_diagonal_, "pow_": pow_,
    "itemset": item_set,
    # what it is
    "numpy": Tensor.asnumpy, "value": itself, "requires_grad_": requires_grad_, "cpu": itself, "cuda": itself, "detach": a.stop_gradient,
    "register_hook": hook, "set_dtype": set_dtype, "assign_value": assign_value, "init_data": itself, "uniform": uniform, "index": index,
    "offload": itself, "pin_memory": itself, "flush_from_cache": itself, "set_const_arg": itself, "real": decompose.real, "imag": decompose.imag,
    "conj": decompose.conj, "angle": decompose.angle, "erfinv": decompose.erfinv, "erfinv_": _in_place(decompose.erfinv),
    "inverse": decompose.inverse, "det": decompose.det, "slogdet": decompose.slogdet, "logdet": decompose.logdet, "cholesky": decompose.cholesky,
    "qr": decompose.qr, "svd": decompose.svd, "lgamma": decompose.lgamma, "digamma": decompose.digamma, "gcd": decompose.gcd, "lcm": decompose.lcm,
    "matrix_power": decompose.matrix_power, "cov": decompose.cov, "renorm": normalization.renorm, "isreal": decompose.isreal,
    "allclose": allclose, "fold": image.fold, "col2im": image.col2im, "i0": decompose.bessel_i0,
}  # fmt: skip
# functions that are methods under their own names
_SAME = [
    "abs", "absolute", "acos", "acosh", "addcdiv", "addcmul", "arccos", "arccosh", "arcsin", "arcsinh", "arctan", "arctan2", "arctanh",
    "asin", "asinh", "atan", "atan2", "atanh", "bitwise_and", "bitwise_left_shift", "bitwise_not", "bitwise_or", "bitwise_right_shift",
    "bitwise_xor", "ceil", "copysign", "cos", "cosh", "deg2rad", "eq", "erf", "erfc", "exp", "exp2", "expm1", "fix", "float_power",
    "floor", "frac", "ge", "greater", "greater_equal", "gt", "heaviside", "hypot", "invert", "isclose", "isfinite", "isinf", "isnan",
    "isneginf", "isposinf", "ldexp", "le", "lerp", "less", "less_equal", "log", "log10", "log1p", "log2", "logaddexp", "logaddexp2",
    "logical_and", "logical_not", "logical_or", "logical_xor", "logit", "lt", "maximum", "minimum", "nan_to_num", "ne", "neg",
    "negative", "not_equal", "positive", "rad2deg", "reciprocal", "rsqrt", "sigmoid", "sign", "signbit", "sin", "sinc", "sinh", "sqrt",
    "square", "tan", "tanh", "trunc", "xdivy", "xlogy", "inv", "approximate_equal",
]  # fmt: skip
# methods that exist with a _ behind, too
_IN_PLACE = [
    "abs", "add", "addmm", "baddbmm", "bitwise_and", "bitwise_or", "bitwise_xor", "ceil", "clamp", "clip", "cos", "cumsum", "div",
    "divide", "eq", "erf", "exp", "expm1", "floor", "floor_divide", "frac", "index_add", "index_copy", "index_fill", "index_put",
    "lerp", "log", "log1p", "log2", "log10", "logical_and", "logical_not", "logical_or", "masked_scatter", "mul", "multiply",
    "nan_to_num", "neg", "reciprocal", "relu", "remainder", "round", "rsqrt", "scatter", "scatter_add", "sigmoid", "sign", "sin",
    "sqrt", "square", "sub", "subtract", "tan", "tanh", "tril", "triu", "trunc", "addcdiv", "addcmul", "fmod", "hardshrink", "maximum",
    "minimum", "true_divide",
]  # fmt: skip


def install() -> None:
    """Hangs everything on Tensor."""
    METHODS.update(random.METHODS)
    for name in _SAME:
        METHODS.setdefault(name, getattr(arithmetic, name))
    for name in _IN_PLACE:
        METHODS.setdefault(name + "_", _in_place(METHODS[name]))
    for name, function in METHODS.items():
        setattr(Tensor, name, lenient(function))
    for name, (op, function) in _ARITHMETIC.items():
        forward, backward = _binary(op, function)
        setattr(Tensor, f"__{name}__", forward)
        setattr(Tensor, f"__r{name}__", backward)
    for name, (op, function) in _COMPARISON.items():
        setattr(Tensor, f"__{name}__", _comparison(op, function) if name in ("eq", "ne") else _binary(op, function)[0])
    plain: dict[str, Any] = {
        "__neg__": a.neg, "__pos__": a.positive, "__abs__": a.abs, "__invert__": a.bitwise_not, "__getitem__": indexing.getitem,
        "__setitem__": indexing.setitem, "__contains__": _contains, "__iter__": _iter, "__round__": _round,
        "__array_priority__": 1000, "__array_ufunc__": _array_ufunc,
        "from_numpy": staticmethod(from_numpy),
        "T": property(s.transpose), "mT": property(s.adjoint), "H": property(s.adjoint), "mH": property(s.adjoint), "data": property(itself),
        "dim": lambda self: self.ndim, "ndimension": lambda self: self.ndim, "numel": lambda self: self.size, "nelement": lambda self: self.size,
        "element_size": lambda self: self.itemsize, "is_floating_point": lambda self: self.dtype.is_floating_point,
        "is_complex": lambda self: self.dtype.kind == "Complex", "is_signed": lambda self: self.dtype.kind not in ("UInt", "Bool"),
        "data_ptr": lambda self: self.array.ctypes.data, "storage_offset": lambda self: 0, "get_bytes": lambda self: self.array.tobytes(),
        "device": property(lambda self: "CPU"), "has_init": False, "init": None, "init_finished": True, "const_arg": False,
        "is_leaf": True, "is_shared": lambda self: False, "is_pinned": lambda self: False,
    }  # fmt: skip
    for name, value in plain.items():
        setattr(Tensor, name, value)


install()
__all__ = ["METHODS", "install", "write"]
