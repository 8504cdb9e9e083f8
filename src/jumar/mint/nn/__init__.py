"""`mindspore.mint.nn`: layers with PyTorch's names and defaults.

In: PyTorch's arguments.  Out: cells.  `functional` is beside it.
"""

from __future__ import annotations

import importlib
from typing import Any

from jumar.mint.nn.layer.activation import (
    ELU,
    GELU,
    GLU,
    SELU,
    Hardshrink,
    Hardsigmoid,
    Hardswish,
    Hardtanh,
    LogSigmoid,
    LogSoftmax,
    Mish,
    PReLU,
    ReLU,
    ReLU6,
    Sigmoid,
    SiLU,
    Softmax,
    Softshrink,
    Tanh,
    Threshold,
)  # fmt: skip
from jumar.mint.nn.layer.basic import (
    Dropout,
    Dropout2d,
    Embedding,
    Flatten,
    Fold,
    Identity,
    Linear,
    PixelShuffle,
    Unfold,
    Upsample,
    UpsamplingBilinear2d,
    UpsamplingNearest2d,
)  # fmt: skip
from jumar.mint.nn.layer.conv import Conv1d, Conv2d, Conv3d, ConvTranspose2d
from jumar.mint.nn.layer.loss import (
    BCELoss,
    BCEWithLogitsLoss,
    CosineEmbeddingLoss,
    CrossEntropyLoss,
    KLDivLoss,
    L1Loss,
    MSELoss,
    NLLLoss,
    SmoothL1Loss,
    SoftMarginLoss,
)  # fmt: skip
from jumar.mint.nn.layer.normalization import BatchNorm1d, BatchNorm2d, BatchNorm3d, GroupNorm, LayerNorm, SyncBatchNorm
from jumar.mint.nn.layer.padding import (
    ConstantPad1d,
    ConstantPad2d,
    ConstantPad3d,
    ReflectionPad1d,
    ReflectionPad2d,
    ReflectionPad3d,
    ReplicationPad1d,
    ReplicationPad2d,
    ReplicationPad3d,
    ZeroPad1d,
    ZeroPad2d,
    ZeroPad3d,
)  # fmt: skip
from jumar.mint.nn.layer.pooling import (
    AdaptiveAvgPool1d,
    AdaptiveAvgPool2d,
    AdaptiveAvgPool3d,
    AdaptiveMaxPool1d,
    AdaptiveMaxPool2d,
    AvgPool1d,
    AvgPool2d,
    AvgPool3d,
    MaxPool2d,
    MaxUnpool2d,
)  # fmt: skip
from jumar.nn.cell import Cell

__all__ = [
    "AdaptiveAvgPool1d", "AdaptiveAvgPool2d", "AdaptiveAvgPool3d", "AdaptiveMaxPool1d", "AdaptiveMaxPool2d", "AvgPool1d", "AvgPool2d", "AvgPool3d",
    "BCELoss", "BCEWithLogitsLoss", "BatchNorm1d", "BatchNorm2d", "BatchNorm3d", "Cell", "ConstantPad1d", "ConstantPad2d", "ConstantPad3d",
    "Conv1d", "Conv2d", "Conv3d", "ConvTranspose2d", "CosineEmbeddingLoss", "CrossEntropyLoss", "Dropout", "Dropout2d", "ELU", "Embedding",
    "Flatten", "Fold", "GELU", "GLU", "GroupNorm", "Hardshrink", "Hardsigmoid", "Hardswish", "Hardtanh", "Identity", "KLDivLoss", "L1Loss",
    "LayerNorm", "Linear", "LogSigmoid", "LogSoftmax", "MSELoss", "MaxPool2d", "MaxUnpool2d", "Mish", "NLLLoss", "PReLU", "PixelShuffle", "ReLU",
    "ReLU6", "ReflectionPad1d", "ReflectionPad2d", "ReflectionPad3d", "ReplicationPad1d", "ReplicationPad2d", "ReplicationPad3d", "SELU", "SiLU",
    "Sigmoid", "SmoothL1Loss", "SoftMarginLoss", "Softmax", "Softshrink", "SyncBatchNorm", "Tanh", "Threshold", "Unfold", "Upsample",
    "UpsamplingBilinear2d", "UpsamplingNearest2d", "ZeroPad1d", "ZeroPad2d", "ZeroPad3d",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    """`functional`, and an error that helps."""
    if name in ("functional", "layer"):
        return importlib.import_module(f"jumar.mint.nn.{name}")
    if name == "cross_entropy":
        return importlib.import_module("jumar.mint.nn.functional").cross_entropy
    from jumar.base import nearest  # noqa: PLC0415  (only a misspelt name pays for it)

    hint = nearest(name, __all__)
    raise AttributeError(f"module 'mindspore.mint.nn' has no attribute {name!r}{f'; {hint}' if hint else ''}")
