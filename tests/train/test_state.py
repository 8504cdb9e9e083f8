"""The state of a run: killed at any moment, it goes on with the same bits."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from tests.train.nets import Names

from jumar.amp import DynamicLossScaler
from jumar.frontend import Tensor, wrap
from jumar.frontend.random import DEFAULT, draw
from jumar.train import EarlyStopping, Resume, TrainState, save_checkpoint
from jumar.train.errors import MismatchError
from jumar.train.serialization import read_values

HERE = Path(__file__).parent


def run(script: str, folder: Path, *arguments: str, saves: int = 0, wait_s: float = 0.0) -> str | None:
    """The digest that the script prints; None if it was killed before.   saves: changes in its folder after which, and `wait_s`, it is killed; 0: never."""
    folder.mkdir(exist_ok=True)
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(HERE.parents[1] / "src"), os.environ.get("PYTHONPATH", "")])}
    with subprocess.Popen(
        [sys.executable, str(HERE / script), str(folder), *arguments], stdout=subprocess.PIPE, env=environment, text=True
    ) as process:
        before = seen(folder)
        while saves and process.poll() is None:
            time.sleep(0.002)
            now = seen(folder)
            saves -= now != before
            before = now
            if not saves:
                time.sleep(wait_s)
                process.kill()
        out, _ = process.communicate()
    if process.returncode == -signal.SIGKILL:
        return None
    assert process.returncode == 0
    return out.strip()


def seen(folder: Path) -> list[tuple[str, int]]:
    """What is in a folder, and since when."""
    with os.scandir(folder) as entries:
        return sorted((e.name, e.inode()) for e in entries)


@pytest.mark.slow
@pytest.mark.parametrize(
    "script, arguments", [("run_functional.py", ["30", "3"]), ("run_model.py", ["30", "3", "1"]), ("run_model.py", ["30", "3", "0"])]
)
def test_a_run_that_is_killed_goes_on_with_the_same_bits(tmp_path: Path, script: str, arguments: list[str]) -> None:
    wanted = run(script, tmp_path / "whole", *arguments)
    rng = random.Random(0)
    found, kills = None, 0
    while found is None:
        found = run(script, tmp_path / "killed", *arguments, saves=rng.randint(1, 12) if kills < 4 else 0, wait_s=rng.uniform(0, 0.03))
        kills += found is None
    assert (kills, found) == (4, wanted)
    assert not [p for p in (tmp_path / "killed").iterdir() if p.name.endswith(".partial")]


def test_everything_comes_back(tmp_path: Path) -> None:
    class Scaler:
        def __init__(self) -> None:
            self.scale, self.good, self.counter = 4.0, 3, Tensor([7])

    net, scaler, path = Names(w=(3,)), Scaler(), str(tmp_path / "s.ckpt")
    np.random.seed(5)
    random.seed(6)
    DEFAULT.manual_seed(7)
    np.random.standard_normal(3), random.gauss(0, 1), draw((2,))
    state = TrainState(net=net, scaler=scaler)
    state.save(path, step=4, note="x")
    before = (np.random.standard_normal(2).tolist(), random.gauss(0, 1), random.random(), draw((2,)).asnumpy().tolist())
    net.params[0].set_data(Tensor(np.ones(3, np.float32)))
    scaler.scale, scaler.good = 1.0, 0
    scaler.counter._write(Tensor([0]))
    assert state.load(path) == {"step": 4, "note": "x"}
    assert before == (np.random.standard_normal(2).tolist(), random.gauss(0, 1), random.random(), draw((2,)).asnumpy().tolist())
    assert net.params[0].asnumpy().tolist() == [0, 0, 0]
    assert (scaler.scale, scaler.good, scaler.counter.asnumpy().tolist()) == (4.0, 3, [7])


def test_a_state_of_another_run_changes_nothing(tmp_path: Path) -> None:
    path = str(tmp_path / "s.ckpt")
    TrainState(net=Names(w=(3,), v=(1,))).save(path)
    other = Names(w=(2,), u=(1,))
    with pytest.raises(MismatchError, match=r"net:w must be float32\[2\], got float32\[3\]"):
        TrainState(net=other).load(path)
    with pytest.raises(MismatchError, match="net:u is missing"):
        TrainState(net=other).load(path)
    save_checkpoint({"w": Tensor([1.0])}, path, crc_check=True)
    with pytest.raises(ValueError, match="must be a training state"):
        TrainState(net=other).load(path)


def test_a_file_sets_only_what_the_run_would_save(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    stop, path = EarlyStopping("loss", patience=3), str(tmp_path / "s.ckpt")
    stop.wait = 2
    TrainState(net=Names(w=(1,)), others={"0.EarlyStopping": stop}).save(path)
    values = read_values(path)
    facts = json.loads(str(values["jumar.train_state"]))
    assert sorted(facts["plain"]) == ["0.EarlyStopping/best", "0.EarlyStopping/wait"]
    facts["plain"] |= {"0.EarlyStopping/monitor": "acc", "0.EarlyStopping/__class__": "x", "net/params": "x", "nothing/x": 1}
    save_checkpoint(
        {n: wrap(v) for n, v in values.items() if not isinstance(v, str)},
        path,
        append_dict={"jumar.train_state": json.dumps(facts)},
        crc_check=True,
    )
    stop.wait = 0
    TrainState(net=Names(w=(1,)), others={"0.EarlyStopping": stop}).load(path)
    assert (stop.wait, stop.monitor, type(stop)) == (2, "loss", EarlyStopping)
    assert sum("has no place" in r.message for r in caplog.records) == 4


def test_a_scaler_of_amp_comes_back(tmp_path: Path) -> None:
    scaler, path = DynamicLossScaler(1024.0, 2.0, 2), str(tmp_path / "s.ckpt")
    for finite in (True, True, False):
        scaler.adjust(Tensor(finite))
    state, before = TrainState(net=Names(w=(1,)), scaler=scaler), scaler.scale_value.asnumpy().item()
    state.save(path)
    for _ in range(3):
        scaler.adjust(Tensor(False))
    state.load(path)
    assert scaler.scale_value.asnumpy().item() == before == 1024.0


def test_arguments_are_checked() -> None:
    with pytest.raises(TypeError, match="directory must be str"):
        Resume(3)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="save_steps must be at least 1"):
        Resume("x", save_steps=0)
