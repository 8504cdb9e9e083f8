"""The pool gives right numbers whatever the order of its threads, and callers that are interrupted leave Instances that work."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from types import FrameType
from typing import Any

import numpy as np
import pytest

from jumar.runtime import Instance, executor
from tests.runtime.programs import chain, chain_expected
from tests.runtime.stress import case, stress

X = np.linspace(-1, 1, 64, dtype=np.float32)


def test_random_programs_of_three_callers_give_what_they_say() -> None:
    runs, wrong = stress(range(60), callers=3, repeats=3)
    assert (runs, wrong) == (360, [])


@pytest.mark.parametrize("threads", [16, 64])
def test_more_threads_than_cores_give_the_same(threads: int) -> None:
    for seed in range(20):
        one = case(seed)
        x = np.arange(one.program.inputs[0].type.size, dtype=np.int64)
        np.testing.assert_array_equal(Instance(one.program, threads=threads).run([x])[0], one.expected(x))


class _Interrupt:
    """Raises KeyboardInterrupt at the n-th line of the executor."""

    def __init__(self, after: int) -> None:
        self.left = after

    def __call__(self, frame: FrameType, event: str, arg: object) -> Any:
        if frame.f_code.co_filename != executor.__file__:
            return None
        if event == "line":
            self.left -= 1
            if self.left == 0:
                raise KeyboardInterrupt
        return self


@pytest.mark.parametrize("again", [True, False], ids=["the same arrays", "those before"])
def test_a_run_that_is_interrupted_anywhere_leaves_right_pointers(again: bool) -> None:
    instance = Instance(chain(), threads=1)
    known, other = (X, np.zeros(64, np.float32)), (X + 1, np.zeros(64, np.float32))
    before = sys.gettrace()
    for after in range(1, 200):
        instance.run([known[0]], out=[known[1]])
        sys.settrace(_Interrupt(after))
        try:
            instance.run([other[0]], out=[other[1]])
            break
        except KeyboardInterrupt:
            pass
        finally:
            sys.settrace(before)
        x, y = other if again else known
        y[:] = 0
        instance.run([x], out=[y])
        np.testing.assert_array_equal(y, chain_expected(x))
    else:
        pytest.fail("the run has more lines than were tried")
    assert after > 20


def test_a_profile_beside_runs_of_others_has_every_step() -> None:
    instance = Instance(chain(8), threads=2)
    over = threading.Event()
    wrong: list[int] = []

    def work(seed: int) -> None:
        while not over.is_set():
            if not np.array_equal(instance.run([X + seed])[0], chain_expected(X + seed, 8)):
                wrong.append(seed)

    workers = [threading.Thread(target=work, args=(s,)) for s in range(2)]
    for w in workers:
        w.start()
    try:
        lanes = [[len(t.threads) for t in instance.profile([X])] for _ in range(100)]
    finally:
        over.set()
        for w in workers:
            w.join()
    assert wrong == [] and all(len(found) == 8 and min(found) >= 1 for found in lanes)


_PIN = """
import os, threading, time
import numpy as np
from jumar.runtime import Instance
from tests.runtime.programs import chain, chain_expected
before = os.sched_getaffinity(0)
x = np.linspace(-1, 1, 64, dtype=np.float32)
np.testing.assert_array_equal(Instance(chain(), threads=2).run([x])[0], chain_expected(x))
mine = threading.get_native_id()
time.sleep(0.2)  # a worker may come late
print(os.sched_getaffinity(0) == before, [len(os.sched_getaffinity(int(t))) for t in os.listdir("/proc/self/task") if int(t) != mine])
"""


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="needs two cores")
@pytest.mark.parametrize(("pin", "bound"), [("1", True), ("0", False)])
def test_workers_are_bound_to_a_core_where_that_is_asked_and_the_caller_never(pin: str, bound: bool) -> None:
    environment = {
        **os.environ,
        "JUMAR_PIN": pin,
        "OMP_NUM_THREADS": "1",
        "OPENBLAS_NUM_THREADS": "1",
        "PYTHONPATH": os.pathsep.join(sys.path),
    }
    done = subprocess.run([sys.executable, "-c", _PIN], capture_output=True, text=True, env=environment, check=True)
    same, _, widths = done.stdout.partition(" ")
    assert (same, widths.strip() == "[1]") == ("True", bound)
