"""What all operations on rows are: callables on one or more values, with the random numbers of the row at hand.

In: values of a row.  Out: one value, or a tuple.  A random operation draws from `row_generator()`: in a pipeline these numbers follow from the
seed, the pass and the row, so that results do not depend on workers; called by hand they follow from `config.set_seed`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from jumar.dataset.errors import DataTypeFault, check_number
from jumar.dataset.order import row_generator


class Transform:
    """An operation.   `apply` works on one value; several values are worked on one by one."""

    def __call__(self, *values: Any) -> Any:
        if not values:
            raise DataTypeFault(f"{type(self).__name__}: must be called with a value, got none")
        results = tuple(self.apply(v) for v in values)
        return results[0] if len(results) == 1 else results

    def apply(self, value: Any) -> Any:
        raise NotImplementedError(f"{type(self).__name__}: must define apply")

    def __repr__(self) -> str:
        return type(self).__name__


def draws() -> np.random.Generator:
    """The random numbers of the row at hand."""
    return row_generator()


def check_prob(who: str, prob: Any) -> float:
    return check_number(who, "prob", prob, 0.0, 1.0)


def pair(who: str, name: str, value: Any, low: float = float("-inf"), high: float = float("inf")) -> tuple[float, float]:
    """(least, most) of a range."""
    if not isinstance(value, (tuple, list)) or len(value) != 2:
        raise DataTypeFault(f"{who}: {name} must be a pair, got {value!r}")
    found = check_number(who, name, value[0], low, high), check_number(who, name, value[1], low, high)
    if found[0] > found[1]:
        raise DataTypeFault(f"{who}: {name} must be (least, most), got {value!r}")
    return found


def check_transforms(who: str, transforms: Any) -> list[Any]:
    if not isinstance(transforms, Sequence) or not transforms or not all(callable(t) for t in transforms):
        raise DataTypeFault(f"{who}: transforms must be a list of functions, got {transforms!r}")
    return list(transforms)
