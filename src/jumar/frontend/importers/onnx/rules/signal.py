"""Fourier transforms, windows and the mel scale."""

from __future__ import annotations

from typing import Any

import numpy as np

from jumar.base import Array
from jumar.frontend.importers.onnx.node import OnnxNode, dtype_of_onnx
from jumar.frontend.importers.onnx.rule import rule
from jumar.frontend.importers.onnx.trace import Trace
from jumar.frontend.importers.onnx.value import Tensor
from jumar.ir import Node, constant
from jumar.operators import Dft, Mel, Stft, mel_matrix, normal_axis, reshape, window


@rule("DFT")
def dft(t: Trace, n: OnnxNode, x: Tensor, length: Tensor | None, axis: Tensor | None) -> Node:
    points = int(t.scalar(length)) if length is not None else None
    if n.opset >= 20:
        along = int(t.scalar(axis)) if axis is not None else -2
    else:
        along = n.attribute("axis", 1)
    along = normal_axis(n.op, along, x.rank)
    inverse, onesided = bool(n.attribute("inverse", 0)), bool(n.attribute("onesided", 0))
    if points is None:
        points = 2 * (x.shape[along] - 1) if inverse and onesided else x.shape[along]
    return Dft(points, along, inverse, onesided)(t.node(x))


@rule("STFT")
def stft(t: Trace, n: OnnxNode, x: Tensor, step: Tensor, weights: Tensor | None, length: Tensor | None) -> Node:
    hop = int(t.scalar(step))
    if length is not None:
        points = int(t.scalar(length))
    else:
        points = weights.shape[0] if weights is not None else x.shape[1]
    w = t.node(weights) if weights is not None else constant(np.ones(points), x.dtype)
    signal = t.node(x) if x.rank == 3 else reshape(t.node(x), (*x.shape, 1))
    return Stft(hop, points, bool(n.attribute("onesided", 1)))(signal, w)


@rule("HannWindow", "HammingWindow", "BlackmanWindow")
def windows(t: Trace, n: OnnxNode, size: Tensor) -> Array:
    kind = n.op.removesuffix("Window").lower()
    values = window(kind, int(t.scalar(size)), bool(n.attribute("periodic", 1)))
    return values.astype(dtype_of_onnx(n.attribute("output_datatype", 1)).numpy)


@rule("MelWeightMatrix")
def mel_weight_matrix(t: Trace, n: OnnxNode, bins: Tensor, length: Tensor, rate: Tensor, low: Tensor, high: Tensor) -> Any:
    mel = Mel(int(t.scalar(bins)), int(t.scalar(length)), int(t.scalar(rate)), float(t.scalar(low)), float(t.scalar(high)))
    return mel_matrix(mel).astype(dtype_of_onnx(n.attribute("output_datatype", 1)).numpy)
