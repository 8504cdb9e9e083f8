"""From facts to findings: what is wrong with a run, most likely cause first.

In: Facts of one run.  Out: findings in words.  What takes a second run to know (a learning rate, a layer in float32) is in train_check.py.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from jumar.tools.training.facts import Column, Facts, mean

SURE, LIKELY, NOTE = "error", "warning", "note"
_RANK = {SURE: 0, LIKELY: 1, NOTE: 2}


@dataclass(frozen=True)
class Finding:
    """level: "error" (this breaks training), "warning" (this may), "note".   where: a column, layer or line.   way_out: what to do."""

    level: str
    topic: str
    what: str
    where: str = ""
    way_out: str = ""


def findings(facts: Facts) -> list[Finding]:
    """All findings of one run."""
    found = [*_data(facts), *_numbers(facts)]
    if facts.bad is None or facts.finite:  # what comes after an overflow follows from it
        found += [*_gradients(facts), *_units(facts)]
    found += _loss(facts)
    return sorted(found, key=lambda f: _RANK[f.level])


def _data(facts: Facts) -> Iterator[Finding]:
    for name, column in facts.columns.items():
        if column.bad:
            yield Finding(
                SURE,
                "data",
                f"holds {column.bad} elements that are NaN or infinite",
                f"column {name}",
                "clean the data, or filter such rows",
            )
        if column.count and column.least == column.most and column.samples > 1:
            yield Finding(
                LIKELY,
                "data",
                f"is {column.least:g} everywhere",
                f"column {name}",
                "a constant teaches nothing: is it read from the right place?",
            )
        elif not column.whole and max(abs(column.least), abs(column.most)) > 20 and column.count and not _narrow_ints(column):
            what = f"runs from {column.least:g} to {column.most:g} (mean {column.mean:.3g}, deviation {column.deviation:.3g})"
            yield Finding(
                LIKELY, "data", what, f"column {name}", "scale it to a mean near 0 and a deviation near 1 (pictures: Rescale, Normalize)"
            )
        if column.whole and column.count:
            yield from _labels(facts, column)


def _narrow_ints(column: Column) -> bool:
    """Token numbers and the like are no measurements."""
    return column.dtype.startswith(("int", "uint")) and column.dtype != "uint8"


def _labels(facts: Facts, column: Column) -> Iterator[Finding]:
    where = f"column {column.name}"
    if facts.classes and (column.most >= facts.classes or column.least < 0):
        what = f"labels run from {column.least:g} to {column.most:g}, the network has {facts.classes} outputs"
        yield Finding(SURE, "data", what, where, "labels are from 0 to the number of classes - 1")
    if column.batches > 2 and column.sorted_batches + column.constant_batches >= column.batches and column.least != column.most:
        yield Finding(LIKELY, "data", "labels come in order: each batch holds one class, or rising ones", where, "shuffle the dataset")
    elif facts.shuffled is False and column.batches > 2:
        yield Finding(NOTE, "data", "the dataset is not shuffled", where, "shuffle=True, or dataset.shuffle(buffer_size)")


def _numbers(facts: Facts) -> Iterator[Finding]:
    bad = facts.bad
    skipped = len(facts.losses) - facts.steps
    if bad is not None and (not facts.finite or skipped > max(2, facts.steps // 2)):
        where = f"{bad.place or bad.cell}{f'   in {bad.cell}' if bad.cell and bad.place else ''}"
        narrow = bad.dtype in ("float16", "f16")
        what = f"step {bad.step}, {bad.phase}: {bad.op} gives NaN or infinity in {bad.dtype} from inputs up to {bad.largest:.3g}"
        out = (
            "float16 ends at 65504: keep this layer in float32, or lower the loss scale"
            if narrow
            else "look at this operator's inputs: log or division of 0, exp of large numbers"
        )
        yield Finding(SURE, "overflow", what, where, out)
    if skipped > max(2, facts.steps // 2):
        what = f"{skipped} of {len(facts.losses)} steps overflow at loss scale {facts.scales[-1]:g} and change nothing"
        yield Finding(LIKELY, "overflow", what, "", "begin with a lower loss scale, or use a dynamic one")


def _gradients(facts: Facts) -> Iterator[Finding]:
    norms = {name: mean(layer.norms) for name, layer in facts.layers.items() if layer.norms}
    for name, layer in facts.layers.items():
        if layer.norms and not any(layer.norms):
            yield Finding(
                SURE,
                "gradients",
                "gradient is 0 in all steps",
                name,
                "the loss does not depend on it: detached, frozen, or behind dead units",
            )
        elif layer.norms and any(not math.isfinite(n) for n in layer.norms) and facts.bad is None:
            yield Finding(SURE, "gradients", "gradient is NaN or infinite", name)
    live = {n: v for n, v in norms.items() if v > 0 and math.isfinite(v)}
    if len(live) > 3:
        least, most = min(live, key=lambda n: live[n]), max(live, key=lambda n: live[n])
        if live[most] / live[least] > 1e5:
            what = (
                f"gradient norms differ by {live[most] / live[least]:.1g} times: {live[most]:.3g} of {most}, {live[least]:.3g} of {least}"
            )
            yield Finding(
                LIKELY, "gradients", what, least, "normalisation layers, residual connections or another initialisation even them out"
            )
    if live and mean(list(live.values())) > 1e3:
        yield Finding(
            LIKELY,
            "gradients",
            f"gradient norms are {mean(list(live.values())):.3g} on average",
            "",
            "clip gradients (ops.clip_by_global_norm)",
        )


def _units(facts: Facts) -> Iterator[Finding]:
    for name, dead in facts.relus.items():
        if dead > 0.5:
            what = f"{dead:.0%} of the units were 0 for every sample of {facts.steps} steps"
            yield Finding(
                SURE if dead > 0.95 else LIKELY,
                "dead units",
                what,
                name,
                "a lower learning rate, LeakyReLU, or biases that are not far below 0",
            )


def _loss(facts: Facts) -> Iterator[Finding]:
    if facts.error:
        yield Finding(SURE, "script", f"ended with {facts.error}")
    if not facts.steps and not facts.losses and not facts.error:
        yield Finding(SURE, "script", "ended without a step of an optimizer of jumar.nn")
    changes = [mean(layer.changes) for layer in facts.layers.values() if layer.changes]
    if changes and facts.steps > 2 and facts.finite and all(map(math.isfinite, changes)):
        typical = sorted(changes)[len(changes) // 2]
        if typical > 0.1:
            yield Finding(
                LIKELY,
                "learning rate",
                f"a step changes parameters by {typical:.1%} of their size",
                "",
                "about 0.1 % is usual: lower the learning rate",
            )
        elif max(changes) < 1e-6:
            yield Finding(
                LIKELY,
                "learning rate",
                f"a step changes parameters by {typical:.1g} of their size",
                "",
                "about 0.1 % is usual: raise the learning rate",
            )
    if facts.finite and facts.steps > 4 and not facts.falls:
        yield Finding(NOTE, "loss", f"does not fall in {facts.steps} steps: {facts.first:.4g} at first, {facts.last:.4g} at last")
