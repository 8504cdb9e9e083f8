"""The tables of error codes: every row is whole, in both languages, and says where it is from."""

import csv
import re
from collections import Counter
from pathlib import Path

import jumar.device.ascend
from jumar.base import read_toml

ROOM = Path(jumar.device.ascend.__file__).parent / "codes"
COLUMNS = ["number", "family", "module", "symbol", "en", "zh", "layer", "source"]
CHINESE = re.compile("[\u4e00-\u9fff]")
LAYERS = {
  "driver_firmware", "container", "cann_env", "version_mismatch", "python_abi", "operator", "graph_compile", "memory", "precision", "amp", "hccl",
  "data_pipeline", "deploy_om", "profiling", "framework_usage",
}  # fmt: skip
FAMILIES = {
    "acl",
    "rts",
    "ge",
    "ge-inner",
    "hccl",
    "aclnn",
    "drv",
    "dcmi",
    "rts-inner",
    "aicore",
    "aicpu",
    "plog",
    "torch_npu",
    "event",
    "installer",
    "dvpp",
    "mindie",
}


def rows() -> list[dict[str, str]]:
    with (ROOM / "codes.csv").open(encoding="utf-8", newline="") as f:
        return list(csv.DictReader(f))


def test_codes_have_the_columns_that_the_reader_wants() -> None:
    with (ROOM / "codes.csv").open(encoding="utf-8", newline="") as f:
        assert COLUMNS == next(csv.reader(f))
    assert all(None not in row and None not in row.values() for row in rows())


def test_a_number_stands_once_in_its_family() -> None:
    assert [] == [key for key, n in Counter((row["number"], row["family"]) for row in rows()).items() if n > 1]


def test_families_and_layers_are_known_ones() -> None:
    assert set() == {row["family"] for row in rows()} - FAMILIES
    assert set() == {row["layer"] for row in rows()} - LAYERS - {""}


def test_every_code_names_its_source_and_module() -> None:
    assert [] == [(row["family"], row["number"]) for row in rows() if not row["source"] or not row["module"] or not row["number"]]


def test_every_code_is_told_in_english_and_in_chinese() -> None:
    whole = rows()
    assert [] == [(row["family"], row["number"]) for row in whole if not row["en"].strip() or CHINESE.search(row["en"])]
    assert [] == [(row["family"], row["number"]) for row in whole if not CHINESE.search(row["zh"])]


def test_no_text_carries_placeholders_of_the_program_that_printed_it() -> None:
    whole = rows()
    assert [] == [(row["family"], row["number"]) for row in whole if re.search(r"%[sd]|…|\[\s*\]", row["en"] + row["zh"])]


def causes() -> list[dict[str, list[str]]]:
    tables: list[dict[str, list[str]]] = read_toml(ROOM / "causes.toml")["cause"]
    return tables


def test_a_cause_is_told_alike_in_both_languages() -> None:
    for table in causes():
        assert {"codes", "en", "zh"} == set(table), table
        assert 1 <= len(table["en"]) == len(table["zh"]) <= 4, table["codes"]
        assert all(text.strip() and not CHINESE.search(text) for text in table["en"]), table["codes"]
        assert all(CHINESE.search(text) for text in table["zh"]), table["codes"]


def test_a_cause_names_codes_that_the_table_has() -> None:
    numbers = {row["number"] for row in rows()}
    named = {row["number"] for row in rows() if row["family"] in {"plog", "torch_npu", "mindie"}}
    pairs = {f"{row['family']}:{row['number']}" for row in rows()}
    known = numbers | pairs | FAMILIES
    wanted = [code for table in causes() for code in table["codes"]]
    assert [] == [code for code in wanted if code not in known and not any(number.startswith(code) for number in named)]


def test_a_code_stands_under_one_cause() -> None:
    assert [] == [code for code, n in Counter(code for table in causes() for code in table["codes"]).items() if n > 1]


def test_a_bare_number_of_a_cause_is_of_one_family() -> None:
    families = Counter(row["number"] for row in rows())
    assert [] == [code for table in causes() for code in table["codes"] if families[code] > 1]
