"""The page and the chart of performance, from bench/results: the newest infer-*.json and train-*.json.

In: those files.  Out: performance.md, images/performance.svg, and the figures in both READMEs; generate.py writes them.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from html import escape
from math import prod
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).resolve().parents[1] / "bench" / "results"
OURS = "jumar"
THREADS = 2  # of the rows in the chart
WIDTH, LEFT, RIGHT, ROW, TOP = 860, 250, 200, 22, 64
LONGEST = 1.5  # a bar ends there, and its number tells the rest


@dataclass(frozen=True)
class Bar:
    """One row of the chart.   ratio: ours / the best rival's; low, high: of the rounds."""

    group: str
    name: str
    ratio: float
    low: float
    high: float
    best: str


def newest(kind: str) -> tuple[str, dict[str, Any]]:
    """The name and the content of the newest result of that kind."""
    path = sorted(RESULTS.glob(f"{kind}-*.json"))[-1]
    return path.stem, json.loads(path.read_text(encoding="utf-8"))


def bars(infer: dict[str, Any], train: dict[str, Any]) -> list[Bar]:
    """Rows that have a rival, with two threads."""
    found = []
    for row in infer["rows"]:
        if row["threads"] == THREADS and row["best"]:
            found.append(_bar("inference, int8" if row["row"].endswith("int8") else "inference, fp32", row["row"], row))
    found.sort(key=lambda bar: bar.group)  # the sort is stable
    found += [_bar("one training step, fp32", row["title"], row) for row in train["rows"] if row["threads"] == THREADS and row["best"]]
    return found


def newest_bars() -> list[Bar]:
    """Of the newest results."""
    return bars(newest("infer")[1], newest("train")[1])


def _bar(group: str, name: str, row: dict[str, Any]) -> Bar:
    low, high = row["ratio_spread"][row["best"]]
    return Bar(group, name, row["ratio"][row["best"]], low, high, row["best"])


STYLE = """
.card{fill:#ffffff;stroke:#d0d7de} text{font:13px system-ui,sans-serif;fill:#1f2328} .head{font-weight:600} .small{font-size:11px;fill:#57606a}
.win{fill:#1f8a70} .lose{fill:#c4572e} .one{stroke:#57606a;stroke-dasharray:4 3} .grid{stroke:#d8dee4} .spread{stroke:#1f2328;stroke-width:1.5}
@media (prefers-color-scheme:dark){.card{fill:#161b22;stroke:#30363d} text{fill:#e6edf3} .small{fill:#9198a1}
.win{fill:#3fb58f} .lose{fill:#e8825a} .one{stroke:#9198a1} .grid{stroke:#2b3138} .spread{stroke:#e6edf3}}
"""


def chart(found: list[Bar]) -> str:
    """Horizontal bars of ratios; a card of its own colour, so that it reads on light and dark pages."""
    groups = list(dict.fromkeys(bar.group for bar in found))
    height = TOP + ROW * (len(found) + 2 * len(groups)) + 20
    scale = (WIDTH - LEFT - RIGHT) / LONGEST
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}" role="img" '
        f'aria-label="time of a run, ours divided by the fastest rival\'s">',
        f"<style>{STYLE}</style>",
        f'<rect class="card" x="0.5" y="0.5" width="{WIDTH - 1}" height="{height - 1}" rx="8"/>',
        f'<text class="head" x="16" y="26">Time of a run, ours / the fastest rival\'s, {THREADS} threads: shorter is better, below 1 we are faster</text>',
    ]
    for tick in (0.0, 0.25, 0.5, 0.75, 1.0, 1.25, 1.5):
        x = LEFT + tick * scale
        kind = "one" if tick == 1.0 else "grid"
        parts.append(f'<line class="{kind}" x1="{x:.1f}" x2="{x:.1f}" y1="{TOP - 8}" y2="{height - 14}"/>')
        parts.append(f'<text class="small" x="{x:.1f}" y="{TOP - 14}" text-anchor="middle">{tick:g}</text>')
    y = TOP
    for group in groups:
        parts.append(f'<text class="head" x="16" y="{y + 15}">{escape(group)}</text>')
        y += ROW
        for bar in (b for b in found if b.group == group):
            shown, kind = min(bar.ratio, LONGEST), "win" if bar.ratio < 1 else "lose"
            parts.append(f'<text x="{LEFT - 8}" y="{y + 15}" text-anchor="end">{escape(_short(bar.name))}</text>')
            parts.append(
                f'<rect class="{kind}" x="{LEFT}" y="{y + 4}" width="{shown * scale:.1f}" height="{ROW - 8}" rx="2">'
                f"<title>{escape(bar.name)}: {bar.ratio:.2f} ({bar.low:.2f} to {bar.high:.2f}) of {escape(bar.best)}</title></rect>"
            )
            low, high = min(bar.low, LONGEST), min(bar.high, LONGEST)
            middle = y + ROW / 2
            parts.append(
                f'<line class="spread" x1="{LEFT + low * scale:.1f}" x2="{LEFT + high * scale:.1f}" y1="{middle:.1f}" y2="{middle:.1f}"/>'
            )
            at = LEFT + max(shown, high) * scale + 8
            parts.append(f'<text x="{at:.1f}" y="{y + 15}">{bar.ratio:.2f} <tspan class="small">{escape(bar.best)}</tspan></text>')
            y += ROW
        y += ROW
    return "\n".join([*parts, "</svg>"]) + "\n"


