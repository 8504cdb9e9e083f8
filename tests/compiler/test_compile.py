"""Whole compiles: what runs is what the interpreter says, whatever the graph."""

from dataclasses import replace

import numpy as np
import pytest
from tests.compiler.graphs import groups, joined, odd_outputs, random_graph, residual_net, transformer

from jumar.base import bool_, f16, f64, i32, i64, u8
from jumar.base.trace import recording
from jumar.compiler import compile, host_function, lower, optimize
from jumar.compiler.assemble import Memory, assemble
from jumar.device import host
from jumar.ir import Graph, Sample, constant, f32t, interpret, param, tensor
from jumar.operators import (
    Add,
    ArgMax,
    Cast,
    CumSum,
    Exp,
    Fused,
    LogSoftmax,
    MatMul,
    Mul,
    ReduceMax,
    ReduceSum,
    Relu,
    Select,
    Softmax,
    TopK,
)
from jumar.runtime import HostStep, Instance, Step


@pytest.fixture(autouse=True)
def _cache(tmp_path_factory, monkeypatch):
    monkeypatch.setenv("JUMAR_CACHE_DIR", str(tmp_path_factory.getbasetemp() / "cache"))


def check(graph, seed=0, threads=2, tolerance=1e-4):
    compiled = compile(graph)
    arrays = Sample(tuple(p.type for p in graph.params)).arrays(seed)
    instance = compiled.instance(threads=threads)
    for _ in range(2):  # the second run finds the arena as the first left it
        for expected, actual in zip(interpret(graph, arrays), instance.run(arrays), strict=True):
            assert expected.dtype == actual.dtype
            np.testing.assert_allclose(actual.astype(np.float64), expected.astype(np.float64), rtol=tolerance, atol=tolerance)
    return compiled


@pytest.mark.parametrize("make", [residual_net, transformer, odd_outputs, joined])
def test_small_networks(make):
    check(make())


@pytest.mark.parametrize("seed", range(24))
def test_random_graphs(seed):
    check(random_graph(seed), seed)


@pytest.mark.parametrize("dtype", [f16, f64, i32, i64, u8], ids=str)
def test_element_types(dtype):
    x, y = param("x", tensor(dtype, 3, 5)), param("y", tensor(dtype, 5))
    check(Graph("types", (x, y), (Mul()(Add()(x, y), y),)), tolerance=1e-2 if dtype is f16 else 1e-6)


def test_conditions_and_casts():
    x, c = param("x", f32t(7)), param("c", tensor(bool_, 7))
    check(Graph("choice", (x, c), (Select()(c, x, Exp()(x)), Cast(i32)(x), Cast(f64)(c))))


def test_scalars_and_empty_tensors():
    x, e = param("x", f32t()), param("e", f32t(0, 3))
    check(Graph("edges", (x, e), (Add()(x, x), Relu()(e), MatMul()(e, constant(np.zeros((3, 2), np.float32))))))


def test_what_has_no_kernel_runs_on_the_host_and_is_listed():
    x = param("x", f32t(4, 9))
    values, places = TopK(3, 1)(Exp()(x))
    compiled = check(Graph("host", (x,), (Relu()(values), places)))
    assert "top_k" in compiled.report.host or not compiled.program.host_steps
    assert all(isinstance(s, Step | HostStep) for s in compiled.program.steps)


def test_fused_group_that_no_schedule_takes_is_taken_apart():
    a = param("a", f32t(2, 3))
    body = Graph("fused_0", (a,), (Exp()(CumSum(1)(Relu()(a))),))
    x = param("x", f32t(2, 3))
    compiled = check(Graph("apart", (x,), (Fused(body)(x),)))
    assert ("fused", "apart") in compiled.report.selection


def test_convolutions_of_a_residual_net_become_one_kernel_each():
    graph, _ = optimize(residual_net(), host())
    assert ("conv", "relu") in groups(graph)
    assert ("conv", "silu") in groups(graph)
    assert ("conv", "add", "relu") in groups(graph)
    assert groups(graph).count("transpose") == 2  # the image, and the output that is an image


def test_report_says_what_happened():
    with recording() as record:
        compiled = compile(residual_net())
    report = compiled.report
    assert [p.name for p in report.passes if p.name == "fuse"] == ["fuse"]
    assert report.plan is not None and report.plan.ratio <= 1.10
    assert report.refusals and all(r.reason and r.nbytes for r in report.refusals)
    assert list(report.refusals) == sorted(report.refusals, key=lambda r: -r.nbytes)
    assert any(e.name == "fuse" for e in record.events)


def test_passes_can_be_left_out(monkeypatch):
    monkeypatch.setenv("JUMAR_SKIP_PASSES", "fuse, layout")
    graph, reports = optimize(residual_net(), host())
    assert not {"fuse", "layout"} & {r.name for r in reports}
    assert not any(isinstance(n.op, Fused) for n in graph.nodes)
    check(residual_net())


def test_outputs_are_written_in_place_and_inputs_read_where_they_are():
    x = param("x", f32t(64))
    compiled = check(Graph("direct", (x,), (Exp()(x),)))
    assert compiled.program.arena_nbytes == 0
    assert len(compiled.program.steps) == 1


def test_chains_work_in_place():
    lowering = lower(optimize(transformer(), host())[0], host())
    memory = Memory(lowering)
    assert memory.plan.nbytes <= memory.plan.bound * 1.10 + 64 * len(memory.plan.lives)


def test_steps_that_share_memory_wait_for_each_other():
    lowering = lower(optimize(residual_net(), host())[0], host())
    program = assemble(lowering, host()).program
    waiting = tuple(replace(s, barrier=True) if isinstance(s, Step) else s for s in program.steps)
    arrays = Sample(tuple(p.type for p in lowering.graph.params)).arrays(3)
    expected = Instance(replace(program, steps=waiting), threads=1, host=host_function).run(arrays)
    instance = Instance(program, threads=2, host=host_function)
    for _ in range(20):
        for a, b in zip(expected, instance.run(arrays), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-6, atol=1e-6)


def test_equal_constants_are_kept_once():
    x = param("x", f32t(4, 64))
    w = np.random.default_rng(0).standard_normal((64, 64)).astype(np.float32)
    once = compile(Graph("one", (x,), (MatMul()(x, constant(w)),))).program.constants.nbytes
    y = MatMul()(Relu()(MatMul()(x, constant(w))), constant(w.copy()))
    assert compile(Graph("two", (x,), (y,))).program.constants.nbytes < 1.5 * once


@pytest.mark.parametrize("reduce", [Softmax(3), LogSoftmax(3), ReduceSum((3,), True), ReduceMax((3,), True), ArgMax(3, True)], ids=str)
@pytest.mark.parametrize("columns", [1, 3])
def test_a_reduction_after_a_product_with_one_column(reduce, columns):
    x, w = param("x", f32t(8, 2, 1, 8)), param("w", f32t(8, 2, 8, columns))
    product = Mul()(MatMul()(x, w), constant(np.float32(0.35)))
    check(Graph("one_column", (x, w), (reduce(product),)))
    check(Graph("one_column_kept", (x, w), (reduce(product), product)))


def test_a_product_with_one_column_and_a_scalar_bias():
    x, w = param("x", f32t(3, 4)), constant(np.ones((4, 1), np.float32))
    product = Add()(MatMul()(x, w), constant(np.float32(0.5)))
    check(Graph("one_column_scalar", (x,), (Relu()(product),)))
