"""`jumar explain`: pages as before, and codes of every layer of an Ascend host."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import click
import pytest
from click.testing import CliRunner, Result

from jumar.base import ToolError
from jumar.device.ascend import find_code, known_codes
from jumar.tools import explained
from jumar.tools.explain import command, pages
from jumar.tools.explained import code_lines
from jumar.tools.knowledge import BLANK, LANGUAGES, left_blank

ROOT = Path(__file__).resolve().parents[2]


def explain(*arguments: str, stdin: str | bytes = "", **environment: str) -> Result:
    settings = {"LC_ALL": "C.UTF-8", **environment}
    return CliRunner(env=settings).invoke(command, arguments, input=stdin, standalone_mode=False)


def test_a_code_is_told_with_module_symbol_meaning_layer_and_source() -> None:
    done = explain("507018")
    assert done.output.splitlines()[0] == "507018  ACL_ERROR_RT_AICPU_EXCEPTION"
    for word in ("AI CPU", "module   RTS", "layer    operator", "also     0x7bc8a", "source   hicann/runtime"):
        assert word in done.output
    assert done.return_value == 0


def test_chinese_is_spoken_when_asked_for_or_where_the_locale_does() -> None:
    assert "算子执行异常" in explain("507018", "--lang", "zh").output
    assert "算子执行异常" in explain("507018", LC_ALL="zh_CN.UTF-8").output
    assert "算子执行异常" not in explain("507018", "--lang", "en", LC_ALL="zh_CN.UTF-8").output


def test_a_number_of_several_families_shows_all_and_the_family_before_it_chooses() -> None:
    both = explain("9").output
    assert ("HCCL_E_TIMEOUT" in both, "DRV_ERROR_UNINIT" in both, "9 is a number of 2 families" in both) == (True, True, True)
    for one in (explain("drv", "9"), explain("drv 9"), explain("9", "--family", "drv")):
        assert ("HCCL_E_TIMEOUT" in one.output, "DRV_ERROR_UNINIT" in one.output) == (False, True)


def test_negative_numbers_are_codes_and_no_options() -> None:
    assert "DCMI_ERR_CODE_INNER_ERR" in explain("-8005").output
    assert "DCMI_ERR_CODE_INNER_ERR" in explain("dcmi", "-8005", "--lang", "en").output


def test_several_codes_at_once_are_told_in_order() -> None:
    output = explain("EZ9999", "ERR00100", "broadcast", "--plain").output
    assert 0 <= output.index("EZ9999") < output.index("ERR00100") < output.index("# broadcast")


def test_a_line_of_a_log_is_taken_for_a_code() -> None:
    assert "DRV_ERROR_INNER_ERR" in explain("halQueueQueryInfo failed, drvRetCode=7").output
    assert "ACL_ERROR_RT_AICPU_EXCEPTION" in explain("error", "code", "is", "507018").output


def test_stdin_gives_each_code_once() -> None:
    done = explain("-", "--json", stdin=b"a\nerror code is 507018\n\xff\xfe error code is 507018 \r\nEZ9999: x\n-8005\n")
    assert [answer["asked"] for answer in json.loads(done.output)] == ["507018", "EZ9999", "-8005"]
    assert isinstance(explain("-", stdin="nothing\n").exception, ToolError)


def test_json_holds_both_languages_and_every_spelling() -> None:
    (answer,) = json.loads(explain("0x7020023", "--json").output)
    (code,) = answer["codes"]
    assert (answer["known"], code["value"], code["also"], code["symbol"]) == (True, 117571619, ["117571619"], "RT_ERROR_DRV_NO_RESOURCES")
    assert code["en"]["meaning"] != code["zh"]["meaning"]


def test_a_number_that_the_table_lacks_is_taken_apart_and_the_exit_code_says_so() -> None:
    done = explain("507999")
    assert ("not in the table" in done.output, "the runtime" in done.output, done.return_value) == (True, True, 2)


@pytest.mark.parametrize(
    ("text", "what", "hint"),
    [
        ("123456", "module 23 is unknown", ""),
        ("HCCL_E_TIMEOT", "got 'HCCL_E_TIMEOT'", "did you mean HCCL_E_TIMEOUT"),
        ("brodcast", "got 'brodcast'", "did you mean broadcast or bit-cast?"),
        ("507018/107002", "got '507018/107002'", ""),
        ("nothing at all", "got 'nothing at all'", "jumar explain lists"),
    ],
)
def test_what_is_unknown_is_refused_with_what_its_range_says(text: str, what: str, hint: str) -> None:
    error = explain(text).exception
    assert isinstance(error, ToolError) and what in error.what and error.hint.startswith(hint) and error.code == "explain-code"


def test_an_unknown_one_among_known_ones_is_said_and_the_others_are_told() -> None:
    done = explain("507018", "brodcast")
    assert ("ACL_ERROR_RT_AICPU_EXCEPTION" in done.output, "did you mean broadcast" in done.output, done.return_value) == (True, True, 2)
    known, unknown = json.loads(explain("507018", "brodcast", "--json").output)
    assert (known["known"], unknown["known"], unknown["codes"]) == (True, False, [])


def test_an_unknown_family_is_refused_with_a_hint() -> None:
    error = explain("87", "--family", "dvr").exception
    assert isinstance(error, ToolError) and error.hint == "did you mean drv?"


def test_alone_it_lists_the_pages_and_the_families_with_counts() -> None:
    output = explain().output
    assert "broadcast" in output.split() and any(line.split()[:2] == ["drv", "101"] for line in output.splitlines())
    listed = json.loads(explain("--json").output)
    assert listed["pages"] == list(pages()) and {"family", "title", "codes"} == set(listed["families"][0])


def test_a_family_or_a_beginning_lists_its_codes_one_on_a_line() -> None:
    lines = explain("hccl").output.splitlines()
    assert lines == explain("--family", "hccl").output.splitlines()
    assert any(line.split()[:2] == ["9", "HCCL_E_TIMEOUT"] for line in lines)
    assert {line[:2] for line in explain("EI").output.splitlines()} == {"EI"}


def test_a_number_that_its_family_lacks_is_refused_with_the_family_s_numbers() -> None:
    error = explain("drv 500").exception
    assert isinstance(error, ToolError) and error.what.endswith("numbers of drv are 0 to 99 and 65534")


def test_completion_knows_pages_families_and_codes() -> None:
    completed = [item.value for item in command.params[0].shell_complete(command.make_context("explain", []), "HCCL_E_T")]
    assert "HCCL_E_TIMEOUT" in completed
    assert [i.value for i in command.params[1].shell_complete(command.make_context("explain", []), "dr")] == ["drv"]


@pytest.mark.parametrize(
    ("asked", "symbol"),
    [
        ("ret[9]", "HCCL_E_TIMEOUT"), ("ret:87", "DRV_ERROR_RESOURCE_OCCUPIED"), ("return[11]", "HCCL_E_TCP_CONNECT"),
        ("#507018", "ACL_ERROR_RT_AICPU_EXCEPTION"), ("５０７０１８", "ACL_ERROR_RT_AICPU_EXCEPTION"),
        ("137", "SIGKILL"), ("139", "SIGSEGV"), ("-9", "SIGKILL"), ("-11", "SIGSEGV"), ("exit 134", "SIGABRT"),
        ("exit code 137", "SIGKILL"), ("exit", "SIGSEGV"),
    ],
)  # fmt: skip
def test_codes_as_people_and_shells_write_them_are_known(asked: str, symbol: str) -> None:
    done = explain(asked)
    assert symbol in done.output and done.return_value == 0


def test_the_heading_has_what_was_typed_and_every_code_a_layer() -> None:
    assert explain("-1").output.startswith("-1 = 4294967295")
    assert "Say which: jumar explain hccl 1, jumar explain drv 1" in explain("1").output
    for code in ("ERR01100", "EH9999"):
        assert "layer    any: it passes on what another layer reported" in explain(code).output


def test_a_near_code_differs_in_one_digit_and_has_as_many() -> None:
    error = explain("507919").exception
    hints = [word.rstrip("?") for word in error.hint.split() if word.rstrip("?").isdigit()] if isinstance(error, ToolError) else []
    assert all(len(h) == 6 and sum(a != b for a, b in zip(h, "507919", strict=True)) == 1 for h in hints)
    short = explain("777").exception
    assert isinstance(short, ToolError) and "did you mean" not in short.hint


def test_what_is_unknown_is_said_in_chinese_too() -> None:
    error = explain("nothing at all", "--lang", "zh").exception
    assert "explain：没有这个错误码：'nothing at all'\n  提示：jumar explain 列出所有页面和错误码类别" in str(error)
    assert "六位数由类别（1、2、3、5）、模块" in str(explain("123456", "--lang", "zh").exception)
    assert "drv 的编号为 0 到 99、65534" in str(explain("drv 500", "--lang", "zh").exception)
    assert "提示：是否指 drv？" in str(explain("87", "--family", "dvr", "--lang", "zh").exception)
    done = explain("507018", "brodcast", LC_ALL="zh_CN.UTF-8")
    assert "提示：是否指 broadcast 或 bit-cast？\n  详见：jumar explain explain-code" in done.output


def test_alone_the_families_come_before_the_pages_in_columns() -> None:
    output = explain().output
    assert output.index("rts") < output.index("broadcast")
    assert len(output.splitlines()) < len(pages())


def test_a_reader_who_leaves_is_no_error() -> None:
    done = subprocess.run(
        ["bash", "-c", f"set -o pipefail; {sys.executable} -m jumar explain plog event | head -1"],
        env={**os.environ, "PYTHONPATH": str(ROOT / "src")}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_lines_are_as_wide_as_the_terminal(lang: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    lines = list(explained.code_lines("507018", find_code("507018"), lang))
    wide = [sum(2 if ord(c) > 0x2E80 else 1 for c in click.unstyle(line)) for line in lines[1:]]
    assert max(w for w, line in zip(wide, lines[1:], strict=True) if len(line.split()) > 2) <= 60


def test_what_causes_leave_blank_is_told_how_to_be_found() -> None:
    for code in known_codes():
        for lang in LANGUAGES:
            texts = (code.meaning(lang), *code.causes(lang))
            told = dict(left_blank(texts, lang))
            assert [b for text in texts[1:] for b in BLANK.findall(text) if b not in told] == [], code.number
    assert "NPU ID of `npu-smi info -m`" in " ".join(code_lines("507010", find_code("507010"), "en"))


@pytest.mark.parametrize("text", ["-507018", "0x 7BC8A", "507018。", "「507018」", "507018.0", "507018，", "0x7bc8a！"])
def test_a_code_is_known_with_what_a_copy_puts_around_it(text: str) -> None:
    assert [code.number for code in find_code(text)] == ["507018"]


@pytest.mark.parametrize("text", ["507018 EZ9999", "507018,EZ9999", "507018、EZ9999", "507018；EZ9999。", "507018\nEZ9999"])
def test_codes_pasted_into_one_argument_are_told_in_their_order(text: str) -> None:
    done = explain(text)
    assert [line.split()[0] for line in done.output.splitlines() if line and line[0] != " "] == ["507018", "EZ9999"]
    assert done.return_value == 0


@pytest.mark.parametrize(
    ("text", "symbol"), [("SIGSEGV", "SIGSEGV"), ("sigkill", "SIGKILL"), ("signal 9", "SIGKILL"), ("信号 15", "SIGTERM")]
)
def test_a_signal_is_known_by_name_and_number(text: str, symbol: str) -> None:
    assert [code.symbol for code in find_code(text)] == [symbol]


def test_one_letter_lists_the_codes_that_begin_with_it() -> None:
    listed = explain("E").output
    assert "EZ9999" in listed and "EI0001" in listed and "ERR00001" in listed


@pytest.mark.parametrize("text", ["the 9", "507 018 is", "-50701", "SIGNAL", "EZ 99999", "507018.5"])
def test_what_only_looks_like_a_code_stays_unknown(text: str) -> None:
    assert not any(code.known for code in find_code(text))
