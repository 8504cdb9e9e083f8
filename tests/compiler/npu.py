"""Graphs for the passes of the NPU: small ones, and those of the zoo, in fp16 as a device runs them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from tests.models.zoo import build

import jumar
from jumar.base import Loc, TensorType, f16, f32
from jumar.compiler.passes.canonicalize import Canonicalize
from jumar.compiler.passes.fold import Fold
from jumar.compiler.passes.fold_scale import FoldScale
from jumar.compiler.passes.merge import Merge
from jumar.compiler.passes.quantize import QuantizedProducts
from jumar.compiler.passes.recognize import Recognize
from jumar.ir import Constant, Graph, Node, Param, constant, param, same_node
from jumar.operators import Cast, Conv

INDEPENDENT = (
    Canonicalize(), Fold(dequantize=False), Merge(), Canonicalize(), QuantizedProducts(False), Fold(), Canonicalize(), Recognize(attention=False),
    Canonicalize(), FoldScale(), Canonicalize(), Fold(), Merge(),
)  # fmt: skip


def half(graph: Graph) -> Graph:
    """The graph with f16 wherever it has f32."""
    new = {p: param(p.op.label, TensorType(p.shape, f16 if p.dtype is f32 else p.dtype), p.loc) for p in graph.params}

    def visit(node: Node, inputs: tuple[Node, ...]) -> Node:
        if isinstance(node.op, Param):
            return new[node]
        if isinstance(node.op, Constant):
            return constant(np.clip(node.array, -65504, 65504).astype(np.float16), loc=node.loc) if node.array.dtype == np.float32 else node
        if isinstance(node.op, Cast) and node.dtype is f32:
            return replace(node.op, dtype=f16)(*inputs, loc=node.loc)
        return same_node(node, inputs)

    made: dict[Node, Node] = dict(new)
    for node in graph.nodes:
        if node not in made:
            made[node] = visit(node, tuple(made[i] for i in node.inputs))
    return Graph(graph.name, tuple(new[p] for p in graph.params), tuple(made[o] for o in graph.outputs), graph.output_names, graph.updates)


def zoo(name: str, batch: int = 1) -> Graph:
    """A network of the zoo after the passes that any device gains from, in f16."""
    proto, feeds = build(name, batch)
    graph = jumar.load(proto, target="cpu").graph(**feeds)
    for step in INDEPENDENT:
        graph = step(graph)
    return half(graph)


def image(c: int, size: int = 16, n: int = 1, label: str = "x") -> Node:
    """An image as a parameter."""
    return param(label, TensorType((n, c, size, size), f16))


def weights(*shape: int) -> Node:
    """A constant of that shape."""
    return constant(np.full(shape, 0.5, np.float16))


def conv(x: Node, k: int, kernel: int = 3, stride: int = 1, name: str = "conv", groups: int = 1, bias: bool = True) -> Node:
    """A convolution with weights, as many cells out as in at stride 1."""
    pad = (kernel // 2,) * 2
    inputs = (x, weights(k, x.shape[1] // groups, kernel, kernel), *((weights(k),) if bias else ()))
    return Conv((stride, stride), pad, pad, (1, 1), groups)(*inputs, loc=Loc("net.py", 7, name))
