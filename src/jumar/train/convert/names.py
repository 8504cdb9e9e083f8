"""Weights of other frameworks under MindSpore's names.

In: tensors by PyTorch's names, and the network they are for, if there is one.  Out: arrays by MindSpore's names, and what became of each.
With a network every name and shape is checked against it.  Without one, names follow from the tensors themselves: who has a running mean is a BatchNorm, a
vector with a bias of the same length is a LayerNorm or GroupNorm, a bare matrix of an "emb..." is an Embedding; such guesses are marked.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from jumar.base import Array
from jumar.frontend import Parameter, dtype

_DROPPED = ("num_batches_tracked",)
_STATS = {"running_mean": "moving_mean", "running_var": "moving_variance"}
_NORM = {"weight": "gamma", "bias": "beta"}


class Source(Protocol):
    """A tensor in a file."""

    @property
    def shape(self) -> tuple[int, ...]: ...

    def read(self) -> Array: ...


@dataclass(frozen=True)
class Line:
    """What became of one tensor.   target: its name now, empty if it is left out.   note: why, or what was guessed."""

    source: str
    target: str
    shape: tuple[int, ...]
    note: str = ""


def without_prefix(names: Sequence[str]) -> str:
    """What all names begin with because the network was wrapped: `module.`, `_orig_mod.`"""
    for prefix in ("module.", "_orig_mod."):
        if names and all(n.startswith(prefix) for n in names):
            return prefix + without_prefix([n[len(prefix) :] for n in names])
    return ""


def renamed(tensors: Mapping[str, Source]) -> dict[str, Line]:
    """MindSpore's names, guessed from the tensors alone, by the old name."""
    prefix = without_prefix(list(tensors))
    shapes = {n[len(prefix) :]: tuple(t.shape) for n, t in tensors.items()}
    found = {}
    for name, shape in shapes.items():
        layer, _, last = name.rpartition(".")
        dot = f"{layer}." if layer else ""
        note = ""
        if last in _DROPPED:
            found[prefix + name] = Line(prefix + name, "", shape, "not used by MindSpore")
            continue
        if last in _STATS:
            last = _STATS[last]
        elif last in _NORM and f"{dot}running_mean" in shapes:
            last = _NORM[last]
        elif last in _NORM and len(shape) == 1 and shapes.get(f"{dot}weight") == shape == shapes.get(f"{dot}bias"):
            last, note = _NORM[last], "taken for a normalisation"
        elif last == "weight" and len(shape) == 2 and f"{dot}bias" not in shapes and "emb" in layer.rpartition(".")[2].lower():
            last, note = "embedding_table", "taken for an embedding"
        found[prefix + name] = Line(prefix + name, dot + last, shape, note)
    return found


def candidates(target: str) -> list[str]:
    """Names that PyTorch may have for a parameter of MindSpore."""
    layer, _, last = target.rpartition(".")
    dot = f"{layer}." if layer else ""
    others = {
        "gamma": ["weight"], "beta": ["bias"], "moving_mean": ["running_mean"], "moving_variance": ["running_var"], "embedding_table": ["weight"],
        "w": ["weight"],
    }.get(last, [])  # fmt: skip
    return [target, *(dot + o for o in others)]


def matched(tensors: Mapping[str, Source], params: Sequence[Parameter]) -> tuple[dict[str, Line], list[str]]:
    """Lines by the old name, for a network, and the parameters that found nothing."""
    prefix = without_prefix(list(tensors))
    left = {n[len(prefix) :]: n for n in tensors}
    found: dict[str, Line] = {}
    missing = []
    for param in params:
        name = next((c for c in candidates(param.name) if c in left), None)
        if name is None:
            missing.append(param.name)
            continue
        full = left.pop(name)
        mine, theirs = tuple(param.shape), tuple(tensors[full].shape)
        if mine == theirs:
            found[full] = Line(full, param.name, theirs)
        elif [d for d in mine if d != 1] == [d for d in theirs if d != 1]:
            found[full] = Line(full, param.name, mine, f"reshaped from {list(theirs)}")
        else:
            found[full] = Line(full, "", theirs, f"shape must be {list(mine)} for {param.name}")
            missing.append(param.name)
    for name, full in left.items():
        why = "not used by MindSpore" if name.rpartition(".")[2] in _DROPPED else "the network has no such parameter"
        found[full] = Line(full, "", tuple(tensors[full].shape), why)
    return found, missing


def values(tensors: Mapping[str, Source], lines: Mapping[str, Line]) -> dict[str, Array]:
    """Arrays by new names; element types that MindSpore's checkpoints lack are kept where they can be."""
    found = {}
    for name, line in lines.items():
        if line.target:
            array = tensors[name].read()
            dtype.of_numpy(array.dtype)
            found[line.target] = np.ascontiguousarray(array.reshape(line.shape))
    return found
