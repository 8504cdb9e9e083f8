"""Normalizations as functions: layer, group, batch, instance and RMS norms, normalize, lrn.

In: x and, mostly, weight and bias.  Out: x's shape.  `batch_norm` in training writes the running statistics.
"""

from __future__ import annotations

import math
from typing import Any

from jumar import operators as o
from jumar.ops import arithmetic as a
from jumar.ops import movement as s
from jumar.ops import reduction as r
from jumar.ops.creation import filled
from jumar.ops.operands import Tensor, apply, as_tensor, axis_of, cast, floating, ints, numpy_dtype


def layer_norm(input: Any, normalized_shape: Any, weight: Any = None, bias: Any = None, eps: float = 1e-05) -> Tensor:
    """(x - mean) / sqrt(var + eps) * weight + bias over the last dimensions."""
    x = floating(input)
    shape = ints(normalized_shape)
    if x.shape[x.ndim - len(shape) :] != shape:
        raise ValueError(f"layer_norm: normalized_shape must be the last dimensions of {x.shape}, got {shape}")
    return layer_norm_from(x, x.ndim - len(shape), weight, bias, eps)


def layer_norm_from(x: Tensor, axis: int, weight: Any, bias: Any, eps: float) -> Tensor:
    """Layer norm over the dimensions from an axis on."""
    dtype = numpy_dtype(x)
    scale = filled(x.shape[axis:], 1, dtype) if weight is None else cast(as_tensor(weight), dtype)
    parts = [x, scale] + ([] if bias is None else [cast(as_tensor(bias), dtype)])
    return apply(o.LayerNorm(axis, float(eps)), *parts)  # type: ignore[no-any-return]


def layer_norm_with_stats(x: Any, gamma: Any, beta: Any, axis: int, eps: float) -> tuple[Tensor, Tensor, Tensor]:
    """Layer norm, with the mean and 1 / sqrt(var + eps) that it used."""
    tensor = floating(x)
    at = axis_of(axis, tensor.ndim)
    axes = tuple(range(at, tensor.ndim))
    var, mean = r.var_mean(tensor, axes, 0, True)
    return layer_norm_from(tensor, at, gamma, beta, eps), mean, var


def rms_norm(x: Any, gamma: Any, epsilon: float = 1e-06) -> tuple[Tensor, Tensor]:
    """x / sqrt(mean x^2 + epsilon) * gamma over gamma's dimensions, and the factor 1 / sqrt(...)."""
    tensor, scale = floating(x), as_tensor(gamma)
    axes = tuple(range(tensor.ndim - scale.ndim, tensor.ndim))
    wide = cast(tensor, "float32")
    factor = a.rsqrt(a.add(r.mean(a.square(wide), axes, True), float(epsilon)))
    y: Tensor = apply(o.RmsNorm(tensor.ndim - scale.ndim, float(epsilon)), tensor, cast(scale, numpy_dtype(tensor)))
    return y, factor


def add_rms_norm(x1: Any, x2: Any, gamma: Any, epsilon: float = 1e-06) -> tuple[Tensor, Tensor, Tensor]:
    """rms_norm of x1 + x2, its factor, and the sum."""
    total = a.add(x1, x2)
    y, factor = rms_norm(total, gamma, epsilon)
    return y, factor, total


