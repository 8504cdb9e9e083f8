"""The table of primitives: MindSpore's classes `ops.Add`, `ops.ReduceSum(keep_dims)`, `ops.Conv2D(...)` over the functions of this room.

In: attributes.  Out: classes with MindSpore's names and defaults, whose instances are called with tensors.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from jumar import operators as o
from jumar.base import nearest
from jumar.frontend import dtype as types
from jumar.frontend.dtype import as_type
from jumar.ops import activation as act
from jumar.ops import arithmetic as a
from jumar.ops import (
    attention,
    convolution,
    decompose,
    experts,
    image,
    linalg,
    loss,
    movement,
    ordering,
    places,
    pooling,
    random,
    structure,
)
from jumar.ops import creation as c
from jumar.ops import normalization as norm
from jumar.ops import reduction as r
from jumar.ops.operands import I64, Tensor, apply, as_tensor, cast, floating, ints, numpy_dtype
from jumar.ops.primitive import REQUIRED, Primitive, make, simple

s = movement
TABLE: dict[str, type[Primitive]] = {}


def _enter(name: str, compute: Any, **parameters: Any) -> None:
    TABLE[name] = make(name, compute, **parameters)


def _enter_simple(function: Any, *names: str) -> None:
    for name in names:
        TABLE[name] = simple(name, function)


# ------------------------------------------------------------------------------------------------- no attributes at all
_SIMPLE: dict[str, Any] = {
    "Abs": a.abs, "ACos": a.acos, "Acosh": a.acosh, "Add": a.add, "TensorAdd": a.add, "Addcdiv": a.addcdiv, "Addcmul": a.addcmul,
    "AddN": structure.addn, "AccumulateNV2": structure.addn, "Angle": decompose.angle, "Asin": a.asin, "Asinh": a.asinh, "Assign": structure.assign,
    "AssignAdd": structure.assign_add, "AssignSub": structure.assign_sub, "Atan": a.atan, "Atan2": a.atan2, "Atanh": a.atanh,
    "BesselI0": decompose.bessel_i0, "BesselI0e": decompose.bessel_i0e, "BesselI1": decompose.bessel_i1, "BesselI1e": decompose.bessel_i1e,
    "BitwiseAnd": a.bitwise_and, "BitwiseOr": a.bitwise_or, "BitwiseXor": a.bitwise_xor, "Cast": a.to_type, "Ceil": a.ceil,
    "Complex": decompose.complex_of, "Conj": decompose.conj, "Cos": a.cos, "Cosh": a.cosh, "DType": structure.dtype, "Dense": linalg.dense,
    "Depend": structure.depend, "Diag": s.diag_embed, "DiagPart": s.diagonal, "Digamma": decompose.digamma, "Div": a.div, "RealDiv": a.div,
    "DivNoNan": None, "Equal": a.equal, "Erf": a.erf, "Erfc": a.erfc, "Erfinv": decompose.erfinv, "Exp": a.exp, "ExpandDims": s.expand_dims,
    "Expand": s.broadcast_to, "Expm1": a.expm1, "Eye": c.eye, "FastGeLU": act.fast_gelu, "FastGelu": act.fast_gelu, "Fill": c.fill, "FillV2": c.full,
    "Fills": c.full_like, "Flatten": s.flatten, "FloatStatus": structure.float_status, "Floor": a.floor, "FloorDiv": a.floor_divide,
    "FloorMod": a.remainder, "Mod": a.remainder, "Fmax": a.fmax, "Fmin": a.fmin, "GatherD": places.gather_elements, "GatherNd": places.gather_nd,
    "GatherV2": places.gather, "Gcd": decompose.gcd, "Ger": linalg.outer, "Greater": a.greater, "GreaterEqual": a.greater_equal,
    "HSigmoid": act.hardsigmoid, "HSwish": act.hardswish, "Heaviside": a.heaviside, "Hypot": a.hypot, "Identity": a.identity, "Imag": decompose.imag,
    "IndexFill": places.index_fill, "Inv": a.reciprocal, "Invert": a.bitwise_not, "IsFinite": a.isfinite, "IsInf": a.isinf, "IsNan": a.isnan,
    "Lcm": decompose.lcm, "LeftShift": a.bitwise_left_shift, "Lerp": a.lerp, "LerpScalar": a.lerp, "Less": a.less, "LessEqual": a.less_equal,
    "Lgamma": decompose.lgamma, "LinSpace": c.linspace, "Log": a.log, "Log1p": a.log1p, "LogicalAnd": a.logical_and, "LogicalNot": a.logical_not,
    "LogicalOr": a.logical_or, "LogicalXor": a.logical_xor, "MaskedFill": a.masked_fill, "MaskedSelect": places.masked_select,
    "MaskedScatter": places.masked_scatter, "MatrixBandPart": structure.matrix_band_part, "MatrixDeterminant": decompose.det,
    "LogMatrixDeterminant": decompose.slogdet, "MatrixExp": decompose.matrix_exp, "Maximum": a.maximum, "Minimum": a.minimum, "Mish": act.mish,
    "MoveTo": structure.move_to, "Mul": a.mul, "MulNoNan": None, "Neg": a.neg, "NonZero": places.nonzero, "NotEqual": a.not_equal,
    "Polar": decompose.polar, "PopulationCount": decompose.population_count, "Pow": a.pow, "PReLU": act.prelu, "Print": structure.print_,
    "Range": c.arange, "Rank": structure.rank, "ReLU": act.relu, "ReLU6": act.relu6, "Real": decompose.real, "Reciprocal": a.reciprocal,
    "Reshape": s.reshape, "RightShift": a.bitwise_right_shift, "Rint": a.round, "Round": a.round, "Rsqrt": a.rsqrt,
    "ScalarCast": structure.scalar_cast, "ScalarToArray": c.scalar_to_tensor, "ScalarToTensor": c.scalar_to_tensor, "ScatterNd": places.scatter_nd,
    "Select": a.where, "SeLU": act.selu, "Shape": structure.shape, "Sigmoid": a.sigmoid, "Sign": a.sign, "SiLU": act.silu, "Sin": a.sin,
    "Sinc": a.sinc, "Sinh": a.sinh, "Size": structure.size, "Slice": structure.slice_, "Softsign": act.softsign, "Sqrt": a.sqrt, "Square": a.square,
    "SquaredDifference": a.squared_difference, "StopGradient": a.stop_gradient, "Sub": a.sub, "Tan": a.tan, "Tanh": a.tanh,
    "TensorScatterAdd": places.tensor_scatter_add, "TensorScatterDiv": places.tensor_scatter_div, "TensorScatterMax": places.tensor_scatter_max,
    "TensorScatterMin": places.tensor_scatter_min, "TensorScatterMul": places.tensor_scatter_mul, "TensorScatterSub": places.tensor_scatter_sub,
    "TensorScatterUpdate": places.tensor_scatter_update, "TensorShape": structure.dyn_shape, "DynamicShape": structure.dyn_shape, "Tile": s.tile,
    "Trace": linalg.trace, "Transpose": s.permute, "Trunc": a.trunc, "TruncateDiv": a.truncate_div, "TruncateMod": a.fmod,
    "TupleToArray": c.tuple_to_array, "Unique": places.unique, "UnsortedSegmentMax": places.unsorted_segment_max,
    "UnsortedSegmentMin": places.unsorted_segment_min, "UnsortedSegmentProd": places.unsorted_segment_prod,
    "UnsortedSegmentSum": places.unsorted_segment_sum, "Xdivy": a.xdivy, "Xlogy": a.xlogy, "Zeros": c.zeros, "ZerosLike": c.zeros_like,
    "Ones": c.ones, "OnesLike": c.ones_like, "ComplexAbs": None, "Cdist": None, "IdentityN": tuple, "Softplus": act.softplus,
    "LogSoftmaxExt": act.log_softmax_torch, "SelectView": s.select, "TransposeView": s.permute, "EmbeddingLookup": None, "L2Loss": None,
    "IsSubClass": issubclass, "IsInstance": isinstance, "TensorToTuple": None, "TensorToList": None, "GeLU": None, "Gelu": None,
}  # fmt: skip
for _name, _function in _SIMPLE.items():
    if _function is not None:
        _enter_simple(_function, _name)


def _div_no_nan(x: Any, y: Any) -> Tensor:
    zero = a.equal(y, 0)
    return a.where(zero, 0, a.div(x, a.where(zero, 1, y)))


def _embedding_lookup(params: Any, indices: Any, offset: int = 0) -> Tensor:
    """Rows at indices - offset; those out of range are zeros."""
    table = as_tensor(params)
    at = a.sub(places.places(indices), offset)
    good = a.logical_and(a.greater_equal(at, 0), a.less(at, table.shape[0]))
    rows = places.gather(table, a.where(good, at, 0), 0)
    return a.where(s.reshape(good, (*good.shape, *[1] * (table.ndim - 1))), rows, 0)


_enter_simple(_div_no_nan, "DivNoNan")
_enter_simple(lambda x, y: a.where(a.equal(y, 0), 0, a.mul(x, y)), "MulNoNan")
_enter_simple(_embedding_lookup, "EmbeddingLookup")
_enter_simple(lambda x: a.div(r.sum(a.square(x)), 2), "L2Loss")
_enter_simple(lambda x: tuple(x.tolist()), "TensorToTuple")
_enter_simple(lambda x: act.gelu(x, "tanh"), "GeLU", "Gelu")
_enter_simple(lambda x: decompose._host(np.abs, x), "ComplexAbs")
_enter_simple(lambda x: tuple(r.sum(a.square(t)) for t in x), "SquareSumAll")


# ----------------------------------------------------------------------------------------------------------- reductions
def _reduction(function: Any) -> Any:
    def compute(self: Any, x: Any, axis: Any = ()) -> Any:
        return function(x, axis, self.keep_dims)

    compute.__doc__ = function.__doc__
    return compute


_REDUCTIONS: dict[str, Any] = {
    "ReduceMean": r.mean, "ReduceMax": r.amax, "ReduceMin": r.amin, "ReduceProd": r.plain_prod, "ReduceAll": r.all, "ReduceAny": r.any,
}  # fmt: skip
for _name, _function in _REDUCTIONS.items():
    _enter(_name, _reduction(_function), keep_dims=False)


def _reduce_sum(self: Any, x: Any, axis: Any = ()) -> Tensor:
    """The sum."""
    if self.skip_mode and axis is not None and not isinstance(axis, int) and not len(ints(axis)):
        return as_tensor(x)
    return r.plain_sum(x, axis, self.keep_dims)


def _reduce_std(self: Any, x: Any) -> tuple[Tensor, Tensor]:
    return r.std_mean(x, self.axis, 1 if self.unbiased else 0, self.keep_dims)


_enter("ReduceSum", _reduce_sum, keep_dims=False, skip_mode=False)
_enter("ReduceStd", _reduce_std, axis=(), unbiased=True, keep_dims=False)
_enter("Argmax", lambda self, x: cast(r.argmax(x, self.axis), self.output_type), axis=-1, output_type=types.int32)
_enter("Argmin", lambda self, x: cast(r.argmin(x, self.axis), self.output_type), axis=-1, output_type=types.int32)
_enter("ArgMaxWithValue", lambda self, x: r.argmax_with_value(x, self.axis, self.keep_dims), axis=0, keep_dims=False)
_enter("ArgMinWithValue", lambda self, x: r.argmin_with_value(x, self.axis, self.keep_dims), axis=0, keep_dims=False)
_enter("CountNonZero", lambda self, x: r.count_nonzero(x, self.dims), dims=None)
_enter("LpNorm", lambda self, x: r.vector_norm(x, self.p, self.axis, self.keep_dims), axis=REQUIRED, p=2, keep_dims=False, epsilon=1e-12)


def _median(self: Any, x: Any) -> tuple[Tensor, Tensor]:
    """The lower median and its place."""
    if self.global_median:
        return ordering.median_torch(x), c.zeros((), dtype="int64")
    return ordering.median_pair(x, self.axis, self.keep_dims)


_enter("Median", _median, global_median=False, axis=0, keep_dims=False, ignore_nan=False)


def _running(op: Any) -> Any:
    def compute(self: Any, x: Any, axis: Any) -> Tensor:
        tensor = as_tensor(x)
        return apply(op(int(axis) % max(tensor.ndim, 1), self.exclusive, self.reverse), tensor)  # type: ignore[no-any-return]

    return compute


_enter("CumSum", _running(o.CumSum), exclusive=False, reverse=False)
_enter("CumProd", _running(o.CumProd), exclusive=False, reverse=False)
_enter("Cummax", lambda self, x: ordering.cummax(x, self.axis), axis=REQUIRED)
_enter("Cummin", lambda self, x: ordering.cummin(x, self.axis), axis=REQUIRED)

# ------------------------------------------------------------------------------------------------------------- products
_enter(
    "MatMul",
    lambda self, x, w: linalg.mm(s.t(x) if self.transpose_a else x, s.t(w) if self.transpose_b else w),
    transpose_a=False,
    transpose_b=False,
)
_enter("BatchMatMul", lambda self, x, w: linalg.matmul(s.adjoint(x) if self.transpose_a else x, s.adjoint(w) if self.transpose_b else w),
       transpose_a=False, transpose_b=False)  # fmt: skip
_enter("BiasAdd", lambda self, x, b: linalg.bias_add(x, b, self.data_format), data_format="NCHW")
_enter("Einsum", lambda self, x: linalg.einsum(self.equation, *x), equation=REQUIRED)
_enter("Cross", lambda self, x, y: linalg.cross(x, y, None if self.dim == -65530 else self.dim), dim=-65530)
_enter("Cdist", lambda self, x, y: decompose.cdist(x, y, self.p), p=2.0)
_enter("Pdist", lambda self, x: decompose.pdist(x, self.p), p=2.0)
_enter("Cholesky", lambda self, x: decompose.cholesky(x, self.upper), upper=False)
_enter("CholeskyInverse", lambda self, x: decompose.cholesky_inverse(x, self.upper), upper=False)
_enter("CholeskySolve", lambda self, x, y: decompose.cholesky_solve(x, y, self.upper), upper=False)
_enter("MatrixInverse", lambda self, x: decompose.inverse(s.adjoint(x) if self.adjoint else x), adjoint=False)
_enter("MatrixPower", lambda self, x: decompose.matrix_power(x, self.n), n=REQUIRED)
_enter("MatrixSolve", lambda self, x, y: decompose.matrix_solve(x, y, self.adjoint), adjoint=False)
_enter(
    "MatrixTriangularSolve", lambda self, x, y: decompose.triangular_solve(y, x, not self.lower, self.adjoint)[0], lower=True, adjoint=False
)
_enter("Qr", lambda self, x: decompose.qr(x, "complete" if self.full_matrices else "reduced"), full_matrices=False)
_enter("Svd", lambda self, x: decompose.svd(x, self.full_matrices, self.compute_uv), full_matrices=False, compute_uv=True)
_enter("Mvlgamma", lambda self, x: decompose.mvlgamma(x, self.p), p=REQUIRED)

# ------------------------------------------------------------------------------------------------------------- movement
_enter("Concat", lambda self, x: s.cat(x, self.axis), axis=0)
_enter("Stack", lambda self, x: s.stack(x, self.axis), axis=0)
_enter("Pack", lambda self, x: s.stack(x, self.axis), axis=0)
_enter("Unstack", lambda self, x: s.unbind(x, self.axis), axis=0, num=None)
_enter("Unpack", lambda self, x: s.unbind(x, self.axis), axis=0)
_enter("Split", lambda self, x: s.split_evenly(as_tensor(x), self.axis, self.output_num), axis=0, output_num=1)
_enter("SplitV", lambda self, x: s.split(x, self.size_splits, self.split_dim), size_splits=REQUIRED, split_dim=REQUIRED, num_split=REQUIRED)
_enter("Squeeze", lambda self, x: s.squeeze(x, self.axis), axis=())
_enter("BroadcastTo", lambda self, x: s.broadcast_to(x, self.shape), shape=REQUIRED)
_enter("StridedSlice", lambda self, x, begin, end, strides: structure.strided_slice(
    x, begin, end, strides, self.begin_mask, self.end_mask, self.ellipsis_mask, self.new_axis_mask, self.shrink_axis_mask),
    begin_mask=0, end_mask=0, ellipsis_mask=0, new_axis_mask=0, shrink_axis_mask=0)  # fmt: skip
_enter("Roll", lambda self, x: s.roll(x, self.shifts, self.dims), shifts=REQUIRED, dims=None)
_enter("ReverseV2", lambda self, x: s.flip(x, ints(self.axis)), axis=REQUIRED)
_enter("ReverseSequence", lambda self, x, n: structure.reverse_sequence(x, n, self.seq_dim, self.batch_dim), seq_dim=REQUIRED, batch_dim=0)
_enter("Tril", lambda self, x: s.tril(x, self.diagonal), diagonal=0)
_enter("Triu", lambda self, x: s.triu(x, self.diagonal), diagonal=0)
_enter(
    "TrilIndices",
    lambda self: c.tril_indices(self.row, self.col, self.offset, dtype=self.dtype),
    row=REQUIRED,
    col=REQUIRED,
    offset=0,
    dtype=types.int32,
)
_enter(
    "TriuIndices",
    lambda self: c.triu_indices(self.row, self.col, self.offset, dtype=self.dtype),
    row=REQUIRED,
    col=REQUIRED,
    offset=0,
    dtype=types.int32,
)
_enter("Meshgrid", lambda self, x: c.meshgrid(*x, indexing=self.indexing), indexing="xy")
_enter("Gather", lambda self, x, index, axis: places.gather(x, index, axis, self.batch_dims), batch_dims=0)
_enter("OneHot", lambda self, index, depth, on, off: places.one_hot(index, depth, on, off, self.axis), axis=-1)
_enter(
    "TensorScatterElements", lambda self, x, index, new: places.scatter(x, self.axis, index, new, self.reduction), axis=0, reduction="none"
)
_enter("IndexAdd", lambda self, x, index, y: structure._assigned(as_tensor(x), places.index_add(x, self.axis, index, y)), axis=REQUIRED, use_lock=True,
       check_index_bound=True)  # fmt: skip
_enter("FillDiagonal", lambda self, x: places.fill_diagonal(x, self.fill_value, self.wrap), fill_value=REQUIRED, wrap=False)


def _forwarded(function: Any) -> Any:
    """A primitive whose attributes change nothing."""

    def compute(self: Any, *args: Any) -> Any:
        return function(*args)

    compute.__doc__ = function.__doc__
    return compute


def _in_rows(function: Any) -> Any:
    def compute(self: Any, x: Any, v: Any) -> Any:
        return function(x, v, self.indices)

    compute.__doc__ = function.__doc__
    return compute


for _name in ("Add", "Sub", "Mul", "Div", "Max", "Min", "Update"):
    _rows = {"Add": places.scatter_rows_add, "Update": places.scatter_update}.get(_name) or getattr(places, f"scatter_{_name.lower()}")
    _deep = getattr(places, f"scatter_nd_{_name.lower()}")
    for _prefix, _function in (("Scatter", _rows), ("ScatterNd", _deep)):
        _enter(_prefix + _name, _forwarded(_function), use_locking=_name == "Update")
for _name, _kind in (
    ("InplaceAdd", structure.inplace_add),
    ("InplaceSub", structure.inplace_sub),
    ("InplaceUpdate", structure.inplace_update),
):
    _enter(_name, _in_rows(_kind), indices=REQUIRED)
_enter_simple(lambda x, indices, v: structure.inplace_update(x, v, indices), "InplaceUpdateV2")
_enter("UniqueConsecutive", lambda self, x: places.unique_consecutive(x, self.return_inverse, self.return_counts, self.dim),
       return_inverse=False, return_counts=False, dim=None)  # fmt: skip

# ------------------------------------------------------------------------------------------------------------- sorting
_enter("Sort", lambda self, x: ordering.sort(x, self.axis, self.descending), axis=-1, descending=False)
_enter("TopK", lambda self, x, k: ordering.topk(x, k, None, True, self.sorted), sorted=True)
_enter(
    "SearchSorted", lambda self, rows, x: cast(ordering.searchsorted(rows, x, right=self.right), self.dtype), dtype=types.int64, right=False
)
_enter("Bucketize", lambda self, x: ordering.bucketize(x, list(self.boundaries)), boundaries=REQUIRED)
_enter("Histogram", lambda self, x: ordering.histc(x, self.bins, self.min, self.max), bins=100, min=0.0, max=0.0)
_enter("InTopK", lambda self, x, t: _in_top(as_tensor(x), as_tensor(t), self.k), k=REQUIRED)


def _in_top(x: Tensor, t: Tensor, k: int) -> Tensor:
    picked = places.gather_elements(x, 1, s.unsqueeze(places.places(t), 1))
    return a.logical_and(a.less(r.sum(cast(a.greater(x, picked), I64), 1), k), a.isfinite(s.squeeze(picked, 1)))


# ---------------------------------------------------------------------------------------------------------- activations
_enter("Softmax", lambda self, x: act.softmax(x, self.axis if isinstance(self.axis, int) else self.axis[0]), axis=-1)
_enter("LogSoftmax", lambda self, x: act.log_softmax(x, self.axis), axis=-1)
_enter("Elu", lambda self, x: act.elu(x, self.alpha), alpha=1.0)
_enter("CeLU", lambda self, x: act.celu(x, self.alpha), alpha=1.0)
_enter("GLU", lambda self, x: act.glu(x, self.axis), axis=-1)
_enter("HShrink", lambda self, x: act.hardshrink(x, self.lambd), lambd=0.5)
_enter("SoftShrink", lambda self, x: act.softshrink(x, self.lambd), lambd=0.5)
_enter("Logit", lambda self, x: a.logit(x, self.eps), eps=-1.0)
_enter("NanToNum", lambda self, x: a.nan_to_num(x, self.nan, self.posinf, self.neginf), nan=None, posinf=None, neginf=None)
_enter("IsClose", lambda self, x, y: a.isclose(x, y, self.rtol, self.atol, self.equal_nan), rtol=1e-05, atol=1e-08, equal_nan=False)
_enter("ApproximateEqual", lambda self, x, y: a.approximate_equal(x, y, self.tolerance), tolerance=1e-05)


# ----------------------------------------------------------------------------------------------------- images and pools
def _conv(rank: int) -> Any:
    def compute(self: Any, x: Any, w: Any) -> Tensor:
        last = self.data_format == "NHWC"
        weight = s.permute(w, (0, 3, 1, 2)) if last else w
        return convolution.conv(
            rank, x, weight, None, self.stride, self.pad_mode.lower(), _pairs(self.pad, rank), self.dilation, self.group, last
        )

    return compute


def _pairs(pad: Any, rank: int) -> Any:
    return pad if isinstance(pad, int) else tuple(pad)


_enter(
    "Conv2D",
    _conv(2),
    out_channel=REQUIRED,
    kernel_size=REQUIRED,
    mode=1,
    pad_mode="valid",
    pad=0,
    stride=1,
    dilation=1,
    group=1,
    data_format="NCHW",
)
_enter(
    "Conv3D",
    _conv(3),
    out_channel=REQUIRED,
    kernel_size=REQUIRED,
    mode=1,
    pad_mode="valid",
    pad=0,
    stride=1,
    dilation=1,
    group=1,
    data_format="NCDHW",
)


def _conv_back(self: Any, dy: Any, w: Any, shape: Any) -> Tensor:
    """The gradient of Conv2D by its input."""
    weight, grad = as_tensor(w), as_tensor(dy)
    stride, dilation = (convolution.spread(v, 2, "Conv2DBackpropInput") for v in (self.stride, self.dilation))
    size = ints(shape)
    if self.pad_mode == "same":
        low, high = convolution.same_pads(size[2:], weight.shape[2:], stride, dilation)
    else:
        low, high = convolution.pads(self.pad if self.pad_mode == "pad" else 0, 2, "Conv2DBackpropInput: pad")
    return apply(o.ConvGradInput(size, stride, low, high, dilation, self.group), grad, weight)  # type: ignore[no-any-return]


for _name in ("Conv2DTranspose", "Conv2DBackpropInput"):
    _enter(_name, _conv_back, out_channel=REQUIRED, kernel_size=REQUIRED, pad_mode="valid", pad=0, pad_list=None, mode=1, stride=1, dilation=1, group=1,
           data_format="NCHW")  # fmt: skip


def _pool(self: Any, x: Any, maximum: bool) -> Tensor:
    tensor = as_tensor(x)
    last = self.data_format == "NHWC"
    rank = tensor.ndim - 2
    kernel, strides = convolution.spread(self.kernel_size, rank, "kernel_size"), convolution.spread(self.strides, rank, "strides")
    spatial = tensor.shape[1:-1] if last else tensor.shape[2:]
    one, none = (1,) * rank, (0,) * rank
    low, high = convolution.same_pads(spatial, kernel, strides, one) if self.pad_mode.lower() == "same" else (none, none)
    fields = (kernel, strides, low, high, one)
    op: Any = o.MaxPool(*fields, channels_last=last) if maximum else o.AvgPool(*fields, channels_last=last)
    return apply(op, tensor)  # type: ignore[no-any-return]


_enter("MaxPool", lambda self, x: _pool(self, x, True), kernel_size=1, strides=1, pad_mode="valid", data_format="NCHW")
_enter("AvgPool", lambda self, x: _pool(self, x, False), kernel_size=1, strides=1, pad_mode="VALID", data_format="NCHW")
_enter("MaxPool3D", lambda self, x: pooling.max_pool3d(
       x, self.kernel_size, self.strides, self.pad_list if self.pad_mode.lower() == "pad" else 0, 1, bool(self.ceil_mode)),
       kernel_size=1, strides=1, pad_mode="VALID", pad_list=0, ceil_mode=None, data_format="NCDHW")  # fmt: skip
_enter("AdaptiveAvgPool2D", lambda self, x: pooling.adaptive_avg_pool2d(x, self.output_size), output_size=REQUIRED)
_enter("AdaptiveAvgPool3D", lambda self, x: pooling.adaptive_avg_pool3d(x, self.output_size), output_size=REQUIRED)
_enter("AdaptiveMaxPool2D", lambda self, x: pooling.adaptive_max_pool2d(x, self.output_size, True), output_size=REQUIRED)
_enter("MaxPoolWithArgmaxV2", lambda self, x: pooling.max_pool2d(x, self.kernel_size, self.strides, self.pads, self.dilation, True, self.ceil_mode),
       kernel_size=REQUIRED, strides=None, pads=0, dilation=(1, 1), ceil_mode=False, argmax_type=types.int64)  # fmt: skip
_enter("Pad", lambda self, x: image.padded(as_tensor(x), [p for p, _ in self.paddings], [p for _, p in self.paddings]), paddings=REQUIRED)
_enter("MirrorPad", lambda self, x, paddings: image.mirror_pad(x, paddings, self.mode), mode="REFLECT")


def _pad_v3(self: Any, x: Any, paddings: Any, value: Any = None) -> Tensor:
    amounts = ints(paddings)
    if not self.paddings_contiguous:
        half = len(amounts) // 2
        amounts = tuple(v for pair in zip(amounts[:half], amounts[half:], strict=True) for v in pair)
    return image.pad(x, amounts, {"edge": "replicate", "circular": "circular"}.get(self.mode, self.mode), value)


_enter("PadV3", _pad_v3, mode="constant", paddings_contiguous=True)


def _resize(mode: str) -> Any:
    def compute(self: Any, x: Any, size: Any = None) -> Tensor:
        if self.align_corners:
            coordinates = "align_corners"
        elif self.half_pixel_centers:
            coordinates = "tf_half_pixel_for_nn" if mode == "nearest" else "half_pixel"
        else:
            coordinates = "asymmetric"
        rounding = "round_prefer_ceil" if self.align_corners else "floor"
        cubic = -0.5 if coordinates == "half_pixel" else -0.75
        return image.resized(as_tensor(x), ints(self.size if size is None else size), None, mode, coordinates, rounding, cubic)

    return compute


_enter("ResizeNearestNeighbor", _resize("nearest"), size=REQUIRED, align_corners=False, half_pixel_centers=False)
_enter("ResizeNearestNeighborV2", _resize("nearest"), align_corners=False, half_pixel_centers=False)
_enter("ResizeBilinearV2", _resize("linear"), align_corners=False, half_pixel_centers=False)
_enter("ResizeBilinear", _resize("linear"), size=REQUIRED, align_corners=False, half_pixel_centers=False)
_enter("ResizeBicubic", _resize("cubic"), align_corners=False, half_pixel_centers=False)
for _n in (2, 3):
    _enter(f"GridSampler{_n}D", lambda self, x, grid: image.grid_sample(x, grid, self.interpolation_mode, self.padding_mode, self.align_corners),
           interpolation_mode="bilinear", padding_mode="zeros", align_corners=False)  # fmt: skip
_enter("AffineGrid", lambda self, theta, size: image.affine_grid(theta, size, self.align_corners), align_corners=False)
_enter("DepthToSpace", lambda self, x: image.depth_to_space(x, self.block_size), block_size=REQUIRED)
_enter("SpaceToDepth", lambda self, x: image.space_to_depth(x, self.block_size), block_size=REQUIRED)
_enter("ChannelShuffle", lambda self, x: image.channel_shuffle(x, self.group), group=REQUIRED)
_enter("Im2Col", lambda self, x: _im2col(self, as_tensor(x)), ksizes=REQUIRED, strides=1, dilations=1, pads=0)
_enter("Col2Im", lambda self, x, size: image.col2im(x, size, self.kernel_size, self.dilation, self.padding, self.stride),
       kernel_size=REQUIRED, dilation=1, padding=0, stride=1)  # fmt: skip
_enter("IOU", lambda self, x, y: image.iou(x, y, self.mode), mode="iou")
_enter("ROIAlign", lambda self, x, rois: image.roi_align(x, rois, (self.pooled_height, self.pooled_width), self.spatial_scale, self.sample_num, False),
       pooled_height=REQUIRED, pooled_width=REQUIRED, spatial_scale=REQUIRED, sample_num=2, roi_end_mode=1)  # fmt: skip


def _im2col(self: Any, x: Tensor) -> Tensor:
    columns = image.unfold(x, self.ksizes, self.dilations, self.pads, self.strides)
    return s.reshape(columns, (x.shape[0], x.shape[1], columns.shape[1] // x.shape[1], columns.shape[2]))


# -------------------------------------------------------------------------------------------------------- normalization
_enter("LayerNorm", lambda self, x, gamma, beta: norm.layer_norm_with_stats(x, gamma, beta, self.begin_norm_axis, self.epsilon),
       begin_norm_axis=1, begin_params_axis=1, epsilon=1e-7)  # fmt: skip
_enter("RmsNorm", lambda self, x, gamma: norm.rms_norm(x, gamma, self.epsilon), epsilon=1e-6)
_enter("L2Normalize", lambda self, x: norm.l2_normalize(x, self.axis, self.epsilon), axis=0, epsilon=1e-4)
_enter("LRN", lambda self, x: norm.lrn(x, self.depth_radius, self.bias, self.alpha, self.beta), depth_radius=5, bias=1.0, alpha=1.0, beta=0.5,
       norm_region="ACROSS_CHANNELS")  # fmt: skip
_enter("Renorm", lambda self, x: norm.renorm(x, self.p, self.dim, self.maxnorm), p=REQUIRED, dim=REQUIRED, maxnorm=REQUIRED)


def _batch_norm(self: Any, x: Any, scale: Any, bias: Any, mean: Any, variance: Any) -> tuple[Tensor, ...]:
    """(y, mean, variance, mean, variance); in training the running statistics are written."""
    tensor = as_tensor(x)
    last = self.data_format == "NHWC"
    tensor = s.movedim(tensor, -1, 1) if last else tensor
    if self.is_training:
        y, now, var = apply(o.BatchNormTrain(self.epsilon), tensor, as_tensor(scale), as_tensor(bias))
        count = tensor.size // tensor.shape[1]
        for running, new in ((mean, now), (variance, a.mul(var, count / max(count - 1, 1)))):
            structure._assigned(running, a.add(a.mul(running, 1 - self.momentum), a.mul(a.stop_gradient(new), self.momentum)))
        found = now, var
    else:
        y = norm.batch_norm(tensor, mean, variance, scale, bias, False, self.momentum, self.epsilon)
        found = mean, variance
    return s.movedim(y, 1, -1) if last else y, *found, *found


_enter("BatchNorm", _batch_norm, is_training=False, epsilon=1e-5, momentum=0.1, data_format="NCHW")


# --------------------------------------------------------------------------------------------------------------- losses
def _softmax_loss(self: Any, logits: Any, labels: Any) -> tuple[Tensor, Tensor]:
    """The loss of each sample, and its gradient by the logits."""
    x = floating(logits)
    t = cast(as_tensor(labels), numpy_dtype(x))
    return a.neg(r.sum(a.mul(t, act.log_softmax(x, -1)), -1)), a.sub(act.softmax(x, -1), t)


def _sparse_softmax_loss(self: Any, logits: Any, labels: Any) -> Tensor:
    x = floating(logits)
    if not self.is_grad:
        return loss.cross_entropy(x, labels)
    hot = places.one_hot(labels, x.shape[-1], 1.0, 0.0)
    return a.div(a.sub(act.softmax(x, -1), cast(hot, numpy_dtype(x))), float(x.shape[0]))


_enter("SoftmaxCrossEntropyWithLogits", _softmax_loss)
_enter("SparseSoftmaxCrossEntropyWithLogits", _sparse_softmax_loss, is_grad=False)
_enter(
    "BCEWithLogitsLoss",
    lambda self, x, t, w=None, p=None: loss.binary_cross_entropy_with_logits(x, t, w, p, self.reduction),
    reduction="mean",
)
_enter("BinaryCrossEntropy", lambda self, x, t, w=None: loss.binary_cross_entropy(x, t, w, self.reduction), reduction="mean")
_enter("KLDivLoss", lambda self, x, t: loss.kl_div(x, t, self.reduction), reduction="mean")
_enter("SmoothL1Loss", lambda self, x, t: loss.smooth_l1_loss(x, t, self.beta, self.reduction), beta=1.0, reduction="none")
_enter("SoftMarginLoss", lambda self, x, t: loss.soft_margin_loss(x, t, self.reduction), reduction="mean")
_enter("NLLLoss", lambda self, x, t, w: (loss.nll_loss(x, t, w, self.ignore_index, self.reduction), r.sum(places.gather(w, t, 0))), reduction="mean",
       ignore_index=-100)  # fmt: skip
_enter_simple(lambda x, t: a.sub(a.add(a.maximum(x, 0), a.log1p(a.exp(a.neg(a.abs(x))))), a.mul(x, t)), "SigmoidCrossEntropyWithLogits")

# --------------------------------------------------------------------------------------------------------------- random
_enter("Dropout", lambda self, x: random.dropout_with_mask(x, self.keep_prob), keep_prob=0.5, Seed0=0, Seed1=0)
_enter("Dropout2D", lambda self, x: _dropped_channels(as_tensor(x), 2, self.keep_prob), keep_prob=0.5)
_enter("Dropout3D", lambda self, x: _dropped_channels(as_tensor(x), 3, self.keep_prob), keep_prob=0.5)
_enter("StandardNormal", lambda self, shape: random.standard_normal(shape), seed=0, seed2=0)
_enter("StandardLaplace", lambda self, shape: random.standard_laplace(shape), seed=0, seed2=0)
_enter("UniformReal", lambda self, shape: random.rand(shape), seed=0, seed2=0)
_enter("UniformInt", lambda self, shape, low, high: random.randint(int(low), int(high), shape, dtype=types.int32), seed=0, seed2=0)
_enter("TruncatedNormal", lambda self, shape: _truncated(ints(shape), self.dtype), dtype=types.float32, seed=0, seed2=0)
_enter("Gamma", lambda self, shape, alpha, beta: random.gamma(shape, alpha, beta), seed=0, seed2=0)
_enter("Bernoulli", lambda self, x, p=0.5: random.bernoulli(x, p), seed=-1, offset=0)
_enter("Multinomial", lambda self, x, n: cast(random.choices(x, n, True, None, None), self.dtype), seed=0, seed2=0, dtype=types.int32)
_enter("RandomShuffle", lambda self, x: random.shuffle(x), seed=0, seed2=0)
_enter("RandomCategorical", lambda self, x, n, seed=0: random.random_categorical(x, n, seed, self.dtype), dtype=types.int64)
_enter("RandomChoiceWithMask", lambda self, x: random.choice_with_mask(x, self.count), count=256, seed=0, seed2=0)
_enter("RandpermV2", lambda self, n, *_: random.randperm(n, dtype=self.dtype), seed=0, offset=0, dtype=types.int64)


def _dropped_channels(x: Tensor, rank: int, keep_prob: float) -> tuple[Tensor, Tensor]:
    shape = (*x.shape[: x.ndim - rank], *[1] * rank)
    mask = s.broadcast_to(random.kept(shape, 1 - keep_prob), x.shape)
    return a.where(mask, a.div(x, keep_prob), 0.0), mask


def _truncated(shape: tuple[int, ...], dtype: Any) -> Tensor:
    """Normal numbers within two deviations: the inverse distribution of a uniform number."""
    edge = 0.9544997361036416  # of a normal number to be within two deviations
    number = a.mul(a.sub(a.mul(random.unit(shape), 2.0), 1.0), edge)
    return cast(a.mul(decompose.erfinv(number), 2.0**0.5), as_type(dtype))


# ---------------------------------------------------------------------------------------------- attention, rooms, effects
_enter("FlashAttentionScore", lambda self, q, k, v, real_shift=None, drop_mask=None, padding_mask=None, attn_mask=None, prefix=None, actual_seq_qlen=None,
       actual_seq_kvlen=None: (None, None, None, attention.flash_attention_score(
           q, k, v, self.head_num, real_shift, drop_mask, padding_mask, attn_mask, prefix, actual_seq_qlen, actual_seq_kvlen, self.keep_prob,
           self.scale_value, self.pre_tokens, self.next_tokens, self.inner_precise, self.input_layout, self.sparse_mode)),
       head_num=REQUIRED, keep_prob=1.0, scale_value=1.0, pre_tokens=2147483647, next_tokens=2147483647, inner_precise=0, input_layout="BSH",
       sparse_mode=0)  # fmt: skip


def _here(name: str, call: Any, **parameters: Any) -> None:
    """A primitive of communication: on one process the world is this process."""

    def compute(self: Any, *args: Any) -> Any:
        return call(self, *args)

    _enter(name, compute, **parameters)


def _communication() -> Any:
    from jumar.communication import comm_func  # noqa: PLC0415  (it is made of tensors, too)

    return comm_func


_WORLD = "hccl_world_group"
_here("AllReduce", lambda self, x: _communication().all_reduce(x, self.op, self.group)[0], op="sum", group=_WORLD)
_here("AllGather", lambda self, x: _communication().all_gather_into_tensor(x, self.group)[0], group=_WORLD)
_here("ReduceScatter", lambda self, x: _communication().reduce_scatter_tensor(x, self.op, self.group)[0], op="sum", group=_WORLD)
_here(
    "Broadcast",
    lambda self, x: tuple(_communication().broadcast(t, self.root_rank, self.group) for t in x),
    root_rank=REQUIRED,
    group=_WORLD,
)
_here("Reduce", lambda self, x: _communication().reduce(x, self.dest_rank, self.op, self.group), dest_rank=REQUIRED, op="sum", group=_WORLD)
_here("Barrier", lambda self: _communication().barrier(self.group), group=_WORLD)


def _needs_partner(name: str, **parameters: Any) -> None:
    def compute(self: Any, *args: Any) -> Any:
        raise NotImplementedError(f"ops.{name}: operator must have other processes to talk to, got one process")

    _enter(name, compute, **parameters)


_needs_partner("Send", sr_tag=REQUIRED, dest_rank=REQUIRED, group=_WORLD, group_back=_WORLD)
_needs_partner("Receive", sr_tag=REQUIRED, src_rank=REQUIRED, shape=REQUIRED, dtype=REQUIRED, group=_WORLD, group_back=_WORLD)
_needs_partner(
    "NeighborExchange",
    send_rank_ids=REQUIRED,
    recv_rank_ids=REQUIRED,
    recv_shapes=REQUIRED,
    send_shapes=REQUIRED,
    recv_type=REQUIRED,
    group=_WORLD,
)


def _unsupported(name: str, why: str, **parameters: Any) -> None:
    def init(self: Any, *args: Any, **kwargs: Any) -> None:
        raise NotImplementedError(f"ops.{name}: {why}")

    cls = make(name, init, **parameters)
    cls.__init__ = init  # type: ignore[method-assign]
    TABLE[name] = cls


_unsupported(
    "Custom",
    "kernels of users are not supported, got a Custom operator; write it with ops and Cell.bprop, or add an operator to jumar.operators",
)
_unsupported("CustomOpBuilder", "kernels of users in C++ are not supported")
_unsupported("GetNext", "data sets are Python iterators here; iterate over create_tuple_iterator()")


for _name in (
    "PagedAttention",
    "PagedAttentionMask",
    "ReshapeAndCache",
    "AlltoAllV",
    "AlltoAllVC",
    "CustomRegOp",
    "FusedAdaFactor",
    "DynamicGRUV2",
):
    _unsupported(_name, "operators of the Ascend NPU alone are not supported")


def _morph(self: Any, *args: Any) -> Any:
    """A Python function as an operator: capture runs it; with bprop_fn(*inputs, out, dout) that is its gradient."""
    from jumar.frontend.grad import call_with_bprop  # noqa: PLC0415

    return self.fn(*args) if self.bprop_fn is None else call_with_bprop(self, args, {}, self.fn)


_enter("Morph", _morph, fn=REQUIRED, infer_shape=REQUIRED, infer_dtype=REQUIRED, bprop_fn=None)
TABLE["Morph"].bprop = lambda self, *args: self.bprop_fn(*args)  # type: ignore[attr-defined]
_enter("NMSWithMask", lambda self, x: experts.nms_with_mask(x, self.iou_threshold), iou_threshold=REQUIRED)
_enter(
    "CTCLossV2",
    lambda self, x, t, n, k: experts.ctc_losses(x, t, n, k, self.blank, self.zero_infinity),
    blank=0,
    reduction="none",
    zero_infinity=False,
)
_enter("BoundingBoxEncode", lambda self, p, g: experts.box_encode(p, g, self.means, self.stds), means=(0.0,) * 4, stds=(1.0,) * 4)
_enter("BoundingBoxDecode", lambda self, p, d: experts.box_decode(p, d, self.max_shape, self.means, self.stds, self.wh_ratio_clip), max_shape=REQUIRED,
       means=(0.0,) * 4, stds=(1.0,) * 4, wh_ratio_clip=0.016)  # fmt: skip
_enter("Partial", lambda self, function, *args: structure.partial(function, *args))
_enter("AvgPool3D", lambda self, x: pooling.avg_pool3d(x, self.kernel_size, self.strides, self.pad if self.pad_mode.lower() == "pad" else 0, self.ceil_mode,
       self.count_include_pad, self.divisor_override), kernel_size=1, strides=1, pad_mode="valid", pad=0, ceil_mode=False, count_include_pad=True,
       divisor_override=0, data_format="NCDHW")  # fmt: skip
_enter("TensorDump", lambda self, name, x: _dump(name, x), input_output="out")


def _dump(name: str, x: Tensor) -> None:
    """Saves a tensor as a NumPy file."""
    np.save(name if name.endswith(".npy") else f"{name}.npy", x.asnumpy())


def _rotary(self: Any, query: Any, key: Any, cos: Any, sin: Any, position_ids: Any) -> tuple[Tensor, Tensor]:
    """Query and key, turned by their positions."""
    return attention.rotary_position_embedding(query, cos, sin), attention.rotary_position_embedding(key, cos, sin)


_enter("ApplyRotaryPosEmb", _rotary, cos_format=0)


def _hook_backward(self: Any, *inputs: Any) -> Any:
    """The inputs, whose gradient the hook sees and may change."""
    from jumar.frontend.grad import hook_gradient  # noqa: PLC0415

    found = tuple(
        hook_gradient(x, lambda g: self.hook_fn(self.cell_id, (g,), (g,)) if self.cell_id else self.hook_fn((g,))) for x in inputs
    )
    return found[0] if len(found) == 1 else found


def _insert_gradient(self: Any, x: Any) -> Any:
    """The input, whose gradient goes through the function."""
    from jumar.frontend.grad import hook_gradient  # noqa: PLC0415

    return hook_gradient(x, self.f)


_enter("HookBackward", _hook_backward, hook_fn=REQUIRED, cell_id="")
_enter("InsertGradientOf", _insert_gradient, f=REQUIRED)
_enter("PyFunc", lambda self, *x: tuple(as_tensor(np.asarray(y)) for y in _as_tuple(self.fn(*(t.asnumpy() for t in x)))), fn=REQUIRED, in_types=REQUIRED,
       in_shapes=REQUIRED, out_types=REQUIRED, out_shapes=REQUIRED, stateful=True)  # fmt: skip
for _name in ("ScalarSummary", "TensorSummary", "ImageSummary", "HistogramSummary"):
    _enter_simple(lambda name, value: None, _name)
_enter_simple(lambda *args: c.zeros((8,)), "NPUAllocFloatStatus", "NPUGetFloatStatus", "NPUClearFloatStatus")
_enter("Assert", lambda self, condition, data: _check(condition, data), summarize=3)


def _as_tuple(value: Any) -> tuple[Any, ...]:
    return value if isinstance(value, tuple) else (value,)


def _check(condition: Any, data: Any) -> None:
    if not bool(condition):
        raise RuntimeError(f"Assert: condition must hold, got False with {data}")


# ----------------------------------------------------------------------------------------------- optimisers' primitives
def _apply_momentum(self: Any, variable: Any, accumulation: Any, rate: Any, gradient: Any, momentum: Any) -> Tensor:
    """accumulation = momentum accumulation + gradient; variable -= rate * accumulation (Nesterov: looks ahead)."""
    moved = a.add(a.mul(accumulation, momentum), a.mul(gradient, self.gradient_scale))
    structure._assigned(accumulation, moved)
    step = a.add(a.mul(moved, momentum), gradient) if self.use_nesterov else moved
    return structure._assigned(variable, a.sub(variable, a.mul(step, rate)))


def _adam(
    self: Any, var: Any, m: Any, v: Any, beta1_power: Any, beta2_power: Any, lr: Any, beta1: Any, beta2: Any, epsilon: Any, gradient: Any
) -> Any:
    """One step of Adam; (var, m, v) after it."""
    first = a.add(a.mul(m, beta1), a.mul(gradient, a.sub(1, beta1) if isinstance(beta1, Tensor) else 1 - beta1))
    second = a.add(a.mul(v, beta2), a.mul(a.square(gradient), a.sub(1, beta2) if isinstance(beta2, Tensor) else 1 - beta2))
    rate = a.div(a.mul(lr, a.sqrt(a.sub(1, as_tensor(beta2_power)))), a.sub(1, as_tensor(beta1_power)))
    ahead = a.add(a.mul(first, beta1), a.mul(gradient, a.sub(1, as_tensor(beta1)))) if self.use_nesterov else first
    new = a.sub(var, a.div(a.mul(rate, ahead), a.add(a.sqrt(second), epsilon)))
    return structure._assigned(var, new), structure._assigned(m, first), structure._assigned(v, second)


def _adam_decay(self: Any, var: Any, m: Any, v: Any, lr: Any, beta1: Any, beta2: Any, epsilon: Any, decay: Any, gradient: Any) -> Any:
    """One step of Adam without bias correction, with decoupled decay."""
    first = a.add(a.mul(m, beta1), a.mul(gradient, a.sub(1, as_tensor(beta1))))
    second = a.add(a.mul(v, beta2), a.mul(a.square(gradient), a.sub(1, as_tensor(beta2))))
    step = a.add(a.div(first, a.add(a.sqrt(second), epsilon)), a.mul(var, decay))
    return structure._assigned(var, a.sub(var, a.mul(step, lr))), structure._assigned(m, first), structure._assigned(v, second)


def _adamw(
    self: Any, var: Any, m: Any, v: Any, max_v: Any, gradient: Any, step: Any, lr: float, beta1: float, beta2: float, decay: float, eps: float,
    amsgrad: bool = False, maximize: bool = False,
) -> Any:  # fmt: skip
    """One step of PyTorch's AdamW; `step` counts from 1."""
    g = a.neg(gradient) if maximize else gradient
    first = a.add(a.mul(m, beta1), a.mul(g, 1 - beta1))
    second = a.add(a.mul(v, beta2), a.mul(a.square(g), 1 - beta2))
    top = a.maximum(max_v, second) if amsgrad else second
    root = a.div(a.sqrt(top), a.sqrt(a.sub(1, a.pow(beta2, step))))
    new = a.sub(a.mul(var, 1 - lr * decay), a.div(a.mul(a.div(first, a.sub(1, a.pow(beta1, step))), lr), a.add(root, eps)))
    if amsgrad:
        structure._assigned(max_v, top)
    return structure._assigned(var, new), structure._assigned(m, first), structure._assigned(v, second)


