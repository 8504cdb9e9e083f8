"""Random operators of ONNX.   A node without a seed gets one that follows from its name: a model gives the same result each time."""

from __future__ import annotations

from jumar.base import DType
from jumar.frontend.importers.onnx.node import OnnxNode, dtype_of_onnx
from jumar.frontend.importers.onnx.rule import rule
from jumar.frontend.importers.onnx.rules.elementwise import seed_of
from jumar.frontend.importers.onnx.trace import Tensor, Trace
from jumar.frontend.importers.onnx.value import Value
from jumar.ir import Node
from jumar.operators import Bernoulli, Multinomial, RandomNormal, RandomUniform


def _normal(n: OnnxNode, shape: tuple[int, ...], dtype: DType) -> Node:
    return RandomNormal(shape, n.attribute("mean", 0.0), n.attribute("scale", 1.0), seed_of(n), dtype)()


def _uniform(n: OnnxNode, shape: tuple[int, ...], dtype: DType) -> Node:
    return RandomUniform(shape, n.attribute("low", 0.0), n.attribute("high", 1.0), seed_of(n), dtype)()


def _dtype(n: OnnxNode, like: DType) -> DType:
    return dtype_of_onnx(n.attribute("dtype")) if n.attribute("dtype", 0) else like


@rule("RandomNormal")
def random_normal(t: Trace, n: OnnxNode) -> Node:
    return _normal(n, n.attribute("shape"), dtype_of_onnx(n.attribute("dtype", 1)))


@rule("RandomUniform")
def random_uniform(t: Trace, n: OnnxNode) -> Node:
    return _uniform(n, n.attribute("shape"), dtype_of_onnx(n.attribute("dtype", 1)))


@rule("RandomNormalLike")
def random_normal_like(t: Trace, n: OnnxNode, x: Tensor) -> Node:
    return _normal(n, x.shape, _dtype(n, x.dtype))


@rule("RandomUniformLike")
def random_uniform_like(t: Trace, n: OnnxNode, x: Tensor) -> Node:
    return _uniform(n, x.shape, _dtype(n, x.dtype))


@rule("Bernoulli")
def bernoulli(t: Trace, n: OnnxNode, x: Tensor) -> Node:
    return Bernoulli(_dtype(n, x.dtype), seed_of(n))(t.node(x))


@rule("Multinomial")
def multinomial(t: Trace, n: OnnxNode, x: Value) -> Node:
    return Multinomial(n.attribute("sample_size", 1), seed_of(n), dtype_of_onnx(n.attribute("dtype", 6)))(t.node(x))
