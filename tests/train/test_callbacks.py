"""Callbacks: MindSpore's lines letter by letter, names of checkpoints, when they stop and what they change; no training is needed for it."""

from __future__ import annotations

import os
import re
import signal
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.train.nets import Names

from jumar import train
from jumar.frontend import Parameter, Tensor
from jumar.train.callback._callback import CallbackManager, InternalCallbackParam, RunContext


class Run:
    """A loop over made-up losses."""

    def __init__(self, callbacks: Any, batches: int = 2, **more: Any) -> None:
        self.net = Names(w=(2,))
        self.params = InternalCallbackParam(
            train_network=self.net,
            network=self.net,
            batch_num=batches,
            epoch_num=1,
            cur_step_num=0,
            mode="train",
            dataset_sink_mode=False,
            **more,
        )
        self.context = RunContext(self.params)
        self.callbacks = callbacks

    def go(self, *epochs: list[Any], evals: list[dict[str, float]] | None = None) -> Run:
        with CallbackManager(self.callbacks) as manager:
            manager.call("on_train_begin", self.context)
            for number, losses in enumerate(epochs, 1):
                self.params.cur_epoch_num = number
                manager.call("on_train_epoch_begin", self.context)
                for loss in losses:
                    self.params.cur_step_num += 1
                    manager.call("on_train_step_begin", self.context)
                    self.params.net_outputs = Tensor(np.float32(loss)) if isinstance(loss, float) else loss
                    self.net.params[0].set_data(Tensor(np.full(2, self.params.cur_step_num, np.float32)))
                    manager.call("on_train_step_end", self.context)
                if evals:
                    self.params.eval_results = evals[number - 1]
                manager.call("on_train_epoch_end", self.context)
                if self.context.get_stop_requested():
                    break
            manager.call("on_train_end", self.context)
        return self


def test_loss_monitor_prints_the_lines_of_mindspore(capsys: pytest.CaptureFixture[str]) -> None:
    Run(train.LossMonitor()).go([0.5, 2.25], [0.1, 1.0])
    assert capsys.readouterr().out.splitlines() == [
        "epoch: 1 step: 1, loss is 0.5", "epoch: 1 step: 2, loss is 2.25", "epoch: 2 step: 1, loss is 0.10000000149011612", "epoch: 2 step: 2, loss is 1.0",
    ]  # fmt: skip
    Run(train.LossMonitor(3)).go([0.5, 2.25], [0.1, 1.0])
    assert capsys.readouterr().out.splitlines() == ["epoch: 2 step: 1, loss is 0.10000000149011612"]
    Run(train.LossMonitor(), metrics={"acc": 0.5}).go([(Tensor(np.float32(0.1)), Tensor(False))])
    assert capsys.readouterr().out.splitlines() == ["epoch: 1 step: 1, loss is 0.1", "Eval result: epoch 1, metrics: {'acc': 0.5}"]
    with pytest.raises(ValueError, match="In epoch: 1 step: 2, loss is NAN or INF, training process cannot continue, terminating training"):
        Run(train.LossMonitor(0)).go([0.5, float("nan")])


def test_a_loss_monitor_serves_two_runs(capsys: pytest.CaptureFixture[str]) -> None:
    monitor = train.LossMonitor(2)
    for _ in range(2):
        Run(monitor, batches=4).go([0.5, 0.5, 0.5, 0.5])
    assert capsys.readouterr().out.count("step: 2") == 2


def test_time_monitor_prints_the_line_of_mindspore(capsys: pytest.CaptureFixture[str]) -> None:
    Run(train.TimeMonitor()).go([0.5, 0.5])
    Run(train.TimeMonitor(data_time=True)).go([0.5, 0.5])
    first, second = capsys.readouterr().out.splitlines()
    assert re.fullmatch(r"Train epoch time: \d+\.\d{3} ms, per step time: \d\.\d{3} ms", first)
    assert re.fullmatch(r"Train epoch time: \d+\.\d{3} ms, per step time: \d\.\d{3} ms \(data time: \d\.\d{3} ms\)", second)


