"""The stages of a compile, and the passes of each, in one table.

    capture -> optimized -> selected -> fused -> kernels -> program

In: a target.  Out: which passes run, in order, under which stage's name; `compile.py` runs them, `save.py` writes what each gives.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from jumar.base import config
from jumar.compiler.passes.canonicalize import Canonicalize
from jumar.compiler.passes.cut_batch import cut_batch_for
from jumar.compiler.passes.decompose import Decompose
from jumar.compiler.passes.fold import Fold
from jumar.compiler.passes.fold_scale import FoldScale
from jumar.compiler.passes.fuse import Fuse
from jumar.compiler.passes.layout import Layout
from jumar.compiler.passes.merge import Merge
from jumar.compiler.passes.quantize import QuantizedProducts
from jumar.compiler.passes.recognize import Recognize
from jumar.compiler.passes.recognize_dequantize import RecognizeDequantize
from jumar.compiler.passes.recompute import Recompute
from jumar.compiler.passes.signed_codes import SignedCodes
from jumar.compiler.passes.split import Split
from jumar.device import Target
from jumar.ir import Graph
from jumar.operators import Attention, schedules

CAPTURE, OPTIMIZED, SELECTED, FUSED, KERNELS, PROGRAM = "capture", "optimized", "selected", "fused", "kernels", "program"
STAGES = (CAPTURE, OPTIMIZED, SELECTED, FUSED, KERNELS, PROGRAM)


class Pass(Protocol):
    """A frozen dataclass whose fields are its options."""

    @property
    def name(self) -> str:
        """What golden files and the setting `skip_passes` call it."""
        ...

    def __call__(self, graph: Graph) -> Graph:
        """The same function, in other operators."""
        ...


@dataclass(frozen=True)
class Stage:
    """Passes that lead to the graph of that name."""

    name: str
    passes: tuple[Pass, ...]


def looks_up(target: Target) -> bool:
    """Whether the machine looks bytes up in a table of 256 in a few instructions."""
    return target.has("avx512vbmi") or target.architecture == "aarch64"


def device_independent() -> tuple[Pass, ...]:
    """What any device gains from, and codes as an Ascend NPU's cube has them: the passes before its own.

    Attention stays as it is written: GE makes no FlashAttention of it by itself, and no softmax of an exp that no maximum
    was taken off, which overflows on the device."""
    table: tuple[Pass, ...] = (
        Canonicalize(), Fold(dequantize=False), Merge(), Canonicalize(), QuantizedProducts(None), Fold(), Canonicalize(),
        Recognize(attention=False, unshifted=False), Canonicalize(), FoldScale(), Canonicalize(), Fold(), Merge(),
        SignedCodes(), RecognizeDequantize(), Canonicalize(), Fold(), Merge(),
    )  # fmt: skip
    return table


def stages(target: Target) -> tuple[Stage, ...]:
    """The stages that end in a graph, for a target, without the passes that the setting `skip_passes` names."""
    table = (
        Stage(OPTIMIZED, (
            Canonicalize(), Fold(dequantize=False), Merge(), Canonicalize(), QuantizedProducts(looks_up(target)), Fold(), Canonicalize(),
            Recognize(attention=Attention in schedules(target.name)),
            Canonicalize(), FoldScale(), Split(), Canonicalize(), Fold(), Merge(),
        )),
        Stage(SELECTED, (Decompose(target.name), Canonicalize(), Fold(), FoldScale(), Layout(), Canonicalize(), Fold(), Merge())),
        Stage(FUSED, (Recompute(), cut_batch_for(target), Fuse(target.name))),
    )  # fmt: skip
    skipped = {name.strip() for name in config("skip_passes").split(",")}
    return tuple(Stage(s.name, tuple(p for p in s.passes if p.name not in skipped)) for s in table)
