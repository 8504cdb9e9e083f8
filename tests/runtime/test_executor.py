"""Programs run right with any number of threads, from any thread, after a fork, and say what is wrong with inputs."""

from __future__ import annotations

import os
import threading
import time
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from jumar.base import RuntimeFault, TensorType, f32, i64
from jumar.kernel import Builder, compile_kernel
from jumar.runtime import HostStep, Instance, KernelRef, Port, Program, Ref, Step, View, check, dump, fault_number, load
from jumar.runtime.executor import spans_of
from tests.kernel.test_builder import gemm_micro_kernel
from tests.runtime.programs import chain, chain_expected, kernels, word

X = np.linspace(-1, 1, 64, dtype=np.float32)


@pytest.mark.parametrize("threads", [1, 2, 3, 4])
@pytest.mark.parametrize("chunks", [1, 8, 64])
def test_steps_see_all_of_the_step_before_them(threads: int, chunks: int) -> None:
    instance = Instance(chain(6, chunks=chunks), threads=threads)
    for i in range(200):
        x = X + i
        (y,) = instance.run([x])
        np.testing.assert_array_equal(y, chain_expected(x, 6))


def _marked(chunks: int, serial: bool) -> np.ndarray:
    type = TensorType((chunks,), i64)
    program = Program(
        "mark", (), (Port("tid", type),), (Step("mark", (Ref("output:0"),), chunks, serial=serial),), {"mark": kernels()["mark"]}
    )
    return Instance(program, threads=3).run([])[0]


def test_every_chunk_runs_once_and_serial_chunks_on_thread_0() -> None:
    assert (_marked(1000, serial=True) == 0).all()
    parallel = _marked(1000, serial=False)
    assert ((parallel >= 0) & (parallel < 3)).all()


@pytest.mark.parametrize("threads", [2, 3, 7, 8, 9])
def test_ranges_of_chunks_are_all_of_them(threads: int) -> None:
    for chunks in range(1, 20):
        type = TensorType((chunks,), i64)
        program = Program("mark", (), (Port("tid", type),), (Step("mark", (Ref("output:0"),), chunks),), {"mark": kernels()["mark"]})
        marks = np.full(chunks, -1)
        Instance(program, threads=threads).run([], out=[marks])
        assert ((marks >= 0) & (marks < threads)).all()


def test_serial_and_parallel_steps_may_alternate() -> None:
    program = chain(12)
    steps = tuple(replace(s, serial=i % 3 == 0, chunks=8) for i, s in enumerate(program.steps) if isinstance(s, Step))
    instance = Instance(replace(program, steps=steps), threads=2)
    for _ in range(300):
        np.testing.assert_array_equal(instance.run([X])[0], chain_expected(X, 12))


