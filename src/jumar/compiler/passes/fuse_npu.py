"""Kernels of several operators on an Ascend NPU: what its graph engine and the way out of its cube and vector units allow.

In: a Selection, its Formats, a chip and the Switches.  Out: `Fusion`: groups, each one kernel, and for every pair that stays apart the rule that
would have joined it and why it does not.  Comes before: formats.py.  After: tasks.py.

Rules are rows of fusion_rules.py, under the names that a switch file has for them.  First graph fusion: a bias into the product, named kernels
(AddLayerNorm), a reshape with its transpose.  Then UB fusion: what follows a product while its result is in the unified buffer, where cube and
vector unit share a core (310, 310P, 910), or on the fixpipe, where they do not (910B and later: cast, relu, quant); chains of elementwise kernels last.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from jumar.base import TensorType, event
from jumar.compiler.passes.formats import Formats
from jumar.compiler.passes.fusion_rules import (
    AROUND_REDUCE,
    AUTOFUSE,
    BIAS,
    CHAIN,
    CHAIN_LONG,
    CONVS,
    EPILOGUES,
    HAVE_AUTOFUSE,
    INTO_QUANT,
    LONGEST,
    LONGEST_AUTOFUSE,
    MANY,
    NAMED,
    REDUCTIONS,
    TURNS,
    Epilogue,
    head_of,
)
from jumar.compiler.passes.in_place import Groups, in_place
from jumar.compiler.passes.select import Selection
from jumar.compiler.passes.splits import shared_out
from jumar.compiler.passes.switches import ALL_ON, RuleName, Switches, rule_names
from jumar.device.npu import AI_CPU, CUBE, DVPP, HOST, MIX_CUBE, ND, Chip, base_format, library, stored_nbytes
from jumar.ir import Constant, Node, Param
from jumar.operators import Add, Elementwise, LayerNorm, Lookup, Quantize, RmsNorm, Select

SPLIT = "SplitVD"


@dataclass(frozen=True, eq=False)
class Group:
    """One kernel.   root: what names it; nodes: in order; rule: name in a switch file, empty where the node is alone; kind: the kernel's own name, if new."""

    root: Node
    nodes: tuple[Node, ...]
    rule: str = ""
    kind: str = ""


@dataclass(frozen=True)
class MissedGroup:
    """Two kernels that are not one.   rule: the one that would join them, empty where there is none; nbytes: written and read again in between."""

    producer: str
    consumer: str
    rule: str
    nbytes: int
    why: str
    loc: str


@dataclass(frozen=True, eq=False)
class Fusion:
    """groups: every node that launches, once; missed: largest first; in_place: concats and splits that move nothing, with the rule that says so."""

    groups: tuple[Group, ...]
    missed: tuple[MissedGroup, ...]
    in_place: Mapping[Node, str] = field(default_factory=dict)

    @property
    def effects(self) -> dict[str, int]:
        """How often each rule took effect, as `fusion_result.json` of ATC counts."""
        found: dict[str, int] = {}
        for rule in [g.rule for g in self.groups if g.rule] + list(self.in_place.values()):
            found[rule] = found.get(rule, 0) + 1
        return found


def fuse_npu(
    selection: Selection, formats: Formats, chip: Chip, switches: Switches = ALL_ON, *, eager: bool = False, autofuse: bool = False
) -> Fusion:
    """The kernels of a graph.   eager: operators are launched one by one as a script calls them, so none are joined.

    autofuse: CANN's AutoFuse is on (AUTOFUSE_FLAGS=--enable_autofuse=true), which joins elementwise operators of any number on a 910B and later.
    """
    fuser = Fuser(selection, formats, chip, switches, autofuse)
    fuser.splits()
    if not eager:
        fuser.run()
    fusion = fuser.result(eager)
    event("fuse for the device", chip=chip.name, kernels=len(fusion.groups), missed=len(fusion.missed), **fusion.effects)
    return fusion


@dataclass
class Growing:
    """A group in the making."""

    root: Node
    nodes: list[Node]
    rule: str = ""
    kind: str = ""


