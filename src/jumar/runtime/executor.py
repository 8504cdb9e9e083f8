"""Runs Programs: code in memory, an arena, pointers in place, one native call.

In: a `Program` and arrays.  Out: arrays.  An `Instance` may be used from several threads: each run takes a context of its own
(arena, argument words, counters); code and constants are shared.
"""

from __future__ import annotations

import ctypes
import math
import struct
import sys
import time
from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from threading import Lock
from typing import Any

import numpy as np

from jumar.base import Array, Loc, RuntimeFault, config, type_of
from jumar.device import usable_cores
from jumar.runtime.buffer import Recycler, aligned, allocate, view
from jumar.runtime.link import Code, link
from jumar.runtime.native import (
    BARRIER,
    CONTEXT_COUNTERS,
    CONTEXT_DONE,
    CONTEXT_RANGES,
    CONTEXT_SPINS,
    CONTEXT_STEPS,
    CONTEXT_STRIDE,
    CONTEXT_THREADS,
    CONTEXT_TIMES,
    CONTEXT_WORDS,
    MAX_RANGES,
    MAX_THREADS,
    SERIAL,
    SPINS,
    STEP_WORDS,
    cycles_per_us,
    pool,
)
from jumar.runtime.program import HostStep, KernelRef, Program, Ref, Step, View, fault_number

_ARRAY, _EMPTY = np.ndarray, np.empty


def _by_interface(array: Array) -> int:
    return int(array.__array_interface__["data"][0])


def _by_layout(array: Array) -> int:
    """The data pointer, read where NumPy's ABI has it: the first field of the object.   A tenth of the interface's time."""
    address: int = _MEMORY[(id(array) + _POINTER_OFFSET) >> 3]
    return address


_MEMORY = (ctypes.c_size_t * (1 << 45)).from_address(0)  # all of it, as words: an index is quicker than an object for each look
_POINTER_OFFSET = object.__basicsize__
_probe = np.zeros(3, np.uint8)[1:]
_address = _by_layout if sys.implementation.name == "cpython" and _by_layout(_probe) == _by_interface(_probe) else _by_interface

HostResolver = Callable[[str], Callable[..., Any]]


@dataclass(frozen=True)
class StepTime:
    """When one step ran in a profiled run, in microseconds since its start.   threads: (number, start, end) of each that took part."""

    index: int
    name: str
    kernel: str
    loc: str
    start_us: float
    end_us: float
    flops: int = 0
    nbytes: int = 0
    threads: tuple[tuple[int, float, float], ...] = ()

    @property
    def us(self) -> float:
        return self.end_us - self.start_us


@dataclass
class _Context:
    """What one run needs for itself.   ports: for each input and output with memory of its own, the last address and the words that hold it.

    updated: where the inputs lie that are written over, by their first bytes and by their ends; None where nobody has looked yet.
    """

    arena: Array
    scratch: Array
    held: Array  # the bytes of `words`, which does not own them
    words: Any  # ctypes array of int64: the args of all steps
    table: Any
    counters: Any
    context: Any
    address: int
    ports: list[list[Any]]
    fault: Any  # one int64: the `fault_number` of a step that found its inputs wrong, else 0
    updated: tuple[list[int], list[int]] | None = None


RECYCLED_NBYTES = 1 << 16  # smaller outputs come from malloc, which keeps their pages


def _lender(dtype: np.dtype[Any], shape: tuple[int, ...]) -> Callable[[], Array]:
    """What makes an output: two blocks of a large one are held, since the result of the call before may still be read."""
    if math.prod(shape) * dtype.itemsize < RECYCLED_NBYTES:
        return partial(_EMPTY, shape, dtype)
    return Recycler(dtype, shape).lend