def test_steps_without_a_barrier_may_overlap_and_the_next_barrier_waits_for_all() -> None:
    n, type = 64, TensorType((64,), f32)
    first = [Step("scaled", (Ref("input:0"), Ref("input:0"), Ref("arena", 256 * i), word(i), 64), 1, barrier=i == 0) for i in range(4)]
    last = Step("scaled", (Ref("arena", 256), Ref("arena", 768), Ref("output:0"), word(1.0), n // 8), 8)
    program = check(
        Program("overlap", (Port("x", type),), (Port("y", type),), (*first, last), {"scaled": kernels()["scaled"]}, arena_nbytes=1024)
    )
    instance = Instance(program, threads=2)
    for _ in range(300):
        np.testing.assert_allclose(instance.run([X])[0], X * 6, rtol=1e-6)


@pytest.mark.parametrize("threads", [1, 2, 4])
def test_scratch_belongs_to_one_thread(threads: int) -> None:
    x_type, y_type = TensorType((1000,), f32), TensorType((64,), f32)
    step = Step("scratch", (Ref("input:0"), Ref("output:0"), 1000, Ref("scratch")), 64)
    program = Program(
        "scratch", (Port("x", x_type),), (Port("y", y_type),), (step,), {"scratch": kernels()["scratch"]}, scratch_nbytes=4096
    )
    instance = Instance(program, threads=threads)
    for _ in range(50):
        np.testing.assert_array_equal(instance.run([np.ones(1000, np.float32)])[0], 1000 * (1 + np.arange(64, dtype=np.float32)))


def test_a_kernel_calls_another_by_reference() -> None:
    k = Builder("gemm")
    f, a, b, c, depth = k.function_pointer("f"), k.pointer("a", f32), k.pointer("b", f32), k.pointer("c", f32), k.integer("k")
    k.call(f, depth, k.offset(a, k.chunk * 6 * depth), depth, b, k.offset(c, k.chunk * 96), 16)
    objects = {"gemm": compile_kernel(k.finish()).object_bytes, "micro": compile_kernel(gemm_micro_kernel(6, 2, 8)).object_bytes}
    ports = (Port("a", TensorType((60, 32), f32)), Port("b", TensorType((32, 16), f32)))
    step = Step("gemm", (KernelRef("micro"), Ref("input:0"), Ref("input:1"), Ref("output:0"), 32), 10)
    program = check(Program("gemm", ports, (Port("c", TensorType((60, 16), f32)),), (step,), objects))
    rng = np.random.default_rng(0)
    x, w = rng.normal(size=(60, 32)).astype(np.float32), rng.normal(size=(32, 16)).astype(np.float32)
    np.testing.assert_allclose(Instance(program).run([x, w])[0], x @ w, rtol=1e-5, atol=1e-5)


def test_host_steps_run_between_native_ones() -> None:
    program = chain(3)
    type = TensorType((64,), f32)
    host = HostStep("negate", (View(Ref("arena"), type),), (View(Ref("arena"), type),))
    changed = check(replace(program, steps=(program.steps[0], host, *program.steps[1:])))
    ops = {"negate": lambda x: -x}
    instance = Instance(changed, threads=2, host=ops.__getitem__)
    b = np.arange(64, dtype=np.float32)
    for _ in range(20):
        np.testing.assert_array_equal(instance.run([X])[0], (-(X * 2 + b) * 2 + b) * 2 + b)
    times = instance.profile([X])
    assert [t.kernel for t in times] == ["scaled", "host negate", "scaled", "scaled"]
    assert all(a.end_us <= b.end_us for a, b in pairwise(times))
    with pytest.raises(RuntimeFault, match="every step must have native code here, got host step negate"):
        Instance(changed)


def test_outputs_are_fresh_unless_out_is_given() -> None:
    instance = Instance(chain(), threads=1)
    first, second = instance.run([X])[0], instance.run([X + 1])[0]
    np.testing.assert_array_equal(first, chain_expected(X))
    np.testing.assert_array_equal(second, chain_expected(X + 1))
    out = np.zeros(64, np.float32)
    assert instance.run([X], out=[out])[0] is out
    np.testing.assert_array_equal(out, first)


def test_inputs_that_are_not_contiguous_are_copied_and_others_are_not() -> None:
    instance = Instance(chain(), threads=1)
    wide = np.repeat(X, 2)
    np.testing.assert_array_equal(instance.run([wide[::2]])[0], chain_expected(X))
    np.testing.assert_array_equal(instance.run([np.frombuffer(X.tobytes(), np.float32)])[0], chain_expected(X))


def test_wrong_inputs_are_named_with_what_was_wanted() -> None:
    instance = Instance(chain())
    for bad, words in (
        ([], r"chain must get 1 inputs \(x\), got 0"),
        ([X[:3]], r"input x must be f32\[64\], got f32\[3\]"),
        ([X.astype(np.float64)], r"input x must be f32\[64\], got f64\[64\]"),
        ([[1.0]], r"input x must be f32\[64\], got list"),
    ):
        with pytest.raises(RuntimeFault, match=words):
            instance.run(bad)  # type: ignore[arg-type]
    with pytest.raises(RuntimeFault, match=r"output y must be f32\[64\], got f32\[128\]"):
        instance.run([X], out=[np.zeros(128, np.float32)])
    frozen = np.zeros(64, np.float32)
    frozen.flags.writeable = False
    with pytest.raises(RuntimeFault, match="not contiguous or read-only"):
        instance.run([X], out=[frozen])


def test_four_python_threads_share_one_instance_and_two_programs() -> None:
    instances = [Instance(chain(20), threads=2), Instance(chain(9), threads=4)]
    wrong: list[int] = []

    def work(seed: int) -> None:
        for i in range(300):
            x = X * seed + i
            instance, length = (instances[0], 20) if (seed + i) % 2 else (instances[1], 9)
            if not np.array_equal(instance.run([x])[0], chain_expected(x, length)):
                wrong.append(seed)

    workers = [threading.Thread(target=work, args=(s,)) for s in range(4)]
    for w in workers:
        w.start()
    for w in workers:
        w.join(120)
    assert wrong == [] and not any(w.is_alive() for w in workers)
    assert len(instances[0]._free) <= 4


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_child_gets_a_pool_of_its_own() -> None:
    instance = Instance(chain(), threads=2)
    instance.run([X])
    child = os.fork()
    if child == 0:
        status = 1
        try:
            good = all(np.array_equal(instance.run([X + i])[0], chain_expected(X + i)) for i in range(50))
            status = 0 if good else 2
        finally:
            os._exit(status)
    deadline = time.monotonic() + 60
    while True:
        pid, status = os.waitpid(child, os.WNOHANG)
        if pid:
            break
        assert time.monotonic() < deadline, "the child hangs"
        time.sleep(0.01)
    assert os.waitstatus_to_exitcode(status) == 0
    np.testing.assert_array_equal(instance.run([X])[0], chain_expected(X))


def test_threads_sleep_when_there_is_nothing_to_do() -> None:
    instance = Instance(chain(), threads=4)
    instance.run([X])
    time.sleep(0.2)  # they spin for a millisecond or so
    before = time.process_time()
    time.sleep(0.5)
    assert time.process_time() - before < 0.1
    np.testing.assert_array_equal(instance.run([X])[0], chain_expected(X))


def test_subnormals_are_flushed_inside_a_run_only() -> None:
    tiny = np.full(64, 1e-40, np.float32)
    (y,) = Instance(chain(1), threads=1).run([tiny])
    assert y[0] == 0.0
    assert (tiny * np.float32(2))[0] > 0


def test_a_profile_has_every_step_in_order_with_its_threads() -> None:
    instance = Instance(chain(4), threads=2)
    instance.run([X])
    times = instance.profile([X])
    assert [t.name for t in times] == ["step0", "step1", "step2", "step3"]
    assert all(t.us >= 0 and 1 <= len(t.threads) <= 2 and t.flops == 128 for t in times)
    assert all(a.start_us <= b.start_us for a, b in pairwise(times))
    np.testing.assert_array_equal(instance.run([X])[0], chain_expected(X, 4))


def test_a_thread_that_took_a_step_alone_keeps_its_number() -> None:
    stamps = np.array([[120, 0], [110, 130], [0, 0], [115, 125]])  # thread 0 came when all was done, thread 2 not at all
    assert spans_of(stamps, 100, 10.0) == [(1, 1.0, 3.0), (3, 1.5, 2.5)]


def test_threads_of_a_profile_are_those_that_wrote() -> None:
    """Each chunk notes its thread: what a profile says of the step is the same."""
    program = Program(
        "marks", (), (Port("out", TensorType((2,), i64)),), (Step("mark", (Ref("output:0"),), 2),), {"mark": kernels()["mark"]}, target="x86_64-test"
    )  # fmt: skip
    instance = Instance(check(program), threads=2)
    for _ in range(50):
        (step,) = instance.profile([])
        assert {t for t, *_ in step.threads} <= {0, 1} and len({t for t, *_ in step.threads}) == len(step.threads)


def faulty(bad: int) -> Program:
    """A step whose chunk `bad` (of 64) says that something did not hold, after a step that does nothing of the kind."""
    k = Builder("faulty")
    out, which = k.pointer("out", i64), k.integer("which")
    word, step = k.fault_word()
    k.store(k.chunk, out, k.chunk)
    with k.when(k.chunk == which):
        k.store(step, word)
    code = {"mark": kernels()["mark"], "faulty": compile_kernel(k.finish()).object_bytes}
    steps = (
        Step("mark", (Ref("output:0"),), 64, "first", "net.py:1"),
        Step("faulty", (Ref("output:0"), bad, Ref("fault"), fault_number(1)), 64, "second", "net.py:2", fault="chunks must be good, got a bad one"),
    )  # fmt: skip
    return check(Program("faults", (), (Port("out", TensorType((64,), i64)),), steps, code, target="x86_64-test"))


@pytest.mark.parametrize("threads", [1, 2])
def test_a_step_that_finds_its_inputs_wrong_ends_the_run_with_its_name(threads: int) -> None:
    for bad in (0, 63):
        instance = Instance(load(dump(faulty(bad))), threads=threads)
        for _ in range(3):
            with pytest.raises(RuntimeFault, match="second: chunks must be good, got a bad one") as caught:
                instance.run([])
            assert "net.py:2" in str(caught.value)
    good = Instance(faulty(-1), threads=threads)
    for _ in range(3):
        assert good.run([])[0].tolist() == list(range(64))


@pytest.mark.parametrize("threads", [1, 2])
def test_a_fault_before_a_host_step_keeps_it_from_running(threads: int) -> None:
    """And a host step that raises leaves no fault behind for the next run."""
    view, ran = View(Ref("output:0"), TensorType((64,), i64)), []

    def resolved(name: str) -> Any:
        def step(x: np.ndarray) -> np.ndarray:
            ran.append(name)
            return x

        return step

    program = faulty(3)
    instance = Instance(replace(program, steps=(*program.steps, HostStep("late", (view,), (view,)))), threads=threads, host=resolved)
    for _ in range(2):
        with pytest.raises(RuntimeFault, match="second: chunks must be good"):
            instance.run([])
    assert ran == []


def test_a_host_step_may_not_touch_the_fault_word() -> None:
    host = HostStep("negate", (View(Ref("fault"), TensorType((1,), i64)),), ())
    program = replace(faulty(-1), steps=(host,))
    with pytest.raises(RuntimeFault, match="got fault"):
        Instance(program, host=lambda _: lambda x: ()).run([])


def test_a_program_without_steps_or_elements_runs() -> None:
    empty = Program("empty", (Port("x", TensorType((0, 3), f32)),), (Port("y", TensorType((0,), f32)),), ())
    assert Instance(empty).run([np.zeros((0, 3), np.float32)])[0].shape == (0,)
