"""What training keeps: the backward half as a trace, recomputed blocks, and what stands beside them, to the byte."""

from dataclasses import replace

import pytest
from tests.compiler.graphs import residual_net, transformer

from jumar.base import CompileError, TensorType, i32
from jumar.compiler.twin.memory_trace import for_memory, needs_of, peak_nbytes, spans
from jumar.compiler.twin.train_memory import (
    OPTIMIZERS,
    Training,
    blocks_of,
    both_halves,
    recomputed,
    standing,
    traffic_again,
    training_trace,
)
from jumar.ir import Graph, f32t, param
from jumar.operators import Gather, Gelu, LayerNorm, MatMul, ReduceSum, Relu, Softmax

MIB = 1 << 20


def mlp(layers=8, batch=64, width=32):
    """Products and rectifiers, with weights as parameters."""
    x = param("x", f32t(batch, width))
    weights = [param(f"w{i}", f32t(width, width)) for i in range(layers)]
    y = x
    for w in weights:
        y = Relu()(MatMul()(y, w))
    return Graph("mlp", (x, *weights), (ReduceSum(())(y),)), weights


def is_right(trace):
    """Every value is made before it is read, and once."""
    made = set()
    for work in trace.works:
        assert all(v in made for v in work.reads if v in trace.makers), work
        assert not made & set(work.writes)
        made |= set(work.writes)
    return all(n < i for i, needs in enumerate(needs_of(trace)) for n in needs)


def test_what_a_chain_keeps_is_each_layers_input():
    graph, weights = mlp()
    trace = training_trace(both_halves(graph, weights), Training("sgd"))
    assert is_right(trace)
    one = 64 * 32 * 4
    turn = max(i for i, w in enumerate(trace.works) if not w.backward)
    kept = {v: s for v, s in spans(trace).items() if s[0] <= turn < s[1]}
    assert sum(trace.values[v].nbytes for v in kept) == 8 * one + 4, (
        "and the loss: a rectifier's result is the next layer's input; x is an input"
    )


def test_weights_of_an_inference_graph_are_its_constants():
    for graph in (residual_net(), transformer()):
        halves = both_halves(graph)
        assert {w.type for w in halves.weights} <= {n.type for n in graph.nodes}
        assert len(halves.gradients) == len(set(halves.gradients)) > 0
        assert [g.type for g in halves.graph.outputs[len(graph.outputs) :]] == [w.type for w in halves.weights]
        assert is_right(training_trace(halves, Training()))


def test_gradients_that_are_kept_stand_together_at_the_end():
    graph, weights = mlp(layers=20, batch=1, width=64)
    halves = both_halves(graph, weights)
    used, kept = (for_memory(training_trace(halves, Training("sgd", keep_gradients=keep))) for keep in (False, True))
    all_gradients = 20 * 64 * 64 * 4
    assert peak_nbytes(kept) >= all_gradients > 5 * peak_nbytes(used)


def test_sums_over_steps_take_gradients_up_as_they_come():
    assert Training(amp="O2").keeps_gradients and Training(data=2).keeps_gradients
    assert not Training().keeps_gradients and not Training(amp="O2", accumulate=2).keeps_gradients
    assert Training(keep_gradients=True).keeps_gradients


@pytest.mark.parametrize("count", [2, 3, 5, 30])
def test_recomputed_blocks_need_less_and_compute_more(count):
    graph, weights = mlp(layers=24)
    trace = training_trace(both_halves(graph, weights), Training())
    again = training_trace(both_halves(graph, weights), Training(recompute=count))
    assert is_right(again) and is_right(for_memory(again))
    assert len(trace.works) < len(again.works) <= len(trace.works) + 48
    assert peak_nbytes(for_memory(again)) < 0.75 * peak_nbytes(trace)


def test_the_square_root_of_the_layers_is_about_the_best_number_of_blocks():
    graph, weights = mlp(layers=64)
    halves = both_halves(graph, weights)
    peaks = {n: peak_nbytes(for_memory(training_trace(halves, Training(recompute=n)))) for n in (1, 2, 8, 32, 64)}
    assert min(peaks, key=peaks.get) == 8
    assert peaks[8] < 0.3 * peaks[1]


def test_what_is_cheap_is_made_again_from_what_is_kept():
    """Of gelu(norm(x)) the inputs are kept, both results are not; products are never done again."""
    x, scale, bias, w = param("x", f32t(64, 32)), param("s", f32t(32)), param("b", f32t(32)), param("w", f32t(32, 32))
    y = x
    for _ in range(6):
        y = MatMul()(Gelu()(LayerNorm(-1)(MatMul()(y, w), scale, bias)), w)
    halves = both_halves(Graph("g", (x, scale, bias, w), (ReduceSum(())(y),)), [scale, bias, w])
    dear, cheap = (for_memory(training_trace(halves, Training("sgd", cheap=c))) for c in (False, True))
    assert is_right(cheap)
    assert peak_nbytes(cheap) < 0.65 * peak_nbytes(dear)
    again = [work for work in cheap.works if work.label.endswith("(again)")]
    assert again and all(work.cheap for work in again)
    assert 0 < traffic_again(cheap) < 0.5 and traffic_again(dear) == 0


