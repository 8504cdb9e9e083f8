"""`jumar train-check`: each thing that can be wrong is found, and a run that is well is left in peace."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from jumar.tools.train_check import command
from jumar.tools.training.facts import Bad, Column, Facts, Layer
from jumar.tools.training.findings import findings

HEAD = """
import numpy as np
import mindspore as ms
from mindspore import dataset, nn, ops, train
ms.set_seed(1)
rng = np.random.default_rng(0)
x = rng.standard_normal((256, 8)).astype(np.float32)
y = (x[:, 0] > 0).astype(np.int32)
loss = nn.SoftmaxCrossEntropyWithLogits(sparse=True, reduction="mean")
net = nn.SequentialCell(nn.Dense(8, 32), nn.ReLU(), nn.Dense(32, 2))
rate = 0.05
"""
TAIL = """
data = dataset.NumpySlicesDataset((x, y), ["x", "y"]).batch(16)
train.Model(net, loss, nn.SGD(net.trainable_params(), rate)).train(20, data)
"""
NARROW = """
class Square(nn.Cell):
    def construct(self, x):
        return x * x * 3000.0
class Root(nn.Cell):
    def construct(self, x):
        return ops.sqrt(x + 1.0)
net = nn.SequentialCell(nn.Dense(8, 32), nn.ReLU(), Square(), Root(), nn.Dense(32, 2))
net[0].weight.set_data(net[0].weight * 20)
net.to_float(ms.float16)
net.set_train()
data = dataset.NumpySlicesDataset((x, y), ["x", "y"]).batch(16)
optimizer = nn.SGD(net.trainable_params(), 0.001)
step = ms.value_and_grad(lambda a, b: loss(ops.cast(net(a), ms.float32), b), None, optimizer.parameters)
for a, b in data.create_tuple_iterator(num_epochs=1):
    optimizer(step(a, b)[1])
"""


def check(folder: Path, script: str, *options: str) -> tuple[int, Any]:
    path = folder / "script.py"
    path.write_text(script, encoding="utf-8")
    done = CliRunner().invoke(command, ["--json", "--steps", "12", *options, str(path)], catch_exceptions=False)
    return done.exit_code, json.loads(done.output)


def topics(document: Any, level: str) -> list[str]:
    return [f["topic"] for f in document["findings"] if f["level"] == level]


@pytest.mark.slow
def test_a_run_that_is_well_has_no_findings(tmp_path: Path) -> None:
    code, document = check(tmp_path, "import mindspore as ms\nms.set_context(mode=0)\n" + HEAD + TAIL)
    assert (code, document["findings"], document["steps"]) == (0, [], 12)
    assert document["losses"][-1] < document["losses"][0]
    assert sorted(document["layers"]) == ["0.bias", "0.weight", "2.bias", "2.weight"]


@pytest.mark.slow
@pytest.mark.parametrize(
    "spoil, topic, text",
    [
        ("x[3, 2] = np.nan", "data", "1 elements that are NaN"),
        ("y = y + 1", "data", "labels run from 1 to 2, the network has 2 outputs"),
        ("rate = 300.0", "learning rate", "is too high"),
        ("net[0].bias.set_data(ms.Tensor(np.full(32, -100, np.float32)))", "dead units", "100% of the units"),
    ],
)
def test_what_is_wrong_is_found(tmp_path: Path, spoil: str, topic: str, text: str) -> None:
    code, document = check(tmp_path, f"{HEAD}{spoil}\n{TAIL}")
    assert code == 1
    assert [f for f in document["findings"] if f["level"] == "error" and f["topic"] == topic and text in f["what"]], document["findings"]


@pytest.mark.slow
def test_the_layers_that_must_be_float32_are_found(tmp_path: Path) -> None:
    code, document = check(tmp_path, HEAD + NARROW)
    assert code == 1
    overflow, precision = (next(f for f in document["findings"] if f["topic"] == t) for t in ("overflow", "precision"))
    assert "mul gives NaN or infinity in float16" in overflow["what"] and "return x * x * 3000.0" in overflow["where"]
    assert precision["where"] == "2, 3"


def facts(**more: Any) -> Facts:
    found = Facts(losses=[1.0] * 5 + [0.5] * 5, steps=10, layers={"w": Layer("w", [1.0] * 10, [0.0] * 10, [1e-3] * 10)}, shuffled=True)
    for name, value in more.items():
        setattr(found, name, value)
    return found


def column(name: str = "y", **more: Any) -> dict[str, Column]:
    found = Column(name, "int32", batches=10, samples=100, least=0, most=1, total=50, squares=50, count=100)
    for key, value in more.items():
        setattr(found, key, value)
    return {name: found}


@pytest.mark.parametrize(
    "change, level, text",
    [
        ({"columns": column(sorted_batches=6, constant_batches=4)}, "warning", "labels come in order"),
        ({"columns": column(), "shuffled": False}, "note", "is not shuffled"),
        ({"columns": column(whole=False, dtype="uint8", most=255, total=12000, squares=3e6)}, "warning", "runs from 0 to 255"),
        ({"columns": column(least=1, most=1)}, "warning", "is 1 everywhere"),
        ({"layers": {"w": Layer("w", [0.0], [1.0], [0.0])}}, "error", "gradient is 0 in all steps"),
        ({"layers": {n: Layer(n, [v], [0.0], [1e-3]) for n, v in zip("abcd", (1e-6, 1, 1, 10))}}, "warning", "differ by 1e+07 times"),
        ({"layers": {"w": Layer("w", [1.0], [0.0], [0.5])}}, "warning", "changes parameters by 50.0%"),
        ({"layers": {"w": Layer("w", [1.0], [0.0], [1e-9])}}, "warning", "raise the learning rate"),
        ({"losses": [1.0] * 10}, "note", "does not fall"),
        ({"losses": [1.0] * 20, "scales": [2.0**24]}, "warning", "10 of 20 steps overflow at loss scale 1.67772e+07"),
        (
            {"bad": Bad(1, "exp", "float32", "forward", "a.py:3", "net", 200.0), "losses": [float("nan")]},
            "error",
            "exp gives NaN or infinity in float32",
        ),
        ({"relus": {"net.1": 0.7}}, "warning", "70% of the units"),
        ({"error": "ValueError: no"}, "error", "ended with ValueError: no"),
        ({"steps": 0, "losses": [], "layers": {}}, "error", "without a step"),
    ],
)
def test_facts_lead_to_findings(change: dict[str, Any], level: str, text: str) -> None:
    found = findings(facts(**change))
    assert [f for f in found if f.level == level and text in f"{f.what} {f.way_out}"], found
    assert findings(facts()) == []
    assert Facts.from_json(facts(**change).to_json()).to_json() == facts(**change).to_json()
