"""Code of the walk back over time: what the gates of the next step received times r, panel by panel, then the gates of this step.

In: `Cell` (recurrent_kernel.py), sizes as arguments.  Out: `back_kernel`; recurrent_grad.py makes its tasks.

Round s stands for step seq - 1 - s; round seq comes before the first step and gives what the first states receive.  What a round reads of the
one before is what all gates of a step received, so that parts of the hidden units need to wait for each other once a round.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, partial

from jumar.base import i32, i64
from jumar.kernel import Builder, Kernel, Value, math
from jumar.operators.cpu.epilogue import modulo, quotient
from jumar.operators.cpu.expression import compute_dtype, load, store
from jumar.operators.cpu.recurrent_kernel import EXCESS, NEAR, Cell, activated, clipped
from jumar.operators.cpu.tiles import cover, heights
from jumar.operators.recurrent import Activation

# begin, end: rounds; gates: gates * hidden; padded: hidden units in whole panels, of which the memory of a row has as many
SIZES = (
    "begin", "end", "seq", "batch", "hidden", "dirs", "gates", "padded", "rows_part", "row_parts", "unit_parts", "panels", "panels_part",
    "depth_block",
)  # fmt: skip


@dataclass(frozen=True)
class Product:
    """What is multiplied by rows of r in a round.   first, gates: gates' rows of r; here: received in this step, not in the next one."""

    first: int
    gates: int
    here: bool = False


def products_of(kind: str, linear: bool) -> tuple[Product, ...]:
    """The products of a round: a Gru's new gate sends something through the reset gate, unless that comes after its product."""
    if kind == "gru" and not linear:
        return (Product(0, 2), Product(2, 1, here=True))
    return (Product(0, {"lstm": 4, "gru": 3, "rnn": 1}[kind]),)


