"""The tables of docs/twin/models.md, from bench/results/twin-models.json.

In: that file, written by bench/twin_models.py, and twin-models-fit.json of bench/fit_twin_models.py.
Out: the page's text with new tables; generate.py writes it.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "bench" / "results" / "twin-models.json"
FIT = ROOT / "bench" / "results" / "twin-models-fit.json"
PAGE = ROOT / "docs" / "twin" / "models.md"
GROUPS = {
    "inference": "Inference on 310P3, fp16",
    "int8": "Inference on 310P3, int8",
    "training": "Training steps of a sunk graph",
    "kernels": "Sum of kernel times of a profiled step",
    "bound": "Steps with data loading and exchange of gradients: an upper bound",
}
WITHIN = 1.6


def page() -> str:
    """The page, its tables anew between the marks that it has for them."""
    found = json.loads(RESULTS.read_text(encoding="utf-8"))
    text = PAGE.read_text(encoding="utf-8")
    for mark, table in (("summary", _summary(found)), ("halves", _halves()), ("rows", _rows(found)), ("apart", _apart(found))):
        before, rest = text.split(f"<!-- {mark} -->\n", 1)
        after = rest.split(f"<!-- end of {mark} -->\n", 1)[1]
        text = f"{before}<!-- {mark} -->\n<!-- written by docs/generate.py -->\n\n{table}\n\n<!-- end of {mark} -->\n{after}"
    return text


def _summary(found: dict[str, Any]) -> str:
    lines = [
        "| what | rows | geometric mean | within 1.6 | models | geometric mean | within 1.6 | measured inside our interval |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for group, s in found["statistics"].items():
        if group == "bound":
            continue
        lines.append(
            f"| {GROUPS[group]} | {s['rows']} | {s['geometric_mean']:.2f} | {s['within_1.6']:.0%} | {s['models']} | "
            f"{s['geometric_mean_by_model']:.2f} | {s['within_1.6_by_model']:.0%} | {s['measured_within_interval']:.0%} |"
        )
    bounded = [r for r in found["rows"] if r["group"] == "bound"]
    if bounded:
        below = sum(r["ratio"] <= 1 for r in bounded)
        lines += ["", f"Of {len(bounded)} steps that are only an upper bound, our time of the device is below the step's in {below}."]
    return "\n".join(lines)


def _halves() -> str:
    found = json.loads(FIT.read_text(encoding="utf-8"))
    lines = [
        "| half | factors | rows | geometric mean | within 1.6 | networks | geometric mean | within 1.6 |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for h in found["halves"]:
        lines.append(
            f"| {h['half']} | {h['factors']} | {h['rows']} | {h['geometric_mean']:.2f} | {h['within']:.0%} | {h['networks']} | "
            f"{h['geometric_mean_by_network']:.2f} | {h['within_by_network']:.0%} |"
        )
    factors = ", ".join(f"{name} {value}" for name, value in found["factors"].items())
    return "\n".join([*lines, "", f"Factors of {found['chip']}: {factors}."])


def _rows(found: dict[str, Any]) -> str:
    parts = []
    for group, title in GROUPS.items():
        rows = [r for r in found["rows"] if r["group"] == group]
        if rows:
            parts.append(f"### {title}\n\n" + "\n".join(_table(rows)))
    return "\n\n".join(parts)


def _table(rows: Sequence[dict[str, Any]]) -> list[str]:
    lines = [
        "| row | model | chip | batch | tokens | measured ms | predicted ms | 80 % interval | ratio | held back by | kernels |",
        "|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    for r in rows:
        miss = "" if 1 / WITHIN <= r["ratio"] <= WITHIN or r["group"] == "bound" else " (miss)"
        lines.append(
            f"| {r['id']} | {r['model']} | {r['chip']} | {r['batch']} | {r['seq'] or ''} | {r['measured_ms']:.4g} | {r['predicted_ms']:.4g} | "
            f"{r['low_ms']:.3g} to {r['high_ms']:.3g} | {r['ratio']:.2f}{miss} | {r['bound']} | {r['kernels']} |"
        )
    return lines


def _apart(found: dict[str, Any]) -> str:
    """Models that are not compared, with the reason; failures of ours first."""
    lines = ["| model | chip | rows | why |", "|---|---|---|---|"]
    for row, why in found["failed"].items():
        lines.append(f"| {row} |  | 1 | {why.replace('|', '/')} |")
    groups: dict[tuple[str, str, str], int] = {}
    for entry in found["apart"].values():
        key = (entry["model"], entry["chip"], entry["why"])
        groups[key] = groups.get(key, 0) + 1
    lines += [f"| {model} | {chip} | {count} | {why} |" for (model, chip, why), count in groups.items()]
    return "\n".join(lines)
