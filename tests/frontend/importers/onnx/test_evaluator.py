"""The evaluator: cuts where a value is needed, and a second call of the same kind traces nothing."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.frontend.build import model

import jumar
from jumar.base import ImportFault, recording
from jumar.frontend.importers.onnx import evaluator, trace
from jumar.frontend.importers.onnx.rules import control
from jumar.ir import Param

TARGETS = ["interpreter", "cpu"]


@pytest.fixture
def traces(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The graphs that were traced while the test runs."""
    seen: list[str] = []
    plain = evaluator.Evaluator.trace

    def counted(self: Any, walk: Any, structure: Any) -> Any:
        seen.append(self.source().name)
        return plain(self, walk, structure)

    monkeypatch.setattr(evaluator.Evaluator, "trace", counted)
    return seen


def arange(*shape: int) -> Any:
    return np.arange(np.prod(shape), dtype=np.float32).reshape(shape)


@pytest.fixture(autouse=True)
def _no_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JUMAR_CACHE", "0")


@pytest.mark.parametrize("target", TARGETS)
def test_a_plain_network_is_one_piece(target: str, traces: list[str]) -> None:
    m = jumar.load(
        model("g (float[n, 3] x) => (float[n, 3] y) { a = Relu(x) \n s = Shape(a) \n b = Reshape(a, s) \n y = Add(b, x) }"), target=target
    )
    x = arange(2, 3) - 2
    for _ in range(3):
        np.testing.assert_array_equal(m(x), np.maximum(x, 0) + x)
    assert traces == ["g"]
    assert len(m.compile(x).pieces) == 1
    m(arange(4, 3))
    assert traces == ["g", "g"]


@pytest.mark.parametrize("target", TARGETS)
def test_a_data_dependent_operator_cuts_and_its_shape_decides(target: str, traces: list[str]) -> None:
    m = jumar.load(
        model("g (float[n] x) => (float[k] y) { a = Relu(x) \n i = NonZero(a) \n j = Transpose(i) \n b = GatherND(a, j) \n y = Neg(b) }"),
        target=target,
    )
    for x in ([1, 0, 2], [0, 3, 4], [5, 6, -7], [1, 2, 3], [0, 0, 0], [3, 0, 1]):
        array = np.array(x, np.float32)
        np.testing.assert_array_equal(m(array), -array[array > 0])
    assert len(traces) == 3  # two, three and no positive numbers


@pytest.mark.parametrize("target", TARGETS)
def test_a_condition_that_is_computed_chooses_a_branch(target: str, traces: list[str]) -> None:
    text = """g (float[n] x, float limit) => (float[n] y) {
        s = ReduceSum<keepdims = 0>(x)
        c = Greater(s, limit)
        y = If(c) <then_branch = t () => (a) { a = Neg(x) }, else_branch = e () => (b) { b = Add(x, x) }>
    }"""
    m = jumar.load(model(text), target=target)
    x = arange(4)
    for limit in (1.0, 100.0, 2.0, 200.0):
        np.testing.assert_array_equal(m(x, np.float32(limit)), -x if x.sum() > limit else x + x)
    assert len(traces) == 2


@pytest.mark.parametrize("target", TARGETS)
def test_a_large_piece_before_a_cut_runs_once(target: str) -> None:
    text = """g (float[64, 64] x) => (float[64, 64] y) {
        a = MatMul(x, x)
        s = ReduceSum<keepdims = 0>(a)
        zero = Constant<value = float {0}>()
        c = Greater(s, zero)
        y = If(c) <then_branch = t () => (p) { p = Neg(a) }, else_branch = e () => (q) { q = Relu(a) }>
    }"""
    m = jumar.load(model(text), target=target)
    x = np.random.default_rng(0).standard_normal((64, 64)).astype(np.float32)
    for v in (x, x + 1, x - 1):
        a = v @ v
        np.testing.assert_allclose(m(v), -a if a.sum() > 0 else np.maximum(a, 0), rtol=1e-3, atol=1e-3)
    plan = m.compile(x)
    assert plan.complete and len(plan.pieces) == 2


