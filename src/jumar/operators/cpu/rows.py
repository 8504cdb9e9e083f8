"""Nests with reduced axes: which axes are rows, which are summed, which carry the vectors; and long sums in two tasks.

In: a `Region` with reduced axes.  Out: one task, or two where the rows are too few to keep all threads at work: the first leaves partial
results, the second combines them and does what follows.
"""

from __future__ import annotations

import math
from dataclasses import replace

from jumar.base import TensorType
from jumar.device import Target
from jumar.ir import Node, param
from jumar.operators.cpu.expression import Accumulate, Expression, Step, compute_dtype, lanes_of, masks_are_cheap
from jumar.operators.cpu.phases import Phases, pruned
from jumar.operators.cpu.pointwise import PAIR, argument, split
from jumar.operators.cpu.region import Operand, Region, collapse, with_axes
from jumar.operators.cpu.rows_kernel import BLOCK, MAX_UNROLL, Rows, rows_kernel, unroll_of
from jumar.operators.schedule import Lowered, Task, TaskArg, Temp, TempPlace

SPLIT_FROM = 1 << 16  # elements of a sum that two threads share
PIECE_FROM = 1 << 13  # elements of a piece at least
STRIP_NBYTES, HELD_NBYTES = 64, 1 << 18  # of a row in a strip of columns; of a strip that stays in the cache
FOLDED = 4  # pairs of vectors that rows of few columns are folded to, at most
Axis = tuple[int, bool, list[int]]


def lower_rows(region: Region, places: dict[Node, TaskArg], target: Target, label: str = "") -> Lowered:
    """The tasks of a region with reduced axes.   places: where operands and targets are."""
    if all(t.node.type.size == 0 for t in region.targets):
        return Lowered()
    region = ordered(region)
    halves = split_sum(region, target)
    if halves is None:
        return Lowered((rows_task(region, places, target, label),))
    first, second, temps, pieces = halves
    places = {**places, **temps}
    return Lowered((rows_task(first, places, target, f"{label} (parts)", pieces), rows_task(second, places, target, label)))


def sweeps_twice(region: Region) -> bool:
    """Whether one kernel would read long columns from memory again and again: sums down columns that no cache holds, and what follows from
    them for each element.   Two kernels read whole rows, and the first one is shared out by rows.
    """
    if not region.reduced:
        return False
    region = ordered(region)
    if len(region.space) - 1 in region.reduced:
        return False
    element = tuple(any(o.strides[a] for a in region.reduced) for o in region.operands)
    strip = math.prod(region.space[a] for a in region.reduced) * sum(element) * STRIP_NBYTES
    return strip > HELD_NBYTES and Phases(region.expression, element).count > 1


def ordered(region: Region) -> Region:
    """Kept axes first, then reduced ones; a kept axis that is innermost stays there: the vectors lie across it."""
    region = collapse(region)
    everything = (*region.operands, *region.targets)
    axes: list[Axis] = [(n, i in region.reduced, [o.strides[i] for o in everything]) for i, n in enumerate(region.space)]
    inner = [axes.pop()] if axes and not axes[-1][1] else []
    kept, reduced = [a for a in axes if not a[1]], [a for a in axes if a[1]]
    if not reduced:
        reduced = [(1, True, [0] * len(everything))]
    if inner and not any(a for t in range(len(everything)) for a in [inner[0][2][t]]):
        kept, inner = [*kept, *inner], []
    return with_axes(region, [*merged(kept), *merged(reduced), *inner])


def merged(axes: list[Axis]) -> list[Axis]:
    """Neighbours as one axis where every pointer allows it."""
    found: list[Axis] = []
    for size, is_reduced, strides in axes:
        if found and all(a == b * size for a, b in zip(found[-1][2], strides, strict=True)):
            found[-1] = (found[-1][0] * size, is_reduced, strides)
        else:
            found.append((size, is_reduced, strides))
    return found


