"""`jumar convert-weights`: a state dict of PyTorch becomes a checkpoint, with a report; with a network, both compute the same."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from jumar import Tensor, nn, train
from jumar.base import ToolError
from jumar.tools.convert_weights import command

torch = pytest.importorskip("torch")


@pytest.fixture(autouse=True)
def alias_ends_with_the_test(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "meta_path", list(sys.meta_path))
    for name in [n for n in sys.modules if n.partition(".")[0] == "mindspore"]:
        monkeypatch.delitem(sys.modules, name)


def make() -> nn.Cell:
    return nn.SequentialCell(
        nn.Conv2d(3, 4, 3, pad_mode="valid", has_bias=True), nn.BatchNorm2d(4), nn.ReLU(), nn.Flatten(), nn.Dense(4 * 36, 5)
    )


def test_both_networks_compute_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    torch.manual_seed(0)
    theirs = torch.nn.Sequential(
        torch.nn.Conv2d(3, 4, 3), torch.nn.BatchNorm2d(4), torch.nn.ReLU(), torch.nn.Flatten(), torch.nn.Linear(4 * 36, 5)
    )
    x = np.random.default_rng(0).standard_normal((2, 3, 8, 8)).astype(np.float32)
    theirs(torch.from_numpy(x))
    theirs.eval()
    torch.save(theirs.state_dict(), tmp_path / "a.pt")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(Path(__file__).parent))
    done = CliRunner().invoke(command, ["a.pt", "a.ckpt", "--net", "test_convert_weights:make", "--json"], catch_exceptions=False)
    report = json.loads(done.output)
    assert (report["written"], report["missing"]) == (8, [])
    mine = make()
    assert train.load_param_into_net(mine, train.load_checkpoint("a.ckpt"), strict_load=True) == ([], [])
    assert np.allclose(mine(Tensor(x)).asnumpy(), theirs(torch.from_numpy(x)).detach().numpy(), atol=1e-5)
    plain = CliRunner().invoke(command, ["a.pt", "b.safetensors"], catch_exceptions=False)
    assert "1.num_batches_tracked  left out   (not used by MindSpore)" in plain.output
    assert sorted(train.load_checkpoint("b.safetensors")) == sorted(train.load_checkpoint("a.ckpt"))


def test_the_network_may_be_mindspore_code(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    torch.save({"0.weight": torch.ones(3, 2), "0.bias": torch.ones(3)}, tmp_path / "a.pt")
    (tmp_path / "their_models.py").write_text("from mindspore import nn\n\n\ndef make():\n    return nn.SequentialCell(nn.Dense(2, 3))\n")
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(command, ["a.pt", "a.ckpt", "--net", "their_models:make"], catch_exceptions=False)
    assert "2 of 2 tensors written to a.ckpt" in done.output


def test_wrong_arguments_are_named(tmp_path: Path) -> None:
    torch.save({"w": torch.ones(2)}, tmp_path / "a.pt")
    source = str(tmp_path / "a.pt")
    for arguments, text in (
        ([source, "out.npz"], "OUT must end with"),
        ([source, str(tmp_path / "o.ckpt"), "--net", "models"], "MODULE:FACTORY"),
        ([source, str(tmp_path / "o.ckpt"), "--net", "no_such_module:f"], "must be importable"),
        ([source, str(tmp_path / "o.ckpt"), "--net", "jumar.nn:ReLU"], "a tensor must match, got none of 1"),
    ):
        with pytest.raises(ToolError, match=text):
            CliRunner().invoke(command, arguments, catch_exceptions=False)
