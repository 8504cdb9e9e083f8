"""Concats and splits that move nothing: their pieces are written, or read, where they lie.

In: a graph with its formats, and which kernel makes each value.  Out: the concats and slices that launch nothing, with the rule that says so.
Comes before: the groups of fuse_npu.py.  After: tasks.py, where who reads such a concat reads all of its pieces.

A concat needs no kernel where its pieces lie one behind the other: where every dimension before its axis, as stored, is 1 (CANN's ConcatNotaskPass), or
where convolutions write channels of whole blocks at a distance (ConvConcatFusionPass).  The same for slices that cut a value up completely.
"""

from __future__ import annotations

from collections.abc import Mapping

from jumar.base import TensorType
from jumar.compiler.passes.formats import Formats
from jumar.compiler.passes.fusion_rules import CONV, DEPTHWISE, head_of
from jumar.compiler.passes.splits import shared_out
from jumar.compiler.passes.switches import Switches, rule_names
from jumar.device.npu import FRACTAL_NZ, NC1HWC0, ND, base_format, stored_nbytes, stored_shape
from jumar.ir import Constant, Graph, Node, Param
from jumar.operators import Concat

NO_TASK = "ConcatNotaskPass"  # a pass of the graph engine: no switch file knows it
FROM_CONVS, OF_SPLITS = "ConvConcatFusionPass", "FusionVirtualOpSetSwitch"
ALIGNED_NBYTES = 32
Groups = Mapping[Node, tuple[Node, Node]]  # the first operator of the kernel that makes a value, and the one whose result leaves it


def in_place(graph: Graph, formats: Formats, family: str, switches: Switches, makers: Groups) -> dict[Node, str]:
    """The concats and slices that launch nothing, and by which rule."""
    found: dict[Node, str] = {}
    taken: set[Node] = set()  # a piece lies in one place
    for node in graph.nodes:
        if isinstance(node.op, Concat) and node in makers and makers[node] == (node, node):
            rule = _concat(graph, node, formats, makers, taken | set(found), _on(FROM_CONVS, family, switches))
            if rule:
                found[node] = rule
                taken |= set(node.inputs)
    if _on(OF_SPLITS, family, switches):
        for value, parts in _splits(graph, formats, makers).items():
            if value not in found and not taken & {value, *parts}:
                found |= dict.fromkeys(parts, OF_SPLITS)
    return found


def _on(rule: str, family: str, switches: Switches) -> bool:
    return rule_names()[rule].on(family) and switches.enabled(rule)


def _concat(graph: Graph, node: Node, formats: Formats, makers: Groups, taken: set[Node], from_convs: bool) -> str:
    """The rule by which a concat launches nothing, empty where it does."""
    pieces = node.inputs
    axis = node.op.axis % node.rank  # type: ignore[attr-defined]
    written = all(p in makers and p not in taken and p not in graph.outputs for p in pieces) and len(set(pieces)) == len(pieces)
    together = all(formats.of[p] == formats.of[node] for p in pieces)
    if not written or not together or len(pieces) < 2:
        return ""
    if _lies_together(node, axis, formats) and all(_aligned(p, formats) for p in pieces):
        return NO_TASK
    channels = axis == 1 and base_format(formats.of[node]) == NC1HWC0
    convs = all(head_of(makers[p][0]) in (CONV, DEPTHWISE) and makers[p][1] is p and len(graph.users[p]) == 1 for p in pieces)
    return FROM_CONVS if channels and convs and from_convs else ""


def _splits(graph: Graph, formats: Formats, makers: Groups) -> dict[Node, tuple[Node, ...]]:
    """Values that slices cut up completely along their first dimension larger than 1, with those slices."""
    found: dict[Node, tuple[Node, ...]] = {}
    for value in graph.nodes:
        if isinstance(value.op, Param | Constant) or not isinstance(value.type, TensorType) or value not in makers:
            continue
        parts, axis = shared_out(graph, value)
        alike = all(p in makers and p not in graph.outputs and formats.of[p] == formats.of[value] for p in parts)
        if axis is None or not alike:
            continue
        if _lies_together(value, axis, formats) and all(_aligned(p, formats) for p in parts):
            found[value] = tuple(parts)
    return found


def _lies_together(value: Node, axis: int, formats: Formats) -> bool:
    """Whether every dimension before an axis, as stored, is 1."""
    format = formats.of[value]
    stored = stored_shape(value.shape, format, value.dtype)
    places = {ND: axis, NC1HWC0: axis, FRACTAL_NZ: {value.rank - 1: value.rank - 2, value.rank - 2: value.rank - 1}.get(axis, axis)}
    at = places.get(base_format(format))
    return at is not None and all(d == 1 for d in stored[:at])


def _aligned(value: Node, formats: Formats) -> bool:
    return stored_nbytes(value.shape, formats.of[value], value.dtype) % ALIGNED_NBYTES == 0
