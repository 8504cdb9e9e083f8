"""Attention in its forms against PyTorch's."""

from __future__ import annotations

import numpy as np
import pytest

from jumar import ops
from jumar.frontend import Tensor
from jumar.ops.function.nn_func import multi_head_attention_forward

torch = pytest.importorskip("torch")


def test_multi_head_attention_is_torchs() -> None:
    rng = np.random.RandomState(0)
    q, kv = (rng.randn(n, 2, 8).astype(np.float32) for n in (3, 5))
    w, b, wo, bo = (rng.randn(*s).astype(np.float32) for s in ((24, 8), (24,), (8, 8), (8,)))
    mask, padding = rng.rand(3, 5) > 0.7, np.array([[False] * 4 + [True], [False] * 5])
    mask[:, 0] = False
    expected = torch.nn.functional.multi_head_attention_forward(
        *map(torch.tensor, (q, kv, kv)), 8, 2, torch.tensor(w), torch.tensor(b), None, None, True, 0.0, torch.tensor(wo), torch.tensor(bo),
        training=False, key_padding_mask=torch.tensor(padding), attn_mask=torch.tensor(mask),
    )  # fmt: skip
    found = multi_head_attention_forward(
        Tensor(q), Tensor(kv), Tensor(kv), 8, 2, Tensor(w), Tensor(b), None, None, True, 0.0, Tensor(wo), Tensor(bo), training=False,
        key_padding_mask=Tensor(padding), attn_mask=Tensor(mask),
    )  # fmt: skip
    for want, got in zip(expected, found, strict=True):
        np.testing.assert_allclose(got.asnumpy(), want.numpy(), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("layout", ["BSH", "SBH", "BSND", "BNSD"])
@pytest.mark.parametrize("mode", [0, 2, 3])
def test_flash_attention_score_is_scaled_dot_product_attention_in_every_layout(layout: str, mode: int) -> None:
    rng = np.random.RandomState(0)
    q, k, v = (rng.randn(2, 4, n, 8).astype(np.float32) for n in (5, 5, 5))
    blocked = np.triu(np.ones((5, 5), np.bool_), 1)

    def laid(x: np.ndarray) -> np.ndarray:
        b, h, n, d = x.shape
        forms = {"BNSD": x, "BSND": x.transpose(0, 2, 1, 3), "BSH": x.transpose(0, 2, 1, 3).reshape(b, n, h * d),
                 "SBH": x.transpose(2, 0, 1, 3).reshape(n, b, h * d)}  # fmt: skip
        return forms[layout]

    expected = torch.nn.functional.scaled_dot_product_attention(*map(torch.tensor, (q, k, v)), is_causal=True).numpy()
    mask = Tensor(blocked) if mode == 0 else None
    found = ops.flash_attention_score(
        *(Tensor(laid(x)) for x in (q, k, v)), 4, attn_mask=mask, scalar_value=8**-0.5, input_layout=layout, sparse_mode=mode
    )
    np.testing.assert_allclose(found.asnumpy(), laid(expected), rtol=1e-4, atol=1e-5)


def test_ctc_loss_is_torchs() -> None:
    rng = np.random.RandomState(1)
    log_p = np.log(rng.dirichlet(np.ones(5), (7, 3))).astype(np.float32)
    labels, frames, lengths = rng.randint(1, 5, (3, 3)), np.array([7, 6, 5]), np.array([3, 2, 3])
    expected = torch.nn.functional.ctc_loss(*map(torch.tensor, (log_p, labels, frames, lengths)))
    found = ops.ctc_loss(*map(Tensor, (log_p, labels, frames, lengths)))[0]
    np.testing.assert_allclose(found.asnumpy(), expected.numpy(), rtol=1e-5)
