"""Recurrent layers: one matrix product for the whole sequence, then a walk over time.

In: Lstm, Gru, Rnn nodes.  Out: tasks: x w + bias of all steps (matmul.py), first states, the walk (recurrent_kernel.py), last states.

The walk is one task whose chunks are directions and examples; or, where those are too few for the threads and r is large, a task for
each step of time, whose chunks are parts of the hidden units.  Columns of w and r are put in the order in which the walk reads them: for each
few hidden units all their gates side by side, so that a tile of sums has all that the units' next state needs.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache

import numpy as np

from jumar.base import Array, DType, TensorType, i64
from jumar.device import Target
from jumar.ir import Node, constant, param
from jumar.kernel import Builder, Kernel, Value
from jumar.operators.contraction import MatMul
from jumar.operators.cpu.blocking import DEPTH
from jumar.operators.cpu.channels import moved
from jumar.operators.cpu.epilogue import modulo, quotient
from jumar.operators.cpu.expression import compute_dtype
from jumar.operators.cpu.matmul import lower_matmul, micro_kernels
from jumar.operators.cpu.microkernel import Tile, micro_kernel, register_tile
from jumar.operators.cpu.prepare import convert_task, transpose_block
from jumar.operators.cpu.recurrent_kernel import NUMBERS, Cell, Phase, phases_of, recurrent_kernel
from jumar.operators.cpu.root import RootGroup
from jumar.operators.elementwise import Add
from jumar.operators.recurrent import Gru, Lstm, Recurrent, Rnn
from jumar.operators.schedule import Lowered, Packed, Place, Task, TaskArg, Temp, TempPlace, schedule

ONE_SPLITS = 4  # sums of a single row, each in parts, to hide the latency
PART_FLOPS = 50_000  # of one step on each thread at least: with less they would wait longer for each other than they work
ARRANGED = 8192  # elements of a panel up to which one thread arranges all of it
SPLIT_NBYTES = 256 << 10  # of r, above which a part for each thread is worth a barrier at each step even where examples are enough


@dataclass(frozen=True)
class Layer:
    """The numbers of a node.   padded: hidden units in whole panels."""

    seq: int
    batch: int
    depth: int
    hidden: int
    dirs: int
    gates: int
    dtype: DType
    phases: tuple[Phase, ...]
    tile: Tile

    @property
    def lanes(self) -> int:
        return self.tile.lanes

    @property
    def padded(self) -> int:
        return max(p.panels(self.hidden, self.lanes) * p.units for p in self.phases) * self.lanes

    def columns(self, phase: Phase) -> int:
        """Columns of a phase, of one direction."""
        return phase.panels(self.hidden, self.lanes) * phase.vectors * self.lanes

    @property
    def width(self) -> int:
        """Columns of all phases of one direction."""
        return sum(self.columns(p) for p in self.phases)

    @property
    def state_nbytes(self) -> int:
        return self.dirs * self.batch * self.padded * self.dtype.nbytes

    @property
    def step_flops(self) -> int:
        """Of one step of time, h r only."""
        return 2 * self.dirs * self.batch * self.gates * self.hidden**2

    def order(self, phase: Phase) -> Array:
        """The row of w (of one direction) in each column; -1 where there is none."""
        panel, unit, gate, lane = np.meshgrid(
            np.arange(phase.panels(self.hidden, self.lanes)), np.arange(phase.units), phase.gates, np.arange(self.lanes), indexing="ij"
        )
        number = (panel * phase.units + unit) * self.lanes + lane
        return np.where(number < self.hidden, gate * self.hidden + number, -1).reshape(-1)

    def every(self) -> Array:
        """The row of w in each column of all phases."""
        return np.concatenate([self.order(p) for p in self.phases])


@schedule("cpu", Lstm, Gru, Rnn)
def lower_recurrent(node: Node, target: Target) -> Lowered | None:
    """The tasks of a layer; None for what has no elements, or no floats."""
    op, (x, w, r, _, _, *states) = node.op, node.inputs
    assert isinstance(op, Recurrent), "registered for recurrent layers"
    if not x.dtype.is_float or any(i.type.size == 0 for i in (x, w, r)):
        return None
    dtype = compute_dtype(x.dtype)
    linear = isinstance(op, Gru) and op.linear_before_reset
    tile = register_tile(target, dtype)
    phases = phases_of(op.name, linear, tile.vectors)
    seq, batch, depth = x.shape
    layer = Layer(seq, batch, depth, r.shape[2], len(op.backward), op.gates, dtype, phases, tile)
    tasks: list[Task] = []
    fed = _products(node, layer, linear, tasks, target)
    if fed is None:
        return None
    panels = [_panels(r, layer, phase, tasks) for phase in phases]
    memory = {"h": TempPlace(Temp(2 * layer.state_nbytes, "h"))}
    copies = [(states[0], memory["h"], layer.seq % 2 * layer.state_nbytes)]
    if isinstance(op, Lstm) or len(phases) > 1:
        memory["c"] = TempPlace(Temp(layer.state_nbytes, "c"))
    if isinstance(op, Lstm):
        copies.append((states[1], memory["c"], 0))
    if len(phases) > 1:
        memory["rh"] = TempPlace(Temp(layer.state_nbytes, "reset h"))
    rows = layer.dirs * layer.batch
    for state, place, _ in copies:
        tasks.append(_copy(Place(state), place, state.dtype, dtype, rows, layer.hidden, layer.hidden, layer.padded))
    tasks += _walk(node, layer, fed, panels, memory, linear, target)
    for i, (state, place, offset) in enumerate(copies, 1):
        last = replace(place, nbytes_offset=offset)
        tasks.append(_copy(last, Place(node, 0, i), dtype, state.dtype, rows, layer.hidden, layer.padded, layer.hidden))
    return Lowered(tuple(tasks))


# ------------------------------------------------------------------ the walk
def _walk(
    node: Node, layer: Layer, fed: TempPlace, panels: Sequence[TaskArg], memory: dict[str, TempPlace], linear: bool, target: Target
) -> list[Task]:
    """The tasks of all steps: one, or, where hidden units are shared by threads, one for each product of each step."""
    op, (_, _, _, bias, lengths, *states) = node.op, node.inputs
    assert isinstance(op, Recurrent), "a recurrent layer"
    peepholes = states[op.states :]
    cell = _cell(node, layer, linear)
    row_parts = min(layer.batch, -(-target.cores // layer.dirs))
    cut = unit_parts(layer, layer.dirs * row_parts, target)
    rows_part = layer.batch if cut else -(-layer.batch // row_parts)
    row_parts = -(-layer.batch // rows_part)
    every = tuple(range(len(layer.phases)))
    micro = (*micro_kernels(layer.tile), micro_kernel(layer.tile.with_rows(1, ONE_SPLITS)))
    backward = Packed(np.array(op.backward, np.int64), "backward")
    tasks = []
    for t, chosen in itertools.product(range(layer.seq), [(i,) for i in every]) if cut else ((0, every),):
        final = every[-1] in chosen
        head: list[TaskArg] = [*micro, *(panels[i] for i in chosen), fed, backward]
        kept = [Place(node, 0, 1 + op.states + i) for i in range(len(cell.keeps))]
        written: list[TaskArg] = [*memory.values(), *([Place(node)] if final else []), *kept]
        read: Sequence[TaskArg] = [Place(n) for n, there in ((lengths, not cell.whole), (bias, linear)) if there] + [
            Place(p) for p in peepholes
        ]
        counts = [layer.phases[i].panels(layer.hidden, layer.lanes) for i in chosen]
        parts = [-(-count // max(1, cut)) for count in counts]
        numbers = {
            "begin": t, "end": t + 1 if cut else layer.seq, "seq": layer.seq, "batch": layer.batch, "hidden": layer.hidden,
            "dirs": layer.dirs, "padded": layer.padded, "pitch": layer.dirs * layer.width, "width": layer.width,
            "rows_part": rows_part, "row_parts": row_parts, "unit_parts": max(-(-c // p) for c, p in zip(counts, parts, strict=True)),
            "depth_block": layer.hidden if rows_part == 1 else min(layer.hidden, DEPTH),
            "state": layer.dirs * layer.batch * layer.padded, "bias": layer.gates * layer.hidden,
            "base": sum(layer.columns(p) for p in layer.phases[: chosen[0]]),
        }  # fmt: skip
        units = [number for pair in zip(counts, parts, strict=True) for number in pair]
        args: tuple[TaskArg, ...] = (*head, *written, *read, *(numbers[name] for name in NUMBERS), *units)
        task = Task(
            recurrent_kernel(cell, chosen), args, tuple(range(len(head), len(head) + len(written))),
            layer.dirs * row_parts * numbers["unit_parts"], scratch_nbytes=cell.scratch_nbytes(rows_part),
            flops=layer.step_flops * (numbers["end"] - t) // (len(every) if cut else 1), label=op.name,
        )  # fmt: skip
        tasks.append(task)
    return tasks


def _cell(node: Node, layer: Layer, linear: bool) -> Cell:
    """What the code of the walk depends on."""
    op, lengths = node.op, node.inputs[4]
    assert isinstance(op, Recurrent), "a recurrent layer"
    whole = lengths.array is not None and bool((lengths.array >= layer.seq).all())
    count = len(op.functions)
    functions = tuple(op.activations[i : i + count] for i in range(0, len(op.activations), count))
    return Cell(
        op.name, linear, len(node.inputs) > 5 + op.states, isinstance(op, Lstm) and op.input_forget, op.clip,
        functions[:1] if len(set(functions)) == 1 else functions, node.inputs[0].dtype, whole, layer.hidden % layer.lanes != 0, layer.tile,
        op.kept,
    )  # fmt: skip


def unit_parts(layer: Layer, walks: int, target: Target) -> int:
    """In how many parts of hidden units each step of time is cut; 0: each of `walks` directions and examples walks on its own.

    Measured on two cores (LSTM, ms for 50 to 100 steps, walks against parts): 128 x 1: 0.58, 0.45; 256 x 1: 3.1, 1.9; 256 x 8: 15, 10;
    512 x 8: 19, 13; 512 x 32 and 64 x 8: the same.  On a busy machine (medians): 64 x 8 in two directions: 1.2, 1.8; 256 x 8: 5.7, 5.5.
    """
    parts = min(target.cores, layer.step_flops // PART_FLOPS)
    large = layer.dirs == 1 and layer.gates * layer.hidden**2 * layer.dtype.nbytes >= SPLIT_NBYTES
    return -(-parts // layer.dirs) if parts > walks or (large and parts == walks and parts > 1) else 0


# ------------------------------------------------------------------ products, panels, copies
def _products(node: Node, layer: Layer, linear: bool, tasks: list[Task], target: Target) -> TempPlace | None:
    """x w + bias of all steps: [seq, batch, dirs, width]."""
    x, w, _, bias, *_ = node.inputs
    each, gates = layer.gates * layer.hidden, layer.every()
    starts = np.arange(layer.dirs)[:, None]
    rows = np.where(gates >= 0, gates + starts * each, -1).reshape(-1)
    first = np.where(gates >= 0, gates + starts * 2 * each, -1).reshape(-1)
    # with linear_before_reset the new gate's own bias is multiplied by the reset gate, so it is not in the product
    own = (gates >= 0) & ~(linear & (gates >= 2 * layer.hidden))
    second = np.where(own, gates + each + starts * 2 * each, -1).reshape(-1)
    places: dict[Node, Place | TempPlace] = {}
    inputs: list[Node] = []
    for what, shape, tables in ((w, (layer.depth, len(rows)), (rows,)), (bias, (len(rows),), (first, second))):
        depth = layer.depth if what is w else 1
        value = what.array
        if value is not None:
            flat = value.reshape(-1, depth).astype(layer.dtype.numpy, copy=False)
            taken = _rows(flat, tables[0])
            for table in tables[1:]:
                taken = taken + _rows(flat, table)
            inputs.append(constant(np.ascontiguousarray(taken.T.reshape(shape))))
            continue
        stand = param(f"r{len(inputs)}", TensorType(shape, layer.dtype))
        task, places[stand] = _arrange(what, layer.dtype, depth, len(rows), layer.lanes, *tables)
        tasks.append(task)
        inputs.append(stand)
    if x.dtype is not layer.dtype:
        task, wide = convert_task(Place(x), x.dtype, layer.dtype, x.type.size, layer.lanes)
        tasks.append(task)
        x = param("x", x.type.with_dtype(layer.dtype))
        places[x] = wide
    product = MatMul()(x, inputs[0])
    total = Add()(product, inputs[1])
    fed = places[total] = TempPlace(Temp(total.type.nbytes, "x w"))
    lowered = lower_matmul(RootGroup(total, product, (total,), {}), target)
    if lowered is None:
        return None
    for task in lowered.tasks:
        tasks.append(replace(task, args=tuple(moved(a, places) if isinstance(a, Place) else a for a in task.args), label="x w"))
    return fed


def _panels(r: Node, layer: Layer, phase: Phase, tasks: list[Task]) -> TaskArg:
    """r for the walk: [dirs, panels, tiles of a panel, hidden, columns of a tile]."""
    each, gates, columns = layer.gates * layer.hidden, layer.order(phase), layer.tile.columns
    if r.array is not None:
        taken = [_rows(matrix, gates) for matrix in r.array.astype(layer.dtype.numpy, copy=False)]
        packed = np.swapaxes(np.stack(taken).reshape(layer.dirs, -1, columns, layer.hidden), 2, 3)
        return Packed(np.ascontiguousarray(packed, layer.dtype.numpy), "recurrent weights")
    rows = np.where(gates >= 0, gates + np.arange(layer.dirs)[:, None] * each, -1).reshape(-1)
    task, place = _arrange(r, layer.dtype, layer.hidden, columns, layer.lanes, rows)
    tasks.append(task)
    return place


def _rows(matrix: Array, places: Array) -> Array:
    """Rows of a matrix; zeros for -1."""
    taken = matrix[places]
    taken[places < 0] = 0
    return taken


def _arrange(source: Node, dtype: DType, depth: int, columns: int, lanes: int, *tables: Array) -> tuple[Task, TempPlace]:
    """Rows of a matrix [n, depth] that only the run knows as columns: [len(table) / columns, depth, columns]."""
    temp = TempPlace(Temp(len(tables[0]) * depth * dtype.nbytes, "arranged"))
    lists = [Packed(np.ascontiguousarray(np.where(t >= 0, t * depth, -1), np.int64), "order") for t in tables]
    block = columns if depth * columns <= ARRANGED else lanes
    args: tuple[TaskArg, ...] = (Place(source), temp, *lists, depth, columns, block)
    kernel = arrange_kernel(source.dtype, dtype, lanes, len(tables))
    return Task(kernel, args, (1,), len(tables[0]) // block, nbytes=2 * source.type.nbytes, label="arrange"), temp


@cache
def arrange_kernel(source: DType, dtype: DType, lanes: int, tables: int) -> Kernel:
    """A chunk is a block of columns of one panel, whole vectors.   tables: how many rows are added up for a column; an entry of -1 is none."""
    k = Builder("arrange")
    w, out = k.pointer("w", source), k.pointer("out", dtype)
    orders = [k.pointer(f"order{i}", i64) for i in range(tables)]
    depth, columns, block = k.integer("depth"), k.integer("columns"), k.integer("block")
    first = k.chunk * block
    panel = k.offset(out, quotient(k, first, columns) * columns * depth + modulo(k, first, columns))

    def one_by_one(column: Value, begin: Value) -> None:
        with k.loop(0, lanes) as lane:
            starts = [k.load(order, first + column + lane) for order in orders]
            with k.loop(begin, depth) as i:
                total = k.var(k.const(0.0, dtype))
                for start in starts:
                    with k.when(start >= 0):
                        total.set(total.get() + k.convert(k.load(w, start + i), dtype))
                k.store(total.get(), panel, i * columns + column + lane)

    def turned(column: Value) -> Value:
        """Squares of lanes, where no column is empty; gives how much of the depth they are."""
        starts = [k.load(orders[0], first + column + r) for r in range(lanes)]
        least = starts[0]
        for start in starts[1:]:
            least = k.minimum(least, start)
        whole = k.select(least >= 0, depth - modulo(k, depth, k.index(lanes)), k.index(0))
        with k.loop(0, whole, lanes) as i:
            rows = [k.convert(k.load(w, start + i, lanes), dtype) for start in starts]
            for r, vector in enumerate(transpose_block(k, rows)):
                k.store(vector, panel, (i + r) * columns + column)
        return whole

    with k.loop(0, block, lanes) as column:
        one_by_one(column, turned(column) if tables == 1 else k.index(0))
    return k.finish()


def _copy(x: TaskArg, y: TaskArg, source: DType, dtype: DType, rows: int, length: int, x_pitch: int, y_pitch: int) -> Task:
    """Rows of states in another type and with another pitch."""
    return Task(copy_kernel(source, dtype), (x, y, rows, length, x_pitch, y_pitch), (1,), label="state")


@cache
def copy_kernel(source: DType, dtype: DType) -> Kernel:
    """y[row, i] = x[row, i]."""
    k = Builder(f"copy_rows_{source}_{dtype}")
    x, y = k.pointer("x", source), k.pointer("y", dtype)
    rows, length, x_pitch, y_pitch = (k.integer(n) for n in ("rows", "length", "x_pitch", "y_pitch"))
    lanes = 8
    whole = length & ~(lanes - 1)
    with k.loop(0, rows) as row:
        a, b = k.offset(x, row * x_pitch), k.offset(y, row * y_pitch)
        with k.loop(0, whole, lanes) as i:
            k.store(k.convert(k.load(a, i, lanes), dtype), b, i)
        with k.loop(whole, length) as i:
            k.store(k.convert(k.load(a, i), dtype), b, i)
    return k.finish()
