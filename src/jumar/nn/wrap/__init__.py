"""Cells around networks for training and evaluation."""

from jumar.nn.wrap.cell_wrapper import (
    ForwardValueAndGrad,
    GetNextSingleOp,
    GradAccumulationCell,
    MicroBatchInterleaved,
    ParameterUpdate,
    PipelineCell,
    TrainOneStepCell,
    VirtualDatasetCellTriple,
    WithEvalCell,
    WithGradCell,
    WithLossCell,
)
from jumar.nn.wrap.grad_reducer import DistributedGradReducer, PipelineGradReducer
from jumar.nn.wrap.loss_scale import DynamicLossScaleUpdateCell, FixedLossScaleUpdateCell, TrainOneStepWithLossScaleCell

__all__ = [
    "DistributedGradReducer", "DynamicLossScaleUpdateCell", "FixedLossScaleUpdateCell", "ForwardValueAndGrad", "GetNextSingleOp",
    "GradAccumulationCell", "MicroBatchInterleaved", "ParameterUpdate", "PipelineCell", "PipelineGradReducer", "TrainOneStepCell",
    "TrainOneStepWithLossScaleCell", "VirtualDatasetCellTriple", "WithEvalCell", "WithGradCell", "WithLossCell",
]  # fmt: skip
