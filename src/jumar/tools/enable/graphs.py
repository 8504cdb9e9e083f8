"""The compiled graph as boxes for the picture, and the colour of each step.

In: `Compiled` values.  Out: `GraphNode`s, and for each step of a program its kind.
"""

from __future__ import annotations

from collections.abc import Sequence

from jumar.compiler import Compiled
from jumar.ir import Constant, Get, Graph, Node, Op, Param
from jumar.operators import Contraction, Fused
from jumar.tools.enable.facts import GraphNode

SHOWN_OPS = 4  # of a fused group, before "and n more"


def boxes(graphs: Sequence[Graph]) -> tuple[GraphNode, ...]:
    """A box for each operator of the graphs, one graph after the other; constants are left out."""
    found: list[GraphNode] = []
    for graph in graphs:
        at: dict[Node, int] = {p: -1 - i for i, p in enumerate(graph.params)} if graph is graphs[0] else {}
        for node in graph.nodes:
            match node.op:
                case Param() | Constant():
                    continue
                case Get():
                    if node.inputs[0] in at:
                        at[node] = at[node.inputs[0]]
                    continue
            inputs = tuple(dict.fromkeys(at[i] for i in node.inputs if i in at))
            at[node] = len(found)
            type_ = node.type[0] if isinstance(node.type, tuple) and node.type else node.type
            found.append(GraphNode(title(node.op), kind(node.op), str(type_), place(node), inputs, _detail(node.op)))
    return tuple(found)


def title(op: Op) -> str:
    """What a person calls an operator; a fused group by its parts.

    >>> from jumar.operators import Exp
    >>> title(Exp())
    'exp'
    """
    if not isinstance(op, Fused):
        return str(op.name)
    names = [n.op.name for n in op.body.nodes if not isinstance(n.op, Param | Constant | Get)]
    more = len(names) - SHOWN_OPS
    return " + ".join(names[:SHOWN_OPS]) + (f" + {more} more" if more > 0 else "")


def kind(op: Op) -> str:
    """The colour: the family, and for a group that of its weightiest part."""
    if isinstance(op, Fused):
        inner = [n.op for n in op.body.nodes]
        return "contraction" if any(isinstance(o, Contraction) for o in inner) else "fused"
    return op.family if op.family in ("contraction", "elementwise", "reduction", "movement") else "other"


def _detail(op: Op) -> str:
    if isinstance(op, Fused):
        return ", ".join(str(n.op) for n in op.body.nodes if not isinstance(n.op, Param | Constant | Get))[:300]
    return str(op) if op.attributes() else ""


def place(node: Node) -> str:
    """Where in the model a node comes from; the file is the same for all and left out."""
    return node.loc.name or str(node.loc)


def owners(compiled: Compiled) -> tuple[Node, ...]:
    """The node of each step; none where the program came from the cache."""
    return compiled.assembled.owners if compiled.assembled else ()
