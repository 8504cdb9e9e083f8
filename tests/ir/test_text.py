"""Graphs print to text that parses to an equal graph; broken text is refused with its line."""

import numpy as np
import pytest

from jumar.base import IRError, TensorType, bf16, f32, i64
from jumar.ir import Graph, constant, interpret, large_constants, param, parse_graph
from jumar.operators import Add, Exp, Fused, Mul, Reshape, Transpose


def small() -> Graph:
    x = param("x", TensorType((2, 3), f32))
    return Graph("small", (x,), (Transpose((1, 0))(Exp()(x)), x), ("y", "a name"))


def test_a_graph_prints_one_line_a_node_and_parses_back():
    text = "graph small(%x: f32[2, 3]):\n  %1: f32[2, 3] = exp %x\n  %2: f32[3, 2] = transpose(perm=(1, 0)) %1\n  return %2 %x  as ['y', 'a name']\n"
    assert text == str(small())
    assert text == str(parse_graph(text))


SMALL = (
    np.float32(1.5),
    np.zeros((0, 3), np.float32),
    np.arange(4),
    np.array(True),
    np.array([np.nan, np.inf, -np.inf]),
    np.array(["a b", "%c"], object),
)


@pytest.mark.parametrize("value", SMALL)
def test_small_constants_are_part_of_the_text(value):
    graph = Graph("g", (), (constant(value),))
    back = interpret(parse_graph(str(graph)), [])[0]
    np.testing.assert_array_equal(np.asarray(value), back)
    assert np.asarray(value).shape == back.shape


def test_narrow_floats_keep_their_bits_through_the_text():
    graph = Graph("g", (), (constant([0.1, 3.0], bf16),))
    np.testing.assert_array_equal(interpret(graph, [])[0], interpret(parse_graph(str(graph)), [])[0])


def test_large_constants_are_named_by_digest_and_given_beside_the_text():
    graph = Graph("g", (), (constant(np.arange(100)),))
    with pytest.raises(IRError, match="must be among the arrays given"):
        parse_graph(str(graph))
    np.testing.assert_array_equal(np.arange(100), interpret(parse_graph(str(graph), large_constants(graph)), [])[0])


def test_sub_graphs_are_printed_first_and_referred_to_by_name():
    a, b = param("a", TensorType((3,), f32)), param("b", TensorType((3,), f32))
    body = Graph("fused_0", (a, b), (Mul()(Add()(a, b), b),))
    x = param("x", TensorType((3,), f32))
    graph = Graph("g", (x,), (Fused(body)(x, x),))
    assert str(graph) == str(parse_graph(str(graph)))
    assert "fused(body=@fused_0) %x %x" in str(graph)


def test_places_survive_the_text():
    text = "graph g(%x: f32[2]):\n  %1: f32[2] = exp %x  # model.onnx   /layer/Exp\n  return %1\n"
    assert text == str(parse_graph(text))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "must hold a graph"),
        ("graph g(%x: f32[2]):\n  %1: f32[2] = exp %y\n  return %1", "%y must be defined before it is read"),
        ("graph g(%x: f32[2]):\n  %1: f32[3] = exp %x\n  return %1", "type must be f32\\[2\\], as inferred"),
        ("graph g(%x: f32[2]):\n  %1: f32[2] = exq %x\n  return %1", "did you mean exp"),
        ("graph g(%x: f32[2]):\n  %1: f32[2] = transpose(perm=(0,) %x\n  return %1", "must be"),
        ("graph g(%x: f32[2]):\n  %1: f32[2] = exp %x", "must end with `return`"),
        ("hello", "must begin with"),
    ],
)
def test_broken_text_is_refused_with_a_reason(text, words):
    with pytest.raises(IRError, match=words):
        parse_graph(text)


def test_reshape_of_a_parameter_named_with_odd_characters_parses_back():
    x = param("input 0/x:1", TensorType((2, 3), i64))
    graph = Graph("g", (x,), (Reshape((3, 2))(x),))
    assert str(graph) == str(parse_graph(str(graph)))
