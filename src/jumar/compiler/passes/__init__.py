"""Passes: each takes a graph and gives a graph that computes the same.   `PASSES` finds one by its name."""

from collections.abc import Callable
from typing import Any

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

PASSES: dict[str, Callable[..., Any]] = {
    p.name: p
    for p in (
        Canonicalize,
        CutBatch,
        Decompose,
        Fold,
        FoldScale,
        Fuse,
        Layout,
        Merge,
        QuantizedProducts,
        Recognize,
        RecognizeDequantize,
        RecognizeGradients,
        Recompute,
        Select,
        SetPrecision,
        SignedCodes,
        Split,
    )
}

__all__ = [
    "PASSES",
    "Canonicalize",
    "Coverage",
    "CutBatch",
    "Decompose",
    "Fold",
    "FoldScale",
    "Fuse",
    "Layout",
    "Merge",
    "QuantizedProducts",
    "Recognize",
    "RecognizeDequantize",
    "RecognizeGradients",
    "Recompute",
    "Select",
    "SetPrecision",
    "SignedCodes",
    "Split",
    "coverage",
]
