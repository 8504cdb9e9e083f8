"""Concatenations of channels: pieces are written where they will stand, and only where that is right."""

import numpy as np
import pytest

from jumar.compiler import compile
from jumar.ir import Graph, Sample, constant, f32t, interpret, param
from jumar.operators import Add, Concat, Conv, ReduceMean, Relu, Reshape, Resize, Sigmoid

X = param("x", f32t(1, 32, 6, 5))


def conv(x, filters=32, seed=0, strides=(1, 1)):
    """A pointwise convolution, channels first, of x."""
    w = np.random.default_rng(seed).normal(size=(filters, x.shape[1], 1, 1)).astype(np.float32) / 4
    return Conv(strides, (0, 0), (0, 0), (1, 1))(x, constant(w))


def check(*outputs, copies):
    """Compiles, compares with the interpreter, and counts the copies that are left."""
    graph = Graph("g", (X,), outputs)
    compiled = compile(graph)
    arrays = Sample((X.type,)).arrays(3)
    instance = compiled.instance(threads=2)
    for _ in range(2):
        for expected, actual in zip(interpret(graph, arrays), instance.run(arrays), strict=True):
            np.testing.assert_allclose(actual, expected, rtol=1e-4, atol=1e-4)
    assert sum(s.name == "concat" for s in compiled.program.steps) == copies
    return compiled


def test_pieces_are_written_into_the_whole():
    a, b = Relu()(conv(X)), Sigmoid()(conv(X, seed=1))
    check(conv(Concat(1)(a, b), 8, seed=2), copies=0)


def test_a_piece_with_a_residual_is_not_written_over_it():
    a = Relu()(conv(X))
    b = Add()(Relu()(conv(a, seed=1)), a)
    check(conv(Concat(1)(b, Relu()(conv(X, seed=2))), 8, seed=3), copies=0)


def test_a_piece_that_others_read_is_copied():
    a = Relu()(conv(X))
    check(conv(Concat(1)(a, Relu()(conv(a, seed=1))), 8, seed=2), copies=1)


def test_a_piece_that_is_an_output_is_copied():
    a = Relu()(conv(X))
    check(a, conv(Concat(1)(a, Relu()(conv(X, seed=1))), 8, seed=2), copies=1)


def test_a_piece_that_comes_twice_is_copied_twice():
    a = Relu()(conv(X))
    check(conv(Concat(1)(a, a), 8, seed=2), copies=2)


@pytest.mark.parametrize("filters", [8, 20])
def test_pieces_of_parts_of_lines_are_copied(filters):
    a, b = Relu()(conv(X, filters)), Relu()(conv(X, filters, seed=1))
    check(conv(Concat(1)(a, b), 8, seed=2), copies=2)


def test_an_enlarged_piece():
    small = Relu()(conv(X, strides=(2, 2)))
    large = Resize((1, 32, 6, 6), (1.0, 1.0, 2.0, 2.0), "nearest", "asymmetric", "floor")(small)
    other = Relu()(conv(Reshape((1, 32, 6, 6))(Concat(3)(X, Sigmoid()(Reshape((1, 32, 6, 1))(ReduceMean((3,), True)(X))))), seed=4))
    check(conv(Concat(1)(large, other), 8, seed=2), copies=2)  # those of the columns, which are along an outer dimension


def test_the_whole_is_an_output():
    check(Concat(3)(Relu()(conv(X)), Relu()(conv(X, seed=1))), Relu()(conv(X, seed=3)), copies=2)  # channels first: rows of 5
