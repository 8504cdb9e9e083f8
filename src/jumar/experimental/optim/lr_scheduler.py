"""Schedulers: they change the `lr` of an optimiser's groups when `step` is called.

In: an optimiser.  Out: its groups' learning rates, step by step.  Rates are computed from those of the step before, in float32 as they are stored.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np

from jumar.experimental.optim.optimizer import Optimizer
from jumar.frontend import dtype as types
from jumar.frontend.parameter import Parameter
from jumar.frontend.tensor import Tensor

__all__ = [
    "ConstantLR", "CosineAnnealingLR", "CosineAnnealingWarmRestarts", "CyclicLR", "ExponentialLR", "LRScheduler", "LambdaLR", "LinearLR",
    "MultiStepLR", "MultiplicativeLR", "PolynomialLR", "ReduceLROnPlateau", "SequentialLR", "StepLR",
]  # fmt: skip


def _number(value: Any) -> float:
    return float(value.asnumpy()) if isinstance(value, Tensor) else float(value)


def _put(group: dict[str, Any], value: float) -> None:
    if isinstance(group["lr"], Parameter):
        group["lr"].set_data(Tensor(value, types.float32))
    else:
        group["lr"] = value


class LRScheduler:
    """The base.   Subclasses define `get_lr`, which reads `last_epoch` and returns a rate for each group."""

    def __init__(self, optimizer: Optimizer, last_epoch: int = -1) -> None:
        if not isinstance(optimizer, Optimizer):
            raise TypeError(f"{type(self).__name__}: optimizer must be an experimental or mint Optimizer, got {type(optimizer).__name__}")
        if isinstance(last_epoch, bool) or not isinstance(last_epoch, int):
            raise TypeError(f"{type(self).__name__}: last_epoch must be an int, got {last_epoch!r}")
        if last_epoch < -1:
            raise ValueError(f"Invalid last_epoch: {last_epoch}")
        self.optimizer, self.last_epoch = optimizer, last_epoch
        for i, group in enumerate(optimizer.param_groups):
            if last_epoch == -1:
                group.setdefault("initial_lr", _number(group["lr"]))
            elif "initial_lr" not in group:
                raise KeyError(f"param 'initial_lr' is not specified in param_groups[{i}] when resuming an optimizer")
        self.base_lrs = [float(g["initial_lr"]) for g in optimizer.param_groups]
        self.groups_num = len(self.base_lrs)
        self._last_lr: list[float] = []
        self.step()

    def get_last_lr(self) -> list[Tensor]:
        """The rates that were set last."""
        return [Tensor(r, types.float32) for r in self._last_lr]

    def get_lr(self) -> list[float]:
        """The rates for `last_epoch`."""
        raise NotImplementedError(f"{type(self).__name__}: get_lr must be defined")

    def _rates(self) -> list[float]:
        return [_number(g["lr"]) for g in self.optimizer.param_groups]

    def step(self, epoch: int | None = None) -> None:
        """Goes to the next epoch, or to the one that is given."""
        self.last_epoch = self.last_epoch + 1 if epoch is None else epoch
        closed = getattr(self, "_get_closed_form_lr", None)
        rates = closed() if epoch is not None and closed else self.get_lr()
        self._last_lr = [_number(r) for r in rates]
        for group, rate in zip(self.optimizer.param_groups, self._last_lr, strict=True):
            _put(group, rate)


class StepLR(LRScheduler):
    """Times gamma every step_size epochs."""

    def __init__(self, optimizer: Optimizer, step_size: int, gamma: float = 0.1, last_epoch: int = -1) -> None:
        self.step_size, self.gamma = step_size, gamma
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        if self.last_epoch == 0 or self.last_epoch % self.step_size:
            return self._rates()
        return [r * self.gamma for r in self._rates()]

    def _get_closed_form_lr(self) -> list[float]:
        return [b * self.gamma ** (self.last_epoch // self.step_size) for b in self.base_lrs]


class MultiStepLR(LRScheduler):
    """Times gamma at each milestone."""

    def __init__(self, optimizer: Optimizer, milestones: Any, gamma: float = 0.1, last_epoch: int = -1) -> None:
        self.milestones, self.gamma = Counter(milestones), gamma
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        return [r * self.gamma ** self.milestones[self.last_epoch] for r in self._rates()]

    def _get_closed_form_lr(self) -> list[float]:
        passed = bisect_right(sorted(self.milestones.elements()), self.last_epoch)
        return [b * self.gamma**passed for b in self.base_lrs]


class ExponentialLR(LRScheduler):
    """Times gamma every epoch."""

    def __init__(self, optimizer: Optimizer, gamma: float, last_epoch: int = -1) -> None:
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        return self._rates() if self.last_epoch == 0 else [r * self.gamma for r in self._rates()]

    def _get_closed_form_lr(self) -> list[float]:
        return [b * self.gamma**self.last_epoch for b in self.base_lrs]


class ConstantLR(LRScheduler):
    """Times a factor for the first total_iters epochs."""

    def __init__(self, optimizer: Optimizer, factor: float = 1.0 / 3, total_iters: int = 5, last_epoch: int = -1) -> None:
        if not 0 <= factor <= 1:
            raise ValueError(f"Constant multiplicative factor expected to be between 0 and 1, got {factor}.")
        self.factor, self.total_iters = factor, total_iters
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        if self.last_epoch == 0:
            return [r * self.factor for r in self._rates()]
        return [r / self.factor for r in self._rates()] if self.last_epoch == self.total_iters else self._rates()

    def _get_closed_form_lr(self) -> list[float]:
        return [b * (self.factor if self.last_epoch < self.total_iters else 1) for b in self.base_lrs]


class LinearLR(LRScheduler):
    """Times a factor that goes straight from start_factor to end_factor."""

    def __init__(
        self, optimizer: Optimizer, start_factor: float = 1.0 / 3, end_factor: float = 1.0, total_iters: int = 5, last_epoch: int = -1
    ) -> None:
        if not 0 < start_factor <= 1:
            raise ValueError(f"Starting multiplicative factor expected to be greater than 0 and less or equal to 1, got {start_factor}.")
        if not 0 <= end_factor <= 1:
            raise ValueError(f"Ending multiplicative factor expected to be between 0 and 1, got {end_factor}.")
        self.start_factor, self.end_factor, self.total_iters = start_factor, end_factor, total_iters
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        rates, span = self._rates(), self.end_factor - self.start_factor
        if self.last_epoch == 0:
            return [r * self.start_factor for r in rates]
        if self.last_epoch > self.total_iters:
            return rates
        factor = 1 + span / (self.total_iters * self.start_factor + (self.last_epoch - 1) * span)
        return [r * factor for r in rates]

    def _get_closed_form_lr(self) -> list[float]:
        share = min(self.total_iters, self.last_epoch) / self.total_iters
        return [b * (self.start_factor + (self.end_factor - self.start_factor) * share) for b in self.base_lrs]


class PolynomialLR(LRScheduler):
    """Down to zero by a power of what is left of total_iters."""

    def __init__(self, optimizer: Optimizer, total_iters: int = 5, power: float = 1.0, last_epoch: int = -1) -> None:
        self.total_iters, self.power = total_iters, power
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        rates = self._rates()
        if self.last_epoch == 0 or self.last_epoch > self.total_iters:
            return rates
        left, before = 1 - self.last_epoch / self.total_iters, 1 - (self.last_epoch - 1) / self.total_iters
        return [r * (left / before) ** self.power for r in rates]

    def _get_closed_form_lr(self) -> list[float]:
        left = 1 - min(self.total_iters, self.last_epoch) / self.total_iters
        return [b * left**self.power for b in self.base_lrs]


class LambdaLR(LRScheduler):
    """The first rate times what a function of the epoch says: one function, or one for each group."""

    def __init__(self, optimizer: Optimizer, lr_lambda: Any, last_epoch: int = -1) -> None:
        self.lr_lambdas = _functions(optimizer, lr_lambda)
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        return [b * _number(f(self.last_epoch)) for b, f in zip(self.base_lrs, self.lr_lambdas, strict=True)]


class MultiplicativeLR(LRScheduler):
    """The rate times what a function of the epoch says."""

    def __init__(self, optimizer: Optimizer, lr_lambda: Any, last_epoch: int = -1) -> None:
        self.lr_lambdas = _functions(optimizer, lr_lambda)
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        rates = self._rates()
        return [r * _number(f(self.last_epoch)) for r, f in zip(rates, self.lr_lambdas, strict=True)] if self.last_epoch > 0 else rates


def _functions(optimizer: Optimizer, given: Any) -> list[Callable[[int], Any]]:
    count = len(optimizer.param_groups)
    found = list(given) if isinstance(given, list | tuple) else [given] * count
    if len(found) != count:
        raise ValueError(f"Expected {count} lr_lambdas, but got {len(found)}")
    return found


class CosineAnnealingLR(LRScheduler):
    """Down to eta_min along half a cosine of T_max epochs, and up again."""

    def __init__(self, optimizer: Optimizer, T_max: int, eta_min: float = 0.0, last_epoch: int = -1) -> None:
        self.T_max, self.eta_min = T_max, eta_min
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        rates, t, most = self._rates(), self.last_epoch, self.T_max
        if t == 0:
            return rates
        if (t - 1 - most) % (2 * most) == 0:
            rise = (1 - math.cos(math.pi / most)) / 2
            return [r + (b - self.eta_min) * rise for r, b in zip(rates, self.base_lrs, strict=True)]
        factor = (1 + math.cos(math.pi * t / most)) / (1 + math.cos(math.pi * (t - 1) / most))
        return [factor * (r - self.eta_min) + self.eta_min for r in rates]

    def _get_closed_form_lr(self) -> list[float]:
        share = (1 + math.cos(math.pi * self.last_epoch / self.T_max)) / 2
        return [self.eta_min + (b - self.eta_min) * share for b in self.base_lrs]


class CosineAnnealingWarmRestarts(LRScheduler):
    """Down to eta_min along half a cosine, then from the start again; each time T_mult times as long."""

    def __init__(self, optimizer: Optimizer, T_0: int, T_mult: int = 1, eta_min: float = 0, last_epoch: int = -1) -> None:
        if T_0 <= 0 or not isinstance(T_0, int):
            raise ValueError(f"Expected positive integer T_0, but got {T_0}")
        if T_mult < 1 or not isinstance(T_mult, int):
            raise ValueError(f"Expected integer T_mult >= 1, but got {T_mult}")
        self.T_0, self.T_i, self.T_mult, self.eta_min, self.T_cur = T_0, T_0, T_mult, eta_min, last_epoch
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        share = (1 + math.cos(math.pi * self.T_cur / self.T_i)) / 2
        return [self.eta_min + (b - self.eta_min) * share for b in self.base_lrs]

    def step(self, epoch: Any = None) -> None:
        if epoch is None:
            epoch = self.last_epoch + 1
        if epoch < 0:
            raise ValueError(f"Expected non-negative epoch, but got {epoch}")
        left, length = epoch, self.T_0
        while left >= length:
            left, length = left - length, length * self.T_mult
        self.T_cur, self.T_i, self.last_epoch = left, length, math.floor(epoch)
        self._last_lr = self.get_lr()
        for group, rate in zip(self.optimizer.param_groups, self._last_lr, strict=True):
            _put(group, rate)


class CyclicLR(LRScheduler):
    """Up from base_lr to max_lr and down again.   mode: triangular, triangular2 (half as high each time) or exp_range (times gamma^step)."""

    def __init__(
        self, optimizer: Optimizer, base_lr: Any, max_lr: Any, step_size_up: int = 2000, step_size_down: int | None = None,
        mode: str = "triangular", gamma: float = 1.0, scale_fn: Any = None, scale_mode: str = "cycle", last_epoch: int = -1,
    ) -> None:  # fmt: skip
        if mode not in ("triangular", "triangular2", "exp_range") and scale_fn is None:
            raise ValueError("mode is invalid and scale_fn is None")
        groups = optimizer.param_groups
        lows = list(base_lr) if isinstance(base_lr, list | tuple) else [base_lr] * len(groups)
        self.max_lrs = list(max_lr) if isinstance(max_lr, list | tuple) else [max_lr] * len(groups)
        if len(lows) != len(groups) or len(self.max_lrs) != len(groups):
            raise ValueError(f"base_lr and max_lr must be numbers or {len(groups)} numbers, got {base_lr} and {max_lr}")
        for group, low in zip(groups, lows, strict=True):
            _put(group, low)
            group.setdefault("initial_lr", float(low))
        down = step_size_up if step_size_down is None else step_size_down
        self.total_size = float(step_size_up + down)
        self.step_ratio = step_size_up / self.total_size
        self.mode, self.gamma = mode, gamma
        self.scale_mode = scale_mode if scale_fn is not None else {"exp_range": "iterations"}.get(mode, "cycle")
        self.scale_fn: Callable[[float], float] = (
            scale_fn
            or {
                "triangular": lambda x: 1.0,
                "triangular2": lambda x: 1 / 2.0 ** (x - 1),
                "exp_range": lambda x: gamma**x,
            }[mode]
        )
        super().__init__(optimizer, last_epoch)
        self.base_lrs = [float(b) for b in lows]

    def get_lr(self) -> list[float]:
        cycle = math.floor(1 + self.last_epoch / self.total_size)
        x = 1.0 + self.last_epoch / self.total_size - cycle
        height = x / self.step_ratio if x <= self.step_ratio else (x - 1) / (self.step_ratio - 1)
        factor = self.scale_fn(cycle if self.scale_mode == "cycle" else self.last_epoch)
        return [b + (m - b) * height * factor for b, m in zip(self.base_lrs, self.max_lrs, strict=True)]


class SequentialLR:
    """Several schedulers, one after another, from each milestone on."""

    def __init__(self, optimizer: Optimizer, schedulers: Any, milestones: Any, last_epoch: int = -1) -> None:
        if len(milestones) != len(schedulers) - 1:
            raise ValueError(
                f"Sequential Schedulers expects number of schedulers provided to be one more than the number of milestone points, "
                f"but got {len(schedulers)} and {len(milestones)}"
            )
        if any(s.optimizer is not optimizer for s in schedulers):
            raise ValueError("Sequential Schedulers expects all schedulers to belong to the same optimizer")
        self.optimizer, self._schedulers, self._milestones, self.last_epoch = optimizer, list(schedulers), list(milestones), last_epoch + 1
        for group in optimizer.param_groups:
            _put(group, group["initial_lr"])
        for s in self._schedulers:
            s.last_epoch -= 1
        self._schedulers[0].step()
        self._last_lr = self._schedulers[0]._last_lr

    def step(self) -> None:
        """Goes to the next epoch."""
        self.last_epoch += 1
        place = bisect_right(self._milestones, self.last_epoch)
        scheduler = self._schedulers[place]
        if place > 0 and self._milestones[place - 1] == self.last_epoch:
            scheduler.step(0)
        else:
            scheduler.step()
        self._last_lr = scheduler._last_lr

    def get_last_lr(self) -> list[Tensor]:
        """The rates that were set last."""
        return [Tensor(r, types.float32) for r in self._last_lr]


class ReduceLROnPlateau:
    """Times a factor when a figure has not become better for `patience` epochs."""

    def __init__(
        self, optimizer: Optimizer, mode: str = "min", factor: float = 0.1, patience: int = 10, threshold: float = 1e-4,
        threshold_mode: str = "rel", cooldown: int = 0, min_lr: Any = 0, eps: float = 1e-8,
    ) -> None:  # fmt: skip
        if factor >= 1.0:
            raise ValueError(f"Factor should be < 1.0, but got {factor}.")
        if mode not in ("min", "max"):
            raise ValueError(f"`mode` should be 'min' or 'max', but got {mode}.")
        if threshold_mode not in ("rel", "abs"):
            raise ValueError(f"`threshold mode` should be 'rel' or 'abs', but got {threshold_mode}.")
        self.optimizer, self.factor, self.patience, self.cooldown, self.eps = optimizer, factor, patience, cooldown, eps
        self.mode, self.threshold, self.threshold_mode = mode, threshold, threshold_mode
        groups = optimizer.param_groups
        self.min_lrs = list(min_lr) if isinstance(min_lr, list | tuple) else [min_lr] * len(groups)
        if len(self.min_lrs) != len(groups):
            raise ValueError(f"expected {len(groups)} min_lrs, got {len(self.min_lrs)}")
        self.best = math.inf if mode == "min" else -math.inf
        self.num_bad_epochs = self.cooldown_counter = self.last_epoch = 0
        self._last_lr = [_number(g["lr"]) for g in groups]

    def _better(self, figure: float) -> bool:
        sign = 1 if self.mode == "min" else -1
        margin = abs(self.best) * self.threshold if self.threshold_mode == "rel" else self.threshold
        if math.isinf(self.best):
            return sign * figure < sign * self.best
        return sign * figure < sign * self.best - margin

    @property
    def in_cooldown(self) -> bool:
        """Whether bad epochs do not count yet."""
        return self.cooldown_counter > 0

    def step(self, metrics: Any) -> None:
        """After an epoch with that figure."""
        figure = _number(metrics)
        self.last_epoch += 1
        if self._better(figure):
            self.best, self.num_bad_epochs = figure, 0
        else:
            self.num_bad_epochs += 1
        if self.in_cooldown:
            self.cooldown_counter -= 1
            self.num_bad_epochs = 0
        if self.num_bad_epochs > self.patience:
            for group, least in zip(self.optimizer.param_groups, self.min_lrs, strict=True):
                old = _number(group["lr"])
                new = max(old * self.factor, least)
                if old - new > self.eps:
                    _put(group, new)
            self.cooldown_counter, self.num_bad_epochs = self.cooldown, 0
        self._last_lr = [_number(g["lr"]) for g in self.optimizer.param_groups]

    def get_last_lr(self) -> list[Tensor]:
        """The rates that were set last."""
        return [Tensor(np.float32(r)) for r in self._last_lr]