def scratch_nbytes(cell: Cell, rows: int) -> int:
    """Pointers to rows, then sums of a panel."""
    slots = rows + EXCESS
    return -(-slots // 8) * 64 + slots * cell.tile.columns * cell.tile.dtype.nbytes


@cache
def back_kernel(cell: Cell, products: tuple[int, ...]) -> Kernel:
    """A chunk is a direction, a part of its examples, a part of its hidden units.   products: which of each round."""
    return _Back(cell, products).kernel()


@dataclass(frozen=True)
class _Spot:
    """Where one vector of hidden units of one example is.   unit: the first one's number; moment: the row of this step in what was kept."""

    sums: Value
    unit: Value
    moment: Value
    y: Value
    state: Value
    at: Value
    live: Value | None
    ended: Value
    mask: Value | None


class _Back:
    """The kernel being written."""

    def __init__(self, cell: Cell, chosen: tuple[int, ...]) -> None:
        k = self.k = Builder(f"{cell.kind}_back")
        self.cell, self.chosen = cell, chosen
        self.kind = compute_dtype(cell.dtype)
        self.full, self.small, self.one = (k.function_pointer(f"tile_{n}") for n in ("full", "small", "one"))
        self.panels = [k.pointer(f"r{i}", self.kind) for i in chosen]
        self.backward = k.pointer("backward", i64)
        states = 2 if cell.kind == "lstm" else 1
        self.received = k.pointer("received", self.kind)
        self.firsts = [k.pointer(f"first{i}", cell.dtype) for i in range(states)]
        self.down = k.pointer("down", self.kind) if cell.linear else self.received
        self.carry = k.pointer("carry", self.kind) if cell.kind != "rnn" else None
        self.dy = k.pointer("dy", cell.dtype)
        self.lasts = [k.pointer(f"last{i}", cell.dtype) for i in range(states)]
        self.gates = k.pointer("inside", self.kind)
        self.state = k.pointer("state", self.kind) if cell.kind != "rnn" else None
        self.inner = k.pointer("inner", self.kind) if cell.linear else None
        self.lengths = None if cell.whole else k.pointer("lengths", i32)
        self.peepholes = k.pointer("peepholes", cell.dtype) if cell.peepholes else None
        self.n = {name: k.integer(name) for name in SIZES}
        self.scratch = k.thread_scratch("scratch", 0, self.kind)

    def kernel(self) -> Kernel:
        k, n = self.k, self.n
        part, rest = modulo(k, k.chunk, n["unit_parts"]), quotient(k, k.chunk, n["unit_parts"])
        row_part, self.direction = modulo(k, rest, n["row_parts"]), quotient(k, rest, n["row_parts"])
        self.first = row_part * n["rows_part"]
        self.rows = k.minimum(n["rows_part"], n["batch"] - self.first)
        self.table = k.cast_pointer(self.scratch, i64)
        self.sums = k.offset(self.scratch, ((self.rows + EXCESS + 7) & ~7) * (8 // self.kind.nbytes))
        self.turned = k.load(self.backward, self.direction) != 0
        if self.peepholes is not None:
            self.peepholes = k.offset(self.peepholes, self.direction * n["hidden"] * 3)
        low = part * n["panels_part"]
        high = k.minimum(low + n["panels_part"], n["panels"])
        products = products_of(self.cell.kind, self.cell.linear)
        with k.loop(n["begin"], n["end"]) as around:
            t = n["seq"] - 1 - around
            for i, number in enumerate(self.chosen):
                product = products[number]
                # in the first round nothing came back yet from later steps, in the last one there is no step
                needed = (t >= 0) if product.here else (around > 0)
                fulls, smalls = cover(k, self.rows, self.cell.tile)
                with k.when(needed):
                    self.pointers(product, t if product.here else t + 1, fulls, smalls)
                with k.loop(low, high) as panel:
                    with k.when(needed):
                        self.product(i, product, panel, fulls, smalls)
                    self.finish(number, t, panel)
        return k.finish()

    def when_of(self, t: Value, example: Value) -> tuple[Value, Value | None, Value]:
        """(the step's place in time, whether the example has it, the number of its steps) of step t of an example."""
        k, last, live = self.k, self.n["seq"], None
        if self.lengths is not None:
            last = k.minimum(k.convert(k.load(self.lengths, example), i64), last)
            live = t < last
        turns = self.turned if live is None else self.turned & live
        return k.select(turns, last - 1 - t, t), live, last

    def moment(self, time: Value, example: Value) -> Value:
        """The row of a step in what was kept."""
        return (self.direction * self.n["seq"] + time) * self.n["batch"] + example

    # ------------------------------------------------------------------ products with r
    def pointers(self, product: Product, t: Value, fulls: Value, smalls: Value) -> None:
        """Writes the table of rows: what the gates of step t received."""
        k, n = self.k, self.n
        source = k.offset(self.down, n["hidden"] * product.first)
        with k.loop(0, fulls * self.cell.tile.rows + smalls * self.cell.tile.small) as i:
            example = self.first + k.minimum(i, self.rows - 1)
            time, _, _ = self.when_of(t, example)
            k.store_pointer(k.offset(source, self.moment(time, example) * n["gates"]), self.table, i)

    def product(self, i: int, product: Product, panel: Value, fulls: Value, smalls: Value) -> None:
        """Sums of one panel, for all rows, in scratch."""
        k, n, columns = self.k, self.n, self.cell.tile.columns
        whole = n["hidden"] * product.gates
        r = k.offset(self.panels[i], (self.direction * n["panels"] + panel) * whole * columns)
        with k.loop(0, whole, n["depth_block"]) as start:
            depth = k.minimum(n["depth_block"], whole - start)
            add = k.select(start > 0, k.index(1), k.index(0))
            b = k.offset(r, start * columns)
            with k.when(self.rows == 1):
                k.call(self.one, self.table, 1, start, depth, b, self.sums, columns, add, k.offset(b, NEAR))
            with k.otherwise():
                ahead = k.offset(b, depth * columns)
                covers = heights(k, self.cell.tile, fulls, smalls)
                for function, (height, base, count) in zip((self.full, self.small), covers, strict=True):
                    with k.loop(0, count) as at:
                        row = base + at * height
                        k.call(
                            function, k.offset(self.table, row), 1, start, depth, b, k.offset(self.sums, row * columns), columns, add, ahead
                        )

    # ------------------------------------------------------------------ gates
    def finish(self, number: int, t: Value, panel: Value) -> None:
        """What comes back to the hidden units of a panel, and what it makes their gates receive."""
        k, n, tile = self.k, self.n, self.cell.tile
        with k.loop(0, self.rows) as row:
            example = self.first + row
            time, live, last = self.when_of(t, example)
            y = ((time * n["dirs"] + self.direction) * n["batch"] + example) * n["hidden"]
            state = (self.direction * n["batch"] + example) * n["hidden"]
            for u in range(tile.vectors):
                unit = panel * tile.columns + u * tile.lanes
                mask = k.lane_mask(n["hidden"] - unit, tile.lanes) if self.cell.ragged else None
                sums = k.offset(self.sums, row * tile.columns + u * tile.lanes)
                at = (self.direction * n["batch"] + example) * n["padded"] + unit
                spot = _Spot(sums, unit, self.moment(time, example), y, state, at, live, t + 1 >= last, mask)
                if number:
                    with k.when(t >= 0):
                        self.each_list(partial(self.gru_reset, spot))
                    continue
                arrived = self.arrived(spot)
                with k.when(t < 0):
                    for value, first in zip(arrived, self.firsts, strict=True):
                        store(k, value, first, spot.state + unit, mask)
                with k.otherwise():
                    self.each_list(partial(self.gates_of, spot, arrived))

    def each_list(self, body: Callable[[list[Gate]], None]) -> None:
        """The cell, for each list of activations that a direction may have."""
        k, lists = self.k, self.cell.functions
        for i, functions in enumerate(lists):
            gates = [Gate(k, f, self.cell.clip) for f in functions]
            if len(lists) == 1:
                body(gates)
                continue
            with k.when(self.direction == i):
                body(gates)

    def arrived(self, spot: _Spot) -> list[Value]:
        """What the states after this step receive from later steps; from outside where the example has none."""
        k, lanes = self.k, self.cell.lanes
        last = [load(k, p, spot.state + spot.unit, lanes, spot.mask) for p in self.lasts]
        came = [k.load(spot.sums, 0, lanes)]
        if self.carry is not None:
            kept = k.load(self.carry, spot.at, lanes)
            came = [*came, kept] if self.cell.kind == "lstm" else [came[0] + kept]
        return [k.select(spot.ended, a, b) for a, b in zip(last, came, strict=True)]

    def gates_of(self, spot: _Spot, arrived: Sequence[Value], gates: list[Gate]) -> None:
        dh = arrived[0] + load(self.k, self.dy, spot.y + spot.unit, self.cell.lanes, spot.mask)
        match self.cell.kind, self.cell.linear:
            case "lstm", _:
                self.lstm(spot, gates, dh, arrived[1])
            case "gru", True:
                self.gru_linear(spot, gates, dh)
            case "gru", False:
                self.gru_new(spot, gates, dh)
            case _:
                _, slope = gates[0](self.inside(spot, 0))
                self.receive(spot, 0, dh * slope)

    def inside(self, spot: _Spot, gate: int) -> Value:
        """What went into the activation of a gate."""
        return self.kept(self.gates, spot, spot.moment * self.n["gates"] + self.n["hidden"] * gate)

    def kept(self, pointer: Value | None, spot: _Spot, row: Value | None = None) -> Value:
        assert pointer is not None, "this cell reads it"
        start = spot.moment * self.n["hidden"] if row is None else row
        return self.k.load(pointer, start + spot.unit, self.cell.lanes, spot.mask)

    def receive(self, spot: _Spot, gate: int, value: Value, into: Value | None = None) -> None:
        """What a gate receives: nothing where the example has no such step."""
        if spot.live is not None:
            value = self.k.select(spot.live, value, self.k.const(0.0, self.kind, self.cell.lanes))
        start = spot.moment * self.n["gates"] + self.n["hidden"] * gate + spot.unit
        self.k.store(value, self.received if into is None else into, start, spot.mask)

    def carried(self, spot: _Spot, value: Value) -> None:
        """What the state before this step receives apart from products."""
        assert self.carry is not None, "this cell carries something"
        self.k.store(value, self.carry, spot.at)

    def lstm(self, spot: _Spot, gates: list[Gate], dh: Value, dc: Value) -> None:
        k, n, lanes = self.k, self.n, self.cell.lanes
        f, g, out = gates
        c = self.kept(self.state, spot)
        (gate, gate_slope), (cand, cand_slope) = f(self.inside(spot, 0)), g(self.inside(spot, 3))
        (o, o_slope), forgets = f(self.inside(spot, 1)), None if self.cell.input_forget else f(self.inside(spot, 2))
        forget = forgets[0] if forgets else 1.0 - gate
        value, slope = out(k.fma(forget, c, gate * cand))
        do = dh * value * o_slope
        dcell = k.fma(dh * o, slope, dc)
        holes: list[Value] = []
        if self.peepholes is not None:
            holes = [load(k, self.peepholes, spot.unit + n["hidden"] * i, lanes, spot.mask) for i in range(3)]
        if holes:
            dcell = k.fma(do, holes[1], dcell)
        dforget = dcell * c
        di = (dcell * cand if forgets else dcell * cand - dforget) * gate_slope
        df = dforget * forgets[1] if forgets else k.const(0.0, self.kind, lanes)
        for number, received in enumerate((di, do, df, dcell * gate * cand_slope)):
            self.receive(spot, number, received)
        old = dcell * forget
        if holes:
            old = k.fma(df, holes[2], k.fma(di, holes[0], old))
        self.carried(spot, old)

    def gru_linear(self, spot: _Spot, gates: list[Gate], dh: Value) -> None:
        f, g = gates
        (z, z_slope), (reset, reset_slope), (new, slope) = f(self.inside(spot, 0)), f(self.inside(spot, 1)), g(self.inside(spot, 2))
        h, inner = self.kept(self.state, spot), self.kept(self.inner, spot)
        before, dz = dh * (1.0 - z) * slope, dh * (h - new) * z_slope
        dreset = before * inner * reset_slope
        for number, received in enumerate((dz, dreset, before)):
            self.receive(spot, number, received)
        for number, received in enumerate((dz, dreset, before * reset)):
            self.receive(spot, number, received, self.down)
        self.carried(spot, dh * z)

    def gru_new(self, spot: _Spot, gates: list[Gate], dh: Value) -> None:
        f, g = gates
        (z, z_slope), (new, slope) = f(self.inside(spot, 0)), g(self.inside(spot, 2))
        self.receive(spot, 0, dh * (self.kept(self.state, spot) - new) * z_slope)
        self.receive(spot, 2, dh * (1.0 - z) * slope)
        self.carried(spot, dh * z)

    def gru_reset(self, spot: _Spot, gates: list[Gate]) -> None:
        """Second in a round: what came through the product of the new gate goes to the reset gate and, times it, to h."""
        k = self.k
        assert self.carry is not None, "a Gru carries something"
        reset, slope = gates[0](self.inside(spot, 1))
        held = k.load(spot.sums, 0, self.cell.lanes)
        self.receive(spot, 1, held * self.kept(self.state, spot) * slope)
        self.carried(spot, k.fma(held, reset, k.load(self.carry, spot.at, self.cell.lanes)))


@dataclass(frozen=True)
class Gate:
    """The code of an activation and of its slope, both on what `clip` leaves of their argument."""

    k: Builder
    activation: Activation
    clip: float

    def __call__(self, x: Value) -> tuple[Value, Value]:
        """(value, slope); the slope is zero where clip holds the argument."""
        k = self.k
        inside = clipped(k, x, self.clip)
        value = activated(k, self.activation, inside)
        slope = self.slope(inside, value)
        return value, (k.select(k.abs(x) <= self.clip, slope, self.number(0, x)) if self.clip > 0 else slope)

    def number(self, value: float, like: Value) -> Value:
        return self.k.const(float(value), like.dtype, like.lanes)

    def slope(self, x: Value, y: Value) -> Value:
        """As `SLOPES` in operators/recurrent_grad.py, from the value where that has what is needed."""
        k = self.k
        name, alpha, beta = self.activation
        one, zero, a = self.number(1, x), self.number(0, x), self.number(alpha, x)
        match name:
            case "Tanh":
                return one - y * y
            case "Sigmoid":
                return y * (one - y)
            case "Relu":
                return k.select(x > 0.0, one, zero)
            case "LeakyRelu":
                return k.select(x > 0.0, one, a)
            case "ThresholdedRelu":
                return k.select(x > alpha, one, zero)
            case "Affine":
                return a
            case "ScaledTanh":
                inner = activated(k, ("Tanh", 0.0, 0.0), x * beta)
                return (one - inner * inner) * (alpha * beta)
            case "HardSigmoid":
                line = x * alpha + beta
                return k.select((line > 0.0) & (line < 1.0), a, zero)
            case "Elu":
                return k.select(x < 0.0, math.exp(k, k.minimum(x, 0.0)) * alpha, one)
            case "Softsign":
                below = one + k.abs(x)
                return one / (below * below)
            case _:
                assert name == "Softplus", "the activations of recurrent.py"
                return activated(k, ("Sigmoid", 0.0, 0.0), x)
