"""`_Function`: an operation with a gradient of the user's own."""

from __future__ import annotations

from typing import Any

import pytest

import jumar


class Clipped(jumar._Function):
    """x squared, with a gradient that stops at 3."""

    @staticmethod
    def forward(ctx: Any, x: Any, limit: float) -> Any:
        ctx.save_for_backward(x)
        ctx.limit = limit
        return x * x

    @staticmethod
    def backward(ctx: Any, dout: Any) -> Any:
        (x,) = ctx.saved_tensors
        return dout * (2 * x).clamp(max=ctx.limit), None


@pytest.mark.parametrize("mode", [jumar.GRAPH_MODE, jumar.PYNATIVE_MODE])
def test_the_gradient_is_what_backward_says(mode: int) -> None:
    before = jumar.get_context("mode")
    x = jumar.Tensor([1.0, 5.0])
    try:
        jumar.set_context(mode=mode)
        value, gradient = jumar.value_and_grad(lambda x: Clipped.apply(x, 3.0).sum())(x)
    finally:
        jumar.set_context(mode=before)
    assert (value.asnumpy(), gradient.asnumpy().tolist()) == (26.0, [2.0, 3.0])


def test_without_gradients_it_is_forward() -> None:
    assert Clipped.apply(jumar.Tensor([3.0]), 1.0).asnumpy().tolist() == [9.0]


def test_too_few_gradients_are_an_error() -> None:
    class Short(Clipped):
        @staticmethod
        def backward(ctx: Any, dout: Any) -> Any:
            return dout

    with pytest.raises(RuntimeError, match=r"Short.backward: must return a gradient \(or None\) for each of 2 arguments"):
        jumar.grad(lambda x: Short.apply(x, 3.0).sum())(jumar.Tensor([1.0]))
