"""Charts as SVG text: the timeline of one run, live memory over the steps, and the map of the arena.

In: facts.  Out: SVG elements that take their colours from the page's style sheet (classes `k-conv` and so on).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from html import escape

from jumar.tools.enable.facts import Block, MemoryFact, StepFact
from jumar.tools.enable.units import ms_text, nbytes_text, plural

WIDTH, LEFT, RIGHT = 1120, 78, 12


COLOURS = ("contraction", "elementwise", "reduction", "movement", "fused", "other")  # of the largest values; `input` for the rest


def timeline(steps: Sequence[StepFact]) -> str:
    """One row for each thread, one bar for each step on it."""
    bars = [(lane, s) for s in steps for lane in (s.lanes or ())]
    if not bars:
        at, made = 0.0, []
        for s in steps:
            made.append(((0, at, at + s.time_ms), s))
            at += s.time_ms
        bars = made
    threads = sorted({lane[0] for lane, _ in bars})
    end = max((lane[2] for lane, _ in bars), default=0.0) or 1.0
    scale = (WIDTH - LEFT - RIGHT) / end
    row, top = 34, 8
    height = top + row * len(threads) + 30
    parts = [open_svg(height, "timeline of one run, a row for each thread")]
    for number, thread in enumerate(threads):
        y = top + number * row
        parts.append(f'<text class="axis" x="{LEFT - 8}" y="{y + 18}" text-anchor="end">thread {thread}</text>')
        parts.append(f'<rect class="track" x="{LEFT}" y="{y}" width="{WIDTH - LEFT - RIGHT}" height="{row - 6}"/>')
    for (thread, start, stop), s in bars:
        x, width, y = LEFT + start * scale, max((stop - start) * scale, 0.35), top + threads.index(thread) * row
        tip = f"step {s.index}: {s.label}\n{ms_text(s.time_ms)}" + (f"\n{s.place}" if s.place else "")
        parts.append(
            f'<rect class="bar k-{s.kind}" x="{x:.2f}" y="{y}" width="{width:.2f}" height="{row - 6}"><title>{escape(tip)}</title></rect>'
        )
        shown = s.label.split("(")[0].split(" ")[0]
        if width > 7 * len(shown) + 8:
            parts.append(f'<text class="inbar" x="{x + width / 2:.1f}" y="{y + 18}" text-anchor="middle">{escape(shown)}</text>')
    parts += axis_x(end, scale, top + row * len(threads), ms_text, 0.0)
    return "".join([*parts, "</svg>"])


def memory_curve(memory: MemoryFact) -> str:
    """Live bytes at each step as an area, the arena and the lower bound as lines."""
    live = memory.live_nbytes or (0,)
    high = max(memory.peak_nbytes, *live, 1) * 1.12
    height, top, bottom = 256, 26, 34
    inner = height - top - bottom
    scale_x, scale_y = (WIDTH - LEFT - RIGHT) / len(live), inner / high
    base = top + inner
    parts = [open_svg(height, "live bytes at each step, against the size of the arena"), *axis_y(high, scale_y, base)]
    points = [f"{LEFT},{base}"]
    for i, value in enumerate(live):
        y = base - value * scale_y
        points += [f"{LEFT + i * scale_x:.1f},{y:.1f}", f"{LEFT + (i + 1) * scale_x:.1f},{y:.1f}"]
    points.append(f"{LEFT + len(live) * scale_x:.1f},{base}")
    parts.append(f'<polygon class="live" points="{" ".join(points)}"/>')
    # the two lines often lie on each other and on the curve: their labels stand above the chart
    for value, kind, text, right in (
        (memory.bound_nbytes, "bound", f"lower bound {nbytes_text(memory.bound_nbytes)}", WIDTH - RIGHT - 190),
        (memory.peak_nbytes, "arena", f"arena {nbytes_text(memory.peak_nbytes)}", WIDTH - RIGHT - 4),
    ):
        y = base - value * scale_y
        parts.append(f'<line class="{kind}" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>')
        parts.append(f'<text class="{kind}-text" x="{right}" y="14" text-anchor="end">{text}</text>')
    parts += axis_x(len(live), scale_x, base, lambda v: f"step {v:.0f}", 1.0)
    return "".join([*parts, "</svg>"])


def arena_map(memory: MemoryFact) -> str:
    """Every value as a rectangle: its steps across, its bytes of the arena up."""
    steps = max((b.last for b in memory.blocks), default=0) + 1
    high = max(memory.peak_nbytes, 1)
    height, top, bottom = 300, 10, 34
    inner = height - top - bottom
    scale_x, scale_y = (WIDTH - LEFT - RIGHT) / steps, inner / high
    base = top + inner
    parts = [open_svg(height, "map of the arena: steps across, bytes up"), *axis_y(high, scale_y, base)]
    colours = {id(b): number for number, b in enumerate(_largest(memory))}
    for b in memory.blocks:
        x, width = LEFT + b.first * scale_x, (b.last - b.first + 1) * scale_x
        y, tall = base - (b.offset + b.nbytes) * scale_y, b.nbytes * scale_y
        tip = f"{b.label}\n{nbytes_text(b.nbytes)} at {nbytes_text(b.offset)}\nsteps {b.first} to {b.last}"
        parts.append(
            f'<rect class="block c{colours.get(id(b), len(COLOURS))}" x="{x:.2f}" y="{y:.2f}" width="{max(width, 0.5):.2f}" height="{max(tall, 0.5):.2f}">'
            f"<title>{escape(tip)}</title></rect>"
        )
    parts += axis_x(steps, scale_x, base, lambda v: f"step {v:.0f}", 1.0)
    return "".join([*parts, "</svg>"])


def arena_legend(memory: MemoryFact) -> list[tuple[str, str]]:
    """Colour and meaning: the largest values, and all others."""
    shown = _largest(memory)
    found = [(colour, f"{b.label}, {nbytes_text(b.nbytes)}") for colour, b in zip(COLOURS, shown, strict=False)]
    rest = len(memory.blocks) - len(shown)
    return [*found, ("input", plural(rest, "smaller value"))] if rest else found


def _largest(memory: MemoryFact) -> list[Block]:
    return sorted(memory.blocks, key=lambda b: -b.nbytes)[: len(COLOURS)]


def share_bar(share: float) -> str:
    """A small bar for a table cell.   share: 0 to 1."""
    width = 120
    return (
        f'<svg class="share" width="{width}" height="10" role="img" aria-label="{100 * share:.0f} %">'
        f'<rect class="track" width="{width}" height="10"/><rect class="fill" width="{width * min(share, 1):.1f}" height="10"/></svg>'
    )


def open_svg(height: int, label: str) -> str:
    """The start of a chart."""
    return f'<svg class="chart" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}" role="img" aria-label="{escape(label)}">'


def ticks(end: float, *, least: float = 0.0, base: int = 10) -> list[float]:
    """About five round numbers from 0 to `end`.   least: the smallest distance; base 1024: round in bytes.

    >>> ticks(9.3), ticks(3, least=1.0), [t / 1024 for t in ticks(7000, base=1024)]
    ([0.0, 2.0, 4.0, 6.0, 8.0], [0.0, 1.0, 2.0, 3.0], [0.0, 2.0, 4.0, 6.0])
    """
    wanted = max(end / 5, least, 1e-12)
    power = float(base) ** math.floor(math.log(wanted, base))
    factors = (1, 2, 5, 10) if base == 10 else tuple(2**i for i in range(11))
    step = next((f * power for f in factors if f * power >= wanted * 0.999), factors[-1] * power)
    return [i * step for i in range(int(end / step + 1e-9) + 1)]


def axis_x(end: float, scale: float, y: float, text: Callable[[float], str], least: float, *, base: int = 10) -> list[str]:
    """The axis below a chart, from 0 to `end`."""
    parts = [f'<line class="rule" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y}" y2="{y}"/>']
    for value in ticks(end, least=least, base=base):
        x = LEFT + value * scale
        anchor = "start" if not value else "end" if x > WIDTH - RIGHT - 24 else "middle"
        parts.append(
            f'<text class="axis" x="{x:.1f}" y="{y + 20:.1f}" text-anchor="{anchor}">{escape(text(value)) if value else "0"}</text>'
        )
    return parts


def axis_y(high: float, scale: float, base: float) -> list[str]:
    """Bytes at the left of a chart, from 0 to `high`."""
    parts = []
    for value in ticks(high, least=1.0, base=1024):
        y = base - value * scale
        parts.append(f'<line class="grid" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>')
        parts.append(f'<text class="axis" x="{LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">{nbytes_text(value)}</text>')
    return parts
