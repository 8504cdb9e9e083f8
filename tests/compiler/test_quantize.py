"""Quantized networks run in 8-bit products, and give the codes that their graphs mean: another one only where roundings tie."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from jumar.base import DType, f32, i8, u8
from jumar.compiler import compile
from jumar.ir import Graph, Node, constant, interpret, param, tensor
from jumar.operators import (
    Add,
    Concat,
    Conv,
    Dequantize,
    LeakyRelu,
    MatMul,
    MaxPool,
    Mul,
    Quantize,
    ReduceMean,
    Relu,
    Reshape,
    Resize,
    Sigmoid,
    Transpose,
)
from jumar.runtime import Step

RNG = np.random.default_rng(3)


def code(dtype: DType, zero: int) -> Node:
    return constant(np.array(zero, dtype.numpy), dtype)


def step(x: Node, scale: float, zero: int, dtype: DType = u8) -> Node:
    """x as a quantizer leaves it: to codes and back."""
    s = constant(np.float32(scale), f32)
    return Dequantize()(Quantize(dtype)(x, s, code(dtype, zero)), s, code(dtype, zero))


def weights(shape: tuple[int, ...], axis: int, dtype: DType = i8, zero: int = 0, most: int = 127) -> Node:
    low, high = (-most, most + 1) if dtype is i8 else (0, 256)
    scale = RNG.uniform(0.002, 0.01, [n if d == axis else 1 for d, n in enumerate(shape)]).astype(np.float32)
    codes = constant(RNG.integers(low, high, shape).astype(dtype.numpy), dtype)
    zeros = constant(np.full(scale.shape, zero, dtype.numpy), dtype)
    return Dequantize()(codes, constant(scale, f32), zeros)


def conv(x: Node, filters: int, size: int, stride: int = 1, groups: int = 1, **kind: Any) -> Node:
    pads = (size // 2,) * 2
    w = weights((filters, x.shape[1] // groups, size, size), 0, **kind)
    bias = constant(RNG.normal(size=filters).astype(np.float32), f32)
    return Conv((stride, stride), pads, pads, (1, 1), groups)(x, w, bias)


def residual(x: Node, acts: DType, z: int, **kind: Any) -> Node:
    return Add()(step(conv(x, 6, 3, **kind), 0.05, z + 128, acts), x)


def silu(x: Node) -> Node:
    return Mul()(x, Sigmoid()(x))


LAYERS: dict[str, Any] = {
    "conv": lambda x, acts, z, **kind: conv(x, 20, 3, 2, **kind),
    "pointwise": lambda x, acts, z, **kind: conv(x, 33, 1, **kind),
    "depthwise": lambda x, acts, z, **kind: MaxPool((2, 2), (1, 1), (0, 0), (0, 0), (1, 1))(conv(x, 6, 3, groups=6, **kind)),
    "grouped": lambda x, acts, z, **kind: conv(x, 10, 3, groups=2, **kind),
    "relu": lambda x, acts, z, **kind: Relu()(step(conv(x, 20, 3, **kind), 0.05, z + 128, acts)),
    "silu": lambda x, acts, z, **kind: silu(step(conv(x, 20, 3, **kind), 0.02, z + 128, acts)),
    "leaky": lambda x, acts, z, **kind: LeakyRelu(0.1)(conv(x, 20, 3, **kind)),
    "residual": residual,
    "pool": lambda x, acts, z, **kind: MaxPool((2, 2), (2, 2), (0, 0), (0, 0), (1, 1))(conv(x, 20, 3, **kind)),
    "concat": lambda x, acts, z, **kind: Concat(1)(conv(x, 20, 3, **kind), step(x, 0.1, z + 100, acts)),
    "resize": lambda x, acts, z, **kind: Resize((2, 8, 16, 14), (1.0, 1.0, 2.0, 2.0), coordinates="asymmetric", nearest="floor")(
        conv(x, 8, 3, **kind)
    ),
    "product": lambda x, acts, z, **kind: MatMul()(Reshape((2, 336))(x), weights((336, 37), 1, **kind)),
    "turned": lambda x, acts, z, **kind: MatMul()(Reshape((12, 56))(x), Transpose((1, 0))(weights((21, 56), 0, **kind))),
    "computed": lambda x, acts, z, **kind: MatMul()(Reshape((12, 56))(x), Transpose((1, 0))(step(Reshape((12, 56))(x), 0.05, z + 99, acts))),
    "mean": lambda x, acts, z, **kind: ReduceMean((2, 3), keepdims=True)(step(conv(x, 20, 3, **kind), 0.05, z + 128, acts)),
}  # fmt: skip
KINDS: dict[str, dict[str, Any]] = {
    "narrow": {"most": 63},
    "whole": {},
    "centred": {"dtype": u8, "zero": 128},
    "far": {"dtype": u8, "zero": 90},
}


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
@pytest.mark.parametrize("acts", [u8, i8], ids=str)
@pytest.mark.parametrize("layer", LAYERS)
def test_codes_of_a_layer_are_those_that_its_graph_means(layer: str, acts: DType, kind: dict[str, Any]) -> None:
    """Layers begin with codes, so that no difference is one of an earlier layer."""
    z = 0 if acts is u8 else -128
    codes = param("codes", tensor(acts, 2, 6, 8, 7))
    x = Dequantize()(codes, constant(np.float32(0.03), f32), code(acts, z + 120))
    y = LAYERS[layer](x, acts, z, **kind)
    (values,) = interpret(Graph("values", (codes,), (y,)), [array := RNG.integers(z, z + 256, codes.shape).astype(acts.numpy)])
    graph = Graph("g", (codes,), (Quantize(acts)(y, constant(np.float32(np.abs(values).max() / 140), f32), code(acts, z + 128)),))
    (expected,) = interpret(graph, [array])
    compiled = compile(graph)
    (actual,) = compiled.instance().run([array])
    assert len(np.unique(expected)) > 20, "the codes say something"
    apart = np.abs(expected.astype(np.int32) - actual.astype(np.int32))
    assert apart.max() <= 1
    assert (apart > 0).sum() < max(2, 0.02 * apart.size)
    kernels = [s.kernel for s in compiled.program.steps if isinstance(s, Step)]
    assert any(k.startswith(("byte_", "depthwise")) for k in kernels), kernels
    assert not any(k.startswith(("contraction", "convert", "strip", "skinny")) for k in kernels), kernels
