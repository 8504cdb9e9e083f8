"""Normalisations with PyTorch's names and defaults: `momentum` is the share of what is new.

In: [n, c, ...].  Out: the same shape.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from jumar import ops
from jumar.common.initializer import initializer
from jumar.frontend import dtype as types
from jumar.frontend.engine import apply
from jumar.frontend.parameter import Parameter
from jumar.frontend.promote import cast
from jumar.frontend.tensor import Tensor
from jumar.nn.cell import Cell
from jumar.nn.layer.normalization import LayerNormExt
from jumar.nn.layer.sizes import is_int
from jumar.operators import BatchNorm, BatchNormTrain
from jumar.operators import GroupNorm as GroupNormOp

LayerNorm = LayerNormExt


class _BatchNorm(Cell):
    """What normalisations by the batch share.   momentum: None for the plain mean of all batches."""

    ranks: tuple[int, ...] = (4,)

    def __init__(
        self, num_features: int, eps: float = 1e-5, momentum: float | None = 0.1, affine: bool = True, track_running_stats: bool = True,
        dtype: Any = None,
    ) -> None:  # fmt: skip
        super().__init__()
        name = type(self).__name__
        if not is_int(num_features) or num_features < 1:
            raise ValueError(f"For '{name}', the 'num_features' must be int and must be > 0, but got {num_features!r}.")
        kind = types.float32 if dtype is None else dtype
        self.num_features, self.eps, self.momentum, self.affine, self.track_running_stats = (
            num_features, eps, momentum, affine, track_running_stats
        )  # fmt: skip
        shape = (num_features,)
        self.weight: Any = None
        self.bias: Any = None
        self.running_mean: Any = None
        self.running_var: Any = None
        self.num_batches_tracked: Any = None
        if affine:
            self.weight = Parameter(initializer("ones", shape, kind), name="weight")
            self.bias = Parameter(initializer("zeros", shape, kind), name="bias")
        if track_running_stats:
            self.running_mean = Parameter(initializer("zeros", shape, kind), name="running_mean", requires_grad=False)
            self.running_var = Parameter(initializer("ones", shape, kind), name="running_var", requires_grad=False)
            self.num_batches_tracked = Parameter(Tensor(0, types.float32), name="num_batches_tracked", requires_grad=False)

    def construct(self, input: Tensor) -> Tensor:
        if input.ndim not in self.ranks:
            raise ValueError(f"For '{type(self).__name__}', the rank of input must be in {list(self.ranks)}, but got {input.ndim}.")
        p = self._params
        if self.affine:
            scale, bias = p["weight"], p["bias"]
        else:
            scale, bias = ops.ones((self.num_features,), types.float32), ops.zeros((self.num_features,), types.float32)
        if not self.training and self.track_running_stats:
            return apply(BatchNorm(self.eps), input, scale, bias, p["running_mean"], p["running_var"])  # type: ignore[no-any-return]
        y, mean, var = apply(BatchNormTrain(self.eps), input, scale, bias)
        if self.training and self.track_running_stats:
            count = input.size // self.num_features
            if count < 2:
                raise ValueError(f"Expected more than 1 value per channel when training, got input size {tuple(input.shape)}")
            batches = p["num_batches_tracked"]
            batches._write(cast(batches + 1, batches.dtype))
            share: Any = self.momentum if self.momentum is not None else 1 / batches
            for running, new in ((p["running_mean"], mean), (p["running_var"], var * (count / (count - 1)))):
                running._write(cast(running * (1 - share) + new * share, running.dtype))
        return y  # type: ignore[no-any-return]

    def extend_repr(self) -> str:
        return (
            f"num_features={self.num_features}, eps={self.eps}, momentum={self.momentum}, affine={self.affine}, "
            f"track_running_stats={self.track_running_stats}"
        )


class BatchNorm1d(_BatchNorm):
    """Batch normalisation of [n, c] or [n, c, l]."""

    ranks = (2, 3)


class BatchNorm2d(_BatchNorm):
    """Batch normalisation of [n, c, h, w]."""


class BatchNorm3d(_BatchNorm):
    """Batch normalisation of [n, c, d, h, w]."""

    ranks = (5,)


class SyncBatchNorm(_BatchNorm):
    """Batch normalisation over all devices: there is one."""

    ranks = (2, 3, 4, 5)

    def __init__(
        self, num_features: int, eps: float = 1e-5, momentum: float | None = 0.1, affine: bool = True, track_running_stats: bool = True,
        process_group: str | None = None, dtype: Any = None,
    ) -> None:  # fmt: skip
        super().__init__(num_features, eps, momentum, affine, track_running_stats, dtype)
        self.process_group = process_group


class GroupNorm(Cell):
    """Mean 0 and variance 1 over each group of channels, then weight and bias."""

    def __init__(self, num_groups: int, num_channels: int, eps: float = 1e-5, affine: bool = True, dtype: Any = None) -> None:
        super().__init__()
        if num_channels % num_groups:
            raise ValueError(f"For 'GroupNorm', num_channels must be divisible by num_groups, but got {num_channels} and {num_groups}.")
        kind = types.float32 if dtype is None else dtype
        self.num_groups, self.num_channels, self.eps, self.affine = num_groups, num_channels, eps, affine
        self.weight: Any = None
        self.bias: Any = None
        if affine:
            self.weight = Parameter(initializer("ones", (num_channels,), kind), name="weight")
            self.bias = Parameter(initializer("zeros", (num_channels,), kind), name="bias")

    def construct(self, input: Tensor) -> Tensor:
        p = self._params
        if self.affine:
            scale, bias = p["weight"], p["bias"]
        else:
            scale, bias = Tensor(np.ones(self.num_channels, np.float32)), Tensor(np.zeros(self.num_channels, np.float32))
        return apply(GroupNormOp(self.num_groups, self.eps), input, scale, bias)  # type: ignore[no-any-return]

    def extend_repr(self) -> str:
        return f"num_groups={self.num_groups}, num_channels={self.num_channels}, eps={self.eps}, affine={self.affine}"
