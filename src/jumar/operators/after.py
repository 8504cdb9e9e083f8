"""`After`: a value that counts as computed anew once other values are there.

In: the value, then what must be computed before.  Out: the value, in the same memory.  What is computed from it is neither merged with what was computed
from the value before, nor done earlier: that is how a backward pass computes activations again instead of keeping them.
"""
# mypy: disable-error-code="override"

from __future__ import annotations

from jumar.base import Array, TensorType
from jumar.ir import Node, Result, f32t, sample
from jumar.operators.families import Movement


class After(Movement):
    """x, not before the other inputs are computed."""

    signature = "x[...], others[...]... -> y[...]"
    samples = (sample(f32t(2, 3), f32t(4)), sample(f32t(), f32t(2), f32t(3, 1)))

    def infer(self, *types: TensorType) -> Result:
        return types[0]

    def reference(self, *arrays: Array) -> Array:
        return arrays[0]

    def grad(self, *values: Node) -> tuple[Node | None, ...]:
        """(*inputs, y, dy): the gradient is x's alone."""
        return (values[-1], *(None for _ in values[1:-2]))
