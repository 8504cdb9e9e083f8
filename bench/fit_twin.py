"""Which constants make the twin's formula agree with what was measured?   Writes src/jumar/device/npu/constants.toml.

In: ../shared/data/op_times/op_times.csv.gz (568 kernels measured on 910B1, B2, B4, B4-1 and A3), of which block_dim is never read.
The formula is time.py's; here its constants are found by damped least squares on the logarithm of predicted / measured, robust against rows that
the shape cannot explain, each constant held softly near its physical start.  Then, in two levels, what is left over by family and by kind,
both shrunk towards the level above by rows / (rows + few).  The spread of the intervals comes from kernels that were not fitted (twin_fidelity.py).
Run: PYTHONPATH=src python bench/fit_twin.py [--data ../shared/data/op_times/op_times.csv.gz]
"""

from __future__ import annotations

import argparse
import hashlib
import json
import math
import os
import sys
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from jumar.base import Array
from jumar.device.npu.chip import Chip
from jumar.device.npu.counts import Work
from jumar.device.npu.predict import read_row, read_table
from jumar.device.npu.task import CUBE, MIX_CUBE, Task
from jumar.device.npu.time import ALIKE, Calibration, Generation, Spread, factor_of, features, pipes
from jumar.device.npu.work import work

ROOT = Path(__file__).resolve().parents[1]
DATA = Path(os.environ.get("SHARED", ROOT.parent / "shared")) / "data" / "op_times" / "op_times.csv.gz"
TARGET = ROOT / "src" / "jumar" / "device" / "npu" / "constants.toml"
FOLDS = 5

