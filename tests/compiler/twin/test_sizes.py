"""A graph at another batch or length: what grows, and what cannot."""

from __future__ import annotations

import numpy as np

from jumar.base import TensorType, f32
from jumar.compiler.twin.sizes import batch_of, with_batch, with_length
from jumar.ir import Graph, Node, constant, interpret, param
from jumar.operators import Add, Broadcast, Concat, Conv, MatMul, ReduceMean, Relu, Reshape, Softmax, Transpose


def weights(*shape: int) -> Node:
    return constant(np.random.default_rng(sum(shape)).standard_normal(shape, dtype=np.float32))


def block(batch: int) -> Graph:
    """A small vision transformer's start: patches, a class token, heads, back, a mean."""
    x = param("x", TensorType((batch, 3, 8, 8), f32))
    y = Conv((4, 4), (0, 0), (0, 0), (1, 1))(x, weights(6, 3, 4, 4))
    y = Transpose((0, 2, 1))(Reshape((batch, 6, 4))(y))
    token = Broadcast((batch, 1, 6))(weights(1, 1, 6))
    y = Concat(1)(token, y)
    rows = Reshape((batch * 5, 6))(y)
    y = Reshape((batch, 5, 6))(MatMul()(rows, weights(6, 6)))
    heads = Transpose((0, 2, 1, 3))(Reshape((batch, 5, 2, 3))(y))
    y = Reshape((batch, 5, 6))(Transpose((0, 2, 1, 3))(heads))
    return Graph("block", (x,), (ReduceMean((1,))(y),), ("y",))


def test_a_batch_is_followed_through_reshapes_and_tokens() -> None:
    for before, after in ((1, 4), (2, 6)):
        graph = block(before)
        found = with_batch(graph, after)
        assert found is not None
        assert batch_of(graph) == before
        assert batch_of(found) == after
        assert found.outputs[0].shape == (after, *graph.outputs[0].shape[1:])
        x = np.random.default_rng(1).standard_normal((after, 3, 8, 8), dtype=np.float32)
        whole = interpret(found, [x])[0]
        parts = [interpret(graph, [x[i : i + before]])[0] for i in range(0, after, before)]
        np.testing.assert_allclose(whole, np.concatenate(parts), rtol=1e-5)


def test_examples_that_are_mixed_have_no_other_batch() -> None:
    x = param("x", TensorType((2, 3), f32))
    assert with_batch(Graph("mixed", (x,), (ReduceMean((0,))(x),)), 8) is None
    assert with_batch(Graph("same", (x,), (Relu()(x),)), 2) is None


def test_a_length_is_followed_through_heads_and_scores() -> None:
    def attend(rows: int) -> Graph:
        x = param("x", TensorType((2, rows, 6), f32))
        y = Add()(x, constant(np.random.default_rng(3).standard_normal((1, 12, 6), dtype=np.float32)[:, :rows]))
        heads = Transpose((0, 2, 1, 3))(Reshape((2, rows, 3, 2))(MatMul()(y, weights(6, 6))))
        scores = Softmax(3)(MatMul()(heads, Transpose((0, 1, 3, 2))(heads)))
        return Graph("attend", (x,), (Reshape((2, rows, 6))(Transpose((0, 2, 1, 3))(MatMul()(scores, heads))),))

    found = with_length(attend(9), 9, 12)
    assert found is not None
    assert [str(n.type) for n in found.nodes if isinstance(n.op, MatMul | Softmax)] == [
        str(n.type) for n in attend(12).nodes if isinstance(n.op, MatMul | Softmax)
    ]
    assert with_length(attend(9), 5, 8) is None
