"""`mindspore.mint`: the interface that follows PyTorch.

In: tensors, with PyTorch's names and defaults (dim, keepdim, correction=1, int64 places).  Out: tensors, by the functions of `ops`:
a table over the same implementations.
"""

# ruff: noqa: PLE0604  (the names are those of the tables)

from __future__ import annotations

import importlib
from typing import Any

from jumar import operators as o
from jumar.frontend.tensor import Tensor
from jumar.ops import (
    activation,
    arithmetic,
    creation,
    decompose,
    image,
    linalg,
    movement,
    ordering,
    places,
    pooling,
    random,
    reduction,
)
from jumar.ops.operands import as_tensor, lenient, missing

a, s, r, g, n = arithmetic, movement, reduction, places, ordering


def _max_or_min(value: Any, place: Any, pairwise: Any) -> Any:
    def call(input: Any, dim: Any = None, keepdim: bool = False) -> Any:
        if isinstance(dim, Tensor):
            return pairwise(input, dim)
        return value(input) if dim is None else place(input, dim, keepdim)

    call.__doc__ = "The extreme of all elements; with dim the extremes along it and their places (int64); of two tensors elementwise."
    return call


max = _max_or_min(r.amax, lambda x, d, k: r.with_place(o.ArgMax, x, d, k), a.maximum)
min = _max_or_min(r.amin, lambda x, d, k: r.with_place(o.ArgMin, x, d, k), a.minimum)


def cumsum(input: Any, dim: int, dtype: Any = None) -> Tensor:
    """The sum of all elements so far; integers as int64."""
    return r.cumsum(input, dim, _wide(input, dtype))


def cumprod(input: Any, dim: int, dtype: Any = None) -> Tensor:
    """The product of all elements so far; integers as int64."""
    return r.cumprod(input, dim, _wide(input, dtype))


def _wide(input: Any, dtype: Any) -> Any:
    if dtype is None and isinstance(input, Tensor) and input.dtype.kind in ("Int", "UInt"):
        return "int64"
    return dtype


def var(input: Any, dim: Any = None, *, correction: int = 1, keepdim: bool = False) -> Tensor:
    """The variance, divided by the count less `correction`."""
    return r.var(input, dim, correction, keepdim)


def std(input: Any, dim: Any = None, *, correction: int = 1, keepdim: bool = False) -> Tensor:
    """The standard deviation."""
    return r.std(input, dim, correction, keepdim)


def var_mean(input: Any, dim: Any = None, *, correction: int = 1, keepdim: bool = False) -> tuple[Tensor, Tensor]:
    """The variance and the mean."""
    return r.var_mean(input, dim, correction, keepdim)


def std_mean(input: Any, dim: Any = None, *, correction: int = 1, keepdim: bool = False) -> tuple[Tensor, Tensor]:
    """The standard deviation and the mean."""
    return r.std_mean(input, dim, correction, keepdim)


def count_nonzero(input: Any, dim: Any = None) -> Tensor:
    """How many elements are not zero (int64)."""
    return r.count_nonzero(input, dim, dtype="int64")


def transpose(input: Any, dim0: int, dim1: int) -> Tensor:
    """Two dimensions change places."""
    return s.swapaxes(input, dim0, dim1)


def equal(input: Any, other: Any) -> bool:
    """Whether all elements and the shapes are the same."""
    x, y = as_tensor(input), as_tensor(other)
    return x.shape == y.shape and bool(r.all(a.equal(x, y)))


def allclose(input: Any, other: Any, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False) -> bool:
    """Whether all elements are close."""
    return bool(r.all(a.isclose(input, other, rtol, atol, equal_nan)))


def where(condition: Any, input: Any = None, other: Any = None) -> Any:
    """input where the condition holds, else other; with the condition alone, the places where it holds."""
    return g.nonzero(condition, as_tuple=True) if input is None else a.where(condition, input, other)


def meshgrid(*tensors: Any, indexing: str | None = None) -> tuple[Tensor, ...]:
    """Coordinates of a grid, "ij" where nothing is said."""
    return creation.meshgrid(*tensors, indexing=indexing or "ij")


