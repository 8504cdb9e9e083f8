"""Program: the value between compile time and run time.

In: what `compiler.assemble` writes, or a file.  Out: what `executor.Instance` runs.  `str(program)` is one line a step;
`dump` and `load` are the file form: a JSON header and aligned blobs, every part under a checksum, no code in the format.
"""

from __future__ import annotations

import json
import struct
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from jumar.base import Array, DType, RuntimeFault, TensorType, parse_type
from jumar.runtime.buffer import ALIGN, aligned, allocate

_MAGIC = b"JUMARPR3"
_HEAD = struct.Struct("<8sQI")  # magic, length of the JSON, its crc32


@dataclass(frozen=True, slots=True)
class Ref:
    """A place in memory.   space: `arena`, `constant`, `input:i`, `output:j`, `scratch` (each thread's own), or `fault` (one word of the run)."""

    space: str
    offset: int = 0

    def __str__(self) -> str:
        return f"{self.space}+{self.offset}" if self.offset else self.space


@dataclass(frozen=True, slots=True)
class KernelRef:
    """The address of a kernel, for one that calls another."""

    symbol: str

    def __str__(self) -> str:
        return f"&{self.symbol}"


Arg = int | Ref | KernelRef


@dataclass(frozen=True, slots=True)
class Port:
    """An input or output of a Program."""

    name: str
    type: TensorType

    def __str__(self) -> str:
        return f"{self.name}: {self.type}"


@dataclass(frozen=True, slots=True)
class Step:
    """One kernel over its chunks.

    args: one for each parameter of the kernel.  chunks: how many calls, shared out to the threads.  serial: all on thread 0,
    in order.  barrier: wait until the steps before are done; without it the step may overlap with them, back to the last barrier.
    flops, nbytes: what it does, for reports.  fault: what must hold; where it does not, the kernel stores `fault_number` of its step in the
    run's fault word (an argument `Ref("fault")`), and the run ends with an error.
    """

    kernel: str
    args: tuple[Arg, ...]
    chunks: int = 1
    name: str = ""
    loc: str = ""
    flops: int = 0
    nbytes: int = 0
    serial: bool = False
    barrier: bool = True
    fault: str = ""

    def __str__(self) -> str:
        marks = (" serial" if self.serial else "") + ("" if self.barrier else " overlaps")
        return f"{self.kernel} x{self.chunks}{marks} ({', '.join(map(str, self.args))})  # {self.name} {self.loc}".rstrip(" #")


@dataclass(frozen=True, slots=True)
class View:
    """An array in memory: what a host step reads or writes."""

    ref: Ref
    type: TensorType

    def __str__(self) -> str:
        return f"{self.ref}: {self.type}"


@dataclass(frozen=True, slots=True)
class HostStep:
    """A step in Python: the function that `host(op)` names, on views."""

    op: str
    inputs: tuple[View, ...]
    outputs: tuple[View, ...]
    name: str = ""
    loc: str = ""

    def __str__(self) -> str:
        inputs, outputs = (", ".join(map(str, side)) for side in (self.inputs, self.outputs))
        return f"host {self.op} ({inputs}) -> ({outputs})  # {self.name} {self.loc}".rstrip(" #")


def fault_number(index: int) -> int:
    """What a kernel of step `index` stores in the fault word; 0 stands for no fault."""
    return index + 1


def _nothing() -> Array:
    return allocate(0)


