"""The rows in JAX: parameters in a dictionary under PyTorch's names, one jitted step that gives its arguments away.

In: "jax" and a row.  Out: `train(...)`: step(i) -> loss; `eager(...)`: many(n).
"""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial
from itertools import pairwise
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from rivals.task import LSTM_HIDDEN, LSTM_WIDTH, TASKS, VOCABULARY, Task, Transformer, transformer, value

Arrays = dict[str, Any]


def prepare(engine: str, threads: int) -> str:
    """XLA takes as many threads as the process may have cores; the driver has bound it."""
    if cache := os.environ.get("BENCH_CACHE"):
        jax.config.update("jax_compilation_cache_dir", cache)
        jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
        jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)
    return f"jax {jax.__version__}"


def dense(p: Arrays, name: str, x: Any) -> Any:
    y = x @ p[f"{name}.weight"].T
    return y + p[f"{name}.bias"] if f"{name}.bias" in p else y


def mlp(p: Arrays, x: Any) -> Any:
    return dense(p, "fc3", jax.nn.relu(dense(p, "fc2", jax.nn.relu(dense(p, "fc1", x)))))


def conv(p: Arrays, name: str, x: Any, stride: int = 1, pad: int = 0) -> Any:
    y = lax.conv_general_dilated(x, p[f"{name}.weight"], (stride, stride), [(pad, pad)] * 2)
    return y + p[f"{name}.bias"][:, None, None] if f"{name}.bias" in p else y


def max_pool(x: Any, size: int, stride: int, pad: int = 0) -> Any:
    edge = [(0, 0), (0, 0), (pad, pad), (pad, pad)]
    return lax.reduce_window(x, -jnp.inf, lax.max, (1, 1, size, size), (1, 1, stride, stride), edge)


def lenet(p: Arrays, x: Any) -> Any:
    x = max_pool(jax.nn.relu(conv(p, "conv1", x)), 2, 2)
    x = max_pool(jax.nn.relu(conv(p, "conv2", x)), 2, 2)
    return mlp(p, x.reshape(x.shape[0], -1))


def lstm(p: Arrays, tokens: Any) -> Any:
    gates_x = p["embedding.weight"][tokens] @ p["lstm.weight_ih_l0"].T + p["lstm.bias_ih_l0"] + p["lstm.bias_hh_l0"]

    def one(state: tuple[Any, Any], gates: Any) -> tuple[tuple[Any, Any], None]:
        h, c = state
        i, f, g, o = jnp.split(gates + h @ p["lstm.weight_hh_l0"].T, 4, axis=-1)
        c = jax.nn.sigmoid(f) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
        return (jax.nn.sigmoid(o) * jnp.tanh(c), c), None

    zero = jnp.zeros((tokens.shape[0], LSTM_HIDDEN), jnp.float32)
    (h, _), _ = lax.scan(one, (zero, zero), gates_x.swapaxes(0, 1))
    return dense(p, "fc", h)


def batch_norm(p: Arrays, name: str, x: Any) -> Any:
    """By the statistics of the batch; the running ones are not kept, which spares JAX a little work."""
    mean, var = x.mean((0, 2, 3), keepdims=True), x.var((0, 2, 3), keepdims=True)
    shape = (1, -1, 1, 1)
    return (x - mean) * lax.rsqrt(var + 1e-5) * p[f"{name}.weight"].reshape(shape) + p[f"{name}.bias"].reshape(shape)


def bottlenecks() -> list[tuple[int, int, int]]:
    """Channels in, channels, stride."""
    found, a = [], 64
    for i, count in enumerate((3, 4, 6, 3)):
        for j in range(count):
            found.append((a, 64 * 2**i, 2 if i > 0 and j == 0 else 1))
            a = 256 * 2**i
    return found