def test_checkpoints_have_the_names_of_mindspore_and_the_oldest_go(tmp_path: Path) -> None:
    config = train.CheckpointConfig(
        save_checkpoint_steps=2, keep_checkpoint_max=2, append_info=["epoch_num", "step_num", {"lr": 0.5, "who": "me"}]
    )
    saver = train.ModelCheckpoint("net", str(tmp_path), config)
    Run(saver, batches=3).go([1.0, 1.0, 1.0], [1.0, 1.0, 1.0], [1.0])
    assert sorted(os.listdir(tmp_path)) == ["net-2_3.ckpt", "net-3_1.ckpt"]
    assert saver.latest_ckpt_file_name == str(tmp_path / "net-3_1.ckpt")
    found = train.load_checkpoint(saver.latest_ckpt_file_name)
    assert found["w"].asnumpy().tolist() == [7, 7]
    assert (found["epoch_num"].asnumpy(), found["step_num"].asnumpy(), found["lr"].asnumpy(), found["who"]) == (3, 7, 0.5, "me")


def test_a_prefix_that_is_taken_gets_a_number(tmp_path: Path) -> None:
    for _ in range(3):
        Run(train.ModelCheckpoint("net", str(tmp_path), train.CheckpointConfig(10)), batches=1).go([1.0])
    assert sorted(os.listdir(tmp_path)) == ["net-1_1.ckpt", "net_1-1_1.ckpt", "net_2-1_1.ckpt"]


def test_prefix_and_folder_may_be_functions_and_saving_goes_on_behind(tmp_path: Path) -> None:
    config = train.CheckpointConfig(async_save=True, format="safetensors", saved_network=Names(other=(1,)))
    saver = train.ModelCheckpoint(lambda p: f"s{p.cur_step_num}", lambda p: str(tmp_path / f"e{p.cur_epoch_num}"), config)
    Run(saver).go([1.0, 1.0], [1.0])
    assert sorted(str(p.relative_to(tmp_path)) for p in tmp_path.rglob("*.safetensors")) == [
        "e1/s1.safetensors", "e1/s2.safetensors", "e2/s3.safetensors",
    ]  # fmt: skip
    assert list(train.load_checkpoint(str(tmp_path / "e2/s3.safetensors"))) == ["other"]


def test_an_error_saves_where_it_was_wanted(tmp_path: Path) -> None:
    saver = train.ModelCheckpoint("net", str(tmp_path), train.CheckpointConfig(10, exception_save=True))
    saver.save_after_error(Names(w=(1,)), 2, 5)
    saver.save_after_error(Names(w=(1,)), 2, 5)
    assert sorted(os.listdir(tmp_path)) == ["net-2_5_breakpoint.ckpt", "net_1-2_5_breakpoint.ckpt"]


@pytest.mark.parametrize(
    "options, text",
    [
        ({"save_checkpoint_steps": 0, "keep_checkpoint_max": 0}, "must be above 0"), ({"append_info": ["epochs"]}, "append_info must hold"),
        ({"save_checkpoint_steps": -1}, "at least 0"), ({"format": "zip"}, "format must be known"), ({"enc_key": b"k"}, "does not encrypt"),
        ({"remove_redundancy": True}, "many devices"), ({"saved_network": 3}, "must be a Cell"),
    ],
)  # fmt: skip
def test_wrong_settings_of_checkpoints_are_named(options: dict[str, Any], text: str) -> None:
    with pytest.raises((ValueError, TypeError, NotImplementedError), match=text):
        train.CheckpointConfig(**options)


def test_early_stopping_stops_and_puts_the_best_weights_back(capsys: pytest.CaptureFixture[str]) -> None:
    stop = train.EarlyStopping("loss", patience=2, verbose=True, restore_best_weights=True)
    run = Run(stop, batches=1).go([1.0], [0.5], [0.6], [0.7], [0.1])
    assert run.params.cur_epoch_num == 4 and stop.stopped_epoch == 4
    assert run.net.params[0].asnumpy().tolist() == [2, 2]
    assert capsys.readouterr().out.splitlines() == [
        "Restoring model weights from the end of the best epoch.",
        "Epoch 00004: early stopping",
    ]
    run = Run(train.EarlyStopping("acc", patience=1), batches=1).go([1.0], [1.0], [1.0], evals=[{"acc": 0.5}, {"acc": 0.6}, {"acc": 0.6}])
    assert run.params.cur_epoch_num == 3
    run = Run(train.EarlyStopping("loss", patience=2, baseline=0.2), batches=1).go([1.0], [0.9], [0.8])
    assert run.params.cur_epoch_num == 2


