"""What is in the file: the second layer that `jumar enable` tells of.

In: an ONNX file that `jumar.load` has accepted, and the inputs chosen.  Out: `ModelFact`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import onnx

from jumar.base import TensorType, ToolError
from jumar.frontend import Model
from jumar.tools.enable.facts import ModelFact
from jumar.tools.enable.inputs import Chosen, Wanted

_BITS = {
    1: 32,
    2: 8,
    3: 8,
    4: 16,
    5: 16,
    6: 32,
    7: 64,
    9: 8,
    10: 16,
    11: 64,
    12: 32,
    13: 64,
    14: 64,
    15: 128,
    16: 16,
    17: 8,
    18: 8,
    19: 8,
    20: 8,
    21: 4,
    22: 4,
}


def declared_inputs(model: Model, wanted: list[Wanted]) -> dict[str, TensorType]:
    """Types of the inputs that must be fed: all without a default, and those with one that the user names."""
    given = {w.name for w in wanted}
    found: dict[str, TensorType] = {}
    for port in model.inputs:
        if port.has_default and port.name not in given:
            continue
        if port.kind != "tensor" or port.type is None:
            raise ToolError(
                f"enable: input {port.name!r} must be a tensor of known rank, got {port}",
                hint="call the model from Python: jumar.load takes sequences and optionals",
                code="input-kind",
            )
        found[port.name] = port.type
    return found


def describe(path: Path, model: Model, chosen: Chosen) -> ModelFact:
    """The facts of the file; external data is counted, not read."""
    proto = onnx.load(str(path), load_external_data=False)
    operators: Counter[str] = Counter()
    parameters = nbytes = 0
    for graph in _graphs(proto.graph):
        operators.update(f"{n.domain}.{n.op_type}" if n.domain not in ("", "ai.onnx") else n.op_type for n in graph.node)
        for tensor in (*graph.initializer, *_constants(graph)):
            count = 1
            for dim in tensor.dims:
                count *= dim
            parameters += count
            nbytes += count * _BITS.get(tensor.data_type, 64) // 8
    operators.pop("Constant", None)
    return ModelFact(
        file=str(path),
        nbytes=path.stat().st_size,
        producer=" ".join(p for p in (proto.producer_name, proto.producer_version) if p),
        opsets={o.domain or "ai.onnx": int(o.version) for o in proto.opset_import},
        operators=tuple(operators.most_common()),
        parameters=parameters,
        parameters_nbytes=nbytes,
        inputs=chosen.inputs,
        outputs=tuple(map(str, model.outputs)),
        dims=chosen.dims,
    )


def _constants(graph: Any) -> Iterator[Any]:
    """Tensors in Constant nodes: where some exporters keep all weights."""
    for node in graph.node:
        if node.op_type == "Constant":
            yield from (a.t for a in node.attribute if a.type == onnx.AttributeProto.TENSOR)


def _graphs(graph: Any) -> Iterator[Any]:
    """The graph and all sub-graphs."""
    yield graph
    for node in graph.node:
        for attribute in node.attribute:
            if attribute.type == onnx.AttributeProto.GRAPH:
                yield from _graphs(attribute.g)
