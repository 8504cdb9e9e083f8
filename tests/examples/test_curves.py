"""The examples, run as users run them, lose as MindSpore 2.10 lost from the same weights on the same data.

reference/*.json were recorded by `python tests/examples/curve.py NAME --out reference/NAME.json -- ARGUMENTS` with MindSpore 2.10 on the CPU.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
QUICK = ("mlp_tabular", "lenet_digits", "lstm_text", "gan_digits", "bert_finetune", "gpt_text")
SLOW = ("resnet_digits", "unet_segment", "yolov5s_step", "resnet50_cifar10")
WINDOW = 10


def curve(example: str, arguments: list[str], out: Path, mode: str = "graph") -> list[float]:
    """The losses of an example under `jumar run`."""
    command = [sys.executable, "-m", "jumar", "run", str(HERE / "curve.py"), example, "--out", str(out), "--", *arguments, "--mode", mode]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), os.environ.get("PYTHONPATH", "")])}
    done = subprocess.run(command, capture_output=True, text=True, cwd=out.parent, env=environment, timeout=1800, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(out.read_text())["losses"]


def apart(found: list[float], wanted: list[float]) -> float:
    """The largest difference between means over ten steps, relative; losses below a twentieth of the first one count as that."""
    a, b = (np.array(x[: len(x) // WINDOW * WINDOW]).reshape(-1, WINDOW).mean(1) for x in (found, wanted))
    return float((np.abs(a - b) / np.maximum(np.abs(b), 0.05 * abs(wanted[0]))).max())


@pytest.mark.parametrize("example", [*QUICK, *(pytest.param(name, marks=pytest.mark.slow) for name in SLOW)])
def test_the_loss_falls_as_it_does_with_mindspore(example: str, tmp_path: Path) -> None:
    pytest.importorskip("sklearn")
    reference = json.loads((HERE / "reference" / f"{example}.json").read_text())
    found = curve(example, reference["arguments"], tmp_path / "curve.json")
    assert len(reference["losses"]) == len(found)
    assert apart(found, reference["losses"]) <= 0.02


def test_both_modes_lose_alike(tmp_path: Path) -> None:
    pytest.importorskip("sklearn")
    losses = [curve("mlp_tabular", ["--steps", "20", "--dropout", "0"], tmp_path / "curve.json", mode) for mode in ("graph", "pynative")]
    assert apart(*losses) <= 1e-4


@pytest.mark.slow
def test_lenet_reads_more_than_98_percent_of_the_digits(tmp_path: Path) -> None:
    pytest.importorskip("sklearn")
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    command = [sys.executable, "-m", "jumar", "run", str(ROOT / "examples" / "lenet_digits.py")]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, env=environment, timeout=600, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    assert float(done.stdout.rsplit(":", 1)[1].strip().rstrip("%")) > 98
