"""`mindspore.mint.special`: functions under the names of torch.special."""

from __future__ import annotations

from jumar.ops import activation, arithmetic
from jumar.ops.operands import lenient

erfc, exp2, expm1, log1p, sinc = (lenient(getattr(arithmetic, n)) for n in ("erfc", "exp2", "expm1", "log1p", "sinc"))
round = lenient(arithmetic.round)
log_softmax = lenient(activation.log_softmax_torch)

__all__ = ["erfc", "exp2", "expm1", "log1p", "log_softmax", "round", "sinc"]
