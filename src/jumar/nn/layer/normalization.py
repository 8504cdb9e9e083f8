"""Normalisations: by batch, layer, group and instance.

In: [n, c, ...].  Out: the same shape.  Statistics and parameters are float32 whatever the input is.  `momentum` of BatchNorm is what is kept:
running = momentum * running + (1 - momentum) * batch, and the running variance is of the unbiased one.
"""

from __future__ import annotations

import math
from typing import Any

from jumar import ops
from jumar.common.initializer import initializer
from jumar.frontend import dtype as types
from jumar.frontend.engine import apply
from jumar.frontend.parameter import Parameter
from jumar.frontend.promote import cast
from jumar.frontend.tensor import Tensor
from jumar.nn.cell import Cell
from jumar.nn.layer.sizes import is_int
from jumar.operators import BatchNorm as BatchNormOp
from jumar.operators import BatchNormTrain, Transpose
from jumar.operators import GroupNorm as GroupNormOp
from jumar.operators import InstanceNorm as InstanceNormOp
from jumar.operators import LayerNorm as LayerNormOp


def batch_norm_train(x: Tensor, scale: Tensor, bias: Tensor, mean: Parameter, var: Parameter, keep: float, epsilon: float) -> Tensor:
    """Normalised by the batch; the running statistics are moved on."""
    y, batch_mean, batch_var = apply(BatchNormTrain(epsilon), x, scale, bias)
    count = x.size // max(scale.size, 1)
    if count < 2:
        raise ValueError(f"BatchNorm: in training each channel must have more than one value, got x of shape {tuple(x.shape)}")
    move(mean, batch_mean, keep, 1 - keep)
    move(var, batch_var, keep, (1 - keep) * count / (count - 1))
    return y  # type: ignore[no-any-return]


def move(running: Parameter, new: Tensor, keep: float, share: float) -> None:
    """running = keep * running + share * new."""
    running._write(cast(running * keep + cast(new, running.dtype) * share, running.dtype))


class _BatchNorm(Cell):
    """What normalisations by the batch share."""

    ranks: tuple[int, ...] = (4,)

    def __init__(
        self, num_features: int, eps: float = 1e-5, momentum: float = 0.9, affine: bool = True, gamma_init: Any = "ones", beta_init: Any = "zeros",
        moving_mean_init: Any = "zeros", moving_var_init: Any = "ones", use_batch_statistics: bool | None = None, process_groups: Any = 0,
        data_format: str = "NCHW", dtype: Any = types.float32,
    ) -> None:  # fmt: skip
        super().__init__()
        name = type(self).__name__
        if not is_int(num_features) or num_features < 1:
            raise ValueError(f"For '{name}', the 'num_features' must be int and must be > 0, but got {num_features!r}.")
        if not 0 <= momentum <= 1:
            raise ValueError(f"For '{name}', the 'momentum' must be a number in range [0, 1], but got {momentum}.")
        if data_format not in ("NCHW", "NHWC"):
            raise ValueError(f"For '{name}', the 'data_format' must be in ['NCHW', 'NHWC'], but got {data_format!r}.")
        if use_batch_statistics not in (None, True, False):
            raise ValueError(f"For '{name}', the 'use_batch_statistics' must be True, False or None, but got {use_batch_statistics}.")
        self.num_features, self.eps, self.momentum, self.affine, self.format = num_features, eps, 1.0 - momentum, affine, data_format
        self.use_batch_statistics = use_batch_statistics
        shape = (num_features,)
        self.moving_mean = Parameter(initializer(moving_mean_init, shape, dtype), name="mean", requires_grad=False)
        self.moving_variance = Parameter(initializer(moving_var_init, shape, dtype), name="variance", requires_grad=False)
        self.gamma = Parameter(initializer(gamma_init, shape, dtype), name="gamma", requires_grad=affine)
        self.beta = Parameter(initializer(beta_init, shape, dtype), name="beta", requires_grad=affine)
        self._keep = momentum

    def construct(self, x: Tensor) -> Tensor:
        if x.ndim not in self.ranks:
            raise ValueError(f"For '{type(self).__name__}', the rank of x must be in {list(self.ranks)}, but got {x.ndim}.")
        last = self.format == "NHWC"
        if last:
            x = apply(Transpose((0, x.ndim - 1, *range(1, x.ndim - 1))), x)
        batch = self.training if self.use_batch_statistics is None else self.use_batch_statistics
        p = self._params  # the parameters themselves, in float32, even where the cell computes in float16
        if batch:
            y = batch_norm_train(x, p["gamma"], p["beta"], p["moving_mean"], p["moving_variance"], self._keep, self.eps)
        else:
            y = apply(BatchNormOp(self.eps), x, p["gamma"], p["beta"], p["moving_mean"], p["moving_variance"])
        return apply(Transpose((0, *range(2, x.ndim), 1)), y) if last else y

    def extend_repr(self) -> str:
        return (
            f"num_features={self.num_features}, eps={self.eps}, momentum={1.0 - self.momentum}, gamma={self.gamma}, beta={self.beta}, "
            f"moving_mean={self.moving_mean}, moving_variance={self.moving_variance}"
        )