@dataclass
class Fuser:
    """State of one run of the pass."""

    selection: Selection
    formats: Formats
    chip: Chip
    switches: Switches
    autofuse: bool = False
    of: dict[Node, Growing] = field(default_factory=dict)
    refused: dict[tuple[Node, Node], tuple[str, str]] = field(default_factory=dict)  # rule, why

    def __post_init__(self) -> None:
        graph = self.selection.graph
        self.family = library.column(self.chip.family)
        self.silent = self.formats.silent
        self.nodes = [n for n in graph.nodes if self._launches(n)]
        self.users = {n: tuple(dict.fromkeys(u)) for n, u in graph.users.items()}
        self.outputs = set(graph.outputs)
        self.place = {n: i for i, n in enumerate(graph.nodes)}
        self.several = False  # whether a kernel gives several values
        self.autofuse = self.autofuse and self.family in HAVE_AUTOFUSE

    def run(self) -> None:
        """Graph fusion, then UB fusion."""
        for node in self.nodes:
            self._turn(node)
        for node in self.nodes:
            self._bias(node)
        for node in self.nodes:
            self._named(node)
        for node in self.nodes:
            self._epilogue(node)
        for node in reversed(self.nodes):
            self._chain(node)

    def splits(self) -> None:
        """Slices that share a value out were one split in the model, and are one kernel."""
        graph = self.selection.graph
        for value in graph.nodes:
            parts = shared_out(graph, value)[0] if isinstance(value.type, TensorType) else []
            if parts and all(self._on_vector(p) and self.formats.wants[p, 0] == self.formats.wants[parts[0], 0] for p in parts):
                self._take(Growing(parts[0], parts, "", SPLIT))

    # ------------------------------------------------------------------ graph fusion
    def _turn(self, node: Node) -> None:
        """A reshape and a transpose in fractals: one ConfusionTransposeD, where a kernel is needed at all."""
        pair = self.formats.pairs.get(node)
        if pair is not None and not pair.left_out:
            self._take(Growing(node, [pair.first, pair.last], pair.rule, "ConfusionTransposeD"))

    def _bias(self, root: Node) -> None:
        """An add of one number for each output channel, or column, goes into the product."""
        head = head_of(root)
        rule = BIAS.get(head)
        following = self._only_reader(root)
        if rule is None or following is None or not isinstance(following.op, Add) or len(root.inputs) > 2:
            return
        (other,) = [i for i in following.inputs if i is not root] or [root]
        channel = 1 if head in CONVS else root.rank - 1
        aligned = (1,) * (root.rank - other.rank) + other.shape
        if other.array is None or any(d != (root.shape[i] if i == channel else 1) for i, d in enumerate(aligned)):
            return
        if self._allowed(rule, root, following):
            self._take(Growing(root, [root, following], rule))

    def _named(self, norm: Node) -> None:
        """An add and a norm."""
        if not isinstance(norm.op, LayerNorm | RmsNorm):
            return
        add = norm.inputs[0]
        if not isinstance(add.op, Add) or add in self.of or any(i.shape != add.shape for i in add.inputs):
            return
        for row in NAMED:
            if not isinstance(norm.op, row.norm) or not self._allowed(row.rule, add, norm):
                continue
            if norm.op.axis % norm.rank != norm.rank - 1:
                self.refused[add, norm] = row.rule, "the norm must be along the last axis alone"
            elif self.formats.of[add] != ND or self.formats.of[norm] != ND:
                self.refused[add, norm] = (
                    row.rule,
                    f"both must be in plain memory, got {base_format(self.formats.of[add])} and {base_format(self.formats.of[norm])}",
                )
            elif row.widths and norm.shape[-1] not in row.widths:
                self.refused[add, norm] = row.rule, f"the last axis must be one of {', '.join(map(str, row.widths))}, got {norm.shape[-1]}"
            elif self._take(Growing(norm, [add, norm], row.rule, row.kind)):
                return

    # ------------------------------------------------------------------ UB fusion: what follows a product
    def _epilogue(self, root: Node) -> None:
        head = head_of(root)
        if not head:
            return
        group = self.of.get(root) or Growing(root, [root])
        best: tuple[Epilogue, list[Node]] | None = None
        for row in EPILOGUES:
            if head in row.heads:
                found = self._links(row, group.nodes[-1])
                if found and (best is None or len(found) > len(best[1])):
                    best = row, found
        if best is not None:
            group = Growing(root, [*group.nodes, *best[1]], best[0].rule, best[0].kind)
        elif rule := TURNS.get(head):
            turned = self._turned(group.nodes[-1], rule)
            group = Growing(root, [*group.nodes, *turned], rule if turned else group.rule)
        if len(group.nodes) > 1:
            self._take(group)

    def _links(self, row: Epilogue, sink: Node) -> list[Node]:
        """What a row takes in after a node."""
        taken: list[Node] = []
        at = 0
        while (following := self._only_reader(sink)) is not None and at < len(row.links):
            fitting = [i for i in range(at, len(row.links)) if isinstance(following.op, row.links[i])]
            if not fitting or ((row.whole or (row.first and not at)) and fitting[0] != at) or not self._allowed(row.rule, sink, following):
                break
            why = row.condition(sink, following) if row.condition else ""
            if why:
                self.refused[sink, following] = row.rule, why
                break
            taken.append(following)
            sink, at = following, fitting[0] + 1
        return [] if row.whole and at < len(row.links) else taken

    def _turned(self, sink: Node, rule: str) -> list[Node]:
        """The reshape and transpose after a product, written in that order straight away."""
        following = self._reader(sink)
        pair = self.of.get(following) if following is not None else None
        if pair is None or pair.kind != "ConfusionTransposeD" or not self._allowed(rule, sink, pair.nodes[-1]):
            return []
        return pair.nodes

    def _only_reader(self, node: Node) -> Node | None:
        """The one kernel that reads a value, where nothing else does and no conversion stands between; notes why not."""
        following = self._reader(node)
        if following is None or following in self.of or not self._on_vector(following):
            return None
        return following

    def _reader(self, node: Node) -> Node | None:
        if node in self.outputs or len(self.users[node]) != 1:
            return None
        (following,) = self.users[node]
        return following if self._together(node, following) else None

    def _together(self, node: Node, following: Node) -> bool:
        """Whether a value is read as it is stored."""
        return all(self.formats.wants[following, i] == self.formats.of[node] for i, v in enumerate(following.inputs) if v is node)

    # ------------------------------------------------------------------ UB fusion: elementwise chains
    def _chain(self, sink: Node) -> None:
        """Elementwise operators upwards from one that nothing has taken."""
        if sink in self.of or not self._elementwise(sink):
            return
        longest = self._longest()
        group = [sink]
        waiting = list(sink.inputs)
        extra = 0
        while waiting and len(group) < longest:
            at = max(range(len(waiting)), key=lambda i: self.place[waiting[i]])
            producer = waiting.pop(at)
            if producer in group or producer in self.of or not self._elementwise(producer):
                continue
            if producer.shape != sink.shape and not self.autofuse:
                continue
            inside = [u for u in self.users[producer] if u in group]
            if not all(self._together(producer, u) for u in inside):
                continue
            elsewhere = producer in self.outputs or len(inside) < len(self.users[producer])
            if elsewhere and (extra or not (self.autofuse or self._allowed(MANY, producer, inside[0]))):
                continue
            if self._waits_for_itself([*group, producer]):
                self.refused[producer, inside[0]] = "", "the kernel would wait for what reads its own result"
                continue
            extra += elsewhere
            group.append(producer)
            waiting += producer.inputs
        group.sort(key=self.place.__getitem__)
        rule = (
            AUTOFUSE if self.autofuse else MANY if extra else CHAIN if len(group) <= LONGEST[CHAIN] and self._allowed(CHAIN) else CHAIN_LONG
        )
        before = self._before(group)
        if before is not None and not self.autofuse and not self._waits_for_itself([*before, *group]):
            group, rule = [*before, *group], AROUND_REDUCE
        if isinstance(sink.op, Quantize) and self._allowed(INTO_QUANT):
            rule = INTO_QUANT
        if len(group) > 1:
            self._take(Growing(before[-1] if before is not None and rule == AROUND_REDUCE else group[0], group, rule))

    def _longest(self) -> int:
        """Operators that a chain may have; 1 where there is no rule for chains."""
        return LONGEST_AUTOFUSE if self.autofuse else max((n for rule, n in LONGEST.items() if self._allowed(rule)), default=1)

    def _before(self, group: Sequence[Node]) -> list[Node] | None:
        """A reduction before a chain, with the elementwise operator before it."""
        reduced = [i for n in group for i in n.inputs if isinstance(i.op, REDUCTIONS) and i not in self.of and self._launches(i)]
        if len(reduced) != 1 or len(group) > 5:
            return None
        (reduction,) = reduced
        alone = self._reader(reduction) in group and self._on_vector(reduction)
        if not alone or not self._allowed(AROUND_REDUCE, reduction, group[0]):
            return None
        x = reduction.inputs[0]
        takes_in = self._elementwise(x) and x not in self.of and self._reader(x) is reduction
        return [x, reduction] if takes_in else [reduction]

    def _waits_for_itself(self, nodes: Sequence[Node]) -> bool:
        """Whether something that reads a kernel's values comes back into it.   A kernel that gives several values can close such a ring with another."""
        inside = set(nodes)
        last = max(nodes, key=self.place.__getitem__)
        leaving = [u for n in nodes for u in self.users[n] if u not in inside]
        if not self.several and all(u in inside for n in nodes if n is not last for u in self.users[n]):
            return False
        seen: set[Node] = set()
        while leaving:
            node = leaving.pop()
            if node in inside:
                return True
            if node not in seen:
                together = self.of[node].nodes if node in self.of else [node]
                seen.update(together)
                leaving += [u for n in together for u in self.users[n]]
        return False

    # ------------------------------------------------------------------ what all ask
    def _launches(self, node: Node) -> bool:
        choice = self.selection.choices.get(node)
        return choice is not None and choice.unit != "" and node not in self.silent

    def _on_vector(self, node: Node) -> bool:
        return self._launches(node) and self.selection.choices[node].unit not in (CUBE, MIX_CUBE, AI_CPU, HOST, DVPP)

    def _elementwise(self, node: Node) -> bool:
        return isinstance(node.op, Elementwise) and not isinstance(node.op, Select | Lookup) and self._on_vector(node)

    def _allowed(self, rule: str, producer: Node | None = None, consumer: Node | None = None) -> bool:
        """Whether the chip has a rule and it is on; where it is not, the pair remembers."""
        known = rule_names()[rule]
        why = "" if self.switches.enabled(rule) else f"{rule} is switched off"
        if not known.on(self.family):
            why = _not_here(known, self.chip)
        if why and producer is not None and consumer is not None:
            self.refused.setdefault((producer, consumer), (rule, why))
        return not why

    def _take(self, group: Growing) -> bool:
        """Makes a group one kernel, unless that would wait for itself."""
        if self._waits_for_itself(group.nodes):
            return False
        for node in group.nodes:
            self.of[node] = group
        inside = set(group.nodes)
        self.several |= sum(n in self.outputs or any(u not in inside for u in self.users[n]) for n in group.nodes) > 1
        return True

    def result(self, eager: bool) -> Fusion:
        groups: dict[int, Growing] = {}
        for node in self.nodes:
            group = self.of.get(node) or Growing(node, [node])
            groups.setdefault(id(group), group)
            self.of[node] = group
        made = tuple(Group(g.root, tuple(g.nodes), g.rule, g.kind) for g in groups.values())
        missed = sorted(self._missed(eager), key=lambda m: -m.nbytes)
        makers: Groups = {n: (g.root, g.nodes[-1]) for n, g in self.of.items()}
        nowhere = {} if eager else in_place(self.selection.graph, self.formats, self.family, self.switches, makers)
        nowhere |= {n: pair.rule for n, pair in self.formats.pairs.items() if pair.left_out and n in self.silent}
        return Fusion(tuple(g for g in made if g.root not in nowhere), tuple(missed), nowhere)

    # ------------------------------------------------------------------ what was not joined, and why
    def _missed(self, eager: bool) -> Iterable[MissedGroup]:
        for node in self.nodes:
            for producer in dict.fromkeys(self._source(i) for i in node.inputs):
                if producer is None or self.of[producer] is self.of[node] or not self._could(producer, node):
                    continue
                rule, why = ("", "operators are launched one by one as the script calls them") if eager else self._why(producer, node)
                yield MissedGroup(self._name(producer), self._name(node), rule, 2 * self._nbytes(producer), why, str(node.loc))

    def _source(self, value: Node) -> Node | None:
        """The kernel that makes a value, through views."""
        while value not in self.of and value.inputs and not isinstance(value.op, Param | Constant):
            value = value.inputs[0]
        return value if value in self.of else None

    def _could(self, producer: Node, consumer: Node) -> bool:
        """Pairs of which one at least runs element by element, or row by row, on the cores."""
        units = (self.selection.choices[producer].unit, self.selection.choices[consumer].unit)
        if any(u in (AI_CPU, HOST, DVPP) for u in units):
            return False
        return isinstance(consumer.op, (Elementwise, LayerNorm, RmsNorm, *REDUCTIONS)) or (
            isinstance(producer.op, Elementwise) and head_of(consumer) != ""
        )

    def _why(self, producer: Node, consumer: Node) -> tuple[str, str]:
        if head_of(consumer):
            return "", f"a {head_of(consumer)} reads its inputs from memory"
        if producer in self.outputs:
            return "", "its value is an output of the model"
        if len(self.users[producer]) > 1:
            return "", f"its value is read {len(self.users[producer])} times"
        head = head_of(self.of[producer].root)
        by_memory = (
            f"the cube hands its results over by memory: of what follows a {head} only dequant, cast, relu and quant run on the fixpipe"
        )
        if (producer, consumer) in self.refused:
            rule, why = self.refused[producer, consumer]
            return rule, by_memory if head and self.chip.split and not rule_names()[rule].on(self.family) else why
        if producer not in consumer.inputs:
            return "", "a reshape stands between them, and rules join neighbours only"
        if not self._together(producer, consumer):
            return "", "a TransData stands between them"
        if self.of[consumer].rule:
            return "", f"{self._kind(consumer)} is in the kernel of {self._kind(self.of[consumer].root)} by {self.of[consumer].rule}"
        if self._elementwise(producer) and self._elementwise(consumer):
            return self._chain_ends(producer, consumer)
        if head and self.chip.split:
            return "", by_memory
        return "", f"no rule takes {self._kind(consumer)} into the kernel of {self._kind(producer)}"

    def _chain_ends(self, producer: Node, consumer: Node) -> tuple[str, str]:
        """Why a chain of elementwise operators does not go on."""
        if self._longest() == 1:
            on_here = [rule for rule in LONGEST if rule_names()[rule].on(self.family)]
            return (
                (on_here[0], f"{on_here[0]} is switched off") if on_here else (CHAIN_LONG, _not_here(rule_names()[CHAIN_LONG], self.chip))
            )
        if producer.shape != consumer.shape and not self.autofuse:
            return "", f"shapes differ, {list(producer.shape)} and {list(consumer.shape)}"
        if len(self.of[consumer].nodes) >= self._longest():
            return "", f"a chain holds at most {self._longest()} operators"
        return "", "one of them is in another kernel already"

    def _kind(self, node: Node) -> str:
        return self.selection.choices[node].kind or node.op.name

    def _name(self, node: Node) -> str:
        return f"{self._kind(node)} {node.loc.name}".strip()

    def _nbytes(self, node: Node) -> int:
        if not isinstance(node.type, TensorType):
            return sum(t.nbytes for t in node.type)
        return stored_nbytes(node.shape, self.formats.of[node], node.dtype)


def _not_here(rule: RuleName, chip: Chip) -> str:
    if not rule.families:
        return f"a {chip.family.removeprefix('Ascend')} has no UB fusion"
    return f"{rule.name} is documented for {', '.join(sorted(rule.families))}, not for {library.column(chip.family)}"
