"""Charts of the twin: lanes in their order, dots under ceilings, memory against the chip's."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from tests.tools.enable.twins import too_large, twin

from jumar.tools.enable.twin_charts import live_curve, memory_bar, memory_legend, npu_timeline, roofline
from jumar.tools.enable.twin_facts import Bar


def test_the_timeline_has_a_row_for_each_unit_with_work_and_escapes_names() -> None:
    found = npu_timeline(replace(twin(), bars=(Bar("vector", 1, 2, "a<b"), Bar("cube", 0, 1, "x"), Bar("host", 0, 1, "launch"))))
    assert re.findall(r'text-anchor="end">(\w[^<]*)</text>', found)[:3] == ["host", "cube", "vector"]
    assert "a<b" not in found
    assert "a&lt;b" in found


def test_the_tip_of_a_bar_says_the_interval() -> None:
    assert "6 µs (4.8 µs to 7.8 µs), by cube" in npu_timeline(twin())


def test_a_dot_of_the_roofline_stands_where_its_intensity_and_rate_are() -> None:
    found = twin()
    dots = [float(x) for x in re.findall(r'<circle[^>]* cx="([^"]+)"', roofline(found))]
    assert len(dots) == len(found.kernels)
    by_time = sorted(found.kernels, key=lambda k: -k.time_us)
    by_intensity = sorted(range(len(dots)), key=lambda i: by_time[i].intensity)
    assert [dots[i] for i in by_intensity] == sorted(dots)


def test_the_ceilings_name_figures_of_the_chip() -> None:
    text = roofline(twin())
    for said in ("cube f16 240 Top/s", "vector f16 9 Top/s", "memory 800 GB/s", "L2 3 TB/s"):
        assert said in text
    assert roofline(replace(twin(), kernels=())) == ""


@pytest.mark.parametrize("made", [twin, too_large])
def test_memory_is_drawn_against_what_the_chip_has(made) -> None:
    memory = made().memory
    text = memory_bar(memory)
    assert "on the chip" in text
    ends = [float(x) + float(w) for x, w in re.findall(r'class="bar [^"]+" x="([^"]+)" y="22" width="([^"]+)"', text)]
    line = float(re.search(r'class="arena" x1="([^"]+)"', text)[1])
    assert (max(ends) <= line + 1) == memory.fits
    assert memory_legend(memory)[0] == ("contraction", f"weights, {'120 MiB' if memory.fits else '38 GiB'}")


def test_live_bytes_stand_under_the_plan() -> None:
    text = live_curve(twin().memory)
    assert "lower bound 58 MiB" in text
    assert "planned 60 MiB" in text
