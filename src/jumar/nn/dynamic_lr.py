"""Learning rates as lists: one number for each step.

In: the numbers of a schedule.  Out: a list of floats, for the `learning_rate` of an optimiser.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

__all__ = [
    "cosine_decay_lr", "exponential_decay_lr", "inverse_decay_lr", "natural_exp_decay_lr", "piecewise_constant_lr", "polynomial_decay_lr",
    "warmup_lr",
]  # fmt: skip


def _checked(**values: Any) -> None:
    for name, value in values.items():
        if name.endswith(("step", "epoch")) and (isinstance(value, bool) or not isinstance(value, int)):
            raise TypeError(f"dynamic_lr: {name} must be an int, got {value!r}")
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise TypeError(f"dynamic_lr: {name} must be a number, got {value!r}")
        if value <= 0:
            raise ValueError(f"dynamic_lr: {name} must be greater than 0, got {value}")


def _listed(total_step: int, step_per_epoch: int, rate: Callable[[int], float]) -> list[float]:
    """The rate of each step's epoch."""
    return [rate(step // step_per_epoch) for step in range(total_step)]


def piecewise_constant_lr(milestone: Any, learning_rates: Any) -> list[float]:
    """learning_rates[i] up to step milestone[i].

    >>> piecewise_constant_lr([2, 3], [0.1, 0.05])
    [0.1, 0.1, 0.05]
    """
    if len(milestone) != len(learning_rates):
        raise ValueError(
            "For 'piecewise_constant_lr', the size of 'milestone' must be same with the size of 'learning_rates', "
            f"but got {len(milestone)} and {len(learning_rates)}."
        )
    found: list[float] = []
    last = 0
    for step, rate in zip(milestone, learning_rates, strict=True):
        _checked(milestone_step=step)
        if step <= last:
            raise ValueError(f"For 'piecewise_constant_lr', the 'milestone' must be ascending, but got {milestone}.")
        found += [rate] * (step - last)
        last = step
    return found


def exponential_decay_lr(
    learning_rate: float, decay_rate: float, total_step: int, step_per_epoch: int, decay_epoch: int, is_stair: bool = False
) -> list[float]:
    """learning_rate * decay_rate^(epoch / decay_epoch)."""
    _checked(
        learning_rate=learning_rate, decay_rate=decay_rate, total_step=total_step, step_per_epoch=step_per_epoch, decay_epoch=decay_epoch
    )
    return _listed(total_step, step_per_epoch, lambda e: learning_rate * decay_rate ** (e // decay_epoch if is_stair else e / decay_epoch))


def natural_exp_decay_lr(
    learning_rate: float, decay_rate: float, total_step: int, step_per_epoch: int, decay_epoch: int, is_stair: bool = False
) -> list[float]:
    """learning_rate * exp(-decay_rate * epoch)."""
    _checked(
        learning_rate=learning_rate, decay_rate=decay_rate, total_step=total_step, step_per_epoch=step_per_epoch, decay_epoch=decay_epoch
    )
    return _listed(
        total_step, step_per_epoch, lambda e: learning_rate * math.e ** (-decay_rate * (e // decay_epoch * decay_epoch if is_stair else e))
    )


def inverse_decay_lr(
    learning_rate: float, decay_rate: float, total_step: int, step_per_epoch: int, decay_epoch: int, is_stair: bool = False
) -> list[float]:
    """learning_rate / (1 + decay_rate * epoch / decay_epoch)."""
    _checked(
        learning_rate=learning_rate, decay_rate=decay_rate, total_step=total_step, step_per_epoch=step_per_epoch, decay_epoch=decay_epoch
    )
    return _listed(
        total_step, step_per_epoch, lambda e: learning_rate / (1 + decay_rate * (e // decay_epoch if is_stair else e / decay_epoch))
    )


def cosine_decay_lr(min_lr: float, max_lr: float, total_step: int, step_per_epoch: int, decay_epoch: int) -> list[float]:
    """From max_lr to min_lr along half a cosine, over decay_epoch."""
    _checked(max_lr=max_lr, total_step=total_step, step_per_epoch=step_per_epoch, decay_epoch=decay_epoch)
    if not isinstance(min_lr, float) or min_lr < 0:
        raise ValueError(f"For 'cosine_decay_lr', the 'min_lr' must be a float of at least 0, but got {min_lr!r}.")
    if min_lr >= max_lr:
        raise ValueError(f"For 'cosine_decay_lr', the 'max_lr' must be greater than the 'min_lr', but got {max_lr} and {min_lr}.")
    half = 0.5 * (max_lr - min_lr)
    return _listed(total_step, step_per_epoch, lambda e: min_lr + half * (1 + math.cos(math.pi * min(e, decay_epoch) / decay_epoch)))


def polynomial_decay_lr(
    learning_rate: float, end_learning_rate: float, total_step: int, step_per_epoch: int, decay_epoch: int, power: float,
    update_decay_epoch: bool = False,
) -> list[float]:  # fmt: skip
    """From learning_rate to end_learning_rate by a power of what is left.   update_decay_epoch: begin anew when decay_epoch is over."""
    _checked(learning_rate=learning_rate, total_step=total_step, step_per_epoch=step_per_epoch, decay_epoch=decay_epoch, power=power)
    if not isinstance(end_learning_rate, float) or end_learning_rate < 0:
        raise ValueError(
            f"For 'polynomial_decay_lr', the 'end_learning_rate' must be a float of at least 0, but got {end_learning_rate!r}."
        )

    def rate(epoch: int) -> float:
        span = decay_epoch * max(math.ceil(epoch / decay_epoch), 1) if update_decay_epoch else decay_epoch
        left = 1 - min(epoch, span) / span
        return float((learning_rate - end_learning_rate) * left**power + end_learning_rate)

    return _listed(total_step, step_per_epoch, rate)


def warmup_lr(learning_rate: float, total_step: int, step_per_epoch: int, warmup_epoch: int) -> list[float]:
    """Up from 0 to learning_rate in warmup_epoch."""
    if not isinstance(learning_rate, float) or learning_rate < 0:
        raise ValueError(f"For 'warmup_lr', the 'learning_rate' must be a float of at least 0, but got {learning_rate!r}.")
    _checked(total_step=total_step, step_per_epoch=step_per_epoch, warmup_epoch=warmup_epoch)
    return _listed(total_step, step_per_epoch, lambda e: learning_rate / warmup_epoch * min(e, warmup_epoch))
