"""Functions of `mint` and `mint.nn.functional` against PyTorch: values at once and in captures, and gradients.

Each line is evaluated twice: with `L` and `F` as mint and its functional, and as torch and torch's.
"""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

from jumar import mint, ops
from jumar.frontend import Tensor
from jumar.frontend.capture import jit
from jumar.mint import linalg, special
from jumar.mint.nn import functional

torch = pytest.importorskip("torch")

# x [2, 3, 4], y [2, 3, 4], m [3, 4], p [3, 4] above zero, v [4], sq [3, 3]: floats; i, j [3, 4], l [3]: integers; b [3, 4]: bools
# im [2, 4, 6, 6], w [3, 4, 3, 3]; vol [1, 2, 4, 4, 4]
SMOOTH = """
L.add(m, p, alpha=2)
L.sub(m, v, alpha=2)
L.addmm(sq, m, p.T, beta=0.5, alpha=2)
L.addmv(v[:3], m, v)
L.addbmm(sq, x, y.swapaxes(1, 2))
L.baddbmm(L.matmul(x, y.swapaxes(1, 2)), x, y.swapaxes(1, 2))
L.bmm(x, y.swapaxes(1, 2))
L.mm(m, p.T)
L.mv(m, v)
L.dot(v, v)
L.outer(v, v)
L.matmul(x, v)
L.einsum('bij,bkj->bik', x, y)
L.einsum('...j,kj->...k', x, m)
L.einsum('ij,ij->', m, p)
L.cdist(x, y)
L.cat((m, p), dim=1)
L.stack((m, p), dim=-1)
L.chunk(x, 2, dim=2)
L.split(x, [1, 2], dim=1)
L.unbind(x, 1)
L.tile(m, (2, 1))
L.repeat_interleave(m, 2, dim=1)
L.broadcast_to(v, (3, 4))
L.permute(x, (2, 0, 1))
L.transpose(x, 0, 2)
L.flatten(x, 1)
L.unsqueeze(m, 1)
L.squeeze(x[:, :1], 1)
L.flip(m, (0, 1))
L.roll(m, 1, 0)
L.roll(m, (1, 2), (0, 1))
L.narrow(m, 1, 1, 2)
L.select(m, 1, 2)
L.tril(sq)
L.triu(m, 1)
L.diag(v)
L.diag(sq)
L.gather(m, 1, i % 4)
L.index_select(m, 0, l)
L.scatter(m, 1, j[:, :2] % 4, p[:, :2])
L.scatter_add(m, 1, i % 4, p)
L.index_add(m, 0, l, p)
L.where(b, m, p)
L.where(b, m, 0.5)
L.masked_select(m, b)
L.sum(m, dim=0)
L.mean(x, dim=(0, 2), keepdim=True)
L.prod(p, 1)
L.var(m, dim=1)
L.std(m)
L.std(x, dim=(0, 1), keepdim=True)
L.var_mean(m, dim=0)
L.amax(m, dim=1)
L.amin(m, dim=0)
L.max(m, 1)
L.min(m, 0)
L.max(m)
L.median(m, 1)
L.logsumexp(m, 1)
L.norm(m)
L.norm(m, 2, 1)
L.norm(m, 1, 0)
L.cumsum(m, 0)
L.cumprod(p, 1)
L.cummax(m, 1)
L.sort(m, dim=1)
L.topk(m, 2, dim=1)
L.topk(m, 2, dim=0, largest=False)
L.diff(m)
L.exp(m)
L.expm1(m)
L.exp2(m)
L.log(p)
L.log1p(p)
L.log2(p)
L.log10(p)
L.sqrt(p)
L.rsqrt(p)
L.square(m)
L.reciprocal(p)
L.pow(p, 2.5)
L.pow(m, 3)
L.sin(m)
L.cos(m)
L.tan(m)
L.asin(m / 9)
L.acos(m / 9)
L.atan(m)
L.atan2(m, p)
L.sinh(m)
L.cosh(m)
L.tanh(m)
L.asinh(m)
L.acosh(p + 1.5)
L.atanh(m / 9)
L.sigmoid(m)
L.erf(m)
L.erfc(m)
L.erfinv(m / 9)
L.sinc(m)
L.abs(m)
L.clamp(m, -0.5, 0.5)
L.clamp(m, min=v)
L.lerp(m, p, 0.3)
L.addcmul(m, p, p, value=2)
L.addcdiv(m, p, p, value=2)
L.logaddexp(m, p)
L.xlogy(p, p)
L.maximum(m, p)
L.minimum(m, p)
L.div(m, p)
L.fmod(m, p)
L.remainder(m, p)
L.nan_to_num(m / 1)
L.softmax(m, dim=1)
L.meshgrid(v, v)
L.cross(m[:, :3], p[:, :3], dim=1)
L.trace(sq)
L.inverse(sq + 4 * L.eye(3))
L.hstack((m, p))
L.dstack((m, p))
L.nansum(m, dim=1)
linalg.norm(m)
linalg.norm(m, 'fro', (0, 1))
linalg.vector_norm(m, 3, 1)
linalg.matrix_norm(m, 1)
linalg.inv(sq + 4 * L.eye(3))
special.log_softmax(m, 1)
F.relu(m)
F.relu6(m * 4)
F.gelu(m)
F.gelu(m, approximate='tanh')
F.silu(m)
F.elu(m, 0.7)
F.selu(m)
F.celu(m, 0.7)
F.leaky_relu(m)
F.hardtanh(m)
F.hardswish(m * 3)
F.hardsigmoid(m * 3)
F.hardshrink(m)
F.softshrink(m)
F.softplus(m, 2, 3)
F.mish(m)
F.logsigmoid(m)
F.glu(m, 1)
F.threshold(m, 0.2, 5.0)
F.softmax(m, dim=0)
F.log_softmax(m, dim=1)
F.prelu(im, v)
F.linear(m, p, v[:3])
F.layer_norm(m, (4,), v, v)
F.layer_norm(x, (3, 4))
F.group_norm(im, 2, v, v)
F.batch_norm(im, v * 0, v * 0 + 1, v, v)
F.batch_norm(im, None, None, v, v, True)
F.normalize(m)
F.normalize(m, 1.0, 0)
F.conv1d(x, w[:, :3, :, 0])
F.conv2d(im, w, v[:3], 2, 1)
F.conv2d(im, w, None, 1, 2, 2)
F.conv3d(vol, vol[:, :, :2, :2, :2])
F.conv_transpose2d(im, w.permute(1, 0, 2, 3), v[:3], 2, 1, 1)
F.max_pool2d(im, 3, 2, 1)
F.avg_pool2d(im, 3, 2, 1)
F.avg_pool2d(im, 3, 2, 1, True, False)
F.avg_pool1d(x, 2)
F.avg_pool3d(vol, 2)
F.adaptive_avg_pool2d(im, 4)
F.adaptive_avg_pool1d(x, 3)
F.adaptive_avg_pool3d(vol, 3)
F.adaptive_max_pool2d(im, 4)
F.interpolate(im, scale_factor=2.0)
F.interpolate(im, size=(9, 7), mode='bilinear')
F.interpolate(im, size=(9, 7), mode='bilinear', align_corners=True)
F.interpolate(im, size=(9, 7), mode='bicubic')
F.interpolate(im, scale_factor=1.7, mode='bilinear')
F.interpolate(vol, size=(3, 5, 6), mode='trilinear')
F.pad(m, (1, 2))
F.pad(im, (1, 2, 2, 1), mode='reflect')
F.pad(im, (1, 2, 2, 1), mode='replicate')
F.pad(im, (1, 2, 2, 1), mode='circular')
F.pad(m, (-1, 1, 0, -1), value=2.0)
F.unfold(im, 3, 1, 1, 2)
F.fold(F.unfold(im, 2, stride=2), (6, 6), 2, stride=2)
F.pixel_shuffle(im, 2)
F.grid_sample(im, L.tanh(w.reshape(-1)[:36].reshape(2, 3, 3, 2)), align_corners=False)
F.embedding(l, m)
F.embedding(l, m, padding_idx=1)
F.mse_loss(m, p)
F.l1_loss(m, p, reduction='sum')
F.smooth_l1_loss(m, p, beta=0.5)
F.binary_cross_entropy(L.sigmoid(m), L.sigmoid(p))
F.binary_cross_entropy_with_logits(m, L.sigmoid(p), pos_weight=v * v)
F.cross_entropy(m, l)
F.cross_entropy(m, l, v * v, label_smoothing=0.1)
F.cross_entropy(m, l, ignore_index=1, reduction='none')
F.cross_entropy(im, l5)
F.cross_entropy(m, L.softmax(p, dim=1))
F.nll_loss(F.log_softmax(m, dim=1), l)
F.kl_div(F.log_softmax(m, dim=1), L.softmax(p, dim=1), reduction='batchmean')
F.cosine_embedding_loss(m, p, l2)
F.scaled_dot_product_attention(x[:, None], y[:, None], y[:, None], is_causal=True)
""".strip().splitlines()

