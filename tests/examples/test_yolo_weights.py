"""YOLOv5s gets its weights from a PyTorch state dict through `jumar convert-weights`."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
MAKE = """
import sys
import numpy as np
import torch
import jumar
jumar.as_mindspore()
sys.path.insert(0, sys.argv[1])
import yolov5s_step
names = {"gamma": "weight", "beta": "bias", "moving_mean": "running_mean", "moving_variance": "running_var"}
state = {}
for name, parameter in yolov5s_step.Yolo(80, 8).parameters_and_names():
    head, _, last = name.rpartition(".")
    state[f"{head}.{names.get(last, last)}"] = torch.from_numpy(np.full(parameter.shape, len(state) / 1000, np.float32))
    if last == "moving_mean":
        state[f"{head}.num_batches_tracked"] = torch.tensor(7)
torch.save(state, "yolo.pth")
"""
CHECK = """
import sys
import jumar as ms
found = ms.load_checkpoint("yolo.ckpt")
assert abs(found["model.0.conv.weight"].asnumpy().mean()) < 1e-6
assert found["model.24.m.2.bias"].shape == (255,)
"""


@pytest.mark.slow
def test_yolov5s_trains_from_a_state_dict_of_pytorch(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}

    def run(*command: str) -> str:
        done = subprocess.run(
            [sys.executable, *command], capture_output=True, text=True, cwd=tmp_path, env=environment, timeout=900, check=False
        )
        assert done.returncode == 0, done.stderr[-3000:]
        return done.stdout

    run("-c", MAKE, str(ROOT / "examples"))
    run("-m", "jumar", "convert-weights", "yolo.pth", "yolo.ckpt")
    run("-c", CHECK)
    text = run(
        "-m",
        "jumar",
        "run",
        str(ROOT / "examples" / "yolov5s_step.py"),
        "--weights",
        "yolo.ckpt",
        "--width",
        "8",
        "--size",
        "64",
        "--steps",
        "1",
    )
    assert re.search("0 parameters missing, 0 unused", text), text
