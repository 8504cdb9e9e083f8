"""Slices that cut a value up completely: what a model wrote as one split, and what the device runs as one.

In: a graph and a value of it.  Out: its slices in order.  After: format_options.py, fuse_npu.py, in_place.py.
"""

from __future__ import annotations

from jumar.ir import Graph, Node
from jumar.operators import Slice


def shared_out(graph: Graph, value: Node) -> tuple[list[Node], int | None]:
    """The slices that cut a value up completely, in order, and along which axis; no axis where they do not.   What a model wrote as one split."""
    parts = [u for u in dict.fromkeys(graph.users[value]) if isinstance(u.op, Slice) and all(s == 1 for s in u.op.steps)]
    axes = {i for p in parts for i in range(value.rank) if p.shape[i] != value.shape[i]}
    if len(parts) < 2 or len(axes) != 1:
        return [], None
    (axis,) = axes
    parts.sort(key=lambda p: p.op.starts[axis])  # type: ignore[attr-defined]
    ends = [0]
    for p in parts:
        if p.op.starts[axis] != ends[-1]:  # type: ignore[attr-defined]
            return [], None
        ends.append(ends[-1] + p.shape[axis])
    return (parts, axis) if ends[-1] == value.shape[axis] else ([], None)
