"""Rules on graphs: a rule is a function `Node -> Node | None`, written with Python's own `match`.

In: a graph and rules from compiler/passes.  Out: the graph where no rule applies any more, and how often each did.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

from jumar.base import IRError
from jumar.ir.graph import Graph, Node, rebuild, same_node

Rule = Callable[[Node], Node | None]


def rewrite(graph: Graph, rules: Sequence[Rule], *, max_rounds: int = 64) -> tuple[Graph, Counter[str]]:
    """Applies the rules bottom-up until nothing changes.

    A rule sees a node whose inputs are already rewritten; what it returns must have the node's type, and is offered to the rules again.
    """
    hits: Counter[str] = Counter()

    def visit(node: Node, inputs: tuple[Node, ...]) -> Node:
        found = same_node(node, inputs)
        for _ in range(max_rounds):
            for rule in rules:
                new = rule(found)
                if new is not None and new is not found:
                    if new.type != found.type:
                        raise IRError(
                            f"{rule.__name__}: type must stay {found.type}, got {new.type}: this is our bug", loc=node.loc, code="our-bug"
                        )
                    hits[rule.__name__] += 1
                    found = new
                    break
            else:
                return found
        return found

    for _ in range(max_rounds):
        before = sum(hits.values())
        graph = rebuild(graph, visit)
        if sum(hits.values()) == before:
            break
    return graph, hits
