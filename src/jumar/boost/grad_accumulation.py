"""Gradients of several steps added up before the optimiser takes them.

In: an optimiser and gradients.  Out: `GradientAccumulation`, a cell; and the two functions that training cells map over their gradients, which write in place.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from jumar.frontend.parameter import Parameter
from jumar.frontend.tensor import Tensor
from jumar.nn import Cell
from jumar.ops.composite import HyperMap


def gradient_accumulation_op(accumulation_step: int, cumulative_grad: Parameter, grad: Tensor) -> Any:
    """Adds a step's share of the gradient to the sum."""
    return cumulative_grad.set_data(cumulative_grad + grad.astype(cumulative_grad.dtype) / accumulation_step)


def gradient_clear_op(cumulative_grad: Parameter) -> Any:
    """Makes the sum 0 again."""
    return cumulative_grad.set_data(cumulative_grad * 0)


class GradientAccumulation(Cell):
    """Adds up gradients and hands their mean to the optimiser every so many steps.

    max_accumulation_step: how many.   optimizer: what takes them.
    """

    def __init__(self, max_accumulation_step: int, optimizer: Any) -> None:
        super().__init__()
        if not isinstance(max_accumulation_step, int) or isinstance(max_accumulation_step, bool) or max_accumulation_step < 1:
            raise ValueError(f"GradientAccumulation: max_accumulation_step must be an int above 0, got {max_accumulation_step!r}")
        self._max_accumulation_step = max_accumulation_step
        self.optimizer = optimizer
        self.weights = optimizer.parameters
        self.hyper_map = HyperMap()
        self._grad_accumulation = self.weights.clone(prefix="grad_accumulation", init="zeros")
        self._accumulation_step: Any = Parameter(Tensor(0, "int32"), name="accumulation_step")

    def __setattr__(self, name: str, value: Any) -> None:
        """A number given to the counter, as subclasses do in `construct`, is written into it."""
        if name == "_accumulation_step" and isinstance(value, int):
            self._accumulation_step.set_data(Tensor(value, "int32"))
        else:
            super().__setattr__(name, value)

    def construct(self, loss: Any, grads: Any) -> Any:
        """The loss; the optimiser has run where the count was full."""
        self.hyper_map(partial(gradient_accumulation_op, self._max_accumulation_step), self._grad_accumulation, grads)
        self._accumulation_step += 1
        if self._accumulation_step >= self._max_accumulation_step:
            self.optimizer(self._grad_accumulation)
            self.hyper_map(gradient_clear_op, self._grad_accumulation)
            self._accumulation_step = 0
        return loss
