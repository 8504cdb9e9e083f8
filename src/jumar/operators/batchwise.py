"""`Batchwise`: a run of operators that goes over the batch in parts, so that what is between them stays in the cache.

In: a body graph for one part.  Out: an operator like any other: printable, interpretable.  Made by the cut_batch pass; compiler/lower.py
repeats the body's tasks for each part.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from jumar.base import Array, TensorType
from jumar.ir import Graph, Op, Result, interpret


class Batchwise(Op):
    """The body on each of `parts` parts of the outermost dimension, results one after another.

    body: parameters are the inputs, outputs the results, of one part.   cut: which inputs are cut into parts; the body reads the others whole.
    """

    body: Graph
    parts: int
    cut: tuple[int, ...]
    family = "batchwise"

    def infer(self, *types: TensorType) -> Result:
        outputs = tuple(o.type.with_shape((o.shape[0] * self.parts, *o.shape[1:])) for o in self.body.outputs)
        return outputs[0] if len(outputs) == 1 else outputs

    def reference(self, *arrays: Array) -> Any:
        pieces = [np.split(a, self.parts) if i in self.cut else [a] * self.parts for i, a in enumerate(arrays)]
        found = [interpret(self.body, part) for part in zip(*pieces, strict=True)]
        results = tuple(np.concatenate(r) for r in zip(*found, strict=True))
        return results[0] if len(results) == 1 else results
