"""Model: every moment, loss, metric and weight is that of MindSpore 2.10 (model_mindspore.json, written by model_cases.py), in both modes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.train.model_cases import cases

import jumar
from jumar import context, dataset, nn, train

GOLDEN = json.loads((Path(__file__).parent / "model_mindspore.json").read_text(encoding="utf-8"))


@pytest.fixture(autouse=True)
def _mode() -> Any:
    before = context.MODE
    yield
    jumar.set_context(mode=before)


def near(found: Any, wanted: Any, where: str = "") -> list[str]:
    """Where the two differ; floats by more than a last digit."""
    if isinstance(wanted, list | tuple) and isinstance(found, list | tuple):
        if len(found) != len(wanted):
            return [f"{where}: {len(found)} instead of {len(wanted)}"]
        return [d for i, (f, w) in enumerate(zip(found, wanted, strict=True)) for d in near(f, w, f"{where}/{i}")]
    if isinstance(wanted, float) and isinstance(found, float):
        return [] if abs(found - wanted) < 2e-3 else [f"{where}: {found} instead of {wanted}"]
    return [] if found == wanted else [f"{where}: {found} instead of {wanted}"]


@pytest.mark.parametrize("mode", [0, 1])
def test_every_moment_is_that_of_mindspore(mode: int) -> None:
    found = json.loads(json.dumps(cases(jumar, mode)))
    assert sorted(found) == sorted(GOLDEN)
    assert {name: differences for name in GOLDEN if (differences := near(found[name], GOLDEN[name])[:5])} == {}


def rows(columns: int = 2, count: int = 8) -> Any:
    rng = np.random.default_rng(0)
    parts = [rng.standard_normal((count, 3)).astype(np.float32), rng.integers(0, 2, count).astype(np.int32), np.ones(count, np.float32)]
    return dataset.NumpySlicesDataset(tuple(parts[:columns]), ["x", "y", "z"][:columns], shuffle=False).batch(4)


def model(**options: Any) -> Any:
    net = nn.Dense(3, 2)
    options = {
        "loss_fn": nn.SoftmaxCrossEntropyWithLogits(sparse=True, reduction="mean"),
        "optimizer": nn.SGD(net.trainable_params(), 0.1),
    } | options
    return train.Model(net, **options)


def test_a_step_in_graph_mode_is_one_captured_call() -> None:
    from jumar.base import recording

    jumar.set_context(mode=0)
    trained = model()
    with recording() as record:
        trained.train(3, rows())
    assert len([e for e in record.events if e.name == "segment"]) == 1


def test_a_network_without_loss_and_optimizer_may_train_itself() -> None:
    class Step(nn.Cell):
        def __init__(self) -> None:
            super().__init__()
            self.seen = 0

        def construct(self, x: Any, y: Any, z: Any) -> Any:
            return (x.sum() + z.sum()) * 0

    seen = train.History()
    train.Model(Step()).train(2, rows(3), seen)
    assert seen.history == {"net_output": [0, 0]}


def test_loss_scales_follow_overflow() -> None:
    manager = train.DynamicLossScaleManager(2**4, 2, 3)
    trained = model(loss_scale_manager=manager)
    trained.train(2, rows())
    assert manager.get_loss_scale() == 2**5
    for _ in range(6):
        manager.update_loss_scale(True)
    assert manager.get_loss_scale() == 1
    with pytest.raises(ValueError, match="at least 1, got 0"):
        train.FixedLossScaleManager(0)
    assert train.FixedLossScaleManager(4.0, False).get_update_cell() is None


def test_fit_gives_the_mean_loss_to_callbacks(capsys: pytest.CaptureFixture[str]) -> None:
    results: list[dict[str, Any]] = []
    note = train.LambdaCallback(on_train_epoch_end=lambda c: results.append(dict(c.original_args().get("eval_results", {}))))
    trained = model(metrics={"acc", "loss"})
    trained.fit(4, rows(), rows(), [1, 3], [note, train.LossMonitor(0)])
    assert [sorted(r) for r in results] == [["acc", "eval_loss", "loss"], [], ["acc", "eval_loss", "loss"], []]
    assert results[0]["loss"] == results[0]["eval_loss"]
    assert capsys.readouterr().out.count("Eval result: epoch") == 2


def test_an_own_evaluation_network_with_indexes() -> None:
    class Eval(nn.Cell):
        def construct(self, x: Any, y: Any) -> Any:
            return y, x, x.sum()

    given = model(metrics={"mae": train.MAE()}, eval_network=Eval(), eval_indexes=[2, 1, 1])
    assert given.eval(rows()) == {"mae": 0.0}
    plain = train.Model(nn.Dense(3, 2), metrics={"mae": train.MAE().set_indexes([1, 1])}, eval_network=Eval())
    assert plain.eval(rows()) == {"mae": 0.0}


def test_an_error_in_training_saves_a_breakpoint_and_closes_callbacks(tmp_path: Path) -> None:
    closed = []

    class Bad(train.Callback):
        def __exit__(self, *error: Any) -> None:
            closed.append(error[0])

        def on_train_step_end(self, run_context: Any) -> None:
            if run_context.original_args().cur_step_num == 3:
                raise ZeroDivisionError

    saver = train.ModelCheckpoint("net", str(tmp_path), train.CheckpointConfig(100, exception_save=True))
    with pytest.raises(ZeroDivisionError):
        model().train(2, rows(), [saver, Bad()])
    assert [p.name for p in tmp_path.iterdir()] == ["net-2_1_breakpoint.ckpt"] and closed == [ZeroDivisionError]


def test_a_checkpoint_of_training_has_the_optimiser_and_loads_into_the_network(tmp_path: Path) -> None:
    trained = model()
    trained.train(1, rows(), train.ModelCheckpoint("net", str(tmp_path)))
    found = train.load_checkpoint(str(tmp_path / "net-1_2.ckpt"))
    assert {"weight", "bias", "learning_rate"} <= set(found)
    again = nn.Dense(3, 2)
    left, over = train.load_param_into_net(again, found)
    assert left == [] and "learning_rate" in over
    assert np.array_equal(again.weight.asnumpy(), trained.predict_network.weight.asnumpy())


@pytest.mark.parametrize(
    "work, text",
    [
        (lambda: train.Model(3), "network must be Cell, got int"),
        (lambda: model(los_scale=1), "options must be among loss_scale_manager"),
        (lambda: model(boost_level="O1"), "boost_level must be 'O0'"),
        (lambda: model(optimizer=None, amp_level="O2"), "amp_level must be 'O0' without an optimizer"),
        (lambda: model(metrics=["acc"]), "metrics must be None, a set of names or a dict"),
        (lambda: model(loss_fn=None, metrics={"acc"}), "an eval_network or a loss_fn"),
        (lambda: model(metrics={"acc"}, eval_network=nn.ReLU(), eval_indexes=[0]), "a list of three"),
        (lambda: model().train(0, rows()), "epoch must be at least 1, got 0"),
        (lambda: model().train(2, rows(), initial_epoch=2), "above initial_epoch"),
        (lambda: model().train(1, rows(), sink_size=0), "sink_size must be -1 or positive"),
        (lambda: model().train(1, rows(3)), "data and label for a loss_fn, got 3 columns"),
        (lambda: model().fit(1, rows(), rows()), "metrics of the Model must be given"),
        (lambda: model().eval(rows()), "metrics of the Model must be given"),
        (lambda: model().predict([1]), "tensors, numbers or texts, got list"),
        (lambda: model().predict(jumar.Tensor(np.zeros((0, 3), np.float32))), "must not be empty"),
        (lambda: model().infer_predict_layout(), "on many devices"),
        (lambda: train.export(None), "export: not supported"),
    ],
)
def test_mistakes_are_named(work: Any, text: str) -> None:
    with pytest.raises((ValueError, TypeError, NotImplementedError), match=text):
        work()
