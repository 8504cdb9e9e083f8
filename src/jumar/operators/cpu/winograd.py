"""Winograd's convolution: 3x3 filters at stride 1 or 2 with 1.4 to 4 times fewer products.

In: a group whose root is such a Conv (or the gradient of one's input), channels last.  Out: tasks, or None where the direct way is faster.
Filters are transformed at compile time where they are constant, else in each run.

A tile of m x m outputs needs a square of inputs: its transform V has as many positions, each position is a matrix product of all tiles
with transformed filters U, and M = V U is transformed back (winograd_transform.py).
Two ways.  `together`: a chunk takes some tiles through all three steps, V and M stay in its scratch, in L2; for many tiles.
`apart`: V is made first, by a task of its own; then a chunk takes some tiles and some panels of filters, so that each weight is read
once or nearly; for few tiles.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from jumar.base import Array, Option, Question, choose, config, f32
from jumar.device import Target
from jumar.operators.cpu.conv import Geometry
from jumar.operators.cpu.filters import Filters, packed_filters
from jumar.operators.cpu.matmul import micro_kernels, writing_task
from jumar.operators.cpu.microkernel import Tile, register_tile
from jumar.operators.cpu.packing import pack_panels
from jumar.operators.cpu.root import RootGroup, matrix_axes
from jumar.operators.cpu.winograd_kernel import PAD, Tails, chunk_kernel, filter_kernel, input_kernel, input_patch, scratch_of
from jumar.operators.cpu.winograd_transform import Form
from jumar.operators.schedule import Lowered, Packed, Task, TaskArg, Temp, TempPlace


@dataclass(frozen=True)
class Plan:
    """A way to do it.   block: tiles of a chunk; panels: panels of filters of a chunk where V is made apart, else 0."""

    form: Form
    block: int
    panels: int = 0


def suits(g: Geometry) -> bool:
    """Whether the convolution has Winograd's form."""
    return (
        len(g.spatial) == 2
        and g.kernel == (3, 3)
        and g.strides in ((1, 1), (2, 2))
        and set(g.dilations) == {1}
        and g.groups == 1
        and g.inner >= 8
        and g.filters >= 8
        and min(g.out) >= 2
    )


# ---------------------------------------------------------------------- choice
# cycles of a core, fitted on a Zen 5 (AVX-512, 2 cores) to 50 layers of ResNet, YOLO, U-Net and PP-OCR, some 25 plans each, with warm and with
# cold weights: the best plans are foreseen to 13 %, and what is chosen takes 6 % longer than the best.  A vector of 8 took as many on a Zen 3.
CYCLES_IN = {(1, 2): 40, (1, 4): 210, (2, 2): 50, (2, 4): 550}  # of a tile's transform for one vector of channels, by stride and m
CYCLES_OUT = {(1, 2): 35, (1, 4): 105, (2, 2): 30, (2, 4): 250}  # the epilogue's simplest form counted
TRANSFORM = {2: 10, 4: 22}  # of one filter of one channel, which is mostly the writing of its positions
CALL = 40  # of a tile of products, besides them
STEP, CHUNK = 4500, 4000  # a task more, a chunk more
EFFICIENCY, DIRECT_EFFICIENCY = 0.95, 0.93  # of the products
DRAM, L3 = 0.4, 1.3  # bytes per cycle, core and lane when all cores read: memory is as fast as the vectors are wide
FIRST, EXPOSED = 0.75, 0.16  # parts of the reading of weights that show: from memory, once a run; from L3, by each chunk
APART = 0.5  # of the reading of V by each panel
SPILL = 10.0  # bytes per cycle of V and M where they leave L2


def choose_plan(g: Geometry, tile: Tile, target: Target, made: bool = False) -> Plan | None:
    """The fastest way, as measured (`jumar tune`) or by a model of cycles; None for the direct convolution.   made: filters are transformed
    in each run."""
    found = candidates(g, tile, target, made)
    stride = g.strides[0]
    facts = f"{g.n} x {g.channels} x {' x '.join(map(str, g.spatial))} to {g.filters}, stride {stride}, pads {g.low} {g.high}{', filters made' if made else ''}"
    expected = _option(min(found, key=lambda c: c[0])[1])
    m, block, panels = choose(
        Question("winograd", facts, target.machine), expected, lambda: [_option(plan) for _, plan in sorted(found, key=lambda c: c[0])[:MEASURED]], _tell
    )  # fmt: skip
    return Plan(Form(m, stride), block, panels) if m else None


MEASURED = 8  # plans that `jumar tune` tries: the ones of which the model expects most


def _option(plan: Plan | None) -> Option:
    return (plan.form.m, plan.block, plan.panels) if plan else (0, 0, 0)


def _tell(option: Option) -> str:
    m, block, panels = option
    if not m:
        return "direct"
    return f"F({m} x {m}), {block} tiles" + (f", {panels} panels, inputs apart" if panels else "")