_enter("AdamWeightDecay", _adam_decay, use_locking=False)
_enter("AdamW", _adamw)
_enter("ApplyMomentum", _apply_momentum, use_nesterov=False, use_locking=False, gradient_scale=1.0)
_enter("Adam", _adam, use_locking=False, use_nesterov=False)
_enter_simple(lambda var, alpha, delta: structure._assigned(var, a.sub(var, a.mul(delta, alpha))), "ApplyGradientDescent")


# ------------------------------------------------------------------------------------- what MindSpore keeps in other files
INNER: dict[str, type[Primitive]] = {}  # ops.operations._inner_ops
GRADIENTS: dict[str, type[Primitive]] = {}  # ops.operations._grad_ops


def _cache_write(self: Any, cache: Any, new: Any, *where: Any) -> Tensor:
    """The cache [b, heads, n, d] with the new tokens at their place (batch, length)."""
    at = int(where[0]) if len(where) == 1 else int(where[1] if self.name == "DecoderKVCache" else 0)
    return structure._assigned(cache, places.slice_scatter(cache, cast(new, numpy_dtype(cache)), 2, at, at + new.shape[2]))


def _strided_slice_grad(self: Any, dy: Any, shape: Any, begin: Any, end: Any, strides: Any) -> Tensor:
    """Zeros with dy where the slice was."""
    flat = np.arange(int(np.prod(ints(shape)))).reshape(ints(shape))
    masks = (self.begin_mask, self.end_mask, self.ellipsis_mask, self.new_axis_mask, self.shrink_axis_mask)
    where = structure.strided_slice(as_tensor(flat), begin, end, strides, *masks)
    zeros = c.filled((flat.size,), 0, numpy_dtype(dy))
    return s.reshape(apply(o.ScatterNd(), zeros, s.reshape(where, (-1, 1)), s.reshape(dy, (-1,))), ints(shape))


INNER["PromptKVCache"], INNER["DecoderKVCache"] = make("PromptKVCache", _cache_write), make("DecoderKVCache", _cache_write)
INNER["SiLU"] = TABLE["SiLU"]
GRADIENTS["StridedSliceGrad"] = make(
    "StridedSliceGrad", _strided_slice_grad, begin_mask=0, end_mask=0, ellipsis_mask=0, new_axis_mask=0, shrink_axis_mask=0
)
GRADIENTS["SigmoidGrad"] = simple("SigmoidGrad", lambda y, dy: a.mul(dy, a.mul(y, a.sub(1, y))))
GRADIENTS["TanhGrad"] = simple("TanhGrad", lambda y, dy: a.mul(dy, a.sub(1, a.square(y))))
GRADIENTS["ReluGrad"] = simple("ReluGrad", lambda dy, x: a.where(a.greater(x, 0), dy, 0))


def __getattr__(name: str) -> Any:
    if name in TABLE:
        return TABLE[name]
    near = nearest(name, list(TABLE))
    raise AttributeError(f"mindspore.ops.{name}: primitive must be one that Jumar has{f'; {near}' if near else ''}")


__all__ = ["GRADIENTS", "INNER", "TABLE"]