def _short(name: str) -> str:
    return name if len(name) <= 34 else f"{name[:33]}…"


def page(note: str) -> str:
    """The page: the chart, the tables, and how they came about."""
    (infer_name, infer), (train_name, train) = newest("infer"), newest("train")
    lines = ["# Performance", "", note.strip(), ""]
    lines += [
        "How long a run of a model and a step of training take, next to the fastest of the other engines on the same machine in the same run: "
        "each engine is a process of its own on the same cores, and they take turns. Ratio = our median / theirs, median over the rounds "
        "(lowest to highest): below 1 we are faster.", "",
        "![ratios of our time to the fastest rival's](images/performance.svg)", "",
        "## Inference", "",
        f"{_machine(infer)} {', '.join(dict.fromkeys(infer['versions'].values()))}.", "",
        "| model | threads | ours, ms | fastest rival | its ms | ratio | of peak | memory, ours / least of the rivals', MB "
        "| first outputs, ours cold / cached, s |",
        "|---|---|---|---|---|---|---|---|---|",
    ]  # fmt: skip
    for row in infer["rows"]:
        if not row["best"]:
            continue
        ours, best = row["median"][OURS], row["best"]
        low, high = row["ratio_spread"][best]
        peak = f"{row['flops'] / (ours * 1e6) / row['peak_gflops']:.0%}" if row["flops"] and row["peak_gflops"] else ""
        least = min((mb for engine, mb in row["peak_mb"].items() if engine != OURS), default=0.0)
        memory = f"{row['peak_mb'][OURS]:.0f} / {least:.0f}"
        loads = " / ".join(f"{table[OURS]:.2g}" for table in (row["cold_s"], row["cached_s"]) if OURS in table)
        lines.append(
            f"| {row['row']} | {row['threads']} | {ours:.3g} | {best} | {row['median'][best]:.3g} "
            f"| **{row['ratio'][best]:.2f}** ({low:.2f} to {high:.2f}) "
            f"| {peak} | {memory} | {loads} |"
        )
    lines += [
        "", "Of peak: the model's flops (2 for each multiply-add of its convolutions and matrix products) in our time, as a share of what the multiply-add "
        "units did in fp32 in the same minutes. Winograd's way needs fewer products than it is credited with, and 8-bit products are quicker than the "
        "peak in fp32, so both may exceed 100 %. Outputs of every engine are compared with ONNX Runtime's in the same run.", "",
        f"All engines, spreads, loading times and what was left out: `bench/results/{infer_name}.md`; again: `python bench/infer.py`.", "",
        "## Training", "",
        f"{_machine(train)} {', '.join(dict.fromkeys(train['versions'].values()))}.", "",
        "| one step: forward, backward, optimiser | threads | ours, ms | fastest rival | its ms | ratio | memory, ours / the rival's, MB |",
        "|---|---|---|---|---|---|---|",
    ]  # fmt: skip
    for row in train["rows"]:
        if not row["best"]:
            continue
        best = row["best"]
        low, high = row["ratio_spread"][best]
        lines.append(
            f"| {row['title']} | {row['threads']} | {row['median'][OURS]:.3g} | {best} | {row['median'][best]:.3g} "
            f"| **{row['ratio'][best]:.2f}** ({low:.2f} to {high:.2f}) | {row['peak_mb'][OURS]:.0f} / {row['peak_mb'][best]:.0f} |"
        )
    lines += ["", f"All rivals and losses: `bench/results/{train_name}.md`; again: `python bench/train.py`."]
    return "\n".join(lines) + "\n"


