"""What may be one kernel: the questions that the fuse and decompose passes ask of a target's schedules.

In: a target, the body of a group that is thought of, or a node.  Out: an answer in words: nothing where a schedule takes it, else why not.
The answers are the target's own (`FUSION`, cpu/fusible.py), loaded with its schedules.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from jumar.ir import Graph, Node, Op
from jumar.operators.attention import Attention
from jumar.operators.conv_grad import ConvGradInput
from jumar.operators.families import Contraction
from jumar.operators.schedule import schedules

ROOTS = (Contraction, Attention, ConvGradInput)


@dataclass(frozen=True)
class Fusion:
    """A target's answers.   refusal: why no schedule takes a body as one kernel; is_one_nest: whether a node by itself is one loop nest."""

    refusal: Callable[[Graph], str]
    is_one_nest: Callable[[Node], bool]


FUSION: dict[str, Fusion] = {}


def is_root(op: Op) -> bool:
    """Whether an operator may carry an epilogue: contractions and attention."""
    return isinstance(op, ROOTS)


def refusal(target: str, body: Graph) -> str:
    """Why no schedule of the target takes the body as one kernel; empty where one does."""
    schedules(target)
    return FUSION[target].refusal(body) if target in FUSION else f"target {target} fuses nothing"


def has_own_schedule(target: str, op: Op) -> bool:
    """Whether a schedule was written for this very operator."""
    return type(op) in schedules(target)


def is_one_nest(target: str, node: Node) -> bool:
    """Whether the node by itself is one loop nest of the target."""
    schedules(target)
    return target in FUSION and FUSION[target].is_one_nest(node)
