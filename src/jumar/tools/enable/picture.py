"""The picture of a graph as SVG: layers downwards, each branch in a lane of its own, columns like a newspaper's from left to right.

In: `GraphNode` values in an order where inputs come first.  Out: one SVG element.  Graphs with more than `LARGEST` boxes are shown with
their straight chains drawn together, so that the shape of the network stays readable.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from jumar.tools.enable.facts import GraphNode

LARGEST = 260
BOX_WIDTH, BOX_HEIGHT, GAP_X, GAP_Y = 216, 40, 30, 22
ROWS, GUTTER, MARGIN = 10, 44, 34  # rows of a column; the space between columns and above them, where edges from column to column run


@dataclass
class _Box:
    title: str
    second: str
    kind: str
    tip: str
    inputs: list[int]
    row: int = 0
    lane: int = 0


def picture(nodes: Sequence[GraphNode], inputs: Sequence[str]) -> str:
    """The graph drawn.   inputs: names and types of the graph's inputs."""
    boxes = [_Box(_short(text), "input", "input", text, []) for text in inputs]
    first = len(boxes)
    for n in nodes:
        edges = [(-1 - i) if i < 0 else i + first for i in n.inputs]
        tip = "\n".join(t for t in (n.title, n.type, n.place, n.detail) if t)
        boxes.append(_Box(_short(n.title), _short(n.type, 34), n.kind, tip, list(dict.fromkeys(edges))))
    if len(boxes) > LARGEST:
        boxes = _collapse(boxes)
    _place(boxes)
    return _draw(boxes)


def _short(text: str, limit: int = 25) -> str:
    return text if len(text) <= limit else text[: limit - 1] + "…"


def _collapse(boxes: list[_Box]) -> list[_Box]:
    """Boxes of a straight chain (one reader, one input) become one box that names how many they are."""
    readers: dict[int, int] = {}
    for b in boxes:
        for i in b.inputs:
            readers[i] = readers.get(i, 0) + 1
    group: dict[int, int] = {}
    members: list[list[int]] = []
    for i, b in enumerate(boxes):
        before = b.inputs[0] if len(b.inputs) == 1 else -1
        if before >= 0 and readers.get(before) == 1 and boxes[before].kind != "input" and len(members[group[before]]) < 24:
            group[i] = group[before]
            members[group[i]].append(i)
        else:
            group[i] = len(members)
            members.append([i])
    merged = []
    for chain in members:
        head, tail = boxes[chain[0]], boxes[chain[-1]]
        edges = list(dict.fromkeys(group[i] for i in head.inputs))
        if len(chain) == 1:
            merged.append(_Box(head.title, head.second, head.kind, head.tip, edges))
            continue
        kinds = [boxes[i].kind for i in chain]
        kind = "contraction" if "contraction" in kinds else max(set(kinds), key=kinds.count)
        tip = "\n".join(boxes[i].tip.split("\n")[0] for i in chain)
        merged.append(_Box(f"{len(chain)} steps: {head.title}"[:30], tail.second, kind, tip, edges))
    return merged


def _place(boxes: list[_Box]) -> None:
    """Rows by depth; a box stays in its first input's lane if that is free, else takes the nearest free one."""
    for b in boxes:
        b.row = 1 + max((boxes[i].row for i in b.inputs), default=-1)
    taken: set[tuple[int, int]] = set()
    followed: set[int] = set()
    for i in sorted(range(len(boxes)), key=lambda i: (boxes[i].row, i)):
        b = boxes[i]
        wanted = 0
        if b.inputs:
            parent = max(b.inputs, key=lambda j: (j not in followed, boxes[j].row))
            wanted = boxes[parent].lane + (1 if parent in followed else 0)
            followed.add(parent)
        lane = next(c for d in range(len(boxes) + 1) for c in (wanted + d, wanted - d) if c >= 0 and (b.row, c) not in taken)
        b.lane = lane
        taken.add((b.row, lane))


