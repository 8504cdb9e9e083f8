"""Dense layers, embeddings, dropouts, folds and upsampling with PyTorch's defaults.

In: Tensors.  Out: Tensors.
"""

from __future__ import annotations

from typing import Any

from jumar import ops
from jumar.frontend.tensor import Tensor
from jumar.nn.cell import Cell
from jumar.nn.layer.basic import Dropout2dExt, DropoutExt, UpsampleExt
from jumar.nn.layer.basic import Flatten as _Flatten
from jumar.nn.layer.basic import Identity as _Identity
from jumar.nn.layer.basic import Linear as _Linear
from jumar.nn.layer.embedding import EmbeddingExt
from jumar.nn.layer.image import PixelShuffle as _PixelShuffle

Dropout, Dropout2d, Embedding, Identity, Linear, PixelShuffle = DropoutExt, Dropout2dExt, EmbeddingExt, _Identity, _Linear, _PixelShuffle
Upsample = UpsampleExt


class Flatten(_Flatten):
    """The dimensions from start_dim to end_dim as one."""

    def construct(self, input: Tensor) -> Tensor:
        return super().construct(input) if input.ndim != 1 else input

    def extend_repr(self) -> str:
        return f"start_dim={self.start_dim}, end_dim={self.end_dim}"


class Fold(Cell):
    """Patches put back, their overlaps added."""

    def __init__(self, output_size: Any, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1) -> None:
        super().__init__()
        self.output_size, self.kernel_size, self.dilation, self.padding, self.stride = output_size, kernel_size, dilation, padding, stride

    def construct(self, input: Tensor) -> Tensor:
        return ops.fold(input, self.output_size, self.kernel_size, self.dilation, self.padding, self.stride)  # type: ignore[no-any-return]


class Unfold(Cell):
    """Patches as columns, [n, c k k, places]."""

    def __init__(self, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1) -> None:
        super().__init__()
        self.kernel_size, self.dilation, self.padding, self.stride = kernel_size, dilation, padding, stride

    def construct(self, input: Tensor) -> Tensor:
        return ops.unfold(input, self.kernel_size, self.dilation, self.padding, self.stride)  # type: ignore[no-any-return]


class _Upsampling(UpsampleExt):
    """One mode of Upsample."""

    def __init__(self, size: Any, scale_factor: Any, mode: str, align_corners: bool | None) -> None:
        super().__init__(size, scale_factor, mode, align_corners)


class UpsamplingNearest2d(_Upsampling):
    """Each pixel repeated."""

    def __init__(self, size: Any = None, scale_factor: Any = None) -> None:
        super().__init__(size, scale_factor, "nearest", None)


class UpsamplingBilinear2d(_Upsampling):
    """Between pixels in straight lines, corners aligned."""

    def __init__(self, size: Any = None, scale_factor: Any = None) -> None:
        super().__init__(size, scale_factor, "bilinear", True)
