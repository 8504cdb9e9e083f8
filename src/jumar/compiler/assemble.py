"""Tasks to a Program: gives every argument its place, every kernel its code, every constant its bytes.

In: a `Lowering`.  Out: a `Program` and the `Plan` of its arena.  Values that are outputs stand in the output's own memory, inputs are
read where they are; equal constants are kept once; steps wait for each other only where they touch the same memory.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from jumar.base import Array, TensorType, span
from jumar.compiler.kernels import KernelMaker, Made
from jumar.compiler.lower import Block, Lowering, Work, kernels_of, places_of, touches, type_at
from jumar.compiler.passes.merge import same_bits
from jumar.compiler.plan import ALIGN, Life, Plan, plan
from jumar.device import Target
from jumar.ir import Constant, Graph, Node, Param
from jumar.kernel import Kernel
from jumar.operators import Packed, Place, Temp, TempPlace
from jumar.runtime import Arg, HostStep, KernelRef, Port, Program, Ref, Step, View, allocate, check, fault_number


@dataclass(frozen=True)
class Assembled:
    """program and the plan of its memory; owners: the node of each step, for reports."""

    program: Program
    plan: Plan
    owners: tuple[Node, ...]
    kernels: tuple[Kernel, ...]


def assemble(lowering: Lowering, target: Target, made: Mapping[int, Made] | None = None) -> Assembled:
    """The Program of a lowering.   made: its kernels, by identity; else they are made here."""
    with span("plan"):
        memory = Memory(lowering)
    if made is None:
        with KernelMaker(target) as maker:
            for work in lowering.works:
                for kernel in kernels_of(work.task) if work.task else ():
                    maker.add(kernel)
            made = maker.finish()
    with span("constants"):
        constants = Constants()
        writer = _Writer(lowering, memory, constants, {key: m.symbol for key, m in made.items()})
        steps = _with_barriers([writer.step(w, i) for i, w in enumerate(lowering.works)], [writer.touched(w) for w in lowering.works])
        used = {id(k) for w in lowering.works if w.task for k in kernels_of(w.task)}
        lowering.forget_arguments()
        blob = constants.blob()
    graph = lowering.graph
    code = {m.symbol: m for key, m in made.items() if key in used}
    program = Program(
        name=graph.name,
        inputs=tuple(Port(_label(p), p.type) for p in graph.params),
        outputs=tuple(Port(n, o.type) for n, o in zip(_output_names(graph), graph.outputs, strict=True)),
        steps=tuple(steps),
        kernels={symbol: m.code.object_bytes for symbol, m in code.items()},
        constants=blob,
        arena_nbytes=memory.plan.nbytes,
        scratch_nbytes=max((w.task.scratch_nbytes for w in lowering.works if w.task), default=0),
        target=target.instruction_set if code else "",
        updates=graph.updates,
    )
    return Assembled(check(program), memory.plan, tuple(w.node for w in lowering.works), tuple(m.kernel for m in code.values()))


def _label(node: Node) -> str:
    assert isinstance(node.op, Param), "a parameter of a graph is a Param node"
    return node.op.label


def _output_names(graph: Graph) -> Sequence[str]:
    return graph.output_names or [f"output_{i}" for i in range(len(graph.outputs))]


class Memory:
    """Where each value stands: input, output, constant, or an offset in the arena."""

    def __init__(self, lowering: Lowering) -> None:
        self.lowering = lowering
        self.inputs = {p: i for i, p in enumerate(lowering.graph.params)}
        self.outputs = {value: j for j, value in enumerate(lowering.outputs)}
        self.written_inputs = {f"input:{i}" for i in lowering.updates.values()}
        self.owner: dict[Block, Block] = {}  # whose block a value took over, by working in place
        first, last = self._touches()
        self._share(first, last)
        blocks = [b for b in first if self.block(b) is b]
        self.plan = plan([Life(_nbytes(b), first[b], last[b], _name(b)) for b in blocks])
        self.offsets = dict(zip(blocks, self.plan.offsets, strict=True))

    def block(self, of: Block) -> Block:
        """The block in which a value stands."""
        while of in self.owner:
            of = self.owner[of]
        return of

    def in_arena(self, block: Block) -> bool:
        """Whether a block is memory of the arena."""
        return isinstance(block, Temp) or (block not in self.outputs and not isinstance(block[0].op, Param | Constant))

    def _touches(self) -> tuple[dict[Block, int], dict[Block, int]]:
        """The first and last step that touches each block of the arena."""
        first: dict[Block, int] = {}
        last: dict[Block, int] = {}
        for at, work in enumerate(self.lowering.works):
            for block, _, _ in touches(self.lowering, work):
                if self.in_arena(block):
                    first.setdefault(block, at)
                    last[block] = at
        return first, last

    def _share(self, first: dict[Block, int], last: dict[Block, int]) -> None:
        """Lets tasks write over what they are the last to read, where they say that they can."""
        for at, work in enumerate(self.lowering.works):
            if work.task is None or not work.task.inplace:
                continue
            touched = touches(self.lowering, work)
            for written_arg, read_arg in work.task.inplace:
                written = next((t for t, arg in zip(touched, _args(work), strict=True) if arg == written_arg), None)
                read = next((t for t, arg in zip(touched, _args(work), strict=True) if arg == read_arg), None)
                if written is None or read is None or written[1] or read[1]:
                    continue
                target, source = self.block(written[0]), self.block(read[0])
                if target == source or not self.in_arena(target) or not self.in_arena(source) or first.get(target) != at:
                    continue
                if last[source] != at or _nbytes(target) != _nbytes(source) or sum(self.block(t[0]) == source for t in touched) != 1:
                    continue
                self.owner[target] = source
                last[source] = last[target]
                break

    def ref(self, block: Block, nbytes_offset: int) -> Ref | None:
        """The place of a block; None for a constant."""
        if not isinstance(block, Temp):
            if isinstance(block[0].op, Constant):
                return None
            if block[0] in self.inputs:
                return Ref(f"input:{self.inputs[block[0]]}", nbytes_offset)
            if block in self.lowering.updates:
                return Ref(f"input:{self.lowering.updates[block]}", nbytes_offset)
            if block in self.outputs:
                return Ref(f"output:{self.outputs[block]}", nbytes_offset)
        return Ref("arena", self.offsets[self.block(block)] + nbytes_offset)


def _nbytes(block: Block) -> int:
    return block.nbytes if isinstance(block, Temp) else type_at(block).nbytes


def _name(block: Block) -> str:
    return block.label if isinstance(block, Temp) else block[0].op.name


def _args(work: Work) -> list[int]:
    assert work.task is not None, "asked about tasks only"
    return [at for at, _ in places_of(work.task)]


class Constants:
    """The bytes of all constants, equal ones once."""

    def __init__(self) -> None:
        self.size = 0
        self.pieces: list[tuple[int, Array]] = []
        self.by_identity: dict[int, int] = {}
        self.by_sample: dict[Hashable, list[tuple[int, Array]]] = {}

    def offset(self, array: Array) -> int:
        """Where the bytes of an array stand."""
        if id(array) in self.by_identity:
            return self.by_identity[id(array)]
        flat = np.ascontiguousarray(array)
        raw = flat.reshape(-1).view(np.uint8)
        key = (raw.nbytes, raw[:: max(1, raw.nbytes // 512)].tobytes())
        for at, other in self.by_sample.setdefault(key, []):
            if same_bits(raw, other):
                self.by_identity[id(array)] = at
                self.pieces.append((-1, array))  # held, so that its id stays its own
                return at
        at = self.size
        self.size += -(-raw.nbytes // ALIGN) * ALIGN
        self.pieces += [(at, raw), (-1, array)]
        self.by_sample[key].append((at, raw))
        self.by_identity[id(array)] = at
        return at

    def blob(self) -> Array:
        """All of them, aligned.   The last thing that is asked: each array is let go when it is written, so that weights are not there twice."""
        blob = allocate(self.size)
        self.by_identity.clear()
        self.by_sample.clear()
        pieces, self.pieces = self.pieces[::-1], []
        while pieces:
            at, raw = pieces.pop()
            if at >= 0:
                blob[at : at + raw.nbytes] = raw
            del raw
        return blob


class _Writer:
    """Works to steps."""

    def __init__(self, lowering: Lowering, memory: Memory, constants: Constants, symbols: dict[int, str]) -> None:
        self.lowering, self.memory, self.constants, self.symbols = lowering, memory, constants, symbols

    def ref(self, block: Block, offset: int) -> Ref:
        found = self.memory.ref(block, offset)
        if found is not None:
            return found
        assert not isinstance(block, Temp) and block[0].array is not None, "what has no place is a constant"
        return Ref("constant", self.constants.offset(block[0].array) + offset)

    def step(self, work: Work, index: int) -> Step | HostStep:
        """The step of a work.   index: its place in the Program."""
        where = str(work.node.loc)
        if work.task is None:
            return self.host_step(work, where)
        given = iter(work.task.args)
        own: dict[str, Arg] = {"scratch": Ref("scratch"), "fault": Ref("fault"), "step": fault_number(index)}
        args = [own[p.kind] if p.kind in own else self.arg(next(given)) for p in work.task.kernel.params]
        assert next(given, None) is None, f"{work.label}: there is one argument for each parameter: this is our bug"
        return Step(
            self.symbols[id(work.task.kernel)], tuple(args), work.task.chunks, work.label, where, work.task.flops, work.task.nbytes,
            fault=work.task.fault,
        )  # fmt: skip

    def arg(self, arg: object) -> Arg:
        match arg:
            case Place(node=node, nbytes_offset=offset, result=result):
                return self.ref(*self.lowering.resolve(node, result, offset))
            case TempPlace(temp=temp, nbytes_offset=offset):
                return self.ref(temp, offset)
            case Packed(array=array):
                return Ref("constant", self.constants.offset(array))
            case Kernel():
                return KernelRef(self.symbols[id(arg)])
        assert isinstance(arg, int | np.integer), f"an argument is a number or a place, got {arg!r}"
        return int(arg)

    def host_step(self, work: Work, where: str) -> HostStep:
        node = work.node
        inputs = tuple(View(self.ref(*self.lowering.resolve(i)), i.type) for i in node.inputs)
        types: tuple[TensorType, ...] = node.type if isinstance(node.type, tuple) else (node.type,)
        outputs = tuple(View(self.ref(*self.lowering.resolve(node, r)), t) for r, t in enumerate(types))
        return HostStep(str(node.op), inputs, outputs, node.op.name, where)

    def touched(self, work: Work) -> list[tuple[str, int, int, bool]]:
        """(space, first byte, end, written) of what a work touches, without what nobody writes."""
        found = []
        for block, _, written in touches(self.lowering, work):
            ref = self.memory.ref(block, 0)
            if ref is not None and (not ref.space.startswith("input") or ref.space in self.memory.written_inputs):
                found.append((ref.space, ref.offset, ref.offset + _nbytes(block), written))
        return found


def _with_barriers(steps: list[Step | HostStep], touched: list[list[tuple[str, int, int, bool]]]) -> list[Step | HostStep]:
    """Barriers only where a step touches what one since the last barrier wrote, or writes what one touched."""
    result: list[Step | HostStep] = []
    read, written = _Stretches(), _Stretches()
    for step, mine in zip(steps, touched, strict=True):
        if isinstance(step, HostStep):
            read, written = _Stretches(), _Stretches()
            result.append(step)
            continue
        clash = any(written.meets(space, first, end) or (writes and read.meets(space, first, end)) for space, first, end, writes in mine)
        if clash:
            read, written = _Stretches(), _Stretches()
        for space, first, end, writes in mine:
            (written if writes else read).add(space, first, end)
        result.append(replace(step, barrier=clash or not result))
    return result


class _Stretches:
    """Stretches of memory: sorted and apart, so that hundreds of steps without a barrier cost no more than one after another."""

    def __init__(self) -> None:
        self.firsts: dict[str, list[int]] = {}
        self.ends: dict[str, list[int]] = {}

    def meets(self, space: str, first: int, end: int) -> bool:
        """Whether a stretch shares a byte with those."""
        firsts = self.firsts.get(space)
        if not firsts or first >= end:
            return False
        at = bisect_left(firsts, end) - 1  # the last that begins before the end
        return at >= 0 and self.ends[space][at] > first

    def add(self, space: str, first: int, end: int) -> None:
        """One more; those that it meets become one with it."""
        if first >= end:
            return
        firsts, ends = self.firsts.setdefault(space, []), self.ends.setdefault(space, [])
        low, high = bisect_left(ends, first), bisect_right(firsts, end)
        if low < high:
            first, end = min(first, firsts[low]), max(end, ends[high - 1])
        firsts[low:high], ends[low:high] = [first], [end]
