"""Writes ONNX graphs by hand: `Net` emits one node per call and seeds every weight, for networks whose files are not at hand.

In: calls like `net.conv(x, 64, 3)`.  Out: `net.model([...])`, an `onnx.ModelProto` that passes the checker.
Layers are written the way exporters write them (GELU as erf and friends), so that recognising patterns is tested too.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

Arrays = dict[str, np.ndarray]


class Net:
    """One graph being written; values are their names, `shapes` what is known of them."""

    def __init__(self, name: str, *, opset: int = 17, seed: int = 0) -> None:
        self.name, self.opset = name, opset
        self.rng = np.random.default_rng(seed)
        self.nodes: list[onnx.NodeProto] = []
        self.weights: list[onnx.TensorProto] = []
        self.inputs: list[onnx.ValueInfoProto] = []
        self.shapes: dict[str, tuple[int, ...]] = {}

    # ------------------------------------------------------------------ the small print: values, weights, nodes
    def input(self, name: str, shape: Sequence[Any], kind: int = TensorProto.FLOAT) -> str:
        """An input; dims that are texts are free."""
        self.inputs.append(helper.make_tensor_value_info(name, kind, list(shape)))
        self.shapes[name] = tuple(d if isinstance(d, int) else 1 for d in shape)
        return name

    def weight(self, array: np.ndarray, name: str = "") -> str:
        name = name or f"w{len(self.weights)}"
        self.weights.append(numpy_helper.from_array(np.asarray(array, order="C"), name))
        self.shapes[name] = tuple(array.shape)
        return name

    def normal(self, *shape: int, std: float = 0.02) -> str:
        return self.weight(self.rng.standard_normal(shape, dtype=np.float32) * np.float32(std))

    def constant(self, value: Any, dtype: Any = np.float32) -> str:
        return self.weight(np.asarray(value, dtype))

    def op(self, kind: str, *inputs: str, outputs: int = 1, **attributes: Any) -> Any:
        """One node; its result's name (or a list of them)."""
        names = [f"{kind.lower()}_{len(self.nodes)}" + (f"_{i}" if outputs > 1 else "") for i in range(outputs)]
        self.nodes.append(helper.make_node(kind, list(inputs), names, f"/{kind}_{len(self.nodes)}", **attributes))
        return names[0] if outputs == 1 else names

    def model(self, outputs: dict[str, str], *, kinds: dict[str, int] | None = None) -> onnx.ModelProto:
        """The finished model; outputs: the user's name -> value."""
        nodes = self.nodes + [helper.make_node("Identity", [value], [name]) for name, value in outputs.items()]
        infos = [helper.make_tensor_value_info(name, (kinds or {}).get(name, TensorProto.FLOAT), None) for name in outputs]
        graph = helper.make_graph(nodes, self.name, self.inputs, infos, self.weights)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", self.opset)], ir_version=8, producer_name="jumar-tests")

    # ------------------------------------------------------------------ convolutional networks
    def conv(
        self,
        x: str,
        channels: tuple[int, int],
        kernel: int,
        stride: int = 1,
        *,
        pad: int | None = None,
        groups: int = 1,
        bias: bool = False,
    ) -> str:
        """Convolution with He-normal weights.   channels: in, out."""
        cin, cout = channels
        fan_in = cin // groups * kernel * kernel
        weights = [self.normal(cout, cin // groups, kernel, kernel, std=math.sqrt(2 / fan_in))]
        if bias:
            weights.append(self.normal(cout))
        p = kernel // 2 if pad is None else pad
        return str(self.op("Conv", x, *weights, kernel_shape=[kernel] * 2, strides=[stride] * 2, pads=[p] * 4, group=groups))

    def norm(self, x: str, channels: int, epsilon: float = 1e-5, scale: float | None = None) -> str:
        """Batch normalisation with sane random statistics."""
        uniform = (self.rng.uniform(0.8, 1.2, channels) if scale is None else np.full(channels, scale)).astype(np.float32)
        shift = (self.rng.standard_normal(channels) * 0.05).astype(np.float32)
        mean = (self.rng.standard_normal(channels) * 0.1).astype(np.float32)
        variance = self.rng.uniform(0.8, 1.2, channels).astype(np.float32)
        return str(self.op("BatchNormalization", x, *(self.weight(a) for a in (uniform, shift, mean, variance)), epsilon=epsilon))

    def pool(self, x: str, kernel: int, stride: int, pad: int = 0) -> str:
        return str(self.op("MaxPool", x, kernel_shape=[kernel] * 2, strides=[stride] * 2, pads=[pad] * 4))

    def silu(self, x: str) -> str:
        return str(self.op("Mul", x, self.op("Sigmoid", x)))

    # ------------------------------------------------------------------ transformers
    def linear(self, x: str, width: tuple[int, int], *, bias: bool = True) -> str:
        """x @ w + b on the last dimension."""
        y = self.op("MatMul", x, self.normal(*width))
        return str(self.op("Add", self.normal(width[1]), y)) if bias else str(y)

    def layer_norm(self, x: str, width: int, epsilon: float = 1e-5) -> str:
        """The operator from opset 17 on, the nine nodes that exporters wrote before."""
        scale = self.weight((1 + 0.1 * self.rng.standard_normal(width)).astype(np.float32))
        shift = self.normal(width, std=0.05)
        return self.layer_norm_with(x, scale, shift, epsilon)

    def layer_norm_with(self, x: str, scale: str, shift: str, epsilon: float) -> str:
        if self.opset >= 17:
            return str(self.op("LayerNormalization", x, scale, shift, axis=-1, epsilon=epsilon))
        centred = self.op("Sub", x, self.op("ReduceMean", x, axes=[-1], keepdims=1))
        variance = self.op("ReduceMean", self.op("Pow", centred, self.constant(2.0)), axes=[-1], keepdims=1)
        deviation = self.op("Sqrt", self.op("Add", variance, self.constant(epsilon)))
        return str(self.op("Add", self.op("Mul", self.op("Div", centred, deviation), scale), shift))

    def gelu(self, x: str) -> str:
        """By erf, as exported: x / sqrt(2) -> erf -> + 1 -> * x -> * 0.5."""
        erf = self.op("Erf", self.op("Div", x, self.constant(math.sqrt(2.0))))
        return str(self.op("Mul", self.op("Mul", x, self.op("Add", erf, self.constant(1.0))), self.constant(0.5)))

    def gelu_tanh(self, x: str) -> str:
        cube = self.op("Mul", x, self.op("Mul", x, x))
        inner = self.op("Add", x, self.op("Mul", cube, self.constant(0.044715)))
        tanh = self.op("Tanh", self.op("Mul", inner, self.constant(math.sqrt(2 / math.pi))))
        return str(self.op("Mul", self.op("Mul", x, self.constant(0.5)), self.op("Add", tanh, self.constant(1.0))))

    def split_heads(self, x: str, heads: int, width: int) -> str:
        """[b, t, d] -> [b, h, t, d/h]"""
        shaped = self.op("Reshape", x, self.constant([0, 0, heads, width // heads], np.int64))
        return str(self.op("Transpose", shaped, perm=[0, 2, 1, 3]))

    def attend(self, q: str, k: str, v: str, width: int, heads: int, mask: str | None) -> str:
        """softmax(q k' / sqrt(d) + mask) v, heads joined again.   q, k, v: [b, h, t, d/h] -> [b, t, d]"""
        scores = self.op("MatMul", q, self.op("Transpose", k, perm=[0, 1, 3, 2]))
        scores = self.op("Div", scores, self.constant(math.sqrt(width // heads)))
        if mask:
            scores = self.op("Add", scores, mask)
        joined = self.op("Transpose", self.op("MatMul", self.op("Softmax", scores, axis=-1), v), perm=[0, 2, 1, 3])
        return str(self.op("Reshape", joined, self.constant([0, 0, width], np.int64)))