def resnet50(p: Arrays, x: Any) -> Any:
    x = max_pool(jax.nn.relu(batch_norm(p, "bn1", conv(p, "conv1", x, 2, 3))), 3, 2, 1)
    for i, (_, _, stride) in enumerate(bottlenecks()):
        b = f"blocks.{i}"
        y = jax.nn.relu(batch_norm(p, f"{b}.bn1", conv(p, f"{b}.conv1", x)))
        y = jax.nn.relu(batch_norm(p, f"{b}.bn2", conv(p, f"{b}.conv2", y, stride, 1)))
        y = batch_norm(p, f"{b}.bn3", conv(p, f"{b}.conv3", y))
        if f"{b}.downsample.0.weight" in p:
            x = batch_norm(p, f"{b}.downsample.1", conv(p, f"{b}.downsample.0", x, stride))
        x = jax.nn.relu(x + y)
    return dense(p, "fc", x.mean((2, 3)))


def layer_norm(p: Arrays, name: str, x: Any) -> Any:
    mean, var = x.mean(-1, keepdims=True), x.var(-1, keepdims=True)
    return (x - mean) * lax.rsqrt(var + 1e-5) * p[f"{name}.weight"] + p[f"{name}.bias"]


def attend(p: Arrays, name: str, x: Any, heads: int, causal: bool) -> Any:
    n, length, width = x.shape
    q, k, v = dense(p, f"{name}.qkv", x).reshape(n, length, 3, heads, width // heads).transpose(2, 0, 1, 3, 4)
    y = jax.nn.dot_product_attention(q, k, v, is_causal=causal)
    return dense(p, f"{name}.out", y.reshape(n, length, width))


def grow(p: Arrays, name: str, x: Any) -> Any:
    return dense(p, f"{name}.down", jax.nn.gelu(dense(p, f"{name}.up", x), approximate=True))


def gpt(t: Transformer, p: Arrays, tokens: Any) -> Any:
    x = p["embedding.weight"][tokens] + p["places_embedding.weight"][: tokens.shape[1]]
    for i in range(t.layers):
        b = f"layers.{i}"
        x = x + attend(p, b, layer_norm(p, f"{b}.norm1", x), t.heads, True)
        x = x + grow(p, b, layer_norm(p, f"{b}.norm2", x))
    return dense(p, "head", layer_norm(p, "norm", x))


def bert(t: Transformer, p: Arrays, tokens: Any) -> Any:
    x = layer_norm(p, "norm", p["embedding.weight"][tokens] + p["places_embedding.weight"][: tokens.shape[1]])
    for i in range(t.layers):
        b = f"layers.{i}"
        x = layer_norm(p, f"{b}.norm1", x + attend(p, b, x, t.heads, False))
        x = layer_norm(p, f"{b}.norm2", x + grow(p, b, x))
    return dense(p, "head", jnp.tanh(dense(p, "pooler", x[:, 0])))


def shapes(task: Task) -> dict[str, tuple[int, ...]]:
    """Names and shapes of the parameters, as PyTorch has them."""
    found: dict[str, tuple[int, ...]] = {}

    def layer(name: str, *weight: int, bias: bool = True) -> None:
        found[f"{name}.weight"] = weight
        if bias:
            found[f"{name}.bias"] = weight[:1]

    match task.model:
        case "mlp" | "lenet":
            widths = (784, 512, 512, 10) if task.model == "mlp" else (400, 120, 84, 10)
            if task.model == "lenet":
                layer("conv1", 6, 1, 5, 5)
                layer("conv2", 16, 6, 5, 5)
            for i, (a, b) in enumerate(pairwise(widths)):
                layer(f"fc{i + 1}", b, a)
        case "lstm":
            layer("embedding", VOCABULARY["lstm"], LSTM_WIDTH, bias=False)
            gates = 4 * LSTM_HIDDEN
            found |= {"lstm.weight_ih_l0": (gates, LSTM_WIDTH), "lstm.weight_hh_l0": (gates, LSTM_HIDDEN)}
            found |= {"lstm.bias_ih_l0": (gates,), "lstm.bias_hh_l0": (gates,)}
            layer("fc", 2, LSTM_HIDDEN)
        case "resnet50":
            layer("conv1", 64, 3, 7, 7, bias=False)
            layer("bn1", 64)
            for i, (a, b, stride) in enumerate(bottlenecks()):
                name = f"blocks.{i}"
                for j, weight in enumerate(((b, a, 1, 1), (b, b, 3, 3), (4 * b, b, 1, 1))):
                    layer(f"{name}.conv{j + 1}", *weight, bias=False)
                    layer(f"{name}.bn{j + 1}", weight[0])
                if stride != 1 or a != 4 * b:
                    layer(f"{name}.downsample.0", 4 * b, a, 1, 1, bias=False)
                    layer(f"{name}.downsample.1", 4 * b)
            layer("fc", task.classes, 2048)
        case _:
            t = transformer(task)
            w = t.width
            layer("embedding", t.vocabulary, w, bias=False)
            layer("places_embedding", t.length, w, bias=False)
            layer("norm", w)
            for i in range(t.layers):
                for name, weight in {
                    "norm1": (w,),
                    "norm2": (w,),
                    "qkv": (3 * w, w),
                    "out": (w, w),
                    "up": (4 * w, w),
                    "down": (w, 4 * w),
                }.items():
                    layer(f"layers.{i}.{name}", *weight)
            if task.model == "bert":
                layer("pooler", w, w)
            layer("head", t.vocabulary if task.model == "gpt" else task.classes, w, bias=task.model == "bert")
    return found


def update(task: Task, p: Any, g: Any, m: Any, v: Any, t: Any) -> tuple[Any, Any, Any]:
    """One parameter's step of the optimiser, as PyTorch writes it."""
    if task.optimizer == "momentum":
        m = 0.9 * m + g
        return p - task.rate * m, m, v
    m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g * g
    if task.optimizer == "adamw":
        p = p * (1 - task.rate * 0.01)
    return p - task.rate * (m / (1 - 0.9**t)) / (jnp.sqrt(v / (1 - 0.999**t)) + 1e-8), m, v


def train(engine: str, row: str) -> Callable[[int], float]:
    task = TASKS[row]
    models = {"mlp": mlp, "lenet": lenet, "lstm": lstm, "resnet50": resnet50}
    model = models.get(task.model) or partial(gpt if task.model == "gpt" else bert, transformer(task))
    params = {name: jnp.asarray(value(name, shape)) for name, shape in shapes(task).items()}
    zeros = {name: jnp.zeros_like(p) for name, p in params.items()}
    state = (
        params,
        zeros,
        jax.tree.map(jnp.copy, zeros) if task.optimizer != "momentum" else dict.fromkeys(params, 0.0),
        jnp.float32(0),
    )

    def forward(p: Arrays, x: Any, labels: Any) -> Any:
        logits = model(p, x)
        chance = jax.nn.log_softmax(logits.reshape(-1, logits.shape[-1]))
        return -jnp.take_along_axis(chance, labels.reshape(-1, 1), axis=1).mean()

    @partial(jax.jit, donate_argnums=0)
    def step(state: Any, x: Any, labels: Any) -> Any:
        p, m, v, t = state
        t = t + 1
        loss, g = jax.value_and_grad(forward)(p, x, labels)
        found = {name: update(task, p[name], g[name], m[name], v[name], t) for name in p}
        return tuple({name: new[i] for name, new in found.items()} for i in range(3)) + (t,), loss

    batches = task.batches()

    def once(i: int) -> float:
        nonlocal state
        state, loss = step(state, *batches[i % len(batches)])
        return float(loss)

    return once


def eager(engine: str, row: str) -> Callable[[int], None]:
    array = np.ones((2, 2), np.float32)
    a, b = jnp.asarray(array), jnp.asarray(2 * array)
    once: Callable[[], Any]
    match row:
        case "add":
            once = lambda: np.asarray(a + b)  # noqa: E731
        case "relu":
            once = lambda: jax.nn.relu(a)  # noqa: E731
        case "index":
            once = lambda: a[0]  # noqa: E731
        case "reshape":
            once = lambda: a.reshape(4)  # noqa: E731
        case "tensor":
            once = lambda: jnp.array(array)  # noqa: E731
        case "dense":
            x, w, bias = jnp.ones((4, 8)), jnp.ones((8, 8)), jnp.ones(8)
            once = lambda: np.asarray(x @ w.T + bias)  # noqa: E731
        case _:
            raise NotImplementedError("op by op, JAX has no optimiser of its own to compare")

    def many(n: int) -> None:
        for _ in range(n):
            found = once()
        jax.block_until_ready(found)

    return many
