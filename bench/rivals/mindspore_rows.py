"""The rows in MindSpore's API: one source for MindSpore and for Jumar that plays it.

In: an engine ("jumar", "mindspore", "mindspore (synchronous)") and a row.  Out: `train(...)`: step(i) -> loss; `eager(...)`: many(n).
Cells have PyTorch's structure, so that names differ in gamma, beta, embedding_table and moving statistics only.
"""

from __future__ import annotations

import os
from collections.abc import Callable

import mindspore as ms
import numpy as np
from mindspore import Tensor, nn, ops

from rivals.task import LSTM_HIDDEN, LSTM_WIDTH, TASKS, VOCABULARY, Task, Transformer, transformer, value

NAMES = {"gamma": "weight", "beta": "bias", "embedding_table": "weight", "moving_mean": "running_mean", "moving_variance": "running_var"}


def prepare(engine: str, threads: int) -> str:
    """Threads and caches; the version."""
    if engine.startswith("mindspore"):
        ms.set_context(runtime_num_threads=threads)
        if cache := os.environ.get("BENCH_CACHE"):
            ms.set_context(enable_compile_cache=True, compile_cache_path=cache)
        return f"mindspore {ms.__version__}"
    import jumar

    return f"jumar {jumar.VERSION}"


class Mlp(nn.Cell):
    def __init__(self):
        super().__init__()
        self.fc1, self.fc2, self.fc3 = nn.Dense(784, 512), nn.Dense(512, 512), nn.Dense(512, 10)

    def construct(self, x):
        return self.fc3(ops.relu(self.fc2(ops.relu(self.fc1(x)))))


class LeNet(nn.Cell):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 6, 5, pad_mode="valid", has_bias=True)
        self.conv2 = nn.Conv2d(6, 16, 5, pad_mode="valid", has_bias=True)
        self.pool = nn.MaxPool2d(2, 2)
        self.fc1, self.fc2, self.fc3 = nn.Dense(400, 120), nn.Dense(120, 84), nn.Dense(84, 10)

    def construct(self, x):
        x = self.pool(ops.relu(self.conv1(x)))
        x = self.pool(ops.relu(self.conv2(x)))
        x = x.reshape(x.shape[0], -1)
        return self.fc3(ops.relu(self.fc2(ops.relu(self.fc1(x)))))


class Lstm(nn.Cell):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(VOCABULARY["lstm"], LSTM_WIDTH)
        self.lstm = nn.LSTM(LSTM_WIDTH, LSTM_HIDDEN, batch_first=True)
        self.fc = nn.Dense(LSTM_HIDDEN, 2)

    def construct(self, tokens):
        states, _ = self.lstm(self.embedding(tokens))
        return self.fc(states[:, -1])


class Bottleneck(nn.Cell):
    def __init__(self, a, b, stride):
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(a, b, 1), nn.BatchNorm2d(b)
        self.conv2, self.bn2 = nn.Conv2d(b, b, 3, stride=stride, pad_mode="pad", padding=1), nn.BatchNorm2d(b)
        self.conv3, self.bn3 = nn.Conv2d(b, 4 * b, 1), nn.BatchNorm2d(4 * b)
        self.downsample = None
        if stride != 1 or a != 4 * b:
            self.downsample = nn.SequentialCell([nn.Conv2d(a, 4 * b, 1, stride=stride), nn.BatchNorm2d(4 * b)])

    def construct(self, x):
        y = ops.relu(self.bn1(self.conv1(x)))
        y = ops.relu(self.bn2(self.conv2(y)))
        y = self.bn3(self.conv3(y))
        if self.downsample is not None:
            x = self.downsample(x)
        return ops.relu(x + y)


