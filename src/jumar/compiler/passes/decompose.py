"""What a target lacks is said in simpler operators, until all that is left has a schedule or no simpler form.

In: any graph.  Out: the same function in operators that the target knows: those with a schedule (operators/fusible.py).
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from jumar.base import CompileError, event
from jumar.compiler.rules import repeat
from jumar.ir import Get, Graph, Node, Op, located, rebuild, same_node
from jumar.operators import Composite, LayerNorm, LogSoftmax, LpNorm, RmsNorm, Softmax, has_own_schedule, is_one_nest


@dataclass(frozen=True)
class Decompose:
    """target: whose schedules are asked; rows: operators that stay where they are one loop nest; layout and fuse know them by name."""

    target: str = "cpu"
    rows: tuple[type[Op], ...] = (Softmax, LogSoftmax, LayerNorm, RmsNorm, LpNorm)
    max_rounds: int = 16
    name = "decompose"

    def __call__(self, graph: Graph) -> Graph:
        graph, hits, _ = repeat(graph, self._round, self.max_rounds)
        if hits:
            event("decompose", **hits)
        return graph

    def _round(self, graph: Graph, hits: Counter[str]) -> Graph:
        several: dict[Node, tuple[Node, ...]] = {}

        def visit(node: Node, inputs: tuple[Node, ...]) -> Node:
            if isinstance(node.op, Get) and inputs[0] in several:
                return several[inputs[0]][node.op.index]
            found = same_node(node, inputs)
            if not isinstance(node.op, Composite) or self.stays(found):
                return found
            parts = decomposed(found)
            if parts is None:
                return found
            hits[node.op.name] += 1
            if len(parts) == 1 and not isinstance(node.type, tuple):
                return parts[0]
            several[found] = parts
            return found

        return rebuild(graph, visit)

    def stays(self, node: Node) -> bool:
        """Whether the target computes the node as it is."""
        return has_own_schedule(self.target, node.op) or (isinstance(node.op, self.rows) and is_one_nest(self.target, node))


def decomposed(node: Node) -> tuple[Node, ...] | None:
    """The results of a composite node in simpler operators, checked against its types; None where it has no simpler form."""
    op = node.op
    if not isinstance(op, Composite) or type(op).decompose is Composite.decompose:
        return None
    with located(node.loc):  # else the parts have the place of what they read
        made = op.decompose(*node.inputs)
    parts = made if isinstance(made, tuple) else (made,)
    types = node.type if isinstance(node.type, tuple) else (node.type,)
    if tuple(p.type for p in parts) != types:
        got = ", ".join(str(p.type) for p in parts)
        raise CompileError(
            f"{op.name}: decompose must give {', '.join(map(str, types))}, got {got}: this is our bug", loc=node.loc, code="our-bug"
        )
    return parts
