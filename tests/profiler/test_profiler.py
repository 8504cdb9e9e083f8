"""The profiler writes what our trace notes."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from jumar import GRAPH_MODE, PYNATIVE_MODE, Tensor, nn, set_context
from jumar.base import span
from jumar.profiler import Profiler, mstx, profile, schedule


def test_spans_and_marks_are_written(tmp_path: Path) -> None:
    profiler = Profiler(output_path=str(tmp_path))
    with span("compile", graph="net"):
        number = mstx.range_start("load")
    mstx.range_end(number)
    profiler.step()
    profiler.stop()
    profiler.add_metadata("run", "first")
    profiler.analyse()
    document = json.loads((tmp_path / "jumar_profile.json").read_text())
    assert document["spans"][0]["name"] == "compile"
    assert [e["name"] for e in document["events"]] == ["range", "step"]
    assert (document["metadata"], document["steps"]) == ({"run": "first"}, 1)


def test_as_a_block(tmp_path: Path) -> None:
    with profile(output_path=str(tmp_path)), span("x"):
        pass
    assert json.loads((tmp_path / "jumar_profile.json").read_text())["spans"][0]["name"] == "x"


def test_a_misspelt_argument_gets_the_nearest() -> None:
    with pytest.raises(TypeError, match="did you mean output_path"):
        Profiler(output_pth="x")


def test_a_schedule_repeats() -> None:
    plan = schedule(wait=1, warmup=1, active=2, repeat=1, skip_first=1)
    assert [plan(i) for i in range(6)] == ["NONE", "NONE", "WARM_UP", "RECORD", "RECORD_AND_SAVE", "NONE"]


@pytest.mark.parametrize("mode", [GRAPH_MODE, PYNATIVE_MODE])
def test_on_the_twin_the_profile_is_also_in_ascend_s_formats(tmp_path: Path, mode: int) -> None:
    set_context(device_target="Ascend", mode=mode)
    try:
        net = nn.SequentialCell(nn.Dense(8, 16), nn.ReLU())
        with profile(output_path=str(tmp_path)):
            net(Tensor(np.ones((2, 8), np.float32)))
    finally:
        set_context(device_target="CPU", mode=PYNATIVE_MODE)
    (folder,) = [p for p in tmp_path.iterdir() if p.name.endswith("_ascend_ms")]
    kernels = (folder / "ASCEND_PROFILER_OUTPUT" / "kernel_details.csv").read_text()
    assert "MatMul" in kernels
    assert "predicted" in (folder / "profiler_info_0.json").read_text()
