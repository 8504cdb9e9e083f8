"""Layers with parameters: names, shapes, initial statistics and values recorded from MindSpore 2.10."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from jumar import nn
from jumar.base import OpError
from jumar.common.initializer import Normal
from jumar.frontend import Tensor
from jumar.frontend import dtype as types

RECORDED = json.loads(Path(__file__).with_name("recorded.json").read_text())
X4 = np.linspace(-1, 1, 2 * 4 * 5 * 6, dtype=np.float32).reshape(2, 4, 5, 6)
T4 = Tensor(X4)


def filled(cell: Any) -> Any:
    """The cell with weights that the recording had, too."""
    for p in cell.get_parameters():
        p.set_data(Tensor((np.random.RandomState(len(p.name)).randn(*p.shape) * 0.3).astype(np.float32)))
    return cell


def shapes(cell: Any) -> dict[str, tuple[int, ...]]:
    return {p.name: tuple(p.shape) for p in cell.get_parameters()}


@pytest.mark.parametrize(
    ("make", "want", "bound"),
    [
        (lambda: nn.Dense(64, 32), {"weight": (32, 64), "bias": (32,)}, 1 / 8),
        (lambda: nn.Linear(64, 32), {"weight": (32, 64), "bias": (32,)}, 1 / 8),
        (lambda: nn.Conv1d(8, 16, 3, has_bias=True), {"weight": (16, 8, 1, 3), "bias": (16,)}, 24**-0.5),
        (lambda: nn.Conv2d(8, 16, 3, has_bias=True, group=2), {"weight": (16, 4, 3, 3), "bias": (16,)}, 1 / 6),
        (lambda: nn.Conv3d(8, 16, 3), {"weight": (16, 8, 3, 3, 3)}, 216**-0.5),
        (lambda: nn.Conv1dTranspose(8, 16, 3), {"weight": (8, 16, 1, 3)}, 48**-0.5),
        (lambda: nn.Conv2dTranspose(8, 16, 3, group=2), {"weight": (8, 8, 3, 3)}, 72**-0.5),
        (lambda: nn.Conv3dTranspose(8, 16, 3), {"weight": (8, 16, 3, 3, 3)}, 432**-0.5),
        (lambda: nn.LSTMCell(4, 6), {"weight_ih": (24, 4), "weight_hh": (24, 6), "bias_ih": (24,), "bias_hh": (24,)}, 6**-0.5),
    ],
)
def test_weights_begin_uniform_within_a_bound(make: Callable[[], Any], want: dict[str, tuple[int, ...]], bound: float) -> None:
    cell = make()
    assert shapes(cell) == want
    weight = next(iter(cell.get_parameters())).asnumpy()
    assert bound * 0.8 < abs(weight).max() <= bound
    assert abs(weight.std() - bound / 3**0.5) < 0.15 * bound


def test_norms_begin_as_the_identity_and_have_these_names() -> None:
    assert list(shapes(nn.BatchNorm2d(4))) == ["mean", "variance", "gamma", "beta"]
    assert [p.requires_grad for p in nn.BatchNorm2d(4).get_parameters()] == [False, False, True, True]
    assert [p.requires_grad for p in nn.BatchNorm2d(4, affine=False).get_parameters()] == [False] * 4
    assert list(shapes(nn.BatchNorm3d(4))) == [f"bn2d.{n}" for n in ("moving_mean", "moving_variance", "gamma", "beta")]
    assert shapes(nn.LayerNorm((3, 4))) == {"gamma": (3, 4), "beta": (3, 4)}
    assert shapes(nn.GroupNorm(2, 4)) == {"gamma": (4,), "beta": (4,)}
    assert shapes(nn.PReLU(3)) == {"a": (3,)}


def test_embeddings_begin_normal_with_a_row_of_zeros() -> None:
    table = nn.Embedding(500, 8, padding_idx=3).embedding_table.asnumpy()
    assert abs(table.std() - 0.01) < 1e-3
    assert not table[3].any()
    cell = nn.Embedding(5, 2, embedding_table=Normal(1.0))
    np.testing.assert_array_equal(cell(Tensor([[1, 4]])).asnumpy(), cell.embedding_table.asnumpy()[[[1, 4]]])


@pytest.mark.parametrize(
    ("make", "want"),
    [
        (lambda: nn.Conv2d(4, 2, 3, pad_mode="pad", padding=(1, 2, 0, 1)), (2, 2, 6, 5)),
        (lambda: nn.Conv2d(4, 2, 3, stride=2), (2, 2, 3, 3)),
        (lambda: nn.Conv2dTranspose(4, 2, 3, stride=2), (2, 2, 10, 12)),
        (lambda: nn.Conv2dTranspose(4, 2, 3, stride=2, pad_mode="pad", padding=1), (2, 2, 9, 11)),
        (lambda: nn.Conv2dTranspose(4, 2, 3, stride=2, pad_mode="pad", padding=1, output_padding=1), (2, 2, 10, 12)),
        (lambda: nn.Conv2dTranspose(4, 2, 3, stride=2, pad_mode="pad", padding=(1, 0, 1, 0)), (2, 2, 10, 12)),
        (lambda: nn.Conv2dTranspose(4, 2, 3, stride=2, pad_mode="valid"), (2, 2, 11, 13)),
        (lambda: nn.Conv2dTranspose(4, 2, 1, stride=2, pad_mode="valid"), (2, 2, 10, 12)),
        (lambda: nn.Conv2dTranspose(4, 2, 3, stride=2, dilation=2, pad_mode="valid"), (2, 2, 13, 15)),
        (lambda: nn.MaxPool2d(3, 2, "pad", 1, ceil_mode=True), (2, 4, 3, 4)),
        (lambda: nn.MaxPool2d(2, 2, "pad", dilation=2), (2, 4, 2, 2)),
        (nn.Flatten, (2, 120)),
        (lambda: nn.Pad(((0, 0), (0, 0), (1, 1), (2, 2)), mode="REFLECT"), (2, 4, 7, 10)),
        (lambda: nn.Upsample(size=(7, 8), mode="bilinear", align_corners=True), (2, 4, 7, 8)),
    ],
)
def test_shapes_are_mindspores(make: Callable[[], Any], want: tuple[int, ...]) -> None:
    assert tuple(make()(T4).shape) == want


def test_one_dimension_is_convolved_as_two_are() -> None:
    x = T4[:, :, 0]
    assert [tuple(nn.Conv1dTranspose(4, 2, 3, stride=2, pad_mode=m)(x).shape) for m in ("same", "valid")] == [(2, 2, 12), (2, 2, 13)]
    narrow, flat = nn.Conv1d(4, 2, 3), nn.Conv2d(4, 2, (1, 3))
    flat.weight.set_data(narrow.weight)
    np.testing.assert_allclose(narrow(x).asnumpy(), flat(x.expand_dims(2)).asnumpy()[:, :, 0], rtol=1e-5, atol=1e-6)


def test_same_of_a_transposed_convolution_crops_at_the_end() -> None:
    cell = nn.Conv2dTranspose(1, 1, 3, stride=2)
    cell.weight.set_data(Tensor(np.arange(9, dtype=np.float32).reshape(1, 1, 3, 3)))
    assert cell(Tensor(np.ones((1, 1, 2, 2), np.float32))).asnumpy().tolist() == [
        [[[0.0, 1.0, 2.0, 1.0], [3.0, 4.0, 8.0, 4.0], [6.0, 8.0, 16.0, 8.0], [3.0, 4.0, 8.0, 4.0]]]
    ]


# [0, 0] of the result, recorded from MindSpore 2.10
@pytest.mark.parametrize(
    ("make", "want"),
    [
        (lambda: nn.MaxPool2d(3, 2, "same"), [[-0.933054, -0.916318, -0.90795], [-0.832636, -0.8159, -0.807531], [-0.782427, -0.76569, -0.757322]]),
        (lambda: nn.AvgPool2d(3, 2, "same"), [[-0.966527, -0.949791, -0.937238], [-0.891213, -0.874477, -0.861925], [-0.8159, -0.799163, -0.786611]]),
        (lambda: nn.AvgPool2d(3, 2, "pad", 1), [[-0.431427, -0.638773, -0.627615], [-0.596932, -0.882845, -0.866109], [-0.364482, -0.538354, -0.527197]]),
        (
            lambda: nn.AvgPool2d(2, 2, ceil_mode=True),
            [[-0.970711, -0.953975, -0.937238], [-0.870293, -0.853557, -0.83682], [-0.794979, -0.778243, -0.761506]],
        ),
    ],
)  # fmt: skip
def test_pools_are_mindspores(make: Callable[[], Any], want: Any) -> None:
    np.testing.assert_allclose(make()(T4).asnumpy()[0, 0], want, atol=1e-6)


def test_ceil_needs_the_mode_pad_in_max_pools() -> None:
    with pytest.raises(ValueError, match="can not be set to non-default value when pad_mode is not 'pad', but got pad_mode:valid"):
        nn.MaxPool2d(2, 2, ceil_mode=True)
    with pytest.raises(ValueError, match=r"must be in '\['VALID', 'SAME', 'PAD'\]', but got 'FOO'"):
        nn.MaxPool2d(2, 2, "foo")


def test_batch_norm_keeps_nine_tenths_and_unbiased_variances() -> None:
    cell = nn.BatchNorm2d(4).set_train()
    np.testing.assert_allclose(cell(T4).asnumpy()[0, 1, 0, :2], [-1.2289214, -1.2124257], rtol=1e-5)
    np.testing.assert_allclose(cell.moving_mean.asnumpy(), [-0.0376569, -0.0125523, 0.0125523, 0.0376569], rtol=1e-5)
    np.testing.assert_allclose(cell.moving_variance.asnumpy(), [0.9261704] * 4, rtol=1e-6)
    np.testing.assert_allclose(cell.set_train(False)(T4).asnumpy()[0, 1, 0, :2], [-0.7651859, -0.7564906], rtol=1e-5)


@pytest.mark.parametrize(
    ("use", "training", "batch"), [(True, False, True), (False, True, False), (None, True, True), (None, False, False)]
)
def test_use_batch_statistics_overrides_training(use: bool | None, training: bool, batch: bool) -> None:
    cell = nn.BatchNorm2d(4, use_batch_statistics=use).set_train(training)
    cell(T4)
    assert bool(cell.moving_mean.asnumpy().any()) == batch


def test_batch_norm_of_float16_stays_float16_with_wide_statistics() -> None:
    cell = nn.BatchNorm2d(4).set_train().to_float(types.float16)
    assert cell(T4).dtype is types.float16
    assert cell.moving_mean.dtype is types.float32
    assert cell.moving_mean.asnumpy().any()


def test_layer_and_group_norms_are_mindspores() -> None:
    np.testing.assert_allclose(nn.LayerNorm((6,))(T4).asnumpy()[0, 0, 0, :3], [-1.4634924, -0.8780963, -0.2927002], rtol=1e-3)
    two = nn.LayerNorm((5, 6), begin_norm_axis=2, begin_params_axis=2)
    np.testing.assert_allclose(two(T4).asnumpy()[0, 0, 0, :3], [-1.6752306, -1.5596976, -1.4441645], rtol=1e-5)
    np.testing.assert_allclose(nn.GroupNorm(2, 4)(T4).asnumpy()[0, 0, 0, :3], [-1.7030145, -1.6452853, -1.587556], rtol=1e-5)


def test_instance_norm_normalises_each_channel() -> None:
    y = nn.InstanceNorm2d(4)(T4).asnumpy()
    np.testing.assert_allclose(y.mean((2, 3)), 0, atol=1e-5)
    np.testing.assert_allclose(y.var((2, 3)), 1, atol=3e-3)  # eps beside a variance of 0.005


def test_dropout_drops_in_training_only() -> None:
    cell = nn.Dropout(p=0.5)
    ones = Tensor(np.ones((64, 64), np.float32))
    assert cell(ones) is ones
    y = cell.set_train()(ones).asnumpy()
    assert set(np.unique(y)) == {0.0, 2.0}
    assert 0.4 < (y == 0).mean() < 0.6
    channels = nn.Dropout2d(0.5).set_train()(Tensor(np.ones((8, 8, 4, 4), np.float32))).asnumpy()
    assert (channels == channels[:, :, :1, :1]).all()


def test_wrong_sizes_are_explained() -> None:
    with pytest.raises(ValueError, match=r"the 'keep_prob' must be a number in range \(0, 1\], but got 1.5"):
        nn.Dropout(1.5)
    with pytest.raises(ValueError, match="the 'pad' must be zero when 'pad_mode' is not 'pad', but got 'pad': 1 and 'pad_mode': valid"):
        nn.Conv2d(4, 2, 3, pad_mode="valid", padding=1)
    with pytest.raises(OpError, match="dimension k must be the same in x and w, got 6 in x"):
        nn.Dense(5, 2)(T4)
    with pytest.raises(TypeError, match="x must have the element type of the parameters, Float32"):
        nn.Dense(2, 2)(Tensor([[1, 2]]))


RNG = np.random.RandomState(1)
X = Tensor(RNG.randn(4, 2, 3).astype(np.float32))
Q, K = (Tensor(RNG.randn(n, 2, 8).astype(np.float32) * 0.5) for n in (4, 5))
KK = Tensor(np.zeros((5, 2, 3), np.float32))
ONES = Tensor(np.ones((2, 2), np.float32))
LENGTHS = Tensor([4, 2], types.int32)
A, B = Tensor(np.array([[0.5, -1.2, 2.0], [0.1, 0.7, -0.3]], np.float32)), Tensor(np.array([[1.0, 0.2, 0.4], [-0.5, 0.6, 0.8]], np.float32))


def both(result: Any, pick: Any) -> list[Any]:
    output, last = result
    return [pick(output), *(last if isinstance(last, tuple) else (last,))]


SEQUENCES: dict[str, Callable[[], list[Any]]] = {
    "lstm": lambda: both(filled(nn.LSTM(3, 2))(X), lambda o: o[-1]),
    "lstm bi2": lambda: both(filled(nn.LSTM(3, 2, 2, bidirectional=True))(X), lambda o: o[-1]),
    "gru": lambda: both(filled(nn.GRU(3, 2, bidirectional=True))(X), lambda o: o[-1]),
    "rnn": lambda: both(filled(nn.RNN(3, 2))(X), lambda o: o[-1]),
    "rnn relu nb": lambda: both(filled(nn.RNN(3, 2, nonlinearity="relu", has_bias=False))(X), lambda o: o[-1]),
    "gru len": lambda: both(filled(nn.GRU(3, 2, bidirectional=True))(X, None, LENGTHS), lambda o: o[:, 1]),
    "rnn len": lambda: both(filled(nn.RNN(3, 2))(X, ONES.expand_dims(0), LENGTHS), lambda o: o[:, 1]),
    "lstmcell": lambda: list(filled(nn.LSTMCell(3, 2))(X[0], (ONES, ONES))),
    "grucell": lambda: [filled(nn.GRUCell(3, 2))(X[0], ONES)],
    "rnncell": lambda: [filled(nn.RNNCell(3, 2))(X[0], ONES)],
    "mha": lambda: [f(*filled(nn.MultiheadAttention(8, 2))(Q, K, K)) for f in (lambda y, w: y[0], lambda y, w: w)],
    "mha nw": lambda: [filled(nn.MultiheadAttention(8, 2))(Q, K, K, need_weights=False)[0][0]],
    "mha na": lambda: [filled(nn.MultiheadAttention(8, 2))(Q, K, K, average_attn_weights=False)[1][0]],
    "mha kpm": lambda: [
        filled(nn.MultiheadAttention(8, 2))(Q, K, K, key_padding_mask=Tensor([[False] * 5, [False, False, False, True, True]]))[1]
    ],
    "mha am": lambda: [filled(nn.MultiheadAttention(8, 2))(Q, Q, Q, attn_mask=Tensor(np.triu(np.ones((4, 4), bool), 1)))[1][0]],
    "tel": lambda: [filled(nn.TransformerEncoderLayer(8, 2, 16))(Q)[0]],
    "tel nf": lambda: [filled(nn.TransformerEncoderLayer(8, 2, 16, norm_first=True, activation="gelu", batch_first=True))(Q)[0]],
    "tdl": lambda: [filled(nn.TransformerDecoderLayer(8, 2, 16))(Q, K)[0]],
    "tr": lambda: [filled(nn.Transformer(8, 2, 1, 1, 16))(K, Q)[0]],
    "bidense": lambda: [filled(nn.BiDense(3, 3, 2))(A, B)],
}


@pytest.mark.parametrize("name", SEQUENCES)
def test_recurrent_and_attention_layers_are_mindspores(name: str) -> None:
    """Sum and first elements of each result."""
    found = [t.asnumpy() for t in SEQUENCES[name]()]
    assert len(found) == len(RECORDED[name])
    for y, (total, *head) in zip(found, RECORDED[name], strict=True):
        np.testing.assert_allclose([y.sum(), *y.ravel()[:4]], [total, *head], rtol=1e-4, atol=5e-5)


def test_lstm_parameters_are_grouped_by_kind() -> None:
    assert list(shapes(nn.LSTM(4, 6, 2))) == [f"{k}_l{i}" for k in ("weight_ih", "weight_hh", "bias_ih", "bias_hh") for i in range(2)]


def test_transformer_names_are_mindspores() -> None:
    assert list(shapes(nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2, 16), 2)))[:3] == [
        "layers.0.self_attn.in_proj_weight", "layers.0.self_attn.in_proj_bias", "layers.0.self_attn.out_proj.weight"
    ]  # fmt: skip


def test_activations_by_name() -> None:
    assert repr(nn.get_activation("relu")) == "ReLU()"
    assert nn.get_activation(None) is None
    with pytest.raises(KeyError, match="The 'name' must be in"):
        nn.get_activation("swish")
    np.testing.assert_allclose(nn.GELU()(Tensor([1.0])).asnumpy(), [0.841192], rtol=1e-6)
    np.testing.assert_allclose(nn.LeakyReLU()(Tensor([-1.0])).asnumpy(), [-0.2])
