"""Puts what two commands really printed into README.md and README.zh.md, and the second into a picture.

In: the outputs as files.  Out: the blocks behind `<!-- train -->`, `<!-- demo -->`, `<!-- twin -->` and `<!-- failed -->` in both files
(twin in docs/twin/index.md, failed in docs/field/diagnose.md, too), and images/train.svg, the terminal of the training run.
Usage: jumar run --explain examples/lenet_digits.py 2>&1 | tee train.log; scripts/demo | tee demo.log;
jumar enable resnet50.onnx --soc Ascend910B4 --compare 310P3 | tee twin.log; jumar diagnose examples/failed_job --lang en | tee failed.log;
jumar diagnose examples/failed_job --lang zh | tee failed.zh.log;
python docs/excerpt.py train=train.log demo=demo.log twin=twin.log failed=failed.log failed.zh=failed.zh.log
"""

from __future__ import annotations

import re
import sys
from html import escape
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
LAYERS = ("model", "compile time", "memory", "numerics", "speed")
COMMAND = "jumar run --explain examples/lenet_digits.py"
COLOURS = (  # of lines of the picture, by what they begin with
    (re.compile(r"\$ "), "#8ab4f8"),
    (re.compile(r"test accuracy"), "#81c995"),
    (re.compile(r"jumar run|compiled graphs|captured functions"), "#fdd663"),
    (re.compile(r"\.\.\."), "#7f868d"),
)


def demo(log: str) -> str:
    """The lines worth showing of `scripts/demo`, paths and long lists cut: the lines that were read, and the recognition model."""
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


def train(log: str) -> str:
    """A training run without its middle epochs."""
    lines = [line.rstrip() for line in log.splitlines()]
    epochs = [i for i, line in enumerate(lines) if line.startswith("epoch: ")]
    assert len(epochs) > 3, "a run of several epochs"
    return "\n".join([*lines[: epochs[2]], "...", *lines[epochs[-1] :]]).rstrip()


def twin(log: str) -> str:
    """The twin's lines, and what was measured on this CPU; long lists cut."""
    lines = [line.rstrip() for line in log.splitlines()]
    first = next(i for i, line in enumerate(lines) if line.startswith("twin "))
    end = next(i for i, line in enumerate(lines) if line.startswith("written"))
    return "\n".join([line for line in lines[:first] if line.startswith(("model ", "speed "))] + lines[first:end])


def picture(text: str) -> str:
    """The text in a terminal, as SVG that needs no font and no network."""
    lines = [f"$ {COMMAND}", *text.splitlines()]
    width, height = 8.43 * max(map(len, lines)) + 40, 20 * len(lines) + 62
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height}" width="{width:.0f}" height="{height}">',
        f'<rect width="{width:.0f}" height="{height}" rx="8" fill="#1f2227"/>',
        *(f'<circle cx="{22 + 20 * i}" cy="20" r="6" fill="{c}"/>' for i, c in enumerate(("#ff5f57", "#febc2e", "#28c840"))),
        '<g font-family="DejaVu Sans Mono, Menlo, Consolas, monospace" font-size="14" xml:space="preserve" style="white-space:pre">',
    ]
    for i, line in enumerate(lines):
        fill = next((colour for begin, colour in COLOURS if begin.match(line)), "#e3e6ea")
        parts.append(f'<text x="20" y="{58 + 20 * i}" fill="{fill}">{escape(line)}</text>')
    return "\n".join([*parts, "</g>", "</svg>"]) + "\n"


def failed(log: str) -> str:
    """A verdict, lines of its evidence cut."""
    return "\n".join(line.rstrip() for line in log.splitlines()).rstrip()


PLACES = {  # of each block; one that is the same in both languages stands in both
    "twin": ("README.md", "README.zh.md", "docs/twin/index.md"),
    "failed": ("README.md", "docs/field/diagnose.md"),
    "failed.zh": ("README.zh.md",),
}


def put(kind: str, block: str) -> None:
    """The block behind its mark in the files that show it."""
    for name in PLACES.get(kind, ("README.md", "README.zh.md")):
        path = ROOT / name
        mark = re.compile(rf"(<!-- {kind.removesuffix('.zh')} -->\n+```text\n).*?(\n```)", re.DOTALL)
        text, count = mark.subn(lambda m: m[1] + block + m[2], path.read_text(encoding="utf-8"))
        assert count == 1, f"{name} has one block marked {kind}"
        path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    for argument in sys.argv[1:]:
        kind, _, file = argument.partition("=")
        log = Path(file).read_text(encoding="utf-8")
        block = {"demo": demo, "train": train, "twin": twin, "failed": failed, "failed.zh": failed}[kind](log)
        put(kind, block)
        if kind == "train":
            (ROOT / "docs" / "images" / "train.svg").write_text(picture(block), encoding="utf-8")
