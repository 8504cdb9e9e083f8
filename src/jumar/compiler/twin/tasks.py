"""Kernels in the order in which a device runs them: a graph with its selection, formats and fusion becomes tasks.

In: Selection (passes/select.py), Formats (passes/formats.py), Fusion (passes/fuse_npu.py).  Out: `Launch`es, each a `Task` with operands as they
are stored, and the numbers of the launches that make what it reads.  After: predictions, the timeline, device memory.
A TransData stands before the first kernel that wants its result.  Views launch nothing: whoever reads one reads what it is a view of.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from jumar.base import CompileError, TensorType
from jumar.compiler.passes.format_options import FILTER_READERS
from jumar.compiler.passes.formats import Conversion, Formats
from jumar.compiler.passes.fuse_npu import SPLIT, Fusion, Group
from jumar.compiler.passes.select import Selection
from jumar.device.npu import CUBE, NC1HWC0, NCHW, ND, NDC1HWC0, VECTOR, Chip, Operand, Task, base_format, is_private, stored_shape
from jumar.ir import Constant, Get, Graph, Node, Param
from jumar.operators import AvgPool, Concat, Conv, ConvGradInput, ConvGradWeight, ConvTranspose, MatMul, MaxPool, Transpose

IMAGE_OPS = (Conv, ConvTranspose, ConvGradInput, ConvGradWeight, MaxPool, AvgPool)


@dataclass(frozen=True, eq=False)
class Launch:
    """One kernel in the row.   nodes: what it computes, none for a TransData.

    reads: for each input of the task the number of the launch that makes it, -1 - i for parameter i, None for what is known when the model is loaded;
    behind them the launches that make the other pieces of inputs which lie in several.  slots: for each of them, which output of that launch.
    writes: for each output of the task the value that it holds.  conversion: what a TransData is for.
    """

    task: Task
    nodes: tuple[Node, ...]
    reads: tuple[int | None, ...]
    slots: tuple[int, ...]
    writes: tuple[Node, ...]
    conversion: Conversion | None = None

    @property
    def nbytes(self) -> int:
        """Bytes that it writes."""
        return sum(o.nbytes for o in self.task.outputs)


def launches(selection: Selection, formats: Formats, fusion: Fusion, chip: Chip) -> tuple[Launch, ...]:
    """The kernels of one step, in order of execution."""
    return Row(selection, formats, fusion, chip).run()


@dataclass(frozen=True)
class Made:
    """Where a value in some format comes from.   launch: as in `Launch.reads`; more: where its other pieces do."""

    launch: int | None
    slot: int = 0
    more: tuple[Made, ...] = ()


@dataclass
class Row:
    """State of one run."""

    selection: Selection
    formats: Formats
    fusion: Fusion
    chip: Chip
    row: list[Launch] = field(default_factory=list)
    made: dict[tuple[Node, str], Made] = field(default_factory=dict)
    names: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.graph: Graph = self.selection.graph
        self.params = {p: i for i, p in enumerate(self.graph.params)}
        self.place = {n: i for i, n in enumerate(self.graph.nodes)}
        self.group_of: dict[Node, Group] = {n: g for g in self.fusion.groups for n in g.nodes}
        self.outputs = set(self.graph.outputs)
        self.conversions: dict[tuple[Node, str], Conversion] = {(c.producer, c.target): c for c in self.formats.conversions}
        self.images = _images(self.graph, self.formats)

    def run(self) -> tuple[Launch, ...]:
        done: set[int] = set()
        for group in sorted(self.fusion.groups, key=lambda g: max(self.place[n] for n in g.nodes)):
            self._emit(group, done)
        for i, output in enumerate(self.graph.outputs):
            self._value(output, self.formats.outputs[i] if self.formats.outputs else ND)
        return tuple(self.row)

    # ------------------------------------------------------------------ order
    def _emit(self, group: Group, done: set[int]) -> None:
        """A group after all that it reads."""
        waiting = [group]
        entered: set[int] = set()
        while waiting:
            at = waiting[-1]
            if id(at) in done:
                waiting.pop()
                continue
            before = [g for g in self._sources(at) if id(g) not in done]
            if not before:
                done.add(id(at))
                waiting.pop()
                self._launch(at)
                continue
            if id(at) in entered:
                raise CompileError(
                    f"tasks: kernels must not wait for each other, got {at.root.op}: this is our bug", loc=at.root.loc, code="our-bug"
                )
            entered.add(id(at))
            waiting += before

    def _sources(self, group: Group) -> list[Group]:
        """The groups that make what a group reads."""
        found: dict[int, Group] = {}
        for node in group.nodes:
            for value in node.inputs:
                for maker in self._makers(value):
                    if maker is not group:
                        found[id(maker)] = maker
        return list(found.values())

    def _makers(self, value: Node) -> list[Group]:
        """The groups that make what lies in the memory of a value."""
        waiting, found = [value], []
        while waiting:
            at = waiting.pop()
            if at in self.group_of:
                found.append(self.group_of[at])
            elif at.inputs and not isinstance(at.op, Param | Constant):
                waiting += at.inputs if isinstance(at.op, Concat) else at.inputs[:1]
        return found

    # ------------------------------------------------------------------ one kernel
    def _launch(self, group: Group) -> None:
        root, inside = group.root, set(group.nodes)
        choice = self.selection.choices[root]
        read = self._read(group, inside)
        refs = [self._value(value, format) for value, format, _ in read]
        refs += [m for r in refs for m in r.more]
        inputs = tuple(self._operand(value, format, groups) for value, format, groups in read)
        writes = tuple(n for n in group.nodes if n in self.outputs or any(u not in inside for u in self.graph.users[n]))
        outputs: list[Operand] = []
        held: list[Node] = []
        for node in writes or group.nodes[-1:]:
            for i, t in enumerate(node.type if isinstance(node.type, tuple) else (node.type,)):
                format = self.formats.of[node] if i == 0 or t.rank == node.type[0].rank else ND
                slot = len(outputs)
                outputs.append(_stored(_stored_type(node, self.formats) if node in self.formats.half else t, format, node in self.images))
                held.append(node)
                if i == 0:
                    self.made[node, self.formats.of[node]] = Made(len(self.row), slot)
        kinds = tuple(self.selection.choices[n].kind or n.op.name for n in group.nodes if n is not root and not self._is_view(n))
        kind = group.kind or choice.kind or root.op.name
        task = Task(
            kind,
            inputs,
            tuple(outputs),
            self._attributes(group),
            choice.unit,
            () if group.kind else kinds,
            self._label(root, kind),
            str(root.loc),
        )
        self.row.append(Launch(task, group.nodes, tuple(r.launch for r in refs), tuple(r.slot for r in refs), tuple(held)))

    def _is_view(self, node: Node) -> bool:
        return self.selection.choices[node].unit == ""

    def _read(self, group: Group, inside: set[Node]) -> list[tuple[Node, str, int]]:
        """What a group reads from outside, with formats and, for filters, the groups of their convolution; the root's inputs first."""
        found: set[tuple[Node, str]] = set()
        inputs = [(group.root, i) for i in range(len(group.root.inputs))] if group.root.inputs else []
        inputs += [(n, i) for n in group.nodes if n is not group.root for i in range(len(n.inputs))]
        rows = []
        for node, i in inputs:
            value = node.inputs[i]
            if value in inside:
                continue
            format = self.formats.wants[node, i]
            groups = getattr(node.op, "groups", 1) if i in FILTER_READERS.get(type(node.op), ()) else 1
            if node is not group.root or group.kind == SPLIT:  # what is taken in reads a value once, though the root may read it, too
                if (value, format) in found:
                    continue
                found.add((value, format))
            rows.append((value, format, groups))
        return rows

    def _attributes(self, group: Group) -> Mapping[str, Any]:
        """What the operator says, what a matrix product takes in of transposes, and what follows it."""
        attrs = dict(self.selection.choices[group.root].attrs)
        if isinstance(group.root.op, MatMul):
            turned = self.formats.turned | self.formats.half
            attrs["transpose_a"], attrs["transpose_b"] = (i in turned for i in group.root.inputs)
        if group.rule:
            attrs["rule"] = group.rule
        if group.kind == SPLIT:
            attrs["split_sizes"] = tuple(n.shape for n in group.nodes)
        turn = next((n for n in group.nodes if isinstance(n.op, Transpose) and group.kind == "ConfusionTransposeD"), None)
        if turn is not None:
            attrs["perm"] = turn.op.perm  # type: ignore[attr-defined]
        return attrs

    # ------------------------------------------------------------------ values and conversions
    def _value(self, value: Node, format: str) -> Made:
        """Where a value in a format comes from; a conversion that is not made yet is launched now."""
        key = value, format
        if key in self.made:
            return self.made[key]
        if format == self.formats.of[value]:
            found = self._unconverted(value)
        else:
            conversion = self.conversions[key]
            found = Made(None) if conversion.constant else self._convert(conversion)
        self.made[key] = found
        return found

    def _unconverted(self, value: Node) -> Made:
        """Where a value comes from, in its own format."""
        if value in self.params:
            return Made(-1 - self.params[value])
        if isinstance(value.op, Constant) or not value.inputs:
            return Made(None)
        (source, *_) = value.inputs
        if isinstance(value.op, Concat) and value in self.fusion.in_place:
            first, *rest = (self._value(piece, self.formats.wants[value, i]) for i, piece in enumerate(value.inputs))
            return Made(first.launch, first.slot, (*first.more, *rest))
        if isinstance(value.op, Get) and source in self.group_of:
            first = self.made[source, self.formats.of[source]]
            return Made(first.launch, first.slot + value.op.index)
        return self._value(source, self.formats.wants[value, 0])

    def _convert(self, conversion: Conversion) -> Made:
        value = conversion.producer
        source = self._value(value, conversion.source)
        image = value in self.images
        before, after = (_stored(_stored_type(value, self.formats), f, image) for f in (conversion.source, conversion.target))
        core = VECTOR if self.chip.split else CUBE
        attrs = {"src_format": before.format, "dst_format": after.format}
        reader = conversion.consumers[0] if conversion.consumers else value
        label = self._name(f"trans_TransData_{sum(x.task.kind == 'TransData' for x in self.row)}")
        task = Task("TransData", (before,), (after,), attrs, core, (), label, str(reader.loc))
        refs = (source, *source.more)
        self.row.append(Launch(task, (), tuple(r.launch for r in refs), tuple(r.slot for r in refs), (value,), conversion))
        return Made(len(self.row) - 1)

    def _operand(self, value: Node, format: str, groups: int) -> Operand:
        return _stored(_stored_type(value, self.formats), format, value in self.images, groups)

    # ------------------------------------------------------------------ names
    def _label(self, node: Node, kind: str) -> str:
        return self._name(node.loc.name or f"{kind}_{len(self.row)}")

    def _name(self, wanted: str) -> str:
        """The name, with a number where another kernel has it: tools tell kernels apart by it."""
        count = self.names.get(wanted, 0)
        self.names[wanted] = count + 1
        return f"{wanted}_{count}" if count else wanted


