"""Channels first by way of channels last: operators that the layout pass did not reach, between transposes.

In: a convolution, or a gradient of one or of a pool, with channels first.  Out: tasks: transposes of its images, the same operator with
channels last, and a transpose of its result where that is an image.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from jumar.device import Target
from jumar.ir import Node
from jumar.operators.conv_grad import ConvGradWeight
from jumar.operators.cpu.conv_grad_weight import lower_weight_gradient
from jumar.operators.cpu.pool_grad import lower_pool_gradient
from jumar.operators.movement import Transpose
from jumar.operators.pooling import AvgPoolGrad, MaxPoolGrad
from jumar.operators.schedule import Lowered, Place, Task, Temp, TempPlace, find_schedule, schedule


@schedule("cpu", ConvGradWeight)
def lower_weights(node: Node, target: Target) -> Lowered | None:
    """The tasks of a gradient of filters."""
    assert isinstance(node.op, ConvGradWeight), "registered for it"
    return lower_weight_gradient(node, target) if node.op.channels_last else between_transposes(node, target, 2, image=False)


@schedule("cpu", MaxPoolGrad, AvgPoolGrad)
def lower_pools(node: Node, target: Target) -> Lowered | None:
    """The tasks of a gradient of a pool."""
    op = node.op
    assert isinstance(op, MaxPoolGrad | AvgPoolGrad), "registered for these"
    if op.channels_last:
        return lower_pool_gradient(node, target)
    shape = {"x_shape": (node.shape[0], *node.shape[2:], node.shape[1])} if isinstance(op, AvgPoolGrad) else {}
    return between_transposes(node, target, len(node.inputs), shape)


def between_transposes(
    node: Node, target: Target, images: int, fields: Mapping[str, Any] | None = None, *, image: bool = True
) -> Lowered | None:  # fmt: skip
    """The tasks of an operator with channels first.   images: how many of its inputs are images; fields: its attributes that differ with
    channels last; image: whether the result is one."""
    rank = node.inputs[0].rank
    last = (0, *range(2, rank), 1)
    turned = [Transpose(last)(i) if at < images else i for at, i in enumerate(node.inputs)]
    op: Any = node.op
    middle = replace(op, channels_last=True, **(fields or {}))(*turned)
    back = Transpose((0, rank - 1, *range(1, rank - 1)))(middle) if image else middle
    places: dict[Node, Place | TempPlace] = {}
    tasks: list[Task] = []
    for step in dict.fromkeys((*turned[:images], middle, back)):
        found = find_schedule(target.name, step.op)
        lowered = found(step, target) if found else None
        if lowered is None:
            return None
        if lowered.alias is None:
            places[step] = Place(node) if step is back else TempPlace(Temp(step.type.nbytes, "channels last"))
        elif step is back:  # nothing but a name: what comes before is the result
            places[middle] = Place(node)
        else:
            places[step] = lowered.alias
        tasks += lowered.tasks
    return Lowered(tuple(replace(t, args=tuple(moved(a, places) if isinstance(a, Place) else a for a in t.args)) for t in tasks))


def moved(place: Place, places: dict[Node, Place | TempPlace]) -> Place | TempPlace:
    """A place in terms of where its node really is."""
    found = places.get(place.node)
    return place if found is None else replace(found, nbytes_offset=found.nbytes_offset + place.nbytes_offset)
