"""Mixed precision: element types inside and outside, parameters that stay float32, scales of losses."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from jumar import amp, nn
from jumar.frontend import Parameter, Tensor
from jumar.frontend import dtype as types

X = Tensor(np.random.RandomState(0).randn(2, 3, 4, 4).astype(np.float32))


class Net(nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        self.conv, self.bn, self.relu, self.fl = nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Flatten()
        self.fc, self.ln, self.g = nn.Dense(64, 5), nn.LayerNorm((5,)), Parameter(Tensor(np.ones(5, np.float32)), name="g")
        self.seen: Any = []

    def construct(self, x: Any) -> Any:
        a = self.conv(x)
        b = self.bn(a)
        d = self.fc(self.fl(self.relu(b)))
        e = self.ln(d)
        f = e * self.g
        self.seen = [str(t.dtype) for t in (a, b, d, e, f)]
        return f


N, W = "Float16", "Float32"


@pytest.mark.parametrize(
    ("level", "inside"),
    [("O0", [W] * 5), ("O1", [W] * 5), ("O2", [N] * 5), ("O3", [N] * 5), ("auto", [N, W, N, W, W])],
)
def test_levels_choose_the_types_inside(level: str, inside: list[str]) -> None:
    net = Net()
    mixed = amp.auto_mixed_precision(net, level)
    plain = Net()
    for p, q in zip(plain.get_parameters(), net.get_parameters(), strict=True):
        p.set_data(q)
    y = mixed(X)
    assert (net.seen, y.dtype) == (inside, types.float32)
    assert all(p.dtype is types.float32 for p in mixed.get_parameters())
    assert [p.name for p in mixed.get_parameters()] == [p.name for p in plain.get_parameters()]
    np.testing.assert_allclose(y.asnumpy(), plain(X).asnumpy(), atol=2e-2)


def test_bfloat16_is_the_other_narrow_type() -> None:
    net = Net()
    assert amp.auto_mixed_precision(net, "O2", types.bfloat16)(X).dtype is types.float32
    assert set(net.seen) == {"BFloat16"}


def test_lists_of_ones_own() -> None:
    net = Net()
    amp.custom_mixed_precision(net, black_list=[*amp.get_black_list(), nn.Dense])
    assert net.fc._mixed is types.float32
    with pytest.raises(ValueError, match="one of white_list and black_list must be provided"):
        amp.custom_mixed_precision(net)
    with pytest.raises(ValueError, match="cannot be provided at the same time"):
        amp.custom_mixed_precision(net, white_list=[], black_list=[])
    with pytest.raises(ValueError, match="The amp level O4 is not supported"):
        amp.auto_mixed_precision(net, "O4")


def test_the_lists_are_mindspores() -> None:
    assert [c.__name__ for c in amp.get_black_list()] == ["BatchNorm1d", "BatchNorm2d", "BatchNorm3d", "LayerNorm"]
    assert {"Conv2d", "Dense", "LSTMCell"} <= {c.__name__ for c in amp.get_white_list()}


def test_a_static_scale_stays() -> None:
    scaler = amp.StaticLossScaler(128.0)
    assert scaler.scale(Tensor(2.0)).asnumpy() == 256
    assert scaler.unscale((Tensor([256.0]),))[0].asnumpy().tolist() == [2.0]
    assert scaler.adjust(Tensor(True)) is False


def test_a_dynamic_scale_follows_the_gradients() -> None:
    scaler = amp.DynamicLossScaler(16.0, 2, 2)
    found = []
    for finite in (True, True, True, False, False, True):
        scaler.adjust(Tensor(finite))
        found.append((float(scaler.scale_value.asnumpy()), int(scaler.counter.asnumpy())))
    assert found == [(16.0, 1), (32.0, 0), (32.0, 1), (16.0, 0), (8.0, 0), (8.0, 1)]


@pytest.mark.parametrize(("bad", "finite"), [(np.inf, False), (np.nan, False), (1.0, True)])
def test_all_finite(bad: float, finite: bool) -> None:
    assert bool(amp.all_finite((Tensor([1.0]), Tensor([bad]))).asnumpy()) is finite


@pytest.mark.parametrize(
    ("options", "kind"),
    [
        ({"level": "O0"}, "TrainOneStepCell"),
        ({"level": "O2"}, "TrainOneStepWithLossScaleCell"),
        ({"level": "O2", "loss_scale_manager": None}, "TrainOneStepCell"),
        ({"level": "O3"}, "TrainOneStepCell"),
        ({"level": "auto"}, "TrainOneStepCell"),
        ({"level": "O2", "loss_scale_manager": amp.FixedLossScaleManager(128.0, False)}, "TrainOneStepCell"),
    ],
)
def test_networks_for_training(options: dict[str, Any], kind: str) -> None:
    net = Net()
    step = amp.build_train_network(net, nn.Momentum(net.trainable_params(), 0.1, 0.9), nn.MSELoss(), **options)
    assert (type(step).__name__, step.training) == (kind, True)
    result = step(X, Tensor(np.zeros((2, 5), np.float32)))
    loss = result[0] if isinstance(result, tuple) else result
    assert np.isfinite(loss.asnumpy()).all()
    assert loss.dtype is types.float32
