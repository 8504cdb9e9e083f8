"""Every operator x every property: what a definition promises is checked here, and an operator needs no test of its own for it."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
import pytest

from jumar.base import Array, StackError, dtype_of, f64, type_of
from jumar.compiler import compile
from jumar.compiler.autodiff import gradients
from jumar.ir import REGISTRY, Graph, Node, Op, Sample, constant, evaluate, interpret, large_constants, param, parse_graph, print_graph
from jumar.operators import square

STRUCTURAL = {"param", "constant", "get", "fused", "batchwise"}  # made by graphs and passes, not by users; tested there
OPTIONAL = {"image_decode"}  # needs Pillow; the conformance suite has pictures
OPS = {name: op for name, op in sorted(REGISTRY.items()) if name not in STRUCTURAL | OPTIONAL and op.__module__.startswith("jumar.")}
CASES = [pytest.param(op, s, id=f"{name}-{i}") for name, op in OPS.items() for i, s in enumerate(op.samples)]
STATIC = [c for c in CASES if not getattr(c.values[0], "data_dependent", False)]  # those that may stand in a graph

every_op = pytest.mark.parametrize("op", OPS.values(), ids=OPS)
every_sample = pytest.mark.parametrize("op, sample", STATIC)


def graph_of(op: Op, arrays: list[Array]) -> Graph:
    """The graph of one node on parameters of the arrays' types."""
    params = tuple(param(f"x{i}", type_of(a)) for i, a in enumerate(arrays))
    return Graph("one", params, op(*params).results)


def outputs(op: Op, arrays: list[Array]) -> list[Array]:
    """What the reference gives, in the inferred types."""
    return interpret(graph_of(op, arrays), arrays)


def assert_close(expected: list[Array], actual: list[Array], what: str, scale: float = 1.0) -> None:
    """Equal but for roundings of the element type."""
    assert len(expected) == len(actual)
    for e, a in zip(expected, actual, strict=True):
        assert type_of(e) == type_of(a), what
        dtype = dtype_of(e.dtype)
        if not dtype.is_float and dtype.kind != "c":
            np.testing.assert_array_equal(a, e, err_msg=what)
            continue
        rtol = {64: 1e-7, 32: 3e-5, 16: 2e-3}.get(dtype.bits, 0.13) if dtype.name != "bf16" else 2e-2
        wide_ = (lambda x: x) if dtype.kind == "c" else (lambda x: x.astype(np.float64))
        np.testing.assert_allclose(wide_(a), wide_(e), rtol=rtol * scale, atol=rtol * scale / 3, err_msg=what)


@every_op
def test_definition_tells_what_it_is(op: type[Op]) -> None:
    assert op.samples, "samples are the examples of the docs and the inputs of every test here"
    assert op.__dict__.get("__doc__", "") and not op.__doc__.startswith(f"{op.__name__}("), "a docstring says what the operator means"
    assert "->" in op.signature
    assert op.family


@every_op
def test_cann_name_is_one_of_an_aclnn_operator(op: type[Op]) -> None:
    assert not op.cann or op.cann.startswith("aclnn")


@every_sample
def test_infer_gives_shape_and_kind_of_the_reference(op: type[Op], sample: Sample) -> None:
    arrays = [np.asarray(a) for a in sample.arrays()]
    made = op(**sample.attributes)
    types = made.infer(*(type_of(a) for a in arrays))
    with np.errstate(all="ignore"):
        results = made.reference(*arrays)
    several = isinstance(types, tuple)
    for result, type_ in zip(results if several else (results,), types if several else (types,), strict=True):
        found = np.asarray(result)
        assert type_.shape == found.shape
        kinds = {"i": "iu", "u": "iu"}.get(type_.dtype.kind, type_.dtype.kind)
        if dtype_of(found.dtype).kind not in kinds:  # integers computed in f64, for its faster matrix product
            np.testing.assert_array_equal(found, found.astype(type_.dtype.numpy))


@every_sample
def test_reference_leaves_its_inputs_alone(op: type[Op], sample: Sample) -> None:
    arrays = [np.array(a) for a in sample.arrays()]
    before = [a.copy() for a in arrays]
    outputs(op(**sample.attributes), arrays)
    for a, b in zip(arrays, before, strict=True):
        np.testing.assert_array_equal(a.view(np.uint8) if a.ndim else a, b.view(np.uint8) if b.ndim else b)


@every_sample
def test_text_parses_back_to_the_same_operator(op: type[Op], sample: Sample) -> None:
    graph = graph_of(op(**sample.attributes), [np.asarray(a) for a in sample.arrays()])
    text = print_graph(graph)
    again = parse_graph(text, large_constants(graph))
    assert print_graph(again) == text
    assert [n.op for n in again.nodes] == [n.op for n in graph.nodes]


