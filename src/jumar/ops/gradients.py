"""Gradients under the names of `mindspore.ops`.

In: functions.  Out: functions of the same arguments that give gradients: those of frontend/grad.py.
"""

from __future__ import annotations

from typing import Any

from jumar.frontend.grad import get_grad, grad, jacfwd, jacrev, jvp, stop_gradient, value_and_grad, vjp, vmap
from jumar.ops.reduction import sum as total


def derivative(fn: Any, primals: Any, order: int) -> tuple[Any, Any]:
    """The value and the derivative of that order of a function of one tensor, element by element."""

    def nth(f: Any) -> Any:
        return grad(lambda v: total(f(v)))

    function = fn
    for _ in range(order):
        function = nth(function)
    return fn(primals), function(primals)


def jet(fn: Any, primals: Any, series: Any) -> Any:
    """Taylor series through a function are not supported."""
    raise NotImplementedError("ops.jet: use ops.derivative or ops.jvp")


__all__ = ["derivative", "get_grad", "grad", "jacfwd", "jacrev", "jet", "jvp", "stop_gradient", "value_and_grad", "vjp", "vmap"]