class Instance:
    """A Program, ready to run.   threads: 0 means the setting `threads`, or the cores that this process may use."""

    def __init__(self, program: Program, *, threads: int = 0, host: HostResolver | None = None) -> None:
        self.program = program
        self.threads = max(1, min(threads or config("threads") or usable_cores(), MAX_THREADS))
        self.constants = aligned(program.constants)
        self.code: Code = link(program.kernels)
        self._run = pool().run
        self._free: list[_Context] = []
        self._inputs = [(p.name, p.type.dtype.numpy, p.type.dims) for p in program.inputs]
        self._updates = dict(program.updates)
        self._updated = frozenset(self._updates.values())
        # outputs with memory of their own, and for each output the array that it is: inputs first, then those
        self._outputs = [(p.name, p.type.dtype.numpy, p.type.dims) for o, p in enumerate(program.outputs) if o not in self._updates]
        self._lenders = [_lender(dtype, shape) for _, dtype, shape in self._outputs]
        fresh = {o: i for i, o in enumerate(o for o in range(len(program.outputs)) if o not in self._updates)}
        self._fresh_of = fresh
        self._nbytes = [p.type.nbytes for p in program.inputs]
        self._results = [self._updates[o] if o in self._updates else len(program.inputs) + fresh[o] for o in range(len(program.outputs))]
        self._segments = _segments(program)
        self._host: dict[int, Callable[..., Any]] = {}
        for i, step in enumerate(program.steps):
            if not isinstance(step, HostStep):
                continue
            if host is None:
                raise RuntimeFault(
                    f"program {program.name}: every step must have native code here, got host step {step.op}",
                    hint="run it in jumar, where the operator's Python definition is",
                    code="host-step",
                )
            self._host[i] = host(step.op)
        self._count = len(program.steps)
        self._simple = len(self._segments) == 1 and not self._host

    # ------------------------------------------------------------------ running
    def run(self, inputs: Sequence[Array], out: Sequence[Array] | None = None, *, known: bool = False) -> list[Array]:
        """The outputs for these inputs.   out: arrays to write them into; else they are fresh.   known: their types were looked at.

        An output that updates an input (`Program.updates`) is that input's own array, which must be writeable and contiguous and share no
        memory with another input; after an error it holds old values, new ones, or some of each.
        """
        if known and not self._updates:
            arrays = [a if a.flags.c_contiguous else np.ascontiguousarray(a) for a in inputs]
        else:
            arrays = self._arrays(inputs)
        arrays += self._fresh() if out is None else self._checked(out, arrays)
        context = self._taken()
        try:
            self._place(context, enumerate(arrays))
            self._execute(context, arrays)
        finally:
            self._free.append(context)
        return [arrays[i] for i in self._results] if self._updates else arrays[len(self._inputs) :]

    __call__ = run

    def bind(self, inputs: Sequence[Array | None]) -> Bound:
        """The same with inputs that stay: what they must be is looked at once.   None: given at each call."""
        return Bound(self, inputs)

    def _arrays(self, inputs: Sequence[Array]) -> list[Array]:
        """The inputs, checked, in a form that kernels read."""
        expected = self._inputs
        if len(inputs) != len(expected):
            names = ", ".join(name for name, _, _ in expected)
            raise RuntimeFault(f"run: {self.program.name} must get {len(expected)} inputs ({names}), got {len(inputs)}", code="run-inputs")
        arrays = list(inputs)
        for i, (name, dtype, shape) in enumerate(expected):
            array = arrays[i]
            if not isinstance(array, _ARRAY) or array.dtype != dtype or array.shape != shape:
                raise self._mismatch("input", name, array)
            if not array.flags.c_contiguous:
                arrays[i] = np.ascontiguousarray(array)
        for i in self._updated:
            array = arrays[i]
            if array is not inputs[i] or not array.flags.writeable:
                raise self._mismatch("input", expected[i][0], inputs[i])
        return arrays

    def _place(self, context: _Context, arrays: Iterable[tuple[int, Array]]) -> None:
        """Writes the addresses of inputs and outputs into the arguments of the steps."""
        words, ports, changed = context.words, context.ports, []
        for at, array in arrays:
            address, port = _address(array), ports[at]
            if address != port[0]:
                port[0] = -1  # a KeyboardInterrupt here must not leave an address beside words of another
                for word, offset in port[1]:
                    words[word] = address + offset
                port[0] = address
                changed.append(at)
        if changed and self._updated:
            self._look_apart(context, changed)

    def _look_apart(self, context: _Context, changed: Sequence[int]) -> None:
        """No input that is updated may share memory with another: none of the `changed` ones does."""
        if context.updated is None or not self._updated.isdisjoint(changed):
            context.updated = self._spans_apart(context)
        firsts, ends = context.updated
        for i in changed:
            if i < len(self._inputs) and i not in self._updated and self._nbytes[i]:
                first = context.ports[i][0]
                at = bisect_left(firsts, first + self._nbytes[i]) - 1
                if at >= 0 and ends[at] > first:
                    other = next(u for u in self._updated if context.ports[u][0] == firsts[at])
                    raise self._shared(context, (i, other))

    def _spans_apart(self, context: _Context) -> tuple[list[int], list[int]]:
        """First bytes and ends of the inputs that are updated, after a look at all inputs that are placed."""
        placed = [
            (context.ports[i][0], self._nbytes[i], i) for i in range(len(self._inputs)) if context.ports[i][0] > 0 and self._nbytes[i]
        ]
        end, owner = 0, -1
        for address, nbytes, i in sorted(placed):
            if address < end and (i in self._updated or owner in self._updated):
                raise self._shared(context, (i, owner))
            if address + nbytes > end:
                end, owner = address + nbytes, i
        spans = sorted((address, address + nbytes) for address, nbytes, i in placed if i in self._updated)
        return [a for a, _ in spans], [b for _, b in spans]

    def _shared(self, context: _Context, pair: tuple[int, int]) -> RuntimeFault:
        context.updated = None
        for port in context.ports:
            port[0] = -1  # so that the next run looks again
        names = " and ".join(self._inputs[i][0] for i in sorted(pair))
        return RuntimeFault(f"run: an input that is updated must share no memory with another, got {names}", code="run-inputs")

    def _execute(self, context: _Context, arrays: list[Array]) -> None:
        """One run of all steps."""
        try:
            if self._simple:
                self._run(context.address, 0, self._count)
            else:
                self._run_segments(context, arrays)
            if context.fault.value:
                raise self._fault(context)
        except BaseException:
            context.fault.value = 0  # the next run begins without
            raise

    def _fresh(self) -> list[Array]:
        """Arrays for the outputs; large ones on memory that earlier outputs have left."""
        return [lend() for lend in self._lenders]

    def _checked(self, out: Sequence[Array], inputs: Sequence[Array]) -> list[Array]:
        """The arrays of `out` that outputs are written into; those that update an input must be that input."""
        if len(out) != len(self._results):
            raise RuntimeFault(f"run: out must hold {len(self._results)} arrays, got {len(out)}", code="run-inputs")
        for o, i in self._updates.items():
            if out[o] is not inputs[i]:
                name = self.program.outputs[o].name
                raise RuntimeFault(
                    f"run: output {name} must be written into input {self._inputs[i][0]}, which it updates", code="run-inputs"
                )
        own = [out[o] for o in self._fresh_of]
        for array, (name, dtype, shape) in zip(own, self._outputs, strict=True):
            if array.dtype != dtype or array.shape != shape or not array.flags.c_contiguous or not array.flags.writeable:
                raise self._mismatch("output", name, array)
        return own

    def _run_segments(self, context: _Context, arrays: list[Array]) -> None:
        for segment in self._segments:
            if isinstance(segment, int):
                self._run_host(segment, context, arrays)
            else:
                self._run(context.address, *segment)
                if context.fault.value:
                    raise self._fault(context)

    def _run_host(self, index: int, context: _Context, arrays: list[Array]) -> None:
        step = self.program.steps[index]
        assert isinstance(step, HostStep), "segments name host steps by their index"
        results = self._host[index](*(self._view(v, context, arrays) for v in step.inputs))
        results = tuple(results) if isinstance(results, tuple | list) else (results,)
        if len(results) != len(step.outputs):
            raise RuntimeFault(f"run: {step.op} must give {len(step.outputs)} arrays, got {len(results)}", code="host-step")
        for result, v in zip(results, step.outputs, strict=True):
            given = np.asarray(result)
            if given.shape != v.type.shape:
                raise RuntimeFault(f"run: {step.op} must give {v.type}, got {type_of(given)}", code="host-step")
            np.copyto(self._view(v, context, arrays), given, casting="unsafe")

    def _view(self, v: View, context: _Context, arrays: list[Array]) -> Array:
        space, _, index = v.ref.space.partition(":")
        if space == "arena":
            return view(context.arena, v.ref.offset, v.type)
        if space == "constant":
            return view(self.constants, v.ref.offset, v.type)
        if space in ("scratch", "fault"):
            raise RuntimeFault(f"run: a host step must read arena, constants, inputs or outputs, got {space}", code="host-step")
        array = arrays[int(index) if space == "input" else len(self._inputs) + self._fresh_of[int(index)]]
        return view(array.reshape(-1).view(np.uint8), v.ref.offset, v.type)

    def _fault(self, context: _Context) -> RuntimeFault:
        """The error of a run whose results are void, since a step says so."""
        step = self.program.steps[context.fault.value - fault_number(0)]
        assert isinstance(step, Step), "kernels store the number of their own step"
        return RuntimeFault(f"{step.name}: {step.fault}", loc=Loc(name=step.loc), code="index-range")

    def _mismatch(self, kind: str, name: str, array: object) -> RuntimeFault:
        ports = self.program.inputs if kind == "input" else self.program.outputs
        wanted = next(p.type for p in ports if p.name == name)
        got = type_of(array) if isinstance(array, np.ndarray) else type(array).__name__
        if isinstance(array, np.ndarray) and type_of(array) == wanted:
            got = f"{got}, not contiguous or read-only"
        return RuntimeFault(f"run: {kind} {name} must be {wanted}, got {got}", code="run-inputs")

    # ------------------------------------------------------------------ measuring
    def profile(self, inputs: Sequence[Array]) -> list[StepTime]:
        """When each step ran, from one run, after one that checks the inputs and warms the memory.   Inputs keep their values."""
        inputs = [a.copy() if i in self._updated else a for i, a in enumerate(inputs)]
        self.run(inputs)
        steps, threads = self.program.steps, self.threads
        rate = cycles_per_us()
        stamps = np.zeros((max(1, len(steps)), threads, 2), np.int64)
        arrays = [*(np.ascontiguousarray(a) for a in inputs), *self._fresh()]  # outputs on warm memory, as in a run
        host_times: dict[int, tuple[int, int]] = {}
        # taken out of the list, so that no other caller's run writes times into memory that is gone by then
        context = self._taken()
        for array, port in zip(arrays, context.ports, strict=True):
            port[0] = -1
            for word, offset in port[1]:
                context.words[word] = array.ctypes.data + offset
        context.context[CONTEXT_TIMES] = stamps.ctypes.data
        start = pool().now()
        try:
            for segment in self._segments:
                if isinstance(segment, int):
                    before = pool().now()
                    self._run_host(segment, context, arrays)
                    host_times[segment] = (before, pool().now())
                else:
                    self._run(context.address, *segment)
        finally:
            context.context[CONTEXT_TIMES] = 0
            self._free.append(context)
        result = []
        for i, step in enumerate(steps):
            if i in host_times:
                spans = [(0, (host_times[i][0] - start) / rate, (host_times[i][1] - start) / rate)]
            else:
                spans = spans_of(stamps[i], start, rate)
            name = step.kernel if isinstance(step, Step) else f"host {step.op}"
            flops, nbytes = (step.flops, step.nbytes) if isinstance(step, Step) else (0, 0)
            first, last = (min(a for _, a, _ in spans), max(b for *_, b in spans)) if spans else (0.0, 0.0)
            result.append(StepTime(i, step.name, name, step.loc, first, last, flops, nbytes, tuple(spans)))
        return result

    # ------------------------------------------------------------------ building a context
    def _taken(self) -> _Context:
        """A context that nobody uses."""
        try:
            return self._free.pop()  # list.pop and append are atomic, and survive a fork
        except IndexError:
            return self._context()

    def _context(self) -> _Context:
        program = self.program
        arena = allocate(program.arena_nbytes)
        # a little more than a multiple of the page, so that the threads' scratch does not share cache sets
        stride = (program.scratch_nbytes + 4095) // 4096 * 4096 + 128 if program.scratch_nbytes else 0
        scratch = allocate(stride * self.threads)
        fault = ctypes.c_int64(0)
        bases = {
            "fault": ctypes.addressof(fault),
            "arena": arena.ctypes.data,
            "constant": self.constants.ctypes.data,
            "scratch": scratch.ctypes.data,
        }
        n_inputs = len(self._inputs)
        ports: list[list[Any]] = [[0, []] for _ in range(n_inputs + len(self._outputs))]
        words: list[int] = []
        starts: list[int] = []
        for step in program.steps:
            starts.append(len(words))
            if isinstance(step, HostStep):
                continue
            for arg in step.args:
                match arg:
                    case Ref("scratch", offset):
                        words += (bases["scratch"] + offset, stride)
                    case Ref(("arena" | "constant" | "fault") as space, offset):
                        words.append(bases[space] + offset)
                    case Ref(space, offset):
                        kind, _, number = space.partition(":")
                        port = n_inputs + self._fresh_of[int(number)] if kind == "output" else int(number)
                        ports[port][1].append((len(words), offset))
                        words.append(0)
                    case KernelRef(symbol):
                        words.append(self.code.address(symbol))
                    case _:
                        words.append(_signed(arg))
            words += [0] * (-len(words) % 8)  # each step's words start a cache line
        held = allocate(8 * len(words))
        store = (ctypes.c_int64 * max(1, len(words))).from_address(held.ctypes.data) if words else (ctypes.c_int64 * 1)()
        if words:
            store[:] = words  # type: ignore[assignment]  # ctypes arrays take numbers
        base = held.ctypes.data
        table = np.zeros((len(program.steps) + 1, STEP_WORDS), np.int64)
        for i, (step, flags) in enumerate(zip(program.steps, _flags(program.steps), strict=True)):
            if isinstance(step, Step):
                table[i] = (self.code.address(step.kernel), base + 8 * starts[i], step.chunks, flags)
        # chunks handed out of each range, chunks done: on lines of their own, so that neither who waits nor who takes slows down the others
        ranges, stride = min(self.threads, MAX_RANGES), (len(program.steps) + 24) // 8 * 8
        counters = allocate(8 * (ranges + 1) * stride).view(np.int64)
        context = allocate(8 * CONTEXT_WORDS).view(np.int64)
        context[CONTEXT_STEPS], context[CONTEXT_COUNTERS], context[CONTEXT_THREADS] = table.ctypes.data, counters.ctypes.data, self.threads
        context[CONTEXT_DONE] = counters.ctypes.data + 8 * ranges * stride
        context[CONTEXT_RANGES], context[CONTEXT_STRIDE] = ranges, stride
        # with more threads than cores, a thread that spins keeps the one it waits for from running
        context[CONTEXT_SPINS] = SPINS if self.threads <= usable_cores() else 0
        return _Context(arena, scratch, held, store, table, counters, context, context.ctypes.data, ports, fault)


