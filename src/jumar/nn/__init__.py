"""Networks: cells, layers, losses, optimisers and what wraps them for training.

In: Python.  Out: `Cell`s.  Metrics live in `jumar.train.metrics` and are found here when asked for.
"""

from __future__ import annotations

import importlib
from typing import Any

from jumar.nn.cell import Cell

_PLACES = {
    "layer.container": "CellDict CellList SequentialCell",
    "layer.basic": (
        "ClipByNorm Dense Dropout Dropout1d Dropout2d Dropout2dExt Dropout3d DropoutExt Flatten Identity L1Regularizer Linear Norm OneHot Pad "
        "Roll Tril Triu Unflatten Unfold Upsample UpsampleExt"
    ),
    "layer.activation": (
        "CELU ELU FastGelu GELU GLU HShrink HSigmoid HSwish Hardtanh LeakyReLU LogSigmoid LogSoftmax LogSoftmaxExt Mish PReLU PReLUExt RReLU "
        "ReLU ReLU6 SeLU SiLU Sigmoid SoftShrink Softmax Softmax2d SoftmaxExt Softmin Softsign Tanh Tanhshrink Threshold get_activation"
    ),
    "layer.conv": "Conv1d Conv1dTranspose Conv2d Conv2dTranspose Conv3d Conv3dTranspose",
    "layer.normalization": (
        "BatchNorm1d BatchNorm2d BatchNorm3d GroupNorm InstanceNorm1d InstanceNorm2d InstanceNorm3d LayerNorm LayerNormExt SyncBatchNorm"
    ),
    "layer.pooling": (
        "AdaptiveAvgPool1d AdaptiveAvgPool2d AdaptiveAvgPool3d AdaptiveMaxPool1d AdaptiveMaxPool2d AdaptiveMaxPool3d AvgPool1d AvgPool1dExt "
        "AvgPool2d AvgPool2dExt AvgPool3d AvgPool3dExt FractionalMaxPool2d FractionalMaxPool3d LPPool1d LPPool2d MaxPool1d MaxPool2d "
        "MaxPool2dExt MaxPool3d MaxUnpool1d MaxUnpool2d MaxUnpool3d"
    ),
    "layer.padding": (
        "ConstantPad1d ConstantPad2d ConstantPad3d ReflectionPad1d ReflectionPad2d ReflectionPad3d ReplicationPad1d ReplicationPad2d "
        "ReplicationPad3d ZeroPad2d"
    ),
    "layer.embedding": "Embedding EmbeddingExt EmbeddingLookup",
    "layer.image": "CentralCrop ImageGradients MSSSIM PSNR PixelShuffle PixelUnshuffle SSIM",
    "layer.rnn_cells": "GRUCell LSTMCell RNNCell",
    "layer.rnns": "GRU LSTM RNN",
    "layer.transformer": (
        "MultiheadAttention Transformer TransformerDecoder TransformerDecoderLayer TransformerEncoder TransformerEncoderLayer"
    ),
    "layer.math": "DiGamma IGamma LBeta LGamma LRN MatDet MatInverse Moments Range ReduceLogSumExp",
    "layer.combined": "BiDense ChannelShuffle Conv2dBnAct DenseBnAct TimeDistributed",
    "loss.loss": (
        "BCELoss BCEWithLogitsLoss CTCLoss CosineEmbeddingLoss CrossEntropyLoss DiceLoss FocalLoss GaussianNLLLoss HingeEmbeddingLoss HuberLoss "
        "KLDivLoss L1Loss L1LossExt LossBase MAELoss MSELoss MarginRankingLoss MultiClassDiceLoss MultiLabelSoftMarginLoss MultiMarginLoss "
        "MultilabelMarginLoss NLLLoss PoissonNLLLoss RMSELoss SampledSoftmaxLoss SmoothL1Loss SoftMarginLoss SoftmaxCrossEntropyWithLogits "
        "TripletMarginLoss TripletMarginWithDistanceLoss"
    ),
    "optim": (
        "ASGD AdaFactor AdaMax AdaSumByDeltaWeightWrapCell AdaSumByGradWrapCell Adadelta Adagrad Adam AdamOffload AdamWeightDecay FTRL LARS Lamb "
        "LazyAdam Momentum OptTFTWrapper Optimizer ProximalAdagrad RMSProp Rprop SGD thor"
    ),
    "dynamic_lr": (
        "cosine_decay_lr exponential_decay_lr inverse_decay_lr natural_exp_decay_lr piecewise_constant_lr polynomial_decay_lr warmup_lr"
    ),
    "learning_rate_schedule": (
        "CosineDecayLR ExponentialDecayLR InverseDecayLR LearningRateSchedule NaturalExpDecayLR PolynomialDecayLR WarmUpLR"
    ),
    "wrap": (
        "DistributedGradReducer DynamicLossScaleUpdateCell FixedLossScaleUpdateCell ForwardValueAndGrad GetNextSingleOp GradAccumulationCell "
        "MicroBatchInterleaved ParameterUpdate PipelineCell PipelineGradReducer TrainOneStepCell TrainOneStepWithLossScaleCell "
        "VirtualDatasetCellTriple WithEvalCell WithGradCell WithLossCell"
    ),
    "grad": "Jvp Vjp",
    "utils": "no_init_parameters",
}
_METRICS = (
    "Accuracy BleuScore ConfusionMatrix ConfusionMatrixMetric CosineSimilarity Dice F1 Fbeta HausdorffDistance Loss MAE MSE MeanSurfaceDistance "
    "Metric OcclusionSensitivity Perplexity Precision ROC Recall RootMeanSquareDistance Top1CategoricalAccuracy Top5CategoricalAccuracy "
    "TopKCategoricalAccuracy auc get_metric_fn get_metrics names rearrange_inputs"
)
_NAMES = {name: f"jumar.nn.{module}" for module, names in _PLACES.items() for name in names.split()}
_NAMES |= dict.fromkeys(_METRICS.split(), "jumar.train.metrics")
_ROOMS = ("layer", "loss", "optim", "wrap", "dynamic_lr", "learning_rate_schedule", "grad", "utils", "cell")
__all__ = ["Cell"]
__all__ += list(_NAMES)


def __getattr__(name: str) -> Any:
    """Finds a name in its file and keeps it."""
    if name in _ROOMS:
        return importlib.import_module(f"jumar.nn.{name}")
    module = _NAMES.get(name)
    if module is None:
        from jumar.base import nearest  # noqa: PLC0415  (only a misspelt name pays for it)

        hint = nearest(name, list(_NAMES))
        raise AttributeError(f"module 'mindspore.nn' has no attribute {name!r}{f'; {hint}' if hint else ''}")
    found = getattr(importlib.import_module(module), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, *_ROOMS})
