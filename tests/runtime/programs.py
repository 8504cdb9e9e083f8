"""Small Programs for the tests of the runtime, with kernels from the builder."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from jumar.base import TensorType, f32, i64
from jumar.kernel import Builder, compile_kernel
from jumar.runtime import Port, Program, Ref, Step, allocate, check


@lru_cache(maxsize=1)
def kernels() -> dict[str, bytes]:
    """scaled: y[chunk] = x[chunk] * scale + b[chunk], `per` elements a chunk.  mark: out[chunk] = tid.  scratch: sums by scratch."""
    k = Builder("scaled")
    x, b, y = k.pointer("x", f32), k.pointer("b", f32), k.pointer("y", f32)
    scale, per = k.number("scale", f32), k.integer("per")
    with k.loop(k.chunk * per, k.chunk * per + per) as i:
        k.store(k.fma(k.load(x, i), scale, k.load(b, i)), y, i)
    m = Builder("mark")
    out = m.pointer("out", i64)
    m.store(m.tid, out, m.chunk)
    s = Builder("scratch")
    source, result, n = s.pointer("x", f32), s.pointer("y", f32), s.integer("n")
    tmp = s.thread_scratch("tmp", 4096)
    with s.loop(0, n) as i:
        s.store(s.load(source, i) + s.convert(s.chunk, f32), tmp, i)
    total = s.var(0.0)
    with s.loop(0, n) as i:
        total.set(total.get() + s.load(tmp, i))
    s.store(total.get(), result, s.chunk)
    return {b.name: compile_kernel(b.finish()).object_bytes for b in (k, m, s)}


def word(value: float) -> int:
    return int(np.float32(value).view(np.uint32))


def chain(length: int = 5, n: int = 64, chunks: int = 8, serial: bool = False) -> Program:
    """y = x after `length` times x -> 2 x + b, by way of two places in the arena; each step needs all of the one before it."""
    type = TensorType((n,), f32)
    constants = allocate(4 * n)
    constants.view(np.float32)[:] = np.arange(n)
    places = [Ref("input:0"), *(Ref("arena", (i % 2) * 4 * n) for i in range(length - 1)), Ref("output:0")]
    steps = tuple(
        Step(
            "scaled",
            (places[i], Ref("constant"), places[i + 1], word(2.0), n // chunks),
            chunks,
            f"step{i}",
            f"net.py:{i}",
            2 * n,
            12 * n,
            serial,
        )
        for i in range(length)
    )
    return check(
        Program(
            "chain", (Port("x", type),), (Port("y", type),), steps, {"scaled": kernels()["scaled"]}, constants, 8 * n, target="x86_64-test"
        )
    )


def chain_expected(x: np.ndarray, length: int = 5) -> np.ndarray:
    for _ in range(length):
        x = x * np.float32(2) + np.arange(len(x), dtype=np.float32)
    return x
