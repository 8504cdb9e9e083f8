"""Gradients of several steps added up: the two functions that training cells map over their gradients.

In: a sum and a gradient, as Parameter and Tensor.  Out: the sum, written in place.
"""

from __future__ import annotations

from typing import Any

from jumar.frontend.parameter import Parameter
from jumar.frontend.tensor import Tensor


def gradient_accumulation_op(accumulation_step: int, cumulative_grad: Parameter, grad: Tensor) -> Any:
    """Adds a step's share of the gradient to the sum."""
    return cumulative_grad.set_data(cumulative_grad + grad.astype(cumulative_grad.dtype) / accumulation_step)  # type: ignore[operator, attr-defined]


def gradient_clear_op(cumulative_grad: Parameter) -> Any:
    """Makes the sum 0 again."""
    return cumulative_grad.set_data(cumulative_grad * 0)  # type: ignore[operator]
