"""`mindspore.ops`: the functions and primitives on tensors.

In: tensors, numbers and attributes under MindSpore's names and signatures.  Out: tensors, each by operators of floor 4 through `frontend.apply`.
One implementation for each meaning, by family files; `mint`, `numpy` and the methods of Tensor are tables over the same functions.
"""
# ruff: noqa: PLE0604  (the names are those of the tables)

from __future__ import annotations

import importlib
from typing import Any

from jumar.frontend.tensor import Tensor
from jumar.ops import (
    activation,
    arithmetic,
    attention,
    collectives,
    convolution,
    creation,
    decompose,
    experts,
    image,
    linalg,
    loss,
    methods,
    movement,
    normalization,
    ordering,
    places,
    pooling,
    random,
    reduction,
    structure,
)
from jumar.ops.composite import GradOperation, HyperMap, Map, MultitypeFuncGraph, add_flags, core
from jumar.ops.gradients import derivative, get_grad, grad, jacfwd, jacrev, jet, jvp, stop_gradient, value_and_grad, vjp, vmap
from jumar.ops.operands import lenient, missing, public
from jumar.ops.primitive import Primitive, PrimitiveWithCheck, PrimitiveWithInfer, constexpr, prim_arg_register, prim_attr_register
from jumar.ops.primitives import TABLE

_FAMILIES = (
    arithmetic, movement, creation, reduction, ordering, places, linalg, activation, loss, convolution, pooling, image, normalization, random,
    attention, decompose, structure, experts, collectives,
)  # fmt: skip
_FUNCTIONS = public(*_FAMILIES) | {
    "cast": lenient(arithmetic.to_type), "median": lenient(ordering.median_pair), "scatter_add": places.scatter_rows_add,
    "index_add": lenient(places.index_add_rows), "index_put": lenient(places.index_put), "slice": lenient(structure.slice_),
    "index_select": lenient(places.index_select), "stop_gradient": stop_gradient, "select": lenient(structure.select),
    "inverse": lenient(decompose.inverse), "ger": lenient(linalg.outer),
}  # fmt: skip
globals().update(_FUNCTIONS)
globals().update(TABLE)
_CLASSES = (
    "GradOperation", "HyperMap", "Map", "MultitypeFuncGraph", "Primitive", "PrimitiveWithCheck", "PrimitiveWithInfer", "Tensor", "add_flags",
    "constexpr", "core", "derivative", "get_grad", "grad", "jacfwd", "jacrev", "jet", "jvp", "prim_arg_register", "prim_attr_register", "value_and_grad",
    "vjp", "vmap",
)  # fmt: skip
_ROOMS = (
    "auto_generate",
    "composite",
    "function",
    "functional",
    "operations",
    "primitive",
    "_primitive_cache",
    "_op_impl",
    "op_info_register",
)
__all__ = [*sorted(_FUNCTIONS), *sorted(TABLE), *_CLASSES]


class DataType:
    """Element types with layouts, as registrations of custom kernels name them: `DataType.F16_Default` is ("float16", "DefaultFormat")."""


for _short, _long in {"None": "", "BOOL": "bool", "I8": "int8", "U8": "uint8", "I16": "int16", "U16": "uint16", "I32": "int32", "U32": "uint32",
                      "I64": "int64", "U64": "uint64", "F16": "float16", "F32": "float32", "F64": "float64", "BF16": "bfloat16", "C64": "complex64",
                      "C128": "complex128"}.items():  # fmt: skip
    for _layout in ("Default", "NCHW", "NHWC", "5HD", "FracZ", "FracNZ", "ND", "None", "HWCN", "NDHWC", "NCDHW"):
        setattr(DataType, f"{_short}_{_layout}", (_long, {"Default": "DefaultFormat"}.get(_layout, _layout)))


class ReduceOp:
    """Names of reductions among processes."""

    SUM, MAX, MIN, PROD = "sum", "max", "min", "prod"


def __getattr__(name: str) -> Any:
    if name in _ROOMS:
        return importlib.import_module(f"jumar.ops.{name}")
    raise missing("ops", name, __all__)
