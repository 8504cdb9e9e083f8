"""Learning rates as cells: the rate at a step, computed with the network.

In: the global step.  Out: the rate, a float32 scalar.
"""

from __future__ import annotations

import math
from typing import Any

from jumar import ops
from jumar.frontend import dtype as types
from jumar.frontend.promote import as_tensor, cast
from jumar.frontend.tensor import Tensor
from jumar.nn.cell import Cell

__all__ = ["CosineDecayLR", "ExponentialDecayLR", "InverseDecayLR", "NaturalExpDecayLR", "PolynomialDecayLR", "WarmUpLR"]


class LearningRateSchedule(Cell):
    """The base of schedules: `construct(global_step)` returns the rate."""

    def construct(self, global_step: Any) -> Any:
        raise NotImplementedError(f"{type(self).__name__}: construct must be defined")


def _step(global_step: Any) -> Tensor:
    return cast(as_tensor(global_step), types.float32)


def _positive(owner: str, **values: Any) -> None:
    for name, value in values.items():
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise TypeError(f"For '{owner}', the '{name}' must be a number, but got {type(value).__name__}.")
        if value <= 0:
            raise ValueError(f"For '{owner}', the '{name}' must be > 0, but got {value}.")


class _Decay(LearningRateSchedule):
    """What decays by a rate share.   is_stair: whether only whole multiples of decay_steps count."""

    def __init__(self, learning_rate: float, decay_rate: float, decay_steps: int, is_stair: bool = False) -> None:
        super().__init__()
        name = type(self).__name__
        _positive(name, learning_rate=learning_rate, decay_rate=decay_rate, decay_steps=decay_steps)
        if not isinstance(learning_rate, float):
            raise TypeError(f"For '{name}', the 'learning_rate' must be a float, but got {type(learning_rate).__name__}.")
        if not isinstance(is_stair, bool):
            raise TypeError(f"For '{name}', the 'is_stair' must be bool, but got {type(is_stair).__name__}.")
        self.learning_rate, self.decay_rate, self.decay_steps, self.is_stair = learning_rate, decay_rate, decay_steps, is_stair


class ExponentialDecayLR(_Decay):
    """learning_rate * decay_rate^(step / decay_steps)."""

    def construct(self, global_step: Any) -> Tensor:
        p = _step(global_step) / self.decay_steps
        return ops.exp((ops.floor(p) if self.is_stair else p) * math.log(self.decay_rate)) * self.learning_rate  # type: ignore[no-any-return]


class NaturalExpDecayLR(_Decay):
    """learning_rate * exp(-decay_rate * step)."""

    def construct(self, global_step: Any) -> Tensor:
        p = _step(global_step)
        if self.is_stair:
            p = ops.floor(p / self.decay_steps) * self.decay_steps
        return ops.exp(p * -self.decay_rate) * self.learning_rate  # type: ignore[no-any-return]


class InverseDecayLR(_Decay):
    """learning_rate / (1 + decay_rate * step / decay_steps)."""

    def construct(self, global_step: Any) -> Tensor:
        p = _step(global_step) / self.decay_steps
        return self.learning_rate / ((ops.floor(p) if self.is_stair else p) * self.decay_rate + 1)


class CosineDecayLR(LearningRateSchedule):
    """From max_lr to min_lr along half a cosine, over decay_steps."""

    def __init__(self, min_lr: float, max_lr: float, decay_steps: int) -> None:
        super().__init__()
        _positive("CosineDecayLR", max_lr=max_lr, decay_steps=decay_steps)
        if not isinstance(min_lr, float) or min_lr < 0:
            raise ValueError(f"For 'CosineDecayLR', the 'min_lr' must be a float of at least 0, but got {min_lr!r}.")
        if min_lr >= max_lr:
            raise ValueError(f"For 'CosineDecayLR', the 'max_lr' must be greater than the 'min_lr', but got {max_lr} and {min_lr}.")
        self.min_lr, self.max_lr, self.decay_steps = min_lr, max_lr, decay_steps

    def construct(self, global_step: Any) -> Tensor:
        p = ops.minimum(_step(global_step), float(self.decay_steps)) * (math.pi / self.decay_steps)
        return (ops.cos(p) + 1.0) * (0.5 * (self.max_lr - self.min_lr)) + self.min_lr  # type: ignore[no-any-return]


class PolynomialDecayLR(LearningRateSchedule):
    """From learning_rate to end_learning_rate by a power of what is left of decay_steps.   update_decay_steps: begin anew when they are over."""

    def __init__(
        self, learning_rate: float, end_learning_rate: float, decay_steps: int, power: float, update_decay_steps: bool = False
    ) -> None:
        super().__init__()
        _positive("PolynomialDecayLR", learning_rate=learning_rate, decay_steps=decay_steps, power=power)
        if not isinstance(end_learning_rate, float) or end_learning_rate < 0:
            raise ValueError(
                f"For 'PolynomialDecayLR', the 'end_learning_rate' must be a float of at least 0, but got {end_learning_rate!r}."
            )
        self.start_learning_rate, self.end_learning_rate, self.decay_steps = learning_rate, end_learning_rate, decay_steps
        self.power, self.update_decay_steps = power, update_decay_steps

    def construct(self, global_step: Any) -> Tensor:
        step = _step(global_step)
        if self.update_decay_steps:
            p = step / (ops.maximum(ops.ceil(step / self.decay_steps), 1.0) * self.decay_steps)
        else:
            p = ops.minimum(step, float(self.decay_steps)) / self.decay_steps
        return ops.pow(1 - p, self.power) * (self.start_learning_rate - self.end_learning_rate) + self.end_learning_rate  # type: ignore[no-any-return]


class WarmUpLR(LearningRateSchedule):
    """Straight up from 0 to learning_rate in warmup_steps."""

    def __init__(self, learning_rate: float, warmup_steps: int) -> None:
        super().__init__()
        if not isinstance(learning_rate, float) or learning_rate < 0:
            raise ValueError(f"For 'WarmUpLR', the 'learning_rate' must be a float of at least 0, but got {learning_rate!r}.")
        _positive("WarmUpLR", warmup_steps=warmup_steps)
        self.learning_rate, self.warmup_steps = learning_rate, warmup_steps

    def construct(self, global_step: Any) -> Tensor:
        p = ops.minimum(_step(global_step), float(self.warmup_steps)) / self.warmup_steps
        return p * self.learning_rate  # type: ignore[no-any-return]
