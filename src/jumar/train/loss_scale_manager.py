"""Loss scales of `Model`: fixed, or raised and lowered by overflow.

In: whether the last step overflowed.  Out: the number by which the loss is multiplied, and the cell that updates it inside the step.
"""

from __future__ import annotations

from typing import Any

from jumar.nn import DynamicLossScaleUpdateCell, FixedLossScaleUpdateCell
from jumar.train.errors import ArgumentFault, TrainError, check_count


class OverflowFault(TrainError, RuntimeError):
    """Every step overflows."""


class LossScaleManager:
    """Derive and override all three to scale in your own way."""

    def get_loss_scale(self) -> Any:
        """The loss scale now."""

    def update_loss_scale(self, overflow: bool) -> None:
        """After a step."""

    def get_update_cell(self) -> Any:
        """The cell that does the same inside the step."""


class FixedLossScaleManager(LossScaleManager):
    """One scale.   drop_overflow_update: a step that overflows changes nothing."""

    def __init__(self, loss_scale: float = 128.0, drop_overflow_update: bool = True) -> None:
        if loss_scale < 1:
            raise ArgumentFault(f"FixedLossScaleManager: loss_scale must be at least 1, got {loss_scale}", code="train-argument")
        self._loss_scale, self._drop_overflow_update = loss_scale, drop_overflow_update

    def get_loss_scale(self) -> float:
        return self._loss_scale

    def get_drop_overflow_update(self) -> bool:
        """Whether a step that overflows changes nothing."""
        return self._drop_overflow_update

    def update_loss_scale(self, overflow: bool) -> None:
        """Stays."""

    def get_update_cell(self) -> Any:
        return FixedLossScaleUpdateCell(self._loss_scale) if self._drop_overflow_update else None


class DynamicLossScaleManager(LossScaleManager):
    """A scale that is divided by scale_factor on overflow and multiplied by it after scale_window steps without."""

    MOST_BAD_STEPS = 1000

    def __init__(self, init_loss_scale: float = 2**24, scale_factor: float = 2, scale_window: int = 2000) -> None:
        if init_loss_scale < 1.0 or scale_factor <= 0:
            what = f"init_loss_scale must be at least 1 and scale_factor above 0, got {init_loss_scale} and {scale_factor}"
            raise ArgumentFault(f"DynamicLossScaleManager: {what}", code="train-argument")
        self.loss_scale: float = init_loss_scale
        self.scale_window = check_count("DynamicLossScaleManager", "scale_window", scale_window)
        self.scale_factor = self.increase_ratio = scale_factor
        self.decrease_ratio = 1 / scale_factor
        self.cur_iter = 1
        self.last_overflow_iter = self.bad_step = 0

    def get_loss_scale(self) -> float:
        return self.loss_scale

    def get_drop_overflow_update(self) -> bool:
        """A step that overflows changes nothing."""
        return True

    def update_loss_scale(self, overflow: bool) -> None:
        if overflow:
            self.loss_scale = max(self.loss_scale * self.decrease_ratio, 1)
            self.last_overflow_iter = self.cur_iter
            self.bad_step += 1
        else:
            if (self.cur_iter - self.last_overflow_iter) % self.scale_window == 0:
                self.loss_scale *= self.increase_ratio
            self.bad_step = 0
        if self.bad_step > self.MOST_BAD_STEPS:
            raise OverflowFault(
                f"DynamicLossScaleManager: gradients must be finite now and then, got overflow in {self.bad_step} steps in a row",
                hint="jumar train-check SCRIPT names the first operator that overflows", code="loss-not-finite",
            )  # fmt: skip
        self.cur_iter += 1

    def get_update_cell(self) -> Any:
        return DynamicLossScaleUpdateCell(self.loss_scale, self.scale_factor, self.scale_window)
