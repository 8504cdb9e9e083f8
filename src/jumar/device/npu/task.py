"""`Task`: one kernel on an Ascend NPU, as a profile of the device lists it, and `Prediction`, what the twin says of its time.

In: made by the compiler (a graph mapped onto CANN's operators) or read from a table of measured kernels (predict.py).
Out: read by time.py, which predicts, by timeline.py, which puts tasks in a row, and by the writers of profiles.
Nothing here knows a graph: a task is shapes, element types and formats.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from jumar.base import DType

# where a kernel runs, in the words of Ascend's profiles; HOST and DVPP are ours (a profile lists no kernel there)
CUBE, VECTOR, MIX_CUBE, MIX_VECTOR, AI_CPU, DVPP, HOST, COMMUNICATION = (
    "AI_CORE", "AI_VECTOR_CORE", "MIX_AIC", "MIX_AIV", "AI_CPU", "DVPP", "HOST", "COMMUNICATION",
)  # fmt: skip
CORES = (CUBE, VECTOR, MIX_CUBE, MIX_VECTOR, AI_CPU, DVPP, HOST, COMMUNICATION)


@dataclass(frozen=True)
class Operand:
    """One tensor that a kernel reads or writes.   shape: as stored, so [n, c1, h, w, c0] for NC1HWC0; an absent optional one has no dtype."""

    shape: tuple[int, ...]
    dtype: DType | None
    format: str = "ND"

    @property
    def size(self) -> int:
        """Elements; 0 of an absent one."""
        return math.prod(self.shape) if self.dtype else 0

    @property
    def nbytes(self) -> int:
        return -(-self.size * self.dtype.bits // 8) if self.dtype else 0


@dataclass(frozen=True)
class Task:
    """One kernel.   kind: CANN's operator type (`MatMulV2`); core: one of CORES, or empty where it is to be guessed.

    attrs: what the operator says beside its tensors (`transpose_b`, `strides`, `group_list`, `epilogue`).  fused: kinds of what was fused into it.
    label, place: names for the user: the node, and the line or ONNX node that it comes from.
    """

    kind: str
    inputs: tuple[Operand, ...]
    outputs: tuple[Operand, ...]
    attrs: Mapping[str, Any] = field(default_factory=dict)
    core: str = ""
    fused: tuple[str, ...] = ()
    label: str = ""
    place: str = ""

    @property
    def nbytes(self) -> int:
        """Bytes of all tensors, each once."""
        return sum(o.nbytes for o in (*self.inputs, *self.outputs))


@dataclass(frozen=True)
class Prediction:
    """The time of a task, in microseconds on the device.   low_us, high_us: an 80 % interval; bottleneck: one of BOTTLENECKS.

    pipes: microseconds that each pipe is busy (`cube`, `vector`, `mte2`, `mte3`, `scalar`, ...), `fixed` for the cost of any kernel.
    block_dim: cores it is cut over; occupancy: part of the cores' time that has work; flops: operations on the pipe that counts.
    evidence: what the figure stands on, `calibrated` or why the interval is wide.  moved_nbytes: read and written, of a table the rows that are fetched.
    """

    time_us: float
    low_us: float
    high_us: float
    bottleneck: str
    pipes: Mapping[str, float] = field(default_factory=dict)
    block_dim: int = 1
    occupancy: float = 1.0
    flops: float = 0.0
    evidence: str = "calibrated"
    moved_nbytes: float = 0.0


BOTTLENECKS = ("cube", "vector", "mte2", "mte3", "scalar", "launch", "ai cpu", "communication", "host", "dvpp")
