"""`Fused`: a group of operators that one kernel computes; made by the fuse pass, taken apart by schedules.

In: a body graph whose parameters stand for the group's inputs.  Out: an operator like any other: printable, interpretable.
"""

from __future__ import annotations

from typing import Any

from jumar.base import Array, TensorType
from jumar.ir import Graph, Op, Result, interpret


class Fused(Op):
    """Several operators in one kernel.   body: parameters are the inputs, outputs the results."""

    body: Graph
    family = "fused"

    def infer(self, *types: TensorType) -> Result:
        outputs = tuple(o.type for o in self.body.outputs)
        return outputs[0] if len(outputs) == 1 else outputs

    def reference(self, *arrays: Array) -> Any:
        results = interpret(self.body, arrays)
        return results[0] if len(results) == 1 else tuple(results)
