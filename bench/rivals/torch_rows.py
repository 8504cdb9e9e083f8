"""The rows in PyTorch, eager or through torch.compile.

In: "torch" or "torch.compile", and a row.  Out: `train(...)`: step(i) -> loss; `eager(...)`: many(n).
PyTorch at its best that we know: fused optimisers, scaled_dot_product_attention, gradients set to None.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
import torch.nn.functional as F  # noqa: N812  (as all PyTorch code has it)
from torch import nn

from rivals.task import LSTM_HIDDEN, LSTM_WIDTH, TASKS, VOCABULARY, Task, Transformer, transformer, value


def prepare(engine: str, threads: int) -> str:
    torch.set_num_threads(threads)
    torch.set_num_interop_threads(1)
    return f"torch {torch.__version__}"


class Mlp(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1, self.fc2, self.fc3 = nn.Linear(784, 512), nn.Linear(512, 512), nn.Linear(512, 10)

    def forward(self, x):
        return self.fc3(F.relu(self.fc2(F.relu(self.fc1(x)))))


class LeNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1, self.conv2 = nn.Conv2d(1, 6, 5), nn.Conv2d(6, 16, 5)
        self.fc1, self.fc2, self.fc3 = nn.Linear(400, 120), nn.Linear(120, 84), nn.Linear(84, 10)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.conv1(x)), 2)
        x = F.max_pool2d(F.relu(self.conv2(x)), 2).flatten(1)
        return self.fc3(F.relu(self.fc2(F.relu(self.fc1(x)))))


class Lstm(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(VOCABULARY["lstm"], LSTM_WIDTH)
        self.lstm = nn.LSTM(LSTM_WIDTH, LSTM_HIDDEN, batch_first=True)
        self.fc = nn.Linear(LSTM_HIDDEN, 2)

    def forward(self, tokens):
        states, _ = self.lstm(self.embedding(tokens))
        return self.fc(states[:, -1])


class Bottleneck(nn.Module):
    def __init__(self, a, b, stride):
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(a, b, 1, bias=False), nn.BatchNorm2d(b)
        self.conv2, self.bn2 = nn.Conv2d(b, b, 3, stride, 1, bias=False), nn.BatchNorm2d(b)
        self.conv3, self.bn3 = nn.Conv2d(b, 4 * b, 1, bias=False), nn.BatchNorm2d(4 * b)
        self.downsample = None
        if stride != 1 or a != 4 * b:
            self.downsample = nn.Sequential(nn.Conv2d(a, 4 * b, 1, stride, bias=False), nn.BatchNorm2d(4 * b))

    def forward(self, x):
        y = F.relu(self.bn1(self.conv1(x)))
        y = F.relu(self.bn2(self.conv2(y)))
        y = self.bn3(self.conv3(y))
        return F.relu((x if self.downsample is None else self.downsample(x)) + y)


class ResNet50(nn.Module):
    def __init__(self, classes):
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64)
        blocks, a = [], 64
        for i, count in enumerate((3, 4, 6, 3)):
            for j in range(count):
                blocks.append(Bottleneck(a, 64 * 2**i, 2 if i > 0 and j == 0 else 1))
                a = 256 * 2**i
        self.blocks = nn.Sequential(*blocks)
        self.fc = nn.Linear(2048, classes)

    def forward(self, x):
        x = self.blocks(F.max_pool2d(F.relu(self.bn1(self.conv1(x))), 3, 2, 1))
        return self.fc(x.mean((2, 3)))


class Layer(nn.Module):
    def __init__(self, t: Transformer, causal):
        super().__init__()
        self.heads, self.causal = t.heads, causal
        self.norm1, self.norm2 = nn.LayerNorm(t.width), nn.LayerNorm(t.width)
        self.qkv, self.out = nn.Linear(t.width, 3 * t.width), nn.Linear(t.width, t.width)
        self.up, self.down = nn.Linear(t.width, 4 * t.width), nn.Linear(4 * t.width, t.width)

    def attend(self, x):
        n, length, width = x.shape
        q, k, v = self.qkv(x).view(n, length, 3, self.heads, width // self.heads).permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=self.causal)
        return self.out(y.transpose(1, 2).reshape(n, length, width))

    def grow(self, x):
        return self.down(F.gelu(self.up(x), approximate="tanh"))

    def forward(self, x):
        if self.causal:
            x = x + self.attend(self.norm1(x))
            return x + self.grow(self.norm2(x))
        x = self.norm1(x + self.attend(x))
        return self.norm2(x + self.grow(x))


class Gpt(nn.Module):
    def __init__(self, t: Transformer):
        super().__init__()
        self.embedding, self.places_embedding = nn.Embedding(t.vocabulary, t.width), nn.Embedding(t.length, t.width)
        self.layers = nn.ModuleList([Layer(t, True) for _ in range(t.layers)])
        self.norm = nn.LayerNorm(t.width)
        self.head = nn.Linear(t.width, t.vocabulary, bias=False)

    def forward(self, tokens):
        x = self.embedding(tokens) + self.places_embedding.weight[: tokens.shape[1]]
        for layer in self.layers:
            x = layer(x)
        return self.head(self.norm(x))


class Bert(nn.Module):
    def __init__(self, t: Transformer, classes):
        super().__init__()
        self.embedding, self.places_embedding = nn.Embedding(t.vocabulary, t.width), nn.Embedding(t.length, t.width)
        self.norm = nn.LayerNorm(t.width)
        self.layers = nn.ModuleList([Layer(t, False) for _ in range(t.layers)])
        self.pooler, self.head = nn.Linear(t.width, t.width), nn.Linear(t.width, classes)

    def forward(self, tokens):
        x = self.norm(self.embedding(tokens) + self.places_embedding.weight[: tokens.shape[1]])
        for layer in self.layers:
            x = layer(x)
        return self.head(torch.tanh(self.pooler(x[:, 0])))


def network(task: Task) -> nn.Module:
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
    with torch.no_grad():
        for name, array in net.state_dict().items():
            if array.is_floating_point():
                array.copy_(torch.from_numpy(value(name, tuple(array.shape))))
    return net.train()


def train(engine: str, row: str) -> Callable[[int], float]:
    task = TASKS[row]
    net = network(task)
    match task.optimizer:
        case "adam":
            optimizer = torch.optim.Adam(net.parameters(), task.rate, fused=True)
        case "momentum":
            optimizer = torch.optim.SGD(net.parameters(), task.rate, momentum=0.9, fused=True)
        case _:
            optimizer = torch.optim.AdamW(net.parameters(), task.rate, weight_decay=0.01, fused=True)

    def forward(x, labels):
        logits = net(x)
        return F.cross_entropy(logits.reshape(-1, logits.shape[-1]), labels.reshape(-1))

    if engine == "torch.compile":
        forward = torch.compile(forward)
    batches = [(torch.from_numpy(x), torch.from_numpy(y).long()) for x, y in task.batches()]

    def step(i: int) -> float:
        loss = forward(*batches[i % len(batches)])
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        return float(loss.item())

    return step


def eager(engine: str, row: str) -> Callable[[int], None]:
    array = np.ones((2, 2), np.float32)
    a, b = torch.from_numpy(array), torch.from_numpy(2 * array)
    once: Callable[[], object]
    match row:
        case "add":
            once = lambda: (a + b).numpy()  # noqa: E731, PLW0108
        case "relu":
            once = lambda: torch.relu(a)  # noqa: E731
        case "index":
            once = lambda: a[0]  # noqa: E731
        case "reshape":
            once = lambda: a.reshape(4)  # noqa: E731
        case "tensor":
            once = lambda: torch.tensor(array)  # noqa: E731
        case "dense":
            dense, x = nn.Linear(8, 8), torch.ones(4, 8)
            once = lambda: dense(x).detach().numpy()  # noqa: E731
        case _:
            net = nn.Sequential(nn.Linear(32, 64), nn.ReLU(), nn.Linear(64, 10))
            optimizer = torch.optim.Adam(net.parameters(), 1e-3, fused=True)
            inputs, labels = torch.ones(16, 32), torch.arange(16) % 10

            def once() -> object:
                loss = F.cross_entropy(net(inputs), labels)
                optimizer.zero_grad(set_to_none=True)
                loss.backward()
                optimizer.step()
                return loss.item()

    def many(n: int) -> None:
        for _ in range(n):
            once()

    return many
