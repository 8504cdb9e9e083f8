"""Layers in PyTorch's manner: names and printing of MindSpore 2.10, values of torch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from jumar.frontend import Tensor
from jumar.mint import nn

RNG = np.random.RandomState(0)
X = RNG.randn(2, 4, 6, 5).astype(np.float32)
ROW = RNG.randn(3, 5).astype(np.float32)


@pytest.mark.parametrize(
    ("make", "names", "text"),
    [
        (lambda: nn.Linear(64, 32), ["weight", "bias"], "Linear(input_features=64, output_features=32, has_bias=True)"),
        (
            lambda: nn.Conv1d(8, 16, 3), ["weight", "bias"],
            "Conv1d(input_channels=8, output_channels=16, kernel_size=(3,), stride=(1,), padding=(0,), dilation=(1,), groups=1, bias=True)",
        ),
        (
            lambda: nn.BatchNorm2d(4), ["weight", "bias", "running_mean", "running_var", "num_batches_tracked"],
            "BatchNorm2d(num_features=4, eps=1e-05, momentum=0.1, affine=True, track_running_stats=True)",
        ),
        (lambda: nn.LayerNorm(4), ["weight", "bias"], "LayerNormExt(normalized_shape=(4,), eps=1e-05, elementwise_affine=True)"),
        (lambda: nn.GroupNorm(2, 4), ["weight", "bias"], "GroupNorm(num_groups=2, num_channels=4, eps=1e-05, affine=True)"),
        (lambda: nn.PReLU(3), ["weight"], "PReLUExt()"),
        (
            lambda: nn.Embedding(50, 8), ["weight"],
            "EmbeddingExt(num_embeddings=50, embedding_dim=8, padding_idx=None, max_norm=None, norm_type=2.0, scale_grad_by_freq=False, "
            "dtype=Float32)",
        ),
    ],
)  # fmt: skip
def test_names_and_printing_are_mindspores(make: Callable[[], Any], names: list[str], text: str) -> None:
    cell = make()
    assert [p.name for p in cell.get_parameters()] == names
    assert repr(cell) == text


CASES: dict[str, tuple[str, tuple[Any, ...], dict[str, Any], Any]] = {
    "linear": ("Linear", (5, 2), {}, ROW),
    "conv1d": ("Conv1d", (4, 3, 3), {"padding": 1}, X[..., 0]),
    "conv2d": ("Conv2d", (4, 6, 3), {"stride": 2, "padding": 1, "groups": 2}, X),
    "conv2d same": ("Conv2d", (4, 6, 4), {"padding": "same"}, X),
    "conv2d reflect": ("Conv2d", (4, 6, 3), {"padding": 1, "padding_mode": "reflect"}, X),
    "conv2d single": ("Conv2d", (4, 6, 3), {}, X[0]),
    "conv3d": ("Conv3d", (2, 3, 2), {"bias": False}, X.reshape(2, 2, 2, 6, 5)),
    "transposed": ("ConvTranspose2d", (4, 3, 3), {"stride": 2, "padding": 1, "output_padding": 1}, X),
    "layer norm": ("LayerNorm", ((6, 5),), {}, X),
    "group norm": ("GroupNorm", (2, 4), {}, X),
    "batch norm": ("BatchNorm2d", (4,), {}, X),
    "max pool": ("MaxPool2d", (3,), {"padding": 1, "ceil_mode": True}, X),
    "average pool": ("AvgPool2d", (3,), {"stride": 2, "padding": 1, "ceil_mode": True}, X),
    "average pool, uncounted": ("AvgPool2d", (3,), {"padding": 1, "count_include_pad": False}, X),
    "average pool, divisor": ("AvgPool2d", (2,), {"divisor_override": 3}, X),
    "adaptive": ("AdaptiveAvgPool2d", ((3, 2),), {}, X),
    "gelu": ("GELU", (), {}, ROW),
    "silu": ("SiLU", (), {}, ROW),
    "elu": ("ELU", (0.5,), {}, ROW),
    "hardtanh": ("Hardtanh", (-0.3, 0.4), {}, ROW),
    "glu": ("GLU", (1,), {}, X),
    "softmax": ("Softmax", (1,), {}, ROW),
    "flatten": ("Flatten", (1, 2), {}, X),
    "unfold": ("Unfold", (2,), {"stride": 2}, X),
    "zero pad": ("ZeroPad2d", ((1, 2, 0, 3),), {}, X),
    "reflection pad": ("ReflectionPad2d", (2,), {}, X),
    "replication pad": ("ReplicationPad2d", (2,), {}, X),
    "constant pad, cut": ("ConstantPad2d", ((-1, 1, 0, 2), 1.5), {}, X),
    "nearest": ("UpsamplingNearest2d", (None, 2), {}, X),
    "bilinear": ("UpsamplingBilinear2d", (None, 2), {}, X),
    "shuffle": ("PixelShuffle", (2,), {}, X),
}


@pytest.mark.filterwarnings("ignore::UserWarning")  # torch has advice
@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("training", [False, True])
def test_values_are_those_of_torch(name: str, training: bool) -> None:
    torch = pytest.importorskip("torch")
    kind, args, options, x = CASES[name]
    ours, theirs = getattr(nn, kind)(*args, **options).set_train(training), getattr(torch.nn, kind)(*args, **options).train(training)
    state = {k: v.detach().numpy().copy() for k, v in theirs.state_dict().items()}
    for path, p in ours.parameters_and_names():
        p.set_data(Tensor(state[path].astype(np.float32)))
    y = theirs(torch.tensor(x)).detach().numpy()
    np.testing.assert_allclose(ours(Tensor(x)).asnumpy(), y, rtol=2e-4, atol=2e-5)
    for path, p in ours.parameters_and_names():
        np.testing.assert_allclose(p.asnumpy(), theirs.state_dict()[path].numpy(), rtol=1e-5, atol=1e-6)


LOGITS, CHOSEN = ROW, np.array([1, 4, 0])


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
@pytest.mark.parametrize("kind", ["CrossEntropyLoss", "MSELoss", "BCEWithLogitsLoss", "SmoothL1Loss", "KLDivLoss", "L1Loss"])
def test_losses_are_those_of_torch(kind: str, reduction: str) -> None:
    torch = pytest.importorskip("torch")
    target: Any = CHOSEN if kind == "CrossEntropyLoss" else np.abs(RNG.randn(3, 5)).astype(np.float32)
    want = getattr(torch.nn, kind)(reduction=reduction)(torch.tensor(LOGITS), torch.tensor(target)).numpy()
    np.testing.assert_allclose(getattr(nn, kind)(reduction=reduction)(Tensor(LOGITS), Tensor(target)).asnumpy(), want, rtol=2e-5, atol=1e-6)


def test_inplace_writes_into_the_input() -> None:
    x = Tensor([-1.0, 8.0])
    assert nn.ReLU6(inplace=True)(x) is x
    assert x.asnumpy().tolist() == [0.0, 6.0]


def test_a_padding_row_receives_no_gradient() -> None:
    from jumar.frontend.grad import grad

    cell = nn.Embedding(4, 2, padding_idx=1)
    assert not cell.weight.asnumpy()[1].any()
    d = grad(lambda i: cell(i).sum(), None, cell.weight)(Tensor([1, 2]))
    assert d.asnumpy().tolist() == [[0, 0], [0, 0], [1, 1], [0, 0]]


def test_a_bias_that_is_taken_away_is_not_added() -> None:
    cell = nn.LayerNorm(5)
    expected = cell(Tensor(ROW)).asnumpy()
    cell.bias.set_data(Tensor(np.ones(5, np.float32)))
    cell.bias = None
    assert np.array_equal(cell(Tensor(ROW)).asnumpy(), expected)


def test_convolutions_show_mindspores_names_to_subclasses() -> None:
    cell = nn.Conv2d(4, 6, (3, 2), padding=(1, 0))
    direct = cell.conv2d(Tensor(X), cell.weight, cell.bias, cell.stride, cell.padding, cell.dilation, cell.groups)
    assert np.array_equal(direct.asnumpy(), cell(Tensor(X)).asnumpy())
    assert cell._reversed_padding == [0, 0, 1, 1]
    assert nn.Conv2d(4, 6, (4, 3), padding="same")._reversed_padding == [1, 1, 1, 2]
    transposed = nn.ConvTranspose2d(4, 3, 3, stride=2, output_padding=1)
    args = (transposed.stride, transposed.padding, transposed.kernel_size, 2, transposed.dilation)
    assert transposed._output_padding(Tensor(X), None, *args) == (1, 1)
    assert transposed._output_padding(Tensor(X), (14, 11), *args) == (1, 0)
