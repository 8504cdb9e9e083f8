"""`_Function`: an operation whose gradient the user writes, by two static methods `forward(ctx, ...)` and `backward(ctx, ...)`.

In: a subclass; `apply(*args)` calls it.  Out: the results of `forward`, with `backward` as their gradient under whatever recorder is under way.
"""

from __future__ import annotations

from typing import Any, NoReturn

import numpy as np

from jumar.common.api import _no_grad, grad_enabled
from jumar.frontend.grad import refilled, tensors_in, with_gradient
from jumar.frontend.tensor import LOCAL, Tensor, wrap


class FunctionCtx:
    """What `forward` leaves for `backward`: saved tensors, and any attribute."""

    def __init__(self, needs: tuple[bool, ...]) -> None:
        self.needs_input_grad = needs
        self.saved_tensors: tuple[Any, ...] = ()
        self.materialize_grads = True
        self.non_differentiable: tuple[Tensor, ...] = ()
        self.dirty_tensors: tuple[Tensor, ...] = ()

    def save_for_backward(self, *tensors: Any) -> None:
        """Keeps tensors (or None) for `backward`, which reads `saved_tensors`."""
        self.saved_tensors = tensors

    def mark_non_differentiable(self, *tensors: Tensor) -> None:
        """Results that no gradient passes."""
        self.non_differentiable = tensors

    def mark_dirty(self, *tensors: Tensor) -> None:
        """Arguments that `forward` wrote into."""
        self.dirty_tensors = tensors

    def set_materialize_grads(self, value: bool) -> None:
        """Whether a missing incoming gradient is zeros (True) or None."""
        self.materialize_grads = value


class _Function:
    """Subclass it and write `forward` and `backward`; call `apply`."""

    @staticmethod
    def forward(ctx: Any, *args: Any, **kwargs: Any) -> NoReturn:
        """The results.   Written by the subclass."""
        raise NotImplementedError("_Function: a subclass must write forward(ctx, *args)")

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> NoReturn:
        """A gradient, or None, for each argument of `forward`.   Written by the subclass."""
        raise NotImplementedError("_Function: a subclass must write backward(ctx, *grads)")

    @classmethod
    def apply(cls, *args: Any, **kwargs: Any) -> Any:
        """Calls `forward`, and remembers `backward` where gradients are recorded."""
        recorded = LOCAL.recorder is not None and grad_enabled()
        ctx = FunctionCtx(tuple(isinstance(a, Tensor) and recorded for a in args))
        with _no_grad():
            result: Any = cls.forward(ctx, *args, **kwargs)
        if not recorded:
            return result
        outputs = tensors_in(result)
        inputs = [a for a in args if isinstance(a, Tensor)]

        def backward(*douts: Tensor | None) -> list[Tensor | None]:
            given = [_zeros(o) if d is None and ctx.materialize_grads else d for d, o in zip(douts, outputs, strict=True)]
            found = cls.backward(ctx, *given)
            found = found if isinstance(found, tuple | list) else (found,)
            if len(found) < len(args):
                raise RuntimeError(
                    f"{cls.__name__}.backward: must return a gradient (or None) for each of {len(args)} arguments of forward, got {len(found)}"
                )
            return [g for a, g in zip(args, found, strict=False) if isinstance(a, Tensor)]

        fixed = {id(t) for t in ctx.non_differentiable}
        renewed = with_gradient(outputs, inputs, backward)
        return refilled(result, [o if id(o) in fixed else n for o, n in zip(outputs, renewed, strict=True)])


def _zeros(like: Tensor) -> Tensor:
    return wrap(np.zeros(like.shape, like.dtype.numpy))
