"""Code of the walk over time: h r by the micro-kernel, panel by panel, then the gates of the panel's hidden units.

In: `Cell`, what the code depends on; sizes are arguments.  Out: `recurrent_kernel`; recurrent.py makes its tasks.

A step reads h from one buffer and writes the next h into the other, so that parts of the hidden units do not disturb each other.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from jumar.base import DType, i32, i64
from jumar.kernel import Builder, Kernel, Value
from jumar.operators.activation import Elu, HardSigmoid, LeakyRelu, Softplus, Softsign, ThresholdedRelu
from jumar.operators.cpu.epilogue import modulo, quotient
from jumar.operators.cpu.expression import compute_dtype, load, store
from jumar.operators.cpu.microkernel import Tile
from jumar.operators.cpu.tiles import cover, heights
from jumar.operators.elementwise import Relu, Sigmoid, Tanh
from jumar.operators.recurrent import Activation

# begin, end: steps of time; pitch, width: columns of x w in all and of one direction; state: elements of a buffer of states;
# bias: where in a direction's bias the recurrent part begins; base: where in a direction's columns the first phase does
NUMBERS = (
    "begin", "end", "seq", "batch", "hidden", "dirs", "padded", "pitch", "width", "rows_part", "row_parts", "unit_parts",
    "depth_block", "state", "bias", "base",
)  # fmt: skip


EXCESS = 6  # rows that tiles may cover beyond those that there are
NEAR = 1024  # elements ahead of a single row's stream of r that are fetched: the next tile is too far (512 units: a third slower)


@dataclass(frozen=True)
class Phase:
    """A product with a part of r.   gates: which; units: vectors of hidden units in a panel, each with all these gates."""

    gates: tuple[int, ...]
    units: int

    @property
    def vectors(self) -> int:
        return len(self.gates) * self.units

    def panels(self, hidden: int, lanes: int) -> int:
        return -(-hidden // (lanes * self.units))


def phases_of(kind: str, linear: bool, vectors: int) -> tuple[Phase, ...]:
    """The products of one step: a Gru's new gate waits for the reset gate, unless that comes after its product.

    vectors: of a register tile; a panel is whole tiles.

    >>> [p.vectors for p in phases_of("gru", False, 2)], [p.vectors for p in phases_of("gru", True, 2)]
    ([2, 2], [6])
    """
    every: tuple[tuple[int, ...], ...] = ((0, 1, 2, 3),) if kind == "lstm" else ((0,),)
    if kind == "gru":
        every = ((0, 1, 2),) if linear else ((0, 1), (2,))
    return tuple(Phase(gates, vectors // math.gcd(vectors, len(gates))) for gates in every)


@dataclass(frozen=True)
class Cell:
    """What the code depends on.   functions: one list of activations for all directions, or one for each; whole: all examples have all
    steps; ragged: the hidden units do not fill their vectors; kept: what a gradient reads of each step is written too.
    """

    kind: str
    linear: bool
    peepholes: bool
    input_forget: bool
    clip: float
    functions: tuple[tuple[Activation, ...], ...]
    dtype: DType
    whole: bool
    ragged: bool
    tile: Tile
    kept: bool = False

    @property
    def lanes(self) -> int:
        return self.tile.lanes

    @property
    def phases(self) -> tuple[Phase, ...]:
        return phases_of(self.kind, self.linear, self.tile.vectors)

    @property
    def memory(self) -> tuple[str, ...]:
        """Buffers that outlive a step, in the order of the arguments.   c: a Gru's update gate, while it waits for the new one."""
        if len(self.phases) > 1:
            return ("h", "c", "rh")
        return ("h", "c") if self.kind == "lstm" else ("h",)

    @property
    def keeps(self) -> tuple[str, ...]:
        """What is kept of each step, in the order of the arguments and of the layer's results."""
        if not self.kept:
            return ()
        return ("gates", "h before", *(("c before",) if self.kind == "lstm" else ()), *(("inner",) if self.linear else ()))

    def scratch_nbytes(self, rows: int) -> int:
        """Pointers to rows, then sums of a panel."""
        slots = rows + EXCESS
        return -(-slots // 8) * 64 + slots * max(p.vectors for p in self.phases) * self.tile.lanes * self.tile.dtype.nbytes


@cache
def recurrent_kernel(cell: Cell, phases: tuple[int, ...]) -> Kernel:
    """A chunk is a direction, a part of its examples, a part of its hidden units.   phases: which products of each step."""
    return _Walk(cell, phases).kernel()


@dataclass(frozen=True)
class _Spot:
    """Where one vector of hidden units of one example is.   old: its h; unit: the first one's number; sums, fed: of the first gate.

    moment: the number of the direction's, step's and example's row in what is kept.
    """

    sums: Value
    fed: Value
    old: Value
    at: Value
    unit: Value
    y: Value | None
    live: Value | None
    mask: Value | None
    moment: Value


class _Walk:
    """The kernel being written."""

    def __init__(self, cell: Cell, phases: tuple[int, ...]) -> None:
        k = self.k = Builder(f"{cell.kind}_walk")
        self.cell, self.chosen = cell, phases
        self.kind = compute_dtype(cell.dtype)
        self.full, self.small, self.one = (k.function_pointer(f"tile_{n}") for n in ("full", "small", "one"))
        self.panels = [k.pointer(f"r{i}", self.kind) for i in phases]
        self.fed, self.backward = k.pointer("fed", self.kind), k.pointer("backward", i64)
        self.memory = {name: k.pointer(name, self.kind) for name in cell.memory}
        self.final = len(cell.phases) - 1 in phases
        self.y = k.pointer("y", cell.dtype) if self.final else None
        self.kept = {name: k.pointer(name.replace(" ", "_"), self.kind) for name in cell.keeps}
        self.lengths = None if cell.whole else k.pointer("lengths", i32)
        self.bias = k.pointer("bias_of_all", cell.dtype) if cell.linear else None
        self.peepholes = k.pointer("peepholes", cell.dtype) if cell.peepholes else None
        self.n = {name: k.integer(name) for name in NUMBERS}
        self.units = [(k.integer(f"panels{i}"), k.integer(f"panels_part{i}")) for i in phases]
        self.scratch = k.thread_scratch("scratch", 0, self.kind)

    def kernel(self) -> Kernel:
        k, n = self.k, self.n
        part, rest = modulo(k, k.chunk, n["unit_parts"]), quotient(k, k.chunk, n["unit_parts"])
        row_part, self.direction = modulo(k, rest, n["row_parts"]), quotient(k, rest, n["row_parts"])
        first = row_part * n["rows_part"]
        rows = k.minimum(n["rows_part"], n["batch"] - first)
        slots = rows + EXCESS
        self.table = k.cast_pointer(self.scratch, i64)
        self.sums = k.offset(self.scratch, ((slots + 7) & ~7) * (8 // self.kind.nbytes))
        self.state_at = (self.direction * n["batch"] + first) * n["padded"]
        turned = k.load(self.backward, self.direction) != 0
        if self.peepholes is not None:
            self.peepholes = k.offset(self.peepholes, self.direction * n["hidden"] * 3)
        if self.bias is not None:
            self.bias = k.offset(self.bias, self.direction * n["bias"] * 2 + n["bias"] + n["hidden"] * 2)
        with k.loop(n["begin"], n["end"]) as t:
            now = (t & 1) * n["state"] + self.state_at
            self.old = k.offset(self.memory["h"], now)
            self.new = k.offset(self.memory["h"], n["state"] * (1 - (t & 1)) + self.state_at)
            base = n["base"]
            for i, number in enumerate(self.chosen):
                phase = self.cell.phases[number]
                source = k.offset(self.memory["rh"], self.state_at) if number else self.old
                panels, panels_part = self.units[i]
                low = part * panels_part
                fulls, smalls = self.pointers(source, rows)
                where = (t, turned, first, rows)
                with k.loop(low, k.minimum(low + panels_part, panels)) as panel:
                    self.product(i, phase, panel, panels, rows, fulls, smalls)
                    self.finish(number, phase, panel, base, where)
                base = base + panels * (phase.vectors * self.cell.lanes)
        return k.finish()

    # ------------------------------------------------------------------ h r
    def pointers(self, source: Value, rows: Value) -> tuple[Value, Value]:
        """Writes the table of rows; gives how many full and small tiles cover them."""
        k = self.k
        fulls, smalls = cover(k, rows, self.cell.tile)
        with k.loop(0, fulls * self.cell.tile.rows + smalls * self.cell.tile.small) as i:
            k.store_pointer(k.offset(source, k.minimum(i, rows - 1) * self.n["padded"]), self.table, i)
        return fulls, smalls

    def product(self, i: int, phase: Phase, panel: Value, panels: Value, rows: Value, fulls: Value, smalls: Value) -> None:
        """Sums of one panel, for all rows, in scratch: tile by tile of columns."""
        k, n, tile = self.k, self.n, self.cell.tile
        pitch = phase.vectors * tile.lanes
        r = k.offset(self.panels[i], (self.direction * panels + panel) * n["hidden"] * pitch)
        with k.loop(0, phase.vectors // tile.vectors) as part:
            half = k.offset(r, part * tile.columns * n["hidden"])
            sums = k.offset(self.sums, part * tile.columns)
            with k.loop(0, n["hidden"], n["depth_block"]) as start:
                depth = k.minimum(n["depth_block"], n["hidden"] - start)
                add = k.select(start > 0, k.index(1), k.index(0))
                b = k.offset(half, start * tile.columns)
                ahead = k.offset(b, depth * tile.columns)
                with k.when(rows == 1):
                    k.call(self.one, self.table, 1, start, depth, b, sums, pitch, add, k.offset(b, NEAR))
                with k.otherwise():
                    for function, (height, base, count) in zip((self.full, self.small), heights(k, tile, fulls, smalls), strict=True):
                        with k.loop(0, count) as at:
                            row = base + at * height
                            k.call(function, k.offset(self.table, row), 1, start, depth, b, k.offset(sums, row * pitch), pitch, add, ahead)

    # ------------------------------------------------------------------ gates
    def finish(self, number: int, phase: Phase, panel: Value, base: Value, where: tuple[Value, Value, Value, Value]) -> None:
        """What the sums of a panel make of its hidden units."""
        k, n, lanes = self.k, self.n, self.cell.lanes
        t, turned, first, rows = where
        columns = phase.vectors * lanes
        with k.loop(0, rows) as row:
            example = first + row
            live, last = None, n["seq"]
            if self.lengths is not None:
                last = k.minimum(k.convert(k.load(self.lengths, example), i64), n["seq"])
                live = t < last
            # a backward run of a shorter sequence begins at its own last step
            turns = turned if live is None else turned & live
            time = k.select(turns, last - 1 - t, t)
            step = time * n["batch"] + example
            fed = k.offset(self.fed, step * n["pitch"] + self.direction * n["width"] + base + panel * columns)
            result = None
            if self.y is not None:
                result = k.offset(self.y, ((time * n["dirs"] + self.direction) * n["batch"] + example) * n["hidden"])
            moment = (self.direction * n["seq"] + time) * n["batch"] + example
            for u in range(phase.units):
                unit, skip = (panel * phase.units + u) * lanes, u * len(phase.gates) * lanes
                mask = k.lane_mask(n["hidden"] - unit, lanes) if self.cell.ragged or phase.units > 1 else None
                sums = k.offset(self.sums, row * columns + skip)
                spot = _Spot(sums, k.offset(fed, skip), self.old, row * n["padded"] + unit, unit, result, live, mask, moment)
                self.gates(number, spot)

    def gates(self, number: int, spot: _Spot) -> None:
        """The cell, for each list of activations that a direction may have."""
        k, lists = self.k, self.cell.functions
        if len(lists) == 1:
            self.cell_of(number, spot, lists[0])
            return
        for i, functions in enumerate(lists):
            with k.when(self.direction == i):
                self.cell_of(number, spot, functions)

    def cell_of(self, number: int, spot: _Spot, activations: Sequence[Activation]) -> None:
        functions = [self.function(a) for a in activations]
        match self.cell.kind, self.cell.linear, number:
            case "lstm", _, _:
                self.lstm(spot, functions)
            case "gru", True, _:
                self.gru_linear(spot, functions)
            case "gru", False, 0:
                self.gru_reset(spot, functions)
            case "gru", False, _:
                self.gru_new(spot, functions)
            case _:
                self.keep("h before", spot, self.k.load(spot.old, spot.at, self.cell.lanes))
                self.put(spot, self.gate(spot, 0, self.total(spot, 0), functions[0]))

    def sum(self, spot: _Spot, gate: int) -> Value:
        return self.k.load(spot.sums, gate * self.cell.lanes, self.cell.lanes, aligned=True)

    def fed_of(self, spot: _Spot, gate: int) -> Value:
        return self.k.load(spot.fed, gate * self.cell.lanes, self.cell.lanes)

    def total(self, spot: _Spot, gate: int) -> Value:
        return self.sum(spot, gate) + self.fed_of(spot, gate)

    def buffer(self, name: str) -> Value:
        return self.k.offset(self.memory[name], self.state_at)

    def weights(self, pointer: Value, spot: _Spot, offset: Value | int) -> Value:
        """One number for each hidden unit."""
        return load(self.k, pointer, spot.unit + offset, self.cell.lanes, spot.mask)

    def put(self, spot: _Spot, h: Value) -> None:
        """The next h, into the states and the result."""
        k, lanes = self.k, self.cell.lanes
        y = h
        if spot.live is not None:
            y = k.select(spot.live, h, k.const(0.0, self.kind, lanes))
            h = k.select(spot.live, h, k.load(spot.old, spot.at, lanes))
        k.store(h, self.new, spot.at)
        assert spot.y is not None, "the last phase has the result"
        store(k, y, spot.y, spot.unit, spot.mask)

    def keep(self, name: str, spot: _Spot, value: Value, gate: int = 0) -> None:
        """A value that a gradient will read; zero where the example has no such step."""
        if name not in self.kept:
            return
        if spot.live is not None:
            value = self.k.select(spot.live, value, self.k.const(0.0, self.kind, self.cell.lanes))
        width = self.n["bias"] if name == "gates" else self.n["hidden"]
        self.k.store(value, self.kept[name], spot.moment * width + self.n["hidden"] * gate + spot.unit, spot.mask)

    def gate(self, spot: _Spot, number: int, value: Value, function: Callable[[Value], Value]) -> Value:
        """A gate of what goes into its activation, which is kept."""
        self.keep("gates", spot, value, number)
        return function(value)

    def lstm(self, spot: _Spot, functions: Sequence[Callable[[Value], Value]]) -> None:
        k, cell, lanes = self.k, self.cell, self.cell.lanes
        f, g, out = functions
        cells = self.buffer("c")
        c = k.load(cells, spot.at, lanes)

        def peep(gate: int, hole: int, state: Value) -> Value:
            value = self.total(spot, gate)
            if self.peepholes is None:
                return value
            return k.fma(self.weights(self.peepholes, spot, self.n["hidden"] * hole), state, value)

        self.keep("h before", spot, k.load(spot.old, spot.at, lanes))
        self.keep("c before", spot, c)
        gate, other = self.gate(spot, 0, peep(0, 0, c), f), peep(2, 2, c)
        forget = self.gate(spot, 2, other, (lambda _: 1.0 - gate) if cell.input_forget else f)
        new = k.fma(forget, c, gate * self.gate(spot, 3, self.total(spot, 3), g))
        h = self.gate(spot, 1, peep(1, 1, new), f) * out(new)
        k.store(new if spot.live is None else k.select(spot.live, new, c), cells, spot.at)
        self.put(spot, h)

    def gru_linear(self, spot: _Spot, functions: Sequence[Callable[[Value], Value]]) -> None:
        k = self.k
        f, g = functions
        assert self.bias is not None, "linear_before_reset reads the bias"
        z, reset = (self.gate(spot, i, self.total(spot, i), f) for i in range(2))
        own = self.sum(spot, 2) + self.weights(self.bias, spot, 0)
        self.keep("h before", spot, k.load(spot.old, spot.at, self.cell.lanes))
        self.keep("inner", spot, own)
        self.blend(spot, z, self.gate(spot, 2, k.fma(reset, own, self.fed_of(spot, 2)), g))

    def gru_reset(self, spot: _Spot, functions: Sequence[Callable[[Value], Value]]) -> None:
        k, f = self.k, functions[0]
        k.store(self.gate(spot, 0, self.total(spot, 0), f), self.buffer("c"), spot.at)
        h = k.load(spot.old, spot.at, self.cell.lanes)
        self.keep("h before", spot, h)
        k.store(self.gate(spot, 1, self.total(spot, 1), f) * h, self.buffer("rh"), spot.at)

    def gru_new(self, spot: _Spot, functions: Sequence[Callable[[Value], Value]]) -> None:
        self.blend(spot, self.k.load(self.buffer("c"), spot.at, self.cell.lanes), self.gate(spot, 2, self.total(spot, 0), functions[1]))

    def blend(self, spot: _Spot, z: Value, new: Value) -> None:
        h = self.k.load(spot.old, spot.at, self.cell.lanes)
        self.put(spot, self.k.fma(z, h - new, new))

    def function(self, activation: Activation) -> Callable[[Value], Value]:
        """The code of an activation, its input clipped."""
        return lambda x: activated(self.k, activation, clipped(self.k, x, self.cell.clip))


def clipped(k: Builder, x: Value, bound: float) -> Value:
    """x within -bound..bound, where there is a bound."""
    return k.clamp(x, -bound, bound) if bound > 0 else x


def activated(k: Builder, activation: Activation, x: Value) -> Value:
    """An activation's value."""
    name, alpha, beta = activation
    match name:
        case "Affine":
            return x * alpha + beta
        case "ScaledTanh":
            scaled: Value = Tanh().compute(k, x * beta)
            return scaled * alpha
    table: dict[str, Any] = {
        "Relu": Relu(), "Tanh": Tanh(), "Sigmoid": Sigmoid(), "LeakyRelu": LeakyRelu(alpha), "ThresholdedRelu": ThresholdedRelu(alpha),
        "HardSigmoid": HardSigmoid(alpha, beta), "Elu": Elu(alpha), "Softsign": Softsign(), "Softplus": Softplus(),
    }  # fmt: skip
    value: Value = table[name].compute(k, x)
    return value
