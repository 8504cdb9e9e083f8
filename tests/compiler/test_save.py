"""Saved stages: every one is written, parses back, and gives the same results."""

import ml_dtypes
import numpy as np
import pytest
from tests.compiler.graphs import residual_net, transformer

from jumar.compiler import STAGES, compile, load_constants, load_graph
from jumar.compiler.save import _save_constants
from jumar.ir import Sample, interpret, print_graph


@pytest.mark.parametrize("make", [residual_net, transformer])
def test_every_stage_parses_back_and_computes_the_same(make, tmp_path, monkeypatch):
    monkeypatch.setenv("JUMAR_CACHE_DIR", str(tmp_path / "cache"))
    graph = make()
    compile(graph, save=tmp_path / "stages")
    folder = tmp_path / "stages" / graph.name
    files = sorted(folder.glob("*.graph"))
    arrays = Sample(tuple(p.type for p in graph.params)).arrays(1)
    expected = interpret(graph, arrays)
    for file in files:
        read = load_graph(file)
        assert print_graph(read) == file.read_text()
        for a, b in zip(expected, interpret(read, arrays), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-4)
    names = [f.stem.split("_", 1)[1] for f in files]
    assert names[0] == "capture" and names[-1] == "fused"
    assert {s for s in STAGES if s not in ("kernels", "program")} <= set(names)
    assert list(folder.glob("*_kernels/*.ll")) and list(folder.glob("*_program.txt"))


def test_mindspore_names_turn_saving_on(tmp_path, monkeypatch):
    monkeypatch.setenv("JUMAR_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("MS_DEV_SAVE_GRAPHS", "1")
    monkeypatch.setenv("MS_DEV_SAVE_GRAPHS_PATH", str(tmp_path / "ms"))
    compile(residual_net())
    assert (tmp_path / "ms" / "residual" / "00_capture.graph").exists()


def test_compile_goes_on_from_an_edited_stage(tmp_path, monkeypatch):
    monkeypatch.setenv("JUMAR_CACHE_DIR", str(tmp_path / "cache"))
    graph = residual_net()
    compile(graph, save=tmp_path)
    file = next((tmp_path / graph.name).glob("*_optimized.graph"))
    file.write_text(file.read_text().replace("silu", "tanh"))
    edited = load_graph(file)
    arrays = Sample(tuple(p.type for p in graph.params)).arrays(1)
    for a, b in zip(interpret(edited, arrays), compile(edited).instance().run(arrays), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-4)


def test_constants_of_narrow_types_come_back(tmp_path):
    arrays = {"a": np.arange(20, dtype=np.float32).astype(ml_dtypes.bfloat16), "b": np.arange(20, dtype=np.int8)}
    _save_constants(tmp_path / "c.npz", arrays)
    found = load_constants(tmp_path / "c.npz")
    assert {k: (v.dtype, v.tolist()) for k, v in found.items()} == {k: (v.dtype, v.tolist()) for k, v in arrays.items()}
