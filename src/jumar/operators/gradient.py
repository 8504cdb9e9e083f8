"""`Gradient`: what the inputs of an operator receive, as one operator, for devices that have a kernel for it.

In: the gradient of the operator's result and its inputs.  Out: those of the inputs that are asked for.  Autodiff makes no such node: it writes
gradients in simpler operators; `passes/recognize_gradients.py` finds them there, for Ascend's `LayerNormGrad`, `ReluGrad` and their kin.
"""
# mypy: disable-error-code="override"

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np

from jumar.base import Array, OpError, StackError, TensorType, type_of
from jumar.ir import Graph, Node, Op, Result, check_inputs, f32t, interpret, param, parse_op, sample
from jumar.operators.families import Composite


class Gradient(Composite):
    """What inputs `which` of the operator that the text `of` names receive, when its result receives dy.

    by_result: the one input here is the operator's result, which is all that its gradient asks for (softmax, relu, tanh).
    """

    of: str
    which: tuple[int, ...] = (0,)
    by_result: bool = False
    signature = "dy[...], inputs[...]... -> dx[...]"
    samples = (
        sample(f32t(2, 5), f32t(2, 5), of="softmax"),
        sample(f32t(2, 5), f32t(2, 5), of="relu", by_result=True),
        sample(f32t(2, 3, 4), f32t(2, 3, 4), f32t(4), of="layer_norm", which=(0, 1)),
    )

    @cached_property
    def forward(self) -> Op:
        """The operator whose gradient this is."""
        try:
            return parse_op(self.of)
        except StackError as error:
            raise OpError(f"gradient: of must be the text of an operator, got {self.of!r}", code="attribute") from error

    def infer(self, *types: TensorType) -> Result:
        dy, *inputs = types
        forward = self.forward
        if not all(0 <= i < len(inputs) for i in self.which) or not self.which:
            raise OpError(f"gradient: which must number inputs of {self.of}, got {self.which}", code="attribute")
        try:
            check_inputs(forward.name, forward.signature, inputs)
            result = forward.infer(*inputs)
        except StackError as error:
            raise OpError(
                f"gradient: inputs must be those of an operator: {error.what}", code=error.code or "dimension-mismatch"
            ) from error
        if result != dy:
            raise OpError(f"gradient: dy must be what {self.of} gives, {result}, got {dy}", code="dimension-mismatch")
        found = tuple(inputs[i] for i in self.which)
        return found[0] if len(found) == 1 else found

    def reference(self, *arrays: Array) -> Any:
        params = tuple(param(f"x{i}", type_of(a)) for i, a in enumerate(arrays))
        made = self.decompose(*params)
        results = interpret(Graph("gradient", params, made if isinstance(made, tuple) else (made,)), arrays)
        return tuple(results) if isinstance(made, tuple) else np.asarray(results[0])

    def decompose(self, dy: Node, *inputs: Node) -> Node | tuple[Node, ...]:
        op: Any = self.forward
        found = op.grad(*inputs, inputs[0] if self.by_result else op(*inputs), dy)
        results = tuple(found[i] for i in self.which)
        return results[0] if len(results) == 1 else results
