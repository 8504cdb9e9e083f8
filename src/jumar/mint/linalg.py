"""`mindspore.mint.linalg`: norms, inverse and QR under PyTorch's names."""

from __future__ import annotations

from jumar.ops import decompose, reduction
from jumar.ops.operands import lenient

norm = lenient(reduction.norm)
vector_norm = lenient(reduction.vector_norm)
matrix_norm = lenient(reduction.matrix_norm)
inv = lenient(decompose.inverse)
qr = lenient(decompose.qr)

__all__ = ["inv", "matrix_norm", "norm", "qr", "vector_norm"]
