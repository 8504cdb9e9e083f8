"""`mindspore.ops.auto_generate`: primitives and functions under the names of MindSpore's generated code: `AddExt`, `softmax_impl`, `dropout_ext_op`.

In: those names.  Out: what they stand for: a primitive class, a function of mint for `..._ext`, a function of ops for `..._impl` and `..._op`.
"""

from __future__ import annotations

import itertools
import re
from typing import Any

from jumar import mint, ops
from jumar.mint.nn import functional
from jumar.ops import arithmetic as a
from jumar.ops import linalg, movement, normalization, places, random, reduction
from jumar.ops.operands import Tensor, cast, missing
from jumar.ops.primitive import Primitive, make, simple
from jumar.ops.primitives import INNER, TABLE


def grouped_matmul(x: Any, weight: Any, bias: Any = None, group_list: Any = None, split_item: int = 0) -> tuple[Tensor, ...]:
    """Products of parts of x with one weight each: lists of matrices, or rows of x in groups that end at `group_list`."""
    if group_list is None:
        pairs = zip(x, weight, bias or [None] * len(x), strict=True)
        return tuple(linalg.matmul(p, w) if b is None else a.add(linalg.matmul(p, w), b) for p, w, b in pairs)
    (rows,), (stacked,) = (v if isinstance(v, tuple | list) else (v,) for v in (x, weight))
    ends = [int(v) for v in group_list.tolist()] if isinstance(group_list, Tensor) else list(group_list)
    parts = [
        linalg.matmul(movement.part(rows, 0, start, end), movement.select(stacked, 0, i))
        for i, (start, end) in enumerate(itertools.pairwise([0, *ends]))
    ]
    return (movement.cat(parts, 0),)


_EXT: dict[str, Any] = {
    "AddExt": a.add, "SubExt": a.sub, "SplitWithSize": movement.split, "SplitTensor": movement.split, "IndexSelect": places.index_select,
    "SumExt": reduction.sum, "MeanExt": reduction.mean, "TopkExt": mint.topk, "ClampScalar": a.clamp, "ClampTensor": a.clamp,
    "CumsumExt": mint.cumsum, "OneHotExt": lambda t, n, on, off, axis=-1: places.one_hot(t, n, on, off, axis), "SortExt": mint.sort,
    "SliceExt": lambda x, dim, start, end, step=1: movement.part(x, dim % x.ndim, start, min(end, x.shape[dim]), step), "StackExt": movement.stack,
    "Arange": mint.arange, "BatchMatMulExt": linalg.bmm, "Chunk": movement.chunk, "FmodScalar": a.fmod, "FmodTensor": a.fmod, "Outer": linalg.outer,
    "RepeatInterleaveTensor": movement.repeat_interleave, "RepeatInterleaveInt": movement.repeat_interleave, "ZerosLikeExt": mint.zeros_like,
    "OnesLikeExt": mint.ones_like, "Muls": a.mul, "TrilExt": movement.tril, "Scatter": places.scatter, "TensorToScalar": lambda x: x.item(),
    "Empty": mint.empty, "InplaceCopy": lambda x, y: x.copy_(y), "Swiglu": ops.swiglu, "SiLU": ops.silu, "MatMulExt": linalg.matmul, "Concat2": None,
    "RotaryPositionEmbedding": ops.rotary_position_embedding, "ProdExt": mint.prod, "ArgMaxExt": mint.argmax, "ArgMinExt": mint.argmin,
    "MaxDim": lambda x, dim, keepdim=False: mint.max(x, dim, keepdim), "MinDim": lambda x, dim, keepdim=False: mint.min(x, dim, keepdim),
    "ExpandAs": movement.expand_as, "LayerNormExt": functional.layer_norm, "GroupedMatmulV4": grouped_matmul, "GeluExt": functional.gelu,
    "PowScalarTensor": a.pow, "PowTensorScalar": a.pow, "Norm": mint.norm, "NormalTensorTensor": mint.normal, "UniformExt": None, "Dot": linalg.dot,
    "SoftplusExt": functional.softplus, "LogSoftmaxExt": functional.log_softmax, "EluExt": functional.elu, "Embedding": functional.embedding,
    "InplaceAddExt": lambda x, y, alpha=1: x.add_(y, alpha=alpha), "FlattenExt": mint.flatten, "Addmm": mint.addmm, "Mm": mint.mm, "Clone": mint.clone,
    "Copy": mint.clone, "Contiguous": lambda x: x.contiguous(), "View": lambda x, shape: x.view(shape), "Unique2": mint.unique, "Var": mint.var,
    "Std": mint.std, "ConstantPadND": lambda x, pad, value=0: functional.pad(x, pad, "constant", value), "Randn": mint.randn, "RandExt": mint.rand,
}  # fmt: skip
_CLASSES: dict[str, type[Primitive]] = {name: simple(name, function) for name, function in _EXT.items() if function is not None}
_CLASSES["GroupedMatmul"] = make("GroupedMatmul", lambda self, x, w, bias=None, scale=None, offset=None, antiquant_scale=None, antiquant_offset=None,
                                 group_list=None: grouped_matmul(x, w, bias, group_list), split_item=0, group_type=-1)  # fmt: skip
_CLASSES["DropoutExt"] = make("DropoutExt", lambda self, x, p=0.5, *_: random.dropout_with_mask(x, 1 - p))
_CLASSES["Generator"] = make("Generator", lambda self, *_: None)


def add_rms_norm(x1: Any, x2: Any, gamma: Any, epsilon: float = 1e-06) -> tuple[Tensor, Tensor, Tensor]:
    """rms_norm of the sum, its factor, and the sum."""
    return normalization.add_rms_norm(x1, x2, gamma, epsilon)


def format_cast(input: Tensor, acl_format: int) -> Tensor:
    """The tensor in a layout of the Ascend NPU: here it has one."""
    return input


_FUNCTIONS: dict[str, Any] = {
    "add_rms_norm": add_rms_norm, "format_cast": format_cast, "grouped_matmul": grouped_matmul, "cast": cast,
    "inplace_uniform_op": lambda x, low, high, *_: x.uniform_(low, high), "inplace_normal_op": lambda x, mean, std, *_: x.normal_(mean, std),
    "dropout_ext_op": lambda x, p=0.5, *_: random.dropout_with_mask(x, 1 - p), "nllloss_impl": ops.nll_loss,
    "multinomial_ext_op": lambda x, n, replacement=False, *_: mint.multinomial(x, n, replacement), "elu_ext_impl": functional.elu,
    "randint_op": lambda low, high, size, *rest: mint.randint(low, high, size), "bernoulli_ext_op": lambda x, *_: mint.bernoulli(x),
}  # fmt: skip


def found(name: str, module: str = "ops.auto_generate") -> Any:
    """What a generated name stands for."""
    for table in (_FUNCTIONS, _CLASSES, TABLE, INNER):
        if name in table:
            return table[name]
    plain = re.sub(r"_(impl|op|ext|ext_impl|ext_op|ext_view_op|view_op|view)$", "", name)
    rooms = (mint, functional, ops) if "_ext" in name else (ops, mint, functional)
    for candidate in (name, plain, plain.removeprefix("inner_"), plain.removeprefix("reduce_")):
        for room in rooms:
            value = room.__dict__.get(candidate)
            if value is not None and not isinstance(value, type(ops)):
                return value
    raise missing(module, name, [*_CLASSES, *TABLE, *ops.__all__])


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(name)
    return found(name)
