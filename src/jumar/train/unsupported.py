"""Names of `mindspore.train` that Jumar refuses, each with what to use instead.

In: calls.  Out: an error that says why and what works.  A name that is missing would only be an ImportError; this one helps.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

from jumar.train.errors import UnsupportedError

_MANY = "Jumar trains on one device; checkpoints of one device load with load_checkpoint"
_INSTEAD = {
    "load": "MindIR files are graphs of MindSpore's own compiler; load weights with load_checkpoint, or an ONNX model with jumar.load",
    "export": "save weights with save_checkpoint; Jumar compiles the network itself",
    "save_mindir": "save weights with save_checkpoint",
    "export_split_mindir": "save weights with save_checkpoint",
    "load_mindir": "MindIR files are graphs of MindSpore's own compiler; load weights with load_checkpoint, or an ONNX model with jumar.load",
    "get_ckpt_path_with_strategy": _MANY, "build_searched_strategy": _MANY, "merge_sliced_parameter": _MANY,
    "load_distributed_checkpoint": _MANY, "restore_group_info_list": _MANY,
    "ConvertNetUtils": "second-order training (THOR) is not there; train with the optimisers of nn",
    "ConvertModelUtils": "second-order training (THOR) is not there; train with the optimisers of nn",
    "SummaryLandscape": "it needs MindInsight, which ended with MindSpore 2.3",
    "FlopsUtilizationCollector": "`jumar run --explain` tells time and memory; operations of a training step are not counted yet",
    "TrainFaultTolerance": "use jumar.train.Resume, which goes on after a crash with the same bits",
    "OcclusionSensitivity": "evaluate the network on the picture with parts covered, in a loop of your own",
}  # fmt: skip


def refuser(name: str) -> Callable[..., NoReturn]:
    """A function of that name that says what to use instead."""

    def refuse(*arguments: Any, **options: Any) -> NoReturn:
        raise UnsupportedError(f"{name}: not supported", hint=_INSTEAD[name], code="train-unsupported")

    refuse.__name__ = refuse.__qualname__ = name
    refuse.__doc__ = f"Not supported: {_INSTEAD[name]}."
    return refuse
