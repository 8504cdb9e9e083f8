"""The value of a node as a chip computes it, and as fp32 has it.

In: a node, the values of its inputs, and the chip's `Arithmetic`.  Out: arrays; numerics.py runs graphs with these two functions.
Rounding happens where a kernel writes: one node is one kernel, which reads what is in memory, computes in fp32 and rounds once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from jumar.base import Array, DType, TensorType, dtype_of, f32
from jumar.device.npu import Arithmetic, limits
from jumar.ir import Constant, Get, Graph, Node, Op, param, topological
from jumar.operators import (
    BatchNorm,
    Cast,
    Celu,
    Conv,
    ConvGradInput,
    ConvGradWeight,
    ConvTranspose,
    Einsum,
    Elu,
    Fused,
    Gelu,
    GroupNorm,
    HardSwish,
    InstanceNorm,
    LayerNorm,
    LogSoftmax,
    LpNorm,
    Lrn,
    MatMul,
    Mish,
    RmsNorm,
    Select,
    Selu,
    Silu,
    Softmax,
    Softplus,
    Softsign,
    cast,
)

_CONVOLUTIONS = (Conv, ConvTranspose, ConvGradInput, ConvGradWeight)
_PRODUCTS = (MatMul, Einsum, *_CONVOLUTIONS)
_NORMALIZATIONS = (BatchNorm, GroupNorm, InstanceNorm, LayerNorm, LogSoftmax, LpNorm, Lrn, RmsNorm, Softmax)
_ACTIVATIONS = (Celu, Elu, Gelu, HardSwish, Mish, Selu, Silu, Softplus, Softsign)
_MOVES = ("movement", "source")  # nothing is computed: bits stay as they are


@dataclass(frozen=True)
class Written:
    """What a kernel writes.   values: its results; raw: before they were rounded.

    stepped: it rounded between its steps, too; step: the operator inside that left the range first.
    """

    values: tuple[Array, ...]
    raw: tuple[Array, ...]
    stepped: bool = False
    step: str = ""


def is_narrow(dtype: Any) -> bool:
    """A floating type of 16 bits or less."""
    return isinstance(dtype, DType) and dtype.is_float and dtype.bits < 32


def widened(x: Any) -> Any:
    """Narrow floats as fp32, the rest as it is; a tuple element by element."""
    if isinstance(x, tuple):
        return tuple(map(widened, x))
    return x.astype(np.float32) if isinstance(x, np.ndarray) and is_narrow(dtype_of(x.dtype)) else x


def types_of(node: Node) -> tuple[TensorType, ...]:
    return node.type if isinstance(node.type, tuple) else (node.type,)


def exact_value(node: Node, arrays: Sequence[Any]) -> tuple[Array, ...]:
    """The results with every narrow float computed, and kept, in fp32: what the model means."""
    op = node.op
    if isinstance(op, Cast) and op.dtype.is_float and arrays[0].dtype.kind != "O":
        return (np.asarray(arrays[0]).astype(np.float64 if op.dtype.bits == 64 else np.float32),)
    if isinstance(op, Fused):
        return _inside(op.body, arrays, exact_value)
    results = _reference(op, arrays)
    return tuple(widened(np.asarray(r)) if is_narrow(t.dtype) else _typed(r, t) for r, t in zip(results, types_of(node), strict=True))


def device_value(node: Node, arrays: Sequence[Any], math: Arithmetic, *, keep: bool = False) -> Written:
    """The results as the chip writes them.   keep: a kernel in fp32, whose narrow results stay fp32"""
    op, types = node.op, types_of(node)
    if isinstance(op, Constant):
        return Written((op.value.array,), (op.value.array,))
    if isinstance(op, Cast) and op.dtype.is_float and arrays[0].dtype.kind in "fV":
        wide = widened(arrays[0])
        return Written((wide if keep and is_narrow(op.dtype) else math.rounded(wide, op.dtype),), (wide,))
    if isinstance(op, Fused):
        inner = _inside(op.body, arrays, lambda n, a: device_value(n, a, math, keep=keep).values)
        return Written(inner, inner)
    if not keep and math.steps and is_narrow(types[0].dtype) and (steps := _formula(op, node)) is not None:
        return _stepwise(steps, arrays, math)
    if op.family in _MOVES or isinstance(op, Get | Select):
        raw = tuple(np.asarray(r) for r in _reference(op, arrays))
    elif isinstance(op, _PRODUCTS):
        conv = isinstance(op, _CONVOLUTIONS)
        raw = tuple(
            _reference(op, [*(math.product_input(a, conv=conv) if _is_float(a) else a for a in arrays[:2]), *map(widened, arrays[2:])])
        )
    else:
        raw = tuple(np.asarray(r) for r in _reference(op, [widened(a) for a in arrays]))
    return Written(tuple(_written(r, t, math, keep) for r, t in zip(raw, types, strict=True)), raw)


def _is_float(x: Any) -> bool:
    return isinstance(x, np.ndarray) and dtype_of(x.dtype).is_float


def _written(x: Array, type_: TensorType, math: Arithmetic, keep: bool) -> Array:
    if not type_.dtype.is_float:
        return _typed(x, type_)
    if keep and is_narrow(type_.dtype):
        return x.astype(np.float32, copy=False)
    return math.rounded(x, type_.dtype) if _is_float(x) else _typed(x, type_)


def _typed(x: Any, type_: TensorType) -> Array:
    with np.errstate(all="ignore"):
        return np.asarray(x).astype(type_.dtype.numpy, copy=False)


def _reference(op: Op, arrays: Sequence[Any]) -> tuple[Any, ...]:
    with np.errstate(all="ignore"):
        result = op.reference(*arrays)
    return result if isinstance(result, tuple) else (np.asarray(result),)


def _inside(body: Graph, arrays: Sequence[Any], value: Any) -> tuple[Array, ...]:
    """The results of a graph within a node."""
    values: dict[Node, tuple[Any, ...]] = {p: (a,) for p, a in zip(body.params, arrays, strict=True)}
    for node in body.nodes:
        if node not in values:
            values[node] = value(node, [values[i] if isinstance(i.type, tuple) else values[i][0] for i in node.inputs])
    return tuple(values[o][0] for o in body.outputs)


def _formula(op: Op, node: Node) -> Graph | None:
    """The steps of a kernel that is written as several vector instructions, in the element type of its inputs."""
    inputs = tuple(param(f"x{i}", n.type) for i, n in enumerate(node.inputs))
    if isinstance(op, _NORMALIZATIONS):  # its weights may be wider than its data
        return Graph(op.name, inputs, (op.formula(*(cast(i, inputs[0].dtype) for i in inputs)),))
    return Graph(op.name, inputs, (op.decompose(*inputs),)) if isinstance(op, _ACTIVATIONS) else None


def _stepwise(steps: Graph, arrays: Sequence[Any], math: Arithmetic) -> Written:
    """Each instruction reads and writes the narrow type."""
    values: dict[Node, Array] = dict(zip(steps.params, arrays, strict=True))
    raw, step = arrays[0], ""
    for node in topological(steps.outputs, steps.params):
        if node not in values:
            written = device_value(node, [values[i] for i in node.inputs], math)
            values[node], raw = written.values[0], written.raw[0]
            if not step and is_narrow(node.dtype) and leaves_range(raw, node.dtype).any() and all(_finite(values[i]) for i in node.inputs):
                step = written.step or node.op.name
    return Written((values[steps.outputs[0]],), (raw,), True, step)


def leaves_range(x: Array, dtype: DType) -> Array:
    """Where a finite number, or an infinity or NaN that came of finite ones, does not fit the type."""
    wide = widened(x)
    if dtype.bits <= 8:
        return np.asarray(np.isnan(wide))
    halfway = limits(dtype).too_large
    return np.asarray(~(np.abs(wide) < halfway))


def _finite(x: Array) -> bool:
    return not _is_float(x) or bool(np.isfinite(widened(x)).all())


def narrowed(x: Any, node: Node, math: Arithmetic) -> Any:
    """A value that was kept in fp32, as a kernel in the node's own type reads it."""
    if isinstance(x, np.ndarray) and x.dtype == f32.numpy and not isinstance(node.type, tuple) and is_narrow(node.dtype):
        return math.rounded(x, node.dtype)
    return x