def _stored_type(value: Node, formats: Formats) -> TensorType:
    """The type of the memory behind a value: that of what a matrix product reads turned."""
    while value in formats.turned:
        value = value.inputs[0]
    type_: TensorType = value.type
    if value in formats.half:
        type_ = type_.with_shape((*type_.shape[:-2], type_.shape[-1], type_.shape[-2]))
    return type_


def _stored(type_: TensorType, format: str, image: bool, groups: int = 1) -> Operand:
    """A tensor as a kernel sees it."""
    if not is_private(format):
        return Operand(type_.dims, type_.dtype, NCHW if image and type_.rank == 4 else ND)
    return Operand(stored_shape(type_.dims, format, type_.dtype, groups), type_.dtype, base_format(format))


def _images(graph: Graph, formats: Formats) -> set[Node]:
    """Values that are images: read or made by what works on images, or turned into their formats."""
    found: set[Node] = set()
    for node in graph.nodes:
        if isinstance(node.op, IMAGE_OPS):
            found |= {node, *node.inputs}
    for c in formats.conversions:
        if base_format(c.source) in (NC1HWC0, NDC1HWC0) or base_format(c.target) in (NC1HWC0, NDC1HWC0):
            found.add(c.producer)
    return found


def counted(row: Sequence[Launch]) -> Mapping[str, int]:
    """Number of launches by kind, the most frequent first."""
    found: dict[str, int] = {}
    for launch in row:
        found[launch.task.kind] = found.get(launch.task.kind, 0) + 1
    return dict(sorted(found.items(), key=lambda item: -item[1]))