# name: (start, least, most, how tightly it is held to the start in units of its logarithm, unit, what it means)
CONSTANTS: dict[str, tuple[float, float, float, float, str, str]] = {
    "launch_vector_us": (1.2, 0.3, 5, 1, "us", "from start to end of an empty kernel on one vector core"),
    "launch_mix_vector_us": (2.0, 0.5, 8, 1, "us", "the same of a kernel whose vector cores wait for each other"),
    "launch_cube_us": (3.5, 1, 10, 1, "us", "the same on a cube core: load, first product and way out of the first tile"),
    "launch_mix_cube_us": (8.0, 2, 30, 1, "us", "the same of a kernel on cube and vector cores together"),
    "block_us": (0.09, 0.01, 0.3, 1, "us", "each further core that is started"),
    "block_stage_us": (0.05, 0.002, 0.3, 1, "us", "each further core and part of a kernel"),
    "stage_us": (0.9, 0.2, 4, 1, "us", "each part of a kernel that waits for the part before"),
    "ragged_vector": (0.5, 0.02, 3, 1, "1", "more of that where a row is not a whole number of 32-byte blocks"),
    "memory_efficiency": (0.85, 0.5, 1.0, 1, "1", "of the documented memory bandwidth that kernels reach"),
    "memory_reach": (2.0, 1, 8, 1, "1", "times its share of the memory bandwidth that a core gets when others are idle"),
    "l2_efficiency": (0.8, 0.3, 1.5, 1, "1", "of the documented L2 bandwidth that vector kernels reach"),
    "l2_reach": (1.2, 1, 8, 1, "1", "times its share of the L2 bandwidth that a core gets when others are idle"),
    "hit": (0.6, 0.05, 0.97, 1, "1", "of the bytes of a small kernel that the one before has left in L2"),
    "hit_flat": (0.2, 0.02, 0.97, 1, "1", "the same of long vectors: parameters, gradients and moments"),
    "hit_written": (0.7, 0.05, 0.97, 1, "1", "of what is written that stays in L2"),
    "hit_size": (0.5, 0.05, 4, 1, "1", "of L2 that operands may fill until half of that is gone"),
    "write_weight": (1.3, 0.5, 4, 1, "1", "time of a byte written, of a byte read, through L2"),
    "packet_us": (0.004, 0.001, 0.5, 1, "us", "each run of bytes that a core moves on its own"),
    "row_us": (0.01, 0.0005, 0.3, 1, "us", "each row that a vector core reduces or lays out on its own"),
    "scalar_cycles": (1.0, 0.3, 4, 0.5, "1", "cycles of an instruction of the scalar unit"),
    "item_us": (0.35, 0.02, 2, 1, "us", "each address that a core's scalar unit computes and waits for"),
    "vector_cycles": (1.5, 1, 4, 1, "1", "cycles an instruction and register, stalls included"),
    "shuffle_cycles": (0.25, 0.05, 2, 1, "cycles", "each element that changes place inside the registers"),
    "sort_cycles": (8.0, 1, 40, 1, "cycles", "each element and pass of a sort"),
    "cube_cycles": (1.03, 1, 1.5, 0.05, "1", "cycles of the cube, of what its rate says"),
    "conv_cycles": (1.3, 1, 4, 1, "1", "the same of a convolution"),
    "cube_port": (0.8, 0.3, 1.2, 1, "1", "of what the ports of all cube cores take from memory (`rates.ddr` of the chip)"),
    "cube_l2": (0.8, 0.3, 1.5, 1, "1", "of the documented L2 bandwidth that cube kernels reach"),
    "cube_reach": (1.3, 1, 8, 1, "1", "times its share of either that a cube core gets when others are idle"),
    "again_miss": (0.005, 0.0001, 0.5, 1, "1", "of what tiles read again that L2 has lost by then, for operands as large as L2"),
    "ragged_cube": (0.5, 0.02, 5, 1, "1", "more time to load a matrix whose rows do not start on 512 bytes (0.3 of it), 256 (1) or 32 (2)"),
    "tile_us": (0.15, 0.01, 3, 1, "us", "each tile that a cube core begins"),
    "overlap": (1.0, 0.1, 3, 1, "1", "how far pipes run side by side: tiles that count as overlapped, of tiles"),
    "blur": (4.0, 2, 12, 1, "1", "power of the mean of pipes that run side by side: the longest alone would be infinite"),
    "cube_blur": (3.0, 2, 12, 0.1, "1", "the same on cube cores, where loads wait for products and products for loads"),
    "ai_cpu_us": (46.0, 10, 200, 1, "us", "a kernel on the AI CPU"),
    "ai_cpu_item_us": (0.01, 0.0005, 0.2, 1, "us", "each element of it"),
    "dsa_item_us": (3e-6, 1e-7, 1e-3, 1, "us", "each random bit that the DSA unit draws"),
    "collective_us": (30.0, 5, 200, 1, "us", "start of a collective and its synchronisation"),
}  # fmt: skip

PRIOR = 0.6  # weight of the hold to the start, against a row's weight of 1
SCALE = 0.15  # residuals beyond it count linearly, as of an absolute error
FEW_FAMILY, FEW_KIND = 8.0, 1.0  # kinds and rows that weigh as much as the level above


@dataclass(frozen=True)
class Rows:
    """A table of measured kernels.   columns: features, one array each; measured: microseconds; groups: what the folds are cut by."""

    raw: Sequence[Mapping[str, str]]
    tasks: Sequence[Task]
    chips: Sequence[Chip]
    works: Sequence[Work]
    columns: Mapping[str, Array]
    measured: Array

    def __len__(self) -> int:
        return len(self.works)


def table_of(path: Path) -> Path:
    """The table itself, where a folder that holds it is given: `shared/data`, or `op_times` in it."""
    inside = (path, path / "op_times.csv.gz", path / "op_times" / "op_times.csv.gz", path / "data" / "op_times" / "op_times.csv.gz")
    found = next((p for p in inside if p.is_file()), None)
    if found is None:
        raise SystemExit(f"--data must be op_times.csv.gz or a folder that holds it, got {path}")
    return found


