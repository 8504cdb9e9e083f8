"""The bench of memory: its models are what their names say, and its plans stand between the bound and the sum."""

import sys
from pathlib import Path

import pytest

from jumar.compiler.twin.memory_trace import spans
from jumar.compiler.twin.train_memory import Training, both_halves, training_trace

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "bench"))
import twin_memory as bench


def test_bert_large_and_resnet50_have_their_published_numbers_of_weights():
    bert, resnet = bench.bert_large(1), bench.resnet50(1)
    assert sum(w.type.size for w in bert.weights) == pytest.approx(335e6, rel=0.005)
    assert sum(w.type.size for w in resnet.weights) == pytest.approx(25.56e6, rel=0.001)


def test_a_plan_is_at_the_bound_and_saves_more_than_was_published():
    row = bench.row("BERT, two layers", bench.bert_large(8, layers=2, words=1000), "adamw", "O0")
    assert row.any <= row.bound <= row.planned <= row.counted <= min(row.pools.values()) <= row.total
    assert row.planned <= 1.05 * row.any
    assert row.saving(row.total) > bench.PUBLISHED
    assert row.saving(row.total, whole=True) < row.saving(row.total)
    assert row.cheap < row.planned and row.traffic < 0.15
    assert len(bench.table([row]).splitlines()) == 3


def kept_nbytes(model: bench.Model) -> int:
    """Bytes of values that the forward half makes and the backward half reads."""
    trace = training_trace(both_halves(model.graph, model.weights, model.custom), Training("sgd"))
    turn = max(i for i, work in enumerate(trace.works) if not work.backward)
    return sum(trace.values[v].nbytes for v, (first, last) in spans(trace).items() if first <= turn < last)


def saved_nbytes(net, x) -> int:
    """Bytes that PyTorch's autograd saves in a forward pass, beside weights and input."""
    import torch

    known = {t.untyped_storage().data_ptr() for t in (*net.parameters(), *net.buffers(), x)}
    found = {}

    def pack(t):
        storage = t.untyped_storage()
        if storage.data_ptr() not in known:
            found[storage.data_ptr()] = storage.nbytes(), t  # the tensor is held, so that no other gets its place
        return t

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda t: t):
        net(x)
    return sum(nbytes for nbytes, _ in found.values())


def test_a_layer_of_bert_keeps_what_pytorch_keeps():
    torch = pytest.importorskip("torch")
    nn, functional = torch.nn, torch.nn.functional
    batch, seq, width, heads = 4, 32, 64, 4

    class Layer(nn.Module):
        def __init__(self):
            super().__init__()
            self.q, self.k, self.v, self.out = (nn.Linear(width, width) for _ in range(4))
            self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
            self.first, self.second = nn.LayerNorm(width), nn.LayerNorm(width)

        def forward(self, x):
            q, k, v = (part(x).view(batch, seq, heads, -1).transpose(1, 2) for part in (self.q, self.k, self.v))
            p = functional.softmax((q @ k.transpose(-1, -2)) * 0.25, -1)
            x = self.first(x + self.out((p @ v).transpose(1, 2).reshape(batch, seq, width)))
            return self.second(x + self.down(functional.gelu(self.up(x))))

    def layers(n):
        return saved_nbytes(nn.Sequential(*(Layer() for _ in range(n))), torch.randn(batch, seq, width))

    theirs = (layers(5) - layers(2)) / 3 - 4 * 4 * batch * seq  # mean and deviation of two normalizations: numbers for each row
    ours = [kept_nbytes(bench.bert_large(batch, seq, n, width, heads, 100, 1, dropout=False)) for n in (2, 5)]
    assert (ours[1] - ours[0]) / 3 == theirs


def test_a_resnet_keeps_what_pytorch_keeps():
    torch = pytest.importorskip("torch")
    nn = torch.nn

    def conv(n, m, kernel, stride=1):
        return nn.Sequential(nn.Conv2d(n, m, kernel, stride, kernel // 2, bias=False), nn.BatchNorm2d(m))

    class Block(nn.Module):
        def __init__(self, n, m, stride, first):
            super().__init__()
            self.body = nn.Sequential(conv(n, m, 1), nn.ReLU(), conv(m, m, 3, stride), nn.ReLU(), conv(m, 4 * m, 1))
            self.side = conv(n, 4 * m, 1, stride) if first else nn.Identity()

        def forward(self, x):
            return torch.relu(self.body(x) + self.side(x))

    parts, n = [conv(3, 64, 7, 2), nn.ReLU(), nn.MaxPool2d(3, 2, 1)], 64
    for stage, blocks in enumerate((3, 4, 6, 3)):
        for block in range(blocks):
            parts.append(Block(n, 64 << stage, 2 if stage and not block else 1, not block))
            n = 256 << stage
    net = nn.Sequential(*parts, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(2048, 10), nn.LogSoftmax(-1))
    theirs = saved_nbytes(net, torch.randn(2, 3, 64, 64))
    assert kept_nbytes(bench.resnet50(2, 64, 10)) == pytest.approx(theirs, rel=0.05)
