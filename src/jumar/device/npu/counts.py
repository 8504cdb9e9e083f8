"""`Work`: what one launch has to do, in counts, and the small counts that all kernels share.

In: operands of a task.  Out: `Work`, made by vector.py and cube.py, read by time.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from jumar.device.npu.chip import Chip
from jumar.device.npu.kinds import Kind
from jumar.device.npu.task import Operand


@dataclass(frozen=True)
class Work:
    """Counts of one launch.   core: what runs it; blocks: cores it is cut over; `busiest`: figures of the core that has most to do.

    read, written: bytes moved from and to global memory by all cores, each operand once; again: bytes that are read more than once (cube tiles).
    footprint: bytes of all operands, what must sit in L2 to be found there.  loops: tiles that the busiest core works through, which overlap.
    vector_cycles, cube_cycles, scalar_cycles, shuffled, packets, rows, items, sorted: of the busiest core.  scalar_cycles: for what the vector unit
    has no instruction for; shuffled: elements that change place inside a register; packets: runs of bytes moved on their own; rows: rows that are
    reduced or laid out one by one; items: addresses that a scalar unit computes one by one; sorted: elements that are sorted.
    function_cycles: the part of vector_cycles in kinds that are made of exponentials, divisions and roots.
    flat: the operands are long vectors, as parameters and their gradients are, which no kernel just before has touched.
    busy: cores' worth of bandwidth that the blocks draw, where they are not all loaded alike; started: cores whose start is paid for; 0 is as many as blocks.
    least_cycles: cube cycles below which no cut can come, all cores at work from start to end.
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
    rows: float = 0.0
    items: float = 0.0
    sorted: float = 0.0
    stages: float = 1.0
    tiles: float = 0.0
    ragged: float = 0.0
    scalar_cycles: float = 0.0
    function_cycles: float = 0.0
    flat: float = 0.0
    least_cycles: float = 0.0
    busy: float = 0.0
    started: float = 0.0
    flops: float = 0.0


def nbytes_of(operands: Sequence[Operand]) -> float:
    return float(sum(o.nbytes for o in operands))


def largest_size(operands: Sequence[Operand]) -> int:
    return max((o.size for o in operands), default=0)


def largest(operands: Sequence[Operand]) -> Operand:
    return max(operands, key=lambda o: o.size, default=Operand((), None))


def lane_nbytes(operands: Sequence[Operand]) -> int:
    """Bytes of an element as the vector unit computes it: bf16 in fp32, bool and int8 in fp16, as it has no instruction for them."""
    sizes = {"bf16": 4, "bool": 2, "i8": 2, "u8": 2}
    return max((sizes.get(o.dtype.name, o.dtype.nbytes) for o in operands if o.dtype and o.size), default=4)


def casts_of(operands: Sequence[Operand]) -> int:
    """Instructions an element spent on types that must be converted before and after."""
    return sum(1 for o in operands if o.dtype and o.size > 1 and o.dtype.name in ("bf16", "bool", "i8", "u8"))


def is_wide(operands: Sequence[Operand]) -> bool:
    """64-bit integers: the vector unit has no lanes for them, each takes several instructions."""
    return any(o.dtype and o.dtype.name in ("i64", "u64") for o in operands if o.size > 1)


def vector_cores(chip: Chip) -> int:
    return max(1, chip.vector_cores)


def is_fractal(operand: Operand) -> bool:
    """Whether a matrix lies in blocks, [..., n1, m1, m0, n0]."""
    return "NZ" in operand.format and len(operand.shape) >= 4


def rows_of(operand: Operand) -> tuple[int, int]:
    """Rows and their length, along the last axis; of the matrix, where it lies in blocks."""
    if not operand.shape:
        return 1, 1
    if is_fractal(operand):
        n1, n0 = operand.shape[-4], operand.shape[-1]
        return max(1, operand.size // (n1 * n0)), max(1, n1 * n0)
    inner = max(1, operand.shape[-1])
    return max(1, operand.size // inner), inner


def deal(total: int, cores: int) -> tuple[int, int]:
    """Cores used and the largest share when `total` things are dealt out.

    >>> deal(64, 48)
    (32, 2)
    """
    share = -(-max(1, total) // cores)
    return -(-max(1, total) // share), share


def started_of(total: int, cores: int) -> int:
    """Cores that are paid for when `total` things are dealt out: as many as are used, but never more than for a thing more.

    A larger total leaves cores out (64 rows are two for each of 32 cores, 48 are one for each of 48); what is dealt to more cores could be dealt so, too.

    >>> [started_of(n, 48) for n in (8, 48, 49, 64)]
    [8, 25, 25, 32]
    """
    blocks, share = deal(total, cores)
    return min(blocks, deal(cores * share + 1, cores)[0])


def tiles_of(nbytes: float, blocks: int, chip: Chip, buffers: int = 3) -> float:
    """Tiles that one core works through: its share over what its buffer holds of each operand, twice for the overlap."""
    return max(1.0, nbytes / blocks / (chip.ub_nbytes / 2 / max(1, buffers) * buffers))


def cycles_of(elements: float, ops: float, lane_nbytes: int, chip: Chip) -> float:
    return elements * ops * lane_nbytes / chip.vector_nbytes


def ints(value: Any) -> tuple[int, ...]:
    """Whole numbers of an attribute: one, or a list of them; what is no number is left out."""
    values = value if isinstance(value, (list, tuple)) else (value,)
    return tuple(int(v) for v in values if isinstance(v, (int, float)) and not isinstance(v, bool))