def read(path: Path) -> Rows:
    """The table, with what the formula takes of each row."""
    import csv
    import gzip

    path = table_of(path)
    with gzip.open(path, "rt", encoding="utf-8", newline="") as file:
        measured = [dict(row) for row in csv.DictReader(file)]
    pairs = [read_row(row) for _, row in read_table(path)]
    works = [work(task, chip) for task, chip in pairs]
    found = [features(w, chip, Generation()) for w, (_, chip) in zip(works, pairs, strict=True)]
    columns = {name: np.array([f[name] for f in found]) for name in found[0]}
    return Rows(
        measured, [t for t, _ in pairs], [c for _, c in pairs], works, columns, np.array([float(r["measured_us"]) for r in measured])
    )


def fold_of(row: Mapping[str, str]) -> int:
    """Which fold a row belongs to: by a hash of chip, operator, shapes and element types, so that repeats stay together."""
    key = "|".join(row[c] for c in ("soc", "op", "in_shapes", "out_shapes", "in_dtypes", "out_dtypes"))
    return int(hashlib.sha1(key.encode()).hexdigest(), 16) % FOLDS


def fit(rows: Rows, chosen: Array) -> dict[str, float]:
    """The constants that fit the chosen rows best: damped Gauss-Newton steps in their logarithms, rows reweighted by how far off they are."""
    names = list(CONSTANTS)
    start = np.log([CONSTANTS[n][0] for n in names])
    least, most = np.log([CONSTANTS[n][1] for n in names]), np.log([CONSTANTS[n][2] for n in names])
    hold = PRIOR / np.array([CONSTANTS[n][3] for n in names])
    columns = {n: c[chosen] for n, c in rows.columns.items()}
    target = np.log(rows.measured[chosen])
    weights = _row_weights([w for w, c in zip(rows.works, chosen, strict=True) if c])

    def off(x: Array) -> Array:
        time = pipes(columns, dict(zip(names, np.exp(x), strict=True)))["time"]
        return np.asarray(np.log(np.maximum(time, 0.1)) - target)

    def loss(x: Array, r: Array) -> float:
        return float(np.sum(weights * SCALE**2 * (np.sqrt(1 + (r / SCALE) ** 2) - 1)) + 0.5 * np.sum((hold * (x - start)) ** 2) * SCALE)

    x, damping = start.copy(), 1e-2
    r = off(x)
    best = loss(x, r)
    for _ in range(60):
        slopes = np.stack([(off(x + 1e-3 * unit) - r) / 1e-3 for unit in np.eye(len(x))], axis=1)
        robust = weights / np.sqrt(1 + (r / SCALE) ** 2)
        normal = slopes.T @ (robust[:, None] * slopes) + np.diag(hold**2) * SCALE
        slope = slopes.T @ (robust * r) + hold**2 * (x - start) * SCALE
        for _ in range(8):
            step = np.linalg.solve(normal + damping * np.diag(np.diag(normal) + 1e-6), slope)
            trial = np.clip(x - step, least, most)
            trial_r = off(trial)
            trial_loss = loss(trial, trial_r)
            if trial_loss < best:
                break
            damping *= 4
        else:
            break
        gained = best - trial_loss
        x, r, best, damping = trial, trial_r, trial_loss, max(damping / 6, 1e-6)
        if gained < 1e-5 * best:
            break
    return {n: float(v) for n, v in zip(names, np.exp(x), strict=True)}


def _row_weights(works: Sequence[Work]) -> Array:
    """A kind with many rows weighs more than one with few, but by a root of their numbers: the formula is for kinds that are not here, too."""
    count: dict[str, int] = defaultdict(int)
    for w in works:
        count[w.kind.name] += 1
    weights = np.array([count[w.kind.name] ** -0.35 for w in works])
    return weights * len(weights) / weights.sum()


