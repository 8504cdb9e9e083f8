"""`jumar tune`: who wins a race, what the whole model keeps, what later compiles find, and what is said."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from tests.models.net import Net
from tests.tools.helpers import jumar as command
from tests.tools.helpers import small_network

import jumar
from jumar.base import Question, choose, config, f32, keep_choices, trying
from jumar.compiler import finish
from jumar.device import host
from jumar.frontend.engines import Cpu
from jumar.operators.cpu.blocking import choose_blocks, kin
from jumar.operators.cpu.microkernel import register_tile
from jumar.runtime import Instance
from jumar.tools import tuning
from jumar.tools.enable.pieces import Piece, compile_pieces


class Clock:
    """Time that passes only while something runs."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now

    def work(self, seconds: Iterator[float] | float) -> Callable[[], None]:
        def run() -> None:
            self.now += seconds if isinstance(seconds, float) else next(seconds)

        return run


def test_a_race_gives_medians_in_turns() -> None:
    clock = Clock()
    slow_once = iter([0.01, 0.01, 0.9, *[0.01] * 100])  # the first run does not count
    times = tuning.race({"a": clock.work(slow_once), "b": clock.work(0.012)}, clock)
    assert times == pytest.approx({"a": 0.01, "b": 0.012})


def test_a_hopeless_option_drops_out_of_a_race() -> None:
    clock, runs = Clock(), []

    def slow() -> None:
        clock.now += 0.1
        runs.append(1)

    times = tuning.race({"fast": clock.work(0.01), "slow": slow}, clock)
    assert len(runs) == 1 + tuning.AFTER
    assert times["slow"] == pytest.approx(0.1)


def compiled(path: Path) -> Piece:
    model = jumar.load(path, target="cpu", threads=1)
    arrays = {p.name: np.ones(p.type.dims, np.float32) for p in model.inputs}
    with trying({}):
        (piece,) = compile_pieces(model, arrays, threads=1).pieces
    return piece


@pytest.fixture
def piece(tmp_path: Path) -> Piece:
    net = Net("two layers", seed=5)
    x = net.input("x", (32, 96))
    y = net.op("Relu", net.op("Gemm", x, net.normal(160, 96), net.normal(160), transB=1))
    y = net.op("Gemm", y, net.normal(200, 160), net.normal(200), transB=1)
    (tmp_path / "model.onnx").write_bytes(net.model({"y": y}).SerializeToString())
    return compiled(tmp_path / "model.onnx")


def test_layers_are_those_whose_schedules_have_a_choice(piece: Piece) -> None:
    assert piece.compiled.assembled is not None
    layers = tuning.layers_of(piece.compiled.assembled, host(1))
    assert layers
    assert all(len(asked.options) > 1 for layer in layers for asked in layer.asked.values())
    nodes = list(dict.fromkeys(piece.compiled.assembled.owners))
    assert all(nodes[at].op == layer.node.op or layer.owners for layer in layers for at in layer.owners)


def test_every_option_of_a_layer_computes_the_same(piece: Piece) -> None:
    assert piece.compiled.assembled is not None
    for layer in tuning.layers_of(piece.compiled.assembled, host(1)):
        graph = tuning.alone(layer.node)
        inputs = [tuning._values(p.type) for p in graph.params]
        found = []
        for question, asked in layer.asked.items():
            for option in asked.options:
                with trying({question: option}):
                    found.append(finish(graph, host(1))[1].program)
        outputs = [Instance(program, threads=1).run(inputs) for program in found]
        assert len(outputs) > 1
        for each in outputs[1:]:
            for a, b in zip(outputs[0], each, strict=True):
                np.testing.assert_allclose(b, a, rtol=1e-4, atol=1e-4)


def test_what_is_slower_in_the_whole_model_is_not_kept(piece: Piece, monkeypatch: pytest.MonkeyPatch) -> None:
    """Alone the other plan wins; in the model every profile says that it loses."""
    monkeypatch.setattr(tuning, "search", _another)
    monkeypatch.setattr(tuning, "_gains", lambda before, after: [-1.0] * len(before))
    found = tuning.tune(piece, host(1), 1, lambda *_: None)
    assert any(layer.answers for layer in found.layers)
    assert not any(layer.kept for layer in found.layers)
    assert found.before_s == found.after_s
    assert set(found.choices.values()) == {None}


@pytest.mark.parametrize(("whole", "kept"), [({"old": 2.0, "new": 1.0}, True), ({"old": 1.0, "new": 2.0}, False)])
def test_the_whole_model_decides(piece: Piece, monkeypatch: pytest.MonkeyPatch, whole: dict[str, float], kept: bool) -> None:
    monkeypatch.setattr(tuning, "search", _another)
    monkeypatch.setattr(tuning, "_gains", lambda before, after: [1.0] * len(before))
    monkeypatch.setattr(tuning, "race", lambda runs, *_: {key: whole[key] for key in runs})
    found = tuning.tune(piece, host(1), 1, lambda *_: None)
    assert any(layer.kept for layer in found.layers) == kept
    assert (found.after_s < found.before_s) == kept