def flatten(input: Any, start_dim: int = 0, end_dim: int = -1) -> Tensor:
    """The dimensions from start_dim to end_dim as one."""
    return s.flatten_from(input, start_dim, end_dim)


def item(input: Tensor) -> Any:
    """The only element as a Python number."""
    return input.item()


def index_add(input: Any, dim: int, index: Any, source: Any, *, alpha: Any = 1) -> Tensor:
    """x with the source's slices added at the places along a dimension."""
    return g.index_add(input, dim, index, source, alpha=alpha)


_SHARED = {  # functions that are the same in ops
    a: "abs absolute acos acosh add addcdiv addcmul arccos arccosh arcsin arcsinh arctan arctan2 arctanh asin asinh atan atan2 atanh bitwise_and "
       "bitwise_not bitwise_or bitwise_xor ceil clamp clip cos cosh div divide eq erf erfc exp exp2 expm1 fix float_power floor floor_divide fmod "
       "frac ge greater greater_equal gt isclose isfinite isinf isnan isneginf le lerp less less_equal log log10 log1p log2 logaddexp logaddexp2 "
       "logical_and logical_not logical_or logical_xor lt maximum minimum mul nan_to_num ne neg negative not_equal pow reciprocal remainder round "
       "rsqrt sigmoid sign sin sinc sinh sqrt square sub tan tanh trunc xlogy masked_fill",
    s: "broadcast_to cat chunk concat diag dstack flip hstack narrow permute ravel repeat_interleave reshape roll select split squeeze stack swapaxes "
       "t tile tril triu unbind unsqueeze movedim",
    r: "all amax amin any argmax diff logsumexp mean nansum prod sum",
    g: "gather_nd index_select masked_select nonzero take isin",
    n: "cummax histc kthvalue searchsorted",
    linalg: "addbmm addmm addmv baddbmm bmm cross dot einsum matmul mm mv outer trace vdot",
    creation: "arange empty empty_like eye full full_like linspace ones ones_like zeros zeros_like",
    random: "rand rand_like randn randn_like",
    decompose: "cdist erfinv gcd imag inverse polar real triangular_solve",
}  # fmt: skip
_OWN = {  # functions of torch's kind under their names here
    "argsort": n.argsort_torch, "argmin": r.argmin_torch, "sort": n.sort_torch, "topk": n.topk_pair, "median": n.median_torch, "norm": r.norm_torch,
    "softmax": activation.softmax_torch, "softmax_ext": activation.softmax_torch, "unique": g.unique_torch,
    "unique_consecutive": g.unique_consecutive, "gather": g.gather_elements, "scatter": g.scatter, "scatter_add": g.scatter_add,
    "clone": s.copy, "bernoulli": random.bernoulli_torch, "multinomial": random.multinomial_torch, "normal": random.normal_torch,
    "randint": random.randint_torch, "randint_like": random.randint_like_torch, "randperm": random.randperm_torch,
    "index_put": g.index_put, "bincount": g.bincount_torch, "batch_matmul": linalg.matmul, "pad": image.pad, "adaptive_avg_pool2d": pooling.adaptive_avg_pool2d,
    "cummin": n.cummin_torch, "max": max, "min": min, "cumsum": cumsum, "cumprod": cumprod, "var": var, "std": std, "var_mean": var_mean,
    "std_mean": std_mean, "count_nonzero": count_nonzero, "transpose": transpose, "equal": equal, "allclose": allclose, "where": where,
    "meshgrid": meshgrid, "flatten": flatten, "item": item, "index_add": index_add,
}  # fmt: skip
_TABLE = {name: getattr(module, name) for module, names in _SHARED.items() for name in names.split()} | _OWN
globals().update({name: lenient(function) for name, function in _TABLE.items()})
_ROOMS = ("nn", "optim", "distributed", "special", "linalg")
__all__ = [*sorted(_TABLE), *_ROOMS]
del linalg


def __getattr__(name: str) -> Any:
    if name == "functional":  # MindSpore shows the functions of ops under this name
        return importlib.import_module("jumar.ops.functional")
    if name in _ROOMS:
        return importlib.import_module(f"jumar.mint.{name}")
    raise missing("mint", name, __all__)
