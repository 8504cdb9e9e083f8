"""How far is the twin's model of collectives from collectives that were measured?

Question: predicted / measured time of every collective whose last rank had nobody to wait for, and what the fitted constants are.
Data: comm_times.csv (98 transfers on four 910B4 and 32 on eight 910B2, from profiles of two training jobs; each transfer stands there twice, as HCCS
and as SDMA; the time of a collective on a rank holds its wait for the others, so the shortest of the ranks is taken, and only where that is no wait).
Usage: python bench/twin_communication.py [--data FOLDER] [--fit]
  --fit: prints the constants of src/jumar/device/npu/communication.csv that the data give.
Last answer (30 November 2026): 26 of 36 had nobody to wait for; geometric mean 0.93, 24 of 26 in the interval. 910B4: 0.7 to 1.05; 910B2 at 151 MB: 0.95,
at 67 MB 0.46 (2.2 ms measured, of which the profile itself counts 0.9 as idle: that job computes meanwhile).
"""

from __future__ import annotations

import argparse
import csv
import json
import math
import statistics
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from jumar.device.npu import Chip, find_chip
from jumar.device.npu.communication import KINDS, collective

DATA = Path(__file__).resolve().parents[2] / "shared" / "data"


@dataclass(frozen=True)
class Measured:
    """One collective.   nbytes: of a rank's input; us: of the rank that waited least; link_us: of its transfers one after another on a link."""

    chip: Chip
    kind: str
    nbytes: int
    ranks: int
    us: float
    largest: float
    link_us: float
    waited: float


def read(folder: Path) -> tuple[list[Measured], dict[tuple[str, float], float]]:
    """Collectives, and the median time of one transfer by chip and megabytes."""
    transfers: dict[tuple[str, float], list[float]] = {}
    groups: dict[tuple[str, str, str, str], list[tuple[dict[str, str], dict[float, tuple[int, float]]]]] = {}
    with (folder / "comm_times.csv").open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            if row["transport"] != "HCCS":
                continue
            sizes = {float(size): (int(count), float(ms)) for size, (count, ms) in json.loads(row["size_distribution"]).items()}
            for size, (count, ms) in sizes.items():
                transfers.setdefault((row["soc"], size), []).append(ms / count * 1e3)
            job = "/".join(row["source"].split("/")[:-3])
            groups.setdefault((job, row["soc"], row["op"], f"{sum(s * c for s, (c, _) in sizes.items()):.3g}"), []).append((row, sizes))
    found = [_measured(ranks) for ranks in groups.values()]
    return [m for m in found if m], {key: statistics.median(times) for key, times in transfers.items()}


def _measured(rows: list[tuple[dict[str, str], dict[float, tuple[int, float]]]]) -> Measured | None:
    row, sizes = min(rows, key=lambda r: float(r[0]["elapse_ms"]))
    kind = next((k for k in KINDS if row["op"].lower().startswith(f"hcom_{k.replace('_', '')}_")), "send_recv")
    count, total = sum(c for c, _ in sizes.values()), sum(s * c for s, (c, _) in sizes.items()) * 1e6
    # fourteen transfers of an eighth each are the all-reduce of eight ranks; the jobs of 910B4 are pairs, but for transfers of 96 bytes among four
    ranks = 8 if row["soc"] == "910B2" else 4 if kind == "all_gather" and total < 1e4 else 2
    nbytes = {
        "all_reduce": total / 2 / (ranks - 1) * ranks,
        "reduce_scatter": total * ranks / (ranks - 1),
        "all_gather": total / (ranks - 1),
    }.get(kind, total)
    link_ms = sum(ms for _, ms in sizes.values()) / (ranks - 1)
    us = float(row["elapse_ms"]) * 1e3
    return (
        Measured(find_chip(row["soc"]), kind, round(nbytes), ranks, us, max(sizes), link_ms * 1e3, float(row["wait_ms"]) * 1e3)
        if count
        else None
    )


def main() -> None:
    """Prints the table, or the constants."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--fit", action="store_true")
    options = parser.parse_args()
    if not (options.data / "comm_times.csv").is_file():
        parser.error(f"--data must be a folder with comm_times.csv, got {options.data}")
    measured, transfers = read(options.data)
    alone = [m for m in measured if m.us < max(60.0, 2.2 * m.link_us) and m.waited < 0.3 * m.us]
    if options.fit:
        fit(alone, transfers)
        return
    print(f"{len(alone)} of {len(measured)} collectives had nobody to wait for\n")
    print("| chip | collective | ranks | input | measured us | predicted us | interval | ratio |\n|---|---|---|---|---|---|---|---|")
    ratios, inside = [], 0
    for m in sorted(alone, key=lambda m: (m.chip.name, m.kind, m.nbytes)):
        p = collective(m.kind, m.nbytes, m.ranks, m.chip)
        ratios.append(p.time_us / m.us)
        inside += p.low_us <= m.us <= p.high_us
        size, interval = f"{m.nbytes / 1e6:.4g} MB", f"{p.low_us:.0f} to {p.high_us:.0f}"
        print(f"| {m.chip.name} | {m.kind} | {m.ranks} | {size} | {m.us:.1f} | {p.time_us:.1f} | {interval} | {ratios[-1]:.2f} |")
    worst = max(max(r, 1 / r) for r in ratios)
    print(f"\ngeometric mean of predicted / measured {_mean(ratios):.2f}; worst {worst:.2f}; in the interval {inside} of {len(alone)}")


def fit(alone: list[Measured], transfers: dict[tuple[str, float], float]) -> None:
    """Constants: a transfer's own time from the small ones, the link's rate from the large, copies from what a collective takes beyond its transfers."""
    tiny = [us for (_, size), us in transfers.items() if size < 1e-3]
    print(f"transfer_us {statistics.median(tiny):.2f} ({min(tiny):.2f} to {max(tiny):.2f})")
    rates = []
    for (soc, size), us in transfers.items():
        if size > 20:
            chip = find_chip(soc)
            rates.append(size / (us - statistics.median(tiny)) * 1e6 / (chip.links["hccs"] / 7 / 1e6))
    print(f"hccs {_mean(rates):.3f} of nominal ({_at(rates, 0.1):.2f} to {_at(rates, 0.9):.2f}), {len(rates)} sizes")
    rate = _mean(rates)
    ramps = [
        (us - statistics.median(tiny)) / 1e6 * rate * find_chip(soc).links["hccs"] / 7 - size * 1e6
        for (soc, size), us in transfers.items()
        if 1 < size < 3
    ]
    print(f"ramp_nbytes {statistics.median(ramps):.3g} ({min(ramps):.3g} to {max(ramps):.3g})")
    small = [m.us - m.link_us for m in alone if m.us < 60]
    setup = statistics.median(small)
    print(f"setup_us {setup:.1f} ({min(small):.1f} to {max(small):.1f})")
    local = [m.nbytes / (m.us - m.link_us - setup) * 1e6 / m.chip.memory_bytes_per_s for m in alone if m.us > 5e3 and m.kind != "send_recv"]
    print(f"local {_mean(local):.3f} of memory bandwidth ({min(local):.2f} to {max(local):.2f})")


def _mean(values: Iterable[float]) -> float:
    return math.exp(statistics.fmean(math.log(v) for v in values))


def _at(values: list[float], part: float) -> float:
    return sorted(values)[round(part * (len(values) - 1))]


if __name__ == "__main__":
    main()
