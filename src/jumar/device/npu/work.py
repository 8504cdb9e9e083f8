"""What a kernel has to do: a `Task` and a `Chip` to the bytes, instructions, tiles and cores of one launch.

In: a task (task.py) and the chip that runs it.  Out: `Work`, counted from shapes alone; time.py turns counts into microseconds.
Nothing here is fitted and nothing was measured: the cuts over cores follow the rules that CANN's tiling shows in profiles.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from jumar.device.npu import cube, kinds, vector
from jumar.device.npu.chip import Chip
from jumar.device.npu.counts import Work, cycles_of, lane_nbytes, largest_size, nbytes_of
from jumar.device.npu.kinds import Kind, kind_of
from jumar.device.npu.task import AI_CPU, COMMUNICATION, CUBE, DVPP, HOST, MIX_CUBE, MIX_VECTOR, VECTOR, Operand, Task


def work(task: Task, chip: Chip) -> Work:
    """The counts of a task on a chip.   A kind that is not known is taken as what its name or its shapes look like."""
    kind = kind_of(task.kind, str(task.attrs.get("op", "")))
    if any(0 in o.shape for o in (*task.inputs, *task.outputs)):
        # a tensor without elements is as good as absent
        inputs, outputs = (tuple(Operand((), None) if 0 in o.shape else o for o in side) for side in (task.inputs, task.outputs))
        task = replace(task, inputs=inputs, outputs=outputs)
    if not kind.family:
        kind = replace(kind, family=_family_by_shapes(task))
    core = task.core or _core(kind, task)
    if core in (AI_CPU, HOST, DVPP):
        return _slow(task, kind, core, chip)
    if "cache" in kind.name.lower():
        task = _without_caches(task)
    found = _COUNT.get(kind.family, vector.elementwise)(task, kind, chip)
    if core == COMMUNICATION:
        return replace(found, core=core)
    if kind.family in _FLAT and _is_flat(task):
        found = replace(found, flat=1.0)
    if _is_function(kind):
        found = replace(found, function_cycles=found.vector_cycles)
    if task.fused:
        found = _with_fused(found, task, chip)
    if core and found.core == VECTOR and core == MIX_VECTOR:
        found = replace(found, core=MIX_VECTOR)
    return found


# ---- what runs it


def _core(kind: Kind, task: Task) -> str:
    """The AI CPU for what CANN has no kernel of: some kinds always, some for 64-bit integers, all for doubles and complex numbers."""
    if kind.name in kinds.AI_CPU_ALWAYS:
        return AI_CPU
    first = next((o.dtype for o in task.inputs if o.dtype and o.size), None)
    if first is None:
        return ""
    if first.name in ("f64", "c64", "c128") and kind.family not in (kinds.COPY, kinds.FILL):
        return AI_CPU
    return AI_CPU if first.name in ("i64", "u64") and kind.name in kinds.AI_CPU_I64 else ""


def _family_by_shapes(task: Task) -> str:
    """A kind without a name we know: far fewer elements out than in reduce, none in fill, else it works element by element."""
    size_in = max((o.size for o in task.inputs), default=0)
    size_out = sum(o.size for o in task.outputs)
    if not size_in:
        return kinds.FILL
    return kinds.REDUCE if size_out * 8 <= size_in else kinds.ELEMENTWISE


def _without_caches(task: Task) -> Task:
    """The task without tensors that come in and go out, far larger than the rest: a cache of which a few rows are written in place."""
    small = min((o.nbytes for o in task.inputs if len(o.shape) >= 2 and o.nbytes), default=0)
    shapes = {o.shape for o in task.outputs}
    caches = {o.shape for o in task.inputs if o.shape in shapes and o.nbytes > 16 * small}
    inputs, outputs = (tuple(o for o in side if o.shape not in caches) for side in (task.inputs, task.outputs))
    return replace(task, inputs=inputs, outputs=outputs or inputs[:1]) if caches and inputs else task


def _is_flat(task: Task) -> bool:
    """Long vectors: parameters, gradients and moments as optimisers see them, not what the kernel before has just written."""
    largest_one = max((*task.inputs, *task.outputs), key=lambda o: o.size, default=None)
    return largest_one is not None and len(largest_one.shape) == 1 and largest_one.size >= 1 << 17


def _slow(task: Task, kind: Kind, core: str, chip: Chip) -> Work:
    """A kernel that no AI core runs: its elements, one by one on a few cores."""
    read, written = nbytes_of(task.inputs), nbytes_of(task.outputs)
    return Work(
        kind,
        core,
        1,
        max(1, chip.ai_cpus),
        read,
        written,
        read + written,
        items=max(largest_size(task.inputs), largest_size(task.outputs)),
        stages=kind.stages,
    )


# what rides on the way out of L0C
_FREE = frozenset({"Relu", "BiasAdd", "AscendQuant", "AscendDequant", "AscendRequant", "LeakyRelu"})


def _with_fused(found: Work, task: Task, chip: Chip) -> Work:
    """Kinds that were fused in work on what is already in the buffer: instructions, no bytes of their own."""
    size = max(1, largest_size(task.outputs))
    on_cube = found.core in (CUBE, MIX_CUBE)
    more = [kind for kind in map(kind_of, task.fused) if not (on_cube and kind.name in _FREE)]
    ops, functions = sum(kind.ops for kind in more), sum(kind.ops for kind in more if _is_function(kind))
    if not ops:
        return found
    lane = lane_nbytes(task.outputs)
    per_core = found.blocks * (2 if on_cube and chip.split else 1)
    return replace(
        found, vector_cycles=found.vector_cycles + cycles_of(size / per_core, ops, lane, chip), flops=found.flops + ops * size,
        function_cycles=found.function_cycles + cycles_of(size / per_core, functions, lane, chip),
    )  # fmt: skip


def _is_function(kind: Kind) -> bool:
    """Whether a kind is made of exponentials, divisions and roots, which older vector units compute slowly."""
    return kind.family in (kinds.SOFTMAX, kinds.GLU) or (
        kind.family == kinds.ELEMENTWISE and kind.ops >= 5 and not kind.name.startswith(_PLAIN)
    )


_PLAIN = ("Ascend", "Fake", "Hard", "Quantize")  # many instructions, but sums, products and limits


_FLAT = frozenset({kinds.ELEMENTWISE, kinds.FOREACH, kinds.OPTIMISER, kinds.REDUCE, kinds.FILL})
_COUNT: Mapping[str, Callable[[Task, Kind, Chip], Work]] = {
    kinds.ELEMENTWISE: vector.elementwise,
    kinds.FOREACH: vector.foreach,
    kinds.OPTIMISER: vector.optimiser,
    kinds.FILL: vector.fill,
    kinds.COPY: vector.copy,
    kinds.SLICE: vector.slice,
    kinds.TRANSPOSE: vector.transpose,
    kinds.TRANSDATA: vector.transdata,
    kinds.REDUCE: vector.reduce,
    kinds.NORM: vector.norm,
    kinds.SOFTMAX: vector.norm,
    kinds.ROPE: vector.rope,
    kinds.GLU: vector.glu,
    kinds.GATHER: vector.gather,
    kinds.SCATTER: vector.scatter,
    kinds.SORT: vector.sort,
    kinds.POOL: vector.pool,
    kinds.RESAMPLE: vector.resample,
    kinds.RANDOM: vector.random,
    kinds.COMMUNICATE: vector.communicate,
    kinds.META: vector.meta,
    kinds.MATMUL: cube.matmul,
    kinds.CONV: cube.conv,
    kinds.ATTENTION: cube.attention,
    kinds.RECURRENT: cube.recurrent,
}
