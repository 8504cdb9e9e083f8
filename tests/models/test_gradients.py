"""Gradients of ten whole networks against PyTorch's: the same code runs on both, since `mint` has PyTorch's names.

Each network is a function of (functional, tensors, weights, input) that gives a loss; weights and inputs come from one NumPy generator.
PyTorch's answers are recorded in gradients.json (`python -m tests.models.test_gradients` records them again; needs torch), so that no test needs it.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from jumar import Parameter, Tensor, mint, value_and_grad
from jumar.frontend.capture import jit
from jumar.mint.nn import functional as mint_functional

RECORD = Path(__file__).with_name("gradients.json")
Weights = dict[str, Any]
Network = Callable[[Any, Any, Weights, Any], Any]
RTOL = 1e-3


def mlp(F: Any, T: Any, w: Weights, x: Any) -> Any:
    return (F.linear(T.tanh(F.linear(x, w["a"], w["b"])), w["c"]) ** 2).mean()


def lenet(F: Any, T: Any, w: Weights, x: Any) -> Any:
    x = F.max_pool2d(F.relu(F.conv2d(x, w["k1"], w["b1"], padding=2)), 2, 2)
    x = F.max_pool2d(F.relu(F.conv2d(x, w["k2"], w["b2"])), 2, 2)
    return (F.linear(x.reshape(x.shape[0], -1), w["f"]) ** 2).mean()


def residual(F: Any, T: Any, w: Weights, x: Any) -> Any:
    for i, stride in enumerate((1, 2)):
        short = x if stride == 1 else F.conv2d(x, w["short"], None, stride=2)
        y = F.relu(F.batch_norm(F.conv2d(x, w[f"a{i}"], None, stride=stride, padding=1), None, None, w[f"g{i}"], w[f"h{i}"], True))
        x = F.relu(F.batch_norm(F.conv2d(y, w[f"c{i}"], None, padding=1), None, None, w[f"g{i}"], w[f"h{i}"], True) + short)
    return (x.mean((2, 3)) ** 2).sum()


def inverted(F: Any, T: Any, w: Weights, x: Any) -> Any:
    """An inverted residual with squeeze and excitation, as in MobileNetV3."""
    y = F.hardswish(F.conv2d(x, w["up"], None))
    y = F.hardswish(F.conv2d(y, w["deep"], None, padding=2, groups=y.shape[1]))
    gate = T.sigmoid(F.conv2d(F.relu(F.conv2d(y.mean((2, 3), keepdim=True), w["s1"], None)), w["s2"], None))
    return ((F.conv2d(y * gate, w["down"], None) + x) ** 2).mean()


def recurrent(F: Any, T: Any, w: Weights, x: Any) -> Any:
    h = c = x[:, 0] * 0
    for t in range(x.shape[1]):
        i, f, g, o = T.chunk(F.linear(x[:, t], w["wx"], w["b"]) + F.linear(h, w["wh"]), 4, 1)
        c = T.sigmoid(f) * c + T.sigmoid(i) * T.tanh(g)
        h = T.sigmoid(o) * T.tanh(c)
    return (h**2).sum()


def attention(F: Any, T: Any, w: Weights, x: Any, mask: Any = None) -> Any:
    b, n, d = x.shape
    q, k, v = (F.linear(x, w[name]).reshape(b, n, 4, d // 4).permute(0, 2, 1, 3) for name in ("q", "k", "v"))
    scores = T.matmul(q, k.permute(0, 1, 3, 2)) * (d // 4) ** -0.5
    scores = scores if mask is None else scores + mask
    return F.linear(T.matmul(F.softmax(scores, -1), v).permute(0, 2, 1, 3).reshape(b, n, d), w["o"])


def encoder(F: Any, T: Any, w: Weights, x: Any) -> Any:
    d = x.shape[-1]
    x = F.layer_norm(x + attention(F, T, w, x), (d,), w["g1"], w["h1"])
    x = F.layer_norm(x + F.linear(F.gelu(F.linear(x, w["up"])), w["down"]), (d,), w["g2"], w["h2"])
    return (x[:, 0] * w["head"]).sum() / x.shape[0]


def decoder(F: Any, T: Any, w: Weights, x: Any) -> Any:
    """A block of a language model: embedding, causal attention, gated layer, tied head, cross entropy."""
    held = F.embedding(x, w["table"])
    n, d = held.shape[1:]
    mask = T.triu(T.ones((n, n)), 1) * -1e9
    h = held + attention(F, T, w, F.layer_norm(held, (d,), w["g1"], w["h1"]), mask)
    z = F.layer_norm(h, (d,), w["g2"], w["h2"])
    h = h + F.linear(F.silu(F.linear(z, w["up"])) * F.linear(z, w["gate"]), w["down"])
    logits = F.linear(h, w["table"])
    return F.cross_entropy(logits[:, :-1].reshape(-1, logits.shape[-1]), x[:, 1:].reshape(-1))


def unet(F: Any, T: Any, w: Weights, x: Any) -> Any:
    top = F.relu(F.conv2d(x, w["a"], None, padding=1))
    low = F.relu(F.conv2d(F.max_pool2d(top, 2, 2), w["b"], None, padding=1))
    up = F.interpolate(low, scale_factor=2.0, mode="nearest")
    return (T.sigmoid(F.conv2d(T.cat((top, up), 1), w["c"], None, padding=1)) ** 2).mean()


def patches(F: Any, T: Any, w: Weights, x: Any) -> Any:
    """A small vision transformer."""
    x = F.conv2d(x, w["patch"], w["pb"], stride=4).flatten(2).permute(0, 2, 1) + w["place"]
    return encoder(F, T, w, x)


def mixer(F: Any, T: Any, w: Weights, x: Any) -> Any:
    """Group norm, mean pooling, channel mixing and a log-softmax loss."""
    y = x + F.avg_pool2d(F.group_norm(x, 2, w["g"], w["h"]), 3, 1, 1)
    y = y + F.conv2d(F.gelu(F.conv2d(y, w["up"], None)), w["down"], None)
    return -F.log_softmax(y.mean((2, 3)), 1)[:, 0].mean()


_BLOCK = {
    "q": (16, 16),
    "k": (16, 16),
    "v": (16, 16),
    "o": (16, 16),
    "g1": (16,),
    "h1": (16,),
    "g2": (16,),
    "h2": (16,),
    "up": (32, 16),
    "down": (16, 32),
}
NETWORKS: dict[str, tuple[Network, dict[str, tuple[int, ...]], tuple[int, ...]]] = {
    "mlp": (mlp, {"a": (16, 8), "b": (16,), "c": (4, 16)}, (5, 8)),
    "lenet": (lenet, {"k1": (6, 1, 5, 5), "b1": (6,), "k2": (8, 6, 5, 5), "b2": (8,), "f": (10, 200)}, (3, 1, 28, 28)),
    "residual": (
        residual,
        {"a0": (8, 8, 3, 3), "c0": (8, 8, 3, 3), "a1": (8, 8, 3, 3), "c1": (8, 8, 3, 3), "short": (8, 8, 1, 1), "g0": (8,), "h0": (8,), "g1": (8,), "h1": (8,)},
        (4, 8, 12, 12),
    ),
    "inverted": (inverted, {"up": (24, 8, 1, 1), "deep": (24, 1, 5, 5), "s1": (6, 24, 1, 1), "s2": (24, 6, 1, 1), "down": (8, 24, 1, 1)}, (2, 8, 9, 9)),
    "recurrent": (recurrent, {"wx": (32, 8), "wh": (32, 8), "b": (32,)}, (3, 7, 8)),
    "encoder": (encoder, _BLOCK | {"head": (16,)}, (2, 9, 16)),
    "decoder": (decoder, _BLOCK | {"table": (20, 16), "gate": (32, 16)}, ()),
    "unet": (unet, {"a": (6, 3, 3, 3), "b": (8, 6, 3, 3), "c": (2, 14, 3, 3)}, (2, 3, 16, 16)),
    "patches": (patches, _BLOCK | {"patch": (16, 3, 4, 4), "pb": (16,), "place": (1, 9, 16), "head": (16,)}, (2, 3, 12, 12)),
    "mixer": (mixer, {"g": (8,), "h": (8,), "up": (16, 8, 1, 1), "down": (8, 16, 1, 1)}, (2, 8, 7, 7)),
}  # fmt: skip


def inputs_of(name: str) -> tuple[Network, dict[str, np.ndarray], np.ndarray]:
    """The network, its weights and its input."""
    network, shapes, input_shape = NETWORKS[name]
    rng = np.random.default_rng(7)
    arrays = {k: (rng.standard_normal(s) / np.sqrt(max(1, np.prod(s[1:])))).astype(np.float32) for k, s in shapes.items()}
    x = rng.standard_normal(input_shape).astype(np.float32) if input_shape else rng.integers(0, 20, (2, 8))
    return network, arrays, x


def summary(gradient: np.ndarray) -> list[float]:
    """Numbers that tell one gradient from another: its sum against fixed random weights (three times), its norm, its largest value."""
    flat = gradient.astype(np.float64).ravel()
    weights = np.random.default_rng(1).standard_normal((3, flat.size))
    return [*(weights @ flat), float(np.sqrt(flat @ flat)), float(np.abs(flat).max())]


@pytest.mark.parametrize("graph", [False, True], ids=["pynative", "graph"])
@pytest.mark.parametrize("name", NETWORKS)
def test_gradients_of_a_whole_network_are_pytorchs(name: str, graph: bool) -> None:
    network, arrays, x = inputs_of(name)
    expected = json.loads(RECORD.read_text())[name]
    ours = {k: Parameter(Tensor(a), name=k) for k, a in arrays.items()}
    find = value_and_grad(lambda v: network(mint_functional, mint, ours, v), None, list(ours.values()))
    value, grads = (jit(find) if graph else find)(Tensor(x))
    np.testing.assert_allclose(value.asnumpy(), expected["loss"], rtol=RTOL)
    for key, got in zip(ours, grads, strict=True):
        wanted = expected["gradients"][key]
        np.testing.assert_allclose(summary(got.asnumpy()), wanted, rtol=RTOL, atol=RTOL * max(wanted[3], 1e-6), err_msg=key)


def record() -> None:
    """Writes PyTorch's answers."""
    import torch

    found = {}
    for name in NETWORKS:
        network, arrays, x = inputs_of(name)
        weights = {k: torch.tensor(a, requires_grad=True) for k, a in arrays.items()}
        loss = network(torch.nn.functional, torch, weights, torch.tensor(x))
        loss.backward()
        found[name] = {"loss": loss.item(), "gradients": {k: summary(w.grad.numpy()) for k, w in weights.items()}}
    RECORD.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    record()
