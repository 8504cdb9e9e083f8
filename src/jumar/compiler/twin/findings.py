"""What is found when a chip's arithmetic is executed: plain data, for reports and JSON.

In: made by numerics.py.  Out: `Findings`, read by the tools.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

ALLOWED = 0.02  # of an output's length: a model in fp16 is well below
NEGLIGIBLE = 1e-3  # in one element: scores and probabilities that are all near 0 may be further off than that share of themselves


@dataclass(frozen=True)
class NodeNumerics:
    """One node whose result is of floats, or of integers that differ.   number: its place in the graph; name: the model's name for it; place: file, line.

    largest: the largest finite magnitude, exactly; limit: the largest that the type holds; filled: one over the other.
    error, max_error: against fp32 at this point of the graph, all nodes before included: relative (over all elements, in L2) and absolute.
    born: the relative error that arises here, on exact inputs.  grown: error over the largest error among the inputs.
    overflows: elements that leave the range here, of inputs that were within; broken: elements that are not finite here, but exactly are.
    zeros, subnormals: elements that underflow here, to 0, or to fewer bits.  unbounded: not finite in fp32 either.
    step: which operator inside leaves the range first, where several make the kernel; mask: only huge negative constants do.
    wrong: integers or truth values that differ.
    """

    number: int
    op: str
    name: str
    place: str
    dtype: str
    size: int
    error: float
    max_error: float
    grown: float
    born: float = 0.0
    largest: float = 0.0
    limit: float = 0.0
    filled: float = 0.0
    overflows: int = 0
    broken: int = 0
    zeros: int = 0
    subnormals: int = 0
    unbounded: int = 0
    step: str = ""
    mask: bool = False
    wrong: int = 0

    @property
    def label(self) -> str:
        if not self.name:
            return f"{self.op} ({self.place or f'node {self.number}'})"
        return self.name if self.op.replace("_", "") in self.name.replace("_", "").lower() else f"{self.op} {self.name}"


@dataclass(frozen=True)
class OutputNumerics:
    """One output of the model.

    agreement: of rows of floats, the part whose largest element stays as good a choice (None for maps); wrong: of integers, those that differ.
    """

    name: str
    type: str
    error: float
    max_error: float
    broken: int
    agreement: float | None
    wrong: int
    size: int = 0

    @property
    def lost(self) -> bool:
        """Whether not one of its elements is finite: then nothing can be said of the others."""
        return 0 < self.size == self.broken

    @property
    def within(self) -> bool:
        """Whether it is finite, and as near as 16 bits let one hope."""
        return not self.broken and (self.error <= ALLOWED or self.max_error <= NEGLIGIBLE)


@dataclass(frozen=True)
class Candidate:
    """Nodes to keep in fp32.   before, after: the error of the worst output without and with them (and the candidates before this one).

    keep: their names in the model, for `--precision MODE,keep=NAME` and ATC's --keep_dtype.
    """

    nodes: tuple[str, ...]
    keep: tuple[str, ...]
    reason: str
    before: float
    after: float | None

    @property
    def helps(self) -> bool:
        """Whether a trial has shown that they matter."""
        return self.after is not None and self.after < 0.7 * self.before


@dataclass(frozen=True)
class Findings:
    """What the chip's arithmetic does to a graph.   mode: in words; nodes: in the order of the graph; took_s: all of it."""

    chip: str
    mode: str
    nodes: tuple[NodeNumerics, ...]
    outputs: tuple[OutputNumerics, ...]
    candidates: tuple[Candidate, ...]
    advice: tuple[str, ...]
    took_s: float

    @property
    def first_overflow(self) -> NodeNumerics | None:
        """The first node that leaves the range; one that only clips a mask comes last."""
        found = sorted((n for n in self.nodes if n.overflows), key=lambda n: (n.mask, n.number))
        return found[0] if found else None

    @property
    def worst(self) -> tuple[NodeNumerics, ...]:
        """Nodes by what they add to the error, most first: what arises in them, and what they make larger."""
        charged = (n for n in self.nodes if n.overflows or (blame(n)[1] and n.op != "constant"))  # weights round, always
        return tuple(sorted(charged, key=blame, reverse=True))

    @property
    def within(self) -> bool:
        """Whether nothing overflows but masks, and every output is near."""
        first = self.first_overflow
        return (first is None or first.mask) and all(o.within for o in self.outputs)

    @property
    def summary(self) -> str:
        """One line: what overflows first, and how far off the outputs are."""
        first = self.first_overflow
        broken = any(o.broken for o in self.outputs)
        if first is not None and first.mask and broken:
            said = f"{first.label}: the fill of a mask becomes infinite, and 0 times it, or a row of it, no number"
        elif first is None or first.mask:
            said = "nothing overflows"
        else:
            how = f"in its {first.step}" if first.step else f"with {first.largest:.3g}"
            said = f"{first.label} overflows first, {how}: {first.dtype} ends at {first.limit:g}"
        worst = worst_error(self.outputs)
        return f"{said}; outputs are {'not finite' if math.isinf(worst) else f'off by {worst:.2%}'}"

    def document(self) -> dict[str, Any]:
        """For JSON, which has no infinities: they are texts."""
        found: dict[str, Any] = _plain(asdict(self))
        first = self.first_overflow
        return {
            **found,
            "within": self.within,
            "summary": self.summary,
            "first_overflow": None if first is None else first.number,
            "worst": [n.number for n in self.worst[:10]],
        }


def worst_error(outputs: Sequence[OutputNumerics]) -> float:
    """The error of the output that is furthest off; infinite where one is not finite."""
    return max((math.inf if o.broken else o.error for o in outputs), default=0.0)


def blame(n: NodeNumerics) -> tuple[bool, float]:
    """What a node adds: an overflow first, then the larger of what arises in it and what it makes of its inputs' errors."""
    inherited = n.error / n.grown if n.grown > 1 else n.error
    return (n.overflows > 0 and not n.mask, max(n.born, n.error - inherited))


def _plain(value: Any) -> Any:
    """Lists, dictionaries, texts and finite numbers."""
    match value:
        case dict():
            return {k: _plain(v) for k, v in value.items()}
        case list() | tuple():
            return [_plain(v) for v in value]
        case float() if not math.isfinite(value):
            return str(value)
    return value
