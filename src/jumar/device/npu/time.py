"""The time of a kernel: counts (work.py), the chip and a few fitted constants (constants.toml) to microseconds, pipes and an interval.

In: a `Task` and a `Chip`.  Out: a `Prediction`, read by timeline.py, advice and predict.py.  A pure function: the same task gives the same figure.
The shape of the model, which works on one kernel or on columns of many (bench and fit use the latter):

    time = launch + cost a block + waits between stages + pipes, of which the longest counts whole and the others by what the tiles leave open
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from jumar.base import read_toml
from jumar.device.npu import kinds
from jumar.device.npu.chip import Chip
from jumar.device.npu.communication import collective
from jumar.device.npu.counts import Work, ints
from jumar.device.npu.task import AI_CPU, COMMUNICATION, CUBE, DVPP, HOST, MIX_CUBE, MIX_VECTOR, VECTOR, Prediction, Task
from jumar.device.npu.work import work

Columns = Mapping[str, Any]  # floats, or arrays of one length


def features(w: Work, chip: Chip, generation: Generation, resident_nbytes: float = math.nan) -> dict[str, float]:
    """What the formula takes of one kernel, as floats by name."""
    cube = w.core in (CUBE, MIX_CUBE)
    clock = chip.clock_hz if cube else chip.vector_clock_hz
    return {
        "vector": float(w.core == VECTOR),
        "mix_vector": float(w.core == MIX_VECTOR),
        "cube": float(w.core == CUBE),
        "mix_cube": float(w.core == MIX_CUBE),
        "slow": float(w.core in (AI_CPU, HOST, DVPP)),
        "dsa": float(w.core == "DSA"),
        "collective": float(w.core == COMMUNICATION or w.kind.family == kinds.COMMUNICATE),
        "meta": float(w.kind.family == kinds.META),
        "conv": float(w.kind.family == kinds.CONV),
        "started": float(w.started or w.blocks),
        "busy": float(w.busy or w.blocks),
        "cores": float(w.cores),
        "read": w.read,
        "written": w.written,
        "again": w.again,
        "footprint": w.footprint,
        "resident": resident_nbytes,
        "loops": w.loops,
        "vector_us": (w.vector_cycles - w.function_cycles) / chip.vector_clock_hz * 1e6,
        "function_us": w.function_cycles / chip.vector_clock_hz * 1e6 * generation.vector,
        "cube_us": w.cube_cycles / chip.clock_hz * 1e6 * generation.cube,
        "shuffle_us": w.shuffled / clock * 1e6,
        "sorted_us": w.sorted / clock * 1e6,
        "packets": w.packets,
        "rows": w.rows,
        "items": w.items,
        "scalar_us": w.scalar_cycles / clock * 1e6,
        "flat": w.flat,
        "stages": w.stages,
        "tiles": w.tiles,
        "ragged": w.ragged,
        "l2": float(chip.l2_nbytes),
        "memory_rate": chip.memory_bytes_per_s / 1e6 * generation.memory,
        "l2_rate": chip.l2_bytes_per_s / 1e6 * generation.memory,
        "link_rate": max(chip.links.values(), default=2.5e10) / 1e6,
        "fixed": generation.launch,
        "split": float(chip.split),
        "port_rate": chip.rates.get("ddr", 32.0) * chip.cube_cores * chip.clock_hz / 1e6 * generation.memory,
    }


def hits(f: Columns, c: Columns) -> Any:
    """Share of the bytes that is found in L2: what the kernel before left there, less of it the more of L2 the operands fill."""
    guessed = np.where(f["flat"] > 0, c["hit_flat"], c["hit"]) / (1 + (f["footprint"] / (c["hit_size"] * f["l2"])) ** 2)
    known = np.clip(f["resident"] / np.maximum(f["read"], 1.0), 0.0, 1.0)  # of what is read
    return np.where(np.isnan(f["resident"]), guessed, known)


def pipes(f: Columns, c: Columns) -> dict[str, Any]:
    """Microseconds that each pipe of the busiest core is at work, and the parts of the time that no pipe hides."""
    cube = f["cube"] + f["mix_cube"]
    hit = hits(f, c)
    part = f["busy"] / f["cores"]
    # a few cores alone get more than their share of a rate, never more than their own port takes
    own_port = cube * f["split"] > 0  # where one core holds both units, both load through one port
    l2_efficiency = np.where(own_port, c["cube_l2"], c["l2_efficiency"])
    rate = f["memory_rate"] * c["memory_efficiency"]
    rate = np.where(own_port, np.minimum(rate, f["port_rate"] * c["cube_port"]), rate)
    memory = rate * np.minimum(1.0, part * np.where(cube > 0, c["cube_reach"], c["memory_reach"]))
    near = f["l2_rate"] * l2_efficiency * np.minimum(1.0, part * np.where(cube > 0, c["cube_reach"], c["l2_reach"]))
    slower = np.where(cube > 0, 1.0 + c["ragged_cube"] * f["ragged"], 1.0)
    lost = np.minimum(1.0, c["again_miss"] * f["footprint"] / f["l2"])
    from_memory = (f["read"] * (1 - hit) + f["again"] * lost) * slower / memory
    # what is written stays in L2 until others need the room
    kept = np.where(f["flat"] > 0, c["hit_flat"], c["hit_written"]) / (1 + (f["footprint"] / (c["hit_size"] * f["l2"])) ** 2)
    to_memory = f["written"] * (1 - kept) / memory
    packets = f["packets"] * c["packet_us"]
    mte2 = np.maximum((f["read"] + f["again"]) * slower / near + packets, from_memory)
    mte3 = np.maximum(f["written"] / near * c["write_weight"] + 0.5 * packets, to_memory)
    memory_us = from_memory + to_memory
    vector = (
        (f["vector_us"] + f["function_us"]) * c["vector_cycles"]
        + f["shuffle_us"] * c["shuffle_cycles"]
        + f["sorted_us"] * c["sort_cycles"]
        + f["rows"] * c["row_us"]
    )
    macs = f["cube_us"] * np.where(f["conv"] > 0, c["conv_cycles"], c["cube_cycles"]) + f["tiles"] * c["tile_us"]
    scalar = f["items"] * c["item_us"] + f["scalar_us"] * c["scalar_cycles"]
    longest = np.maximum.reduce([macs, vector, mte2, mte3, memory_us, scalar])
    total = macs + vector + np.maximum(mte2 + mte3, memory_us) + scalar
    # pipes that are busy for about as long get into each other's way: a power mean lies above the longest
    ways = np.maximum(longest, 1e-9)
    power: Any = np.where(cube > 0, c["cube_blur"], c["blur"])
    summed: Any = sum((pipe / ways) ** power for pipe in (macs, vector, mte2, mte3, scalar))
    together = ways * summed ** (1 / power)
    longest = np.maximum(together, memory_us)
    loops = 1 + (f["loops"] - 1) * c["overlap"]
    busy = longest + (total - longest) / loops
    launch = (
        f["vector"] * c["launch_vector_us"]
        + f["mix_vector"] * c["launch_mix_vector_us"]
        + f["cube"] * c["launch_cube_us"]
        + f["mix_cube"] * c["launch_mix_cube_us"]
    )
    waits = np.maximum(0.0, f["stages"] - 1) * c["stage_us"] * (1 + c["ragged_vector"] * f["ragged"] * (1 - cube))
    # a kernel of more parts has more instructions to fetch on each core
    cores = f["started"] * (c["block_us"] + c["block_stage_us"] * np.maximum(0.0, f["stages"] - 1) * (1 - cube))
    fixed = (launch + cores + waits) * f["fixed"]
    on_core = fixed + busy
    slow = c["ai_cpu_us"] + f["items"] * c["ai_cpu_item_us"]
    dsa = c["launch_vector_us"] + f["items"] * c["dsa_item_us"]
    collective = c["collective_us"] + f["written"] / f["link_rate"] / 0.7
    time = np.where(f["slow"] > 0, slow, np.where(f["dsa"] > 0, dsa, np.where(f["collective"] > 0, collective, on_core)))
    time = np.where(f["meta"] > 0, 0.0, time)
    return {
        "time": time,
        "cube": macs,
        "vector": vector,
        "mte2": mte2,
        "mte3": mte3,
        "memory": memory_us,
        "scalar": scalar,
        "launch": fixed,
    }


# ---- constants and corrections


@dataclass(frozen=True)
class Spread:
    """What is left between formula and measurement in one family.   factor: median of measured / formula over its kinds.

    low, high: measured / predicted at 10 and 90 %, of kinds that were measured; low_new, high_new: of kinds that were not.
    nbytes, flops: the largest kernel that was measured; dtypes: element types of the first operand that were, where the cube is used; empty: any.
    """

    factor: float = 1.0
    low: float = 0.55
    high: float = 1.9
    low_new: float = 0.4
    high_new: float = 2.6
    nbytes: float = 0.0
    flops: float = 0.0
    dtypes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Generation:
    """How an architecture differs from the one that was measured.   Factors: launch and waits (times), rates of memory and L2, cycles of the cube, and of
    the vector unit in exponentials, divisions and roots.

    wider: power by which intervals are widened, as far as the generation's own measurements leave it uncertain; stands_on: which those are.
    """

    launch: float = 1.0
    memory: float = 1.0
    cube: float = 1.0
    vector: float = 1.0
    wider: float = 2.6
    stands_on: str = "no kernel of this chip's generation was measured, nor a whole model"


@dataclass(frozen=True)
class Calibration:
    """constants.toml.   constants: of the formula; families, kinds: measured / formula, kinds shrunk towards their family by rows / (rows + few)."""

    constants: Mapping[str, float]
    families: Mapping[str, Spread] = field(default_factory=dict)
    kinds: Mapping[str, tuple[float, int]] = field(default_factory=dict)
    generations: Mapping[str, Generation] = field(default_factory=dict)


@cache
def calibration() -> Calibration:
    """What constants.toml holds.   Written by bench/fit_twin.py."""
    table = read_toml(Path(__file__).with_name("constants.toml"))
    return Calibration(
        {name: float(entry["value"]) for name, entry in table["constants"].items()},
        {name: Spread(**(entry | {"dtypes": tuple(entry.get("dtypes", ()))})) for name, entry in table["families"].items()},
        {name: (float(entry["factor"]), int(entry["rows"])) for name, entry in table["kinds"].items()},
        {name: Generation(**entry) for name, entry in table["generations"].items()},
    )


def factor_of(w: Work, given: Calibration) -> float:
    """Measured / formula for a kind, of its family where the kind was not measured."""
    known = given.kinds.get(w.kind.name)
    return known[0] if known else given.families.get(w.kind.family, Spread()).factor


# ---- the face


def predict(task: Task, chip: Chip, *, resident_nbytes: float | None = None) -> Prediction:
    """The time of a kernel on a chip.   resident_nbytes: bytes of its operands that lie in L2 when it starts, where that is known.

    >>> from jumar.base import f16
    >>> from jumar.device.npu import Operand, Task, find_chip
    >>> x, w, y = Operand((4096, 1024), f16), Operand((1024, 4096), f16), Operand((4096, 4096), f16)
    >>> p = predict(Task("MatMulV3", (x, w), (y,)), find_chip("910B4"))
    >>> p.bottleneck, p.block_dim, p.evidence, p.low_us < p.time_us < p.high_us
    ('cube', 20, 'calibrated', True)
    """
    given = calibration()
    w = work(task, chip)
    ranks = ints(task.attrs.get("ranks", 0))
    if w.kind.family == kinds.COMMUNICATE and w.core == COMMUNICATION and ranks and ranks[0]:
        return collective(task.kind, sum(o.nbytes for o in task.inputs[:1]), ranks[0], chip)
    generation = given.generations.get(str(chip.arch), Generation())
    f = features(w, chip, generation, math.nan if resident_nbytes is None else resident_nbytes)
    found = {name: float(value) for name, value in pipes(f, given.constants).items()}
    factor = 1.0 if w.kind.family == kinds.META else factor_of(w, given)
    # what cannot be: the value lies above the roof and the cost of any kernel, the low end above the roof
    roof = _roof_us(w, chip, resident_nbytes)
    time = max(found["time"] * factor, roof + found["launch"] * factor if roof else 0.0)
    low, high, evidence = _interval(task, w, generation, given)
    shown = {name: found[name] * factor for name in ("cube", "vector", "mte2", "mte3", "scalar") if found[name] > 0}
    shown["fixed"] = found["launch"] * factor
    busy = shown["fixed"] and 1.0 - shown["fixed"] / time if time else 0.0
    return Prediction(
        time, max(time * low, roof), time * high, _bottleneck(w, found), shown, w.blocks if w.core not in (AI_CPU, HOST, DVPP, COMMUNICATION) else 0,
        max(0.0, min(1.0, w.blocks / w.cores * busy)), w.flops, evidence,
        w.read + w.written,
    )  # fmt: skip


# of these a shape says the most that may be touched, not what is: tables, packed sequences, padded buffers of experts
_ROOFLESS = frozenset({kinds.META, kinds.COMMUNICATE, kinds.GATHER, kinds.SCATTER, kinds.ATTENTION})


def _roof_us(w: Work, chip: Chip, resident_nbytes: float | None) -> float:
    """Microseconds below which nothing comes: the cube at its clock on all cores, and the bytes that L2 cannot hold at the documented bandwidth of memory."""
    if w.core not in (VECTOR, MIX_VECTOR, CUBE, MIX_CUBE) or w.kind.family in _ROOFLESS or w.kind.name.startswith(("Moe", "Group")):
        return 0.0
    beyond = max(0.0, w.footprint - chip.l2_nbytes)
    if resident_nbytes is not None:
        beyond = max(beyond, w.read - resident_nbytes)
    return max(w.least_cycles / chip.clock_hz, beyond / chip.memory_bytes_per_s) * 1e6


def _bottleneck(w: Work, found: Mapping[str, float]) -> str:
    """The pipe that is longest, or the launch where no pipe takes as long as what is paid for any kernel."""
    slow = {AI_CPU: "ai cpu", HOST: "host", DVPP: "dvpp", COMMUNICATION: "communication"}
    if w.core in slow:
        return slow[w.core]
    if w.kind.family == kinds.COMMUNICATE:
        return "communication"
    name = max(("cube", "vector", "mte2", "mte3", "scalar"), key=lambda n: found[n])
    return "launch" if found[name] < found["launch"] else name


WIDEST = 3.0  # power of an interval beyond which it says no more than that nothing is known
ALIKE = {"bf16": "f16", "u8": "i8"}  # element types that the cube takes at one rate


def _interval(task: Task, w: Work, generation: Generation, given: Calibration) -> tuple[float, float, str]:
    """Factors of an 80 % interval, and what it stands on."""
    spread = given.families.get(w.kind.family, Spread())
    rows = given.kinds.get(w.kind.name, (1.0, 0))[1]
    reasons = []
    low, high = spread.low, spread.high
    if rows < 2:
        low, high = spread.low_new, spread.high_new
        reasons.append("one kernel of this kind was measured" if rows else "family only: no kernel of this kind was measured")
    wider = 1.0
    if spread.nbytes and (w.footprint > 2 * spread.nbytes or w.flops > 2 * max(spread.flops, 1.0)):
        wider *= 1.3
        reasons.append("extrapolated: larger than any kernel of its family that was measured")
    first = next((o.dtype.name for o in task.inputs if o.dtype and o.size), "")
    if spread.dtypes and ALIKE.get(first, first) not in spread.dtypes:
        wider *= 1.3
        reasons.append(f"no kernel of its family was measured in {first}")
    if generation.wider > 1.0:
        wider *= generation.wider
        reasons.append(generation.stands_on)
    wider = min(wider, WIDEST)
    return low**wider, high**wider, "; ".join(reasons) or "calibrated"
