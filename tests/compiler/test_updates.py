"""Outputs that replace inputs: what is computed, what is returned and what the inputs hold afterwards, whatever the graph."""

import random

import numpy as np
import pytest

from jumar.base import IRError, RuntimeFault
from jumar.compiler import compile
from jumar.compiler.order import order_works
from jumar.ir import Graph, Sample, constant, f32t, interpret, param, parse_graph
from jumar.operators import Add, Concat, Det, MatMul, Mul, ReduceSum, Relu, Reshape, Slice, Sub, Tanh, Transpose
from jumar.runtime import dump, load


@pytest.fixture(autouse=True)
def _cache(tmp_path_factory, monkeypatch):
    monkeypatch.setenv("JUMAR_CACHE_DIR", str(tmp_path_factory.getbasetemp() / "cache"))


def check(graph, seed=0, runs=3, bound=False):
    """Runs a graph some times, each on what the run before left; inputs that are not updated keep their values."""
    compiled = compile(graph)
    instance = compiled.instance(threads=2)
    arrays = [a.copy() for a in Sample(tuple(p.type for p in graph.params)).arrays(seed)]
    state = [a.copy() for a in arrays]
    call = instance.bind(arrays) if bound else lambda: instance.run(arrays)
    for _ in range(runs):
        expected = interpret(graph, state)
        actual = call()
        for e, a in zip(expected, actual, strict=True):
            np.testing.assert_allclose(a, e, rtol=1e-4, atol=1e-4)
        for output, target in graph.updates:
            assert actual[output] is arrays[target]
            state[target] = np.array(expected[output])
        for array, value in zip(arrays, state, strict=True):
            np.testing.assert_allclose(array, value, rtol=1e-4, atol=1e-4)
    return compiled


def parameters(count, shape=(4, 6)):
    return tuple(param(f"p{i}", f32t(*shape)) for i in range(count))


def sgd(count=3):
    """A perceptron and its step: the backward pass reads old weights after gradients of later layers are known."""
    x, ws = param("x", f32t(5, 6)), [param(f"w{i}", f32t(6, 6)) for i in range(count)]
    values = [x]
    for w in ws:
        values.append(Tanh()(MatMul()(values[-1], w)))
    loss, dy, new = ReduceSum()(values[-1]), values[-1], []
    for w, v in zip(reversed(ws), reversed(values[:-1]), strict=True):
        dw = MatMul()(Transpose((1, 0))(v), dy)
        new.append(Sub()(w, Mul()(dw, constant(np.float32(0.125)))))
        dy = MatMul()(dy, Transpose((1, 0))(w))
    outputs = (loss, *reversed(new), ReduceSum()(dy))
    return Graph("sgd", (x, *ws), outputs, (), tuple((i + 1, i + 1) for i in range(count)))


def test_weights_are_written_in_place_after_the_last_gradient_has_read_them():
    compiled = check(sgd())
    assert compiled.lowering is not None
    assert len(compiled.lowering.updates) == 3
    assert all(v[0].op.name != "identity" for v in compiled.lowering.updates)


def test_two_inputs_are_swapped():
    a, b = parameters(2)
    check(Graph("swap", (a, b), (b, a), (), ((0, 0), (1, 1))))


def test_three_inputs_go_round():
    a, b, c = parameters(3)
    check(Graph("round", (a, b, c), (b, c, a), (), ((0, 0), (1, 1), (2, 2))))


def test_an_input_that_stays_as_it_is():
    a, b = parameters(2)
    check(Graph("same", (a, b), (a, Add()(a, b)), (), ((0, 0),)))
    check(Graph("same", (a, b), (a, a, Add()(a, b)), (), ((0, 0), (2, 1))))


def test_the_old_value_is_an_output_too():
    a, b = parameters(2)
    check(Graph("old", (a, b), (a, Add()(a, b)), (), ((1, 0),)))


