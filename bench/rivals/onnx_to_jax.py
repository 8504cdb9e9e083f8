"""An ONNX model as a JAX function, for bench/infer.py: JAX has no reader of ONNX files.

In: a model's file and its inputs.  Out: `function(...)`: f(weights, inputs) -> outputs, and the weights.
What is known when the function is traced (shapes, indices) is computed in NumPy; the rest becomes JAX.  Operators of the networks in fp32 that the bench has.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import onnx
from jax import lax
from onnx import helper, numpy_helper

Values = dict[str, Any]


class Unsuited(RuntimeError):
    """A model with an operator that is not in the table."""


def function(path: str) -> tuple[Callable[[Values, Values], list[Any]], Values]:
    """The model as a function of its weights and inputs."""
    graph = onnx.load(path).graph
    weights = {t.name: numpy_helper.to_array(t) for t in graph.initializer}
    small = {name: value for name, value in weights.items() if value.dtype.kind in "iub" or value.size <= 1}  # may be shapes: kept known
    large = {name: value for name, value in weights.items() if name not in small}
    if unknown := sorted({n.op_type for n in graph.node} - set(OPS) - set(SHAPES)):
        raise Unsuited(f"no JAX for {', '.join(unknown)}")

    def run(given: Values, inputs: Values) -> list[Any]:
        values: Values = {"": None, **small, **given, **{name: jnp.asarray(value) for name, value in inputs.items()}}
        for node in graph.node:
            x = [values[name] for name in node.input]
            attributes = {a.name: helper.get_attribute_value(a) for a in node.attribute}
            if node.op_type in SHAPES:
                found = SHAPES[node.op_type](x, attributes)
            elif all(v is None or isinstance(v, np.ndarray | np.generic) for v in x):
                found = _numpy(OPS[node.op_type](x, attributes))
            else:
                found = OPS[node.op_type](x, attributes)
            each = found if isinstance(found, tuple | list) else (found,)
            values |= dict(zip(node.output, each, strict=False))
        return [values[o.name] for o in graph.output]

    return run, large


def _numpy(found: Any) -> Any:
    return [np.asarray(v) for v in found] if isinstance(found, tuple | list) else np.asarray(found)


def _text(value: Any) -> str:
    return value.decode() if isinstance(value, bytes) else str(value)


def _pads(a: Values, rank: int, shape: Any, kernel: Any, strides: Any, dilations: Any) -> list[tuple[int, int]]:
    pads = a.get("pads", [0] * (2 * rank))
    if _text(a.get("auto_pad", "NOTSET")).startswith("SAME"):
        found = []
        for size, k, s, d in zip(shape, kernel, strides, dilations, strict=True):
            total = max(0, (-(-size // s) - 1) * s + (k - 1) * d + 1 - size)
            low = total // 2 if _text(a["auto_pad"]) == "SAME_UPPER" else -(-total // 2)
            found.append((low, total - low))
        return found
    return list(zip(pads[:rank], pads[rank:], strict=True))


def _conv(x: list[Any], a: Values) -> Any:
    rank = x[0].ndim - 2
    strides, dilations = a.get("strides", [1] * rank), a.get("dilations", [1] * rank)
    pads = _pads(a, rank, x[0].shape[2:], x[1].shape[2:], strides, dilations)
    y = lax.conv_general_dilated(x[0], x[1], strides, pads, rhs_dilation=dilations, feature_group_count=a.get("group", 1))
    return y if len(x) < 3 else y + x[2].reshape(-1, *[1] * rank)


def _conv_transpose(x: list[Any], a: Values) -> Any:
    rank = x[0].ndim - 2
    if a.get("group", 1) != 1 or any(a.get("output_padding", [])) or set(a.get("dilations", [1])) != {1}:
        raise Unsuited("no JAX for this ConvTranspose")
    strides, kernel, pads = a.get("strides", [1] * rank), x[1].shape[2:], a.get("pads", [0] * (2 * rank))
    w = jnp.flip(x[1], tuple(range(2, 2 + rank))).swapaxes(0, 1)
    padding = [(k - 1 - pads[i], k - 1 - pads[i + rank]) for i, k in enumerate(kernel)]
    y = lax.conv_general_dilated(x[0], w, [1] * rank, padding, lhs_dilation=strides)
    return y if len(x) < 3 else y + x[2].reshape(-1, *[1] * rank)


def _pool(x: Any, a: Values, largest: bool) -> Any:
    kernel = a["kernel_shape"]
    rank = len(kernel)
    strides = a.get("strides", [1] * rank)
    pads = _pads(a, rank, x.shape[2:], kernel, strides, [1] * rank)
    if a.get("ceil_mode"):
        pads = [
            (low, high + (-(size + low + high - k)) % s) for (low, high), size, k, s in zip(pads, x.shape[2:], kernel, strides, strict=True)
        ]
    window, steps, padding = (1, 1, *kernel), (1, 1, *strides), [(0, 0), (0, 0), *pads]
    if largest:
        return lax.reduce_window(x, -jnp.inf, lax.max, window, steps, padding)
    total = lax.reduce_window(x, 0.0, lax.add, window, steps, padding)
    if a.get("count_include_pad"):
        return total / np.prod(kernel)
    return total / lax.reduce_window(jnp.ones_like(x), 0.0, lax.add, window, steps, padding)


def _gemm(x: list[Any], a: Values) -> Any:
    y = a.get("alpha", 1.0) * ((x[0].T if a.get("transA") else x[0]) @ (x[1].T if a.get("transB") else x[1]))
    return y if len(x) < 3 else y + a.get("beta", 1.0) * x[2]


def _norm(x: list[Any], a: Values) -> Any:
    axes = tuple(range(a.get("axis", -1) % x[0].ndim, x[0].ndim))
    centred = x[0] - x[0].mean(axes, keepdims=True)
    y = centred * lax.rsqrt((centred**2).mean(axes, keepdims=True) + a.get("epsilon", 1e-5)) * x[1]
    return y if len(x) < 3 else y + x[2]


def _batch_norm(x: list[Any], a: Values) -> Any:
    scale, shift, mean, variance = (v.reshape(-1, *[1] * (x[0].ndim - 2)) for v in x[1:5])
    return (x[0] - mean) * (scale * lax.rsqrt(jnp.asarray(variance + a.get("epsilon", 1e-5)))) + shift


def _axes(x: list[Any], a: Values) -> tuple[int, ...] | None:
    found = a.get("axes", x[1] if len(x) > 1 else None)
    return None if found is None else tuple(int(i) for i in found)


def _reshape(x: list[Any], _: Values) -> Any:
    return x[0].reshape([x[0].shape[i] if n == 0 else int(n) for i, n in enumerate(x[1])])


def _slice(x: list[Any], _: Values) -> Any:
    starts, ends = x[1], x[2]
    axes = x[3] if len(x) > 3 and x[3] is not None else range(len(starts))
    steps = x[4] if len(x) > 4 else [1] * len(starts)
    cut: list[Any] = [slice(None)] * x[0].ndim
    for start, end, axis, step in zip(starts, ends, axes, steps, strict=True):
        stop = None if step < 0 and end < -x[0].shape[axis] else int(end)
        cut[int(axis)] = slice(int(start), stop, int(step))
    return x[0][tuple(cut)]


def _split(x: list[Any], a: Values) -> Any:
    axis = a.get("axis", 0)
    sizes = a.get("split", x[1] if len(x) > 1 else None)
    if sizes is None:
        raise Unsuited("no JAX for Split without sizes")
    module = np if isinstance(x[0], np.ndarray) else jnp
    return module.split(x[0], np.cumsum(sizes)[:-1].tolist(), axis)


def _resize(x: list[Any], a: Values) -> Any:
    """Nearest, by whole factors."""
    scales = x[2] if len(x) > 2 and x[2] is not None and x[2].size else np.asarray(x[3]) / np.asarray(x[0].shape)
    if _text(a.get("mode", "nearest")) != "nearest" or any(s != int(s) for s in scales):
        raise Unsuited("no JAX for this Resize")
    y = x[0]
    for axis, scale in enumerate(scales):
        y = jnp.repeat(y, int(scale), axis) if scale != 1 else y
    return y


def _unsqueeze(x: list[Any], a: Values) -> Any:
    y = x[0]
    for axis in sorted(_axes(x, a) or ()):
        y = y[(slice(None),) * (axis % (y.ndim + 1)) + (None,)] if isinstance(y, np.ndarray) else jnp.expand_dims(y, axis)
    return y


def _concat(x: list[Any], a: Values) -> Any:
    module = np if all(isinstance(v, np.ndarray) for v in x) else jnp
    return module.concatenate(x, a["axis"])


def _gather(x: list[Any], a: Values) -> Any:
    if all(isinstance(v, np.ndarray | np.generic) for v in x):
        return np.take(x[0], x[1], a.get("axis", 0))
    return jnp.take(x[0], x[1], a.get("axis", 0))


SHAPES: dict[str, Callable[[list[Any], Values], Any]] = {  # results that are always known
    "Shape": lambda x, a: np.asarray(x[0].shape, np.int64),
    "Constant": lambda x, a: numpy_helper.to_array(a["value"]) if "value" in a else np.asarray(next(iter(a.values()))),
    "ConstantOfShape": lambda x, a: np.full(
        [int(n) for n in x[0]], numpy_helper.to_array(a["value"])[0] if "value" in a else np.float32(0)
    ),
    "Range": lambda x, a: np.arange(*(v.item() for v in x), dtype=x[0].dtype),
}
OPS: dict[str, Callable[[list[Any], Values], Any]] = {
    "Add": lambda x, a: x[0] + x[1],
    "Sub": lambda x, a: x[0] - x[1],
    "Mul": lambda x, a: x[0] * x[1],
    "Div": lambda x, a: x[0] // x[1] if x[0].dtype.kind == "i" else x[0] / x[1],
    "Pow": lambda x, a: x[0] ** x[1],
    "Equal": lambda x, a: x[0] == x[1],
    "Where": lambda x, a: (np if all(isinstance(v, np.ndarray) for v in x) else jnp).where(*x),
    "Sqrt": lambda x, a: jnp.sqrt(x[0]),
    "Erf": lambda x, a: lax.erf(x[0]),
    "Tanh": lambda x, a: jnp.tanh(x[0]),
    "Sigmoid": lambda x, a: jax.nn.sigmoid(x[0]),
    "Relu": lambda x, a: jax.nn.relu(x[0]),
    "HardSigmoid": lambda x, a: jnp.clip(a.get("alpha", 0.2) * x[0] + a.get("beta", 0.5), 0, 1),
    "HardSwish": lambda x, a: x[0] * jnp.clip(x[0] / 6 + 0.5, 0, 1),
    "Clip": lambda x, a: jnp.clip(x[0], *(x[1:] if len(x) > 1 else (a.get("min"), a.get("max")))),
    "Softmax": lambda x, a: jax.nn.softmax(x[0], a.get("axis", -1)),
    "Cast": lambda x, a: x[0].astype(helper.tensor_dtype_to_np_dtype(a["to"])),
    "Identity": lambda x, a: x[0],
    "Conv": _conv,
    "ConvTranspose": _conv_transpose,
    "MaxPool": lambda x, a: _pool(x[0], a, True),
    "AveragePool": lambda x, a: _pool(x[0], a, False),
    "GlobalAveragePool": lambda x, a: x[0].mean(tuple(range(2, x[0].ndim)), keepdims=True),
    "MatMul": lambda x, a: x[0] @ x[1],
    "Gemm": _gemm,
    "LayerNormalization": _norm,
    "BatchNormalization": _batch_norm,
    "ReduceMean": lambda x, a: x[0].mean(_axes(x, a), keepdims=bool(a.get("keepdims", 1))),
    "ReduceSum": lambda x, a: x[0].sum(_axes(x, a), keepdims=bool(a.get("keepdims", 1))),
    "ReduceL2": lambda x, a: jnp.sqrt((x[0] ** 2).sum(_axes(x, a), keepdims=bool(a.get("keepdims", 1)))),
    "Reshape": _reshape,
    "Flatten": lambda x, a: x[0].reshape(int(np.prod(x[0].shape[: a.get("axis", 1)])), -1),
    "Transpose": lambda x, a: x[0].transpose(a.get("perm", range(x[0].ndim)[::-1])),
    "Squeeze": lambda x, a: x[0].squeeze(_axes(x, a)),
    "Unsqueeze": _unsqueeze,
    "Expand": lambda x, a: (np if isinstance(x[0], np.ndarray) else jnp).broadcast_to(
        x[0], np.broadcast_shapes(x[0].shape, [int(n) for n in x[1]])
    ),
    "Concat": _concat,
    "Gather": _gather,
    "Slice": _slice,
    "Split": _split,
    "Resize": _resize,
}