@pytest.mark.parametrize("op, sample", [c for c in STATIC if getattr(c.values[0], "decompose", None)])
def test_decomposition_computes_what_the_reference_does(op: type[Op], sample: Sample) -> None:
    made = op(**sample.attributes)
    arrays = [np.asarray(a) for a in sample.arrays()]
    whole = graph_of(made, arrays)
    results = made.decompose(*whole.params)  # type: ignore[attr-defined]
    parts = Graph("parts", whole.params, results if isinstance(results, tuple) else results.results)
    assert tuple(o.type for o in parts.outputs) == tuple(o.type for o in whole.outputs)
    assert all(n.op.name != made.name for n in parts.nodes), "a decomposition is in other operators"
    assert_close(interpret(whole, arrays), interpret(parts, arrays), str(made), scale=4)


# operators through which no gradient flows, by nature or since the number it would be is zero almost everywhere
NOT_DIFFERENTIABLE: dict[str, str] = {
    "bit_cast": "bits are no numbers",
    "sign": "a step", "floor": "a step", "ceil": "a step", "round": "a step", "trunc": "a step", "floor_div": "a step",
    "stop_gradient": "that is what it is for",
    "quantize": "a step", "bernoulli": "a step", "multinomial": "draws places",
    "max_roi_pool": "which cells a bin holds depends on the data, and no backward pass is written",
}  # fmt: skip
# samples at places where there is no one slope, or of which a gradient is refused
EDGES: dict[str, str] = {
    "hard_sigmoid-4": "a number of few bits stands exactly at -2.5",
    "mod-3": "whole quotients, where the rest jumps",
    "roi_align-0": "the number of points depends on the boxes",
    "roi_align-2": "the mode is max",
}
# inputs that receive nothing though they have a slope
WITHOUT: dict[tuple[str, int], str] = {("roi_align", 1): "boxes say where to read, as MindSpore has it"}


def in_f64(op: type[Op], sample: Sample) -> tuple[Op, list[Array]]:
    """The operator on the sample's inputs, floats as f64."""
    attributes = {k: f64 if k == "dtype" and v.is_float and v.bits > 8 else v for k, v in sample.attributes.items()}
    return op(**attributes), [a.astype(np.float64) if dtype_of(a.dtype).is_float else a for a in map(np.asarray, sample.arrays())]


def differentiable(case: Any) -> bool:
    """The sample has float inputs and results, is finite and no edge."""
    op, sample = case.values
    if op.name in NOT_DIFFERENTIABLE or case.id in EDGES:
        return False
    made, arrays = in_f64(op, sample)
    floats = [a for a in arrays if dtype_of(a.dtype).is_float and a.size]
    results = made.infer(*map(type_of, arrays))
    types = results if isinstance(results, tuple) else (results,)
    return bool(floats) and all(np.isfinite(a).all() for a in floats) and any(t.dtype.is_float for t in types)


@pytest.mark.parametrize("op, sample", [c for c in STATIC if differentiable(c)])
def test_gradient_is_the_finite_difference(op: type[Op], sample: Sample) -> None:
    made, arrays = in_f64(op, sample)
    graph = graph_of(made, arrays)
    floats = [(i, o) for i, o in enumerate(graph.outputs) if o.dtype.is_float]
    rng = np.random.default_rng(1)
    weights = [np.asarray(rng.uniform(0.5, 1.5, o.shape)) for _, o in floats]
    grads = gradients([o for _, o in floats], graph.params, [constant(w, o.dtype) for (_, o), w in zip(floats, weights, strict=True)])
    assert any(g is not None for g in grads)

    def loss(values: list[Array]) -> float:
        found = outputs(made, values)
        return float(sum((found[i] * w).sum() for (i, _), w in zip(floats, weights, strict=True)))

    for i, (grad, x) in enumerate(zip(grads, arrays, strict=True)):
        if not dtype_of(x.dtype).is_float:
            assert grad is None
            continue
        if (op.name, i) in WITHOUT:
            assert grad is None
            continue
        actual = np.zeros_like(x)
        if grad is not None:
            assert grad.type == graph.params[i].type
            (actual,) = interpret(Graph("grad", graph.params, (grad,)), arrays)
        check_slopes(loss, arrays, i, actual)


@pytest.mark.parametrize("op, sample", [c for c in STATIC if differentiable(c)])
def test_gradient_has_a_gradient_too(op: type[Op], sample: Sample) -> None:
    """Of the square of the results, so that it is not zero for linear operators; along one direction for each input."""
    made, arrays = in_f64(op, sample)
    graph = graph_of(made, arrays)
    floats = [o for o in graph.outputs if o.dtype.is_float]
    rng = np.random.default_rng(1)

    def weights(nodes: list[Node]) -> list[Node]:
        return [constant(rng.uniform(0.5, 1.5, n.shape), n.dtype) for n in nodes]

    grads = [g for g in gradients([square(o) for o in floats], graph.params, weights(floats)) if g is not None]
    seeds = weights(grads)
    first = Graph("first", graph.params, tuple(grads))

    def loss(values: list[Array]) -> float:
        return float(sum((g * np.asarray(s.array)).sum() for g, s in zip(interpret(first, values), seeds, strict=True)))

    for i, (second, x) in enumerate(zip(gradients(grads, graph.params, seeds), arrays, strict=True)):
        if not dtype_of(x.dtype).is_float or (op.name, i) in WITHOUT:
            continue
        actual = np.zeros_like(x) if second is None else interpret(Graph("second", graph.params, (second,)), arrays)[0]
        along = rng.choice([-1.0, 1.0], x.shape)
        above, below = (loss([*arrays[:i], x + s * along, *arrays[i + 1 :]]) for s in (1e-6, -1e-6))
        np.testing.assert_allclose((actual * along).sum(), (above - below) / 2e-6, rtol=1e-4, atol=1e-4, err_msg=f"input {i}")