class Optimizer:
    def __init__(self, rate: float) -> None:
        self.learning_rate = Parameter(np.float32(rate), name="learning_rate")


def test_the_learning_rate_follows_plateaus_and_functions(capsys: pytest.CaptureFixture[str]) -> None:
    run = Run(train.ReduceLROnPlateau("loss", factor=0.5, patience=1, verbose=True, min_lr=0.3), batches=1, optimizer=Optimizer(1.0))
    run.go([1.0], [1.0], [1.0], [1.0])
    assert float(run.params.optimizer.learning_rate.asnumpy()) == pytest.approx(0.3)
    assert capsys.readouterr().out.splitlines()[0] == "Epoch 00002: ReduceLROnPlateau reducing learning rate to 0.5."
    seen = []

    def function(rate: float, step: int) -> float:
        seen.append((rate, step))
        return rate * 0.5

    run = Run(train.LearningRateScheduler(function), batches=2, optimizer=Optimizer(0.1)).go([1.0, 1.0])
    assert seen == [(0.1, 1), (0.05, 2)]
    assert float(run.params.optimizer.learning_rate.asnumpy()) == pytest.approx(0.025)


def test_history_and_lambdas_see_what_happens() -> None:
    history, seen = train.History(), []
    watch = train.LambdaCallback(on_train_step_end=lambda c: seen.append(c.original_args().cur_step_num))
    Run([history, watch], metrics={"acc": 0.5}).go([1.0, 0.5], [0.25, 0.125])
    assert history.history == {"net_output": [0.5, 0.125], "acc": [0.5, 0.5]} and history.epoch == {"epoch": [1, 2]}
    assert seen == [1, 2, 3, 4]
    with pytest.raises(ValueError, match="functions must be among"):
        train.LambdaCallback(on_train_stp_end=print)


def test_a_signal_ends_training_after_the_step_and_the_next_run_takes_it_up(tmp_path: Path) -> None:
    leave = train.OnRequestExit(save_mindir=False, directory=str(tmp_path), sig=signal.SIGUSR1)
    before = signal.getsignal(signal.SIGUSR1)
    kill = train.LambdaCallback(on_train_step_end=lambda c: c.original_args().cur_step_num == 3 and os.kill(os.getpid(), signal.SIGUSR1))
    run = Run([kill, leave], batches=2).go([1.0, 1.0], [1.0, 1.0], [1.0])
    assert run.params.cur_epoch_num == 2 and signal.getsignal(signal.SIGUSR1) == before
    again = Run(train.OnRequestExit(save_mindir=False, directory=str(tmp_path)))
    again.go()
    assert again.net.params[0].asnumpy().tolist() in ([3, 3], [4, 4])
    with pytest.raises(ValueError, match="SIGKILL"):
        train.OnRequestExit(sig=signal.SIGKILL)


def test_backup_and_restore(tmp_path: Path) -> None:
    Run(train.BackupAndRestore(str(tmp_path), delete_checkpoint=False)).go([1.0, 1.0])
    again = Run(train.BackupAndRestore(str(tmp_path)))
    again.go()
    assert again.net.params[0].asnumpy().tolist() == [2, 2] and os.listdir(tmp_path) == []


def test_summaries_are_records_of_scalars(tmp_path: Path) -> None:
    Run(train.SummaryCollector(str(tmp_path), collect_freq=2), optimizer=Optimizer(0.5)).go([1.0, 0.5])
    (file,) = os.listdir(tmp_path)
    raw, at, events = (tmp_path / file).read_bytes(), 0, []
    while at < len(raw):
        (length,) = struct.unpack_from("<Q", raw, at)
        events.append(raw[at + 12 : at + 12 + length])
        at += length + 16
    assert len(events) == 3 and b"brain.Event:2" in events[0]
    assert b"loss\x15" + struct.pack("<f", 1.0) in events[1] and b"learning_rate\x15" + struct.pack("<f", 0.5) in events[2]


def test_a_callback_that_is_none_is_named() -> None:
    with pytest.raises(TypeError, match="all must be Callbacks, got int"):
        CallbackManager([3])
    with pytest.raises(AttributeError, match="cur_stp must be one of"):
        InternalCallbackParam(cur_step_num=1).cur_stp  # noqa: B018
    with pytest.raises(NotImplementedError, match="not counted yet"):
        train.FlopsUtilizationCollector()
