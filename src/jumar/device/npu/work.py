"""What a kernel has to do: a `Task` and a `Chip` to the bytes, instructions, tiles and cores of one launch.

In: a task (task.py) and the chip that runs it.  Out: `Work`, counted from shapes alone; time.py turns counts into microseconds.
Nothing here is fitted and nothing was measured: the cuts over cores follow the rules that CANN's tiling shows in profiles.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from jumar.device.npu import kinds
from jumar.device.npu.chip import Chip
from jumar.device.npu.kinds import Kind, kind_of
from jumar.device.npu.task import AI_CPU, COMMUNICATION, CUBE, DVPP, HOST, MIX_CUBE, MIX_VECTOR, VECTOR, Operand, Task


@dataclass(frozen=True)
class Work:
    """Counts of one launch.   core: what runs it; blocks: cores it is cut over; `busiest`: figures of the core that has most to do.

    read, written: bytes moved from and to global memory by all cores, each operand once; again: bytes that are read more than once (cube tiles).
    footprint: bytes of all operands, what must sit in L2 to be found there.  loops: tiles that the busiest core works through, which overlap.
    vector_cycles, cube_cycles, shuffled, packets, items: of the busiest core; shuffled: elements that change place inside a register,
    packets: separate runs of bytes moved, items: addresses that a scalar unit computes one by one, sorted: elements that are sorted.
    stages: parts of the kernel that wait for each other; flops: operations on the pipe that counts.
    """

    kind: Kind
    core: str
    blocks: int
    cores: int
    read: float
    written: float
    footprint: float
    again: float = 0.0
    loops: float = 1.0
    vector_cycles: float = 0.0
    cube_cycles: float = 0.0
    shuffled: float = 0.0
    packets: float = 0.0
    items: float = 0.0
    sorted: float = 0.0
    stages: float = 1.0
    tiles: float = 0.0
    ragged: float = 0.0
    flops: float = 0.0


def work(task: Task, chip: Chip) -> Work:
    """The counts of a task on a chip.   A kind that is not known is taken as what its name or its shapes look like."""
    kind = kind_of(task.kind, str(task.attrs.get("op", "")))
    if not kind.family:
        kind = replace(kind, family=_family_by_shapes(task))
    core = task.core or _core(kind, task)
    if core in (AI_CPU, HOST, DVPP):
        return _slow(task, kind, core, chip)
    found = _COUNT.get(kind.family, _elementwise)(task, kind, chip)
    if core == COMMUNICATION:
        return replace(found, core=core)
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


def _slow(task: Task, kind: Kind, core: str, chip: Chip) -> Work:
    """A kernel that no AI core runs: its elements, one by one on a few cores."""
    read, written = _nbytes(task.inputs), _nbytes(task.outputs)
    return Work(
        kind, core, 1, max(1, chip.ai_cpus), read, written, read + written, items=max(_size(task.inputs), _size(task.outputs)), stages=kind.stages
    )


# ---- small counts


def _nbytes(operands: Sequence[Operand]) -> float:
    return float(sum(o.nbytes for o in operands))


def _size(operands: Sequence[Operand]) -> int:
    return max((o.size for o in operands), default=0)


def _largest(operands: Sequence[Operand]) -> Operand:
    return max(operands, key=lambda o: o.size, default=Operand((), None))


def _lane_nbytes(operands: Sequence[Operand]) -> int:
    """Bytes of an element as the vector unit computes it: bf16 in fp32, bool and int8 in fp16, as it has no instruction for them."""
    sizes = {"bf16": 4, "bool": 2, "i8": 2, "u8": 2}
    return max((sizes.get(o.dtype.name, o.dtype.nbytes) for o in operands if o.dtype and o.size), default=4)


def _casts(operands: Sequence[Operand]) -> int:
    """Instructions an element spent on types that must be converted before and after."""
    return sum(1 for o in operands if o.dtype and o.size > 1 and o.dtype.name in ("bf16", "bool", "i8", "u8"))


def _wide(operands: Sequence[Operand]) -> bool:
    """64-bit integers: the vector unit has no lanes for them, each takes several instructions."""
    return any(o.dtype and o.dtype.name in ("i64", "u64") for o in operands if o.size > 1)


def _vector_cores(chip: Chip) -> int:
    return max(1, chip.vector_cores)


def _rows(operand: Operand) -> tuple[int, int]:
    """Rows and their length, along the last axis."""
    if not operand.shape:
        return 1, 1
    inner = max(1, operand.shape[-1])
    return max(1, operand.size // inner), inner


def _shares(total: int, cores: int) -> tuple[int, int]:
    """Cores used and the largest share when `total` things are dealt out.

    >>> _shares(64, 48)
    (32, 2)
    """
    share = -(-max(1, total) // cores)
    return -(-max(1, total) // share), share


def _loops(nbytes: float, blocks: int, chip: Chip, buffers: int = 3) -> float:
    """Tiles that one core works through: its share over what its buffer holds of each operand, twice for the overlap."""
    return max(1.0, nbytes / blocks / (chip.ub_nbytes / 2 / max(1, buffers) * buffers))


def _cycles(elements: float, ops: float, lane_nbytes: int, chip: Chip) -> float:
    return elements * ops * lane_nbytes / chip.vector_nbytes


def _ints(value: Any) -> tuple[int, ...]:
    if isinstance(value, int):
        return (value,)
    return tuple(int(v) for v in value) if isinstance(value, (list, tuple)) else ()


# ---- vector kernels


def _elementwise(task: Task, kind: Kind, chip: Chip) -> Work:
    operands = (*task.inputs, *task.outputs)
    out = _largest(task.outputs) if _size(task.outputs) else _largest(operands)
    size = max(1, out.size)
    lane = _lane_nbytes(operands)
    # CANN's elementwise kernels give a core no less than 4 KB of the widest type
    per_core = 4096 // max(2, lane)
    blocks = min(_vector_cores(chip), -(-size // per_core))
    ops = kind.ops + _casts(operands) + max(0, len([o for o in task.inputs if o.size == out.size]) - 2) * 0.5
    if _wide(operands):
        ops = 2 * ops + (30 if kind.ops >= 1 and kind.name in ("Mul", "Div", "Sub", "Add") else 4)
    read, written = _nbytes(task.inputs), _nbytes(task.outputs)
    stages, packets = float(kind.stages), 0.0
    spread = [o for o in task.inputs if 1 < o.size < out.size and o.dtype]
    if spread and len(out.shape) > 1:
        # a broadcast is another template, with rows that are laid out one after the other
        stages += 1
        blocks = min(_vector_cores(chip), max(blocks, -(-size // 1024)))
        rows = size // max(1, out.shape[-1])
        packets = -(-rows // blocks) if any(o.shape and o.shape[-1] == 1 for o in spread) else 0.0
    return Work(
        kind, VECTOR, blocks, _vector_cores(chip), read, written, read + written, loops=_loops(read + written, blocks, chip),
        vector_cycles=_cycles(-(-size // blocks), ops, lane, chip), stages=stages, packets=packets, flops=kind.ops * size,
    )  # fmt: skip


def _foreach(task: Task, kind: Kind, chip: Chip) -> Work:
    """One operation over a list of tensors: the elements of all, and a little for each tensor."""
    size = sum(o.size for o in task.outputs) or sum(o.size for o in task.inputs)
    read, written = _nbytes(task.inputs), _nbytes(task.outputs)
    lane = _lane_nbytes((*task.inputs, *task.outputs))
    blocks = min(_vector_cores(chip), max(1, -(-size // (4096 // lane))))
    return Work(
        kind, VECTOR, blocks, _vector_cores(chip), read, written, read + written, loops=_loops(read + written, blocks, chip),
        vector_cycles=_cycles(size / blocks, kind.ops + _casts(task.inputs[:1]), lane, chip), stages=1 + len(task.outputs) / 8, flops=kind.ops * size,
    )  # fmt: skip


def _optimiser(task: Task, kind: Kind, chip: Chip) -> Work:
    """Weights and moments are read and written in place: what is written is the outputs, or the inputs that are as large as the weight."""
    plain = _elementwise(task, kind, chip)
    return replace(plain, stages=plain.stages + 1)


def _fill(task: Task, kind: Kind, chip: Chip) -> Work:
    written = _nbytes(task.outputs)
    size = max(1, _size(task.outputs))
    lane = _lane_nbytes(task.outputs)
    everywhere = kind.name in ("Range", "Eye", "OneHot", "LinSpace")
    blocks = _vector_cores(chip) if everywhere else min(_vector_cores(chip), -(-size // (4096 // max(2, lane))))
    return Work(
        kind, VECTOR, blocks, _vector_cores(chip), 0.0, written, written, loops=_loops(written, blocks, chip, 1),
        vector_cycles=_cycles(size / blocks, kind.ops, lane, chip), stages=kind.stages + (1 if everywhere else 0), flops=0.0,
    )  # fmt: skip


def _copy(task: Task, kind: Kind, chip: Chip) -> Work:
    moved = _nbytes(task.outputs) or _nbytes(task.inputs[:1])
    blocks = min(_vector_cores(chip), max(1, math.ceil(moved / 4096)))
    return Work(kind, VECTOR, blocks, _vector_cores(chip), moved, moved, 2 * moved, loops=_loops(2 * moved, blocks, chip, 2), stages=1.0)


def _run_nbytes(whole: Operand, part: Operand) -> float:
    """Bytes that lie together when `part` is cut from (or laid into) `whole`: the axes at the end that are whole, and the first that is not."""
    if not part.dtype or not part.size:
        return 4096.0
    if len(whole.shape) != len(part.shape):
        return float(max(1, part.shape[-1] if part.shape else 1) * part.dtype.nbytes)
    run = 1
    for a, b in zip(reversed(whole.shape), reversed(part.shape)):
        run *= b
        if a != b:
            break
    return float(max(1, run) * part.dtype.nbytes)


def _slice(task: Task, kind: Kind, chip: Chip) -> Work:
    """Kernels that move bytes from one arrangement to another without looking at them."""
    data = [o for o in task.inputs if o.dtype and o.size]
    outs = [o for o in task.outputs if o.dtype and o.size]
    source, result = _largest(data), _largest(outs)
    moved = _nbytes(outs)
    read = moved
    match kind.name:
        case "ViewCopy" | "StridedSliceAssign":
            # the destination is written in place: only the values move
            source = data[4] if len(data) > 4 else min(data, key=lambda o: o.size if o.size > 8 else 1 << 60, default=result)
            moved = read = float(source.nbytes)
            run = float(source.dtype.nbytes if source.dtype and len(source.shape) == 1 else _rows(source)[1] * (source.dtype.nbytes if source.dtype else 1))
        case "BroadcastTo" | "Tile" | "TileWithAxis" | "Expand" | "RepeatInterleave":
            read, run = float(source.nbytes), float(result.shape[-1] if result.shape else 1) * (result.dtype.nbytes if result.dtype else 1)
        case "AsStrided":
            run = float(_rows(result)[1] * (result.dtype.nbytes if result.dtype else 1))
        case "Slice" | "StridedSlice" | "Split" | "SplitV" | "Unpack" | "Crop" | "SliceLastDim":
            run = min((_run_nbytes(source, o) for o in outs), default=4096.0)
        case _:
            read = min(_nbytes(data), moved) if kind.name.startswith(("Pad", "Mirror", "Tri")) else moved
            run = min((_run_nbytes(result, o) for o in data if o.size > 16), default=4096.0)
    blocks = min(_vector_cores(chip), max(1, math.ceil(moved / 8192)))
    packets = moved / run / blocks if run < 8192 else 0.0
    return Work(
        kind, VECTOR, blocks, _vector_cores(chip), read, moved, read + moved, loops=_loops(read + moved, blocks, chip, 2), packets=packets, stages=2.0
    )


def _perm(task: Task) -> tuple[int, ...]:
    """The permutation: an attribute, or the likeliest that turns the shape in into the shape out."""
    known = _ints(task.attrs.get("perm", ()))
    if known or not task.inputs or not task.outputs:
        return known
    before, after = task.inputs[0].shape, task.outputs[0].shape
    free = list(range(len(before)))
    perm = []
    for extent in after:
        axis = next((a for a in free if before[a] == extent), None)
        if axis is None:
            return ()
        perm.append(axis)
        free.remove(axis)
    return tuple(perm)


def _transpose(task: Task, kind: Kind, chip: Chip) -> Work:
    source = task.inputs[0] if task.inputs else Operand((), None)
    moved = _nbytes(task.outputs[:1]) or float(source.nbytes)
    size = max(1, source.size)
    item = source.dtype.nbytes if source.dtype else 4
    perm = _perm(task)
    run = 1
    for place, axis in zip(reversed(range(len(perm))), reversed(perm)):
        if place != axis:
            break
        run *= source.shape[axis]
    blocks = _vector_cores(chip)
    stays = run > 1
    return Work(
        kind, VECTOR, blocks, blocks, moved, moved, 2 * moved, loops=_loops(2 * moved, blocks, chip, 2),
        shuffled=0.0 if stays else size / blocks, packets=size / run / blocks if stays and run * item < 8192 else 0.0, stages=4.0,
    )  # fmt: skip


def _transdata(task: Task, kind: Kind, chip: Chip) -> Work:
    """A change of layout: every element changes place, the fields of zeros that fill c0 included."""
    read, written = _nbytes(task.inputs[:1]), _nbytes(task.outputs[:1])
    size = max(_size(task.inputs[:1]), _size(task.outputs[:1]), 1)
    shape = max((o for o in (*task.inputs[:1], *task.outputs[:1])), key=lambda o: len(o.shape), default=Operand((1,), None)).shape
    images = shape[0] if len(shape) == 5 else 0
    cores = _vector_cores(chip)
    blocks = _shares(images, cores)[0] if images >= 16 else min(cores, max(1, size // 8192))
    return Work(
        kind, VECTOR, blocks, cores, read, written, read + written, loops=_loops(read + written, blocks, chip, 2), shuffled=size / blocks, stages=3.0
    )


def _reduce(task: Task, kind: Kind, chip: Chip) -> Work:
    source = _largest(task.inputs)
    read, written = _nbytes(task.inputs), _nbytes(task.outputs)
    size, left = max(1, source.size), max(1, _size(task.outputs))
    cores = _vector_cores(chip)
    lane = _lane_nbytes(task.inputs)
    blocks = min(cores, max(1, -(-size // 4096))) if left == 1 else _shares(max(left, size // 8192), cores)[0]
    # the axis at the end is reduced inside a register, others by adding rows
    lengthwise = size / left if task.outputs else size
    ops = kind.ops + _casts(task.inputs[:1]) + (3.0 if 1 < left and lengthwise < 64 else 0.0)
    return Work(
        kind, MIX_VECTOR if left > 1 or size > 1 else VECTOR, blocks, cores, read, written, read + written, loops=_loops(read, blocks, chip, 1),
        vector_cycles=_cycles(-(-size // blocks), ops, lane, chip), stages=kind.stages + (1.0 if blocks > 1 else 0.0), flops=float(size),
    )  # fmt: skip


def _norm(task: Task, kind: Kind, chip: Chip) -> Work:
    source = _largest(task.inputs)
    read, written = _nbytes(task.inputs), _nbytes(task.outputs)
    size = max(1, source.size)
    channels = kind.name.startswith(("BN", "Batch", "Group", "Instance", "IN", "GN"))
    rows, length = (max(1, source.shape[0] * (source.shape[1] if len(source.shape) > 1 else 1)), 0) if channels and source.shape else _rows(source)
    if length <= 4 and not channels:
        rows, length = max(1, source.shape[0] if source.shape else 1), 0
    length = length or max(1, size // rows)
    cores = _vector_cores(chip)
    blocks, share = _shares(rows, cores)
    lane = _lane_nbytes((*task.inputs, *task.outputs))
    ops = kind.ops + _casts((*task.inputs, *task.outputs))
    # a row that is not a whole number of registers wastes the rest of the last one
    padded = math.ceil(length * lane / chip.vector_nbytes) * chip.vector_nbytes / lane
    return Work(
        kind, VECTOR, blocks, cores, read, written, read + written, loops=_loops(read + written, blocks, chip, 3),
        vector_cycles=_cycles(share * padded, ops, lane, chip), items=0.0, packets=float(share * kind.stages), stages=float(kind.stages), ragged=_ragged(length, source),
        flops=kind.ops * size,
    )  # fmt: skip


def _ragged(length: int, operand: Operand) -> float:
    """Whether a row is not a whole number of 32-byte blocks: it is then moved and computed with masks."""
    return float((length * (operand.dtype.nbytes if operand.dtype else 4)) % 32 != 0)


def _softmax(task: Task, kind: Kind, chip: Chip) -> Work:
    return _norm(task, kind, chip)


def _rope(task: Task, kind: Kind, chip: Chip) -> Work:
    source = _largest(task.inputs)
    plain = _norm(task, kind, chip)
    rows, _ = _rows(source)
    return replace(plain, packets=2.0 * _shares(rows, _vector_cores(chip))[1], stages=2.0, ragged=0.0)


def _glu(task: Task, kind: Kind, chip: Chip) -> Work:
    out = _largest(task.outputs)
    plain = _elementwise(task, kind, chip)
    blocks = min(_vector_cores(chip), max(1, out.size // 4096))
    lane = _lane_nbytes((*task.inputs, *task.outputs))
    ops = kind.ops + _casts((*task.inputs, *task.outputs)) + 1
    return replace(
        plain, blocks=blocks, vector_cycles=_cycles(max(1, out.size) / blocks, ops, lane, chip), stages=2.0, packets=0.0,
        loops=_loops(plain.read + plain.written, blocks, chip),
    )  # fmt: skip


def _gather(task: Task, kind: Kind, chip: Chip) -> Work:
    """Rows fetched by their numbers: bandwidth where rows are long, the address of each where they are short."""
    data = [o for o in task.inputs if o.dtype and o.size]
    table = data[0] if data else Operand((), None)
    out = _largest(task.outputs)
    moved = _nbytes(task.outputs[:1])
    index = _nbytes([o for o in data[1:] if o.dtype and o.dtype.is_integer])
    cores = _vector_cores(chip)
    whole = kind.name in ("Index", "IndexByTensor", "GatherNd", "Gather", "EmbeddingLookup", "Embedding", "EmbeddingBag", "IndexSelect", "Take", "MoeGather")
    # rows of the table that are taken as they are: its last axis, unless every element has its own number
    row = table.shape[-1] if whole and len(table.shape) > 1 and out.shape and out.shape[-1] == table.shape[-1] else 1
    if kind.ops or kind.name.startswith("Moe"):
        row = out.shape[-1] if out.shape else 1
    fetched = max(1, out.size // max(1, row))
    if not whole and row == 1:
        row = 1
    blocks = cores
    near = min(1.0, table.nbytes / (chip.ub_nbytes or 1))
    # a table that fits the buffer of a core is looked up there
    items = fetched / blocks * (0.1 + 0.9 * near)
    return Work(
        kind, VECTOR, blocks, cores, moved + index, moved, min(float(table.nbytes), 4 * moved) + index + moved, loops=_loops(2 * moved, blocks, chip, 2),
        items=items, stages=3.0, vector_cycles=_cycles(out.size / blocks, kind.ops, _lane_nbytes(task.outputs), chip),
    )  # fmt: skip


def _scatter(task: Task, kind: Kind, chip: Chip) -> Work:
    """Rows written by their numbers, in place: the table itself is neither read nor written as a whole."""
    data = [o for o in task.inputs if o.dtype and o.size]
    numbers = [o for o in data if o.dtype and o.dtype.is_integer and o.size > 2]
    values = [o for o in data[1:] if o not in numbers] if kind.name != "EmbeddingDenseGrad" else data[:1]
    moved = _nbytes(values[-1:]) if values else _nbytes(data[-1:])
    count = max((o.size for o in numbers), default=1)
    if kind.name == "EmbeddingDenseGrad":
        numbers, moved = data[1:2], float(data[0].nbytes) if data else 0.0
        count = max((o.size for o in numbers), default=1)
    cores = _vector_cores(chip)
    return Work(
        kind, VECTOR, cores, cores, moved + _nbytes(numbers), moved, 2 * moved, loops=_loops(2 * moved, cores, chip, 2), items=count / cores, stages=3.0
    )


def _sort(task: Task, kind: Kind, chip: Chip) -> Work:
    source = _largest(task.inputs)
    rows, length = _rows(source)
    cores = _vector_cores(chip)
    blocks, share = _shares(rows, cores)
    read, written = _nbytes(task.inputs), _nbytes(task.outputs)
    passes = max(1.0, math.log(max(2, length) / 32, 4)) if length > 32 else 1.0
    return Work(
        kind, VECTOR, blocks, cores, read, written, read + written, loops=_loops(read, blocks, chip, 2),
        vector_cycles=_cycles(share * length, 8.0 + _casts(task.inputs), 4, chip), sorted=share * length * passes, stages=float(kind.stages), packets=float(share),
    )  # fmt: skip


def _pool(task: Task, kind: Kind, chip: Chip) -> Work:
    """Windows: each result takes every element of its window, and the rows of a window are moved one by one."""
    small, large = min(_size(task.inputs[:1]), _size(task.outputs[:1])), max(_size(task.inputs[:1]), _size(task.outputs[:1]))
    read, written = _nbytes(task.inputs), _nbytes(task.outputs)
    cores = _vector_cores(chip)
    window = math.prod(_ints(task.attrs.get("ksize", task.attrs.get("kernel_size", ())))) or 9
    mask = next((o for o in (*task.inputs, *task.outputs) if o.dtype and o.dtype.name in ("u16", "u8", "i32") and len(o.shape) >= 4), None)
    if mask is not None and len(mask.shape) >= 4:
        window = max(1, mask.shape[2])
    backward = "Grad" in kind.name
    lane = 4 if backward else _lane_nbytes(task.inputs)
    shape = task.inputs[0].shape if task.inputs else ()
    planes = shape[0] * shape[1] if len(shape) >= 4 else max(1, large // 4096)
    blocks, _ = _shares(planes, cores)
    ops = kind.ops * window + 2
    results = max(1, small) if small > 1 else large
    return Work(
        kind, VECTOR, blocks, cores, read, written, read + written, loops=_loops(read + written, blocks, chip, 3),
        vector_cycles=_cycles(results / blocks, ops, lane, chip), shuffled=results * window / 16 / blocks if backward or "Argmax" in kind.name else 0.0,
        stages=3.0, flops=float(results * window),
    )  # fmt: skip


def _resample(task: Task, kind: Kind, chip: Chip) -> Work:
    plain = _elementwise(task, kind, chip)
    out = _largest(task.outputs)
    rows, length = _rows(out)
    return replace(plain, packets=4.0 * max(1, out.size // max(1, length)) / plain.blocks, stages=3.0)


def _random(task: Task, kind: Kind, chip: Chip) -> Work:
    """Numbers drawn by a unit of its own (DSA): a rate of bytes; elsewhere a vector kernel of many instructions."""
    written = _nbytes(task.outputs)
    if kind.name.startswith("DSA"):
        bits = 8.0 if "Mask" in kind.name else 1.0
        return Work(kind, "DSA", 1, 1, 0.0, written, written, items=_size(task.outputs) * bits, stages=1.0)
    return replace(_elementwise(task, kind, chip), stages=2.0)


def _communicate(task: Task, kind: Kind, chip: Chip) -> Work:
    """A collective, alone: bytes over the links of one device.  The number of ranks is an attribute or that of one server."""
    data = max(_nbytes(task.outputs), 0.0) if "Gather" in kind.name else _nbytes(task.inputs[:1])
    if kind.name.startswith("Moe"):
        data = max((o.nbytes for o in task.outputs), default=0) if "Combine" in kind.name else _nbytes(task.inputs[:1])
    cores = _vector_cores(chip)
    core = VECTOR if kind.name.startswith("Moe") else COMMUNICATION
    return Work(kind, core, cores, cores, float(data), float(data), 2.0 * data, stages=8.0, items=0.0)


def _meta(task: Task, kind: Kind, chip: Chip) -> Work:
    return Work(kind, VECTOR, 1, 1, 0.0, 0.0, 0.0, stages=0.0)


# ---- cube kernels


@dataclass(frozen=True)
class Product:
    """One matrix product: `batch` times [m, k] by [k, n].   a, b, c: bytes an element; packet: bytes of b or a that lie together at the narrow end."""

    batch: int
    m: int
    k: int
    n: int
    a: float
    b: float
    c: float
    rate: str
    shared_b: bool = False
    packed: bool = False
    lengthwise: bool = True


@dataclass(frozen=True)
class Cut:
    """How a product is cut: tile, cores used, products of the busiest core in cycles, bytes loaded over all cores, tiles of the busiest core."""

    tile: tuple[int, int]
    blocks: int
    cycles: float
    loaded: float
    waves: int
    splits: int = 1


def _up(value: int, step: int) -> int:
    return -(-value // step) * step


@lru_cache(maxsize=8192)
def cut(product: Product, cores: int, macs: int, l0_nbytes: int, l0c_nbytes: int, ddr_rate: float, l2_rate: float) -> Cut:
    """The tile that keeps the busiest core least busy, as CANN's tiling looks for it: it fits L0C, its operands fit L0A and L0B twice.

    ddr_rate, l2_rate: bytes a cycle that one core gets from memory (all cores at work) and from L2.
    """
    m16, n16 = _up(product.m, 16), _up(product.n, 16)
    k0 = max(1, int(32 / product.a))
    k = _up(product.k, k0)
    rows = sorted({min(m16, _up(t, 16)) for t in (16, 32, 48, 64, 80, 96, 128, 160, 192, 256, 320)})
    best: tuple[float, Cut] | None = None
    for tm in rows:
        for tn in sorted({min(n16, t) for t in (16, 32, 48, 64, 80, 96, 112, 128, 160, 192, 256, 320, 512)}):
            if tm * tn * 4 > l0c_nbytes or tm * k0 * product.a * 2 > l0_nbytes or tn * k0 * product.b * 2 > l0_nbytes:
                continue
            tiles = product.batch * (-(-product.m // tm)) * (-(-product.n // tn))
            waves = -(-tiles // cores)
            blocks = -(-tiles // waves)
            cycles = waves * (tm * tn * k / macs + 64)
            loaded_core = waves * (tm * product.a + tn * product.b) * k
            unique = product.batch * (m16 * product.a + (0 if product.shared_b else n16 * product.b)) * k + (n16 * k * product.b if product.shared_b else 0)
            load = max(loaded_core / l2_rate, unique / blocks / ddr_rate)
            store = waves * tm * tn * product.c / (ddr_rate * 2)
            cost = max(cycles, load) + 0.3 * min(cycles, load) + 0.5 * store + 500 * (waves > 1)
            found = Cut((tm, tn), blocks, cycles, loaded_core * blocks, waves)
            if best is None or cost < best[0]:
                best = (cost, found)
    if best is None:
        return Cut((16, 16), 1, float(m16) * n16 * k / macs * product.batch, product.batch * (m16 * product.a + n16 * product.b) * k, 1)
    return best[1]


def _split_k(product: Product, cores: int, chosen: Cut) -> Cut:
    """Few tiles and a long k: the cores that are left share k, and add up in memory."""
    idle = cores // max(1, chosen.blocks)
    if chosen.waves > 1 or idle < 2 or product.k < 8192 or product.m < 64:
        return chosen
    return replace(chosen, blocks=chosen.blocks * idle, cycles=chosen.cycles / idle, splits=idle)


def _matrix(operand: Operand) -> tuple[int, ...]:
    """Logical shape of a matrix in FRACTAL_NZ, [..., n1, m1, m0, n0] as [..., m, n]; others as they are."""
    s = operand.shape
    return (*s[:-4], s[-3] * s[-2], s[-4] * s[-1]) if _is_nz(operand) else s


def _is_nz(operand: Operand) -> bool:
    s = operand.shape
    if "NZ" in operand.format:
        return len(s) >= 4
    return len(s) >= 4 and s[-2] == 16 and s[-1] in (16, 32) and operand.format in ("", "ND")


def _rate_of(operand: Operand, task: Task, chip: Chip) -> tuple[str, int]:
    """The cube's rate for an operand: hf32 where it is asked for, fp32 at a quarter of fp16 where the chip does not name it."""
    name = operand.dtype.name if operand.dtype else "f16"
    if name == "f32":
        name = "hf32" if task.attrs.get("hf32") or "hf32" not in chip.cube_macs else "f32"
        name = name if name in chip.cube_macs else "f32"
    name = "i8" if name in ("u8", "bool") else name
    base = chip.cube_macs.get("f16", 4096)
    fallback = {"bf16": base, "f32": base // 4, "hf32": base // 2, "i8": 2 * base, "i4": 4 * base}
    return name, chip.cube_macs.get(name) or fallback.get(name, base)


def _grouped_rows(task: Task, rows: int, groups: int) -> int:
    """Rows that a grouped product really multiplies: the group list where it is given (sums or counts), else all."""
    numbers = _ints(task.attrs.get("group_list", ()))
    if not numbers:
        return rows
    cumulative = all(a <= b for a, b in zip(numbers, numbers[1:])) and len(numbers) >= groups > 1
    return max(1, min(rows, numbers[-1] if cumulative and numbers[-1] >= max(numbers) else sum(numbers)))


def _matmul(task: Task, kind: Kind, chip: Chip) -> Work:
    data = [o for o in task.inputs if o.dtype and len(o.shape) >= 2]
    if len(data) < 2:
        return _elementwise(task, kind, chip)
    x, w = data[0], data[1]
    out = _largest(task.outputs)
    if kind.name == "Compressor" or kind.name.startswith("Mla"):
        return _chain(task, kind, chip, x, [o for o in data[1:] if o.size >= 4096])
    a, b = _matrix(x), _matrix(w)
    o = _matrix(out)
    grouped = "Group" in kind.name and len(b) >= 3
    if grouped:
        rows = _grouped_rows(task, math.prod(a[:-1]), b[0])
        k = a[-1]
        n = b[-1] if b[-2] == k else b[-2]
        touched = min(b[0], max(1, rows))
        product = Product(touched, max(1, -(-rows // touched)), k, n, x.dtype.nbytes if x.dtype else 2, _weight_nbytes(w), _c_nbytes(out), "")
        read = rows * k * product.a + touched * k * n * product.b
        return _cube(task, kind, chip, product, x, read, rows * n * product.c)
    m, n = (o[-2], o[-1]) if len(o) >= 2 else (1, o[-1] if o else 1)
    batch = max(1, math.prod(o[:-2])) if len(o) > 2 else 1
    k = max(1, x.size // max(1, batch * m)) if not _is_nz(x) else (a[-1] if a[-2] == m else a[-2])
    if task.attrs.get("transpose_a") and len(a) >= 2:
        k = a[-2]
    elif not _is_nz(x) and len(a) >= 2 and a[-1] != k and a[-2] != k:
        k = a[-1]
    shared = len(b) <= 2 and batch > 1
    if shared:
        batch, m = 1, m * batch
    packed = _is_nz(w)
    # the axis of an operand that lies together in memory decides how well it loads
    ends = [s[-1] for s, q in ((a, x), (b, w)) if not _is_nz(q)]
    product = Product(batch, m, k, n, x.dtype.nbytes if x.dtype else 2, _weight_nbytes(w), _c_nbytes(out), "", packed=packed, lengthwise=b[-1] == k)
    return _cube(task, kind, chip, product, x, _nbytes(task.inputs), _nbytes(task.outputs), ends=ends)


def _weight_nbytes(w: Operand) -> float:
    return w.dtype.bits / 8 if w.dtype else 2.0


def _c_nbytes(out: Operand) -> float:
    return float(out.dtype.nbytes) if out.dtype else 2.0


def _cube(
    task: Task, kind: Kind, chip: Chip, product: Product, x: Operand, read: float, written: float, ends: Sequence[int] = (), again: float = 1.0
) -> Work:
    name, macs = _rate_of(x, task, chip)
    product = replace(product, rate=name)
    cores = max(1, chip.cube_cores)
    l2_rate = chip.l2_bytes_per_s / cores / chip.clock_hz
    ddr_rate = chip.memory_bytes_per_s / cores / chip.clock_hz
    chosen = cut(product, cores, macs, chip.l0a_nbytes, chip.l0c_nbytes, ddr_rate, l2_rate)
    chosen = _split_k(product, cores, chosen)
    item = product.a
    # rows shorter than a burst, or that do not start on 32 or 512 bytes, load slowly
    ragged = 0.0
    for end in ends:
        nbytes = end * item
        ragged = max(ragged, 2.0 if nbytes % 32 else 1.0 if nbytes % 256 else 0.3 if nbytes % 512 else 0.0)
    return Work(
        kind, CUBE if chosen.splits == 1 else MIX_CUBE, chosen.blocks, cores, read, written * (1 if chosen.splits == 1 else 2), read + written,
        again=max(0.0, chosen.loaded * again - read), loops=max(1.0, chosen.waves * product.k * item / 1024),
        cube_cycles=chosen.cycles, tiles=float(chosen.waves), stages=1.0 + (1.0 if chosen.splits > 1 else 0.0), ragged=ragged,
        flops=2.0 * product.batch * product.m * product.n * product.k,
    )  # fmt: skip


def _chain(task: Task, kind: Kind, chip: Chip, x: Operand, weights: Sequence[Operand]) -> Work:
    """Several products of one activation in one kernel, with vector work between (latent attention's first part, a compressor)."""
    rows = max(1, x.size // max(1, x.shape[-1]))
    total: Work | None = None
    for w in weights:
        m = _matrix(w)
        if len(m) < 2:
            continue
        k, n = (m[-2], m[-1])
        one = _cube(task, kind, chip, Product(1, rows, k, n, x.dtype.nbytes if x.dtype else 2, _weight_nbytes(w), 4.0, ""), x, float(w.nbytes), rows * n * 4.0)
        total = one if total is None else replace(
            total, read=total.read + one.read, written=total.written + one.written, again=total.again + one.again, footprint=total.footprint + one.footprint,
            cube_cycles=total.cube_cycles + one.cube_cycles, tiles=total.tiles + one.tiles, flops=total.flops + one.flops, blocks=max(total.blocks, one.blocks),
        )  # fmt: skip
    if total is None:
        return _elementwise(task, kind, chip)
    return replace(total, core=MIX_CUBE, stages=8.0 * len(weights))


def _conv_extent(shape: Sequence[int], layout: str) -> tuple[int, int, int]:
    """Images, channels and places of a feature map, NC1HWC0, NDC1HWC0, NHWC or NCHW."""
    s = tuple(shape)
    if layout.startswith("NDC1HWC0") or (len(s) == 6 and s[-1] in (8, 16, 32)):
        return s[0], s[2] * s[5], s[1] * s[3] * s[4]
    if layout.startswith("NC1HWC0") or (len(s) == 5 and s[-1] in (8, 16, 32) and not layout.startswith("NC")):
        return s[0], s[1] * s[4], s[2] * s[3]
    if layout.startswith(("NHWC", "NDHWC")):
        return s[0], s[-1], math.prod(s[1:-1])
    return (s[0], s[1], math.prod(s[2:])) if len(s) >= 3 else (s[0] if s else 1, s[-1] if s else 1, 1)


def _filter_extent(operand: Operand) -> tuple[int, int, int]:
    """Results, channels a group and places of the window of a filter, FRACTAL_Z ([c1*kh*kw, n1, n0, c0]) or the plain layouts."""
    s, layout = operand.shape, operand.format
    if layout.startswith("FRACTAL_Z") or (len(s) == 4 and s[2] == 16 and s[3] in (8, 16, 32)):
        return s[1] * s[2], s[0] * s[3], 1
    if layout.startswith("HWCN"):
        return s[3], s[2], math.prod(s[:2])
    if layout.startswith("NHWC"):
        return s[0], s[-1], math.prod(s[1:-1])
    return (s[0], s[1], math.prod(s[2:])) if len(s) >= 3 else (s[0] if s else 1, s[-1] if s else 1, 1)


def _conv(task: Task, kind: Kind, chip: Chip) -> Work:
    """A convolution as the product that the cube sees: places by window times channels."""
    maps = [o for o in (*task.inputs, *task.outputs) if o.dtype and o.size and len(o.shape) >= 3 and not o.dtype.is_integer or (o.dtype and o.dtype.name in ("i8", "u8"))]
    if len(maps) < 2:
        return _elementwise(task, kind, chip)
    name = kind.name
    feature = [o for o in maps if not _is_filter(o)]
    filters = [o for o in maps if _is_filter(o)]
    if "BackpropFilter" in name:
        x, dy, w = maps[0], maps[1], maps[-1]
    elif "BackpropInput" in name:
        w, dy, x = (filters or maps)[0], (feature or maps)[0], task.outputs[0] if task.outputs else maps[-1]
    elif "Transpose" in name or "Deconv" in name:
        w = (filters or maps)[0] if filters else maps[1]
        dy = next(o for o in maps if o is not w)
        x = task.outputs[0] if task.outputs else dy
    else:
        x, w, dy = maps[0], maps[1], task.outputs[0] if task.outputs else maps[-1]
    images, channels, places_in = _conv_extent(x.shape, x.format)
    _, results, places = _conv_extent(dy.shape, dy.format)
    n, per_group, window = _filter_extent(w)
    groups = int(task.attrs.get("groups", 1) or 1)
    depthwise = name.startswith("Depthwise") or (groups > 1 and groups >= channels)
    k = per_group * window
    item = x.dtype.nbytes if x.dtype else 2
    read, written = _nbytes(task.inputs), _nbytes(task.outputs)
    if depthwise:
        # each channel on its own fills one column of the cube: sixteen channels share a fractal
        product = Product(max(1, _up(channels, 16) // 16), images * places, window * 16 if w.format.startswith("FRACTAL") is False else k, 16, item, item, item, "")
    elif groups > 1:
        product = Product(groups, images * places, k, max(1, results // groups), item, item, item, "")
    elif "BackpropFilter" in name:
        product = Product(1, n, images * places, k, item, item, 4.0, "")
    elif "BackpropInput" in name or "Transpose" in name or "Deconv" in name:
        product = Product(1, images * places_in, max(1, n * window if not w.format.startswith("FRACTAL") and len(w.shape) >= 4 else n * k // max(1, channels)), channels, item, item, item, "")
    else:
        product = Product(1, images * places, k, n, item, item, item, "")
    found = _cube(task, kind, chip, product, x, read, written, again=1.0)
    # the window is unfolded on the way from L1, so that memory is read about once a tile of results
    spread = max(1.0, window) if window > 1 else max(1.0, k / max(1, channels))
    strides = _ints(task.attrs.get("strides", ()))
    del strides
    narrow = item * min(channels, 16) < 32 or (len(x.shape) == 5 and x.shape[1] == 1)
    if "BackpropFilter" in name:
        found = replace(found, blocks=found.cores, cube_cycles=found.flops / 2 / (found.cores * _rate_of(x, task, chip)[1]) * 1.0, core=CUBE)
    elif images > 1 and images <= 2 * found.cores and found.blocks > images // 2:
        blocks, share = _shares(images, found.cores)
        found = replace(found, blocks=blocks, cube_cycles=max(found.cube_cycles, found.flops / 2 / _rate_of(x, task, chip)[1] / blocks)) if share else found
    return replace(found, again=max(0.0, found.again / spread), stages=3.0, ragged=2.0 if narrow else 0.0)


def _is_filter(operand: Operand) -> bool:
    s = operand.shape
    return operand.format.startswith(("FRACTAL_Z", "HWCN")) or (len(s) == 4 and s[2] == 16 and s[3] in (8, 16, 32))


def _lengths(task: Task, name: str) -> tuple[int, ...]:
    return _ints(task.attrs.get(name, ()))


def _attention(task: Task, kind: Kind, chip: Chip) -> Work:
    """Scores, softmax and values in one kernel: two products on the cube, a softmax on the vector cores, keys and values read once a block of queries."""
    data = [o for o in task.inputs if o.dtype and o.dtype.is_float and len(o.shape) >= 2 and o.size > 1]
    if len(data) < 2:
        return _elementwise(task, kind, chip)
    q, keys = data[0], data[1]
    # _geometry: sequences, heads, queries a sequence, keys a sequence, width of keys and of values, heads of keys
    batch, heads, queries, length, width, value_width, kv_heads, causal = _geometry(task, kind, q, keys, data)
    item = q.dtype.nbytes if q.dtype else 2
    part = 0.5 if causal and queries > 1 else 1.0
    _, macs = _rate_of(q, task, chip)
    cores = max(1, chip.cube_cores)
    pairs = batch * heads * queries * length * part
    # queries of the heads that share keys are one matrix; a tile has at least sixteen rows
    group = max(1, heads // kv_heads)
    rows = max(16, _up(queries * group, 16)) / (queries * group)
    blocks_of_queries = max(1, -(-queries * group // 128))
    tiles = batch * kv_heads * blocks_of_queries
    if queries * group <= 128 and tiles < cores:
        # flash decoding: what is left of the cores shares the keys, in parts of 512
        tiles = min(cores, tiles * max(1, length // 512))
    blocks, share = _shares(int(tiles), cores)
    balance = share * blocks / max(1.0, tiles)
    flops = 2.0 * pairs * (width + value_width)
    cached = batch * kv_heads * length * (width + (value_width if width != value_width + 64 else 0)) * item
    read = q.nbytes + cached
    written = float(max((o.nbytes for o in task.outputs), default=0))
    again = cached * max(0, blocks_of_queries - 1) * part
    softmax_ops = kind.ops
    vector_share = pairs / (blocks * (2 if chip.split else 1))
    return Work(
        kind, MIX_CUBE, blocks, cores, float(read), written, float(read + written), again=again, loops=max(1.0, length / 512 * share),
        cube_cycles=flops / 2 * rows / macs / blocks * balance, vector_cycles=_cycles(vector_share, softmax_ops, 4, chip) * balance * max(1.0, rows / 4),
        stages=float(kind.stages) * 2, tiles=float(share), flops=flops,
    )  # fmt: skip


def _geometry(task: Task, kind: Kind, q: Operand, keys: Operand, data: Sequence[Operand]) -> tuple[int, int, int, int, int, int, int, bool]:
    """Sequences, heads, queries, keys, widths of keys and values, heads of keys, and whether the later half of the scores is left out."""
    layout = str(task.attrs.get("input_layout", ""))
    s, t = q.shape, keys.shape
    out = max(task.outputs, key=lambda o: o.size, default=q)
    lengths = _lengths(task, "actual_seq_lengths_kv")
    grad = "Grad" in kind.name
    if kind.name in ("RingMLAPrefill", "MLA") and len(s) == 3:
        values = data[4] if len(data) > 4 else keys
        return 1, s[1], s[0], (data[2] if len(data) > 2 else keys).shape[0], s[2] + 64, values.shape[-1], s[1], True
    paged = len(t) == 4 and len(s) in (3, 4) and t[0] > 64 and max(t[1], t[2]) in (16, 32, 64, 128, 256, 512) and s[0] != t[0]
    if "Indexer" in kind.name:
        tokens = s[0] if len(s) == 3 else s[0] * s[1]
        sequences = max((o.shape[0] for o in task.inputs if o.dtype and o.dtype.is_integer and len(o.shape) == 2), default=1)
        chosen = _largest(task.outputs).shape[-1] if task.outputs and _largest(task.outputs).shape else 2048
        length = max(chosen, -(-tokens // max(1, sequences))) if tokens > 64 else chosen * 2
        return tokens, s[-2], 1, length, s[-1], 0, 1, False
    if kind.name.startswith(("Sparse", "Nsa")):
        tokens = s[0] if len(s) == 3 else s[0] * s[1]
        chosen = max((o.shape[-1] for o in task.inputs if o.dtype and o.dtype.is_integer and len(o.shape) >= 3), default=0) or max(
            (o.shape[-1] for o in task.inputs if o.dtype and o.dtype.is_integer and len(o.shape) == 2 and o.shape[-1] >= 128), default=1024
        )
        return tokens, s[-2], 1, chosen, s[-1] + 64, s[-1], 1, False
    if paged:
        batch = len(lengths) if len(lengths) > 1 else s[0]
        total = sum(lengths) if len(lengths) > 1 else (lengths[0] * batch if lengths else 1024 * batch)
        heads = s[1] if len(s) == 4 and layout.startswith("BN") else (s[-2] if len(s) >= 3 else 1)
        queries = s[2] if len(s) == 4 and layout.startswith("BN") else (s[1] if len(s) == 4 else 1)
        kv = min(t[1], t[2]) if len(t) == 4 else 1
        width = t[-1]
        extra = max((o.shape[-1] for o in data[2:] if o.shape[-1] == 64), default=0) if width == 512 else 0
        return batch, heads, queries, max(1, total // max(1, batch)), width + extra, width, max(1, min(kv, heads)), False
    # S B H, B S H, B N S D, T N D: the axis that the statistics (softmax maximum, [b, n, s, 8]) name decides
    stats = next((o.shape for o in (*task.outputs, *task.inputs) if len(o.shape) == 4 and o.shape[-1] == 8 and o.dtype and o.dtype.name == "f32"), None)
    heads = int(task.attrs.get("head_num", task.attrs.get("num_heads", 0)) or 0)
    causal = grad or kind.name == "FlashAttentionScore" or any(o.shape[-2:] == (2048, 2048) for o in task.inputs if o.dtype)
    if stats:
        b, n, sq, _ = stats
        width = max(1, q.size // (b * n * sq))
        kv_tokens = keys.size // (b * width)
        sk = next((d for d in t if d == sq), max(t[:2]) if len(t) == 3 else sq)
        return b, n, sq, sk, width, width, max(1, kv_tokens // max(1, sk)), causal
    if len(s) == 4:
        if layout.startswith("BSN") or (not layout and s[1] > s[2]):
            return s[0], s[2], s[1], t[1], s[3], s[3], t[2], causal
        return s[0], s[1], s[2], t[2] if len(t) == 4 else t[0], s[3], s[3], t[1] if len(t) == 4 else s[1], causal
    if len(s) == 3 and (layout == "TND" or (len(t) == 3 and s[-1] <= 256 and s[-2] <= 256)):
        sequences = max(1, len(_lengths(task, "actual_seq_lengths")))
        return sequences, s[1], max(1, s[0] // sequences), max(1, t[0] // sequences), s[2], t[2], t[1], causal
    if len(s) == 3:
        width = s[2] // heads if heads else 128
        n = max(1, s[2] // max(1, width))
        b, sq = (s[1], s[0]) if layout.startswith("S") else (s[0], s[1])
        sk = t[0] if layout.startswith("S") else t[1]
        return b, n, sq, sk, width, width, max(1, t[2] // max(1, width)), causal
    del out
    return 1, 1, s[0], t[0], s[-1], s[-1], 1, causal


def _recurrent(task: Task, kind: Kind, chip: Chip) -> Work:
    """A recurrent layer: one small product a step, each waiting for the one before."""
    data = [o for o in task.inputs if o.dtype and len(o.shape) >= 2]
    if len(data) < 2:
        return _elementwise(task, kind, chip)
    x = data[0]
    steps = x.shape[0] if len(x.shape) == 3 else 1
    w = data[1]
    k, n = _matrix(w)[-2:]
    product = Product(1, x.shape[-2], k, n, x.dtype.nbytes if x.dtype else 2, _weight_nbytes(w), 4.0, "")
    one = _cube(task, kind, chip, product, x, _nbytes(task.inputs), _nbytes(task.outputs))
    return replace(one, core=MIX_CUBE, cube_cycles=one.cube_cycles * steps, again=float(w.nbytes) * (steps - 1), tiles=one.tiles * steps, stages=4.0 * steps, flops=one.flops * steps)


def _with_fused(found: Work, task: Task, chip: Chip) -> Work:
    """Kinds that were fused in work on what is already in the buffer: instructions, no bytes of their own."""
    size = max(1, _size(task.outputs))
    ops = sum(kind_of(name).ops for name in task.fused)
    lane = _lane_nbytes(task.outputs)
    per_core = found.blocks * (2 if found.core in (CUBE, MIX_CUBE) and chip.split else 1)
    free = found.core == CUBE and all(kind_of(name).name in ("Relu", "BiasAdd", "AscendQuant", "AscendDequant", "AscendRequant", "LeakyRelu") for name in task.fused)
    # ReLU, bias and (de)quantisation ride on the way out of L0C
    return found if free else replace(found, vector_cycles=found.vector_cycles + _cycles(size / per_core, ops, lane, chip), flops=found.flops + ops * size)


_COUNT: Mapping[str, Callable[[Task, Kind, Chip], Work]] = {
    kinds.ELEMENTWISE: _elementwise, kinds.FOREACH: _foreach, kinds.OPTIMISER: _optimiser, kinds.FILL: _fill, kinds.COPY: _copy, kinds.SLICE: _slice,
    kinds.TRANSPOSE: _transpose, kinds.TRANSDATA: _transdata, kinds.REDUCE: _reduce, kinds.NORM: _norm, kinds.SOFTMAX: _softmax, kinds.ROPE: _rope,
    kinds.GLU: _glu, kinds.GATHER: _gather, kinds.SCATTER: _scatter, kinds.SORT: _sort, kinds.POOL: _pool, kinds.RESAMPLE: _resample,
    kinds.MATMUL: _matmul, kinds.CONV: _conv, kinds.ATTENTION: _attention, kinds.RECURRENT: _recurrent, kinds.RANDOM: _random,
    kinds.COMMUNICATE: _communicate, kinds.META: _meta,
}  # fmt: skip