class BatchNorm1d(_BatchNorm):
    """Batch normalisation of [n, c] or [n, c, l]."""

    ranks = (2, 3)

    def __init__(
        self, num_features: int, eps: float = 1e-5, momentum: float = 0.9, affine: bool = True, gamma_init: Any = "ones", beta_init: Any = "zeros",
        moving_mean_init: Any = "zeros", moving_var_init: Any = "ones", use_batch_statistics: bool | None = None, data_format: str = "NCHW",
        dtype: Any = types.float32,
    ) -> None:  # fmt: skip
        super().__init__(
            num_features, eps, momentum, affine, gamma_init, beta_init, moving_mean_init, moving_var_init, use_batch_statistics,
            data_format=data_format, dtype=dtype,
        )  # fmt: skip


class BatchNorm2d(_BatchNorm):
    """Batch normalisation of [n, c, h, w]."""

    def __init__(
        self, num_features: int, eps: float = 1e-5, momentum: float = 0.9, affine: bool = True, gamma_init: Any = "ones", beta_init: Any = "zeros",
        moving_mean_init: Any = "zeros", moving_var_init: Any = "ones", use_batch_statistics: bool | None = None, data_format: str = "NCHW",
        dtype: Any = types.float32,
    ) -> None:  # fmt: skip
        super().__init__(
            num_features, eps, momentum, affine, gamma_init, beta_init, moving_mean_init, moving_var_init, use_batch_statistics,
            data_format=data_format, dtype=dtype,
        )  # fmt: skip


class BatchNorm3d(Cell):
    """Batch normalisation of [n, c, d, h, w].   Its parameters belong to a child, `bn2d`, as in checkpoints."""

    def __init__(
        self, num_features: int, eps: float = 1e-5, momentum: float = 0.9, affine: bool = True, gamma_init: Any = "ones", beta_init: Any = "zeros",
        moving_mean_init: Any = "zeros", moving_var_init: Any = "ones", use_batch_statistics: bool | None = None, dtype: Any = types.float32,
    ) -> None:  # fmt: skip
        super().__init__()
        self.bn2d = BatchNorm2d(
            num_features, eps, momentum, affine, gamma_init, beta_init, moving_mean_init, moving_var_init, use_batch_statistics, dtype=dtype
        )

    def construct(self, x: Tensor) -> Tensor:
        if x.ndim != 5:
            raise ValueError(f"For 'BatchNorm3d', the rank of x must be 5, but got {x.ndim}.")
        flat = ops.reshape(x, (x.shape[0], x.shape[1], x.shape[2] * x.shape[3], x.shape[4]))
        return ops.reshape(self.bn2d(flat), x.shape)  # type: ignore[no-any-return]


class SyncBatchNorm(_BatchNorm):
    """Batch normalisation over all devices: there is one."""

    ranks = (2, 3, 4)

    def __init__(
        self, num_features: int, eps: float = 1e-5, momentum: float = 0.9, affine: bool = True, gamma_init: Any = "ones", beta_init: Any = "zeros",
        moving_mean_init: Any = "zeros", moving_var_init: Any = "ones", use_batch_statistics: bool | None = None, process_groups: Any = None,
        dtype: Any = types.float32,
    ) -> None:  # fmt: skip
        super().__init__(
            num_features, eps, momentum, affine, gamma_init, beta_init, moving_mean_init, moving_var_init, use_batch_statistics, dtype=dtype
        )