class Bound:
    """An Instance and inputs that stay: a call checks and places only what is given to it, however many others there are.

    The arrays that stay are held, and read (or updated) where they are.  Calls from several threads run one after another.
    """

    def __init__(self, instance: Instance, inputs: Sequence[Array | None]) -> None:
        self.instance = instance
        self._context = instance._taken()  # memory that an earlier run has left, for there is no other caller to be expected
        self._lock = Lock()
        self._count = len(instance._inputs)
        self._given = [i for i, a in enumerate(inputs) if a is None]
        self._kept: list[Any] = list(inputs)
        if len(inputs) != self._count:
            raise RuntimeFault(f"bind: {instance.program.name} must get {self._count} inputs, got {len(inputs)}", code="run-inputs")
        self._look()

    def put(self, index: int, array: Array) -> None:
        """Another array in the place of one that stays."""
        if index in self._given:
            raise RuntimeFault(f"bind: input {index} is given at each call, so it cannot be put in place", code="run-inputs")
        before, self._kept[index] = self._kept[index], array
        try:
            self._look()
        except BaseException:
            self._kept[index] = before
            raise

    def _look(self) -> None:
        """Checks what stays, and places it."""
        instance = self.instance
        for i, array in enumerate(self._kept):
            if array is not None:
                self._check(i, array, stays=True)
        instance._place(self._context, ((i, a) for i, a in enumerate(self._kept) if a is not None))
        everything = [*self._kept, *([None] * len(instance._outputs))]
        self._template = [everything[i] for i in instance._results]
        self._fresh_results = [(r, i - self._count) for r, i in enumerate(instance._results) if i >= self._count]
        self._given_results = [
            (r, self._given.index(i)) for r, i in enumerate(instance._results) if everything[i] is None and i < self._count
        ]

    def _check(self, i: int, array: Any, *, stays: bool = False) -> None:
        """That an input is what it must be, and lies as kernels read it where it must not be copied."""
        instance = self.instance
        name, dtype, shape = instance._inputs[i]
        if not isinstance(array, _ARRAY) or array.dtype != dtype or array.shape != shape:
            raise instance._mismatch("input", name, array)
        flags = array.flags
        if ((stays or i in instance._updated) and not flags.c_contiguous) or (i in instance._updated and not flags.writeable):
            raise instance._mismatch("input", name, array)

    def __call__(self, *given: Array) -> list[Array]:
        """The outputs for the inputs that were None, in order; those that update an input are that input."""
        instance, context = self.instance, self._context
        if len(given) != len(self._given):
            names = ", ".join(instance._inputs[i][0] for i in self._given)
            raise RuntimeFault(f"run: there must be {len(self._given)} inputs ({names}), got {len(given)}", code="run-inputs")
        with self._lock:
            placed: list[Array] = []
            for i, array in zip(self._given, given, strict=True):
                self._check(i, array)
                placed.append(array if array.flags.c_contiguous else np.ascontiguousarray(array))
            fresh = instance._fresh()
            instance._place(context, [*zip(self._given, placed, strict=True), *enumerate(fresh, self._count)])
            instance._execute(context, [] if instance._simple else self._arrays(placed, fresh))
        results: list[Any] = self._template.copy()
        for r, o in self._fresh_results:
            results[r] = fresh[o]
        for r, i in self._given_results:
            results[r] = given[i]
        return results

    def _arrays(self, placed: Sequence[Array], fresh: Sequence[Array]) -> list[Array]:
        """Inputs and outputs in order, for host steps."""
        arrays = [*self._kept, *fresh]
        for i, array in zip(self._given, placed, strict=True):
            arrays[i] = array
        return arrays


