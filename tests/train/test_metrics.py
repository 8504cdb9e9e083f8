"""Metrics: the values of MindSpore 2.10 (metrics_mindspore.json, written by metric_cases.py), and clear errors."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from tests.train.metric_cases import cases

from jumar import train
from jumar.frontend import Tensor

GOLDEN = json.loads((Path(__file__).parent / "metrics_mindspore.json").read_text(encoding="utf-8"))


def leaves(value: object) -> list[object]:
    return [x for v in value for x in leaves(v)] if isinstance(value, list) else [value]


def test_every_value_is_that_of_mindspore() -> None:
    found = json.loads(json.dumps(cases(train, Tensor)))
    assert sorted(found) == sorted(GOLDEN)
    wrong = [n for n in GOLDEN if not np.allclose(leaves(found[n]), leaves(GOLDEN[n]), rtol=1e-6, atol=1e-7, equal_nan=True)]
    assert {n: (found[n], GOLDEN[n]) for n in wrong} == {}


def test_indexes_choose_the_inputs() -> None:
    metric = train.MAE().set_indexes([0, 2])
    metric.update(np.ones((2, 1)), "not this", np.zeros((2, 1)))
    assert metric.eval() == 1 and metric.indexes == [0, 2]
    with pytest.raises(ValueError, match="list of ints"):
        metric.set_indexes((0,))  # type: ignore[arg-type]


def test_users_derive_without_calling_init() -> None:
    class Count(train.Metric):
        def __init__(self) -> None:
            self.clear()

        def clear(self) -> None:
            self.n = 0

        @train.rearrange_inputs
        def update(self, *inputs: object) -> None:
            self.n += len(inputs)

        def eval(self) -> int:
            return self.n

    assert Count()(1, 2, 3) == 3


def test_nothing_measured_and_bad_inputs_are_clear_errors() -> None:
    with pytest.raises(RuntimeError, match="Accuracy: update must be called with samples"):
        train.Accuracy().eval()
    with pytest.raises(ValueError, match="must get 2 inputs, got 1"):
        train.Accuracy().update(np.ones((2, 2)))
    with pytest.raises(ValueError, match="below 2, the number of classes, got 2"):
        train.Precision().update(np.ones((2, 2)), np.array([0, 2]))
    with pytest.raises(TypeError, match="must be tensors, lists or arrays, got str"):
        train.MSE().update("a", "b")
    with pytest.raises(KeyError, match="did you mean accuracy"):
        train.get_metric_fn("acuracy")
    assert isinstance(train.get_metric_fn("precision", eval_type="multilabel"), train.Precision)
    with pytest.raises(NotImplementedError, match="hint: evaluate the network"):
        train.OcclusionSensitivity()