@dataclass(frozen=True)
class _Columns:
    """Where each column of rows stands.   left: x of its first lane; right: x where its gutter begins."""

    rows: int
    left: tuple[int, ...]
    right: tuple[int, ...]

    def corner(self, b: _Box) -> tuple[int, int]:
        """Upper left corner of a box."""
        return self.left[b.row // self.rows] + b.lane * (BOX_WIDTH + GAP_X), MARGIN + (b.row % self.rows) * (BOX_HEIGHT + GAP_Y)


def _columns(boxes: list[_Box]) -> _Columns:
    depth = 1 + max((b.row for b in boxes), default=0)
    rows = depth if depth <= ROWS + 4 else ROWS
    left, right, x = [], [], 12
    for column in range(-(-depth // rows)):
        lanes = [b.lane for b in boxes if b.row // rows == column]
        left.append(x)
        x += (1 + max(lanes, default=0)) * (BOX_WIDTH + GAP_X)
        right.append(x)
        x += GUTTER
    return _Columns(rows, tuple(left), tuple(right))


def _draw(boxes: list[_Box]) -> str:
    columns = _columns(boxes)
    depth = 1 + max((b.row for b in boxes), default=0)
    width, height = columns.right[-1] + 12, MARGIN + min(columns.rows, depth) * (BOX_HEIGHT + GAP_Y)
    occupied = {(b.row, b.lane) for b in boxes}
    parts = [
        f'<svg class="graph" viewBox="0 0 {width} {height}" width="{width}" height="{height}" role="img" aria-label="the fused graph">'
    ]
    for b in boxes:
        for i in b.inputs:
            parts.append(f'<path class="edge" d="{_path(boxes[i], b, occupied, columns)}"/>')
    for b in boxes:
        x, y = columns.corner(b)
        parts.append(
            f'<g class="box k-{b.kind}"><title>{escape(b.tip)}</title><rect x="{x}" y="{y}" width="{BOX_WIDTH}" height="{BOX_HEIGHT}" rx="6"/>'
            f'<text class="op" x="{x + 10}" y="{y + 17}">{escape(b.title)}</text>'
            f'<text class="type" x="{x + 10}" y="{y + 32}">{escape(b.second)}</text></g>'
        )
    return "".join([*parts, "</svg>"])


def _path(a: _Box, b: _Box, occupied: set[tuple[int, int]], columns: _Columns) -> str:
    (ax, ay), (bx, by) = columns.corner(a), columns.corner(b)
    start, end = a.row // columns.rows, b.row // columns.rows
    if start != end:
        # by the gutter beside the column, and above the columns where there are some between; spread so that they stay apart
        y1, y2, spread = ay + BOX_HEIGHT / 2, by + BOX_HEIGHT / 2, 4.0 * (a.row % 8)
        x1, x2 = columns.right[start] - GAP_X + 18 + spread, columns.left[end] - 14 - spread / 3
        if end == start + 1:
            bend = _toward(y1, y2)
            return f"{_out(ax, y1, x1, y1 + bend)} L{x1} {y2 - bend} Q{x1} {y2} {x1 + 8} {y2} L{bx} {y2}"
        top = MARGIN - 8 - 3 * (a.row % 8)
        return f"{_out(ax, y1, x1, y1 - 8)} L{x1} {top} L{x2} {top} L{x2} {y2 - 8} Q{x2} {y2} {x2 + 8} {y2} L{bx} {y2}"
    blocked = any((row, a.lane) in occupied for row in range(a.row + 1, b.row))
    if blocked:
        # around the right side, in the gap between lanes; longer skips further out so that they stay apart
        far = ax + BOX_WIDTH + min(26, 7 + 2 * (b.row - a.row))
        y1, y2 = ay + BOX_HEIGHT / 2, by + BOX_HEIGHT / 2
        side = bx + BOX_WIDTH if b.lane <= a.lane else bx
        return f"M{ax + BOX_WIDTH} {y1} C{far} {y1} {far} {y1} {far} {y1 + 14} L{far} {y2 - 14} C{far} {y2} {far} {y2} {side} {y2}"
    x1, y1, x2, y2 = ax + BOX_WIDTH / 2, ay + BOX_HEIGHT, bx + BOX_WIDTH / 2, by
    if x1 == x2:
        return f"M{x1} {y1} L{x2} {y2}"
    # straight down the own lane, then over in the last gap
    turn = y2 - GAP_Y
    return f"M{x1} {y1} L{x1} {turn} C{x1} {turn + 14} {x2} {turn + 6} {x2} {y2}"


def _out(ax: int, y: float, x: float, turned: float) -> str:
    """From a box's right side to a gutter, and round the corner."""
    return f"M{ax + BOX_WIDTH} {y} L{x - 8} {y} Q{x} {y} {x} {turned}"


def _toward(y1: float, y2: float) -> int:
    """A step of a rounded corner in the direction of y2."""
    return 0 if y1 == y2 else 8 if y2 > y1 else -8
