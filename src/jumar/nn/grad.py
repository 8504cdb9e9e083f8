"""`Jvp` and `Vjp`: products with Jacobians as cells.

In: a function or network.  Out: (result, product).
"""

from __future__ import annotations

from typing import Any

from jumar.frontend.grad import jvp, vjp
from jumar.nn.cell import Cell

__all__ = ["Jvp", "Vjp"]


class Jvp(Cell):
    """fn(*inputs) and its change along v, the last argument."""

    def __init__(self, fn: Any) -> None:
        super().__init__(auto_prefix=False)
        self.fn = fn

    def construct(self, *args: Any) -> Any:
        *inputs, v = args
        return jvp(self.fn, tuple(inputs) if len(inputs) > 1 else inputs[0], v)


class Vjp(Cell):
    """fn(*inputs) and v, the last argument, times its Jacobian."""

    def __init__(self, fn: Any) -> None:
        super().__init__(auto_prefix=False)
        self.fn = fn

    def construct(self, *args: Any) -> Any:
        *inputs, v = args
        result, product = vjp(self.fn, *inputs)
        return result, product(v)
