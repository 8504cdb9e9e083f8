"""Pads as cells: with a value, reflected, repeated, zero.

In: a Tensor.  Out: a larger one.  padding: an int for all sides, or (left, right, top, bottom, front, back), last dimension first.
"""

from __future__ import annotations

from typing import Any

from jumar import ops
from jumar.frontend.tensor import Tensor
from jumar.nn.cell import Cell
from jumar.nn.layer.sizes import is_int


class _Padded(Cell):
    """What pads share."""

    rank = 2
    mode = "constant"

    def __init__(self, padding: Any, value: Any = None) -> None:
        super().__init__()
        if not is_int(padding) and not (isinstance(padding, tuple | list) and all(is_int(p) for p in padding)):
            raise TypeError(f"For '{type(self).__name__}', the 'padding' must be an int or a tuple of ints, but got {padding!r}.")
        if not is_int(padding) and (len(padding) % 2 or len(padding) > 2 * self.rank):
            raise ValueError(
                f"For '{type(self).__name__}', the 'padding' must have an even length of at most {2 * self.rank}, but got {padding}."
            )
        self.padding, self.value = padding, value

    def construct(self, x: Tensor) -> Tensor:
        pads = [self.padding] * (2 * self.rank) if is_int(self.padding) else list(self.padding)
        if any(p < 0 for p in pads):
            if self.mode != "constant":
                raise ValueError(f"For '{type(self).__name__}', the 'padding' must not be negative, but got {self.padding}.")
            cut = [slice(None)] * x.ndim
            for i in range(len(pads) // 2):
                low, high = -min(pads[2 * i], 0), -min(pads[2 * i + 1], 0)
                cut[x.ndim - 1 - i] = slice(low, x.shape[x.ndim - 1 - i] - high)
            x = x[tuple(cut)]
            pads = [max(p, 0) for p in pads]
        return ops.pad(x, pads, self.mode, self.value)  # type: ignore[no-any-return]


class _Constant(_Padded):
    """Pads of one value."""

    def __init__(self, padding: Any, value: Any) -> None:
        super().__init__(padding, value)


class ConstantPad1d(_Constant):
    """One value before and after the last dimension."""

    rank = 1


class ConstantPad2d(_Constant):
    """One value around the last two dimensions."""


class ConstantPad3d(_Constant):
    """One value around the last three dimensions."""

    rank = 3


class _Plain(_Padded):
    """Pads without a value."""

    def __init__(self, padding: Any) -> None:
        super().__init__(padding, 0 if self.mode == "constant" else None)


class ZeroPad1d(_Plain):
    """Zeros before and after the last dimension."""

    rank = 1


class ZeroPad2d(_Plain):
    """Zeros around the last two dimensions."""


class ZeroPad3d(_Plain):
    """Zeros around the last three dimensions."""

    rank = 3


class ReflectionPad1d(_Plain):
    """The last dimension reflected at its ends."""

    rank, mode = 1, "reflect"


class ReflectionPad2d(_Plain):
    """The last two dimensions reflected at their ends."""

    mode = "reflect"


class ReflectionPad3d(_Plain):
    """The last three dimensions reflected at their ends."""

    rank, mode = 3, "reflect"


class ReplicationPad1d(_Plain):
    """The first and last element of the last dimension repeated."""

    rank, mode = 1, "replicate"


class ReplicationPad2d(_Plain):
    """The edges of the last two dimensions repeated."""

    mode = "replicate"


class ReplicationPad3d(_Plain):
    """The edges of the last three dimensions repeated."""

    rank, mode = 3, "replicate"
