"""`mindspore.mint.nn.functional`: PyTorch's functional interface.

In: tensors, with PyTorch's names and defaults.  Out: tensors: a table over the functions of `ops`.
"""

# ruff: noqa: PLE0605  (the names are those of the tables)

from __future__ import annotations

from typing import Any

from jumar.frontend.tensor import Tensor
from jumar.ops import activation, arithmetic, convolution, image, linalg, loss, movement, normalization, places, pooling, random
from jumar.ops.operands import lenient, missing


def group_norm(input: Any, num_groups: int, weight: Any = None, bias: Any = None, eps: float = 1e-05) -> Tensor:
    """Groups of channels normalised."""
    return normalization.group_norm(input, num_groups, weight, bias, eps)


def batch_norm(
    input: Any, running_mean: Any, running_var: Any, weight: Any = None, bias: Any = None, training: bool = False, momentum: float = 0.1,
    eps: float = 1e-05,
) -> Tensor:  # fmt: skip
    """Each channel normalised."""
    return normalization.batch_norm(input, running_mean, running_var, weight, bias, training, momentum, eps)


def relu_(input: Any) -> Tensor:
    """max(x, 0), in place."""
    return activation.relu(input, True)


def pad(input: Any, pad: Any, mode: str = "constant", value: Any = None) -> Tensor:
    """More elements around, in pairs from the last dimension on."""
    return image.pad(input, pad, mode, value)


def rms_norm(input: Any, normalized_shape: Any, weight: Any = None, eps: float | None = None) -> Tensor:
    """x over the root of its mean square."""
    from jumar.ops.creation import ones  # noqa: PLC0415

    gamma = ones(normalized_shape, dtype=input.dtype) if weight is None else weight
    return normalization.rms_norm(input, gamma, 1e-6 if eps is None else eps)[0]


def scaled_dot_product_attention(
    query: Any, key: Any, value: Any, attn_mask: Any = None, dropout_p: float = 0.0, is_causal: bool = False, scale: float | None = None,
    enable_gqa: bool = False,
) -> Tensor:  # fmt: skip
    """softmax(q k^T scale + mask) v."""
    from jumar.ops.attention import scaled_dot_product  # noqa: PLC0415

    return scaled_dot_product(query, key, value, attn_mask, dropout_p, is_causal, scale)


_SHARED = {
    activation: "elu gelu glu hardshrink hardsigmoid hardswish hardtanh logsigmoid mish prelu relu relu6 selu silu softplus softshrink softsign "
                "softmin threshold celu tanhshrink",
    arithmetic: "sigmoid tanh clamp",
    image: "fold grid_sample pixel_shuffle pixel_unshuffle unfold affine_grid",
    loss: "binary_cross_entropy cosine_embedding_loss cosine_similarity cross_entropy l1_loss mse_loss nll_loss soft_margin_loss "
          "triplet_margin_loss huber_loss",
    normalization: "layer_norm normalize",
    places: "embedding",
    pooling: "adaptive_avg_pool1d adaptive_avg_pool2d adaptive_avg_pool3d adaptive_max_pool1d adaptive_max_pool2d max_unpool2d max_pool1d",
    random: "dropout2d gumbel_softmax",
    convolution: "conv_transpose1d conv_transpose2d conv_transpose3d",
    movement: "broadcast_to",
}  # fmt: skip
_OWN = {
    "avg_pool1d": pooling.avg_pool1d_torch, "avg_pool2d": pooling.avg_pool2d_torch, "avg_pool3d": pooling.avg_pool3d_torch,
    "max_pool2d": pooling.max_pool2d_torch, "conv1d": convolution.torch_conv(1), "conv2d": convolution.torch_conv(2),
    "conv3d": convolution.torch_conv(3), "dropout": random.dropout_torch, "flatten": movement.flatten_from, "kl_div": loss.kl_div_torch,
    "binary_cross_entropy_with_logits": loss.binary_cross_entropy_with_logits_torch, "leaky_relu": activation.leaky_relu_torch,
    "linear": linalg.dense, "log_softmax": activation.log_softmax_torch, "softmax": activation.softmax_torch, "one_hot": places.one_hot_torch,
    "smooth_l1_loss": loss.smooth_l1_loss_torch, "pad": pad, "group_norm": group_norm, "batch_norm": batch_norm, "relu_": relu_,
    "interpolate": image.interpolate_torch, "upsample": image.interpolate_torch,
    "rms_norm": rms_norm, "scaled_dot_product_attention": scaled_dot_product_attention,
}  # fmt: skip
_TABLE = {name: getattr(module, name) for module, names in _SHARED.items() for name in names.split()} | _OWN
globals().update({name: lenient(function) for name, function in _TABLE.items()})
__all__ = sorted(_TABLE)


def __getattr__(name: str) -> Any:
    raise missing("mint.nn.functional", name, __all__)
