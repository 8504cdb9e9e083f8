"""The window of a convolution or pool as ONNX writes it: kernel_shape, strides, pads, auto_pad, ceil_mode.

In: a node and the sizes of its input.  Out: `Geometry`, the numbers that our operators take, one for each spatial dimension.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from jumar.frontend.importers.onnx.node import OnnxNode

Ints = tuple[int, ...]


@dataclass(frozen=True)
class Geometry:
    """What our operators take.   uncounted: so much of `high` is there because of ceil_mode only."""

    kernel: tuple[int, ...]
    strides: tuple[int, ...]
    low: tuple[int, ...]
    high: tuple[int, ...]
    dilations: tuple[int, ...]
    uncounted: tuple[int, ...]

    @property
    def fields(self) -> tuple[Ints, Ints, Ints, Ints, Ints]:
        """kernel, strides, pads_low, pads_high, dilations: the first fields of our pools."""
        return self.kernel, self.strides, self.low, self.high, self.dilations


def geometry(n: OnnxNode, spatial: Sequence[int], kernel: Sequence[int] | None = None) -> Geometry:
    """The window of a node.   kernel: where the weights say it."""
    rank = len(spatial)
    kernel = tuple(n.attribute("kernel_shape", None) or kernel or ())
    strides = n.attribute("strides", None) or (1,) * rank
    dilations = n.attribute("dilations", None) or (1,) * rank
    pads = n.attribute("pads", None) or (0,) * (2 * rank)
    if not len(kernel) == len(strides) == len(dilations) == rank or len(pads) != 2 * rank:
        raise n.fault(f"kernel_shape, strides, dilations and pads must fit {rank} dimensions, got {kernel}, {strides}, {dilations}, {pads}")
    if min((*strides, *dilations, *kernel), default=1) < 1:
        raise n.fault(f"kernel_shape, strides and dilations must be at least 1, got {kernel}, {strides}, {dilations}")
    reach = [d * (k - 1) + 1 for k, d in zip(kernel, dilations, strict=True)]
    auto = n.attribute("auto_pad", "NOTSET")
    low, high = list(pads[:rank]), list(pads[rank:])
    if auto == "VALID":
        low, high = [0] * rank, [0] * rank
    elif auto in ("SAME_UPPER", "SAME_LOWER"):
        total = [max((-(-i // s) - 1) * s + r - i, 0) for i, s, r in zip(spatial, strides, reach, strict=True)]
        less, more = [p // 2 for p in total], [p - p // 2 for p in total]
        low, high = (less, more) if auto == "SAME_UPPER" else (more, less)
    elif auto not in ("NOTSET", ""):
        raise n.fault(f"auto_pad must be NOTSET, SAME_UPPER, SAME_LOWER or VALID, got {auto!r}")
    extra = [0] * rank
    if n.attribute("ceil_mode", 0):
        for a, (i, s, r) in enumerate(zip(spatial, strides, reach, strict=True)):
            count = -(-(i + low[a] + high[a] - r) // s) + 1
            if (count - 1) * s >= i + low[a]:  # a window must begin inside of the input or its first pads
                count -= 1
            extra[a] = max((count - 1) * s + r - (i + low[a] + high[a]), 0)
            high[a] += extra[a]
    return Geometry(kernel, tuple(strides), tuple(low), tuple(high), tuple(dilations), tuple(extra))
