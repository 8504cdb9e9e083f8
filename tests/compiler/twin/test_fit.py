"""The verdict: batches are found without building them all, and what is offered does fit."""

from dataclasses import replace

import numpy as np
import pytest
from tests.compiler.npu import zoo

from jumar.base import CompileError
from jumar.compiler.passes.precision import Precision
from jumar.compiler.twin.fit import at_batch, fit, samples_of
from jumar.compiler.twin.forecast import TwinOptions, forecast
from jumar.compiler.twin.memory import training_memory
from jumar.compiler.twin.memory_trace import peak_nbytes, trace_of
from jumar.compiler.twin.train_memory import Training, both_halves
from jumar.device.npu.chip import find_chip
from jumar.ir import Graph, constant, f32t, interpret, param
from jumar.operators import Broadcast, Concat, Conv, MatMul, ReduceMean, Relu, Reshape, Softmax, Transpose, add

CHIP = find_chip("Ascend910B4")


def number(*shape):
    return constant(np.ones(shape, np.float32))


def cnn(batch, classes=10):
    x = param("x", f32t(batch, 3, 32, 32))
    y = Relu()(Conv((2, 2), (1, 1), (1, 1), (1, 1), 1)(x, number(16, 3, 3, 3), number(16)))
    flat = Reshape((batch, 16 * 16 * 16))(y)
    return Graph("cnn", (x,), (Softmax(-1)(MatMul()(flat, number(16 * 16 * 16, classes))),))


def attention(batch, length=8, width=16):
    x = param("x", f32t(batch, length, width))
    token = Broadcast((batch, 1, width))(number(1, 1, width))
    y = Concat(1)(token, x)
    rows = Reshape((batch * (length + 1), width))(y)
    q = Reshape((batch, length + 1, width))(MatMul()(rows, number(width, width)))
    scores = Softmax(-1)(MatMul()(q, Transpose((0, 2, 1))(q)))
    return Graph("attention", (x,), (ReduceMean((1,))(add(MatMul()(scores, y), y)),))


@pytest.mark.parametrize("build", [cnn, attention])
@pytest.mark.parametrize("other", [2, 12, 96])
def test_a_graph_at_another_batch_is_the_one_that_would_have_been_built(build, other):
    made = at_batch(build(6), 6, other)
    assert made is not None
    graph, _ = made
    expected = build(other)
    assert [n.type for n in graph.nodes] == [n.type for n in expected.nodes]
    rng = np.random.default_rng(0)
    arrays = [rng.standard_normal(p.type.dims).astype(np.float32) for p in expected.params]
    np.testing.assert_allclose(interpret(graph, arrays)[0], interpret(expected, arrays)[0], rtol=1e-5)


def test_a_graph_whose_constants_hold_the_batch_cannot_be_made_at_another():
    x = param("x", f32t(6, 4))
    assert at_batch(Graph("g", (x,), (add(x, number(6, 4)),)), 6, 12) is None


def test_the_batch_is_the_first_dimension_that_most_inputs_share():
    a, b, w = param("a", f32t(4, 3)), param("b", f32t(4, 7)), param("w", f32t(9, 9))
    graph = Graph("g", (a, b, w), (a, b, w))
    assert samples_of(graph) == 4 and samples_of(graph, (a, b)) == 9


@pytest.mark.parametrize("training", [Training(), Training(amp="O2"), Training(recompute=2)])
def test_other_batches_are_counted_as_if_they_had_been_built(training):
    """The search's bytes at a batch against the plan of the graph that has it."""
    from jumar.compiler.twin.fit import _Scaled, _Search

    scaled = _Scaled.of(attention(4, 128, 256), 4, None, None, None, [])
    search = _Search(scaled, CHIP, "mindspore", 200 << 20)
    for batch in (1, 4, 9, 64):
        exact = training_memory(both_halves(attention(batch, 128, 256)), CHIP, training)
        assert search.needed(training, batch) == pytest.approx(exact.needed_nbytes, rel=0.03)


def big(batch, layers=10, width=4096):
    """A network of wide layers: one GiB of weights, and one of values at 4096 samples."""
    x = param("x", f32t(batch, width))
    weights = [param(f"w{i}", f32t(width, width)) for i in range(layers)]
    y = x
    for w in weights:
        y = Relu()(MatMul()(y, w))
    return Graph("big", (x, *weights), (ReduceMean(())(y),)), weights


