"""The chip's arithmetic in the report: a planted overflow is found."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
from tests.models.net import Net
from tests.tools.helpers import jumar

from jumar.device.npu import find_chip

CHIP = find_chip("Ascend910B4")


def test_a_planted_overflow_is_found_and_named(tmp_path: Path) -> None:
    net = Net("planted", seed=1)
    e = net.op("Exp", net.input("x", (2, 8)))
    total = net.op("ReduceSum", e, net.constant([1], np.int64), keepdims=1)
    (tmp_path / "planted.onnx").write_bytes(net.model({"y": net.op("Div", e, total)}).SerializeToString())
    np.save(tmp_path / "x.npy", np.full((2, 8), 12.0, np.float32))
    done = jumar(
        "enable", "planted.onnx", "--soc", "910B4", "--numerics", "--twin-only", "-i", "x=x.npy", "--out", "out", "--json", cwd=tmp_path
    )
    assert done.returncode == 0, done.stderr
    numerics = json.loads(done.stdout)["twins"][0]["numerics"]
    assert not numerics["within"]
    assert "exp_" in numerics["summary"].lower()
    assert "overflows" in numerics["summary"]
