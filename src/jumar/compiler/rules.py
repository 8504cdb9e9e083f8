"""Rules by operator: a table from operator class to the rules that may apply to its nodes, and the pass over a graph that applies them.

In: functions `Node -> Node | None` under `@rule(TABLE, Add, Mul)`.  Out: the graph where none applies any more, and how often each did.
`ir.rewrite` is the same for a plain list; the table spares asking sixty rules about each of a thousand nodes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from jumar.base import CompileError
from jumar.ir import Graph, Node, Op, Rule, rebuild, same_node

Table = dict[type[Op], list[Rule]]
MAX_STEPS = 64


def rule(table: Table, *ops: type[Op]) -> Callable[[Rule], Rule]:
    """Lists a rule under the operators (or families) of the node it looks at."""

    def register(function: Rule) -> Rule:
        for op in ops:
            table.setdefault(op, []).append(function)
        return function

    return register


def rules_of(table: Table, op: type[Op], found: dict[type[Op], tuple[Rule, ...]]) -> tuple[Rule, ...]:
    """The rules for an operator class: its own, then its family's."""
    if op not in found:
        found[op] = tuple(r for c in op.__mro__ for r in table.get(c, ()))
    return found[op]


def apply_rules(graph: Graph, table: Table, *, max_rounds: int = 32) -> tuple[Graph, Counter[str]]:
    """Applies the rules, inputs first, until nothing changes."""
    hits: Counter[str] = Counter()
    found: dict[type[Op], tuple[Rule, ...]] = {}
    settled: set[Node] = set()  # nodes that no rule changes, from earlier rounds

    def visit(node: Node, inputs: tuple[Node, ...]) -> Node:
        current = same_node(node, inputs)
        if current in settled:
            return current
        for _ in range(MAX_STEPS):
            new = _first(current, rules_of(table, type(current.op), found), hits)
            if new is None:
                settled.add(current)
                return current
            current = new
        return current

    for _ in range(max_rounds):
        before = sum(hits.values())
        graph = rebuild(graph, visit)
        if sum(hits.values()) == before:
            break
    return graph, hits


def _first(node: Node, rules: tuple[Rule, ...], hits: Counter[str]) -> Node | None:
    for function in rules:
        new = function(node)
        if new is not None and new is not node:
            if new.type != node.type:
                what = f"{function.__name__}: type of {node.op} must stay {node.type}, got {new.type}: this is our bug"
                raise CompileError(what, loc=node.loc, code="our-bug")
            hits[function.__name__] += 1
            return new
    return None