def test_a_model_that_fits_says_the_largest_batch_and_that_one_fits():
    graph, weights = big(64)
    found = fit(graph, CHIP, Training(), weights=weights)
    assert found.fits and not found.ways and found.batch == 64
    for batch, fits in ((found.largest_batch, True), (int(found.largest_batch * 1.02), False)):
        other, others = big(batch)
        assert training_memory(both_halves(other, others), CHIP, Training()).fits is fits


def test_a_model_that_does_not_fit_is_offered_ways_that_do():
    graph, weights = big(400_000)
    found = fit(graph, CHIP, Training("adamw"), weights=weights)
    assert not found.fits and found.ways and "fits with what is named below" in found.text
    for way in found.ways:
        assert way.needed_nbytes <= found.usable_nbytes
        other, others = big(way.batch)
        memory = training_memory(both_halves(other, others), CHIP, way.training)
        assert memory.needed_nbytes == pytest.approx(way.needed_nbytes, rel=0.03), way.what
    assert any(way.training.accumulate > 1 and way.samples == 400_000 for way in found.ways)
    assert [w.slower for w in found.ways] == sorted(w.slower for w in found.ways)


def test_a_model_whose_weights_alone_are_too_much_is_cut_over_devices_or_does_not_fit():
    graph, weights = big(8, layers=48, width=8192)  # 12 GiB of weights, 24 of state
    found = fit(graph, CHIP, Training("adamw"), weights=weights)
    assert not found.fits and found.largest_batch == 0
    assert found.ways and all(w.training.devices > 1 for w in found.ways)
    huge, more = big(8, layers=480, width=8192)
    none = fit(huge, CHIP, Training("adamw"), weights=more)
    assert not any(w.training.shard == 1 for w in none.ways)


def test_inference_has_a_verdict_too():
    found = fit(cnn(16), CHIP)
    assert found.fits and found.largest_batch > 1000
    assert "largest batch" in found.text
    much = fit(cnn(1 << 20), CHIP)
    assert not much.fits and much.ways[0].batch == much.largest_batch < 1 << 20
    assert peak_nbytes(trace_of(cnn(much.largest_batch)).trace) < much.usable_nbytes


def test_a_graph_that_cannot_be_scaled_says_that_it_is_counted_so():
    x, label = param("x", f32t(6, 4)), param("y", f32t(6))
    found = fit(Graph("g", (x, label), (ReduceMean(())(add(x, number(6, 4))), label)), CHIP)
    assert any("as if every value grew with it" in note for note in found.notes)


def test_the_batch_can_be_built_by_the_caller():
    graph, weights = big(64)
    found = fit(graph, CHIP, Training(), weights=weights, build=lambda n: big(n)[0])
    assert found.largest_batch == fit(graph, CHIP, Training(), weights=weights).largest_batch


def test_options_change_one_thing_at_a_time():
    assert replace(Training(), amp="O2") != Training()


def test_a_forecasts_memory_is_the_measure_where_it_is_given():
    """What the kernels take, with their formats, and in proportion to it at other batches."""
    graph = zoo("resnet50", 2)
    found = forecast(graph, CHIP, TwinOptions(precision=Precision("must_keep_origin_dtype")))
    verdict = fit(found.graph, CHIP, framework="acl", memory=found.memory)
    assert verdict.needed_nbytes == found.memory.needed_nbytes and verdict.batch == 2
    other = forecast(zoo("resnet50", 64), CHIP, TwinOptions(precision=Precision("must_keep_origin_dtype"))).memory
    each = (other.needed_nbytes - found.memory.needed_nbytes) / 62
    expected = (verdict.usable_nbytes - found.memory.needed_nbytes) / each + 2
    assert verdict.largest_batch == pytest.approx(expected, rel=0.1)


def test_what_cannot_be_trained_says_so():
    x = param("x", f32t(6, 4))
    with pytest.raises(CompileError, match="must have weights"):
        fit(Graph("g", (x,), (Relu()(x),)), CHIP, Training())


def test_a_small_model_takes_any_batch():
    x = param("x", f32t(4, 8))
    found = fit(Graph("tiny", (x,), (Relu()(MatMul()(x, number(8, 8))),)), CHIP)
    assert "the largest batch is more than 1048576 (not searched further)" in found.text
