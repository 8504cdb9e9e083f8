"""Counts of the kernels that run on vector cores: elementwise, reductions, movement, gathers, sorts.

In: a task, its kind and the chip.  Out: `Work` (counts.py), by the families of kinds.py; work.py chooses.
"""

from __future__ import annotations

import math
from dataclasses import replace

from jumar.device.npu.chip import Chip
from jumar.device.npu.counts import (
    Work,
    casts_of,
    cycles_of,
    deal,
    ints,
    is_fractal,
    is_wide,
    lane_nbytes,
    largest,
    largest_size,
    nbytes_of,
    rows_of,
    started_of,
    tiles_of,
    vector_cores,
)
from jumar.device.npu.kinds import Kind
from jumar.device.npu.task import COMMUNICATION, MIX_VECTOR, VECTOR, Operand, Task

# kernels that are started on every core, however small
EVERYWHERE = frozenset({"AscendQuant", "AscendDequant", "AscendAntiQuant", "Range", "Eye", "OneHot", "LinSpace"})
# cycles that a 64-bit integer takes, which the vector unit has no lanes for: a product is put together from four
WIDE_CYCLES = {"Mul": 14.0, "Muls": 14.0, "Equal": 7.0, "NotEqual": 7.0, "Greater": 7.0, "GreaterEqual": 7.0, "Less": 7.0, "LessEqual": 7.0}