def candidates(g: Geometry, tile: Tile, target: Target, made: bool = False) -> list[tuple[float, Plan | None]]:
    """Ways to do it, with the cycles that the model expects; None: the direct convolution."""
    weights = 36 * g.inner * g.filters / (DRAM * tile.lanes)
    direct = (9 * g.inner * _padded(g, tile) * g.rows / (2 * tile.lanes) / DIRECT_EFFICIENCY + weights) / target.cores
    found: list[tuple[float, Plan | None]] = [(0.95 * direct, None)]
    for m in (2, 4):
        form = Form(m, g.strides[0])
        tiles, panels = tile_count(g, m), -(-g.filters // tile.columns)
        shares = {tile.covered(-(-tiles // (target.cores * parts))) for parts in range(1, 5)}
        blocks = sorted({*(tile.rows * i for i in (1, 2, 3, 4, 6, 8)), *(s for s in shares if s <= 12 * tile.rows)})
        each = 4 * form.positions * (g.inner + tile.columns)  # bytes of V and M for a tile
        plans = [Plan(form, block) for block in blocks if block == tile.rows or block * each <= 1.5 * target.l2_nbytes]
        if 4 * form.positions * tiles * g.inner <= max(target.l3_nbytes // 2, 8 << 20):
            heights = {min(tiles, tile.rows * i) for i in (2, 4, 8)}
            plans += [Plan(form, block, p) for block in sorted(heights) for p in (1, 2, 4) if p <= panels]
        more = TRANSFORM[m] * g.inner * _padded(g, tile) / target.cores if made else 0.0
        found += [(cycles(g, plan, tile, target) + more, plan) for plan in plans]
    return found


def cycles(g: Geometry, plan: Plan, tile: Tile, target: Target) -> float:
    """Estimated cycles of a plan, all cores at work."""
    form, lanes, cores = plan.form, tile.lanes, target.cores
    key = (form.stride, form.m)
    tiles, panels = tile_count(g, form.m), -(-g.filters // tile.columns)
    weights = 4 * form.unlike**2 * g.inner * panels * tile.columns
    v = 4 * form.positions * g.inner  # bytes of a tile
    inward, outward = CYCLES_IN[key] * math.ceil(g.inner / lanes), CYCLES_OUT[key] * math.ceil(g.filters / lanes)
    near = L3 * lanes
    far = near if weights <= max(target.l3_nbytes // 2, 8 << 20) else DRAM * lanes

    def products(count: int, panels: int) -> float:
        fmas = tile.covered(count) * g.inner * tile.vectors / 2 / EFFICIENCY
        return form.positions * panels * (fmas + CALL * math.ceil(count / tile.rows) * math.ceil(g.inner / DEPTH))

    held = plan.block * (v + 4 * form.positions * tile.columns)
    kept = weights + held <= target.l2_nbytes  # weights stay in L2 from chunk to chunk
    spilled = v * (1 + 0.5 * panels) / near if held > 0.8 * target.l2_nbytes else 0.0  # V is written beyond L2, and read for each panel
    loads: list[float] = [0.0] * cores  # chunks go to whoever is free
    wide = plan.panels or panels
    for first in range(0, panels, wide):
        part = min(wide, panels - first) / panels
        for at in range(0, tiles, plan.block):
            count = min(plan.block, tiles - at)
            reading = 0.0 if kept and not plan.panels else weights * part / far
            rest = CHUNK + count * (outward * part + (APART * v * wide / near if plan.panels else inward + spilled))
            loads[loads.index(min(loads))] += max(products(count, panels) * part, reading) + EXPOSED * reading + rest
    before = tiles * (inward + v / near) / cores + STEP if plan.panels else 0.0
    shared = 1.0 if plan.panels else 1.5  # all cores read all weights, not always the ones that another core has just fetched
    cold = FIRST * shared * weights / (DRAM * lanes) / cores if far == near else 0.0
    return max(loads) + before + cold


def tile_count(g: Geometry, m: int) -> int:
    return g.n * math.prod(-(-o // m) for o in g.out)


def _tails(g: Geometry, tile: Tile) -> Tails:
    return g.inner % tile.lanes > 0, g.filters % tile.lanes > 0


def _padded(g: Geometry, tile: Tile) -> int:
    return -(-g.filters // tile.columns) * tile.columns


# ---------------------------------------------------------------------- weights
def transform_filters(w: Array, filters: Filters, form: Form, tile: Tile) -> Array:
    """-> [panels, positions, channels, columns].   Packed first, so that one matrix product for each panel does the rest."""
    taps = pack_panels(filters.matrix(w).reshape(9, filters.channels, filters.filters), tile)
    both = np.kron(form.filters, form.filters).astype(tile.dtype.numpy)
    _, panels, *rest = taps.shape
    found = np.empty((panels, len(both), *rest), taps.dtype)
    for panel in range(panels):
        np.matmul(both, taps[:, panel].reshape(9, -1), out=found[panel].reshape(len(both), -1))
    return found


def transformed_filters(group: RootGroup, filters: Filters, form: Form, tile: Tile, tasks: list[Task]) -> TaskArg:
    """Where they are: a constant, or what tasks make in each run."""
    w = group.root.inputs[1]
    value = group.array(w)
    if value is not None:
        return Packed(transform_filters(value, filters, form, tile), "winograd filters")
    packed = packed_filters(group.place(w), None, w.dtype, filters, tile, tasks)
    panels = -(-filters.filters // tile.columns)
    temp = TempPlace(Temp(form.unlike**2 * panels * filters.channels * tile.columns * tile.dtype.nbytes, "winograd filters"))
    block = max(1, min(filters.channels, 512 // tile.columns))
    blocks = math.ceil(filters.channels / block)
    args = (packed, temp, filters.channels, block, blocks)
    nbytes = temp.temp.nbytes * 5 // 4
    tasks.append(Task(filter_kernel(form, tile), args, (1,), panels * blocks, nbytes=nbytes, label="winograd filters"))
    return temp


# ---------------------------------------------------------------------- tasks
def lower_winograd(
    group: RootGroup, g: Geometry, x: TaskArg, filters: Filters, target: Target, plan: Plan | None = None
) -> Lowered | None:  # fmt: skip
    """The tasks; None where this is not the way.   plan: to take that one, whatever the model says."""
    if not config("winograd") or group.root.dtype is not f32 or not suits(g):
        return None
    tile = register_tile(target, f32)
    plan = plan or choose_plan(g, tile, target, group.array(group.root.inputs[1]) is None)
    layout = group.layout(matrix_axes(1, g.rows, g.filters), tile.lanes)
    if plan is None or layout is None:
        return None
    tasks: list[Task] = []
    form = plan.form
    weights = transformed_filters(group, filters, form, tile, tasks)
    places = Packed(np.array([[0, 0, *(int(o[0]) for o in layout.offsets)]], np.int64), "places")
    if plan.panels:
        task, x = input_task(g, form, tile, target, x)
        tasks.append(task)
    panels = -(-g.filters // tile.columns)
    panel_block = plan.panels or panels
    scratch = scratch_of(form, tile, g.inner, plan.block, 0 if plan.panels else g.inner)
    sizes = _size_args(g, form, plan.block, panel_block)
    head = (
        *micro_kernels(tile), x, weights, _zeros(g, tile), places, *sizes, scratch.tables, scratch.rows, scratch.patch, scratch.v, scratch.products
    )  # fmt: skip
    kernel = chunk_kernel(form, tile, layout.epilogue, _tails(g, tile), plan.panels > 0)
    chunks = math.ceil(tile_count(g, form.m) / plan.block) * math.ceil(panels / panel_block)
    return Lowered((*tasks, writing_task(group, layout, kernel, head, chunks, scratch.size * tile.dtype.nbytes)))


def input_task(g: Geometry, form: Form, tile: Tile, target: Target, x: TaskArg) -> tuple[Task, TempPlace]:
    """V of all tiles, [positions, tiles, channels], positions `PAD` elements further apart; and where it is."""
    tiles = tile_count(g, form.m)
    block = max(1, tiles // (4 * target.cores))
    v = TempPlace(Temp(4 * form.positions * (tiles * g.inner + PAD), "winograd inputs"))
    args = (x, v, _zeros(g, tile), *_size_args(g, form, block, 1))
    nbytes = 4 * g.n * math.prod(g.spatial) * g.channels + v.temp.nbytes
    scratch = (input_patch(form, tile) + form.positions * g.inner) * tile.dtype.nbytes
    kernel = input_kernel(form, tile, _tails(g, tile))
    return Task(kernel, args, (1,), math.ceil(tiles / block), scratch_nbytes=scratch, nbytes=nbytes, label="winograd input"), v


def _zeros(g: Geometry, tile: Tile) -> Packed:
    return Packed(np.zeros(-(-g.inner // tile.lanes) * tile.lanes, tile.dtype.numpy), "zeros")


def _size_args(g: Geometry, form: Form, block: int, panel_block: int) -> tuple[int, ...]:
    """In the order of winograd_kernel.SIZES."""
    tiles_y, tiles_x = (-(-o // form.m) for o in g.out)
    tiles = g.n * tiles_y * tiles_x
    depth_block = -(-g.inner // math.ceil(g.inner / DEPTH) // 4) * 4
    return (tiles, tiles_y, tiles_x, *g.spatial, *g.low, *g.out, g.inner, g.filters, block, -(-tiles // block), panel_block, depth_block)


DEPTH = 256  # channels at a time: their part of a panel of filters stays in L1