def spans_of(stamps: Array, start: int, rate: float) -> list[tuple[int, float, float]]:
    """(thread, start, end) in microseconds of the threads that took part in a step.   stamps: [threads, 2]; one that did not has no end."""
    return [(thread, (int(a) - start) / rate, (int(b) - start) / rate) for thread, (a, b) in enumerate(stamps) if b]


def _signed(value: int) -> int:
    """The value as a signed word: args may be given as unsigned bit patterns."""
    return int(struct.unpack("<q", struct.pack("<Q", value & 0xFFFFFFFFFFFFFFFF))[0])


def _flags(steps: Sequence[Step | HostStep]) -> list[int]:
    """For the table: a step waits for those before it unless it may overlap, or all since the last barrier ran on thread 0 as it will."""
    flags, only_serial, spared = [], True, False  # spared: a barrier was left out since the last one
    for step in steps:
        if isinstance(step, HostStep):  # a run ends here, and the next one starts afresh
            flags.append(0)
            only_serial, spared = True, False
            continue
        serial = step.serial or (step.chunks <= 1 and step.barrier)
        # a step that may overlap relies on the barriers before it, so the first one on other threads makes up for those left out
        wait = (step.barrier or spared) and not (only_serial and serial)
        spared = not wait and (spared or step.barrier)
        only_serial = serial if wait else only_serial and serial
        flags.append((BARRIER if wait else 0) | (SERIAL if serial else 0))
    return flags


def _segments(program: Program) -> list[tuple[int, int] | int]:
    """The native runs (first, last) and, between them, the indices of host steps."""
    segments: list[tuple[int, int] | int] = []
    first = 0
    for i, step in enumerate(program.steps):
        if isinstance(step, HostStep):
            if i > first:
                segments.append((first, i))
            segments.append(i)
            first = i + 1
    if first < len(program.steps) or not segments:
        segments.append((first, len(program.steps)))
    return segments


def measure(run: Callable[[], object], seconds: float = 0.2) -> float:
    """Median seconds of one call, from as many as fit in the time (at least three)."""
    times: list[float] = []
    end = time.perf_counter() + seconds
    while len(times) < 3 or time.perf_counter() < end:
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    return sorted(times)[len(times) // 2]
