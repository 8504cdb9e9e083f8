"""The twin of an Ascend NPU: chips as data, what a kernel is, and how long it takes there.

In: facts with their sources (chips/, constants).  Out: `Chip`, `Task`, `Prediction`.  It knows kernels and bytes, no graph: the compiler makes tasks.
"""

from jumar.device.npu.chip import DERIVED, DOCUMENTED, MEASURED, Chip, Figure, chips, find_chip
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
    "MEASURED",
    "MIX_CUBE",
    "MIX_VECTOR",
    "VECTOR",
    "Chip",
    "Figure",
    "Operand",
    "Prediction",
    "Task",
    "chips",
    "find_chip",
]