class ResNet50(nn.Cell):
    def __init__(self, classes):
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(3, 64, 7, stride=2, pad_mode="pad", padding=3), nn.BatchNorm2d(64)
        self.pool = nn.MaxPool2d(3, 2, pad_mode="pad", padding=1)
        blocks, a = [], 64
        for i, count in enumerate((3, 4, 6, 3)):
            for j in range(count):
                blocks.append(Bottleneck(a, 64 * 2**i, 2 if i > 0 and j == 0 else 1))
                a = 256 * 2**i
        self.blocks = nn.SequentialCell(blocks)
        self.fc = nn.Dense(2048, classes)

    def construct(self, x):
        x = self.blocks(self.pool(ops.relu(self.bn1(self.conv1(x)))))
        return self.fc(ops.mean(x, (2, 3)))


class Layer(nn.Cell):
    """A layer of GPT (norm first, no look ahead) or of BERT (norm after)."""

    def __init__(self, t: Transformer, causal):
        super().__init__()
        self.heads, self.causal, self.scale = t.heads, causal, (t.width // t.heads) ** -0.5
        self.norm1, self.norm2 = nn.LayerNorm((t.width,), epsilon=1e-5), nn.LayerNorm((t.width,), epsilon=1e-5)
        self.qkv, self.out = nn.Dense(t.width, 3 * t.width), nn.Dense(t.width, t.width)
        self.up, self.down = nn.Dense(t.width, 4 * t.width), nn.Dense(4 * t.width, t.width)
        self.gelu = nn.GELU()
        self.future = Tensor(np.triu(np.full((t.length, t.length), -1e9, np.float32), 1))

    def attend(self, x):
        n, length, width = x.shape
        q, k, v = self.qkv(x).reshape(n, length, 3, self.heads, width // self.heads).transpose(2, 0, 3, 1, 4)
        scores = ops.matmul(q, k.swapaxes(-1, -2)) * self.scale
        if self.causal:
            scores = scores + self.future[:length, :length]
        y = ops.matmul(ops.softmax(scores, axis=-1), v)
        return self.out(y.transpose(0, 2, 1, 3).reshape(n, length, width))

    def construct(self, x):
        if self.causal:
            x = x + self.attend(self.norm1(x))
            return x + self.down(self.gelu(self.up(self.norm2(x))))
        x = self.norm1(x + self.attend(x))
        return self.norm2(x + self.down(self.gelu(self.up(x))))


class Gpt(nn.Cell):
    def __init__(self, t: Transformer):
        super().__init__()
        self.embedding, self.places_embedding = nn.Embedding(t.vocabulary, t.width), nn.Embedding(t.length, t.width)
        self.layers = nn.CellList([Layer(t, True) for _ in range(t.layers)])
        self.norm = nn.LayerNorm((t.width,), epsilon=1e-5)
        self.head = nn.Dense(t.width, t.vocabulary, has_bias=False)
        self.numbers = Tensor(np.arange(t.length, dtype=np.int32))

    def construct(self, tokens):
        x = self.embedding(tokens) + self.places_embedding(self.numbers[: tokens.shape[1]])
        for layer in self.layers:
            x = layer(x)
        return self.head(self.norm(x))


class Bert(nn.Cell):
    def __init__(self, t: Transformer, classes):
        super().__init__()
        self.embedding, self.places_embedding = nn.Embedding(t.vocabulary, t.width), nn.Embedding(t.length, t.width)
        self.norm = nn.LayerNorm((t.width,), epsilon=1e-5)
        self.layers = nn.CellList([Layer(t, False) for _ in range(t.layers)])
        self.pooler, self.head = nn.Dense(t.width, t.width), nn.Dense(t.width, classes)
        self.numbers = Tensor(np.arange(t.length, dtype=np.int32))

    def construct(self, tokens):
        x = self.norm(self.embedding(tokens) + self.places_embedding(self.numbers[: tokens.shape[1]]))
        for layer in self.layers:
            x = layer(x)
        return self.head(ops.tanh(self.pooler(x[:, 0])))


def network(task: Task) -> nn.Cell:
    """The network with the weights that all rivals begin with."""
    match task.model:
        case "mlp":
            net = Mlp()
        case "lenet":
            net = LeNet()
        case "lstm":
            net = Lstm()
        case "resnet50":
            net = ResNet50(task.classes)
        case "gpt":
            net = Gpt(transformer(task))
        case _:
            net = Bert(transformer(task), task.classes)
    for name, parameter in net.parameters_and_names():
        head, _, last = name.rpartition(".")
        parameter.set_data(Tensor(value(f"{head}.{NAMES.get(last, last)}", tuple(parameter.shape))))
    return net


def optimizer_of(task: Task, net: nn.Cell) -> nn.Cell:
    parameters = net.trainable_params()
    match task.optimizer:
        case "adam":
            return nn.Adam(parameters, task.rate)
        case "momentum":
            return nn.Momentum(parameters, task.rate, 0.9)
    from mindspore.experimental.optim import (
        AdamW,
    )  # nn.AdamWeightDecay has no bias correction, mint.optim.AdamW no kernel on MindSpore's CPU

    return AdamW(parameters, lr=task.rate, weight_decay=0.01)


def train(engine: str, row: str) -> Callable[[int], float]:
    """One step of training in GRAPH mode."""
    task = TASKS[row]
    ms.set_context(mode=ms.GRAPH_MODE)
    net = network(task).set_train()
    optimizer = optimizer_of(task, net)
    weights = net.trainable_params()

    def forward(x, labels):
        logits = net(x)
        return ops.cross_entropy(logits.reshape(-1, logits.shape[-1]), labels.reshape(-1))

    gradients = ms.value_and_grad(forward, None, weights)

    @ms.jit
    def step(x, labels):
        loss, grads = gradients(x, labels)
        optimizer(grads)
        return loss

    batches = task.batches()
    return lambda i: float(step(*map(Tensor, batches[i % len(batches)])).asnumpy())


def eager(engine: str, row: str) -> Callable[[int], None]:
    """One thing, n times, in PYNATIVE mode."""
    ms.set_context(mode=ms.PYNATIVE_MODE)
    if engine.endswith("(synchronous)"):
        ms.set_context(pynative_synchronize=True)
    array = np.ones((2, 2), np.float32)
    a, b = Tensor(array), Tensor(2 * array)
    once: Callable[[], object]
    match row:
        case "add":
            once = lambda: (a + b).asnumpy()  # noqa: E731, PLW0108
        case "relu":
            once = lambda: ops.relu(a)  # noqa: E731
        case "index":
            once = lambda: a[0]  # noqa: E731
        case "reshape":
            once = lambda: a.reshape(4)  # noqa: E731
        case "tensor":
            once = lambda: Tensor(array)  # noqa: E731
        case "dense":
            dense, x = nn.Dense(8, 8), Tensor(np.ones((4, 8), np.float32))
            once = lambda: dense(x).asnumpy()  # noqa: E731
        case _:
            return _eager_mlp()

    def many(n: int) -> None:
        for _ in range(n):
            found = once()
        if isinstance(found, Tensor):
            found.asnumpy()  # nothing may be left in a queue

    return many


def _eager_mlp() -> Callable[[int], None]:
    """Forward, backward and optimiser of the small MLP."""
    net = nn.SequentialCell(nn.Dense(32, 64), nn.ReLU(), nn.Dense(64, 10)).set_train()
    optimizer = nn.Adam(net.trainable_params(), 1e-3)

    def forward(x, labels):
        return ops.cross_entropy(net(x), labels)

    gradients = ms.value_and_grad(forward, None, optimizer.parameters)
    x, labels = Tensor(np.ones((16, 32), np.float32)), Tensor(np.arange(16, dtype=np.int32) % 10)

    def many(n: int) -> None:
        for _ in range(n):
            loss, grads = gradients(x, labels)
            optimizer(grads)
            float(loss.asnumpy())

    return many
