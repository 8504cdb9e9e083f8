"""Graphs: order, users, rules and the interpreter."""

import numpy as np
import pytest

from jumar.base import IRError, OpError, TensorType, f32, i64
from jumar.ir import Graph, Node, constant, interpret, param, rewrite, same_node
from jumar.operators import Add, Exp, Log, Neg


def test_nodes_come_before_their_users_and_dead_ones_fall_away():
    x = param("x", TensorType((2,), f32))
    y = Exp()(x)
    Neg()(y)  # nobody reads it
    graph = Graph("g", (x,), (Add()(y, y),))
    assert ["param", "exp", "add"] == [n.op.name for n in graph.nodes]
    assert 2 == len(graph.users[y])


def test_a_graph_may_be_ten_thousand_nodes_deep():
    node = x = param("x", TensorType((1,), f32))
    for _ in range(10_000):
        node = Neg()(node)
    np.testing.assert_array_equal([1.0], interpret(Graph("deep", (x,), (node,)), [np.ones(1, np.float32)])[0])


def exp_of_log(node: Node) -> Node | None:
    match node:
        case Node(op=Exp(), inputs=(Node(op=Log(), inputs=(x,)),)):
            return x
    return None


def test_a_rule_applies_until_nothing_changes():
    x = param("x", TensorType((2,), f32))
    graph, hits = rewrite(Graph("g", (x,), (Exp()(Log()(Exp()(Log()(x)))),)), [exp_of_log])
    assert (x,) == graph.outputs
    assert {"exp_of_log": 2} == dict(hits)


def test_a_rule_that_changes_the_type_is_our_bug():
    x = param("x", TensorType((2,), f32))
    with pytest.raises(IRError, match="this is our bug"):
        rewrite(Graph("g", (x,), (Neg()(x),)), [lambda n: constant(1) if isinstance(n.op, Neg) else None])


def test_inputs_that_do_not_fit_are_an_error_of_the_operator():
    with pytest.raises(OpError, match="shapes must broadcast, got \\[2\\] and \\[3\\]"):
        Add()(param("x", TensorType((2,), f32)), param("y", TensorType((3,), f32)))
    with pytest.raises(OpError, match="one element type"):
        Add()(param("x", TensorType((2,), f32)), param("y", TensorType((2,), i64)))


def test_the_interpreter_refuses_other_types_than_the_graphs():
    x = param("x", TensorType((2,), f32))
    with pytest.raises(IRError, match="must be f32\\[2\\], got f64\\[2\\]"):
        interpret(Graph("g", (x,), (Neg()(x),)), [np.ones(2)])


def test_a_node_on_the_same_inputs_is_itself():
    x = param("x", TensorType((2,), f32))
    node = Neg()(x)
    assert node is same_node(node, (x,))