def rows_task(region: Region, places: dict[Node, TaskArg], target: Target, label: str, pieces: int = 0) -> Task:
    """The task of a region whose axes are in order.   pieces: into how many parts the first reduced axis is cut."""
    columns = len(region.space) - 1 not in region.reduced
    first = min(region.reduced)
    loops = len(region.reduced)
    everything = (*region.operands, *region.targets)
    count = len(region.operands)
    outer, reduced = region.space[:first], region.space[first : first + loops]
    inner = region.space[-1]
    element = tuple(any(o.strides[a] for a in region.reduced) for o in region.operands)
    phases = Phases(region.expression, element)
    memory = [o.node.dtype for o in everything]
    vectors = [d for i, d in enumerate(region.expression.dtypes) if phases.element(i) or columns]
    lanes = lanes_of(vectors or [memory[-1]], target)
    masked = lanes > 1 and masks_are_cheap([m for i, m in enumerate(memory) if columns or i >= count or element[i]], target)
    if 0 < inner < lanes and not masked:
        lanes = max(1, 1 << (inner.bit_length() - 1))
    if inner >= PAIR * lanes:
        lanes *= PAIR
    unroll = unroll_of(max((phases.pass_cost(p) for p in range(phases.count)), default=0.0)) if columns else MAX_UNROLL
    if inner < lanes * unroll:
        unroll = 1
    steps = [o.strides[-1] for o in everything]
    inner_kinds = tuple(s if s in (0, 1) else 2 for s in steps)
    blocked = reduced[-1] > 2 * BLOCK and any(isinstance(s.op, Accumulate) and s.op.how == "add" for s in region.expression.steps)
    walk = Rows(len(outer), loops, columns, element, inner_kinds, lanes, unroll, masked, bool(pieces), blocked)

    rows, across = math.prod(outer), inner if columns else 1
    length = math.prod(reduced)
    nbytes = sum(o.node.dtype.nbytes * math.prod(n for n, s in zip(region.space, o.strides, strict=True) if s) for o in everything)
    work = (phases.cost + count) * rows * length * -(-across // (lanes if columns else 1)) / (1 if columns else lanes)
    rows_per_chunk, parts, part = split(rows, across, work, nbytes, lanes * unroll if columns else 1)
    if pieces:
        rows_per_chunk, parts, part = rows, 1, across

    args: list[TaskArg] = [argument(o, places) for o in everything]
    scratch = 0
    if phases.stashed:
        width = length * (lanes * unroll if columns else 1) + lanes
        for n in phases.stashed:
            args.append(scratch)
            scratch += -(-width * compute_dtype(region.expression.dtype(n)).nbytes // 64) * 64
    args += reduced
    if columns:
        args += [inner, part, parts]
    if pieces:
        args += [-(-reduced[0] // pieces), pieces, rows * across]
    if outer:
        args += [rows, rows_per_chunk, *outer[1:]]
        args += [o.strides[a] for o in everything for a in range(first)]
    args += [o.strides[first + a] for o in everything for a in range(loops if columns else loops - 1)]
    args += [s for s, kind in zip(steps, inner_kinds, strict=True) if kind == 2]
    kernel = rows_kernel(region.expression, tuple(memory[count:]), walk)
    return Task(
        kernel, tuple(args), tuple(range(count, len(everything))), chunks=-(-rows // rows_per_chunk) * parts * max(1, pieces),
        inplace=tuple(_inplace(region, phases)), scratch_nbytes=scratch, nbytes=nbytes, label=label,
    )  # fmt: skip


def _inplace(region: Region, phases: Phases) -> list[tuple[int, int]]:
    """Results that may lie where an operand lies: it is read at the same element only, and no later pass reads it again.

    A result that is one for each row is written when the row is done, over an operand of the row, which is read before.
    """
    found = []
    nodes = [o.node for o in region.operands]
    for t, target in enumerate(region.targets):
        number = region.expression.outputs[t]
        last = not phases.element(number) or phases.phase(number) == phases.count - 1
        for i, operand in enumerate(region.operands):
            alike = phases.element(number) == phases.element_inputs[i]
            same = operand.strides == target.strides and not operand.offset and operand.node.type.size == target.node.type.size
            if last and alike and same and operand.node.dtype.nbytes == target.node.dtype.nbytes and nodes.count(operand.node) == 1:
                found.append((len(nodes) + t, i))
    return found


# ---------------------------------------------------------------------- long sums in two tasks
def split_sum(region: Region, target: Target) -> tuple[Region, Region, dict[Node, TaskArg], int] | None:
    """The region as partial results and their combination, where few rows are long, and the pieces of the first; None where one task does it."""
    expression = region.expression
    element = tuple(any(o.strides[a] for a in region.reduced) for o in region.operands)
    phases = Phases(expression, element)
    kept = [n for a, n in enumerate(region.space) if a not in region.reduced]
    rows, longest = math.prod(kept[:-1] if len(region.space) - 1 not in region.reduced else kept), region.space[min(region.reduced)]
    length = region.size // max(1, math.prod(kept))
    pieces = min(16 * target.cores, length // PIECE_FROM, longest)
    across = math.prod(kept) // max(1, rows)
    busy = rows * max(1, across // 512)
    if phases.count != 1 or region.size < SPLIT_FROM or busy >= 2 * target.cores or all(phases.element(n) for n in expression.outputs):
        return None
    if across > 1:
        pieces = min(16 * target.cores, region.size // PIECE_FROM, longest)
    if pieces < 2:
        return None
    fold = fold_of(region, phases, target)
    longest //= fold
    pieces = min(pieces, longest)
    pieces = -(-longest // -(-longest // pieces))  # none may be empty: a maximum of nothing is -inf, a harmless one, but still
    return (*_parts(region, phases, pieces, fold), pieces)


def fold_of(region: Region, phases: Phases, target: Target) -> int:
    """How many rows of few columns are taken as one, for they lie side by side: 6 columns leave most of a vector empty, 96 are 6 vectors."""
    if len(region.space) != 2 or set(region.reduced) != {0} or any(s.op.name == "position" for s in region.expression.steps):
        return 1
    rows, columns = region.space
    unit = PAIR * lanes_of(region.expression.dtypes, target)
    _, inputs = _made(region, phases)
    walked = (*(region.operands[i] for i in inputs), *(region.targets[i] for i in _elements(region, phases)))
    if columns >= unit or any(o.strides[0] != columns * o.strides[1] for o in walked):
        return 1
    folds = [f for f in (1, 2, 4, 8, 16, 32, 64) if rows % f == 0 and f * columns <= FOLDED * unit]
    return min(folds, key=lambda f: (-(-f * columns // unit) + 1) / f)


def _elements(region: Region, phases: Phases) -> list[int]:
    """Results that the first task writes, element by element."""
    return [i for i, n in enumerate(region.expression.outputs) if phases.element(n)]


def _made(region: Region, phases: Phases) -> tuple[Expression, tuple[int, ...]]:
    """What the first task computes, and the operands that it reads."""
    outputs = (region.expression.outputs[i] for i in _elements(region, phases))
    return pruned(region.expression, (*phases.accumulates, *outputs))


def _parts(region: Region, phases: Phases, pieces: int, fold: int) -> tuple[Region, Region, dict[Node, TaskArg]]:
    """fold: rows of the region that are one of the partial results, which hold the sums of each of them."""
    expression, first = region.expression, len(region.operands)
    elements = _elements(region, phases)
    made, inputs = _made(region, phases)
    kept = [a for a in range(len(region.space)) if a not in region.reduced]
    shape = [region.space[a] for a in kept]
    total = math.prod(shape)
    temps: dict[Node, TaskArg] = {}
    partial = []
    for n in phases.accumulates:
        dtype = compute_dtype(expression.dtype(n))
        node = param(f"partial{n}", TensorType((pieces * fold, total), dtype))
        temps[node] = TempPlace(Temp(node.type.nbytes, "partial results"))
        partial.append(node)
    dense = {a: math.prod(shape[i + 1 :]) for i, a in enumerate(kept)}
    strides = tuple(dense.get(a, 0) for a in range(len(region.space)))
    operands = [region.operands[i] for i in inputs]
    targets = (*(Operand(p, strides) for p in partial), *(region.targets[i] for i in elements))
    parts = Region(region.space, region.reduced, made, tuple(operands), targets)
    if fold > 1:
        rows, columns = region.space
        operands_folded, targets_folded = (
            tuple(replace(o, strides=(o.strides[0] * fold, o.strides[1])) for o in some) for some in (operands, targets)
        )
        parts = Region((rows // fold, columns * fold), region.reduced, made, operands_folded, targets_folded)
    region = replace(region, targets=tuple(t for i, t in enumerate(region.targets) if i not in elements))
    outputs_left = [n for i, n in enumerate(expression.outputs) if i not in elements]

    # what follows: the accumulated values become inputs that are accumulated once more
    rest = [i for i in range(first) if not phases.element_inputs[i]]
    new = {i: len(partial) + at for at, i in enumerate(rest)}
    steps: list[Step] = []
    count = len(partial) + len(rest)
    for i, step in enumerate(expression.steps, first):
        if i in phases.accumulates:
            new[i] = count + len(steps)
            steps.append(replace(step, args=(phases.accumulates.index(i),)))
        elif not phases.element(i) and all(a in new for a in step.args):
            new[i] = count + len(steps)
            steps.append(replace(step, args=tuple(new[a] for a in step.args)))
    dtypes = (*(p.dtype for p in partial), *(expression.inputs[i] for i in rest))
    outputs = tuple(new[o] for o in outputs_left)
    combined, left = pruned(Expression(dtypes, tuple(steps), outputs), outputs)
    operands = [Operand(p, strides) for p in partial] + [region.operands[i] for i in rest]
    axes: list[Axis] = [(pieces * fold, True, [total] * len(partial) + [0] * (len(rest) + len(region.targets)))]
    everything = (*operands, *region.targets)
    axes += [(region.space[a], False, [o.strides[a] for o in everything]) for a in kept]
    whole = Region((), frozenset(), Expression(dtypes, tuple(steps), ()), tuple(operands), region.targets)
    second = with_axes(whole, axes)
    second = replace(second, expression=combined, operands=tuple(second.operands[i] for i in left))
    return parts, ordered(second), temps