class LayerNorm(Cell):
    """Mean 0 and variance 1 over the dimensions from begin_norm_axis on, then gamma and beta."""

    def __init__(
        self, normalized_shape: Any, begin_norm_axis: int = -1, begin_params_axis: int = -1, gamma_init: Any = "ones", beta_init: Any = "zeros",
        epsilon: float = 1e-7, dtype: Any = types.float32,
    ) -> None:  # fmt: skip
        super().__init__()
        if not isinstance(normalized_shape, tuple | list):
            raise TypeError(
                "For 'LayerNorm', the type of 'normalized_shape' must be tuple[int] or list[int], "
                f"but got {normalized_shape} and the type is {type(normalized_shape)}."
            )
        if not normalized_shape:
            raise ValueError(f"Expected normalized_shape to be at least 1-dimensional, but got normalized_shape = {normalized_shape}")
        self.normalized_shape = normalized_shape
        self.begin_norm_axis, self.begin_params_axis, self.epsilon = begin_norm_axis, begin_params_axis, epsilon
        self.gamma = Parameter(initializer(gamma_init, tuple(normalized_shape), dtype), name="gamma")
        self.beta = Parameter(initializer(beta_init, tuple(normalized_shape), dtype), name="beta")

    def construct(self, input_x: Tensor) -> Tensor:
        p = self._params
        norm, params = self.begin_norm_axis % input_x.ndim, self.begin_params_axis % input_x.ndim
        if tuple(input_x.shape[params:]) != tuple(self.normalized_shape):
            raise ValueError(
                f"For 'LayerNorm', the dimensions of x from {self.begin_params_axis} on must be {tuple(self.normalized_shape)}, "
                f"but got x of shape {tuple(input_x.shape)}."
            )
        if norm == params:
            return apply(LayerNormOp(norm, self.epsilon), input_x, p["gamma"], p["beta"])  # type: ignore[no-any-return]
        wide = cast(input_x, types.float32)
        axes = tuple(range(norm, input_x.ndim))
        centred = wide - ops.mean(wide, axes, True)
        y = centred * ops.rsqrt(ops.mean(centred * centred, axes, True) + self.epsilon) * p["gamma"] + p["beta"]
        return cast(y, input_x.dtype)

    @property
    def layer_norm(self) -> Any:
        """MindSpore's primitive of the cell: `layer_norm(x, gamma, beta)` gives (y, mean, variance)."""
        return ops.LayerNorm(self.begin_norm_axis, self.begin_params_axis, self.epsilon)

    def extend_repr(self) -> str:
        return (
            f"normalized_shape={self.normalized_shape}, begin_norm_axis={self.begin_norm_axis}, begin_params_axis={self.begin_params_axis}, "
            f"gamma{self.gamma}, beta={self.beta}"
        )


class LayerNormExt(Cell):
    """Mean 0 and variance 1 over the last dimensions, then weight and bias."""

    def __init__(
        self, normalized_shape: Any, eps: float = 1e-5, elementwise_affine: bool = True, bias: bool = True, dtype: Any = None
    ) -> None:
        super().__init__()
        shape = (normalized_shape,) if is_int(normalized_shape) else tuple(normalized_shape)
        kind = types.float32 if dtype is None else dtype
        self.normalized_shape, self.eps, self.elementwise_affine = shape, eps, elementwise_affine
        self.weight: Any = None
        self.bias: Any = None
        if elementwise_affine:
            self.weight = Parameter(initializer("ones", shape, kind), name="weight")
            if bias:
                self.bias = Parameter(initializer("zeros", shape, kind), name="bias")

    def construct(self, input: Tensor) -> Tensor:
        shape = self.normalized_shape
        if tuple(input.shape[-len(shape) :]) != shape:
            raise ValueError(f"For 'LayerNorm', the last dimensions of input must be {shape}, but got {tuple(input.shape)}.")
        p = self._params
        op = LayerNormOp(input.ndim - len(shape), self.eps)
        if not self.elementwise_affine:
            return apply(op, input, ops.ones(shape, types.float32))  # type: ignore[no-any-return]
        if p.get("bias") is None:  # made without one, or taken away later
            return apply(op, input, p["weight"])  # type: ignore[no-any-return]
        return apply(op, input, p["weight"], p["bias"])  # type: ignore[no-any-return]

    def extend_repr(self) -> str:
        return f"normalized_shape={self.normalized_shape}, eps={self.eps}, elementwise_affine={self.elementwise_affine}"


