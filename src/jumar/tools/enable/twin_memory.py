"""Memory of the device, as facts: what a model takes of a chip, what would make it fit, and what a training step would take.

In: forecasts of a model's pieces.  Out: `DeviceMemoryFact`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace

from jumar.base import ToolError
from jumar.compiler import DeviceMemory, Forecast, Training, Verdict, batch_of, device_memory, fit
from jumar.ir import Constant
from jumar.tools.enable.twin_facts import DeviceMemoryFact, PartFact
from jumar.tools.enable.units import nbytes_text, plural

LEAST_SPARED = 0.01  # of the values' memory: below, an option changes nothing
EXPORTED = (
    "of the graph as it was exported: a training graph keeps what an export for inference takes out or folds into weights (batch norms, dropout), "
    "and their statistics and activations come on top"
)
STANDING = ("weights", "weights and state")  # what every piece of a model keeps on the device


def memory_fact(found: Sequence[Forecast]) -> DeviceMemoryFact:
    """Weights of all pieces stand together; of the rest the piece that needs most counts, since they run one after the other."""
    largest = max(found, key=lambda f: f.memory.needed_nbytes)
    # only graph mode has a plan whose size at other batches is known, and nothing is in proportion to a batch of none
    planned = largest.memory.history is None and batch_of(largest.captured) > 0
    verdict = fit(largest.captured, largest.chip, framework=largest.options.framework, memory=largest.memory) if planned else None
    standing = Counter[str]()
    for f in found:
        standing.update({p.name: p.nbytes for p in f.memory.parts if p.name in STANDING})
    own = {p.name: p.nbytes for p in largest.memory.parts} | dict(standing)
    return _device_memory(largest.memory, own, verdict, all(f.memory.fits for f in found))


def training_fact(found: Sequence[Forecast], training: Training) -> DeviceMemoryFact:
    """Memory of a training step of the model, its float constants being what is trained."""
    largest = max(found, key=lambda f: f.memory.needed_nbytes)
    if batch_of(largest.captured) < 1:
        raise ToolError(
            "--train: the model must have a batch of at least 1, got 0",
            hint="--dim NAME=NUMBER, or --input NAME=SHAPE",
            code="twin-options",
        )
    divided = _divided(found, training)
    verdict = fit(largest.captured, largest.chip, training)
    fact = _device_memory(verdict.memory, {p.name: p.nbytes for p in verdict.memory.parts}, verdict, verdict.fits)
    return replace(fact, notes=(EXPORTED, *divided, *_idle(largest, training, verdict.memory), *fact.notes))


def _divided(found: Sequence[Forecast], training: Training) -> tuple[str, ...]:
    """What tensor-parallel devices cannot share; an error where that is everything."""
    weights = [n for f in found for n in f.captured.nodes if isinstance(n.op, Constant) and n.dtype.is_float and n.rank >= 2]
    whole = [n for n in weights if all(d % training.tensor for d in n.shape)]
    if training.tensor < 2 or not whole:
        return ()
    if len(whole) == len(weights):
        raise ToolError(
            f"--train: tensor must divide a dimension of the weights, got {training.tensor}, which divides none of {plural(len(weights), 'weight')}",
            hint=f"a power of two, say; the largest weight is {max(weights, key=lambda n: n.type.nbytes).type}",
            code="twin-options",
        )
    return (
        f"tensor={training.tensor} divides no dimension of {len(whole)} of the {plural(len(weights), 'weight')}: they are counted as if it did",
    )


def _idle(found: Forecast, training: Training, memory: DeviceMemory) -> tuple[str, ...]:
    """Options that should spare memory and do not."""
    notes = []
    given = {f"recompute={training.recompute}": replace(training, recompute=0), "cheap": replace(training, cheap=False)}
    for said, other in given.items():
        if other != training:
            without = device_memory((), found.captured, found.chip, training=other).arena_nbytes
            if without * (1 - LEAST_SPARED) <= memory.arena_nbytes:
                sizes = f"values take {nbytes_text(memory.arena_nbytes)} with it and {nbytes_text(without)} without"
                notes.append(f"{said} spares nothing worth a word here: {sizes}")
    return tuple(notes)


def _device_memory(memory: DeviceMemory, own: Mapping[str, int], verdict: Verdict | None, fits: bool) -> DeviceMemoryFact:
    """own: bytes of each part."""
    peak = sum(own.values())
    reserved = tuple(PartFact(f"not usable: {p.name}", p.nbytes) for p in memory.reserved)
    fits = fits and peak <= memory.usable_nbytes
    said = f"{'fits' if fits else 'does not fit'}: {nbytes_text(peak)} of {nbytes_text(memory.usable_nbytes)} usable"
    ways = verdict.ways if verdict else ()
    remedies = tuple(
        f"{w.what}: batch {w.batch}, {nbytes_text(w.needed_nbytes)}; {w.cost}{f'; {w.command}' if w.command else ''}" for w in ways
    )
    return DeviceMemoryFact(
        fits, said, peak, memory.capacity_nbytes, memory.usable_nbytes, (*(PartFact(name, n) for name, n in own.items() if n), *reserved),
        memory.unshared_nbytes, memory.arena_nbytes, memory.bound_nbytes, memory.live_nbytes,
        tuple(PartFact(f"{h.label}{f'  {h.place}' if h.place else ''}", h.nbytes) for h in memory.at_peak), verdict.largest_batch if verdict else 0,
        remedies, (*memory.notes, *(verdict.notes if verdict else ())), verdict.largest_text if verdict and verdict.largest_batch else "",
    )  # fmt: skip
