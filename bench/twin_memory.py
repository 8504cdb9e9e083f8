"""How much of a training step's memory does sharing places save on an Ascend NPU, and how much more could any plan save?

Question: BERT-large (24 layers, 1024 wide, 16 heads, 128 tokens, 20 predictions a sequence, dropout) and ResNet-50 (224 x 224), one step of AdamW or
momentum, planned from their own training graphs; no value is computed. Nothing is measured: these are plans, and how a framework's pool would have done.
To beat: 37 % less peak, published for BERT-large without its batch or rival. By its words ("reuse") the rival is a place for each value. The nearest
kin (OLLA, ROAM: about a third less) compare with PyTorch's caching allocator on the same step, so that stands beside it here.
Answer (2026-11-30), BERT-large: 71 to 87 % less than without sharing (64 % with weights and state at batch 32; 34 % at batch 1, where weights and state are
nearly all there is). Plans are within 0.4 % of what any plan in any order needs. Against a framework's pool that counts references: 81 % at batch 1, where
using gradients up counts, 11 % at batch 32, 3 % at 96, where what is kept for the backward half is nearly all, which no plan avoids; recomputing
what is cheap does: 38 % less than any plan without it, for 8 % more memory traffic (column `cheap`).  bench/results/twin-memory-*.md has the table.
Columns, all in GB, without weights and optimiser state (the last columns add them):
  sum       every value that the step makes in a place of its own
  torch_npu, mindspore   what the framework's pool holds at its largest, operator by operator, gradients kept until the update
  counted   values counted by references, no pool and no pieces, gradients kept
  plan      Jumar's plan: order for memory, gradients used up as they come (nothing scales or clips them), places of whole 512 B
  bound     the most that is alive at one launch in the plan's order; `any` the least that any order needs
  cheap     the plan where activations, dropout and normalizations are computed again from what is kept
Usage: python bench/twin_memory.py [--batches 1,32,96] [--images 32,128] [--amp O0,O2] [--out FILE.md]
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from jumar.base import TensorType, i32, u64
from jumar.compiler.autodiff import Custom
from jumar.compiler.plan import plan
from jumar.compiler.twin.memory_trace import Trace, bound_of_any_order, by_levels, for_memory, lives_of, peak_nbytes, spans
from jumar.compiler.twin.train_memory import Training, both_halves, standing, traffic_again, training_trace
from jumar.device.npu import events_of, pool_rules, replay
from jumar.ir import Graph, Node, constant, f32t, param
from jumar.operators import (
    BatchNormTrain,
    Conv,
    Gather,
    GatherElements,
    Gelu,
    LayerNorm,
    LogSoftmax,
    MatMul,
    MaxPool,
    Opaque,
    RandomBits,
    ReduceMean,
    ReduceSum,
    Relu,
    Reshape,
    Softmax,
    Transpose,
    add,
    mul,
)

PUBLISHED = 0.37
GB = 1e9
CAPACITY = 1 << 41  # of the pools: the question is what they take, not whether it fits


class Weights:
    """Parameters as they are asked for."""

    def __init__(self) -> None:
        self.params: list[Node] = []

    def __call__(self, *shape: int) -> Node:
        self.params.append(param(f"w{len(self.params)}", f32t(*shape)))
        return self.params[-1]


@dataclass(frozen=True)
class Model:
    """A forward graph with a loss.   custom: gradients of nodes that answer for themselves."""

    graph: Graph
    weights: list[Node]
    custom: dict[Node, Custom]


def _loss(logits: Node, labels: Node) -> Node:
    picked = GatherElements(1)(LogSoftmax(-1)(logits), Reshape((logits.shape[0], 1))(labels))
    return mul(ReduceSum(())(picked), constant(np.float32(-1 / logits.shape[0])))


def bert_large(
    batch: int,
    seq: int = 128,
    layers: int = 24,
    width: int = 1024,
    heads: int = 16,
    words: int = 30522,
    predictions: int = 20,
    *,
    dropout: bool = True,
) -> Model:
    """BERT-large with its masked-word loss. Dropout keeps a bit for each element, as the device's does."""
    w, custom = Weights(), {}
    ids = param("ids", TensorType((batch, seq), i32))
    where, labels = param("where", TensorType((batch * predictions,), i32)), param("labels", TensorType((batch * predictions,), i32))
    key, offset = param("key", TensorType((), u64)), param("offset", TensorType((), u64))

    def drop(x: Node) -> Node:
        if not dropout:
            return x
        mask = RandomBits((x.type.size // 32,))(key, offset)
        y = Opaque(1)(x, mask)
        custom[y] = lambda dy: (Opaque(1)(dy, mask)[0], None)
        return y[0]

    def dense(x: Node, n: int, m: int) -> Node:
        return add(MatMul()(x, w(n, m)), w(m))

    def norm(x: Node) -> Node:
        return LayerNorm(-1)(x, w(width), w(width))

    def split(x: Node) -> Node:
        return Transpose((0, 2, 1, 3))(Reshape((batch, seq, heads, width // heads))(x))

    table = w(words, width)
    x = drop(norm(add(Gather(0)(table, ids), w(seq, width))))
    for _ in range(layers):
        q, k, v = (split(dense(x, width, width)) for _ in range(3))
        scores = mul(MatMul()(q, Transpose((0, 1, 3, 2))(k)), constant(np.float32((width // heads) ** -0.5)))
        y = Reshape((batch, seq, width))(Transpose((0, 2, 1, 3))(MatMul()(drop(Softmax(-1)(scores)), v)))
        x = norm(add(x, drop(dense(y, width, width))))
        x = norm(add(x, drop(dense(Gelu()(dense(x, width, 4 * width)), 4 * width, width))))
    rows = Gather(0)(Reshape((batch * seq, width))(x), where)
    hidden = norm(Gelu()(dense(rows, width, width)))
    logits = add(MatMul()(hidden, Transpose((1, 0))(table)), w(words))
    return Model(Graph("bert_large", (ids, where, labels, key, offset, *w.params), (_loss(logits, labels),)), w.params, custom)


def resnet50(batch: int, size: int = 224, classes: int = 1000) -> Model:
    """ResNet-50 with its loss."""
    w = Weights()
    image, labels = param("image", f32t(batch, 3, size, size)), param("labels", TensorType((batch,), i32))

    def conv(x: Node, filters: int, kernel: int, stride: int = 1) -> Node:
        pad = kernel // 2
        y = Conv((stride, stride), (pad, pad), (pad, pad), (1, 1), 1)(x, w(filters, x.shape[1], kernel, kernel))
        return BatchNormTrain()(y, w(filters), w(filters))[0]

    x = MaxPool((3, 3), (2, 2), (1, 1), (1, 1), (1, 1))(Relu()(conv(image, 64, 7, 2)))
    for stage, blocks in enumerate((3, 4, 6, 3)):
        inner = 64 << stage
        for block in range(blocks):
            stride = 2 if stage and not block else 1
            y = Relu()(conv(x, inner, 1))
            y = conv(Relu()(conv(y, inner, 3, stride)), 4 * inner, 1)
            x = Relu()(add(y, x if block else conv(x, 4 * inner, 1, stride)))
    logits = add(MatMul()(ReduceMean((2, 3))(x), w(2048, classes)), w(classes))
    return Model(Graph("resnet50", (image, labels, *w.params), (_loss(logits, labels),)), w.params, {})


@dataclass(frozen=True)
class Row:
    """One step's bytes; see the columns on top."""

    name: str
    standing: int
    total: int
    pools: dict[str, int]
    counted: int
    planned: int
    bound: int
    any: int
    cheap: int
    traffic: float
    seconds: float

    def saving(self, rival: int, whole: bool = False) -> float:
        beside = self.standing if whole else 0
        return 1 - (self.planned + beside) / (rival + beside)


def held_by(trace: Trace, pool: str) -> int:
    """What a framework's pool holds at its largest over a trace."""
    lives = [(trace.values[v].nbytes, a, b, "", "", False) for v, (a, b) in sorted(spans(trace).items(), key=lambda item: item[1][0])]
    return replay(events_of(lives), pool_rules(pool), CAPACITY).peak_reserved_nbytes


def row(name: str, model: Model, optimizer: str, amp: str) -> Row:
    halves = both_halves(model.graph, model.weights, model.custom)
    start = time.perf_counter()
    eager = by_levels(training_trace(halves, Training(optimizer, amp=amp, keep_gradients=True)))
    best = Training(optimizer, amp=amp, keep_gradients=False)
    trace = for_memory(training_trace(halves, best))
    planned = plan(lives_of(trace, 512, 32))
    seconds = time.perf_counter() - start
    again = for_memory(training_trace(halves, replace(best, cheap=True)))
    return Row(
        f"{name} {amp}",
        sum(s.nbytes for s in standing([w.type for w in halves.weights], best)),
        eager.total_nbytes,
        {pool: held_by(eager, pool) for pool in ("torch_npu", "mindspore")},
        peak_nbytes(eager),
        planned.nbytes,
        planned.bound,
        bound_of_any_order(trace),
        plan(lives_of(again, 512, 32)).nbytes,
        traffic_again(again),
        seconds,
    )


def table(rows: Sequence[Row]) -> str:
    heads = [
        "step",
        "sum",
        "torch_npu",
        "mindspore",
        "counted",
        "plan",
        "bound",
        "any",
        "saves of sum",
        "of torch_npu",
        "of mindspore",
        "of counted",
    ]
    heads += ["cheap", "its traffic", "with weights and state: plan", "saves of sum", "of torch_npu"]
    lines = [f"| {' | '.join(heads)} |", f"|---|{'---|' * (len(heads) - 1)}"]
    for r in rows:
        rivals = (r.total, r.pools["torch_npu"], r.pools["mindspore"], r.counted)
        cells = [r.name, *(f"{x / GB:.2f}" for x in (*rivals, r.planned, r.bound, r.any)), *(f"{r.saving(x):.0%}" for x in rivals)]
        cells += [f"{r.cheap / GB:.2f}", f"+{r.traffic:.0%}", f"{(r.planned + r.standing) / GB:.2f}"]
        cells += [f"{r.saving(x, whole=True):.0%}" for x in rivals[:2]]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--batches", default="1,32,96", help="of BERT-large")
    parser.add_argument("--images", default="32,128", help="of ResNet-50")
    parser.add_argument("--amp", default="O0,O2")
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    models: list[tuple[str, Callable[[int], Model], str, str]] = [
        ("BERT-large, batch", bert_large, "adamw", args.batches),
        ("ResNet-50, batch", resnet50, "momentum", args.images),
    ]
    rows = [
        row(f"{title} {batch}", build(int(batch)), optimizer, amp)
        for title, build, optimizer, batches in models
        for batch in batches.split(",")
        for amp in args.amp.split(",")
    ]  # fmt: skip
    text = table(rows)
    print(text)
    least = min(r.saving(r.total) for r in rows if r.name.startswith("BERT"))
    worst, best = (max(r.planned / x for r, x in ((r, getattr(r, name)) for r in rows)) - 1 for name in ("bound", "any"))
    print(f"\nBERT-large: at least {least:.0%} less than without sharing (published: {PUBLISHED:.0%})")
    print(
        f"plans within {worst:.1%} of the bound of their order and {best:.1%} of the bound of any order; {max(r.seconds for r in rows):.1f} s at most"
    )
    if args.out:
        args.out.write_text(f"# Memory of training steps\n\n{text}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