def test_the_new_value_is_read_by_others_and_returned_twice():
    a, b = parameters(2)
    new = Add()(a, b)
    check(Graph("twice", (a, b), (new, new, Mul()(new, a), ReduceSum()(MatMul()(new, Transpose((1, 0))(new)))), (), ((0, 0), (1, 1))))


def test_views_of_inputs_and_of_results():
    a, b = parameters(2)
    flat = Reshape((24,))(a)
    new = Reshape((4, 6))(Add()(flat, Reshape((24,))(Transpose((1, 0))(Reshape((6, 4))(b)))))
    check(Graph("views", (a, b), (new, Transpose((1, 0))(a), Slice((1, 0), (3, 6), (1, 1))(b)), (), ((0, 0),)))
    c = param("c", f32t(24))
    check(Graph("reshaped", (a, c), (Reshape((4, 6))(c), Reshape((24,))(a)), (), ((0, 0), (1, 1))))


def test_a_concatenation_replaces_an_input_that_its_pieces_read():
    a, b = parameters(2)
    upper, lower = Slice((0, 0), (2, 6), (1, 1))(a), Slice((2, 0), (4, 6), (1, 1))(a)
    check(Graph("concat", (a, b), (Concat(0)(Relu()(lower), Tanh()(upper)), Add()(a, b)), (), ((0, 0),)))


def test_constants_and_numbers():
    a, b = parameters(2, ())
    check(Graph("counter", (a, b), (Add()(a, constant(np.float32(1))), constant(np.float32(3))), (), ((0, 0), (1, 1))))


def test_host_steps_read_old_values_and_write_new_ones():
    x, y = param("x", f32t(3, 3)), param("y", f32t())
    new = Add()(x, constant(np.eye(3, dtype=np.float32)))
    compiled = check(Graph("host", (x, y), (new, Det()(x), Add()(Det()(new), y)), (), ((0, 0), (1, 1))))
    assert len(compiled.program.host_steps) == 2
    twice = check(Graph("host", (x, y), (Det()(x), new), (), ((0, 1), (1, 0))), bound=True)
    assert len(twice.program.host_steps) == 1


@pytest.mark.parametrize("seed", range(40))
def test_random_graphs_with_random_updates(seed):
    rng = random.Random(seed)
    params = parameters(rng.randint(1, 4), (4, 4))
    values = list(params)
    for _ in range(rng.randint(1, 14)):
        a, b = rng.choice(values), rng.choice(values)
        made = rng.choice(
            [
                Add(),
                Sub(),
                lambda a, b: Tanh()(MatMul()(a, b)),
                lambda a, b: Transpose((1, 0))(a),
                lambda a, b: Reshape((4, 4))(Tanh()(Reshape((16,))(a))),
                lambda a, b: Concat(0)(Slice((0, 0), (2, 4), (1, 1))(a), Slice((1, 0), (3, 4), (1, 1))(b)),
                lambda a, b: Mul()(a, constant(np.float32(0.5))),
                lambda a, b: Relu()(b),
            ]
        )
        values.append(made(a, b))
    outputs = tuple(rng.choice(values) for _ in range(rng.randint(1, 6)))
    count = rng.randint(1, min(len(outputs), len(params)))
    updates = tuple(zip(rng.sample(range(len(outputs)), count), rng.sample(range(len(params)), count), strict=True))
    check(Graph("random", params, outputs, (), updates), seed, bound=seed % 2 == 0)


def test_updates_are_part_of_the_text_and_of_the_file():
    graph = sgd()
    assert parse_graph(str(graph)).updates == graph.updates == ((1, 1), (2, 2), (3, 3))
    program = compile(graph).program
    assert load(dump(program)) == program
    assert load(dump(program)).updates == graph.updates
    assert "in place" in str(program)


