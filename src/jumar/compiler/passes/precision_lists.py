"""Which operators may compute in 16 bits under mixed precision: the white, the black and, for the rest, the gray list; and user's changes to them.

In: a JSON file as ATC's `--modify_mixlist` takes it.  Out: `MixLists` of CANN's operator types, read by precision.py.
CANN keeps a flag for each operator type and chip in its binary package, which we do not copy.  These lists follow what MindSpore publishes of
its automatic mixed precision (products and convolutions narrow; exponentials, logarithms, sums, norms and losses wide), under CANN's names.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jumar.base import CompileError
from jumar.device.npu import library

WHITE = frozenset({
    "MatMulV2", "BatchMatMulV2", "Conv2D", "DepthwiseConv2D", "Conv3D", "Conv2DTranspose", "Conv3DTranspose", "Conv2DBackpropInput",
    "Conv2DBackpropFilter", "DepthwiseConv2DBackpropInput", "DepthwiseConv2DBackpropFilter", "Conv3DBackpropInput", "Conv3DBackpropFilter",
    "FlashAttentionScore", "FlashAttentionScoreGrad", "DynamicRNN", "DynamicRNNGrad", "DynamicGRUV2", "DynamicGRUV2Grad", "DeformableConv2d",
    "PRelu",
})  # fmt: skip
BLACK = frozenset({
    "Pow", "Acos", "Asin", "Cosh", "Exp", "Expm1", "Log", "Log1p", "Reciprocal", "Rsqrt", "Sinh", "Tan", "SoftplusV2", "Erf", "LayerNorm",
    "LayerNormV3", "RmsNorm", "GroupNorm", "InstanceNorm", "BNInfer", "BatchNorm", "BatchNormGrad", "BatchNormV3", "ReduceSum", "ReduceMean", "ReduceProd",
    "Cumsum", "Cumprod", "LogSoftmaxV2", "CTCLossV2", "LpNormV2", "LRN", "LayerNormGrad", "RmsNormGrad", "LogSoftmaxGrad",
})  # fmt: skip


@dataclass(frozen=True)
class MixLists:
    """Operator types by list; whatever is in neither is gray: it follows the operator before it."""

    white: frozenset[str] = WHITE
    black: frozenset[str] = BLACK

    def of(self, *names: str) -> str:
        """`white`, `black` or `gray`: the list that one of the names of an operator stands in, black first."""
        keys = {library.plain(n) for n in names if n}
        if keys & {library.plain(n) for n in self.black}:
            return "black"
        return "white" if keys & {library.plain(n) for n in self.white} else "gray"


def read_mixlist(path: str | Path, lists: MixLists = MixLists()) -> MixLists:
    """The lists as a file of `--modify_mixlist` changes them."""
    path = Path(path)
    try:
        raw = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise _wrong(path, f"file must be readable, got {error.strerror}") from error
    except json.JSONDecodeError as error:
        raise _wrong(path, f"file must be JSON, got {error.msg} in line {error.lineno}") from error
    return change(lists, raw, path)


def change(lists: MixLists, raw: Any, path: Path) -> MixLists:
    """The lists after `to-add` and `to-remove` of each; what is added to one leaves the others."""
    if not isinstance(raw, dict) or not raw.keys() <= {"black-list", "white-list", "gray-list"}:
        raise _wrong(path, f"lists must be black-list, white-list and gray-list, got {', '.join(raw) if isinstance(raw, dict) else raw!r}")
    added = {name: _names(path, name, part, "to-add") for name, part in raw.items()}
    removed = {name: _names(path, name, part, "to-remove") for name, part in raw.items()}
    seen: dict[str, str] = {}
    for name, ops in added.items():
        for op in sorted(ops):
            if (other := seen.setdefault(library.plain(op), name)) != name:
                raise _wrong(path, f"an operator must be added to one list, got {op} in {other} and {name}")
    white, black = set(lists.white), set(lists.black)
    for name, kept in (("white-list", white), ("black-list", black)):
        gone = removed.get(name, frozenset()).union(*(ops for other, ops in added.items() if other != name))
        kept -= {k for k in kept if library.plain(k) in {library.plain(g) for g in gone}}
        kept |= added.get(name, frozenset())
    return MixLists(frozenset(white), frozenset(black))


def _names(path: Path, name: str, part: Any, key: str) -> frozenset[str]:
    if not isinstance(part, dict) or not part.keys() <= {"to-add", "to-remove"}:
        raise _wrong(path, f"{name} must hold to-add and to-remove, got {part!r}")
    ops = part.get(key, [])
    if not isinstance(ops, list) or not all(isinstance(o, str) for o in ops):
        raise _wrong(path, f"{key} of {name} must be a list of operator types, got {ops!r}")
    return frozenset(ops)


def _wrong(path: Path, what: str) -> CompileError:
    return CompileError(
        f"{path.name}: {what}", code="npu-precision",
        hint='the form is {"black-list": {"to-add": ["Exp"], "to-remove": []}, "white-list": {...}, "gray-list": {...}}',
    )  # fmt: skip