@dataclass(frozen=True)
class Program:
    """Steps, their code, their constants, and how much memory they need.

    constants: bytes, best from `allocate` so that they are used in place.  scratch_nbytes: for each thread.
    target: the instruction set that the code needs (`Target.instruction_set`).
    updates: pairs (output, input): that output has no memory of its own, it is written into the input's.
    """

    name: str
    inputs: tuple[Port, ...]
    outputs: tuple[Port, ...]
    steps: tuple[Step | HostStep, ...]
    kernels: Mapping[str, bytes] = field(default_factory=dict)
    constants: Array = field(default_factory=_nothing, compare=False, repr=False)
    arena_nbytes: int = 0
    scratch_nbytes: int = 0
    target: str = ""
    updates: tuple[tuple[int, int], ...] = ()

    def __str__(self) -> str:
        head = f"program {self.name} ({', '.join(map(str, self.inputs))}) -> ({', '.join(map(str, self.outputs))})"
        size = sum(map(len, self.kernels.values()))
        memory = f"constants {self.constants.nbytes} B, arena {self.arena_nbytes} B, scratch {self.scratch_nbytes} B"
        facts = f"  # {len(self.kernels)} kernels {size} B, {memory}"
        updates = [f"  # in place: {', '.join(f'output {o} is input {i}' for o, i in self.updates)}"] if self.updates else []
        return "\n".join([head, facts, *updates, *(f"  {i}: {step}" for i, step in enumerate(self.steps))])

    @property
    def host_steps(self) -> tuple[HostStep, ...]:
        """The steps that need Python."""
        return tuple(s for s in self.steps if isinstance(s, HostStep))


def bits(value: float | int | bool, dtype: DType) -> int:
    """The word of `args` that a kernel's `number` parameter reads this value from.

    >>> from jumar.base import f32
    >>> hex(bits(1.0, f32))
    '0x3f800000'
    """
    return int.from_bytes(np.array(value, dtype.numpy).tobytes(), "little")


def check(program: Program) -> Program:
    """The program, after a look at every reference: it must lie inside its space, and name a kernel that is there."""
    sizes = {"arena": program.arena_nbytes, "constant": program.constants.nbytes, "scratch": program.scratch_nbytes, "fault": 8}
    sizes |= {f"input:{i}": port.type.nbytes for i, port in enumerate(program.inputs)}
    replaced = dict(program.updates)
    sizes |= {f"output:{i}": port.type.nbytes for i, port in enumerate(program.outputs) if i not in replaced}
    for o, i in program.updates:
        there = 0 <= o < len(program.outputs) and 0 <= i < len(program.inputs)
        if not there or program.outputs[o].type != program.inputs[i].type:
            raise RuntimeFault(
                f"program {program.name}: an update must name an output and an input of its type, got {(o, i)}", code="program-damaged"
            )

    def known(ref: Ref, nbytes: int, step: Step | HostStep) -> None:
        if ref.space not in sizes or not 0 <= ref.offset <= sizes[ref.space] - nbytes:
            where = f"{sizes[ref.space]} bytes" if ref.space in sizes else f"one of {', '.join(sizes)}"
            raise RuntimeFault(f"program {program.name}: {step.name or step}: place must lie in {where}, got {ref}", code="program-damaged")

    for step in program.steps:
        match step:
            case Step():
                if step.chunks < 0:
                    raise RuntimeFault(
                        f"program {program.name}: {step.name}: chunks must be >= 0, got {step.chunks}", code="program-damaged"
                    )
                for symbol in (step.kernel, *(a.symbol for a in step.args if isinstance(a, KernelRef))):
                    if symbol not in program.kernels:
                        raise RuntimeFault(f"program {program.name}: kernel must be one of its own, got {symbol}", code="program-damaged")
                for arg in step.args:
                    if isinstance(arg, Ref):
                        known(arg, 0, step)
            case HostStep():
                for v in (*step.inputs, *step.outputs):
                    known(v.ref, v.type.nbytes, step)
    return program


# ---------------------------------------------------------------------- file form
def dump(program: Program) -> bytes:
    """The program as bytes."""
    return b"".join(pieces(program))


def pieces(program: Program) -> list[bytes | memoryview]:
    """The program as bytes in pieces, so that a hundred megabytes of constants are written without being copied."""
    names = list(program.kernels)
    blobs: list[bytes | memoryview] = [program.constants.data, *(program.kernels[n] for n in names)]
    places, at = [], 0
    for blob in blobs:
        places.append([at, len(blob), zlib.crc32(blob)])
        at = (at + len(blob) + ALIGN - 1) // ALIGN * ALIGN
    header = json.dumps(
        {
            "name": program.name,
            "target": program.target,
            "inputs": [[p.name, str(p.type)] for p in program.inputs],
            "outputs": [[p.name, str(p.type)] for p in program.outputs],
            "steps": [_step_record(s) for s in program.steps],
            "kernels": names,
            "blobs": places,
            "arena": program.arena_nbytes,
            "scratch": program.scratch_nbytes,
            "updates": program.updates,
        },
        separators=(",", ":"),
    ).encode()
    parts: list[bytes | memoryview] = [_HEAD.pack(_MAGIC, len(header), zlib.crc32(header)), header]
    size = _HEAD.size + len(header)
    parts.append(b"\0" * (-size % ALIGN))
    for blob in blobs:
        parts += (blob, b"\0" * (-len(blob) % ALIGN))
    return parts