def _machine(document: dict[str, Any]) -> str:
    facts = document["machine"]
    vectors = f" ({', '.join(facts['vectors'])})" if facts.get("vectors") else ""
    return f"{facts['cpu']}{vectors}, {facts['cores']} cores, {facts['date']}."


ITEMS = {  # of a README's list: how it begins, and what is said
    "README.md": (
        (
            "- Speed of training:",
            " `python bench/train.py` compares with {rivals} in turns. On {machine} a step took {low} to {high} of the fastest rival's time:\n"
            "  [bench/results](bench/results/{name}.md). In PYNATIVE mode a whole training step is still slower than PyTorch's.",
        ),
        (
            "- Speed of inference:",
            " `python bench/infer.py` compares with {rivals} in turns. On {machine} {count} rows (models, batches, threads) took {low}\n"
            "  to {high} of the fastest rival's time, {mean} in the geometric mean: [docs/performance.md](docs/performance.md).",
        ),
    ),
    "README.zh.md": (
        (
            "- 训练速度：",
            "`python bench/train.py` 与 {rivals} 轮流对比。在 {machine}上，一步训练的用时是最快对手的 {low} 到 {high}：\n"
            "  [bench/results](bench/results/{name}.md)。PYNATIVE 模式下整个训练步仍比 PyTorch 慢。",
        ),
        (
            "- 推理速度：",
            "`python bench/infer.py` 与 {rivals} 轮流对比。在 {machine}上，{count} 行（模型、批量、线程数）的用时是最快对手的 {low}\n"
            "  到 {high}，几何平均 {mean}：[docs/performance.md](docs/performance.md)。",
        ),
    ),
}
NAMES = {"onnxruntime": "ONNX Runtime", "openvino": "OpenVINO", "torch": "PyTorch", "mindspore": "MindSpore", "jax": "JAX"}


def readme(name: str, text: str) -> str:
    """README.md or README.zh.md with the figures of the newest results."""
    for (begin, said), kind in zip(ITEMS[name], ("train", "infer"), strict=True):
        stem, document = newest(kind)
        rows = [row for row in document["rows"] if row["best"]]
        found = sorted((row["ratio"][row["best"]], row.get("title") or row["row"]) for row in rows)
        packages = dict.fromkeys(engine.partition(".")[0].partition(" ")[0] for engine in document["versions"])
        rivals = [NAMES[p] for p in packages if p in NAMES]
        low, high = (f"{ratio:.2f} ({what})" for ratio, what in (found[0], found[-1]))
        mean = f"{prod(ratio for ratio, _ in found) ** (1 / len(found)):.2f}"
        facts = document["machine"]
        machine = f"{facts['cores']} cores of an {facts['cpu']}" if name == "README.md" else f"{facts['cpu']} 的 {facts['cores']} 个核"
        joined = ", ".join(rivals) if name == "README.md" else "、".join(rivals)
        new = begin + said.format(rivals=joined, machine=machine, count=len(found), low=low, high=high, mean=mean, name=stem)
        text, changed = re.subn(rf"(?m)^{re.escape(begin)}.*?(?=\n- |\n\n)", lambda _, new=new: new, text, flags=re.DOTALL)
        assert changed == 1, f"{name} has the item {begin!r} once"
    return text