def _another(layer: tuning.Layer, *_: object) -> None:
    """A search that takes the last option of each question."""
    layer.expected_us, layer.measured_us = 2.0, 1.0
    layer.answers = {q: a.options[-1] for q, a in layer.asked.items()}


def test_ctrl_c_keeps_what_was_found(piece: Piece, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []

    def interrupted(layer: tuning.Layer, *rest: object) -> None:
        if calls:
            raise KeyboardInterrupt
        calls.append(layer)
        _another(layer)

    monkeypatch.setattr(tuning, "search", interrupted)
    monkeypatch.setattr(tuning, "_gains", lambda before, after: [1.0] * len(before))
    monkeypatch.setattr(tuning, "race", lambda runs, *_: {"old": 2.0, "new": 1.0})
    found = tuning.tune(piece, host(1), 1, lambda *_: None)
    assert len(found.layers) == 2
    assert not found.complete
    assert [layer.kept for layer in found.layers] == [True] + [False] * (len(found.layers) - 1)
    assert set(found.choices) == set(found.layers[0].asked)


def test_cuts_near_a_cut_are_cuts() -> None:
    cut = choose_blocks(196, 512, 1024, 1, register_tile(host(2), f32), host(2))
    options = kin(cut)
    assert len(options) > 4
    for rows, panels, taps, depth in options:
        assert 1 <= rows <= 196
        assert 1 <= panels <= cut.panels
        assert (taps, depth > 0) == (1, True)


def test_a_kept_cut_is_the_one_that_a_compile_takes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JUMAR_CACHE_DIR", str(tmp_path))
    target, sizes = host(1), (196, 512, 1024, 1)
    with trying({}) as trial:
        before = choose_blocks(*sizes, register_tile(target, f32), target)
    ((question, asked),) = trial.asked.items()
    other = next(o for o in asked.options if o != asked.expected)
    assert keep_choices({question: other})
    after = choose_blocks(*sizes, register_tile(target, f32), target)
    assert (after.row_block, after.panel_block, after.tap_block, after.depth_block) == other
    assert before != after


def test_a_kept_choice_is_part_of_what_a_cached_program_depends_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JUMAR_CACHE_DIR", str(tmp_path))
    before = Cpu(1).identity
    keep_choices({Question("product", "[1] f32", host(1).machine): (1, 2)})
    assert before != Cpu(1).identity
    monkeypatch.setenv("JUMAR_TUNED", "0")
    assert before == Cpu(1).identity


def test_code_is_planned_for_the_threads_that_run_it() -> None:
    assert Cpu(1).target.cores == 1
    assert Cpu(3).target.cores == 3
    assert Cpu(0).target == host(config("threads"))


def test_the_command_says_what_it_measured_and_later_compiles_find_it(tmp_path: Path) -> None:
    small_network(tmp_path / "model.onnx")
    done = command("tune", "model.onnx", "--threads", "1", "--json", cwd=tmp_path, JUMAR_CACHE_DIR=str(tmp_path / "cache"), JUMAR_CACHE="1")
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
    assert said["threads"] == 1
    assert said["complete"]
    assert said["saved"]
    assert said["layers"]
    assert all(layer["by_model_us"] > 0 for layer in said["layers"])
    assert said["after_ms"] <= said["before_ms"]
    kept = [layer for layer in said["layers"] if layer["kept"]]
    assert bool(kept) == (tmp_path / "cache" / "tuned").is_dir()


def test_without_a_cache_the_command_refuses(tmp_path: Path) -> None:
    small_network(tmp_path / "model.onnx")
    done = command("tune", "model.onnx", cwd=tmp_path, JUMAR_CACHE="0")
    assert done.returncode == 2
    assert done.stderr.splitlines()[0] == (
        "ToolError: [tools] tune: the compile cache must be at hand, since choices are kept in it, got none: JUMAR_CACHE is off"
    )


def test_a_model_that_is_not_there_is_one_clear_error(tmp_path: Path) -> None:
    done = command("tune", "absent.onnx", cwd=tmp_path, JUMAR_CACHE_DIR=str(tmp_path), JUMAR_CACHE="1")
    assert done.returncode == 2
    assert "absent.onnx" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_question_of_a_layer_alone_is_the_question_of_the_whole_model(piece: Piece) -> None:
    """So that what is measured alone is found when the model is compiled."""
    assert piece.compiled.assembled is not None
    assert piece.compiled.graph is not None
    with trying({}) as trial:
        finish(piece.compiled.graph, host(1))
    whole = {q for q, a in trial.asked.items() if len(a.options) > 1}
    layers = tuning.layers_of(piece.compiled.assembled, host(1))
    assert {q for layer in layers for q in layer.asked} == whole


def test_words_of_an_option_are_those_of_its_schedule() -> None:
    question, options = Question("product", "[1] f32, tile 6 x 16", "m"), [(1,), (2,)]
    with trying({}) as trial:
        choose(question, (1,), lambda: options, lambda o: f"{o[0]} rows")
    layer = tuning.Layer(None, [0], trial.asked, {question: (2,)})  # type: ignore[arg-type]
    assert (layer.label, layer.plan(False), layer.plan(True)) == ("product [1] f32", "1 rows", "2 rows")
