"""Rules by operator: a table from operator class to the rules that may apply to its nodes, and the pass over a graph that applies them.

In: functions `(Node, Alone) -> Node | None` under `@rule(TABLE, Add, Mul)`.  Out: the graph where none applies any more, and how often each
did.  `alone(node)` says whether one node only reads that one: what others read too must be computed anyway.
`ir.rewrite` is the same for a plain list; the table spares asking sixty rules about each of a thousand nodes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

from jumar.base import CompileError
from jumar.ir import Graph, Node, Op, Rule, rebuild, same_node

Alone = Callable[[Node], bool]
UserRule = Callable[[Node, Alone], Node | None]
Table = dict[type[Op], list[Rule | UserRule]]
MAX_STEPS = 64


def rule(table: Table, *ops: type[Op]) -> Callable[[Rule], Rule]:
    """Lists a rule under the operators (or families) of the node it looks at."""

    def register(function: Rule) -> Rule:
        for op in ops:
            table.setdefault(op, []).append(function)
        return function

    return register


def user_rule(table: Table, *ops: type[Op]) -> Callable[[UserRule], UserRule]:
    """The same for a rule that asks who else reads a node."""

    def register(function: UserRule) -> UserRule:
        _USER_RULES.add(function)
        for op in ops:
            table.setdefault(op, []).append(function)
        return function

    return register


_USER_RULES: set[Any] = set()


def rules_of(table: Table, op: type[Op], found: dict[type[Op], tuple[Any, ...]]) -> tuple[Any, ...]:
    """The rules for an operator class: its own, then its family's."""
    if op not in found:
        found[op] = tuple(r for c in op.__mro__ for r in table.get(c, ()))
    return found[op]


def apply_rules(graph: Graph, table: Table, *, max_rounds: int = 32) -> tuple[Graph, Counter[str]]:
    """Applies the rules, inputs first, until nothing changes."""
    graph, hits, settled = repeat(graph, lambda g, h: _round(g, table, h), max_rounds)
    if settled:
        return graph, hits
    raise CompileError(
        f"rules: they must come to an end, and go on after {max_rounds} rounds ({_busiest(hits)}): this is our bug", code="our-bug"
    )


def repeat(graph: Graph, one_round: Callable[[Graph, Counter[str]], Graph], max_rounds: int) -> tuple[Graph, Counter[str], bool]:
    """Rounds until one notes no hit: the graph, the hits, and whether that came to pass within `max_rounds`."""
    hits: Counter[str] = Counter()
    for _ in range(max_rounds):
        before = sum(hits.values())
        graph = one_round(graph, hits)
        if sum(hits.values()) == before:
            return graph, hits, True
    return graph, hits, False


def _busiest(hits: Counter[str]) -> str:
    return ", ".join(f"{name} {count}" for name, count in hits.most_common(3))


def _round(graph: Graph, table: Table, hits: Counter[str]) -> Graph:
    found: dict[type[Op], tuple[Any, ...]] = {}
    single = {n for n, users in graph.users.items() if len(users) == 1} - set(graph.outputs)
    alone: set[Node] = set()  # nodes of the new graph with one reader; of those made in this round nothing is known

    def visit(node: Node, inputs: tuple[Node, ...]) -> Node:
        current = same_node(node, inputs)
        for _ in range(MAX_STEPS):
            new = _first(current, rules_of(table, type(current.op), found), hits, alone.__contains__)
            if new is None:
                break
            current = new
        else:
            raise CompileError(
                f"rules: {node.op.name} must come to an end, and goes on ({_busiest(hits)}): this is our bug", loc=node.loc, code="our-bug"
            )
        if node in single:
            alone.add(current)
        return current

    return rebuild(graph, visit)


def _first(node: Node, rules: tuple[Any, ...], hits: Counter[str], alone: Alone) -> Node | None:
    for function in rules:
        new: Node | None = function(node, alone) if function in _USER_RULES else function(node)
        if new is not None and new is not node:
            if new.type != node.type:
                what = f"{function.__name__}: type of {node.op} must stay {node.type}, got {new.type}: this is our bug"
                raise CompileError(what, loc=node.loc, code="our-bug")
            hits[function.__name__] += 1
            return new
    return None
