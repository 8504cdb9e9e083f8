"""How fast are our recurrent layers, against ONNX Runtime?

Question: latency of one LSTM, GRU or RNN layer and the time to compile it, for hidden sizes 64 to 512, batches 1 to 32, 10 to 500 steps.
Rival: ONNX Runtime, same threads, same process, in turns; ratio = our median / its, per turn: below 1 we are faster.
Machine, versions and the last answer: bench/results/recurrent.md (written by this script with --out).
Usage: python bench/recurrent.py [part of a name] [--threads 2] [--rounds 5] [--out bench/results/recurrent]
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "src"), str(ROOT)]

from bench.infer import _turn, machine, onnxruntime  # noqa: E402  (the path comes first)

import jumar  # noqa: E402

GATES = {"LSTM": 4, "GRU": 3, "RNN": 1}


@dataclass(frozen=True)
class Layer:
    """One layer.   depth: size of an input; linear: of a GRU, the reset gate comes after the product, as in PyTorch."""

    op: str
    hidden: int
    batch: int
    seq: int
    both: bool = False
    linear: bool = True

    @property
    def name(self) -> str:
        kind = f"{'bi' if self.both else ''}{self.op}{'' if self.linear or self.op != 'GRU' else ' reset first'}"
        return f"{kind} h{self.hidden} b{self.batch} t{self.seq}"

    def build(self, path: Path) -> dict[str, np.ndarray]:
        """Writes the model; gives its input."""
        rng = np.random.default_rng(0)
        dirs, each, depth = 2 if self.both else 1, GATES[self.op] * self.hidden, self.hidden
        shapes = {"w": (dirs, each, depth), "r": (dirs, each, self.hidden), "b": (dirs, 2 * each)}
        scale = self.hidden**-0.5
        weights = [numpy_helper.from_array((rng.uniform(-scale, scale, s)).astype(np.float32), n) for n, s in shapes.items()]
        options = {"linear_before_reset": int(self.linear)} if self.op == "GRU" else {}
        node = helper.make_node(
            self.op, ["x", "w", "r", "b"], ["y"], hidden_size=self.hidden, direction="bidirectional" if self.both else "forward", **options
        )
        x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [self.seq, self.batch, depth])
        y = helper.make_tensor_value_info("y", TensorProto.FLOAT, [self.seq, dirs, self.batch, self.hidden])
        graph = helper.make_graph([node], "layer", [x], [y], weights)
        onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9), path)
        return {"x": rng.standard_normal((self.seq, self.batch, depth)).astype(np.float32)}


LAYERS = [
    *(Layer("LSTM", h, b, t) for h in (64, 128, 256, 512) for b, t in ((1, 10), (1, 100), (1, 500), (8, 100), (32, 50))),
    *(Layer("LSTM", h, b, 100, True) for h in (64, 256) for b in (1, 8)),
    *(Layer("GRU", h, b, 100, linear=linear) for h in (64, 256, 512) for b in (1, 8, 32) for linear in (True, False)),
    *(Layer("RNN", h, b, 100) for h in (64, 512) for b in (1, 8)),
]


def measure(layer: Layer, threads: int, rounds: int, turn_s: float, folder: Path) -> tuple[str, float]:
    """A line of the table, and the ratio."""
    path = folder / "layer.onnx"
    inputs = layer.build(path)
    start = time.perf_counter()
    model = jumar.load(path, target="cpu", threads=threads)
    model.run(None, inputs)
    first_s = time.perf_counter() - start
    runs: list[Callable[[], list[np.ndarray]]] = [lambda: model.run(None, inputs), onnxruntime(path, inputs, threads)]
    error = float(np.abs(runs[0]()[0] - runs[1]()[0]).max())
    times: list[list[list[float]]] = [[], []]
    for at in range(rounds):
        for i in (0, 1) if at % 2 else (1, 0):
            times[i].append(_turn(runs[i], turn_s))
    ours, theirs = (float(np.median([t for turn in turns for t in turn])) for turns in times)
    each = [float(np.median(a) / np.median(b)) for a, b in zip(*times, strict=True)]
    ratio = float(np.median(each))
    line = f"| {layer.name} | {threads} | {first_s:.2f} | {ours:.3g} | {theirs:.3g} | **{ratio:.2f}** ({min(each):.2f} to {max(each):.2f}) | {error:.1g} |"
    return line, ratio


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("part", nargs="?", default="")
    parser.add_argument("--threads", default="1,2")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--turn", type=float, default=0.1, help="seconds of one turn")
    parser.add_argument("--out", type=Path, help="writes OUT.md")
    arguments = parser.parse_args()
    facts = machine()
    lines = [
        "# Recurrent layers: our runtime and ONNX Runtime",
        "",
        f"{facts['cpu']}, {facts['cores']} cores, load {facts['load_before']:.2f} at the start; {facts['system']}; {facts['date']}.",
        f"onnxruntime {facts['onnxruntime']}, llvmlite {facts['llvmlite']}, numpy {facts['numpy']}.  h hidden and input size, b batch, t steps.",
        "First: seconds from file to first result, nothing in the cache.  Median ms of a run; ratio ours / ONNX Runtime, median (range).",
        "",
        "| layer | threads | first s | ours ms | onnxruntime ms | ratio | largest difference |",
        "|---|---|---|---|---|---|---|",
    ]
    print("\n".join(lines), flush=True)
    ratios = []
    with tempfile.TemporaryDirectory() as folder:
        os.environ["JUMAR_CACHE_DIR"] = folder
        for layer in LAYERS:
            for threads in map(int, arguments.threads.split(",")) if arguments.part in layer.name else ():
                line, ratio = measure(layer, threads, arguments.rounds, arguments.turn, Path(folder))
                print(line, flush=True)
                lines.append(line)
                ratios.append(ratio)
    lines += ["", f"Geometric mean of the ratios {np.exp(np.mean(np.log(ratios))):.2f}; the worst is {max(ratios):.2f}."]
    print("\n".join(lines[-2:]))
    if arguments.out:
        arguments.out.with_suffix(".md").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