LOOP = """g (int64 m, float[n] x) => (float[n] y, float[k, n] rows) {
    go = Constant<value = bool {1}>()
    y, rows = Loop(m, go, x) <body = b (int64 i, bool c, float[n] v) => (bool d, float[n] w, float[n] r) {
        one = CastLike(i, x)
        w = Add(v, one)
        r = Mul(w, x)
        d = Identity(c)
    }>
}"""


@pytest.mark.parametrize("target", TARGETS)
def test_a_loop_runs_as_often_as_its_input_says(target: str, traces: list[str]) -> None:
    m = jumar.load(model(LOOP), target=target)
    x = arange(3)
    for count in (3, 100, 0, 100, 7):
        y, rows = m(np.int64(count), x)
        v, expected = x, []
        for i in range(count):
            v = v + np.float32(i)
            expected.append(v * x)
        np.testing.assert_allclose(y, v)
        assert rows.shape == (count, 3) if count else rows.shape[0] == 0
        if count:
            np.testing.assert_allclose(rows, np.stack(expected))


ENDLESS = """g (float[n] x) => (float[n] y) {
    go = Constant<value = bool {1}>()
    most = Constant<value = int64 {9223372036854775807}>()
    y = Loop(TRIPS, CONDITION, x) <body = b (int64 i, bool c, float[n] v) => (bool d, float[n] w) {
        w = Neg(v)
        one = Constant<value = bool {1}>()
        d = Identity(NEXT)
    }>
}"""


@pytest.mark.parametrize("trips", ["", "most"])
@pytest.mark.parametrize("condition", ["", "go"])
@pytest.mark.parametrize("following", ["c", "one", "go"])
def test_a_loop_that_nothing_can_end_is_refused_at_once(trips: str, condition: str, following: str) -> None:
    text = ENDLESS.replace("TRIPS", trips or '""').replace("CONDITION", condition or '""').replace("NEXT", following)
    with pytest.raises(ImportFault) as caught:
        jumar.load(model(text), target="interpreter")(arange(3))
    assert caught.value.code == "loop-endless" and "Loop" in str(caught.value.loc)


