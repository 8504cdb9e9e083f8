"""Gradients of recurrent layers: r in panels, then the walk back over time.

In: LstmGrad, GruGrad, RnnGrad nodes.  Out: tasks: r as columns for what comes back to h (the rows that the forward walk reads as
columns), and the walk (recurrent_grad_kernel.py), cut as the forward one is (recurrent.py).
"""

from __future__ import annotations

import itertools

import numpy as np

from jumar.device import Target
from jumar.ir import Node
from jumar.operators.cpu.blocking import DEPTH
from jumar.operators.cpu.expression import compute_dtype
from jumar.operators.cpu.matmul import micro_kernels
from jumar.operators.cpu.microkernel import Tile, micro_kernel, register_tile
from jumar.operators.cpu.packing import pack_panels
from jumar.operators.cpu.prepare import pack_task
from jumar.operators.cpu.recurrent import ONE_SPLITS, Layer, unit_parts
from jumar.operators.cpu.recurrent_grad_kernel import SIZES, Product, back_kernel, products_of, scratch_nbytes
from jumar.operators.cpu.recurrent_kernel import Cell
from jumar.operators.recurrent import Gru, Lstm
from jumar.operators.recurrent_grad import GruGrad, LstmGrad, RecurrentGrad, RnnGrad
from jumar.operators.schedule import Lowered, Packed, Place, Task, TaskArg, Temp, TempPlace, schedule


@schedule("cpu", LstmGrad, GruGrad, RnnGrad)
def lower_recurrent_grad(node: Node, target: Target) -> Lowered | None:
    """The tasks of a gradient; None for what has no elements, or no floats."""
    op = node.op
    assert isinstance(op, RecurrentGrad), "registered for gradients of recurrent layers"
    layer, first = op.layer, 1 + op.layer.states
    dy, lasts = node.inputs[0], node.inputs[1:first]
    kept, (r, lengths, *more) = node.inputs[first : first + len(op.reads)], node.inputs[first + len(op.reads) :]
    if not dy.dtype.is_float or dy.type.size == 0:
        return None
    dtype = compute_dtype(dy.dtype)
    tile = register_tile(target, dtype)
    seq, dirs, batch, hidden = dy.shape
    linear = isinstance(layer, Gru) and layer.linear_before_reset
    products = products_of(layer.name, linear)
    tasks: list[Task] = []
    panels = [_panels(r, p, layer.gates, hidden, dirs, tile, tasks) for p in products]
    count = -(-hidden // tile.columns)
    cell = _cell(node, linear, tile)
    row_parts = min(batch, -(-target.cores // dirs))
    shape = Layer(seq, batch, 0, hidden, dirs, layer.gates, dtype, (), tile)
    parts = unit_parts(shape, dirs * row_parts, target)
    rows_part = batch if parts else -(-batch // row_parts)
    row_parts = -(-batch // rows_part)
    panels_part = -(-count // max(1, parts))
    micro = (*micro_kernels(tile), micro_kernel(tile.with_rows(1, ONE_SPLITS)))
    backward = Packed(np.array(op.backward, np.int64), "backward")
    carry = [TempPlace(Temp(dirs * batch * count * tile.columns * dtype.nbytes, "carry"))] if cell.kind != "rnn" else []
    results = [Place(node, 0, i) for i in range(first + layer.inner)]
    every = tuple(range(len(products)))
    for begin, chosen in itertools.product(range(seq + 1), [(i,) for i in every]) if parts else ((0, every),):
        end = begin + 1 if parts else seq + 1
        if end > seq and chosen == (1,):
            continue  # before the first step nothing is left for the second product
        head: list[TaskArg] = [*micro, *(panels[i] for i in chosen), backward]
        written: list[TaskArg] = [*results, *carry]
        read: list[TaskArg] = [Place(n) for n in (dy, *lasts, *kept, *(more if layer.inner else ()))]
        read += [*(() if cell.whole else (Place(lengths),)), *(Place(p) for p in (() if layer.inner else more))]
        numbers = {
            "begin": begin, "end": end, "seq": seq, "batch": batch, "hidden": hidden, "dirs": dirs, "gates": layer.gates * hidden,
            "padded": count * tile.columns, "rows_part": rows_part, "row_parts": row_parts, "unit_parts": -(-count // panels_part),
            "panels": count, "panels_part": panels_part, "depth_block": layer.gates * hidden if rows_part == 1 else DEPTH,
        }  # fmt: skip
        tasks.append(Task(
            back_kernel(cell, chosen), (*head, *written, *read, *(numbers[name] for name in SIZES)),
            tuple(range(len(head), len(head) + len(written))), dirs * row_parts * numbers["unit_parts"],
            scratch_nbytes=scratch_nbytes(cell, rows_part), flops=shape.step_flops * (end - begin), label=op.name,
        ))  # fmt: skip
    return Lowered(tuple(tasks))


def _cell(node: Node, linear: bool, tile: Tile) -> Cell:
    """What the code of the walk depends on."""
    op = node.op
    assert isinstance(op, RecurrentGrad), "a gradient of a recurrent layer"
    layer, dy = op.layer, node.inputs[0]
    lengths = node.inputs[2 + layer.states + len(op.reads)]
    whole = lengths.array is not None and bool((lengths.array >= dy.shape[0]).all())
    count = len(layer.functions)
    functions = tuple(layer.activations[i : i + count] for i in range(0, len(layer.activations), count))
    holes = isinstance(layer, Lstm) and len(node.inputs) > 3 + layer.states + len(op.reads)
    return Cell(
        layer.name, linear, holes, isinstance(layer, Lstm) and layer.input_forget, layer.clip,
        functions[:1] if len(set(functions)) == 1 else functions, dy.dtype, whole, dy.shape[3] % tile.columns != 0, tile,
    )  # fmt: skip


def _panels(r: Node, product: Product, gates: int, hidden: int, dirs: int, tile: Tile, tasks: list[Task]) -> TaskArg:
    """The rows of r of some gates as a matrix [gates * hidden, hidden] in panels, for each direction."""
    depth = product.gates * hidden
    if r.array is not None:
        rows = r.array[:, product.first * hidden : product.first * hidden + depth]
        return Packed(pack_panels(rows.astype(tile.dtype.numpy, copy=False), tile), "recurrent weights")
    places = (np.arange(dirs, dtype=np.int64) * gates + product.first) * (hidden * hidden)
    task, panels = pack_task(Place(r), r.dtype, tile, places, depth, hidden, hidden)
    tasks.append(task)
    return panels