def elementwise(task: Task, kind: Kind, chip: Chip) -> Work:
    operands = (*task.inputs, *task.outputs)
    out = largest(task.outputs) if largest_size(task.outputs) else largest(operands)
    size = max(1, out.size)
    lane = lane_nbytes(operands)
    # CANN's elementwise kernels give a core no less than 4 KB of the widest type
    per_core = 4096 // max(2, lane)
    blocks = min(vector_cores(chip), -(-size // per_core))
    ops = kind.ops + casts_of(operands) + max(0, len([o for o in task.inputs if o.size == out.size]) - 2) * 0.5
    wide = is_wide(operands) and kind.name not in ("Cast", "Abs", "Neg", "BitwiseAnd", "BitwiseOr", "BitwiseNot", "BitwiseXor")
    read, written = nbytes_of(task.inputs), nbytes_of(task.outputs)
    # a core that has less than 4 KB draws less, too
    busy = min(float(blocks), max(1.0, size / per_core))
    stages, rows = float(kind.stages), 0.0
    spread = [o for o in task.inputs if 1 < o.size < out.size and o.dtype]
    if spread and len(out.shape) > 1 and size >= 1024:
        # a broadcast is another template, with rows that are laid out one after the other
        along = any(o.shape and o.shape[-1] == 1 < out.shape[-1] for o in spread)
        stages += 2 if along else 1
        count = size // max(1, out.shape[-1])
        blocks = max(blocks, deal(count, vector_cores(chip))[0]) if along else min(vector_cores(chip), max(blocks, -(-size // 1024)))
        rows = -(-count // blocks) if along else 0.0
    if kind.name in EVERYWHERE:
        blocks, stages = vector_cores(chip), stages + 1
    share = -(-size // blocks)
    busy = busy if blocks == -(-size // per_core) else 0.0
    return Work(
        kind, VECTOR, blocks, vector_cores(chip), read, written, read + written, loops=tiles_of(read + written, blocks, chip),
        vector_cycles=cycles_of(share, ops, lane, chip), scalar_cycles=share * WIDE_CYCLES.get(kind.name, 5.0) if wide else 0.0, stages=stages, rows=rows,
        busy=busy, flops=kind.ops * size,
    )  # fmt: skip


def foreach(task: Task, kind: Kind, chip: Chip) -> Work:
    """One operation over a list of tensors: the elements of all, and a little for each tensor."""
    # a norm of each tensor gives few numbers: the elements are those that are read
    size = max(sum(o.size for o in task.outputs), sum(o.size for o in task.inputs) // 4)
    read, written = nbytes_of(task.inputs), nbytes_of(task.outputs)
    lane = lane_nbytes((*task.inputs, *task.outputs))
    blocks = min(vector_cores(chip), max(1, -(-size // (4096 // lane))))
    return Work(
        kind, VECTOR, blocks, vector_cores(chip), read, written, read + written, loops=tiles_of(read + written, blocks, chip),
        vector_cycles=cycles_of(size / blocks, kind.ops + casts_of(task.inputs[:1]), lane, chip), stages=1 + len(task.outputs) / 8, flops=kind.ops * size,
    )  # fmt: skip


def optimiser(task: Task, kind: Kind, chip: Chip) -> Work:
    """Weights and moments are read and written in place: what is written is the outputs, or the inputs that are as large as the weight."""
    plain = elementwise(task, kind, chip)
    return replace(plain, stages=plain.stages + 1)


def fill(task: Task, kind: Kind, chip: Chip) -> Work:
    written = nbytes_of(task.outputs)
    size = max(1, largest_size(task.outputs))
    lane = lane_nbytes(task.outputs)
    everywhere = kind.name in EVERYWHERE
    blocks = vector_cores(chip) if everywhere else min(vector_cores(chip), -(-size // (4096 // max(2, lane))))
    return Work(
        kind, VECTOR, blocks, vector_cores(chip), 0.0, written, written, loops=tiles_of(written, blocks, chip, 1),
        vector_cycles=cycles_of(size / blocks, kind.ops, lane, chip), stages=kind.stages + (1 if everywhere else 0), flops=0.0,
    )  # fmt: skip


def copy(task: Task, kind: Kind, chip: Chip) -> Work:
    moved = nbytes_of(task.outputs) or nbytes_of(task.inputs[:1])
    blocks = min(vector_cores(chip), max(1, math.ceil(moved / 4096)))
    return Work(kind, VECTOR, blocks, vector_cores(chip), moved, moved, 2 * moved, loops=tiles_of(2 * moved, blocks, chip, 2), stages=1.0)


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


def slice(task: Task, kind: Kind, chip: Chip) -> Work:
    """Kernels that move bytes from one arrangement to another without looking at them."""
    data = [o for o in task.inputs if o.dtype and o.size]
    outs = [o for o in task.outputs if o.dtype and o.size]
    source, result = largest(data), largest(outs)
    moved = nbytes_of(outs)
    read = moved
    blocks = min(vector_cores(chip), max(1, math.ceil(moved / 8192)))
    stages, scattered = 1.5, False
    match kind.name:
        case "ViewCopy" | "StridedSliceAssign":
            # the destination is written in place: only the values move
            source = data[4] if len(data) > 4 else min(data, key=lambda o: o.size if o.size > 8 else 1 << 60, default=result)
            moved = read = float(source.nbytes)
            scattered = len(source.shape) == 1
            run = float(
                source.dtype.nbytes
                if source.dtype and len(source.shape) == 1
                else rows_of(source)[1] * (source.dtype.nbytes if source.dtype else 1)
            )
        case "BroadcastTo" | "Tile" | "TileWithAxis" | "Expand" | "RepeatInterleave":
            read, run = float(source.nbytes), float(result.shape[-1] if result.shape else 1) * (result.dtype.nbytes if result.dtype else 1)
        case "AsStrided":
            run = float(rows_of(result)[1] * (result.dtype.nbytes if result.dtype else 1))
        case "Slice" | "StridedSlice" | "Split" | "SplitV" | "Unpack" | "Crop" | "SliceLastDim":
            run = min((_run_nbytes(source, o) for o in outs), default=4096.0)
        case _:
            read = min(nbytes_of(data), moved) if kind.name.startswith(("Pad", "Mirror", "Tri")) else moved
            run = min((_run_nbytes(result, o) for o in data if o.size > 16), default=4096.0)
            stages += 0.15 * max(0, len(data) - 1) if kind.name in ("Concat", "Pack", "Stack") else 0.0
            blocks = min(vector_cores(chip), max(1, math.ceil(moved / 2048)))
    if kind.name in ("ViewCopy", "StridedSliceAssign"):
        blocks, stages = vector_cores(chip), 3.0
    packets = moved / run / blocks if run < 8192 else 0.0
    return Work(
        kind,
        VECTOR,
        blocks,
        vector_cores(chip),
        read,
        moved,
        read + moved,
        loops=tiles_of(read + moved, blocks, chip, 2),
        packets=0.0 if scattered else packets,
        # elements that lie apart are copied one by one
        scalar_cycles=45.0 * packets if scattered else 0.0,
        stages=stages,
    )


def _perm(task: Task) -> tuple[int, ...]:
    """The permutation: an attribute, or the likeliest that turns the shape in into the shape out."""
    known = ints(task.attrs.get("perm", ()))
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


def transpose(task: Task, kind: Kind, chip: Chip) -> Work:
    source = task.inputs[0] if task.inputs else Operand((), None)
    moved = nbytes_of(task.outputs[:1]) or float(source.nbytes)
    size = max(1, source.size)
    item = source.dtype.nbytes if source.dtype else 4
    perm = _perm(task)
    run = 1
    for place, axis in zip(reversed(range(len(perm))), reversed(perm)):
        if place != axis:
            break
        run *= source.shape[axis]
    blocks = vector_cores(chip)
    stays = run > 1
    return Work(
        kind, VECTOR, blocks, blocks, moved, moved, 2 * moved, loops=tiles_of(2 * moved, blocks, chip, 2),
        shuffled=0.0 if stays else size / blocks, packets=size / run / blocks if stays and run * item < 8192 else 0.0, stages=4.0,
    )  # fmt: skip


def _is_filter_layout(operand: Operand) -> bool:
    return operand.format.startswith("FRACTAL_Z")


def transdata(task: Task, kind: Kind, chip: Chip) -> Work:
    """A change of layout: every element changes place, the fields of zeros that fill c0 included."""
    read, written = nbytes_of(task.inputs[:1]), nbytes_of(task.outputs[:1])
    size = max(largest_size(task.inputs[:1]), largest_size(task.outputs[:1]), 1)
    shape = max((o for o in (*task.inputs[:1], *task.outputs[:1])), key=lambda o: len(o.shape), default=Operand((1,), None)).shape
    images = shape[0] if len(shape) == 5 and not any(is_fractal(o) for o in (*task.inputs[:1], *task.outputs[:1])) else 0
    filters = any(_is_filter_layout(o) for o in (*task.inputs[:1], *task.outputs[:1]))
    matrix = any(is_fractal(o) for o in (*task.inputs[:1], *task.outputs[:1]))
    plain = next(
        (o.shape for o in (*task.inputs[:1], *task.outputs[:1]) if o.format in ("NCHW", "NCDHW", "ND", "") and len(o.shape) >= 4), ()
    )
    planes = 0 if matrix or not plain else plain[0] * plain[1]
    cores = vector_cores(chip)
    blocks, share = deal(images, cores)
    if images < 16 and (pieces := min(cores, max(1, size // 8192))) >= blocks:
        # few images are cut inside
        blocks, share = pieces, 0
    load = share / images if share else 1 / blocks  # of the busiest core
    return Work(
        kind,
        VECTOR,
        blocks,
        cores,
        read,
        written,
        read + written,
        loops=tiles_of(read + written, blocks, chip, 2),
        # filters are turned in four axes, maps in two; a matrix goes into blocks of whole rows, which the move itself lays out
        shuffled=size * load * (4.0 if filters else 0.25 if matrix else 1.0),
        # the plane of each channel is a run of its own, with a turn of a loop around it
        scalar_cycles=planes * load * (20.0 if filters else 36.0),
        stages=3.0,
    )


def reduce(task: Task, kind: Kind, chip: Chip) -> Work:
    source = largest(task.inputs)
    read, written = nbytes_of(task.inputs), nbytes_of(task.outputs)
    size, left = max(1, source.size), max(1, largest_size(task.outputs))
    cores = vector_cores(chip)
    lane = lane_nbytes(task.inputs)
    blocks = min(cores, max(1, -(-size // 4096))) if left == 1 else deal(max(left, size // 8192), cores)[0]
    if size == left:
        return elementwise(task, kind, chip)
    loss = "Loss" in kind.name
    if loss:
        # losses look their classes up on every core, and add up what the cores found
        blocks = cores
    # the axis at the end is reduced inside a register, others by adding rows
    lengthwise = size / left if task.outputs else size
    ops = kind.ops + casts_of(task.inputs[:1]) + (3.0 * min(1.0, 64 / lengthwise) if left > 1 else 0.0)
    return Work(
        kind, MIX_VECTOR if left > 1 or loss else VECTOR, blocks, cores, read, written, read + written, loops=tiles_of(read, blocks, chip, 1),
        vector_cycles=cycles_of(-(-size // blocks), ops, lane, chip),
        started=float(blocks if left == 1 or loss else started_of(max(left, size // 8192), cores)),
        stages=kind.stages + (0.5 if blocks > 1 and left == 1 else 1.0), flops=float(size),
    )  # fmt: skip


def norm(task: Task, kind: Kind, chip: Chip) -> Work:
    source = largest(task.inputs)
    read, written = nbytes_of(task.inputs), nbytes_of(task.outputs)
    size = max(1, source.size)
    channels = kind.name.startswith(("BN", "Batch", "Group", "Instance", "IN", "GN"))
    rows, length = (
        (max(1, source.shape[0] * (source.shape[1] if len(source.shape) > 1 else 1)), 0) if channels and source.shape else rows_of(source)
    )
    if length <= 4 and not channels:
        rows, length = max(1, source.shape[0] if source.shape else 1), 0
    length = length or max(1, size // rows)
    cores = vector_cores(chip)
    blocks, share = deal(rows, cores)
    lane = lane_nbytes((*task.inputs, *task.outputs))
    ops = kind.ops + casts_of((*task.inputs, *task.outputs))
    # a row that is not a whole number of registers wastes the rest of the last one; in blocks, 16 rows are worked on side by side
    fractal = is_fractal(source)
    padded = length if fractal else math.ceil(length * lane / chip.vector_nbytes) * chip.vector_nbytes / lane
    together = source.shape[-2] if fractal else 1
    return Work(
        kind, VECTOR, blocks, cores, read, written, read + written, loops=min(2.0, tiles_of(read + written, blocks, chip, 3)),
        vector_cycles=cycles_of(share * padded, ops, lane, chip), rows=float(share * kind.stages / together), stages=float(kind.stages),
        ragged=_ragged(length, source), started=float(started_of(rows, cores)),
        flops=kind.ops * size,
    )  # fmt: skip


def _ragged(length: int, operand: Operand) -> float:
    """Whether a row is not a whole number of 32-byte blocks: it is then moved and computed with masks."""
    return float((length * (operand.dtype.nbytes if operand.dtype else 4)) % 32 != 0)


def rope(task: Task, kind: Kind, chip: Chip) -> Work:
    source = largest(task.inputs)
    plain = norm(task, kind, chip)
    rows, _ = rows_of(source)
    return replace(
        plain,
        rows=2.0 * deal(rows, vector_cores(chip))[1],
        stages=2.0,
        ragged=0.0,
        # halves that lie one by one are drawn apart first
        shuffled=3.0 * source.size / plain.blocks if "Interleave" in kind.name else 0.0,
        loops=tiles_of(plain.read + plain.written, plain.blocks, chip),
    )


def glu(task: Task, kind: Kind, chip: Chip) -> Work:
    out = largest(task.outputs)
    plain = elementwise(task, kind, chip)
    blocks = min(vector_cores(chip), max(1, out.size // 4096))
    lane = lane_nbytes((*task.inputs, *task.outputs))
    ops = kind.ops + casts_of((*task.inputs, *task.outputs)) + 1
    return replace(
        plain, blocks=blocks, vector_cycles=cycles_of(max(1, out.size) / blocks, ops, lane, chip), stages=2.0, packets=0.0,
        loops=tiles_of(plain.read + plain.written, blocks, chip),
    )  # fmt: skip


def gather(task: Task, kind: Kind, chip: Chip) -> Work:
    """Rows fetched by their numbers: bandwidth where rows are long, the address of each where they are short."""
    data = [o for o in task.inputs if o.dtype and o.size]
    table = data[0] if data else Operand((), None)
    out = largest(task.outputs)
    moved = nbytes_of(task.outputs[:1])
    index = nbytes_of([o for o in data[1:] if o.dtype and o.dtype.is_integer])
    cores = vector_cores(chip)
    whole = kind.name in (
        "Index",
        "IndexByTensor",
        "GatherNd",
        "Gather",
        "EmbeddingLookup",
        "Embedding",
        "EmbeddingBag",
        "IndexSelect",
        "Take",
        "MoeGather",
    )
    # rows of the table that are taken as they are: its last axis, unless every element has its own number
    row = table.shape[-1] if whole and len(table.shape) > 1 and out.shape and out.shape[-1] == table.shape[-1] else 1
    if kind.ops or kind.name.startswith("Moe"):
        row = out.shape[-1] if out.shape else 1
    fetched = max(1, out.size // max(1, row))
    blocks = cores
    near = min(1.0, table.nbytes / (chip.ub_nbytes or 1))
    # a table that fits the buffer of a core is looked up there
    items = fetched / blocks * (0.1 + 0.9 * near)
    return Work(
        kind, VECTOR, blocks, cores, moved + index, moved, min(float(table.nbytes), 4 * moved) + index + moved, loops=tiles_of(2 * moved, blocks, chip, 2),
        items=items, stages=2.0 + kind.stages, vector_cycles=cycles_of(out.size / blocks, kind.ops, lane_nbytes(task.outputs), chip),
    )  # fmt: skip


_SUMS = frozenset(
    {
        "EmbeddingDenseGrad",
        "ScatterAdd",
        "ScatterNdAdd",
        "UnsortedSegmentSum",
        "InplaceIndexAdd",
        "IndexAdd",
        "TensorScatterAdd",
        "InplaceScatterAdd",
    }
)


def scatter(task: Task, kind: Kind, chip: Chip) -> Work:
    """Rows written by their numbers, in place: the table itself is neither read nor written as a whole."""
    data = [o for o in task.inputs if o.dtype and o.size]
    numbers = [o for o in data if o.dtype and o.dtype.is_integer and o.size > 2]
    values = [o for o in data[1:] if o not in numbers] if kind.name != "EmbeddingDenseGrad" else data[:1]
    moved = nbytes_of(values[-1:]) if values else nbytes_of(data[-1:])
    count = max((o.size for o in numbers), default=1)
    if kind.name == "EmbeddingDenseGrad":
        numbers, moved = data[1:2], float(data[0].nbytes) if data else 0.0
        count = max((o.size for o in numbers), default=1)
    cores = vector_cores(chip)
    return Work(
        kind,
        VECTOR,
        cores,
        cores,
        moved + nbytes_of(numbers),
        moved,
        2 * moved,
        loops=tiles_of(2 * moved, cores, chip, 2),
        # sums are read, added to and written back
        items=count / cores * (2.0 if kind.name in _SUMS else 1.0),
        stages=3.0,
    )


def sort(task: Task, kind: Kind, chip: Chip) -> Work:
    """Sorted runs of 32, merged four at a time; merges of long rows go on beside the next run."""
    source = largest(task.inputs)
    rows, length = rows_of(source)
    cores = vector_cores(chip)
    blocks, share = deal(rows, cores)
    parts = max(1, min(cores // blocks, length // 8192)) if share == 1 else 1
    read, written = nbytes_of(task.inputs), nbytes_of(task.outputs)
    passes = max(1.0, math.log(max(2, length) / 32, 4)) if length > 32 else 1.0
    busiest = share * length / parts
    return Work(
        kind, VECTOR, blocks * parts, cores, read, written, read + written, loops=tiles_of(read, blocks, chip, 2),
        vector_cycles=cycles_of(busiest, 8.0 + casts_of(task.inputs), 4, chip), sorted=busiest * (1 + 0.5 * (passes - 1)),
        stages=float(kind.stages) + (passes / 2 if parts > 1 else 0.0), rows=float(share),
    )  # fmt: skip


def pool(task: Task, kind: Kind, chip: Chip) -> Work:
    """Windows: for each row of results one short instruction a place of the window, which takes its latency, not its lanes."""
    source, result = (task.inputs or (Operand((), None),))[0], largest(task.outputs)
    if "Grad" in kind.name:
        pooled, whole = min(task.inputs[:2], key=lambda o: o.size, default=source), result
    else:
        pooled, whole = (task.outputs or (result,))[0], source
    window = math.prod(ints(task.attrs.get("ksize", task.attrs.get("kernel_size", ())))) or 9
    mask = next((o for o in (*task.inputs, *task.outputs) if o.dtype and o.dtype.name in ("u16", "u8", "i32") and len(o.shape) >= 4), None)
    if mask is not None:
        window = max(1, mask.shape[2])
    if "Global" in kind.name or "Adaptive" in kind.name:
        window = max(1, whole.size // max(1, pooled.size))
    # the mask holds a bit for each place of each window, whatever shape it is listed with
    bits = max(pooled.size, 1) * window / 8
    read, written = (
        sum(min(float(o.nbytes), bits) if o is mask else float(o.nbytes) for o in side) for side in (task.inputs, task.outputs)
    )
    s = whole.shape
    planes = s[0] * s[1] if len(s) >= 4 else max(1, whole.size // 4096)
    cores = vector_cores(chip)
    dealt = s[0] if len(s) >= 4 and 16 <= s[0] and "Grad" in kind.name else planes
    blocks, share = deal(dealt, cores)
    load = share / max(1, dealt)  # of the busiest core
    height = pooled.shape[2] if len(pooled.shape) >= 5 else max(1, int(math.sqrt(pooled.size / max(1, planes))))
    rows = planes * height * load
    latency = 200.0 if "Argmax" in kind.name or "Grad" in kind.name else 60.0
    lane = lane_nbytes(task.inputs)
    return Work(
        kind, VECTOR, blocks, cores, read, written, read + written, loops=tiles_of(read + written, blocks, chip, 3),
        vector_cycles=cycles_of(pooled.size * load, kind.ops * window + 2, lane, chip), scalar_cycles=rows * min(window, 64) * latency,
        started=float(started_of(dealt, cores)), busy=1 / load, stages=3.0, flops=float(pooled.size * window),
    )  # fmt: skip


def resample(task: Task, kind: Kind, chip: Chip) -> Work:
    plain = elementwise(task, kind, chip)
    out = largest(task.outputs)
    _, length = rows_of(out)
    if len(out.shape) == 5 and out.shape[-1] in (8, 16, 32):  # a row of blocks of channels
        length *= out.shape[-2]
    return replace(plain, packets=4.0 * max(1, out.size // max(1, length)) / plain.blocks, stages=3.0)


def random(task: Task, kind: Kind, chip: Chip) -> Work:
    """Numbers drawn by a unit of its own (DSA): a rate of bytes; elsewhere a vector kernel of many instructions."""
    written = nbytes_of(task.outputs)
    if kind.name.startswith("DSA"):
        # a number is 32 bits; a bit of a mask is drawn against a probability
        bits = 8 * 2.7 if "Mask" in kind.name else 32.0
        return Work(kind, "DSA", 1, 1, 0.0, written, written, items=largest_size(task.outputs) * bits, stages=1.0)
    plain = elementwise(task, kind, chip)
    drawn = 8.0 if "Mask" in kind.name else 1.0  # a byte of a mask is eight draws
    return replace(plain, stages=2.0, scalar_cycles=0.0, vector_cycles=plain.vector_cycles * drawn)


def communicate(task: Task, kind: Kind, chip: Chip) -> Work:
    """A collective, alone: bytes over the links of one device.  The number of ranks is an attribute or that of one server."""
    data = max(nbytes_of(task.outputs), 0.0) if "Gather" in kind.name else nbytes_of(task.inputs[:1])
    if kind.name.startswith("Moe"):
        data = max((o.nbytes for o in task.outputs), default=0) if "Combine" in kind.name else nbytes_of(task.inputs[:1])
    cores = vector_cores(chip)
    core = VECTOR if kind.name.startswith("Moe") else COMMUNICATION
    return Work(kind, core, cores, cores, float(data), float(data), 2.0 * data, stages=8.0, items=0.0)


def meta(task: Task, kind: Kind, chip: Chip) -> Work:
    return Work(kind, VECTOR, 1, 1, 0.0, 0.0, 0.0, stages=0.0)
