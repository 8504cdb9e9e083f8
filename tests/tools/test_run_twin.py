"""`jumar run` on the twin of an Ascend NPU: values are the CPU's, the report says what the NPU would have taken, and that it is predicted."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.tools.helpers import jumar

SCRIPT = """
import mindspore as ms
from mindspore import nn, Tensor
import numpy as np
{first}
net = nn.SequentialCell(nn.Dense(8, 16), nn.ReLU(), nn.Dense(16, 4))
ms.set_context(mode=ms.{mode})
for _ in range(3):
    y = net(Tensor(np.ones((2, 8), np.float32)))
print(y.shape, ms.get_context("device_target"))
"""


@pytest.mark.parametrize("mode", ["GRAPH_MODE", "PYNATIVE_MODE"])
def test_a_script_that_asks_for_ascend_gets_a_forecast(tmp_path: Path, mode: str) -> None:
    path = tmp_path / "script.py"
    path.write_text(SCRIPT.format(first='ms.set_context(device_target="Ascend")', mode=mode))
    done = jumar("run", "--explain", "--explain-json", "run.json", "script.py", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (0, "(2, 4) Ascend\n")
    assert done.stderr.count("values are computed on this CPU, times are predicted") == 1
    assert "twin of Ascend910B4 (values were computed on this CPU; times are predicted by the twin; nothing ran on an NPU)" in done.stderr
    found = json.loads((tmp_path / "run.json").read_text())["twin"]
    assert (found["chip"], found["kind"]) == ("Ascend910B4", "predicted")
    assert sum(r["runs"] for r in found["rows"]) >= 3
    assert all(not r["error"] and r["low_us"] <= r["predicted_us"] <= r["high_us"] for r in found["rows"])
    assert sum(r["kernels"] for r in found["rows"]) > 0


def test_the_chip_can_be_chosen_over_the_script(tmp_path: Path) -> None:
    path = tmp_path / "script.py"
    path.write_text(SCRIPT.format(first='ms.set_context(device_target="CPU")', mode="GRAPH_MODE"))
    done = jumar("run", "--soc", "310P3", "--explain", "script.py", cwd=tmp_path)
    assert "twin of Ascend310P3" in done.stderr
    done = jumar("run", "--soc", "910B9", "script.py", cwd=tmp_path)
    assert (done.returncode, "910B9" in done.stderr, "jumar explain soc-unknown" in done.stderr) == (2, True, True)


OVERFLOW = """
import mindspore as ms
from mindspore import nn, ops, Tensor
import numpy as np

class Unsafe(nn.Cell):
    def construct(self, x):
        e = ops.exp(x.astype(ms.float16))
        return (e / e.sum(-1, keepdims=True)).astype(ms.float32)

ms.set_context(mode=ms.GRAPH_MODE, device_target="Ascend")
print(Unsafe()(Tensor(np.array([[1, 2, 12, 12]], np.float32))).shape)
"""


def test_numerics_names_the_users_line_that_overflows_on_the_chip(tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text(OVERFLOW)
    done = jumar("run", "--soc", "910B4", "--numerics", "--explain-json", "run.json", "script.py", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (0, "(1, 4)\n")
    assert "numerics of Unsafe, on the inputs of its first run:" in done.stderr
    (found,) = json.loads((tmp_path / "run.json").read_text())["twin"]["numerics"]
    assert not found["findings"]["within"]
    first = next(n for n in found["findings"]["nodes"] if n["number"] == found["findings"]["first_overflow"])
    assert (first["op"], first["place"].rpartition("/")[2]) == ("exp", "script.py:8")


def test_inputs_are_not_kept_where_nobody_asks_for_numerics(tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text(OVERFLOW)
    done = jumar("run", "--explain", "--explain-json", "run.json", "script.py", cwd=tmp_path)
    assert json.loads((tmp_path / "run.json").read_text())["twin"]["numerics"] == []
    assert "numerics" not in done.stderr


def test_numerics_without_a_graph_says_what_is_missing(tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text(SCRIPT.format(first='ms.set_context(device_target="CPU")', mode="PYNATIVE_MODE"))
    done = jumar("run", "--numerics", "script.py", cwd=tmp_path)
    assert done.returncode == 0 and "--soc NAME names a chip" in done.stderr
    done = jumar("run", "--soc", "910B4", "--numerics", "script.py", cwd=tmp_path)
    assert done.returncode == 0 and "--mode graph captures the script's cells" in done.stderr