@pytest.mark.parametrize("options", [{"cheap": True}, {"recompute": 2}])
def test_traces_of_networks_stay_right_when_values_are_made_again(options):
    for graph in (residual_net(), transformer()):
        trace = training_trace(both_halves(graph), Training(**options))
        assert is_right(trace) and is_right(for_memory(trace))


def test_blocks_are_cut_where_little_is_handed_on():
    trace = training_trace(both_halves(transformer()), Training())
    cuts = blocks_of(trace, 3)
    assert cuts == sorted(set(cuts)) and len(cuts) == 2
    assert recomputed(trace, 1).works == trace.works


def test_amp_halves_values_and_keeps_the_loss():
    graph, weights = mlp()
    halves = both_halves(graph, weights)
    whole, half = (training_trace(halves, Training("sgd", amp=amp, keep_gradients=False)) for amp in ("O0", "O2"))
    assert 0.45 < peak_nbytes(half) / peak_nbytes(whole) < 0.6
    part = training_trace(halves, Training("sgd", amp="O1", keep_gradients=False))
    assert peak_nbytes(half) < peak_nbytes(part) <= peak_nbytes(whole)


@pytest.mark.parametrize("optimizer, state", [("sgd", 0), ("momentum", 4), ("adam", 8), ("adamw", 8), ("lamb", 8)])
def test_what_stands_in_fp32_is_weights_and_state(optimizer, state):
    weights = [f32t(1000, 1000), f32t(1000), TensorType((5,), i32)]
    found = {s.kind: s.nbytes for s in standing(weights, Training(optimizer))}
    assert found.get("state", 0) == 1_001_000 * state
    assert found["weight"] == 1_001_000 * 4 + 20


def test_what_stands_with_amp_and_devices():
    weights = [f32t(1024, 1024)]
    n = MIB

    def parts(**options):
        return {s.kind: s.nbytes for s in standing(weights, Training("adamw", **options))}

    assert parts(amp="O2") == {"weight": 4 * n, "copy": 2 * n, "state": 8 * n}, "an fp32 master, its fp16 copy, two moments"
    assert parts(amp="O3") == {"weight": 2 * n, "state": 4 * n}
    assert parts(data=8, shard=1) == {"weight": 4 * n, "state": n}
    assert parts(data=8, shard=2, accumulate=4) == {"weight": 4 * n, "state": n, "gradient": n // 2}
    assert parts(data=8, shard=3) == {"weight": n // 2, "state": n}
    assert parts(tensor=4) == {"weight": n, "state": 2 * n}
    assert parts(accumulate=2) == {"weight": 4 * n, "state": 8 * n, "gradient": 4 * n}


def test_tensor_parallel_divides_what_lies_inside_a_layer():
    halves = both_halves(transformer())
    assert peak_nbytes(training_trace(halves, Training(tensor=4))) < peak_nbytes(training_trace(halves, Training()))


def test_communicators_follow_from_the_devices():
    assert [t.communicators for t in (Training(), Training(data=8), Training(data=8, tensor=2))] == [0, 1, 2]
    assert Training(data=4, tensor=2).devices == 8


@pytest.mark.parametrize(
    "options, said",
    [
        ({"optimizer": "adan"}, "optimizer must be one of"),
        ({"amp": "O4"}, "amp must be one of"),
        ({"shard": 4}, "shard must be 0, 1, 2 or 3"),
        ({"shard": 1}, "shard must be 0 where one device holds the batch"),
        ({"accumulate": 0}, "accumulate must be 1 or more"),
    ],
)
def test_options_that_cannot_be_say_why(options, said):
    with pytest.raises(CompileError, match=said):
        Training(**options)


def test_a_graph_without_weights_cannot_be_trained():
    x = param("x", f32t(2, 3))
    with pytest.raises(CompileError, match="must have weights"):
        both_halves(Graph("g", (x,), (Softmax(-1)(x),)))
    ids, table = param("ids", TensorType((4,), i32)), param("table", f32t(10, 8))
    assert len(both_halves(Graph("g", (ids, table), (Gather(0)(table, ids),)), [table]).weights) == 1


def test_options_are_plain_values():
    assert replace(Training(), recompute=3) == Training(recompute=3)
    assert set(OPTIMIZERS) >= {"sgd", "momentum", "adam", "adamw"}
