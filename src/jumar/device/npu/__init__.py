"""The twin of an Ascend NPU: chips as data, what a kernel is, and how long it takes there.

In: facts with their sources (chips/, constants).  Out: `Chip`, `Task`, `Prediction`.  It knows kernels and bytes, no graph: the compiler makes tasks.
"""

from jumar.device.npu.arithmetic import Arithmetic, arithmetic, hf32, limits, rounded
from jumar.device.npu.chip import DERIVED, DOCUMENTED, MEASURED, Chip, Figure, chips, find_chip
from jumar.device.npu.communication import collective, transfers
from jumar.device.npu.task import (
    AI_CPU,
    BOTTLENECKS,
    COMMUNICATION,
    CORES,
    CUBE,
    DVPP,
    HOST,
    MIX_CUBE,
    MIX_VECTOR,
    VECTOR,
    Operand,
    Prediction,
    Task,
)
from jumar.device.npu.time import predict
from jumar.device.npu.timeline import HOST_STREAM, Span, Timeline, timeline

__all__ = [
    "AI_CPU",
    "BOTTLENECKS",
    "COMMUNICATION",
    "CORES",
    "CUBE",
    "DERIVED",
    "DOCUMENTED",
    "DVPP",
    "HOST",
    "HOST_STREAM",
    "MEASURED",
    "MIX_CUBE",
    "MIX_VECTOR",
    "VECTOR",
    "Arithmetic",
    "Chip",
    "Figure",
    "Operand",
    "Prediction",
    "Span",
    "Task",
    "Timeline",
    "arithmetic",
    "chips",
    "collective",
    "find_chip",
    "hf32",
    "limits",
    "predict",
    "rounded",
    "timeline",
    "transfers",
]