def test_an_update_must_fit():
    a, b = param("a", f32t(2)), param("b", f32t(3))
    with pytest.raises(IRError, match="keep the type"):
        Graph("g", (a, b), (a,), (), ((0, 1),))
    with pytest.raises(IRError, match="once"):
        Graph("g", (a, b), (a, a), (), ((0, 0), (1, 0)))
    with pytest.raises(IRError, match="lie within"):
        Graph("g", (a, b), (a,), (), ((1, 0),))


def test_an_input_that_is_written_must_be_the_callers_own():
    a, b = parameters(2)
    instance = compile(Graph("add", (a, b), (Add()(a, b),), (), ((0, 0),))).instance(threads=1)
    x, y = np.ones((4, 6), np.float32), np.ones((4, 6), np.float32)
    frozen = np.ones((4, 6), np.float32)
    frozen.flags.writeable = False
    for bad in (frozen, np.ones((6, 4), np.float32).T):
        with pytest.raises(RuntimeFault, match="not contiguous or read-only"):
            instance.run([bad, y])
        with pytest.raises(RuntimeFault, match="not contiguous or read-only"):
            instance.bind([bad, None])
    for _ in range(2):
        with pytest.raises(RuntimeFault, match="share no memory with another, got p0 and p1"):
            instance.run([x, x])
    long = np.ones(40, np.float32)
    with pytest.raises(RuntimeFault, match="share no memory"):
        instance.run([long[:24].reshape(4, 6), long[16:].reshape(4, 6)])
    assert instance.run([x, y])[0] is x
    with pytest.raises(RuntimeFault, match="must be written into input p0"):
        instance.run([x, y], out=[np.ones((4, 6), np.float32)])
    assert instance.run([x, y], out=[x])[0] is x
    np.testing.assert_array_equal(x, np.full((4, 6), 3, np.float32))


def test_bound_inputs_stay_and_the_others_are_given():
    a, b = parameters(2)
    instance = compile(Graph("add", (a, b), (Add()(a, b), Mul()(a, b)), (), ((0, 0),))).instance(threads=1)
    x, y = np.ones((4, 6), np.float32), np.full((4, 6), 2, np.float32)
    call = instance.bind([x, None])
    new, product = call(y)
    assert new is x
    np.testing.assert_array_equal(product, y)
    np.testing.assert_array_equal(x, y + 1)
    with pytest.raises(RuntimeFault, match="share no memory"):
        call(x)
    call(np.asfortranarray(y))
    np.testing.assert_array_equal(x, y + 3)
    other = np.zeros((4, 6), np.float32)
    call.put(0, other)
    assert call(y)[0] is other
    np.testing.assert_array_equal(other, y)
    np.testing.assert_array_equal(x, y + 3)
    with pytest.raises(RuntimeFault, match="given at each call"):
        call.put(1, y)
    with pytest.raises(RuntimeFault, match="1 inputs"):
        call()


def test_order_demotes_what_goes_in_a_circle_and_nothing_else():
    # work 0 reads p and writes v; work 1 reads v and q and writes w; v replaces q, w replaces p
    touches = [[("p", False), ("v", True)], [("v", False), ("q", False), ("w", True)]]
    assert order_works(touches, {"v": "q"}, set()).copied == {"v"}
    assert order_works(touches, {"w": "p"}, set()).copied == frozenset()
    assert order_works(touches, {"w": "q"}, {(1, "w")}).copied == frozenset()
    assert order_works(touches, {"w": "q"}, set()).copied == {"w"}


def test_an_optimiser_of_500_parameters_is_ordered_in_linear_time():
    touches = [[(f"p{i}", False), (f"g{i}", False), (f"n{i}", True)] for i in range(2000)] + [[(f"p{i}", False)] for i in range(2000)]
    order = order_works(touches, {f"n{i}": f"p{i}" for i in range(2000)}, {(i, f"n{i}") for i in range(2000)})
    assert not order.copied
    assert sorted(order.works) == list(range(4000))
    assert all(order.works.index(2000 + i) < order.works.index(i) for i in range(0, 2000, 97))
