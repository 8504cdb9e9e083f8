"""Chips as data: complete, with sources, and found by every name that users meet."""

from __future__ import annotations

import csv
import math
import os
from dataclasses import fields
from pathlib import Path

import pytest

from jumar.base import DTYPES, DeviceError
from jumar.device.npu import Chip, chips, find_chip
from jumar.device.npu.chip import KINDS

SHARED = Path(os.environ.get("SHARED", Path(__file__).resolve().parents[4] / "shared"))
CHIPS = [pytest.param(c, id=c.name) for c in chips()]
MAIN = ("310", "310P3", "310B1", "910A", "910B1", "910B2", "910B3", "910B4", "910B4-1", "910_9391", "910_9392", "910_9381", "910_9382",
        "910_9372", "910_9362", "950PR_957b", "950PR_9599", "950DT_9591")  # fmt: skip


@pytest.mark.parametrize("chip", CHIPS)
def test_every_number_has_a_figure_with_kind_unit_and_source(chip: Chip) -> None:
    numbers = {f.name for f in fields(Chip) if isinstance(getattr(chip, f.name), int | float) and f.type not in ("bool",)} - {"arch"}
    tables = {f"{t}.{key}" for t in ("cube_macs", "links", "rates", "alignment") for key in getattr(chip, t)}
    assert set(chip.figures) == numbers | tables
    for name, figure in chip.figures.items():
        assert figure.kind in KINDS and figure.unit and len(figure.source) > 10, name
        table, _, key = name.partition(".")
        value = getattr(chip, table)
        assert (value[key] if key else value) == figure.value


@pytest.mark.parametrize("chip", CHIPS)
def test_figures_are_sane(chip: Chip) -> None:
    assert chip.vector_cores == (2 * chip.cube_cores if chip.split else chip.cube_cores)
    assert 1 <= chip.cube_cores <= 64 and 1 <= chip.ai_cpus <= 16
    assert 0.4e9 < chip.clock_hz < 2.5e9 and chip.rated_clock_hz <= chip.clock_hz
    assert chip.ub_nbytes in (192 * 1024, 248 * 1024, 256 * 1024) and chip.l0a_nbytes == chip.l0b_nbytes == 65536
    assert 2e10 < chip.memory_bytes_per_s < 5e12 and chip.memory_bytes_per_s < chip.l2_bytes_per_s
    assert chip.dtypes <= set(DTYPES) and chip.vector_dtypes <= chip.dtypes
    assert ("bf16" in chip.dtypes) == ("bf16" in chip.cube_macs) == ("bf16" in chip.modes)
    assert chip.overflow in ("saturate", "infnan", "both") and (chip.overflow != "saturate") == ("infnan" in chip.modes)
    assert chip.l2_bytes_per_s == pytest.approx(chip.rates["l2_read"] * chip.cube_cores * chip.clock_hz, rel=0.11)


def test_names_and_aliases_mean_one_chip_each() -> None:
    assert len({c.name for c in chips()}) == len(chips())
    for chip in chips():
        for name in (chip.name, chip.name.lower(), chip.npu_smi, *chip.aliases):
            assert find_chip(name) == chip


@pytest.mark.parametrize("name", MAIN)
def test_the_chips_of_the_field_are_there(name: str) -> None:
    assert find_chip(name).name == f"Ascend{name}"


@pytest.mark.parametrize(
    "asked, found",
    [
        ("Ascend910B4", "Ascend910B4"),
        ("ascend910b4", "Ascend910B4"),
        ("910B4", "Ascend910B4"),
        ("910_9391", "Ascend910_9391"),
        ("Ascend910_9391", "Ascend910_9391"),
        ("310P3", "Ascend310P3"),
        ("Ascend310P", "Ascend310P3"),
        ("Atlas 300I Duo", "Ascend310P3"),
        ("atlas 300i pro", "Ascend310P3"),
        ("A3", "Ascend910_9381"),
        ("Ascend910_93", "Ascend910_9381"),
        ("Atlas 350", "Ascend950PR_957b"),
        ("Ascend910_9599", "Ascend950PR_9599"),
        ("Atlas 200I DK A2", "Ascend310B4"),
    ],
)
def test_names_as_users_meet_them_resolve(asked: str, found: str) -> None:
    assert find_chip(asked).name == found


