"""`Opaque`: values with a gradient of their own, which whoever made the node knows.

In: the values, then what they depend on.  Out: the values.  The gradient is no operator's: `autodiff.gradients(custom=...)` is told it.
"""
# mypy: disable-error-code="override"

from __future__ import annotations

from jumar.base import Array, OpError, TensorType
from jumar.ir import Node, Result, f32t, sample
from jumar.operators.families import Composite


class Opaque(Composite):
    """The first `count` inputs; the others are what they depend on as far as gradients go."""

    count: int
    signature = "x[...]... -> y[...]"
    samples = (sample(f32t(2, 3), f32t(4), count=1), sample(f32t(2), f32t(3), f32t(1), count=2))

    def infer(self, *types: TensorType) -> Result:
        if not 0 < self.count <= len(types):
            raise OpError(f"opaque: count must be within 1..{len(types)}, got {self.count}", code="attribute")
        return tuple(types[: self.count])

    def reference(self, *arrays: Array) -> tuple[Array, ...]:
        return arrays[: self.count]

    def decompose(self, *inputs: Node) -> tuple[Node, ...]:
        return inputs[: self.count]
