"""Charts of the twin as SVG text: the NPU's timeline, the roofline, and the memory of the device.

In: facts of twin_facts.py.  Out: SVG elements that take their colours from the page's style sheet.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from html import escape

from jumar.tools.enable.charts import LEFT, RIGHT, WIDTH, axis_x, axis_y, open_svg
from jumar.tools.enable.twin_facts import Bar, Ceiling, DeviceMemoryFact, KernelFact, TwinFact
from jumar.tools.enable.units import count_text, ms_text, nbytes_text

Place = Callable[[float], float]  # a value's coordinate
LANES = ("host", "cube", "vector", "ai cpu", "dvpp", "communication")
COLOUR = {  # of a lane, a unit or a bottleneck, from the page's palette
    "host": "host", "cube": "contraction", "vector": "elementwise", "ai cpu": "reduction", "dvpp": "other", "communication": "movement",
    "mte2": "fused", "mte3": "movement", "scalar": "other", "launch": "input", "cube + vector": "fused",
}  # fmt: skip
PART_COLOURS = ("contraction", "elementwise", "movement", "reduction", "fused", "other")
THIN = 3.0  # a bar that has no room for an edge
LEAST_WIDTH = 0.35  # of a bar that would not be seen


def us_text(time_us: float) -> str:
    """Microseconds as people read them.

    >>> us_text(12.34), us_text(1234.5)
    ('12.3 µs', '1.23 ms')
    """
    return ms_text(time_us / 1000)


def npu_timeline(twin: TwinFact) -> str:
    """One row for each lane that has work, one bar for each kernel on it."""
    lanes = sorted({b.lane for b in twin.bars}, key=lambda lane: LANES.index(lane) if lane in LANES else len(LANES))
    end = max((b.start_us + b.time_us for b in twin.bars), default=0.0) or 1.0
    scale = (WIDTH - LEFT - RIGHT) / end
    row, top = 34, 8
    parts = [open_svg(top + row * len(lanes) + 30, f"predicted timeline of one run on {twin.soc}, a row for each unit")]
    for number, lane in enumerate(lanes):
        y = top + number * row
        parts.append(f'<text class="axis" x="{LEFT - 8}" y="{y + 18}" text-anchor="end">{escape(_short_lane(lane))}</text>')
        parts.append(f'<rect class="track" x="{LEFT}" y="{y}" width="{WIDTH - LEFT - RIGHT}" height="{row - 6}"/>')
    for bar in twin.bars:
        x, width, y = LEFT + bar.start_us * scale, max(bar.time_us * scale, LEAST_WIDTH), top + lanes.index(bar.lane) * row
        kind = f"bar{'' if width > THIN else ' thin'} k-{COLOUR.get(bar.lane, 'other')}"
        parts.append(
            f'<rect class="{kind}" x="{x:.2f}" y="{y}" width="{width:.2f}" height="{row - 6}">'
            f"<title>{escape(_bar_tip(bar, twin.kernels))}</title></rect>"
        )
        if width > 7 * len(bar.label) + 8:
            parts.append(f'<text class="inbar" x="{x + width / 2:.1f}" y="{y + 18}" text-anchor="middle">{escape(bar.label)}</text>')
    return "".join([*parts, *axis_x(end, scale, top + row * len(lanes), us_text, 0.0), "</svg>"])


def _short_lane(lane: str) -> str:
    return "comm." if lane == "communication" else lane


def _bar_tip(bar: Bar, kernels: Sequence[KernelFact]) -> str:
    if not 0 <= bar.kernel < len(kernels):
        return f"{bar.label}\n{us_text(bar.time_us)}"
    k = kernels[bar.kernel]
    return "\n".join(
        t for t in (f"{k.index}: {k.kind} {k.label}", f"{us_text(k.time_us)} ({us_text(k.low_us)} to {us_text(k.high_us)}), by {k.bottleneck}", k.place) if t
    )  # fmt: skip


# ---------------------------------------------------------------------- roofline
def roofline(twin: TwinFact) -> str:
    """Kernels by operations a byte and operations a second, both as powers of ten, under the chip's ceilings."""
    shown = [k for k in twin.kernels if k.flops > 0 and k.nbytes > 0 and k.time_us > 0]
    tops = [c for c in twin.ceilings if c.unit != "bytes/s"]
    slopes = [c for c in twin.ceilings if c.unit == "bytes/s"]
    if not shown or not tops or not slopes:
        return ""
    low_x, high_x = _decades([k.intensity for k in shown] + [1.0, max(t.value for t in tops) / min(s.value for s in slopes) * 2])
    low_y, high_y = _decades([k.flops_per_s for k in shown] + [max(t.value for t in tops) * 1.1])
    height, top, bottom = 380, 14, 46
    inner = height - top - bottom
    scale_x, scale_y = (WIDTH - LEFT - RIGHT) / (high_x - low_x), inner / (high_y - low_y)

    def at_x(value: float) -> float:
        return LEFT + (math.log10(value) - low_x) * scale_x

    def at_y(value: float) -> float:
        return top + inner - (math.log10(value) - low_y) * scale_y

    parts = [open_svg(height, f"roofline of {twin.soc}: operations a byte across, operations a second up")]
    for power in range(low_x, high_x + 1):
        x = LEFT + (power - low_x) * scale_x
        parts.append(f'<line class="grid" x1="{x:.1f}" x2="{x:.1f}" y1="{top}" y2="{top + inner}"/>')
        anchor = "end" if power == high_x else "middle"
        parts.append(f'<text class="axis" x="{x:.1f}" y="{top + inner + 18}" text-anchor="{anchor}">{10.0**power:g}</text>')
    for power in range(low_y, high_y + 1):
        y = top + inner - (power - low_y) * scale_y
        parts.append(f'<line class="grid" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>')
        parts.append(f'<text class="axis" x="{LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">{count_text(10.0**power)}op/s</text>')
    parts.append(
        f'<text class="axis" x="{WIDTH - RIGHT}" y="{height - 6}" text-anchor="end">operations for each byte of the kernel\'s tensors</text>'
    )
    parts += _ceilings(tops, slopes, 10.0**low_x, 10.0**high_x, at_x, at_y, 10.0**low_y)
    largest = max(k.time_us for k in shown)
    for k in sorted(shown, key=lambda k: -k.time_us):  # small ones on top
        radius = 2.5 + 9 * math.sqrt(k.time_us / largest)
        tip = (
            f"{k.index}: {k.kind} {k.label}\n{us_text(k.time_us)}, by {k.bottleneck}\n"
            f"{count_text(k.flops_per_s)}op/s at {k.intensity:.3g} operations a byte\n{k.place}"
        )
        parts.append(
            f'<circle class="dot k-{COLOUR.get(k.bottleneck, "other")}" cx="{at_x(k.intensity):.1f}" cy="{at_y(k.flops_per_s):.1f}" r="{radius:.1f}">'
            f"<title>{escape(tip)}</title></circle>"
        )
    return "".join([*parts, "</svg>"])