def centre(values: Array) -> float:
    """A mean that a wild value does not move far."""
    middle = float(np.median(values))
    for _ in range(10):
        w = 1 / np.sqrt(1 + ((values - middle) / 0.3) ** 2)
        middle = float(np.sum(w * values) / np.sum(w))
    return middle


def corrections(rows: Rows, chosen: Array, constants: Mapping[str, float]) -> Calibration:
    """Measured / formula by family and by kind: each level shrunk towards the one above by how much stands behind it."""
    time = pipes(rows.columns, constants)["time"]
    left = np.log(rows.measured / np.maximum(time, 1e-3))
    by_kind: dict[tuple[str, str], list[float]] = defaultdict(list)
    for w, value, use in zip(rows.works, left, chosen, strict=True):
        if use and value < 10:
            by_kind[(w.kind.family, w.kind.name)].append(float(value))
    families: dict[str, Spread] = {}
    kinds: dict[str, tuple[float, int]] = {}
    for family in {f for f, _ in by_kind}:
        of_kinds = {k: np.array(v) for (f, k), v in by_kind.items() if f == family}
        weights = np.array([len(v) / (len(v) + FEW_KIND) for v in of_kinds.values()])
        means = np.array([centre(v) for v in of_kinds.values()])
        mean = float(np.sum(weights * means) / (np.sum(weights) + FEW_FAMILY))
        members = [i for i, w in enumerate(rows.works) if w.kind.family == family and chosen[i]]
        families[family] = Spread(
            factor=math.exp(mean), nbytes=max(rows.works[i].footprint for i in members), flops=max(rows.works[i].flops for i in members)
        )
        for name, values in of_kinds.items():
            n = len(values)
            kinds[name] = (math.exp(mean + n / (n + FEW_KIND) * (centre(values) - mean)), n)
    return Calibration(constants, families, kinds, {})


def predicted(rows: Rows, given: Calibration) -> Array:
    """Microseconds of every row."""
    factors = np.array([factor_of(w, given) for w in rows.works])
    return np.asarray(pipes(rows.columns, given.constants)["time"] * factors)


def five_fold(rows: Rows) -> Array:
    """Each row as predicted by a fit that did not see its fold."""
    return left_out(rows, np.array([str(fold_of(r)) for r in rows.raw]))


def without_kind(rows: Rows) -> Array:
    """Each row as predicted by a fit that saw no row of its operator."""
    return left_out(rows, np.array([r["op"] for r in rows.raw]))


def left_out(rows: Rows, groups: Array) -> Array:
    """Each row as predicted by a fit that saw none of its group."""
    found = np.zeros(len(rows))
    for group in sorted(set(groups)):
        chosen = groups != group
        given = corrections(rows, chosen, fit(rows, chosen))
        found[~chosen] = predicted(rows, given)[~chosen]
    return found


def spreads(rows: Rows, given: Calibration, seen: Array, unseen: Array) -> dict[str, Spread]:
    """The 10 and 90 % points of measured / predicted by family, drawn towards those of all families where rows are few."""
    families = np.array([w.kind.family for w in rows.works])
    out = {}
    for family in sorted(set(families)):
        mine = families == family
        low, high = band(rows, np.log(rows.measured / seen), mine)
        low_new, high_new = band(rows, np.log(rows.measured / unseen), mine)
        s = given.families[family]
        out[family] = Spread(s.factor, low, high, min(low, low_new), max(high, high_new), s.nbytes, s.flops, _cube_dtypes(rows, mine))
    return out


def _cube_dtypes(rows: Rows, mine: Array) -> tuple[str, ...]:
    """Element types of first operands in the rows of a family that uses the cube; types of one rate have one name."""
    members = [i for i in np.flatnonzero(mine) if rows.works[i].core in (CUBE, MIX_CUBE)]
    firsts = (next((o.dtype.name for o in rows.tasks[i].inputs if o.dtype and o.size), "") for i in members)
    return tuple(sorted({ALIKE.get(name, name) for name in firsts} - {""}))


