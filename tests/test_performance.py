"""The page of performance: what its generator makes of results."""

from __future__ import annotations

from xml.etree import ElementTree

from docs import performance


def result(name: str, ratio: float, threads: int = 2, best: str = "openvino") -> dict[str, object]:
    return {
        "row": name, "title": name, "threads": threads, "best": best, "ratio": {best: ratio}, "ratio_spread": {best: [ratio - 0.05, ratio + 0.05]},
    }  # fmt: skip


INFER = {
    "rows": [
        result("net_b1_int8", 0.9),
        result("net_b1", 0.8),
        result("net_b1", 0.7, threads=1),
        result("slow_b1", 3.25),
        result("alone", 0, best=""),
    ]
}
TRAIN = {"rows": [result("MLP & friends", 0.4, best="torch")]}


def test_bars_are_rows_with_two_threads_and_a_rival_in_groups() -> None:
    bars = performance.bars(INFER, TRAIN)
    assert [(b.group, b.name, b.ratio) for b in bars] == [
        ("inference, fp32", "net_b1", 0.8),
        ("inference, fp32", "slow_b1", 3.25),
        ("inference, int8", "net_b1_int8", 0.9),
        ("one training step, fp32", "MLP & friends", 0.4),
    ]


def test_the_chart_is_well_formed_and_its_bars_are_as_long_as_the_ratios() -> None:
    root = ElementTree.fromstring(performance.chart(performance.bars(INFER, TRAIN)))
    space = "{http://www.w3.org/2000/svg}"
    rects = [r for r in root.iter(f"{space}rect") if r.get("class") in ("win", "lose")]
    one = (performance.WIDTH - performance.LEFT - performance.RIGHT) / performance.LONGEST
    assert [r.get("class") for r in rects] == ["win", "lose", "win", "win"]
    assert [float(r.get("width", 0)) for r in rects] == [round(n * one, 1) for n in (0.8, performance.LONGEST, 0.9, 0.4)]
    shown = ["".join(t.itertext()) for t in root.iter(f"{space}text")]
    assert "3.25 openvino" in shown  # a bar that is cut off tells its number


def test_the_readme_items_are_replaced_and_nothing_else_is() -> None:
    for name, ends in (
        ("README.md", ("- Speed of training:", "- Speed of inference:")),
        ("README.zh.md", ("- 训练速度：", "- 推理速度：")),
    ):
        before = f"text\n- first\n{ends[0]} old\n  and more\n{ends[1]} old\n- last\n\nend\n"
        lines = performance.readme(name, before).splitlines()
        assert lines[:2] == ["text", "- first"]
        assert lines[-3:] == ["- last", "", "end"]
        assert [line for line in lines if line.startswith(ends)] == [next(line for line in lines if line.startswith(end)) for end in ends]
        assert "old" not in "\n".join(lines)
