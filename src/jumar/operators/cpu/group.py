"""Dispatch: which schedule a node or a fused group gets.

In: a node of the final graph.  Out: its tasks.  A group is a loop nest (`region.py`), pointwise or in rows.
"""

from __future__ import annotations

from jumar.device import Target
from jumar.ir import Node
from jumar.operators.cpu.contraction import lower_contraction
from jumar.operators.cpu.expression import Accumulate
from jumar.operators.cpu.pointwise import lower_pointwise
from jumar.operators.cpu.region import Region, region_of
from jumar.operators.cpu.root import root_group
from jumar.operators.cpu.rows import lower_rows
from jumar.operators.families import Composite, Elementwise, Reduction
from jumar.operators.fused import Fused
from jumar.operators.reduction import ArgMax, ArgMin
from jumar.operators.schedule import Lowered, Place, TaskArg, schedule


@schedule("cpu", Elementwise, Reduction, Composite, ArgMax, ArgMin)
def lower_node(node: Node, target: Target) -> Lowered | None:
    """One operator as a loop nest; None where it is none."""
    if isinstance(node.type, tuple):
        return None
    if node.type.size == 0:
        return Lowered()
    region = region_of([node], node.inputs)
    if region is None:
        return None
    places: dict[Node, TaskArg] = {i: Place(i) for i in node.inputs}
    places[region.targets[0].node] = Place(node)
    return lower_region(region, places, target, str(node.op))


@schedule("cpu", Fused)
def lower_fused(node: Node, target: Target) -> Lowered | None:
    """A group: its body as a loop nest."""
    assert isinstance(node.op, Fused), "registered for Fused"
    if root_group(node):
        return lower_contraction(node, target)
    body = node.op.body
    region = region_of(body.outputs)
    if region is None:
        return None
    places: dict[Node, TaskArg] = {p: Place(i) for p, i in zip(body.params, node.inputs, strict=True)}
    places |= {t.node: Place(node, 0, i) for i, t in enumerate(region.targets)}
    return lower_region(region, places, target, body.name)


def lower_region(region: Region, places: dict[Node, TaskArg], target: Target, label: str) -> Lowered | None:
    """The tasks of a loop nest."""
    if any(isinstance(s.op, Accumulate) for s in region.expression.steps):
        return lower_rows(region, places, target, label)
    return lower_pointwise(region, places, target, label)