def test_a_long_loop_says_which_it_is(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    monkeypatch.setattr(control, "LONG_ITERATIONS", 50)
    m = jumar.load(model(LOOP), target="interpreter")
    with recording() as record:
        m(np.int64(40), arange(3))
        assert not m.warnings and not caplog.messages
        m(np.int64(100), arange(3))
    assert {e.facts["iterations"] for e in record.events if e.name == "loop-long"} == {50}
    assert "goes on after 50 iterations" in m.warnings[0] and caplog.messages == m.warnings


@pytest.mark.parametrize("target", TARGETS)
def test_a_loop_ends_when_its_condition_says(target: str) -> None:
    text = """g (float x, float limit) => (float y, int64 count) {
        go = Constant<value = bool {1}>()
        zero = Constant<value = int64 {0}>()
        none = Constant<value = int64 {9223372036854775807}>()
        y, count = Loop(none, go, x, zero) <body = b (int64 i, bool c, float v, int64 k) => (bool d, float w, int64 l) {
            w = Add(v, v)
            one = Constant<value = int64 {1}>()
            l = Add(k, one)
            d = Less(w, limit)
        }>
    }"""
    m = jumar.load(model(text), target=target)
    for limit in (10.0, 1000.0, 50.0, 1e6):
        value, count = 1.0, 0
        while True:
            value, count = value * 2, count + 1
            if value >= limit:
                break
        got = m(np.float32(1), np.float32(limit))
        assert (float(got[0]), int(got[1])) == (value, count)


@pytest.mark.parametrize("target", TARGETS)
def test_a_loop_may_carry_a_sequence_on_the_host(target: str) -> None:
    text = """g (int64 m, float[n] x) => (float[k] y) {
        go = Constant<value = bool {1}>()
        empty = SequenceEmpty()
        all = Loop(m, go, empty) <body = b (int64 i, bool c, seq(float[n]) s) => (bool d, seq(float[n]) t) {
            one = CastLike(i, x)
            v = Add(x, one)
            t = SequenceInsert(s, v)
            d = Identity(c)
        }>
        y = ConcatFromSequence<axis = 0>(all)
    }"""
    m = jumar.load(model(text), target=target)
    x = arange(2)
    for count in (2, 40, 5):
        np.testing.assert_allclose(m(np.int64(count), x), np.concatenate([x + np.float32(i) for i in range(count)]))


@pytest.mark.parametrize("target", TARGETS)
def test_loops_nest_and_see_all_scopes_around_them(target: str) -> None:
    text = """g (int64 m, int64 n, float x) => (float y) {
        go = Constant<value = bool {1}>()
        y = Loop(m, go, x) <body = b (int64 i, bool c, float v) => (bool d, float w) {
            f = CastLike(i, x)
            w = Loop(n, go, v) <body = inner (int64 j, bool cc, float p) => (bool dd, float q) {
                h = CastLike(j, x)
                s = Mul(f, h)
                q = Add(p, s)
                dd = Identity(cc)
            }>
            d = Identity(c)
        }>
    }"""
    m = jumar.load(model(text), target=target)
    for a, b in ((2, 3), (40, 3), (3, 40), (0, 4)):
        expected = 1.0 + sum(i * j for i in range(a) for j in range(b))
        assert float(m(np.int64(a), np.int64(b), np.float32(1))) == expected


@pytest.mark.parametrize("length", [4, 50])
@pytest.mark.parametrize("target", TARGETS)
def test_scan_takes_rows_in_both_directions_and_along_axes(target: str, length: int) -> None:
    text = """g (float[2] s, float[2, k] x) => (float[2] last, float[2, k] sums) {
        last, sums = Scan(s, x) <num_scan_inputs = 1, scan_input_axes = [1], scan_input_directions = [1], scan_output_axes = [1],
            scan_output_directions = [1], body = b (float[2] a, float[2] r) => (float[2] n, float[2] o) { n = Add(a, r) \n o = Identity(n) }>
    }"""
    m = jumar.load(model(text), target=target)
    x = arange(2, length)
    last, sums = m(np.zeros(2, np.float32), x)
    np.testing.assert_allclose(sums, np.cumsum(x[:, ::-1], 1)[:, ::-1])
    np.testing.assert_allclose(last, x.sum(1))


@pytest.mark.parametrize("target", TARGETS)
def test_functions_of_the_model_are_inlined_with_their_attributes(target: str) -> None:
    functions = """<domain: "mine", opset_import: ["" : 18]> scaled <alpha> (x) => (y) {
        a = Constant<value_float: float = @alpha>()
        y = Mul(x, a)
    }
    <domain: "mine", opset_import: ["" : 18, "mine" : 1]> twice <beta> (x) => (y) {
        b = mine.scaled<alpha: float = @beta>(x) \n y = mine.scaled<alpha = 2.0>(b) }"""
    m = jumar.load(
        model("g (float[3] x) => (float[3] y) { y = mine.twice<beta = 3.0>(x) }", extra=', "mine" : 1', functions=functions), target=target
    )
    np.testing.assert_allclose(m(arange(3)), arange(3) * 6)


@pytest.mark.parametrize("target", TARGETS)
def test_an_input_that_is_a_size_is_specialised_on(target: str, traces: list[str]) -> None:
    m = jumar.load(model("g (float[n] x, int64[2] shape) => (float[a, b] y) { y = Reshape(x, shape) }"), target=target)
    x = arange(6)
    for shape in ((2, 3), (3, 2), (2, 3), (-1, 6)):
        np.testing.assert_array_equal(m(x, np.array(shape, np.int64)), x.reshape(shape))
    assert len(traces) == 3


def test_strings_are_known_and_handed_on() -> None:
    m = jumar.load(
        model("g (string[n] x, string[n] z) => (string[n] y, bool[n] same) { y = StringConcat(x, z) \n same = Equal(x, z) }", opset=20),
        target="interpreter",
    )
    y, same = m(np.array(["a", "b"]), np.array(["c", "b"]))
    assert y.tolist() == ["ac", "bb"] and same.tolist() == [False, True]


def test_a_trace_that_failed_leaves_nothing_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    m = jumar.load(
        model("g (float[n] x) => (float[k] y) { i = NonZero(x) \n j = Transpose(i) \n y = GatherND(x, j) }"), target="interpreter"
    )
    x = np.array([1, 0, 2], np.float32)
    plain = trace.Trace.finish

    def broken(self: Any, outputs: Any, names: Any) -> Any:
        raise ImportFault("broken")

    monkeypatch.setattr(trace.Trace, "finish", broken)
    with pytest.raises(ImportFault, match="broken"):
        m(x)
    monkeypatch.setattr(trace.Trace, "finish", plain)
    for _ in range(2):
        np.testing.assert_array_equal(m(x), [1, 2])


def test_results_may_be_written_to_without_changing_the_model() -> None:
    m = jumar.load(
        model(
            "g (float[2] x) => (float[2] a, float[2] b, float[2] c) <float[2] w = {1, 2}> { a = Identity(w) \n b = Identity(x) \n c = Add(x, w) }"
        )
    )
    x = arange(2)
    for _ in range(2):
        for result, expected in zip(m(x), ([1, 2], [0, 1], [1, 3]), strict=True):
            assert result.tolist() == expected
            result[:] = 9
    assert x.tolist() == [0, 1]


def test_an_operator_nobody_knows_is_named_with_all_others() -> None:
    text = """g (float[2] x) => (float[2] y) {
        a = Reluu(x)
        b = other.Thing(a)
        go = Constant<value = bool {1}>()
        y = If(go) <then_branch = t () => (c) { c = Softmaxx(b) }, else_branch = e () => (d) { d = Reluu(b) }>
    }"""
    with pytest.raises(ImportFault) as caught:
        jumar.load(model(text, extra=', "other" : 3'))
    message = str(caught.value)
    assert caught.value.code == "op-unsupported"
    for part in ("Reluu (opset 18)", "other Thing (opset 3)", "Softmaxx", "did you mean Relu", "got 3 that are not"):
        assert part in message


def test_functions_that_call_themselves_are_refused() -> None:
    functions = '<domain: "mine", opset_import: ["" : 18, "mine" : 1]> f (x) => (y) { y = mine.f(x) }'
    m = jumar.load(
        model("g (float[3] x) => (float[3] y) { y = mine.f(x) }", extra=', "mine" : 1', functions=functions), target="interpreter"
    )
    with pytest.raises(ImportFault) as caught:
        m(arange(3))
    assert caught.value.code == "graph-nesting"


def test_graphs_shows_what_will_be_compiled() -> None:
    m = jumar.load(
        model("g (float[n, 3] x, float[3] unused) => (float[n, 3] y, float[2] z) <float[2] w = {1, 2}> { y = Relu(x) \n z = Identity(w) }")
    )
    graph = m.graph(dims={"n": 2})
    assert [str(p.type) for p in graph.params] == ["f32[2, 3]", "f32[3]"]
    assert graph.output_names == ("y", "z")
    with pytest.raises(ImportFault) as caught:
        m.graph()
    assert caught.value.code == "input-dims"


def test_compiling_for_dims_stops_where_a_value_decides() -> None:
    m = jumar.load(
        model("g (float[n] x) => (float[k] y) { i = NonZero(x) \n j = Transpose(i) \n y = GatherND(x, j) }"), target="interpreter"
    )
    assert not m.compile(dims={"n": 3}).complete
    with pytest.raises(ImportFault) as caught:
        m.graphs(dims={"n": 3})
    assert caught.value.code == "values-needed"
    assert len(m.graphs(np.array([1, 0, 2], np.float32))) == 1
    graphs, hosts = m.traced(np.array([1, 0, 2], np.float32))
    assert [h.partition("(")[0] for h in hosts] == ["non_zero"]
    assert all({n for n in g.nodes if isinstance(n.op, Param)} == set(g.params) for g in graphs)


def test_what_a_loop_gives_is_a_parameter_of_the_piece_behind_it() -> None:
    body = "<body = b (int64 i, bool c, float[2] a) => (bool d, float[2] r) { d = Identity(c) r = Exp(a) }>"
    m = jumar.load(
        model(f"g (int64 n, float[2] x) => (float[2] y) {{ c = Constant<value: tensor = bool {{1}}> () \n y = Loop (n, c, x) {body} }}"),
        target="interpreter",
    )
    graphs, hosts = m.traced(np.array(2), np.ones(2, np.float32))
    assert hosts == ("a loop",)
    assert graphs[-1].outputs == graphs[-1].params