PLAIN = """
L.arange(5)
L.arange(1, 6, 2)
L.linspace(0, 1, 5)
L.eye(3, 4)
L.full((2, 2), 3.0)
L.zeros_like(m)
L.ones_like(i)
L.argmax(m)
L.argmax(m, dim=1, keepdim=True)
L.argmin(m, dim=0)
L.argsort(m, dim=1, descending=True)
L.all(b, dim=1)
L.any(b)
L.unique(i)
L.unique(i, return_inverse=True, return_counts=True)
L.unique_consecutive(l)
L.nonzero(b)
L.bincount(l)
L.histc(m, 4, -2, 2)
L.searchsorted(L.sort(v)[0], m)
L.isnan(m)
L.isfinite(m)
L.isinf(m)
L.isclose(m, m)
L.eq(i, j)
L.ne(i, 2)
L.gt(m, p)
L.logical_and(b, m > 0)
L.logical_not(m)
L.logical_xor(b, m > 0)
L.bitwise_and(i, j)
L.bitwise_or(i, 3)
L.bitwise_xor(i, j)
L.floor(m * 3)
L.ceil(m * 3)
L.round(m * 3)
L.trunc(m * 3)
L.frac(m * 3)
L.sign(m)
L.floor_divide(i, j)
L.remainder(i, j)
L.fmod(i, j)
L.div(i, j, rounding_mode='trunc')
L.gcd(i, j)
L.count_nonzero(b, dim=1)
L.sum(i)
L.cumsum(i, 0)
L.prod(i, 0)
L.mean(m)
L.kthvalue(m, 2, 1)
F.one_hot(l, 4)
F.max_pool2d(im, 2, return_indices=True)
""".strip().splitlines()


