"""What the tests of the command line share: running `jumar` in a process of its own, and small models as files."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import onnx
from onnx import TensorProto, helper
from tests.models.net import Net

ROOT = Path(__file__).resolve().parents[2]


def jumar(*arguments: str | Path, cwd: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """Runs the command line as a user would."""
    settings = os.environ | {"PYTHONPATH": str(ROOT / "src"), "COLUMNS": "200", "PYTHONWARNINGS": "default"} | environment
    command = [sys.executable, "-m", "jumar.tools", *map(str, arguments)]
    return subprocess.run(
        command, cwd=cwd, capture_output=True, text=True, env=settings, check=False, timeout=300, stdin=subprocess.DEVNULL
    )


def small_network(path: Path, *, free: bool = True) -> Path:
    """A convolution, a norm, a residual and a softmax, with a free batch."""
    net = Net("small", seed=3)
    x = net.input("x", ("batch" if free else 1, 3, 16, 16))
    y = net.op("Relu", net.norm(net.conv(x, (3, 8), 3), 8))
    y = net.op("Add", net.conv(y, (8, 8), 3), y)
    y = net.op("Flatten", net.op("GlobalAveragePool", y), axis=1)
    y = net.op("Softmax", net.op("Gemm", y, net.normal(5, 8, std=0.5), net.normal(5), transB=1), axis=1)
    path.write_bytes(net.model({"y": y}).SerializeToString())
    return path


def unknown_operators(path: Path) -> Path:
    """Two operators that nobody has."""
    nodes = [
        helper.make_node("Relu", ["x"], ["a"], "first"),
        helper.make_node("Sofmax", ["a"], ["b"], "second"),
        helper.make_node("MyConv", ["b"], ["y"], "third", domain="acme.nn"),
    ]
    infos = [helper.make_tensor_value_info(n, TensorProto.FLOAT, [1, 3]) for n in ("x", "y")]
    graph = helper.make_graph(nodes, "unknown", infos[:1], infos[1:])
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("acme.nn", 1)]
    onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=8), path)
    return path
