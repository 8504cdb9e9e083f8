"""How fast are our contraction kernels, layer by layer, next to ONNX Runtime's and to what the machine can do?

Question: GF/s of matrix products and convolutions at the shapes of ResNet-50, MobileNetV3, YOLOv5s and BERT.
Rival: ONNX Runtime (2 threads), in one process, alternating with ours.  Layers of one kind run in a chain, so that neither side pays for
layout changes at the borders: per layer (time of the long chain - time of the short one) / layers.
Run: PYTHONPATH=src python bench/kernels.py [part of a name] [--rounds 8] [--threads 1]

Machine: 2 cores of an AMD EPYC (Zen 3, AVX2).  Last answer, 29 Nov 2026, on a machine that seven others used, so by CPU time of one thread
(`--threads 1`; ONNX Runtime 1.32 alike), medians of one pass: 3x3 at stride 1, where Winograd takes over, 2.0-3.2x ORT (512x7x7: 1.4x);
direct 3x3 at stride 2 83-93 % of the concurrent fma peak (1.0-1.2x ORT); 1x1 with 112 channels or more 73-93 % (0.85-1.0x), with fewer
46-78 % (0.7-0.9x; outputs that leave L2 and the cost of a tile are what is left to gain); M = 128 products 90-96 % (1.0-1.1x);
depthwise 0.7-1.7x.  Passes differ by 10-20 %.  Two threads were never measured on a quiet machine.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from jumar.base import Array, f32, type_of
from jumar.device import host
from jumar.ir import Graph, Node, constant, f32t, param
from jumar.kernel import Builder, Kernel, compile_kernel
from jumar.operators.contraction import Conv, MatMul
from jumar.operators.cpu.contraction import lower_contraction
from jumar.operators.elementwise import Add, Relu
from jumar.operators.fused import Fused
from jumar.operators.schedule import Packed, Place, Task, TempPlace
from jumar.runtime import Instance, KernelRef, Program, Ref, Step, allocate

RNG = np.random.default_rng(0)
THREADS = 2
OTHER = (32 << 20) + 4096 * 37 + 64 * 21  # where every second value is: not at the same place in the caches as the first
CHAIN = 6  # pairs of layers in the long chain


@dataclass(frozen=True)
class Layer:
    """One layer: c channels to k filters on an h x h map.   kernel 0: a matrix product of h rows."""

    name: str
    c: int
    k: int
    h: int
    kernel: int = 1
    stride: int = 1
    groups: int = 1

    @property
    def flops(self) -> int:
        if self.kernel == 0:
            return 2 * self.c * self.k * self.h
        out = -(-self.h // self.stride)
        return 2 * self.c // self.groups * self.k * out * out * self.kernel**2


LAYERS = [
    Layer("resnet 1x1 64x56x56 -> 256", 64, 256, 56),
    Layer("resnet 1x1 64x56x56 -> 64", 64, 64, 56),
    Layer("resnet 1x1 512x28x28 -> 128", 512, 128, 28),
    Layer("resnet 1x1 1024x14x14 -> 256", 1024, 256, 14),
    Layer("resnet 1x1 2048x7x7 -> 512", 2048, 512, 7),
    *(Layer(f"resnet 3x3 {c}x{h}x{h}", c, c, h, 3) for c, h in [(64, 56), (128, 28), (256, 14), (512, 7)]),
    *(Layer(f"resnet 3x3 s2 {c}x{h}x{h}", c, c, h, 3, 2) for c, h in [(128, 56), (256, 28), (512, 14)]),
    Layer("resnet stem 7x7 s2 3x224x224 -> 64", 3, 64, 224, 7, 2),
    Layer("yolo stem 6x6 s2 3x640x640 -> 32", 3, 32, 640, 6, 2),
    Layer("yolo 3x3 s2 32x320x320 -> 64", 32, 64, 320, 3, 2),
    Layer("yolo 1x1 128x80x80", 128, 128, 80),
    Layer("yolo 3x3 64x80x80", 64, 64, 80, 3),
    Layer("mobilenet 1x1 16x112x112 -> 64", 16, 64, 112),
    Layer("mobilenet 1x1 24x56x56 -> 72", 24, 72, 56),
    Layer("mobilenet 1x1 40x28x28 -> 120", 40, 120, 28),
    Layer("mobilenet 1x1 80x14x14 -> 200", 80, 200, 14),
    Layer("mobilenet 1x1 112x14x14 -> 672", 112, 672, 14),
    Layer("mobilenet 1x1 160x7x7 -> 960", 160, 960, 7),
    Layer("mobilenet 3x3 depthwise 16x112x112", 16, 16, 112, 3, 1, 16),
    Layer("mobilenet 3x3 depthwise 72x56x56", 72, 72, 56, 3, 1, 72),
    Layer("mobilenet 5x5 depthwise 120x28x28", 120, 120, 28, 5, 1, 120),
    Layer("mobilenet 5x5 depthwise 672x14x14", 672, 672, 14, 5, 1, 672),
    Layer("mobilenet 5x5 depthwise 960x7x7", 960, 960, 7, 5, 1, 960),
    Layer("mobilenet 3x3 s2 depthwise 64x112x112", 64, 64, 112, 3, 2, 64),
    Layer("bert 128x768 @ 768", 768, 768, 128, 0),
    Layer("bert 128x768 @ 3072", 768, 3072, 128, 0),
    Layer("bert 128x768 @ 2304", 768, 2304, 128, 0),
    Layer("gemv 1x768 @ 3072", 768, 3072, 1, 0),
    Layer("gemv 4x1024 @ 4096", 1024, 4096, 4, 0),
    Layer("mlp 64x784 @ 128", 784, 128, 64, 0),
]


def layer_node(layer: Layer, x: Node, w: Array, b: Array) -> Node:
    """The layer with bias and Relu, as a fused group."""
    inner = param("x", x.type)
    if layer.kernel == 0:
        y = Add()(MatMul()(inner, constant(w)), constant(b))
    else:
        p = _pads(layer)
        conv = Conv((layer.stride,) * 2, (p[0],) * 2, (p[1],) * 2, (1, 1), layer.groups, channels_last=True)
        y = conv(inner, constant(w), constant(b))
    return Fused(Graph("layer", (inner,), (Relu()(y),)))(x)


def _pads(layer: Layer) -> tuple[int, int]:
    out = -(-layer.h // layer.stride)
    total = max(0, (out - 1) * layer.stride + layer.kernel - layer.h)
    return total // 2, total - total // 2


def _back(layer: Layer) -> Layer:
    return replace(layer, c=layer.k, k=layer.c)


def _weights(layer: Layer) -> tuple[Array, Array]:
    shape = (layer.c, layer.k) if layer.kernel == 0 else (layer.k, layer.c // layer.groups, layer.kernel, layer.kernel)
    scale = (layer.c // layer.groups * max(1, layer.kernel) ** 2) ** -0.5
    return RNG.standard_normal(shape, np.float32) * np.float32(scale), RNG.standard_normal(layer.k, np.float32)


def program_of(tasks: Sequence[Task], places: dict[Any, int], x_type: Any, x: Node) -> Program:
    """A Program of tasks; `places`: offsets of nodes in the arena; temporaries and constants get theirs here."""
    names: dict[Kernel, str] = {}
    code: dict[str, bytes] = {}
    blobs: list[tuple[int, Array]] = []
    seen: dict[int, int] = {}
    size, top = 0, max(places.values(), default=0) + (64 << 20)
    scratch = 0

    def name(kernel: Kernel) -> str:
        if kernel not in names:
            compiled = compile_kernel(replace(kernel, name=f"k{len(names)}_{kernel.name}"), host())
            names[kernel], code[compiled.symbol] = compiled.symbol, compiled.object_bytes
        return names[kernel]

    def word(arg: Any) -> Any:
        nonlocal size, top
        match arg:
            case int():
                return arg
            case Kernel():
                return KernelRef(name(arg))
            case Packed():
                if id(arg.array) not in seen:
                    seen[id(arg.array)] = size
                    blobs.append((size, arg.array))
                    size += -(-arg.array.nbytes // 64) * 64
                return Ref("constant", seen[id(arg.array)])
            case TempPlace():
                if arg.temp not in places:
                    places[arg.temp], top = top, top + -(-arg.temp.nbytes // 64) * 64
                return Ref("arena", places[arg.temp] + arg.nbytes_offset)
            case Place():
                if arg.node is x:
                    return Ref("input:0", arg.nbytes_offset)
                if arg.node.array is not None:
                    return word(Packed(arg.node.array))
                return Ref("arena", places[arg.node] + arg.nbytes_offset)
        raise AssertionError(arg)

    steps = []
    for task in tasks:
        given = iter(task.args)
        args = tuple(Ref("scratch") if p.kind == "scratch" else word(next(given)) for p in task.kernel.params)
        steps.append(Step(name(task.kernel), args, task.chunks, task.label))
        scratch = max(scratch, task.scratch_nbytes)
    constants = allocate(size)
    for at, array in blobs:
        constants[at : at + array.nbytes] = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
    from jumar.runtime import Port

    inputs = (Port("x", x_type),) if x_type is not None else ()
    return Program("bench", inputs, (), tuple(steps), code, constants, top, scratch)


def our_chain(layer: Layer, weights: Sequence[tuple[Array, Array]], pairs: int) -> tuple[Callable[[], object], int]:
    """The chain as one Program, and how many kernels it has."""
    there, back = layer, _back(layer)
    shape = (layer.h, layer.c) if layer.kernel == 0 else (1, layer.h, layer.h, layer.c)
    x = param("x", f32t(*shape))
    tasks: list[Task] = []
    y = layer_node(there, x, *weights[0])
    tasks += lower_contraction(y, host()).tasks  # type: ignore[union-attr]
    places: dict[Any, int] = {x: 0, y: OTHER}
    if layer.stride == 1:
        z = layer_node(back, y, *weights[1])
        places[z] = 0
        again = layer_node(there, z, *weights[0])
        places[again] = OTHER
        second, third = (lower_contraction(n, host()) for n in (z, again))
        third_tasks = _shared(tasks, third.tasks)  # type: ignore[union-attr]
        for _ in range(pairs):
            tasks = [*tasks, *second.tasks, *third_tasks]  # type: ignore[union-attr]
    program = program_of(tasks, places, x.type, x)
    data = RNG.standard_normal(x.shape, np.float32)
    instance = Instance(program, threads=THREADS)
    return lambda: instance.run([data]), len(program.kernels)


def _shared(first: Sequence[Task], again: Sequence[Task]) -> list[Task]:
    """`again` with the packed constants of `first`, its equal."""
    return [
        replace(b, args=tuple(p if isinstance(p, Packed) else q for p, q in zip(a.args, b.args, strict=True)))
        for a, b in zip(first, again, strict=True)
    ]


def ort_chain(layer: Layer, weights: Sequence[tuple[Array, Array]], pairs: int) -> Callable[[], object]:
    """The same in ONNX Runtime."""
    import onnxruntime
    from onnx import helper, numpy_helper

    nodes, at = [], "x"
    count = 2 * pairs + 1 if layer.stride == 1 else 1
    for i in range(count):
        w, b = f"w{i % 2}", f"b{i % 2}"
        if layer.kernel == 0:
            nodes += [helper.make_node("MatMul", [at, w], [f"m{i}"]), helper.make_node("Add", [f"m{i}", b], [f"c{i}"])]
        else:
            p = _pads(layer)
            nodes.append(
                helper.make_node(
                    "Conv", [at, w, b], [f"c{i}"], strides=[layer.stride] * 2, pads=[p[0], p[0], p[1], p[1]], group=layer.groups
                )
            )
        nodes.append(helper.make_node("Relu", [f"c{i}"], [f"y{i}"]))
        at = f"y{i}"
    shape = [layer.h, layer.c] if layer.kernel == 0 else [1, layer.c, layer.h, layer.h]
    initial = [numpy_helper.from_array(a, f"{n}{i}") for i, pair in enumerate(weights) for n, a in zip("wb", pair, strict=True)]
    graph = helper.make_graph(
        nodes, "g", [helper.make_tensor_value_info("x", 1, shape)], [helper.make_tensor_value_info(at, 1, None)], initial
    )
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.log_severity_level = THREADS, 3
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    data = RNG.standard_normal(shape, np.float32)
    return lambda: session.run(None, {"x": data})


def peak_program(turns: int = 20000) -> tuple[Callable[[], object], int]:
    """Fused multiply-adds in registers on both threads: what the machine gives at this moment."""
    lanes = host().lanes(f32)
    k = Builder("peak")
    p = k.pointer("p", f32)
    x = k.splat(k.load(p, 0), lanes)
    sums = [k.var(k.load(p, i, lanes)) for i in range(12)]
    with k.loop(0, turns):
        for _ in range(4):
            for s in sums:
                s.set(k.fma(x, x, s.get()))
    total = sums[0].get()
    for s in sums[1:]:
        total = total + s.get()
    k.store(total, p, 64 + k.tid * 64)
    kernel = k.finish()
    compiled = compile_kernel(kernel, host())
    code = {compiled.symbol: compiled.object_bytes}
    program = Program("peak", (), (), (Step(compiled.symbol, (Ref("arena"),), 8),), code, arena_nbytes=4096)
    instance = Instance(program, threads=THREADS)
    return lambda: instance.run([]), 8 * turns * 48 * lanes * 2


def timed(run: Callable[[], object], repeats: int = 1) -> float:
    clock = time.perf_counter if THREADS > 1 else time.thread_time  # one thread: what others take does not count
    start = clock()
    for _ in range(repeats):
        run()
    return (clock() - start) / repeats


def measure(layer: Layer, rounds: int, peak: Callable[[], object], peak_flops: int, rival: bool) -> None:
    weights = [_weights(layer), _weights(_back(layer))]
    short, kernels = our_chain(layer, weights, 0)
    long, _ = our_chain(layer, weights, CHAIN)
    runs = {"ours": (short, long)}
    if rival:
        runs["ort"] = (ort_chain(layer, weights, 0), ort_chain(layer, weights, CHAIN))
    times: dict[str, list[float]] = {name: [] for name in runs}
    peaks = []
    count = 2 * CHAIN if layer.stride == 1 else 0
    for a, b in runs.values():
        a(), b()
    for _ in range(rounds):
        for name, (a, b) in runs.items():
            peaks.append(peak_flops / timed(peak))
            if count:
                few = min(timed(a) for _ in range(3))
                times[name] += [(timed(b) - few) / count for _ in range(2)]
            else:
                times[name] += [timed(a) for _ in range(4)]
    top = statistics.median(peaks)
    text = f"{layer.name:38s} {kernels} kernels"
    for name, found in times.items():
        best, middle = min(found), statistics.median(found)
        text += f" | {name} {middle * 1e6:7.1f} us (min {best * 1e6:7.1f}) {layer.flops / middle / 1e9:4.0f} GF/s"
        text += f" = {100 * layer.flops / middle / top:3.0f}% / {100 * layer.flops / best / max(peaks):3.0f}%"
    if rival:
        ours, ort = (times[n] for n in ("ours", "ort"))
        text += f" | x{statistics.median(ort) / statistics.median(ours):.2f} (min x{min(ort) / min(ours):.2f})"
    print(text, flush=True)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("part", nargs="?", default="")
    parser.add_argument("--rounds", type=int, default=6)
    parser.add_argument("--alone", action="store_true", help="without ONNX Runtime")
    parser.add_argument("--threads", type=int, default=2, help="1: CPU time of one thread, for a machine that others use")
    options = parser.parse_args()
    global THREADS  # noqa: PLW0603
    THREADS = options.threads
    peak, peak_flops = peak_program()
    peak()
    for layer in LAYERS:
        if options.part in layer.name:
            measure(layer, options.rounds, peak, peak_flops, not options.alone)
    _ = type_of


if __name__ == "__main__":
    main()
