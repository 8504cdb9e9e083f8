"""Runs over parts of the batch: compiled programs compute the same, whatever enters and leaves a run."""

from dataclasses import replace

import numpy as np

from jumar.compiler import compile
from jumar.device import host
from jumar.ir import Graph, Sample, constant, f32t, interpret, param
from jumar.operators import Add, Batchwise, Concat, Conv, Det, Identity, MaxPool, Mul, ReduceMean, Relu, Reshape, Resize

# caches so small that every activation of the tests is long; parts of 2 kB
SMALL = replace(host(), l2_nbytes=256, l3_nbytes=16 << 10, cores=2)


def conv(x, filters, kernel=3, seed=0):
    """A convolution, channels first, of x."""
    w = np.random.default_rng(seed).normal(size=(filters, x.shape[1], kernel, kernel)).astype(np.float32) / 4
    pad = kernel // 2
    return Conv((1, 1), (pad, pad), (pad, pad), (1, 1))(x, constant(w))


def check(graph, runs=1):
    """Compiles for small caches and compares with the interpreter; gives the nodes that run in parts."""
    compiled = compile(graph, SMALL)
    arrays = Sample(tuple(p.type for p in graph.params)).arrays(3)
    for expected, actual in zip(interpret(graph, arrays), compiled.instance(threads=2).run(arrays), strict=True):
        np.testing.assert_allclose(actual, expected, rtol=1e-4, atol=1e-4)
    found = [n.op for n in compiled.graph.nodes if isinstance(n.op, Batchwise)]
    assert len(found) == runs
    return compiled, found


def stem(n=6, size=16):
    """The input and two layers that form a run."""
    x = param("x", f32t(n, 4, size, size))
    return x, Relu()(conv(Relu()(conv(x, 8)), 8, seed=1))


def test_a_result_that_stays_in_the_run_has_one_part_of_memory():
    x, y = stem()
    compiled, (op,) = check(Graph("g", (x,), (ReduceMean((1, 2, 3), False)(conv(y, 4)),)))
    assert op.parts == 6
    whole = 6 * 8 * 16 * 16 * 4
    assert compiled.program.arena_nbytes < whole


def test_a_result_is_read_inside_and_outside_and_is_an_output_too():
    x, y = stem()
    z = Add()(conv(y, 8, seed=2), y)
    check(Graph("g", (x,), (y, ReduceMean((0, 1), False)(z), Reshape((6, 8 * 256))(z))))


def test_inputs_that_all_parts_read_whole():
    x, y = stem()
    scale, shift = param("scale", f32t(1, 8, 1, 1)), param("shift", f32t(16))
    check(Graph("g", (x, scale, shift), (conv(Add()(Mul()(y, scale), shift), 8, seed=3),)))


def test_an_input_that_is_cut_beside_the_image():
    x, y = stem()
    gate = param("gate", f32t(6, 8, 1, 1))
    check(Graph("g", (x, gate), (conv(Mul()(y, gate), 8, seed=3),)))


def test_parts_of_several_examples():
    x, y = stem(12, 4)
    _, (op,) = check(Graph("g", (x,), (conv(y, 8, 1, seed=3),)))
    assert 1 < op.parts < 12


def test_joins_pools_and_resizing_go_with_the_run():
    x, y = stem()
    small = MaxPool((2, 2), (2, 2), (0, 0), (0, 0), (1, 1))(y)
    back = Resize((6, 8, 16, 16), (1.0, 1.0, 2.0, 2.0), "nearest", "asymmetric", "floor")(conv(small, 8, seed=4))
    check(Graph("g", (x,), (conv(Concat(1)(y, back), 8, seed=5),)))


def test_an_operator_between_two_runs_splits_them():
    x, y = stem()
    mixed = Add()(y, ReduceMean((0,), True)(y))  # over the batch
    z = Relu()(conv(Relu()(conv(mixed, 8, seed=6)), 8, seed=7))
    check(Graph("g", (x,), (conv(z, 4, seed=8),)), runs=2)


def test_a_run_whose_result_is_its_input_under_another_shape():
    x, y = stem()
    check(Graph("g", (x,), (Reshape((6, 4, 256))(x), Reshape((6, 8, 256))(conv(y, 8, seed=4)), Identity()(x))))


def test_a_host_step_reads_a_result():
    x, y = stem()
    check(Graph("g", (x,), (Det()(conv(y, 8, seed=4)),)))