def load(raw: bytes | memoryview, *, verify: bool = True) -> Program:
    """The program that `dump` wrote; anything damaged is a RuntimeFault.   verify: look at the blobs' checksums, too.

    Constants stay where they are in `raw` if they are aligned there.
    """
    try:
        magic, length, crc = _HEAD.unpack_from(raw)
        header = bytes(raw[_HEAD.size : _HEAD.size + length])
        if magic != _MAGIC or len(header) != length or zlib.crc32(header) != crc:
            raise _damaged("header")
        record = json.loads(header)
        base = (_HEAD.size + length + ALIGN - 1) // ALIGN * ALIGN
        blobs = []
        for at, nbytes, check_sum in record["blobs"]:
            blob = memoryview(raw)[base + at : base + at + nbytes]
            if len(blob) != nbytes or (verify and zlib.crc32(blob) != check_sum):
                raise _damaged("part")
            blobs.append(blob)
        constants = aligned(np.frombuffer(blobs[0], np.uint8))
        program = Program(
            name=record["name"],
            target=record["target"],
            inputs=tuple(Port(n, parse_type(t)) for n, t in record["inputs"]),
            outputs=tuple(Port(n, parse_type(t)) for n, t in record["outputs"]),
            steps=tuple(map(_step_of, record["steps"])),
            kernels={n: bytes(b) for n, b in zip(record["kernels"], blobs[1:], strict=True)},
            constants=constants,
            arena_nbytes=record["arena"],
            scratch_nbytes=record["scratch"],
            updates=tuple((int(o), int(i)) for o, i in record["updates"]),
        )
    except (struct.error, ValueError, KeyError, TypeError, IndexError) as error:
        raise _damaged("structure") from error
    return check(program)


def save_program(program: Program, path: str | Path) -> None:
    """Writes the program to a file."""
    Path(path).write_bytes(dump(program))


def load_program(path: str | Path) -> Program:
    """The program in a file."""
    return load(Path(path).read_bytes())


def _damaged(what: str) -> RuntimeFault:
    return RuntimeFault(f"program: file must be whole, and its {what} is damaged", hint="write it again", code="program-damaged")


def _step_record(step: Step | HostStep) -> list[Any]:
    match step:
        case Step():
            args = [_arg_record(a) for a in step.args]
            return ["k", step.kernel, args, step.chunks, step.name, step.loc, step.flops, step.nbytes, int(step.serial), int(step.barrier),
                    step.fault]  # fmt: skip
        case HostStep():
            views = [[[v.ref.space, v.ref.offset, str(v.type)] for v in side] for side in (step.inputs, step.outputs)]
            return ["h", step.op, *views, step.name, step.loc]


def _arg_record(arg: Arg) -> int | list[Any]:
    match arg:
        case Ref(space, offset):
            return [space, offset]
        case KernelRef(symbol):
            return [symbol]
        case _:
            return int(arg)


def _step_of(record: list[Any]) -> Step | HostStep:
    if record[0] == "h":
        _, op, inputs, outputs, name, loc = record
        sides = [tuple(View(Ref(str(s), int(o)), parse_type(t)) for s, o, t in side) for side in (inputs, outputs)]
        return HostStep(op, sides[0], sides[1], name, loc)
    _, kernel, args, chunks, name, loc, flops, nbytes, serial, barrier, fault = record
    return Step(kernel, tuple(map(_arg_of, args)), int(chunks), name, loc, int(flops), int(nbytes), bool(serial), bool(barrier), str(fault))


def _arg_of(record: int | list[Any]) -> Arg:
    if isinstance(record, int):
        return record
    return KernelRef(str(record[0])) if len(record) == 1 else Ref(str(record[0]), int(record[1]))
