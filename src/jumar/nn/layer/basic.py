"""Layers that are in most networks: Dense, Linear, Dropout, Flatten, Pad, OneHot, Upsample and small ones.

In: Tensors.  Out: Tensors.  Weights of a dense layer are [out, in], as checkpoints have them.
"""

from __future__ import annotations

import math
from typing import Any

from jumar import ops
from jumar.common.initializer import HeUniform, Uniform, initializer
from jumar.frontend import dtype as types
from jumar.frontend.engine import apply
from jumar.frontend.parameter import Parameter
from jumar.frontend.tensor import Tensor
from jumar.nn.cell import Cell
from jumar.nn.layer.activation import get_activation
from jumar.nn.layer.conv import to_type
from jumar.nn.layer.sizes import is_int
from jumar.operators import Add, MatMul, Reshape, Transpose

_matmul, _turn, _add = MatMul(), Transpose((1, 0)), Add()


def dense(x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    """x w^T + bias, in the element type of x."""
    y: Tensor = apply(_matmul, x, apply(_turn, to_type(weight, x)))
    return y if bias is None else apply(_add, y, to_type(bias, x))


def _weights(name: str, shape: tuple[int, int], weight_init: Any, dtype: Any) -> Tensor:
    if isinstance(weight_init, Tensor) and tuple(weight_init.shape) != shape:
        raise ValueError(
            f"For '{name}', weight init shape error. The ndim of 'weight_init' must be equal to 2, and the first dim must be equal to "
            f"'out_channels', and the second dim must be equal to 'in_channels'. But got 'weight_init': {list(weight_init.shape)}, "
            f"'out_channels': {shape[0]}, 'in_channels': {shape[1]}."
        )
    return initializer(HeUniform(math.sqrt(5)) if weight_init is None else weight_init, shape, dtype)


def _bias(name: str, size: int, fan_in: int, bias_init: Any, dtype: Any) -> Tensor:
    if isinstance(bias_init, Tensor) and tuple(bias_init.shape) != (size,):
        raise ValueError(
            f"For '{name}', bias init shape error. The ndim of 'bias_init' must be equal to 1, and the first dim must be equal to "
            f"'out_channels'. But got 'bias_init': {list(bias_init.shape)}, 'out_channels': {size}."
        )
    return initializer(Uniform(1 / math.sqrt(fan_in)) if bias_init is None else bias_init, (size,), dtype)


class Dense(Cell):
    """activation(x w^T + bias) over the last dimension."""

    def __init__(
        self, in_channels: int, out_channels: int, weight_init: Any = None, bias_init: Any = None, has_bias: bool = True,
        activation: Any = None, dtype: Any = types.float32,
    ) -> None:  # fmt: skip
        super().__init__()
        for label, value in (("in_channels", in_channels), ("out_channels", out_channels)):
            if not is_int(value) or value < 1:
                raise ValueError(f"For 'Dense', the '{label}' must be int and must be > 0, but got '{value!r}'.")
        if not isinstance(has_bias, bool):
            raise TypeError(f"For 'Dense', the 'has_bias' must be bool, but got {type(has_bias).__name__}.")
        self.in_channels, self.out_channels, self.has_bias = in_channels, out_channels, has_bias
        self.weight = Parameter(_weights("Dense", (out_channels, in_channels), weight_init, dtype), name="weight")
        self.bias: Any = None
        if has_bias:
            self.bias = Parameter(_bias("Dense", out_channels, in_channels, bias_init, dtype), name="bias")
        self.activation: Any = get_activation(activation) if isinstance(activation, str) else activation
        if activation is not None and not callable(self.activation):
            raise TypeError(f"For 'Dense', the 'activation' must be str or Cell or Primitive, but got {type(activation).__name__}.")
        self.activation_flag = self.activation is not None

    def construct(self, x: Tensor) -> Tensor:
        y = dense(x, self.weight, self.bias)
        return self.activation(y) if self.activation_flag else y

    def extend_repr(self) -> str:
        text = f"input_channels={self.in_channels}, output_channels={self.out_channels}"
        if self.has_bias:
            text += f", has_bias={self.has_bias}"
        return f"{text}, activation={self.activation}" if self.activation_flag else text


class Linear(Cell):
    """x w^T + bias over the last dimension."""

    def __init__(
        self, in_features: int, out_features: int, bias: bool = True, weight_init: Any = None, bias_init: Any = None, dtype: Any = None
    ) -> None:
        super().__init__()
        for label, value in (("in_features", in_features), ("out_features", out_features)):
            if not is_int(value) or value < 1:
                raise ValueError(f"For 'Linear', the '{label}' must be int and must be > 0, but got '{value!r}'.")
        if not isinstance(bias, bool):
            raise TypeError(f"For 'Linear', the 'bias' must be bool, but got {type(bias).__name__}.")
        kind = types.float32 if dtype is None else dtype
        self.in_features, self.out_features, self.has_bias = in_features, out_features, bias
        self.weight = Parameter(_weights("Linear", (out_features, in_features), weight_init, kind), name="weight")
        self.bias: Any = None
        if bias:
            self.bias = Parameter(_bias("Linear", out_features, in_features, bias_init, kind), name="bias")

    def construct(self, x: Tensor) -> Tensor:
        return dense(x, self.weight, self.bias)

    def extend_repr(self) -> str:
        return f"input_features={self.in_features}, output_features={self.out_features}, has_bias={self.has_bias}"


class Identity(Cell):
    """Its input.   It takes any arguments, and ignores them."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__()

    def construct(self, input: Any) -> Any:
        return input


class Dropout(Cell):
    """In training, zero with probability p, else input / (1 - p).   keep_prob: 1 - p, where p is not given."""

    def __init__(self, keep_prob: float = 0.5, p: float | None = None, dtype: Any = types.float32) -> None:
        super().__init__()
        if p is None:
            if isinstance(keep_prob, bool) or not isinstance(keep_prob, int | float):
                raise TypeError(f"For 'Dropout', the type of 'keep_prob' must be float, but got {type(keep_prob).__name__}.")
            if not 0 < keep_prob <= 1:
                raise ValueError(f"For 'Dropout', the 'keep_prob' must be a number in range (0, 1], but got {keep_prob}.")
        elif not 0 <= p < 1:
            raise ValueError(f"For 'Dropout', the 'p' must be a number in range [0, 1), but got {p}.")
        self.keep_prob, self.p = keep_prob, p
        self._rate = 1 - keep_prob if p is None else p

    def construct(self, x: Tensor) -> Tensor:
        if not self.training or self._rate == 0:
            return x
        return ops.dropout(x, p=self._rate, training=True)  # type: ignore[no-any-return]

    def extend_repr(self) -> str:
        return f"keep_prob={self.keep_prob}" if self.p is None else f"p={self.p}"


class DropoutExt(Cell):
    """In training, zero with probability p, else input / (1 - p)."""

    def __init__(self, p: float = 0.5, inplace: bool = False) -> None:
        super().__init__()
        if not 0 <= p <= 1:
            raise ValueError(f"For 'Dropout', the 'p' must be a number in range [0, 1], but got {p}.")
        self.p, self.inplace = p, inplace

    def construct(self, input: Tensor) -> Tensor:
        if not self.training or self.p == 0:
            return input
        result = input * 0 if self.p == 1 else ops.dropout(input, p=self.p, training=True)
        if not self.inplace:
            return result
        input._write(result)
        return input


class _DropoutNd(Cell):
    """In training, whole channels are zero with probability p."""

    rank = 2

    def __init__(self, p: float = 0.5) -> None:
        super().__init__()
        if isinstance(p, bool) or not isinstance(p, int | float):
            raise TypeError(f"For '{type(self).__name__}', the type of 'p' must be float, but got {type(p).__name__}.")
        if not 0 <= p <= 1:
            raise ValueError(f"For '{type(self).__name__}', the 'p' must be a number in range [0, 1], but got {p}.")
        self.p = p

    def construct(self, x: Tensor) -> Tensor:
        if not self.training or self.p == 0:
            return x
        if self.p == 1:
            return x * 0
        kept = x.shape[: x.ndim - self.rank] if x.ndim <= self.rank + 1 else x.shape[:2]
        ones = ops.ones((*kept, *[1] * (x.ndim - len(kept))), x.dtype)
        found: Tensor = x * ops.dropout(ones, p=self.p, training=True)
        return found

    def extend_repr(self) -> str:
        return f"p={self.p}"


class Dropout1d(_DropoutNd):
    """Dropout of whole channels of [n, c, l] or [c, l]."""

    rank = 1


class Dropout2d(_DropoutNd):
    """Dropout of whole channels of [n, c, h, w]."""


class Dropout3d(_DropoutNd):
    """Dropout of whole channels of [n, c, d, h, w]."""

    rank = 3


class Dropout2dExt(_DropoutNd):
    """Dropout of whole channels of [n, c, h, w] or [c, h, w]."""

    def __init__(self, p: float = 0.5, inplace: bool = False) -> None:
        super().__init__(p)
        if inplace:
            raise NotImplementedError("Dropout2d: inplace must be False")

    def construct(self, input: Tensor) -> Tensor:
        return super().construct(input)


class Flatten(Cell):
    """The dimensions from start_dim to end_dim as one."""

    def __init__(self, start_dim: int = 1, end_dim: int = -1) -> None:
        super().__init__()
        for label, value in (("start_dim", start_dim), ("end_dim", end_dim)):
            if not is_int(value):
                raise TypeError(f"For 'Flatten', the '{label}' must be int, but got {type(value).__name__}.")
        self.start_dim, self.end_dim = start_dim, end_dim

    def construct(self, x: Tensor) -> Tensor:
        rank = x.ndim
        if rank < 2:
            first, last = 0, 0
            shape: tuple[int, ...] = (x.size,)
            if rank == 1 and self.start_dim == 1:
                shape = (x.shape[0], 1)
            return apply(Reshape(shape), x)  # type: ignore[no-any-return]
        first, last = self.start_dim % rank, self.end_dim % rank
        if first > last:
            raise ValueError(f"For 'Flatten', the 'start_dim' must be at most 'end_dim', but got {self.start_dim} and {self.end_dim}.")
        shape = (*x.shape[:first], math.prod(x.shape[first : last + 1]), *x.shape[last + 1 :])
        return apply(Reshape(shape), x)  # type: ignore[no-any-return]


class Unflatten(Cell):
    """One dimension as several."""

    def __init__(self, axis: int, unflattened_size: Any) -> None:
        super().__init__()
        self.axis, self.unflattened_size = axis, tuple(unflattened_size)

    def construct(self, input_x: Tensor) -> Tensor:
        axis = self.axis % input_x.ndim
        return ops.reshape(input_x, (*input_x.shape[:axis], *self.unflattened_size, *input_x.shape[axis + 1 :]))  # type: ignore[no-any-return]


class Norm(Cell):
    """The Euclidean norm over some axes."""

    def __init__(self, axis: Any = (), keep_dims: bool = False) -> None:
        super().__init__()
        self.axis, self.keep_dims = axis, keep_dims

    def construct(self, x: Tensor) -> Tensor:
        axes = None if self.axis == () else self.axis
        return ops.sqrt(ops.sum(x * x, axes, self.keep_dims))  # type: ignore[no-any-return]

    def extend_repr(self) -> str:
        return f"axis={self.axis}, keep_dims={self.keep_dims}"


class OneHot(Cell):
    """A new axis with on_value at the index and off_value elsewhere."""

    def __init__(self, axis: int = -1, depth: int = 1, on_value: float = 1.0, off_value: float = 0.0, dtype: Any = types.float32) -> None:
        super().__init__()
        self.axis, self.depth, self.dtype = axis, depth, types.as_type(dtype)
        self.on_value, self.off_value = on_value, off_value

    def construct(self, indices: Tensor) -> Tensor:
        axis = self.axis % (indices.ndim + 1)
        places = ops.arange(self.depth).reshape((self.depth, *[1] * (indices.ndim - axis)))
        hit = ops.expand_dims(indices, axis) == places
        on, off = Tensor(self.on_value, self.dtype), Tensor(self.off_value, self.dtype)
        return ops.where(hit, on, off)  # type: ignore[no-any-return]


class Pad(Cell):
    """paddings: (before, after) of every dimension.   mode: CONSTANT (zeros), REFLECT or SYMMETRIC."""

    def __init__(self, paddings: Any, mode: str = "CONSTANT") -> None:
        super().__init__()
        if mode not in ("CONSTANT", "REFLECT", "SYMMETRIC"):
            raise ValueError(f"For 'Pad', the 'mode' must be 'CONSTANT', 'REFLECT' or 'SYMMETRIC', but got {mode!r}.")
        if not isinstance(paddings, tuple) or any(len(p) != 2 for p in paddings):
            raise TypeError(f"For 'Pad', the 'paddings' must be a tuple of pairs, but got {paddings!r}.")
        self.paddings, self.mode = paddings, mode

    def construct(self, x: Tensor) -> Tensor:
        from jumar.operators import Pad as PadOp  # noqa: PLC0415  (this class has the same name)

        low, high = tuple(int(p[0]) for p in self.paddings), tuple(int(p[1]) for p in self.paddings)
        if self.mode == "SYMMETRIC":
            for axis, (before, after) in enumerate(self.paddings):
                n = x.shape[axis]
                order = [*range(before - 1, -1, -1), *range(n), *range(n - 1, n - 1 - after, -1)]
                x = ops.gather(x, Tensor(order), axis) if before or after else x
            return x
        return apply(PadOp(low, high, "constant" if self.mode == "CONSTANT" else "reflect"), x)  # type: ignore[no-any-return]


class Unfold(Cell):
    """Patches of an image, [n, c * k * k, rows, columns].   ksizes, strides, rates: [1, rows, columns, 1]."""

    def __init__(self, ksizes: Any, strides: Any, rates: Any, padding: str = "valid") -> None:
        super().__init__()
        for label, value in (("ksizes", ksizes), ("strides", strides), ("rates", rates)):
            if len(value) != 4 or value[0] != 1 or value[3] != 1:
                raise ValueError(f"For 'Unfold', the '{label}' must be [1, rows, columns, 1], but got {value}.")
        self.ksizes, self.strides, self.rates, self.padding = ksizes, strides, rates, padding

    def construct(self, input_x: Tensor) -> Tensor:
        from jumar.nn.layer.sizes import same_pads  # noqa: PLC0415

        (_, *kernel, _), (_, *strides, _), (_, *rates, _) = self.ksizes, self.strides, self.rates
        n, c, *spatial = input_x.shape
        if self.padding.lower() == "same":
            low, high = same_pads(spatial, kernel, strides, rates)
            input_x = ops.pad(input_x, [low[1], high[1], low[0], high[0]])
            spatial = list(input_x.shape[2:])
        out = [(i - d * (k - 1) - 1) // s + 1 for i, k, s, d in zip(spatial, kernel, strides, rates, strict=True)]
        columns = ops.unfold(input_x, tuple(kernel), tuple(rates), 0, tuple(strides))
        # ours has the channel outermost, this layer innermost
        shaped = ops.reshape(columns, (n, c, kernel[0] * kernel[1], *out))
        return ops.reshape(ops.transpose(shaped, (0, 2, 1, 3, 4)), (n, c * kernel[0] * kernel[1], *out))  # type: ignore[no-any-return]


class Tril(Cell):
    """The lower triangle of the last two dimensions."""

    def construct(self, x: Tensor, k: int = 0) -> Tensor:
        return ops.tril(x, k)  # type: ignore[no-any-return]


class Triu(Cell):
    """The upper triangle of the last two dimensions."""

    def construct(self, x: Tensor, k: int = 0) -> Tensor:
        return ops.triu(x, k)  # type: ignore[no-any-return]


class Roll(Cell):
    """Elements moved along axes, those that fall off come back at the front."""

    def __init__(self, shift: Any, axis: Any) -> None:
        super().__init__()
        self.shift, self.axis = shift, axis

    def construct(self, input_x: Tensor) -> Tensor:
        return ops.roll(input_x, self.shift, self.axis)  # type: ignore[no-any-return]


class ClipByNorm(Cell):
    """x scaled so that its norm is at most clip_norm."""

    def __init__(self, axis: Any = None) -> None:
        super().__init__()
        self.axis = axis

    def construct(self, x: Tensor, clip_norm: Tensor) -> Tensor:
        wide = ops.cast(x, types.float32)
        norm = ops.sqrt(ops.sum(wide * wide, self.axis, True))
        limit = ops.cast(clip_norm, types.float32) if isinstance(clip_norm, Tensor) else clip_norm
        return ops.cast(wide * limit / ops.maximum(norm, limit), x.dtype)  # type: ignore[no-any-return]


class L1Regularizer(Cell):
    """scale * sum |weights|."""

    def __init__(self, scale: float) -> None:
        super().__init__()
        if not scale > 0 or math.isinf(scale):
            raise ValueError(f"For 'L1Regularizer', the 'scale' must be a positive number, but got {scale}.")
        self.scale = scale

    def construct(self, weights: Tensor) -> Tensor:
        return ops.sum(ops.abs(weights)) * self.scale  # type: ignore[no-any-return]


class Upsample(Cell):
    """Images made larger.   mode: nearest, linear, bilinear, trilinear, bicubic or area."""

    def __init__(
        self, size: Any = None, scale_factor: Any = None, mode: str = "nearest", align_corners: bool | None = None,
        recompute_scale_factor: bool | None = None,
    ) -> None:  # fmt: skip
        super().__init__()
        self.size, self.scale_factor, self.mode = size, scale_factor, mode
        self.align_corners, self.recompute_scale_factor = align_corners, recompute_scale_factor

    def construct(self, x: Tensor) -> Tensor:
        return ops.interpolate(  # type: ignore[no-any-return]
            x, self.size, self.scale_factor, self.mode, self.align_corners, self.recompute_scale_factor
        )


class UpsampleExt(Upsample):
    """Images made larger."""

    def construct(self, input: Tensor) -> Tensor:
        return super().construct(input)
