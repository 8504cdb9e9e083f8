"""Puts what `scripts/demo` really printed into README.md and README.zh.md.

In: the demo's output as a file.  Out: the block of text under "Two commands" in both files: the lines that were read, and the recognition model.
Usage: scripts/demo | tee demo.log; python docs/excerpt.py demo.log
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
LAYERS = ("model", "compile time", "memory", "numerics", "speed")


def excerpt(log: str) -> str:
    """The lines worth showing, paths and long lists cut."""
    lines = [line.rstrip() for line in log.splitlines()]
    pictures = [line for line in lines[: _start(lines, 0)] if line.startswith("picture") or re.match(r" +\d+  .*\(0\.\d+\)$", line)]
    last = lines[_start(lines, 2) :]
    shown = []
    for at, line in enumerate(last):
        name = line[:15].strip()
        if name in LAYERS or name == "environment":
            shown.append(line)
        elif name == "graph engine":
            steps = [s for s in last[at:] if re.search(r"\d+ -> \d+", s)]
            first, final = (re.search(r"(\d+) +-> (\d+)", s) for s in (steps[0], steps[-1]))
            assert first and final, "passes print before -> after"
            shown.append(f"graph engine   {first[1]} operators -> {final[2]} fused groups and operators")
        elif "measured on this machine" in line:
            shown.append(line)
    return "\n".join([*(re.sub(r", drawn in .*", "", p) for p in pictures), "...", *shown])


def _start(lines: list[str], number: int) -> int:
    """Where the report of model `number` begins."""
    return [i for i, line in enumerate(lines) if line.startswith("environment")][number]


if __name__ == "__main__":
    block = excerpt(Path(sys.argv[1]).read_text(encoding="utf-8"))
    for name in ("README.md", "README.zh.md"):
        path = ROOT / name
        text = path.read_text(encoding="utf-8")
        path.write_text(re.sub(r"```text\n.*?\n```", lambda _: f"```text\n{block}\n```", text, count=1, flags=re.DOTALL), encoding="utf-8")
