"""Graphs as traces of memory: what is a view, when values are alive, orders that need less, and bounds that hold for every order."""

import itertools
import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jumar.compiler.plan import plan
from jumar.compiler.twin.memory_trace import (
    Trace,
    Value,
    Work,
    bound_of_any_order,
    by_levels,
    for_memory,
    live_nbytes,
    lives_of,
    needs_of,
    peak_nbytes,
    reordered,
    spans,
    trace_of,
)
from jumar.ir import Graph, constant, f32t, param
from jumar.operators import Broadcast, MatMul, ReduceSum, Relu, Reshape, Softmax, Transpose, add, mul, sub


def random_trace(seed: int, works: int) -> Trace:
    """Works that read values of earlier ones; the last values are wanted."""
    r = random.Random(seed)
    values = [Value(r.choice([1, 2, 5, 10, 50]), "activation") for _ in range(works)]
    made = [Work(tuple(sorted(r.sample(range(i), min(i, r.choice([0, 1, 1, 2]))))), (i,)) for i in range(works)]
    return Trace(tuple(values), tuple(made), frozenset({works - 1} if works else ()))


def valid(trace: Trace) -> bool:
    """Whether every work comes after those that it needs."""
    return all(n < i for i, needs in enumerate(needs_of(trace)) for n in needs)


def orders(trace: Trace):
    """Every order that is right."""
    needs = needs_of(trace)
    for order in itertools.permutations(range(len(needs))):
        place = {w: i for i, w in enumerate(order)}
        if all(place[n] < place[w] for w in order for n in needs[w]):
            yield order


@given(st.integers(0, 10**6), st.integers(0, 30))
@settings(max_examples=80, deadline=None)
def test_orders_are_right_and_no_order_beats_the_bound(seed, works):
    trace = random_trace(seed, works)
    for other in (for_memory(trace), by_levels(trace)):
        assert valid(other)
        assert sorted(v for w in other.works for v in w.writes) == sorted(trace.makers)
        assert bound_of_any_order(trace) <= peak_nbytes(other)
    assert bound_of_any_order(trace) <= peak_nbytes(trace)


@pytest.mark.parametrize("seed", range(12))
def test_the_bound_holds_for_every_order_there_is_and_the_memory_order_is_near_the_best(seed):
    trace = random_trace(seed, 7)
    peaks = [peak_nbytes(reordered(trace, order, "")) for order in orders(trace)]
    assert bound_of_any_order(trace) <= min(peaks)
    assert peak_nbytes(for_memory(trace)) <= max(peaks)
    assert peak_nbytes(for_memory(trace)) <= 2 * min(peaks)


def test_views_take_no_memory_and_keep_their_source_alive():
    x, w = param("x", f32t(4, 8)), param("w", f32t(8, 8))
    y = Relu()(x)
    z = MatMul()(Reshape((4, 8))(y), Transpose((1, 0))(w))
    out = add(z, Broadcast((4, 8))(ReduceSum((1,), keepdims=True)(y)))
    traced = trace_of(Graph("g", (x, w), (out,)))
    assert [w.label for w in traced.trace.works] == ["relu", "matmul", "reduce_sum", "add"]
    (value,) = traced.value_of[y]
    assert spans(traced.trace)[value] == (0, 2)
    assert traced.trace.standing_nbytes == x.type.nbytes + w.type.nbytes


def test_a_product_and_its_bias_are_one_kernel():
    x, w, b = param("x", f32t(4, 8)), param("w", f32t(8, 8)), param("b", f32t(8))
    y = Relu()(add(MatMul()(x, w), b))
    trace = trace_of(Graph("g", (x, w, b), (y,))).trace
    assert [work.label for work in trace.works] == ["matmul + bias", "relu"]
    assert len(trace.works[0].reads) == 3


def test_a_bias_stays_apart_where_the_product_is_read_elsewhere():
    x, w, b = param("x", f32t(4, 8)), param("w", f32t(8, 8)), param("b", f32t(8))
    m = MatMul()(x, w)
    trace = trace_of(Graph("g", (x, w, b), (mul(add(m, b), m),))).trace
    assert [work.label for work in trace.works] == ["matmul", "add", "mul"]


def test_an_update_in_place_takes_no_memory_and_waits_for_readers_of_the_old_value():
    x, w = param("x", f32t(8, 8)), param("w", f32t(8, 8))
    new = sub(w, Relu()(x))
    y = MatMul()(x, w)
    trace = trace_of(Graph("g", (x, w), (new, y), updates=((0, 1),))).trace
    labels = [work.label for work in trace.works]
    assert labels.index("matmul") < labels.index("sub")
    assert trace.values[trace.works[labels.index("sub")].writes[0]].nbytes == 0
    assert valid(for_memory(trace))
    again = for_memory(trace)
    assert [w.label for w in again.works].index("matmul") < [w.label for w in again.works].index("sub")


def test_an_update_that_a_reader_of_the_old_value_waits_for_is_a_copy():
    w = param("w", f32t(8, 8))
    new = mul(w, constant(np.float32(2)))
    trace = trace_of(Graph("g", (w,), (new, MatMul()(new, w)), updates=((0, 0),))).trace
    assert trace.values[trace.works[0].writes[0]].nbytes == w.type.nbytes


def test_live_bytes_and_lives_agree_with_the_plan():
    x = param("x", f32t(16, 128))
    y = x
    for _ in range(5):
        y = Softmax(-1)(Relu()(y))
    trace = trace_of(Graph("g", (x,), (y,))).trace
    assert max(live_nbytes(trace)) == plan(lives_of(trace)).bound == peak_nbytes(trace) == 2 * x.type.nbytes
    assert lives_of(trace, 512, 32)[0].nbytes == x.type.nbytes + 512
    assert trace.total_nbytes == 10 * x.type.nbytes


def test_gradients_are_used_up_early_in_the_memory_order():
    """Two chains of which one can be used up at once: the order that alternates needs half."""
    values = tuple(Value(10, "gradient") for _ in range(6))
    makes = tuple(Work((), (i,)) for i in range(6))
    uses = tuple(Work((i,), ()) for i in range(6))
    trace = Trace(values, makes + uses)
    assert (peak_nbytes(trace), peak_nbytes(for_memory(trace))) == (60, 10)
