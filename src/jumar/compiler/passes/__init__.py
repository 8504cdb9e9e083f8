"""Passes: each takes a graph and gives a graph that computes the same.   `PASSES` finds one by its name.

They are imported when they are first asked for: who compiles for this CPU needs none of those for an NPU.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from jumar.compiler.passes.canonicalize import Canonicalize
    from jumar.compiler.passes.coverage import Coverage, coverage
    from jumar.compiler.passes.cut_batch import CutBatch
    from jumar.compiler.passes.decompose import Decompose
    from jumar.compiler.passes.fold import Fold
    from jumar.compiler.passes.fold_scale import FoldScale
    from jumar.compiler.passes.fuse import Fuse
    from jumar.compiler.passes.layout import Layout
    from jumar.compiler.passes.merge import Merge
    from jumar.compiler.passes.precision import SetPrecision
    from jumar.compiler.passes.quantize import QuantizedProducts
    from jumar.compiler.passes.recognize import Recognize
    from jumar.compiler.passes.recognize_dequantize import RecognizeDequantize
    from jumar.compiler.passes.recognize_gradients import RecognizeGradients
    from jumar.compiler.passes.recompute import Recompute
    from jumar.compiler.passes.select import Select
    from jumar.compiler.passes.signed_codes import SignedCodes
    from jumar.compiler.passes.split import Split

    PASSES: dict[str, Callable[..., Any]]

_PASSES = {  # file -> the pass in it
    "canonicalize": "Canonicalize", "cut_batch": "CutBatch", "decompose": "Decompose", "fold": "Fold", "fold_scale": "FoldScale", "fuse": "Fuse",
    "layout": "Layout", "merge": "Merge", "quantize": "QuantizedProducts", "recognize": "Recognize", "recognize_dequantize": "RecognizeDequantize",
    "recognize_gradients": "RecognizeGradients", "recompute": "Recompute", "select": "Select", "precision": "SetPrecision",
    "signed_codes": "SignedCodes", "split": "Split",
}  # fmt: skip
_PLACES = {name: file for file, name in _PASSES.items()} | dict.fromkeys(("Coverage", "coverage"), "coverage")

__all__ = [
    "PASSES", "Canonicalize", "Coverage", "CutBatch", "Decompose", "Fold", "FoldScale", "Fuse", "Layout", "Merge", "QuantizedProducts", "Recognize",
    "RecognizeDequantize", "RecognizeGradients", "Recompute", "Select", "SetPrecision", "SignedCodes", "Split", "coverage",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    """Finds a name of the face and keeps it."""
    if name == "PASSES":
        found: Any = {p.name: p for p in map(__getattr__, _PASSES.values())}
    elif name in _PLACES:
        found = getattr(importlib.import_module(f"{__name__}.{_PLACES[name]}"), name)
    else:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = found
    return found