def add_layer_norm(
    x1: Any, x2: Any, gamma: Any, beta: Any, epsilon: float = 1e-05, additional_output: bool = False
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Layer norm of x1 + x2 over the last dimension, its statistics, and the sum."""
    total = a.add(x1, x2)
    var, mean = r.var_mean(total, -1, 0, True)
    return layer_norm_from(total, total.ndim - 1, gamma, beta, epsilon), mean, a.rsqrt(a.add(var, epsilon)), total


def group_norm(input: Any, num_groups: int, weight: Any = None, bias: Any = None, eps: float = 1e-05) -> Tensor:
    """(x - mean) / sqrt(var + eps) * weight + bias, over groups of channels and all positions."""
    x = floating(input)
    c = x.shape[1]
    if c % num_groups:
        raise ValueError(f"group_norm: num_groups must divide the {c} channels, got {num_groups}")
    dtype = numpy_dtype(x)
    scale = filled((c,), 1, dtype) if weight is None else cast(as_tensor(weight), dtype)
    shift = filled((c,), 0, dtype) if bias is None else cast(as_tensor(bias), dtype)
    if x.ndim == 2:
        return s.squeeze(apply(o.GroupNorm(int(num_groups), float(eps)), s.unsqueeze(x, 2), scale, shift), 2)
    return apply(o.GroupNorm(int(num_groups), float(eps)), x, scale, shift)  # type: ignore[no-any-return]


def instance_norm(
    input: Any, running_mean: Any = None, running_var: Any = None, weight: Any = None, bias: Any = None, use_input_stats: bool = True,
    momentum: float = 0.1, eps: float = 1e-05,
) -> Tensor:  # fmt: skip
    """Each image and channel normalised by itself."""
    x = floating(input)
    if not use_input_stats:
        return batch_norm(x, running_mean, running_var, weight, bias, False, momentum, eps)
    c, dtype = x.shape[1], numpy_dtype(x)
    scale = filled((c,), 1, dtype) if weight is None else cast(as_tensor(weight), dtype)
    shift = filled((c,), 0, dtype) if bias is None else cast(as_tensor(bias), dtype)
    return apply(o.InstanceNorm(float(eps)), x, scale, shift)  # type: ignore[no-any-return]


def batch_norm(
    input_x: Any, running_mean: Any, running_var: Any, weight: Any = None, bias: Any = None, training: bool = False, momentum: float = 0.1,
    eps: float = 1e-05,
) -> Tensor:  # fmt: skip
    """Each channel normalised by the running statistics; in training by the batch's own, which then move the running ones by `momentum`."""
    x = floating(input_x)
    c, dtype = x.shape[1], numpy_dtype(x)
    like = numpy_dtype(weight) if isinstance(weight, Tensor) else dtype
    scale = filled((c,), 1, like) if weight is None else as_tensor(weight)
    shift = filled((c,), 0, like) if bias is None else cast(as_tensor(bias), like)
    if training or running_mean is None:
        y, mean, var = apply(o.BatchNormTrain(float(eps)), x, scale, shift)
        if running_mean is not None:
            count = math.prod(x.shape) // c
            unbiased = a.mul(var, count / max(count - 1, 1))
            for running, new in ((running_mean, mean), (running_var, unbiased)):
                kept = a.add(a.mul(running, 1 - momentum), a.mul(cast(a.stop_gradient(new), numpy_dtype(running)), momentum))
                running._write(cast(kept, numpy_dtype(running)))
        return y  # type: ignore[no-any-return]
    parts = [cast(t, dtype) for t in (scale, shift, as_tensor(running_mean), as_tensor(running_var))]
    return apply(o.BatchNorm(float(eps)), x, *parts)  # type: ignore[no-any-return]


def normalize(input: Any, p: float = 2.0, dim: int = 1, eps: float = 1e-12) -> Tensor:
    """x over its p-norm along a dimension, which counts as eps at least."""
    x = floating(input)
    return a.div(x, a.clamp(r.vector_norm(x, p, dim, True), eps))


def l2_normalize(x: Any, axis: Any, epsilon: float) -> Tensor:
    """x / sqrt(max(sum x^2, epsilon)) along axes."""
    tensor = floating(x)
    return a.mul(tensor, a.rsqrt(a.clamp(r.sum(a.square(tensor), axis, True), epsilon)))


def lrn(
    x: Any, depth_radius: int = 5, bias: float = 1.0, alpha: float = 1.0, beta: float = 0.5, norm_region: str = "ACROSS_CHANNELS"
) -> Tensor:
    """x / (bias + alpha * sum of squares of near channels)^beta."""
    size = 2 * depth_radius + 1
    return apply(o.Lrn(size, alpha * size, beta, bias), floating(x))  # type: ignore[no-any-return]


def renorm(input: Any, p: float, axis: int, maxnorm: float) -> Tensor:
    """x with each slice along an axis scaled to a p-norm of at most maxnorm."""
    x = floating(input)
    at = axis_of(axis, x.ndim)
    sizes = r.vector_norm(x, p, tuple(i for i in range(x.ndim) if i != at), True)
    return a.mul(x, a.where(a.greater(sizes, maxnorm), a.div(maxnorm, a.add(sizes, 1e-7)), 1.0))


def clip_by_norm(x: Any, max_norm: Any, norm_type: float = 2.0, error_if_nonfinite: bool = False) -> Any:
    """Tensors scaled so that their common norm is at most max_norm."""
    tensors = [x] if isinstance(x, Tensor) else list(x)
    total = r.vector_norm(s.stack([r.vector_norm(t, norm_type) for t in tensors]), norm_type)
    factor = a.clamp(a.div(float(max_norm), a.add(total, 1e-6)), None, 1.0)
    made = [a.mul(t, cast(factor, numpy_dtype(t))) for t in tensors]
    return made[0] if isinstance(x, Tensor) else type(x)(made) if type(x) in (list, tuple) else tuple(made)


def clip_by_global_norm(x: Any, clip_norm: Any = 1.0, use_norm: Any = None) -> Any:
    """Tensors scaled by clip_norm / max(their common 2-norm, clip_norm)."""
    if use_norm is not None:
        raise ValueError("clip_by_global_norm: use_norm must be None, as MindSpore has it")
    tensors = list(x)
    total = None
    for t in tensors:
        part = r.sum(a.square(cast(t, "float32")))
        total = part if total is None else a.add(total, part)
    whole = a.maximum(a.sqrt(total), clip_norm)
    factor = a.div(clip_norm, whole)
    made = [cast(a.mul(cast(t, "float32"), factor), numpy_dtype(t)) for t in tensors]
    return tuple(made)


__all__ = [
    "add_layer_norm", "add_rms_norm", "batch_norm", "clip_by_global_norm", "clip_by_norm", "group_norm", "layer_norm", "lrn", "renorm", "rms_norm",
]  # fmt: skip
