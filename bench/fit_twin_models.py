"""Fits the four factors of a chip's generation to whole models: for chips of which no kernel was measured, only whole models.

In: the rows of bench/twin_models.py on one chip, forecast once.  Out: `launch`, `memory`, `cube`, `vector` (constants.toml, [generations]), printed
with what they give on both halves of the models; `--write` puts them into constants.toml.
Honest by halves: the first word of a network's name (`bert`, `resnet`, `vit`) says by its hash whether it is in the half that is fitted or in the one
that is only looked at, so that no architecture is in both.  Least mean of |log(predicted / measured)|, each network counting once.
Usage: python bench/fit_twin_models.py [--data ../shared/data] [--models FOLDER] [--chip 310P3] [--write] [--keep FILE.pickle]
         [--out bench/results/twin-models-fit.json]
"""

from __future__ import annotations

import argparse
import hashlib
import json
import math
import pickle
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy.optimize import minimize

sys.path.insert(0, str(Path(__file__).resolve().parent))
import twin_models

from jumar.device.npu import find_chip
from jumar.device.npu.time import Generation, calibration, factor_of, features, pipes
from jumar.device.npu.work import work

CONSTANTS = Path(__file__).resolve().parents[1] / "src" / "jumar" / "device" / "npu" / "constants.toml"
FACTORS = ("launch", "memory", "cube", "vector")
SCALED = {"fixed": "launch", "memory_rate": "memory", "l2_rate": "memory", "cube_us": "cube", "function_us": "vector"}


@dataclass(frozen=True)
class Sample:
    """A row as numbers.   columns: features of its kernels without a generation's factors; rest_us: what the timeline adds to them."""

    id: str
    network: str
    measured_us: float
    columns: Mapping[str, np.ndarray]
    factors: np.ndarray
    rest_us: float

    def time_us(self, given: Mapping[str, float]) -> float:
        """The step with a generation's factors."""
        scaled = {name: column * given[SCALED[name]] if name in SCALED else column for name, column in self.columns.items()}
        return float((pipes(scaled, calibration().constants)["time"] * self.factors).sum()) + self.rest_us


def fitted(network: str) -> bool:
    """Whether the network is in the half that is fitted."""
    family = re.match("[a-z]+", network)
    assert family is not None, "names of networks begin with a letter"
    return hashlib.sha256(family[0].encode()).digest()[0] % 2 == 0


def sample(row: Any, case: Any, forecasts: Any) -> Sample:
    found = forecasts.forecast(row, case)
    chip = found.chip
    from jumar.compiler.twin.forecast import resident

    works = [work(x.task, chip) for x in found.launches]
    listed = [features(w, chip, Generation(), n) for w, n in zip(works, resident(found.launches, chip), strict=True)]
    columns = {name: np.array([f[name] for f in listed], float) for name in listed[0]}
    factors = np.array([1.0 if w.kind.family == "meta" else factor_of(w, calibration()) for w in works])
    kernels = sum(p.time_us for p in found.predictions)
    return Sample(row.id, case.network, row.time_ms * 1000, columns, factors, found.timeline.latency_us - kernels)


def samples(data: Path, folder: Path, chip: str) -> list[Sample]:
    forecasts = twin_models.Forecasts(folder)
    pairs = [
        (row, case) for row in twin_models.rows(data) for group, case, _ in [twin_models.sorted_out(row)] if case and group == "inference"
    ]
    wanted = sorted((p for p in pairs if p[0].chip == chip), key=lambda p: p[1].network)
    return [sample(row, case, forecasts) for row, case in wanted]


def errors(found: Sequence[Sample], given: Mapping[str, float]) -> dict[str, float]:
    """Mean |log ratio| of each network."""
    by: dict[str, list[float]] = {}
    for s in found:
        by.setdefault(s.network, []).append(abs(math.log(s.time_us(given) / s.measured_us)))
    return {network: sum(values) / len(values) for network, values in by.items()}