class GroupNorm(Cell):
    """Mean 0 and variance 1 over each group of channels, then gamma and beta."""

    def __init__(
        self, num_groups: int, num_channels: int, eps: float = 1e-5, affine: bool = True, gamma_init: Any = "ones", beta_init: Any = "zeros",
        dtype: Any = types.float32,
    ) -> None:  # fmt: skip
        super().__init__()
        for label, value in (("num_groups", num_groups), ("num_channels", num_channels)):
            if not is_int(value) or value < 1:
                raise ValueError(f"For 'GroupNorm', the '{label}' must be int and must be > 0, but got {value!r}.")
        if num_channels % num_groups:
            raise ValueError(
                f"For 'GroupNorm', the 'num_channels' must be divided by 'num_groups', "
                f"but got 'num_channels': {num_channels}, 'num_groups': {num_groups}."
            )
        if not isinstance(affine, bool):
            raise TypeError(f"For 'GroupNorm', the 'affine' must be bool, but got {type(affine).__name__}.")
        self.num_groups, self.num_channels, self.eps, self.affine = num_groups, num_channels, eps, affine
        self.gamma = Parameter(initializer(gamma_init, (num_channels,), dtype), name="gamma", requires_grad=affine)
        self.beta = Parameter(initializer(beta_init, (num_channels,), dtype), name="beta", requires_grad=affine)

    def construct(self, x: Tensor) -> Tensor:
        if x.ndim < 2 or x.shape[1] != self.num_channels:
            raise ValueError(f"For 'GroupNorm', x must be [n, {self.num_channels}, ...], but got {tuple(x.shape)}.")
        p = self._params
        return apply(GroupNormOp(self.num_groups, self.eps), x, p["gamma"], p["beta"])  # type: ignore[no-any-return]

    def extend_repr(self) -> str:
        return f"num_groups={self.num_groups}, num_channels={self.num_channels}"


class _InstanceNorm(Cell):
    """What normalisations of each channel of each example share.   In training running statistics are kept: nobody reads them but checkpoints."""

    rank = 4

    def __init__(
        self, num_features: int, eps: float = 1e-5, momentum: float = 0.1, affine: bool = True, gamma_init: Any = "ones", beta_init: Any = "zeros",
        dtype: Any = types.float32,
    ) -> None:  # fmt: skip
        super().__init__()
        name = type(self).__name__
        if not is_int(num_features) or num_features < 1:
            raise ValueError(f"For '{name}', the 'num_features' must be int and must be > 0, but got {num_features!r}.")
        if not 0 <= momentum <= 1:
            raise ValueError(f"For '{name}', the 'momentum' must be a number in range [0, 1], but got {momentum}.")
        self.num_features, self.eps, self.momentum, self.affine = num_features, eps, momentum, affine
        shape = (num_features,)
        self.moving_mean = Parameter(initializer("zeros", shape, dtype), name="mean", requires_grad=False)
        self.moving_variance = Parameter(initializer("ones", shape, dtype), name="variance", requires_grad=False)
        self.gamma = Parameter(initializer(gamma_init, shape, dtype), name="gamma", requires_grad=affine)
        self.beta = Parameter(initializer(beta_init, shape, dtype), name="beta", requires_grad=affine)

    def construct(self, x: Tensor) -> Tensor:
        if x.ndim != self.rank or x.shape[1] != self.num_features:
            raise ValueError(
                f"For '{type(self).__name__}', x must have {self.rank} dimensions and {self.num_features} channels, got {tuple(x.shape)}."
            )
        p = self._params
        if self.training:
            wide, axes = cast(x, types.float32), tuple(range(2, x.ndim))
            mean = ops.mean(wide, axes, True)
            count = math.prod(x.shape[2:])
            var = ops.mean(ops.square(wide - mean), axes) * (count / max(count - 1, 1))
            move(p["moving_mean"], ops.mean(ops.reshape(mean, x.shape[:2]), 0), 1 - self.momentum, self.momentum)
            move(p["moving_variance"], ops.mean(var, 0), 1 - self.momentum, self.momentum)
        return apply(InstanceNormOp(self.eps), x, p["gamma"], p["beta"])  # type: ignore[no-any-return]

    def extend_repr(self) -> str:
        return (
            f"num_features={self.num_features}, eps={self.eps}, momentum={self.momentum}, gamma={self.gamma}, beta={self.beta}, "
            f"moving_mean={self.moving_mean}, moving_variance={self.moving_variance}"
        )


class InstanceNorm1d(_InstanceNorm):
    """Instance normalisation of [n, c, l]."""

    rank = 3


class InstanceNorm2d(_InstanceNorm):
    """Instance normalisation of [n, c, h, w]."""


class InstanceNorm3d(_InstanceNorm):
    """Instance normalisation of [n, c, d, h, w]."""

    rank = 5
