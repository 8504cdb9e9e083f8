"""Random Programs whose every value is known, run by several callers at once: a race in the pool shows as a wrong number or a hang.

    python -m tests.runtime.stress --seconds 60 --callers 3 --hogs 4

Steps read all of what they depend on (a chunk reads the mirror image of its place), some threads are slowed down at random, barriers
are left out wherever no hazard asks for one.  `test_pool.py` runs a short one.
"""

from __future__ import annotations

import argparse
import faulthandler
import os
import random
import subprocess
import sys
import threading
import time
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from jumar.base import Array, TensorType, i64
from jumar.kernel import Builder, compile_kernel
from jumar.runtime import Instance, Port, Program, Ref, Step, check

PLACES = 6


@lru_cache(maxsize=1)
def kernels() -> dict[str, bytes]:
    """mirror: y[i] = 3 x[n - 1 - i] + z[i] + 1 for the chunk's i, after a delay that differs from chunk to chunk and thread to thread."""
    k = Builder("mirror")
    x, z, y = k.pointer("x", i64), k.pointer("z", i64), k.pointer("y", i64)
    n, per, delay = k.integer("n"), k.integer("per"), k.integer("delay")
    tmp = k.thread_scratch("tmp", 64, i64)
    start = k.chunk * per
    end = k.minimum(start + per, n)
    pauses = k.var(0, i64)
    with k.loop(0, delay * k.remainder(k.chunk * 7 + k.tid * 13, k.index(5))) as i:
        pauses.set(pauses.get() + i)
        k.store(pauses.get(), tmp, 0)
    with k.loop(start, end) as i:
        k.store(k.load(x, n - 1 - i) * 3 + k.load(z, i) + 1, y, i)
    return {"mirror": compile_kernel(k.finish()).object_bytes}


@dataclass(frozen=True)
class Case:
    """A Program and the moves that it makes: (x, z, y) are places; 0 is the input, the last is the output."""

    program: Program
    moves: tuple[tuple[int, int, int], ...]

    def expected(self, x: Array) -> Array:
        places = {0: x}
        for a, b, to in self.moves:
            places[to] = places[a][::-1] * 3 + places[b] + 1
        return places[PLACES]


def case(seed: int) -> Case:
    """A random Program: 1 .. 40 steps of 1 .. 200 chunks, serial ones among them, with barriers where hazards ask, and some more."""
    rng = random.Random(seed)
    n = rng.choice([8, 64, 200, 1000])
    refs = [Ref("input:0"), *(Ref("arena", 8 * n * i) for i in range(PLACES - 1)), Ref("output:0")]
    held = [0]
    moves: list[tuple[int, int, int]] = []
    steps: list[Step] = []
    since: list[tuple[int, int, int]] = []  # moves since the last barrier
    count = rng.randint(1, 40)
    for number in range(count):
        a, b = rng.choice(held), rng.choice(held)
        to = PLACES if number == count - 1 else rng.choice([p for p in range(1, PLACES) if p not in (a, b)])
        clash = any(to in m or m[2] in (a, b) for m in since)
        barrier = clash or not steps or rng.random() < 0.1
        since = [(a, b, to)] if barrier else [*since, (a, b, to)]
        chunks = rng.choice([1, 1, 2, 3, 7, 50, 200])
        delay = rng.choice([0, 0, 0, 30, 300, 3000]) // max(1, chunks // 4)
        steps.append(
            Step(
                "mirror",
                (refs[a], refs[b], refs[to], n, -(-n // chunks), delay, Ref("scratch")),
                chunks,
                serial=rng.random() < 0.2,
                barrier=barrier,
            )
        )
        moves.append((a, b, to))
        if to not in held and to != PLACES:
            held.append(to)
    type = TensorType((n,), i64)
    program = Program(
        f"stress {seed}", (Port("x", type),), (Port("y", type),), tuple(steps), kernels(), arena_nbytes=8 * n * PLACES, scratch_nbytes=64
    )
    return Case(check(program), tuple(moves))


def stress(seeds: range, *, callers: int = 3, repeats: int = 5, seconds: float = 1e9, shared: bool = True) -> tuple[int, list[str]]:
    """(runs, what was wrong).   Every caller runs Programs of its own and, where shared, one that all have in common."""
    wrong: list[str] = []
    counts = [0] * callers
    end = time.monotonic() + seconds
    common = case(seeds[0])
    common_instance = Instance(common.program, threads=2)

    def once(one: Case, instance: Instance, who: int, salt: int) -> None:
        size = one.program.inputs[0].type.size
        x = np.arange(size, dtype=np.int64) * (2 * salt + 1) + who
        (y,) = instance.run([x])
        counts[who] += 1
        if not np.array_equal(y, one.expected(x)):
            wrong.append(f"{one.program.name}, {instance.threads} threads, caller {who}, run {salt}")

    def work(who: int) -> None:
        rng = random.Random(who)
        for seed in list(seeds)[who::callers]:
            if time.monotonic() > end:
                return
            own = case(seed)
            instance = Instance(own.program, threads=rng.choice([1, 2, 2, 3, 4]))
            for i in range(repeats):
                once(own, instance, who, i)
                if shared:
                    once(common, common_instance, who, i)

    threads = [threading.Thread(target=work, args=(who,), daemon=True) for who in range(callers)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    return sum(counts), wrong


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=30)
    parser.add_argument("--callers", type=int, default=3)
    parser.add_argument("--hogs", type=int, default=0)
    parser.add_argument("--first", type=int, default=0)
    options = parser.parse_args()
    faulthandler.dump_traceback_later(options.seconds + 60, exit=True)
    hogs = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(options.hogs)]
    try:
        runs, wrong = stress(range(options.first, options.first + 1_000_000), callers=options.callers, seconds=options.seconds)
    finally:
        for hog in hogs:
            hog.kill()
    print(f"{runs} runs on {len(os.sched_getaffinity(0))} cores, {len(wrong)} wrong", *wrong[:10], sep="\n")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
