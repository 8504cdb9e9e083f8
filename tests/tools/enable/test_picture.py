"""The graph picture: boxes apart from each other, every edge drawn, large graphs drawn together."""

from __future__ import annotations

import re

from jumar.tools.enable.facts import GraphNode
from jumar.tools.enable.picture import BOX_HEIGHT, BOX_WIDTH, LARGEST, picture


def chain(count: int, skip: int = 0) -> list[GraphNode]:
    """A chain in which every fifth box also reads the one `skip` before."""
    found = []
    for i in range(count):
        inputs = (i - 1,) if not skip or i % 5 or i < skip else (i - 1, i - skip)
        found.append(GraphNode(f"op {i}", "contraction", "f32[1]", "", inputs))
    return found


def corners(svg: str) -> list[tuple[float, float]]:
    return [(float(x), float(y)) for x, y in re.findall(r'<rect x="([\d.]+)" y="([\d.]+)" width="216"', svg)]


def test_boxes_do_not_overlap_and_lie_inside() -> None:
    svg = picture(chain(60, skip=3), ["x: f32[1]"])
    found = corners(svg)
    assert len(found) == 61
    width, height = map(int, re.findall(r'viewBox="0 0 (\d+) (\d+)"', svg)[0])
    for i, (x, y) in enumerate(found):
        assert 0 <= x <= width - BOX_WIDTH
        assert 0 <= y <= height - BOX_HEIGHT
        assert all(abs(x - u) >= BOX_WIDTH or abs(y - v) >= BOX_HEIGHT for u, v in found[:i])


def test_every_edge_is_drawn_once() -> None:
    nodes = chain(40, skip=12)
    assert picture(nodes, ["x"]).count('class="edge"') == sum(len(n.inputs) for n in nodes)


def test_a_large_graph_is_drawn_with_its_chains_together() -> None:
    assert len(corners(picture(chain(2 * LARGEST), ["x"]))) < LARGEST / 4


def test_names_are_escaped() -> None:
    svg = picture([GraphNode("<script>", "other", "f32[1]", "a & b", (-1,))], ["x"])
    assert "<script>" not in svg
    assert "&lt;script&gt;" in svg
