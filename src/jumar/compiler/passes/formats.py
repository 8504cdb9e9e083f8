"""Storage formats of every value on the device, and the TransData kernels that stand between them.

In: a Selection and a chip.  Out: `Formats`: how each result lies in memory, how each reader wants it, and the conversions, each with its bytes, its
reason and what would avoid it.  Comes before: select.py.  After: fuse_npu.py and tasks.py.

Operators that know one private format set it (format_options.py); the rest follow.  Two starts are tried, everything in plain memory and every
operator in the format of its largest input, and from each one operator after the other moves to the option that costs least beside its neighbours,
until none moves; the cheaper end is taken.  One conversion serves all readers that want the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product

from jumar.base import TensorType, event
from jumar.compiler.passes.format_options import FILTER_READERS, Offer, Option, Situation, offer, situation
from jumar.compiler.passes.pairs import Pair
from jumar.compiler.passes.select import Selection
from jumar.compiler.passes.switches import ALL_ON, Switches
from jumar.device.npu import FRACTAL_NZ, NC1HWC0, ND, Chip, base_format, is_private, stored_nbytes
from jumar.ir import Constant, Get, Node, Param
from jumar.operators import Cast, Elementwise, Transpose

LAUNCH_NBYTES = 1 << 20  # what a kernel that moves nothing costs, as bytes that memory would have moved meanwhile
MAX_SWEEPS = 12


@dataclass(frozen=True, eq=False)
class Conversion:
    """One TransData.   producer: whose result it reads; consumers: who reads what it makes, none where it is for the graph's output.

    nbytes: read and written.  constant: of a weight, so made once when the model is loaded.  why: what wants it; avoid: what would spare it.
    """

    producer: Node
    consumers: tuple[Node, ...]
    source: str
    target: str
    nbytes: int
    constant: bool
    why: str
    avoid: str = ""


@dataclass(frozen=True, eq=False)
class Formats:
    """of: format of each result; wants: format in which a node reads input i; outputs: of each of the graph's outputs.

    turned: transposes that matrix products take in whole, half: those of which they take in the exchange of the last two dimensions.
    pairs: reshapes and transposes that are joined, by each of the two.
    """

    of: Mapping[Node, str]
    wants: Mapping[tuple[Node, int], str]
    conversions: tuple[Conversion, ...]
    outputs: tuple[str, ...] = ()
    turned: frozenset[Node] = frozenset()
    half: frozenset[Node] = frozenset()
    pairs: Mapping[Node, Pair] = field(default_factory=dict)

    @property
    def silent(self) -> frozenset[Node]:
        """Transposes that launch nothing."""
        return self.turned | {n for n, pair in self.pairs.items() if pair.left_out and isinstance(n.op, Transpose)}

    @property
    def launched(self) -> tuple[Conversion, ...]:
        """Those that run with every step."""
        return tuple(c for c in self.conversions if not c.constant)

    @property
    def nbytes(self) -> int:
        """Bytes that they move in a step."""
        return sum(c.nbytes for c in self.launched)


def assign_formats(
    selection: Selection,
    chip: Chip,
    *,
    inference: bool = True,
    eager: bool = False,
    weights: Iterable[Node] = (),
    switches: Switches = ALL_ON,
) -> Formats:
    """The formats that cost the fewest bytes moved.

    inference: constants are converted when the model is loaded; otherwise the parameters that a step updates may lie in a format of the device, as the
    graph engine keeps its variables.
    eager: operators run one by one, so that each gets and gives plain memory.  weights: parameters of the graph that are as constant as constants.
    """
    at = situation(selection, chip, switches, inference=inference, eager=eager)
    search = Search(selection, at, frozenset(weights))
    search.run()
    formats = search.result()
    event(
        "formats",
        chip=chip.name,
        transdata=len(formats.launched),
        constants=len(formats.conversions) - len(formats.launched),
        nbytes=formats.nbytes,
    )
    return formats


class Search:
    """State of one run of the pass."""

    def __init__(self, selection: Selection, at: Situation, weights: frozenset[Node]) -> None:
        self.graph, self.at = selection.graph, at
        nodes = self.graph.nodes
        self.offers: dict[Node, Offer] = {n: offer(n, at) for n in nodes}
        self.chosen: dict[Node, Option] = {n: self.offers[n].options[0] for n in nodes}
        self.readers: dict[Node, list[tuple[Node, int]]] = {n: [] for n in nodes}
        for n in nodes:
            for i, value in enumerate(n.inputs):
                self.readers[value].append((n, i))
        self.updates = {o: self.graph.params[p] for o, p in self.graph.updates}
        self.leaves: dict[Node, list[int]] = {}
        for i, o in enumerate(self.graph.outputs):
            self.leaves.setdefault(o, []).append(i)
        self.fixed = _constants(nodes, weights)
        self.follower = {
            v: r[0] for v, r in self.readers.items() if len(r) == 1 and self.offers[v].heavy and isinstance(r[0][0].op, Elementwise)
        }

    # ------------------------------------------------------------------ the search
    def run(self) -> None:
        """Leaves the cheapest options in `chosen`."""
        ends = []
        for start in (self._follow, self._plain):
            start()
            self._settle()
            ends.append((self.total(), dict(self.chosen)))
        self.chosen = min(ends, key=lambda end: end[0])[1]

    def _plain(self) -> None:
        self.chosen = {n: self.offers[n].options[0] for n in self.graph.nodes}

    def _follow(self) -> None:
        """Every operator in the format of its largest input that it can take, and every variable in that of the first product that reads it."""
        self._plain()
        for node in self.graph.nodes:
            if node in self.at.variables:
                asked = [self.offers[user].options[0].inputs[i] for user, i in self.readers[node] if self.offers[user].heavy]
                self.chosen[node] = next((o for o in self.offers[node].options if o.output in asked[:1]), self.chosen[node])
            held_by = [self.chosen[i].output for i in node.inputs]
            read = [i for i, value in enumerate(node.inputs) if value not in self.fixed]
            for i in sorted(read, key=lambda i: (-_size(node.inputs[i]), not is_private(held_by[i]))):
                held = held_by[i]
                found = [o for o in self.offers[node].options if o.inputs[i] == held]
                if found:
                    self.chosen[node] = found[0]
                    break

    def _settle(self) -> None:
        free = [self._unit(n) for n in self.graph.nodes if len(self.offers[n].options) > 1]
        for _ in range(MAX_SWEEPS):
            moved = [self._move(unit) for unit in free]
            if not any(moved):
                break

    def _unit(self, node: Node) -> tuple[Node, ...]:
        """What moves with a node: the other one of its pair."""
        pair = self.at.pairs.get(node)
        return (node,) if pair is None or pair.first is pair.last else (pair.first, pair.last)

    def _move(self, unit: tuple[Node, ...]) -> bool:
        """Takes the options that cost least beside the neighbours as they are."""
        beside = {
            *unit,
            *(i for n in unit for i in n.inputs),
            *(o for i, o in enumerate(self.graph.outputs) if self.updates.get(i) in unit),
        }
        before = tuple(self.chosen[n] for n in unit)

        def cost(options: tuple[Option, ...]) -> int:
            self.chosen.update(zip(unit, options, strict=True))
            return sum(self.cost(v) for v in beside)

        ways = product(*(self.offers[n].options for n in unit))
        # of equals a private one: the next operator may save by it what this one does not; never back, so that this ends
        costs = {w: (cost(w), not is_private(w[-1].output), w != before) for w in ways}
        best = min(costs, key=costs.__getitem__)
        self.chosen.update(zip(unit, best, strict=True))
        return best != before

    def total(self) -> int:
        return sum(self.cost(n) for n in self.graph.nodes)

    def cost(self, value: Node) -> int:
        """Bytes that conversions of one value move, with what their launches and those of kernels that formats could spare cost."""
        if value in self.fixed:
            return 0
        held = self.chosen[value].output
        pair = self.at.pairs.get(value)
        alone = pair is not None and pair.left_out and isinstance(value.op, Transpose) and not is_private(held)
        own = LAUNCH_NBYTES + 2 * _size(value) if alone else 0  # a transpose that fractals make needless
        apart = 0  # what follows a product can be in its kernel, unless a conversion stands between
        if value in self.follower:
            user, i = self.follower[value]
            apart = 0 if self.chosen[user].inputs[i] == held else LAUNCH_NBYTES + 2 * _size(user)
        return own + apart + sum(_moved(value, a, b) + LAUNCH_NBYTES for a, b in _steps(held, self._wanted(value)))

    def _wanted(self, value: Node) -> set[str]:
        """Formats in which a value is read."""
        wanted = {self.chosen[user].inputs[i] for user, i in self.readers[value]}
        wanted |= {self._leaving(i) for i in self.leaves.get(value, ())}
        return wanted - {self.chosen[value].output}

    def _leaving(self, output: int) -> str:
        """The format in which an output leaves: that of the parameter which it replaces."""
        return self.chosen[self.updates[output]].output if output in self.updates else ND

    # ------------------------------------------------------------------ the result
    def result(self) -> Formats:
        nodes = self.graph.nodes
        of = {n: self.chosen[n].output for n in nodes}
        wants = {(n, i): f for n in nodes for i, f in enumerate(self.chosen[n].inputs)}
        conversions = tuple(c for n in nodes for c in self._conversions(n))
        outputs = tuple(self._leaving(i) for i in range(len(self.graph.outputs)))
        joined = {n: pair for n, pair in self.at.pairs.items() if base_format(of[n]) == FRACTAL_NZ}
        half = frozenset(n for n, pair in joined.items() if pair.turned and isinstance(n.op, Transpose))
        return Formats(of, wants, conversions, outputs, self.at.turned, half, joined)

    def _conversions(self, value: Node) -> Iterable[Conversion]:
        held = self.chosen[value].output
        for source, target in _steps(held, self._wanted(value)):
            readers = tuple(dict.fromkeys(u for u, i in self.readers[value] if self.chosen[u].inputs[i] == target))
            why, avoid = self._reason(value, source, target, readers)
            groups = max((getattr(u.op, "groups", 1) for u in readers if value in (u.inputs[i] for i in filter_of(u))), default=1)
            yield Conversion(value, readers, source, target, _moved(value, source, target, groups), value in self.fixed, why, avoid)

    def _reason(self, value: Node, source: str, target: str, readers: Sequence[Node]) -> tuple[str, str]:
        """Why a value is converted, and what would avoid it."""
        name = base_format(target)
        if value in self.fixed:
            return f"{self._reader(readers[0])} reads its weights in {name}", ""
        if not readers:
            if is_private(target) or value not in self.leaves or not is_private(source):
                return "there is no kernel from one private format to another, so it goes by plain memory", ""
            return self._at_output(value, source)
        first = readers[0]
        if not is_private(target):
            refusal = self.offers[first].refusals.get(source)
            if refusal:
                return refusal.why, refusal.avoid
            if all(isinstance(r.op, Cast) and r in self.leaves and not self.readers[r] for r in readers):
                return self._at_output(value, source)
            for later in (u for u, _ in self.readers[first]):
                refusal = self.offers[later].refusals.get(source)
                if refusal:
                    return f"{self._reader(first)} stays in plain memory for what reads it: {refusal.why}", refusal.avoid
            return f"{self._reader(first)} reads plain memory, and {self._maker(value)} gives {base_format(source)}", ""
        if isinstance(value.op, Param) or (isinstance(value.op, Cast) and isinstance(value.inputs[0].op, Param)):
            way = "ATC: --is_input_adjust_hw_layout=true with --input_fp16_nodes, or AIPP" if name == NC1HWC0 else ""
            return f"{self._reader(first)} reads {name}, and an input of the model is in plain memory", way
        if is_private(self.chosen[value].output):
            return f"{self._reader(first)} reads {name}; there is no kernel to it from {base_format(self.chosen[value].output)}", ""
        refused = self.offers[value].refusals.get(target)
        if refused and not self.offers[value].heavy:
            return f"{self._reader(first)} reads {name}: {refused.why}", refused.avoid
        return f"{self._reader(first)} reads {name}, and {self._maker(value)} gives {base_format(source)}", ""

    def _at_output(self, value: Node, source: str) -> tuple[str, str]:
        way = "ATC: --is_output_adjust_hw_layout=true, with --output_type=FP16" if base_format(source) == NC1HWC0 else ""
        return f"an output of the model leaves in plain memory, and {self._maker(value)} gives {base_format(source)}", way

    def _reader(self, node: Node) -> str:
        """The kernel that reads a value, through views."""
        while self._launches_nothing(node) and self.readers[node]:
            node = self.readers[node][0][0]
        return self._kind(node)

    def _maker(self, node: Node) -> str:
        """The kernel that makes a value, through views."""
        while self._launches_nothing(node) and node.inputs:
            node = node.inputs[0]
        return self._kind(node)

    def _launches_nothing(self, node: Node) -> bool:
        pair = self.at.pairs.get(node)
        left_out = pair is not None and pair.left_out and is_private(self.chosen[node].output)
        return left_out or node in self.at.turned or not self.at.launches(node)

    def _kind(self, node: Node) -> str:
        choice = self.at.selection.choices.get(node)
        return choice.kind if choice and choice.kind else node.op.name


def _constants(nodes: Sequence[Node], weights: frozenset[Node]) -> frozenset[Node]:
    """Values that are known when the model is loaded; what a view makes of one is one."""
    found: set[Node] = set()
    for n in nodes:
        if isinstance(n.op, Constant) or n in weights or (n.inputs and isinstance(n.op, Get) and n.inputs[0] in found):
            found.add(n)
    return frozenset(found)


def _steps(held: str, wanted: set[str]) -> list[tuple[str, str]]:
    """The conversions from one format to others: from a private one to another there is none, so by plain memory."""
    private = sorted(f for f in wanted if is_private(f))
    if not is_private(held):
        return [(held, f) for f in private]
    by_plain = [(held, ND)] if private or any(not is_private(f) for f in wanted) else []
    return [*by_plain, *((ND, f) for f in private)]


def _moved(value: Node, source: str, target: str, groups: int = 1) -> int:
    """Bytes that one conversion reads and writes."""
    if not isinstance(value.type, TensorType):
        return 0
    return sum(stored_nbytes(value.shape, f, value.dtype, groups) for f in (source, target))


def _size(node: Node) -> int:
    return node.type.nbytes if isinstance(node.type, TensorType) else 0


def filter_of(node: Node) -> tuple[int, ...]:
    """Inputs of an operator that are filters of a convolution."""
    return FILTER_READERS.get(type(node.op), ())