def _data(make: Any) -> dict[str, Any]:
    rng = np.random.RandomState(1)
    p = (np.abs(rng.randn(3, 4)) + 0.3).astype(np.float32)
    floats = {
        "x": rng.randn(2, 3, 4), "y": rng.randn(2, 3, 4), "m": rng.randn(3, 4), "v": rng.randn(4), "sq": rng.randn(3, 3), "im": rng.randn(2, 4, 6, 6),
        "w": rng.randn(3, 4, 3, 3), "vol": rng.randn(1, 2, 4, 4, 4),
    }  # fmt: skip
    whole = {"i": rng.randint(-5, 6, (3, 4)), "j": rng.randint(1, 6, (3, 4)), "l": np.array([2, 0, 0]), "l2": np.array([1, -1, 1]),
             "l5": rng.randint(0, 4, (2, 6, 6))}  # fmt: skip
    found = {k: make(v.astype(np.float32)) for k, v in floats.items()} | {k: make(v.astype(np.int64)) for k, v in whole.items()}
    return found | {"p": make(p), "b": make(rng.rand(3, 4) > 0.5)}


class _Torch:
    """torch with mint's few other names."""

    def __getattr__(self, name: str) -> Any:
        return getattr(torch.special if name == "erfinv" else torch, name)

    def meshgrid(self, *tensors: Any) -> Any:
        return torch.meshgrid(*tensors, indexing="ij")


THEIRS = {"L": _Torch(), "F": torch.nn.functional, "linalg": torch.linalg, "special": torch.special}
OURS = {"L": mint, "F": functional, "linalg": linalg, "special": special}


def _flat(value: Any) -> list[Any]:
    if isinstance(value, tuple | list):
        return [t for v in value for t in _flat(v)]
    return [value]


def _compare(text: str, expected: Any, found: Any) -> None:
    expected, found = _flat(expected), _flat(found)
    assert len(expected) == len(found), text
    for want, got in zip(expected, found, strict=True):
        want_array, got_array = want.detach().numpy(), got.asnumpy()
        assert (want_array.shape, want_array.dtype) == (got_array.shape, got_array.dtype), text
        np.testing.assert_allclose(got_array, want_array, rtol=2e-4, atol=2e-5, err_msg=text)


@pytest.mark.parametrize("text", SMOOTH + PLAIN)
def test_values_at_once(text: str) -> None:
    _compare(text, eval(text, THEIRS | _data(torch.tensor)), eval(text, OURS | _data(Tensor)))


CHUNK = 24


@pytest.mark.parametrize("first", range(0, len(SMOOTH + PLAIN), CHUNK))
def test_values_in_a_capture(first: int) -> None:
    texts = (SMOOTH + PLAIN)[first : first + CHUNK]
    data = _data(Tensor)

    def run(*tensors: Tensor) -> list[Any]:
        space = OURS | dict(zip(data, tensors, strict=True))
        return [eval(text, space) for text in texts]

    for text, found in zip(texts, jit(run)(*data.values()), strict=True):
        _compare(text, eval(text, THEIRS | _data(torch.tensor)), found)


@pytest.mark.parametrize("text", SMOOTH)
def test_gradients(text: str) -> None:
    name = re.findall(r"\b(?:sq|im|vol|m|x|v|p|w)\b(?!=)", text)[0]
    theirs, ours = _data(torch.tensor), _data(Tensor)
    theirs[name].requires_grad_(True)
    outputs = [t for t in _flat(eval(text, THEIRS | theirs)) if t.requires_grad]
    sum((t * torch.cos(torch.arange(t.numel()).reshape(t.shape))).sum() for t in outputs).backward()

    def loss(value: Tensor) -> Tensor:
        found = [t for t in _flat(eval(text, OURS | ours | {name: value})) if t.dtype.is_floating_point]
        return sum(((t * Tensor(np.cos(np.arange(t.size)).reshape(t.shape).astype(np.float32))).sum() for t in found), Tensor(0.0))

    gradient = ops.grad(loss)(ours[name]).asnumpy()
    np.testing.assert_allclose(gradient, theirs[name].grad.numpy(), rtol=1e-3, atol=2e-4, err_msg=text)
