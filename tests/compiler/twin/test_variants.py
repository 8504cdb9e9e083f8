"""Variants of a graph: what is changed, and that what must stay stays."""

from __future__ import annotations

import numpy as np

from jumar.base import TensorType, f32, i32, i64
from jumar.compiler.twin.variants import cast_around, narrow_integers, padded, quantized, unquantized, with_attention
from jumar.ir import Graph, Node, constant, interpret, param
from jumar.operators import Add, Attention, Cast, Conv, Dequantize, Gather, MatMul, Quantize, ReduceSum, Relu, Softmax, Transpose


def weights(*shape: int) -> Node:
    return constant(np.random.default_rng(sum(shape)).standard_normal(shape, dtype=np.float32))


def test_integers_of_64_bits_become_narrow() -> None:
    table, at = weights(5, 3), param("at", TensorType((2,), i64))
    graph = Graph("lookup", (at,), (Gather(0)(table, Add()(at, constant(np.int64(1)))),))
    found = narrow_integers(graph)
    assert found is not None
    assert found.params[0].type.dtype is i32
    assert not any(n.dtype is i64 for n in found.nodes)
    np.testing.assert_array_equal(interpret(found, [np.array([0, 3], np.int32)])[0], interpret(graph, [np.array([0, 3])])[0])
    assert narrow_integers(Graph("floats", (), (Cast(f32)(weights(2)),))) is None


def test_explicit_attention_becomes_one_operator() -> None:
    q, k, v = (param(n, TensorType((1, 2, 4, 8), f32)) for n in "qkv")
    scores = Softmax(3)(MatMul()(q, Transpose((0, 1, 3, 2))(k)))
    found = with_attention(Graph("attention", (q, k, v), (MatMul()(scores, v),)))
    assert found is not None
    assert any(isinstance(n.op, Attention) for n in found.nodes)


def test_products_go_through_codes() -> None:
    x = param("x", TensorType((2, 8), f32))
    found = quantized(Graph("mlp", (x,), (Relu()(MatMul()(x, weights(8, 4))),)))
    assert found is not None
    product = next(n for n in found.nodes if isinstance(n.op, MatMul))
    assert all(isinstance(i.op, Dequantize) for i in product.inputs)
    assert quantized(Graph("none", (x,), (Relu()(x),))) is None


def test_inner_sizes_are_padded_and_outputs_stay() -> None:
    x = param("x", TensorType((1, 3, 6, 6), f32))
    plain = {"strides": (1, 1), "pads_low": (1, 1), "pads_high": (1, 1), "dilations": (1, 1)}
    y = Relu()(Conv(**plain)(x, weights(10, 3, 3, 3), weights(10)))
    graph = Graph("net", (x,), (Conv(**plain)(y, weights(5, 10, 3, 3)),))
    found = padded(graph, 16)
    assert found is not None
    changed, sizes = found
    assert [(a, b) for _, a, b in sizes] == [(10, 16)]
    assert changed.outputs[0].type == graph.outputs[0].type
    values = [np.random.default_rng(0).standard_normal((1, 3, 6, 6), dtype=np.float32)]
    np.testing.assert_allclose(interpret(changed, values)[0], interpret(graph, values)[0], rtol=1e-4, atol=1e-4)


def test_a_product_of_two_values_stays_when_what_it_reads_was_padded_before() -> None:
    """Attention after padded layers: neither of its inputs is a weight."""
    x = param("x", TensorType((4, 10), f32))
    y = MatMul()(Relu()(MatMul()(x, weights(10, 10))), weights(10, 10))
    graph = Graph("net", (x,), (MatMul()(MatMul()(y, constant(np.ones((10, 4), np.float32))), y),))
    found = padded(graph, 16)
    assert found is not None and found[1]
    values = [np.random.default_rng(0).standard_normal((4, 10), dtype=np.float32)]
    np.testing.assert_allclose(interpret(found[0], values)[0], interpret(graph, values)[0], rtol=1e-3, atol=1e-3)


def test_numbers_of_a_quantised_model_are_floats_again() -> None:
    x = param("x", TensorType((2, 8), f32))
    graph = Graph("mlp", (x,), (Relu()(MatMul()(x, weights(8, 4))),))
    codes = quantized(graph)
    assert codes is not None
    found = unquantized(codes)
    assert found is not None
    assert not any(isinstance(n.op, Dequantize | Quantize) for n in found.nodes)
    values = [np.random.default_rng(0).standard_normal((2, 8), dtype=np.float32)]
    np.testing.assert_allclose(interpret(found, values)[0], interpret(graph, values)[0], atol=0.1)
    assert unquantized(graph) is None


def test_one_operator_is_cast_around() -> None:
    x = param("x", TensorType((2, 8), i32))
    y = ReduceSum((1,))(x)
    found = cast_around(Graph("sum", (x,), (Add()(y, y),)), {y}, i64)
    assert [n.op.dtype for n in found.nodes if isinstance(n.op, Cast)] == [i64, i32]
    assert found.outputs[0].dtype is i32