@pytest.mark.parametrize("op, sample", [c for c in STATIC if c.values[0].name in NOT_DIFFERENTIABLE])
def test_operator_without_gradient_gives_none_or_says_so(op: type[Op], sample: Sample) -> None:
    made, arrays = op(**sample.attributes), [np.asarray(a) for a in sample.arrays()]
    graph = graph_of(made, arrays)
    if getattr(op, "grad", None) is None and any(o.dtype.is_float for o in graph.outputs) and any(p.dtype.is_float for p in graph.params):
        with pytest.raises(StackError, match=f"{op.name}: operator must have a gradient"):
            gradients(graph.outputs, graph.params)
    elif op.name != "bit_cast" or graph.outputs[0].type != graph.params[0].type:
        assert all(g is None for g in gradients(graph.outputs, graph.params))


def test_every_operator_of_floats_has_a_gradient_or_stands_in_the_table() -> None:
    tested = {c.values[0].name for c in STATIC if differentiable(c)}
    without = set()
    for c in STATIC:
        op, sample = c.values
        made, arrays = op(**sample.attributes), [np.asarray(a) for a in sample.arrays()]
        if any(type_of(a).dtype.is_float for a in arrays) and any(o.dtype.is_float for o in graph_of(made, arrays).outputs):
            without.add(op.name)
    assert without - tested == set(NOT_DIFFERENTIABLE) & without


def check_slopes(loss: Any, arrays: list[Array], which: int, gradient: Array, step: float = 1e-6) -> None:
    """The gradient against central differences: of each element where there are few, else along some directions."""
    x = arrays[which]
    if x.size <= 40:
        directions = [np.eye(x.size)[i].reshape(x.shape) for i in range(x.size)]
    else:
        directions = list(np.random.default_rng(2).choice([-1.0, 0.0, 1.0], (6, *x.shape)))
    slopes = []
    for d in directions:
        above, below = (loss([*arrays[:which], x + s * d, *arrays[which + 1 :]]) for s in (step, -step))
        slopes.append((above - below) / (2 * step))
    np.testing.assert_allclose([(gradient * d).sum() for d in directions], slopes, rtol=1e-5, atol=1e-6, err_msg=f"input {which}")


@every_sample
def test_cpu_computes_what_the_reference_does(op: type[Op], sample: Sample) -> None:
    made = op(**sample.attributes)
    arrays = [np.asarray(a) for a in sample.arrays()]
    graph = graph_of(made, arrays)
    assert_close(interpret(graph, arrays), compile(graph).instance(threads=1).run(arrays), str(made), scale=4)


@pytest.mark.parametrize("op, sample", [c for c in CASES if getattr(c.values[0], "data_dependent", False)])
def test_data_dependent_operator_runs_on_the_host_and_stays_out_of_graphs(op: type[Op], sample: Sample) -> None:
    arrays = [np.asarray(a) for a in sample.arrays()]
    made = op(**sample.attributes)
    results = made.reference(*arrays)
    assert all(isinstance(r, np.ndarray) for r in (results if isinstance(results, tuple) else (results,)))
    with pytest.raises(StackError, match="depends on the data"):
        made(*(param(f"x{i}", type_of(a)) for i, a in enumerate(arrays)))


@every_op
def test_wrong_inputs_are_an_error_of_ours(op: type[Op]) -> None:
    """No operator takes seven inputs of no shape, but for those that take any number."""
    takes_any = any(p.kind is inspect.Parameter.VAR_POSITIONAL for p in inspect.signature(op.reference).parameters.values())
    made = op(**op.samples[0].attributes)
    if not takes_any and "..." not in op.signature:
        scalar: Node = constant(0, f64)
        with pytest.raises(StackError):
            made(*(scalar,) * 7)


def test_random_inputs_are_the_same_each_time() -> None:
    for op in OPS.values():
        for first, second in zip(op.samples[0].arrays(), op.samples[0].arrays(), strict=True):
            np.testing.assert_array_equal(np.asarray(first), np.asarray(second))


def test_evaluate_checks_the_shape_of_a_reference() -> None:
    x = param("x", type_of(np.zeros(2, np.float32)))
    assert evaluate(Node(REGISTRY["neg"](), (x,), x.type), [np.ones(2, np.float32)]).tolist() == [-1, -1]
