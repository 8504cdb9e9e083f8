"""Small ONNX models for tests, from their text form."""

from __future__ import annotations

from typing import Any

import onnx
import onnx.parser


def model(text: str, *, opset: int = 18, extra: str = "", functions: str = "") -> Any:
    """A ModelProto of a graph (`g (float[n] x) => (float[m] y) { ... }`) and functions in ONNX's text form."""
    return onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["" : {opset}{extra}]>\n{text}\n{functions}')


def parts(proto: Any) -> bytes:
    raw: bytes = proto.SerializeToString()
    return raw