def _ceilings(
    tops: Sequence[Ceiling], slopes: Sequence[Ceiling], low: float, high: float, at_x: Place, at_y: Place, floor: float
) -> list[str]:
    """Flat lines of the units, and slopes of the memories up to the highest of them."""
    parts = []
    best = max(t.value for t in tops)
    for number, t in enumerate(sorted(tops, key=lambda c: -c.value)):
        left = max(low, t.value / max(s.value for s in slopes))
        y = at_y(t.value)
        parts.append(f'<line class="arena" x1="{at_x(min(left, high)):.1f}" x2="{at_x(high):.1f}" y1="{y:.1f}" y2="{y:.1f}"/>')
        lift = 12 if number and y - at_y(best) < 14 else -5  # two lines near each other: the label of the lower stands below
        parts.append(
            f'<text class="arena-text" x="{at_x(high) - 4:.1f}" y="{y + lift:.1f}" text-anchor="end">{escape(t.name)} {count_text(t.value)}op/s</text>'
        )
    for s in slopes:
        start, end = max(low, floor / s.value), min(high, best / s.value)
        parts.append(
            f'<line class="bound" x1="{at_x(start):.1f}" y1="{at_y(start * s.value):.1f}" x2="{at_x(end):.1f}" y2="{at_y(end * s.value):.1f}"/>'
        )
        middle = start * (end / start) ** 0.3
        angle = -math.degrees(math.atan2(at_y(start * s.value) - at_y(end * s.value), at_x(end) - at_x(start)))
        x, y = at_x(middle), at_y(middle * s.value) - 6
        parts.append(
            f'<text class="bound-text" x="{x:.1f}" y="{y:.1f}" transform="rotate({angle:.1f} {x:.1f} {y:.1f})">'
            f"{escape(s.name)} {count_text(s.value)}B/s</text>"
        )
    return parts