def fit(found: Sequence[Sample]) -> dict[str, float]:
    def loss(logs: np.ndarray) -> float:
        given = dict(zip(FACTORS, np.exp(logs), strict=True))
        values = errors(found, given).values()
        # a factor that nothing speaks for stays at 1
        return sum(values) / len(values) + 0.003 * float(np.abs(logs).sum())

    constants = calibration().constants
    # no rate above what the chip is documented to have: neither the memory's nor the cube's
    most = {"memory": 1 / constants["memory_efficiency"]}
    least = {"cube": 1 / constants["cube_cycles"]}
    bounds = [(math.log(least.get(name, 0.1)), math.log(most.get(name, 10.0))) for name in FACTORS]
    start = np.vstack([np.zeros(len(FACTORS)), 0.1 * np.eye(len(FACTORS))])
    options = {"maxiter": 300, "xatol": 0.005, "fatol": 1e-4, "initial_simplex": start}
    best = minimize(loss, start[0], method="Nelder-Mead", options=options, bounds=bounds)
    return {name: round(float(v), 2) for name, v in zip(FACTORS, np.exp(best.x), strict=True)}


def report(found: Sequence[Sample], given: Mapping[str, float]) -> dict[str, Any]:
    """Ratios summed up, by row and by network (its median)."""
    ratios: dict[str, list[float]] = {}
    for s in found:
        ratios.setdefault(s.network, []).append(s.time_us(given) / s.measured_us)
    rows = [r for values in ratios.values() for r in values]
    medians = [float(np.median(values)) for values in ratios.values()]
    within = [float(np.mean([1 / twin_models.WITHIN <= r <= twin_models.WITHIN for r in values])) for values in (rows, medians)]
    return {
        "rows": len(rows), "geometric_mean": twin_models.geometric_mean(rows), "within": within[0], "networks": len(medians),
        "geometric_mean_by_network": twin_models.geometric_mean(medians), "within_by_network": within[1],
    }  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=twin_models.ROOT.parent / "shared" / "data")
    parser.add_argument("--models", type=Path, default=Path("twin-models"))
    parser.add_argument("--chip", default="310P3")
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--out", type=Path, help="writes both halves there")
    parser.add_argument("--keep", type=Path, help="keeps the samples there, or takes them from there")
    args = parser.parse_args()
    if args.keep and args.keep.is_file():
        found = pickle.loads(args.keep.read_bytes())
    else:
        found = samples(args.data / "e2e_times.csv", args.models, args.chip)
        if args.keep:
            args.keep.write_bytes(pickle.dumps(found))
    inside, outside = [s for s in found if fitted(s.network)], [s for s in found if not fitted(s.network)]
    given = fit(inside)
    plain = dict.fromkeys(FACTORS, 1.0)
    halves = [
        {"half": title, "factors": how} | report(half, factors)
        for title, half in (("fitted", inside), ("held out", outside))
        for how, factors in (("none", plain), ("fitted", given))
    ]
    for half in halves:
        print(" ".join(f"{k} {v:.2f}" if isinstance(v, float) else f"{k} {v}" for k, v in half.items()))
    print(given)
    if args.out:
        answer = {"chip": args.chip, "factors": given, "halves": halves}
        args.out.write_text(json.dumps(twin_models.rounded(answer), indent=1) + "\n", encoding="utf-8")
    for network, error in sorted(errors(found, given).items(), key=lambda item: -item[1]):
        ratios = " ".join(f"{s.time_us(given) / s.measured_us:.2f}" for s in found if s.network == network)
        print(f"{'fitted' if fitted(network) else 'other':7}{network:32}{math.exp(error):5.2f}   {ratios}")
    if args.write:
        arch = str(find_chip(args.chip).arch)
        kept = calibration().generations[arch]
        values = ", ".join(f"{k} = {v}" for k, v in given.items()) + f", wider = {kept.wider}, stands_on = {json.dumps(kept.stands_on)}"
        line = f"{arch} = {{ {values} }} # fitted to whole models on {args.chip} by bench/fit_twin_models.py"
        text = CONSTANTS.read_text(encoding="utf-8")
        text, done = re.subn(rf"(?m)^{arch} = .*$", line, text)
        if not done:
            text = text.replace("[generations]\n", f"[generations]\n{line}\n")
        CONSTANTS.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