def band(rows: Rows, left: Array, mine: Array, known: Array | None = None) -> tuple[float, float]:
    """The 10 and 90 % points of measured / predicted of a family, drawn towards those of all (known) rows where little of it was seen.

    Rows of one operator on one chip and of about one size count once: forty that are alike say little of others.
    """
    known = np.ones(len(rows), dtype=bool) if known is None else known
    mine = mine & known
    seen = len(
        {(rows.raw[i]["soc"], rows.works[i].kind.name, round(math.log2(rows.works[i].footprint + 1) / 2)) for i in np.flatnonzero(mine)}
    )
    share = seen / (seen + 12.0)
    everyone = np.quantile(left[known], [0.1, 0.9]) * 1.25
    own = np.quantile(left[mine], [0.1, 0.9]) if seen else everyone
    low, high = share * own + (1 - share) * everyone
    return math.exp(min(low, -0.08)), math.exp(max(high, 0.08))


def _number(value: float) -> str:
    return f"{value:.4g}"


def _generations(path: Path) -> list[str]:
    """The lines of [generations] as they are: they are not fitted here but to whole models, by fit_twin_models.py."""
    inside, kept = False, []
    for line in path.read_text(encoding="utf-8").splitlines():
        if line.startswith("["):
            inside = line == "[generations]"
        elif inside and " = {" in line:
            kept.append(line)
    return kept


def write(given: Calibration, path: Path) -> None:
    """The constants as a file that can be read."""
    lines = [
        "# Constants of time.py, written by bench/fit_twin.py: do not edit by hand, but for [generations].",
        "# Fitted to 568 kernels measured by others on 910B1, 910B2, 910B4, 910B4-1 and A3 (docs/twin/time.md says from where).",
        "",
        "[constants]",
    ]
    for name, value in given.constants.items():
        _, least, most, _, unit, about = CONSTANTS[name]
        edge = " (at its limit)" if value <= least * 1.001 or value >= most * 0.999 else ""
        lines.append(f'{name} = {{ value = {_number(value)}, unit = "{unit}" }} # {about}{edge}')
    lines += [
        "",
        "# architectures by the number of CANN: factors on times, rates and cycles where they differ from the measured one",
        "# wider: the power that widens intervals, by what was measured (stands_on): 1 kernels, 1.6 whole models by the hundred, 2.2 a few, 2.6 none",
        "[generations]",
    ]
    lines += _generations(path)
    lines += ["", "# what is left between formula and measurement: measured / formula, and the 10 and 90 % points around it", "[families]"]
    for name, s in sorted(given.families.items()):
        inner = ", ".join(f"{k} = {_number(getattr(s, k))}" for k in ("factor", "low", "high", "low_new", "high_new", "nbytes", "flops"))
        dtypes = f", dtypes = {json.dumps(s.dtypes)}" if s.dtypes else ""
        lines.append(f"{name} = {{ {inner}{dtypes} }}")
    lines += ["", "# measured / formula by kind, shrunk towards its family, and the rows behind it", "[kinds]"]
    lines += [f"{name} = {{ factor = {_number(factor)}, rows = {n} }}" for name, (factor, n) in sorted(given.kinds.items())]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--out", type=Path, default=TARGET)
    options = parser.parse_args()
    rows = read(options.data)
    everything = np.ones(len(rows), dtype=bool)
    given = corrections(rows, everything, fit(rows, everything))
    given = Calibration(given.constants, spreads(rows, given, five_fold(rows), without_kind(rows)), given.kinds, {})
    write(given, options.out)
    off = np.abs(predicted(rows, given) / rows.measured - 1)
    sys.stdout.write(f"{len(rows)} rows, {len(given.constants)} constants: median error {np.median(off):.1%} of rows that were fitted\n")


if __name__ == "__main__":
    main()
