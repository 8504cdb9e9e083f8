"""What this machine's multiply-add units can do: measured with a kernel of ours that does nothing else.

In: the host and a number of threads.  Out: f32 flops per second: the best of many short bursts, now and in the last month on this machine
(the best so far is kept beside the compile cache), so that a machine that is busy just now does not look small.
"""

from __future__ import annotations

import contextlib
import json
import os
import time
from pathlib import Path

import numpy as np

from jumar.base import TensorType, config, f32
from jumar.device import Target, host
from jumar.kernel import Builder, Kernel, compile_kernel
from jumar.runtime import Instance, Port, Program, Ref, Step

CHAINS = 12  # independent sums: enough to hide the latency of two units, few enough for 16 registers
ROUNDS = 20_000  # some 50 us: short enough to run undisturbed now and then
KEEP_DAYS = 30


def peak_flops_per_s(threads: int) -> float:
    """The best of now and of the last month."""
    target = host()
    key = f"{target.instruction_set}/{os.cpu_count()}/{threads}"
    path = Path(config("cache_dir")) / "peak.json"
    known = _read(path)
    before, when = known.get(key, (0.0, 0.0))
    value = measure_peak(threads)
    if value <= before and time.time() - when < KEEP_DAYS * 86400:
        return before
    if config("cache"):
        _write(path, known | {key: (value, time.time())})
    return value


def measure_peak(threads: int, seconds: float = 0.4) -> float:
    """Flops per second of `threads` threads that each do nothing but multiply and add."""
    target = host()
    kernel = _kernel(target)
    compiled = compile_kernel(kernel, target)
    lanes = target.lanes(f32)
    result = TensorType((threads * CHAINS * lanes,), f32)
    step = Step(compiled.symbol, (Ref("output:0"), ROUNDS), chunks=threads)
    program = Program("peak", (), (Port("y", result),), (step,), {compiled.symbol: compiled.object_bytes}, target=target.instruction_set)
    instance = Instance(program, threads=threads)
    flops = 2.0 * threads * CHAINS * lanes * ROUNDS
    best, end = 0.0, time.perf_counter() + seconds
    out = [np.empty(result.dims, np.float32)]
    instance.run([], out)
    while time.perf_counter() < end:
        start = time.perf_counter()
        instance.run([], out)
        best = max(best, flops / (time.perf_counter() - start))
    return best


def _kernel(target: Target) -> Kernel:
    """CHAINS sums in registers, each multiplied and added to ROUNDS times."""
    k = Builder("fma_peak")
    y, rounds = k.pointer("y", f32), k.integer("rounds")
    lanes = target.lanes(f32)
    scale, shift = k.splat(k.const(0.999, f32), lanes), k.splat(k.const(0.001, f32), lanes)
    sums = [k.var(k.splat(k.const(1.0 + i, f32), lanes)) for i in range(CHAINS)]
    with k.loop(0, rounds):
        for v in sums:
            v.set(k.fma(v.get(), scale, shift))
    at = k.chunk * (CHAINS * lanes)
    for i, v in enumerate(sums):
        k.store(v.get(), y, at + i * lanes)
    return k.finish()


def _read(path: Path) -> dict[str, tuple[float, float]]:
    try:
        found = json.loads(path.read_text())
        return {str(k): (float(v[0]), float(v[1])) for k, v in found.items()}
    except (OSError, ValueError, TypeError, AttributeError, IndexError):
        return {}


def _write(path: Path, known: dict[str, tuple[float, float]]) -> None:
    with contextlib.suppress(OSError):  # a read-only home: measured again next time
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary = path.with_name(f"{path.name}.{os.getpid()}.tmp")
        temporary.write_text(json.dumps(known))
        temporary.replace(path)