def test_a_bare_910b_is_the_first_generation_and_says_so() -> None:
    for name in ("910B", "Ascend910B", "ascend910b"):
        chip = find_chip(name)
        assert (chip.name, chip.cube_cores, chip.arch, "bf16" in chip.dtypes) == ("Ascend910B", 30, 1001, False)
        assert "first generation" in chip.caution and "910B1, 910B2, 910B3 or 910B4" in chip.caution
    assert find_chip("910B4").caution == ""
    assert find_chip("910A").caution == "" == find_chip("Ascend910A").caution


def test_a_family_is_taken_for_one_chip_with_a_caution() -> None:
    assert "Phy-ID" in find_chip("Ascend910").caution and find_chip("Ascend910").name == "Ascend910A"
    assert "Ascend910_9381 is taken" in find_chip("910C").caution


@pytest.mark.parametrize(
    "name, part", [("Atlas 800T A2", "Ascend910B1, Ascend910B2"), ("Atlas 800 (9000)", "Ascend910A"), ("A2", "Ascend910B4")]
)
def test_a_product_with_several_chips_is_an_error_that_lists_them(name: str, part: str) -> None:
    with pytest.raises(DeviceError, match="must mean one chip") as error:
        find_chip(name)
    assert part in error.value.what and error.value.code == "soc-unknown"


@pytest.mark.parametrize(
    "name, near", [("Ascend910B5", "Ascend910B"), ("ascend 310p4", "310P3"), ("9391x", "9391"), ("Atlas 300I Due", "Atlas 300I Duo")]
)
def test_an_unknown_name_gets_the_nearest(name: str, near: str) -> None:
    with pytest.raises(DeviceError, match="known chips") as error:
        find_chip(name)
    assert near in error.value.hint


@pytest.mark.parametrize(
    "name, dtype, tera", [("310P3", "f16", 69.5), ("310P3", "i8", 138.9), ("910A", "f16", 262.1), ("910B4", "f16", 270.3),
                          ("910B1", "f16", 363.7), ("910B3", "bf16", 294.9), ("910B3", "f32", 73.7), ("910B3", "hf32", 147.5), ("310", "i8", 22.3)]
)  # fmt: skip
def test_peaks(name: str, dtype: str, tera: float) -> None:
    assert find_chip(name).peak_flops_per_s(dtype) / 1e12 == pytest.approx(tera, abs=0.06)


def test_a_910b4_at_its_rated_clock_is_what_the_configuration_says() -> None:
    chip = find_chip("910B4")
    assert chip.peak_flops_per_s() * chip.rated_clock_hz / chip.clock_hz / 1e12 == pytest.approx(245.8, abs=0.06)
    assert chip.figures["clock_hz"].kind == "measured" and "1500" in chip.figures["clock_hz"].note


def test_a_type_that_the_cube_lacks_has_no_rate() -> None:
    assert find_chip("910A").peak_flops_per_s("bf16") == find_chip("310P3").peak_flops_per_s("f32") == 0.0


def test_the_chips_agree_with_the_configuration_files() -> None:
    path = SHARED / "facts" / "ascend" / "soc_params.csv"
    if not path.exists():
        pytest.skip("the table of CANN's configuration files is not beside this checkout")
    known = {c.name: c for c in chips()}
    columns = {"l0_a_size": "l0a_nbytes", "l0_c_size": "l0c_nbytes", "l1_size": "l1_nbytes", "ub_size": "ub_nbytes", "l2_size": "l2_nbytes"}
    compared = 0
    with path.open(encoding="utf-8") as file:
        for row in csv.DictReader(file):
            if (chip := known.get(row["SoC_version"])) is None:
                continue
            compared += 1
            assert chip.cube_cores == int(row["cube_core_cnt"] or row["ai_core_cnt"])
            assert math.isclose(chip.rated_clock_hz, 1e6 * float(row["cube_freq"]))
            assert chip.ai_cpus == int(row["ai_cpu_cnt"])
            assert {f: getattr(chip, f) for f in columns.values()} == {f: int(row[c]) for c, f in columns.items()}
            assert chip.rates["ddr"] == int(row["ddr_rate"])
    assert compared >= 60