def _decades(values: Sequence[float]) -> tuple[int, int]:
    """Powers of ten that hold all values, at least two of them."""
    low, high = math.floor(math.log10(min(values))), math.ceil(math.log10(max(values)))
    return low, max(high, low + 1)


# ---------------------------------------------------------------------- memory
def memory_bar(memory: DeviceMemoryFact) -> str:
    """What fills the chip's memory: its parts side by side, against what is there."""
    full = max(memory.capacity_nbytes, memory.peak_nbytes, 1)
    scale = (WIDTH - LEFT - RIGHT) / full
    top, tall = 22, 34
    parts = [open_svg(top + tall + 34, "the device's memory and what fills it")]
    parts.append(f'<rect class="track" x="{LEFT}" y="{top}" width="{memory.capacity_nbytes * scale:.1f}" height="{tall}"/>')
    at = 0.0
    for number, part in enumerate(memory.parts):
        width = part.nbytes * scale
        colour = PART_COLOURS[number % len(PART_COLOURS)]
        parts.append(
            f'<rect class="bar k-{colour}" x="{LEFT + at:.2f}" y="{top}" width="{max(width, LEAST_WIDTH):.2f}" height="{tall}">'
            f"<title>{escape(part.name)}: {nbytes_text(part.nbytes)}</title></rect>"
        )
        at += width
    x = LEFT + memory.capacity_nbytes * scale
    parts.append(f'<line class="arena" x1="{x:.1f}" x2="{x:.1f}" y1="{top - 4}" y2="{top + tall + 4}"/>')
    parts.append(
        f'<text class="arena-text" x="{x - 4:.1f}" y="14" text-anchor="end">on the chip {nbytes_text(memory.capacity_nbytes)}</text>'
    )
    if 0 < memory.usable_nbytes < memory.capacity_nbytes:
        x = LEFT + memory.usable_nbytes * scale
        parts.append(f'<line class="bound" x1="{x:.1f}" x2="{x:.1f}" y1="{top - 4}" y2="{top + tall + 4}"/>')
    parts.append(f'<text class="axis" x="{LEFT - 8}" y="{top + 21}" text-anchor="end">peak</text>')
    return "".join([*parts, *axis_x(full, scale, top + tall + 4, nbytes_text, 0.0, base=1024), "</svg>"])


def memory_legend(memory: DeviceMemoryFact) -> list[tuple[str, str]]:
    """Colour and meaning of the parts."""
    return [(PART_COLOURS[i % len(PART_COLOURS)], f"{p.name}, {nbytes_text(p.nbytes)}") for i, p in enumerate(memory.parts)]


def live_curve(memory: DeviceMemoryFact) -> str:
    """Live bytes of activations, kernel by kernel."""
    live = memory.live_nbytes or (0,)
    high = max(memory.planned_nbytes, *live, 1) * 1.12
    height, top, bottom = 210, 26, 34
    inner = height - top - bottom
    scale_x, scale_y = (WIDTH - LEFT - RIGHT) / len(live), inner / high
    base = top + inner
    points = [f"{LEFT},{base}"]
    for i, value in enumerate(live):
        y = base - value * scale_y
        points += [f"{LEFT + i * scale_x:.1f},{y:.1f}", f"{LEFT + (i + 1) * scale_x:.1f},{y:.1f}"]
    points.append(f"{LEFT + len(live) * scale_x:.1f},{base}")
    parts = [open_svg(height, "live bytes on the device, kernel by kernel"), *axis_y(high, scale_y, base)]
    parts.append(f'<polygon class="live" points="{" ".join(points)}"/>')
    for value, kind, text, x in (
        (memory.bound_nbytes, "bound", f"lower bound {nbytes_text(memory.bound_nbytes)}", WIDTH - RIGHT - 190),
        (memory.planned_nbytes, "arena", f"planned {nbytes_text(memory.planned_nbytes)}", WIDTH - RIGHT - 4),
    ):
        if value:
            y = base - value * scale_y
            parts.append(f'<line class="{kind}" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>')
            parts.append(f'<text class="{kind}-text" x="{x}" y="14" text-anchor="end">{text}</text>')
    return "".join([*parts, *axis_x(len(live), scale_x, base, lambda v: f"kernel {v:.0f}", 1.0), "</svg>"])
