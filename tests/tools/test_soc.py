"""`jumar soc`: the list, one chip with its sources, JSON, and completion."""

from __future__ import annotations

import json

import click
import pytest
from click.testing import CliRunner

from jumar.base import DeviceError
from jumar.device.npu import chips
from jumar.tools.soc import command, complete_soc


def out_of(*arguments: str) -> str:
    done = CliRunner().invoke(command, list(arguments), catch_exceptions=False)
    assert done.exit_code == 0
    return done.output


def test_list_has_a_line_for_each_chip_and_says_how_many_bins_it_hides() -> None:
    text = out_of("list")
    assert "Ascend910B4 " in text and "Ascend910ProA" not in text and "more bins" in text
    assert "Ascend910ProA" in out_of("list", "--all")
    assert all(len(line) <= 120 for line in text.splitlines())


def test_list_as_json_is_for_programs() -> None:
    rows = json.loads(out_of("list", "--all", "--json"))
    assert [r["name"] for r in rows] == [c.name for c in chips()]
    assert next(r for r in rows if r["npu_smi"] == "310P3")["peak"] == {"f16": 69.5, "i8": 138.9}


def test_show_gives_each_figure_its_kind_and_source() -> None:
    lines = out_of("show", "910b4").splitlines()
    clock = next(line for line in lines if line.startswith("clock_hz"))
    assert "1.65 GHz" in clock and "measured" in clock and "1500" in clock
    assert any(line.startswith("[1] ") and "Ascend910B4.ini" in line for line in lines)
    assert next(line for line in lines if line.startswith("peak.f16")).split()[1:4] == ["270.3", "TFLOP/s", "derived"]


def test_show_says_the_trap_of_a_bare_910b_first() -> None:
    first = out_of("show", "910B").splitlines()[0]
    assert first.startswith("caution: ") and "first generation" in first and "910B4" in first


def test_show_as_json_holds_every_figure() -> None:
    found = json.loads(out_of("show", "Ascend310P3", "--json"))
    assert found["figures"]["memory_bytes_per_s"]["kind"] == "documented" and found["npu_smi"] == "310P3"


def test_an_unknown_chip_is_an_error_with_the_nearest_names() -> None:
    with pytest.raises(DeviceError, match="got '910B9'"):
        CliRunner().invoke(command, ["show", "910B9"], catch_exceptions=False)


@pytest.mark.parametrize("typed, found", [("910B4", ["910B4", "910B4-1"]), ("Ascend310P3", ["Ascend310P3"]), ("x", [])])
def test_names_of_chips_are_completed(typed: str, found: list[str]) -> None:
    context = click.Context(command)
    assert sorted(item.value for item in complete_soc(context, command, typed)) == found  # type: ignore[arg-type]
