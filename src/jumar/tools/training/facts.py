"""Facts of a watched run: what `watch.py` saw, and what `findings.py` judges.

In: numbers of steps, data, gradients and operators.  Out: the same as JSON, from one process to another.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from jumar.base import ToolError


@dataclass
class Column:
    """One column of the data, over all batches seen.   firsts: the label of each batch if it is the same for all samples in it, else None."""

    name: str
    dtype: str
    batches: int = 0
    samples: int = 0
    bad: int = 0  # NaN or infinite elements
    least: float = math.inf
    most: float = -math.inf
    total: float = 0.0
    squares: float = 0.0
    count: int = 0
    constant_batches: int = 0
    sorted_batches: int = 0
    whole: bool = True  # holds integers only, one a sample

    @property
    def mean(self) -> float:
        return self.total / self.count if self.count else 0.0

    @property
    def deviation(self) -> float:
        return math.sqrt(max(0.0, self.squares / self.count - self.mean**2)) if self.count else 0.0


@dataclass
class Layer:
    """One parameter, over all steps.   norms: of its gradient; zeros: shares of the gradient that are 0; steps: |change| / |parameter|."""

    name: str
    norms: list[float] = field(default_factory=list)
    zeros: list[float] = field(default_factory=list)
    changes: list[float] = field(default_factory=list)


@dataclass
class Bad:
    """The first operator whose result is not finite though its inputs are.   phase: "forward" or "backward"."""

    step: int
    op: str
    dtype: str
    phase: str
    place: str
    cell: str
    largest: float


@dataclass
class Facts:
    """A run of a few steps.   leaves: layers without layers below, in the order of the network; narrow: whether float16 or bfloat16 was computed with."""

    losses: list[float] = field(default_factory=list)
    steps: int = 0
    rates: list[float] = field(default_factory=list)
    scales: list[float] = field(default_factory=list)
    columns: dict[str, Column] = field(default_factory=dict)
    layers: dict[str, Layer] = field(default_factory=dict)
    relus: dict[str, float] = field(default_factory=dict)  # share of units that never were above 0
    leaves: list[str] = field(default_factory=list)
    classes: int = 0
    narrow: bool = False
    narrow_leaves: list[str] = field(default_factory=list)
    shuffled: bool | None = None
    bad: Bad | None = None
    error: str = ""

    def to_json(self) -> str:
        return json.dumps(asdict(self))

    @staticmethod
    def from_json(text: str) -> Facts:
        raw: dict[str, Any] = json.loads(text)
        raw["columns"] = {n: Column(**c) for n, c in raw["columns"].items()}
        raw["layers"] = {n: Layer(**c) for n, c in raw["layers"].items()}
        raw["bad"] = Bad(**raw["bad"]) if raw["bad"] else None
        return Facts(**raw)

    @property
    def finite(self) -> bool:
        """Whether all losses and gradients were finite."""
        return (
            not self.error
            and all(map(math.isfinite, self.losses))
            and all(math.isfinite(n) for la in self.layers.values() for n in la.norms)
        )

    @property
    def falls(self) -> bool:
        """Whether the loss of the last third is below that of the first steps."""
        return self.finite and len(self.losses) >= 3 and self.last < self.first

    @property
    def first(self) -> float:
        """Mean loss of the first steps."""
        return mean(self.losses[: max(1, len(self.losses) // 5)])

    @property
    def last(self) -> float:
        """Mean loss of the last third."""
        return mean(self.losses[-max(1, len(self.losses) // 3) :])


def mean(values: Sequence[float]) -> float:
    """Mean; NaN of nothing."""
    return sum(values) / len(values) if values else math.nan


@dataclass(frozen=True)
class Order:
    """What a watched run is to do.   wide: layers that compute in float32; factor: of the learning rate."""

    steps: int
    wide: tuple[str, ...] = ()
    factor: float = 1.0

    def to_json(self) -> str:
        return json.dumps(asdict(self))

    @staticmethod
    def from_json(text: str) -> Order:
        raw = json.loads(text)
        if not isinstance(raw, dict) or "steps" not in raw:
            raise ToolError("train-check: order must be JSON with steps, got something else", code="our-bug")
        return Order(raw["steps"], tuple(raw["wide"]), raw["factor"])
