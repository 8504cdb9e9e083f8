"""The table of codes as it is asked: every row is found in every spelling, and what it lacks is taken apart."""

from __future__ import annotations

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from jumar.device.ascend import FAMILIES, Code, families_named, find_code, known_codes, near_codes, out_of_range


def spellings(code: Code) -> list[str]:
    """Every way in which a row's number and name may be written."""
    value = code.value
    if value is None:
        return (
            [code.number, code.number.lower(), f" {code.number}: ", f"({code.number})"]
            if code.number[0] != "("
            else [code.number, code.number[1:-1]]
        )
    unsigned = value & 0xFFFFFFFF
    found = [
        code.number,
        f"{code.family} {code.number}",
        f"{code.family}:{code.number}",
        f"{code.family}={code.number}",
        f"[{code.number}]",
    ]
    found += [f"0x{unsigned:x}", f"0x{unsigned:08X}", f"0X{unsigned:016x}", str(unsigned)]
    if code.family in ("dcmi", "event", "rts-inner", "ge-inner", "rts", "acl", "ge", "aclnn"):
        found.append(str(unsigned - (1 << 32) if unsigned >> 31 else unsigned))
    if code.family == "event":
        found += [f"{unsigned:x}", f"{unsigned:X}", f"0x{unsigned:X}"]
    if code.family == "rts-inner":
        found += [f"{unsigned:x}"]
    return found


def test_every_row_is_found_in_every_spelling() -> None:
    lost = []
    for code in known_codes():
        for text in spellings(code):
            if code not in find_code(text):
                lost.append((code.family, code.number, text))
            if code not in find_code(text, code.family):
                lost.append((code.family, code.number, text))
    assert lost == []


def test_every_symbol_is_found_whatever_its_capitals() -> None:
    named = [c for c in known_codes() if c.family != "plog" and "_" in c.symbol and c.symbol.isupper() and " " not in c.symbol]
    assert len(named) > 700
    assert [c.symbol for c in named if c not in find_code(c.symbol) or c not in find_code(c.symbol.lower())] == []


def test_every_code_says_something_in_both_languages() -> None:
    assert [(c.family, c.number) for c in known_codes() if not c.meaning("en") or not c.meaning("zh") or c.family not in FAMILIES] == []


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("117571619", "RT_ERROR_DRV_NO_RESOURCES"),
        ("7020023", "RT_ERROR_DRV_NO_RESOURCES"),
        ("-8020", "DCMI_ERR_CODE_RESOURCE_OCCUPIED"),
        ("8020", "DCMI_ERR_CODE_RESOURCE_OCCUPIED"),
        ("4294959276", "DCMI_ERR_CODE_RESOURCE_OCCUPIED"),
        ("dcmi 8005", "DCMI_ERR_CODE_INNER_ERR"),
        ("npu-smi -8005", "DCMI_ERR_CODE_INNER_ERR"),
        ("drv:87", "DRV_ERROR_RESOURCE_OCCUPIED"),
        ("drvRetCode=7", "DRV_ERROR_INNER_ERR"),
        ("hal 0x7", "DRV_ERROR_INNER_ERR"),
        ("hccl 9", "HCCL_E_TIMEOUT"),
        ("hcclRet: 4", "HCCL_E_INTERNAL"),
        ("0x0000000005000007", "HCCL_E_UNAVAIL"),
        ("83951623", "HCCL_E_UNAVAIL"),
        ("acl 507018", "ACL_ERROR_RT_AICPU_EXCEPTION"),
        ("0x7bc8a", "ACL_ERROR_RT_AICPU_EXCEPTION"),
        ("ts 0x2a", "TS_ERROR_AICPU_EXCEPTION"),
        ("0x2a", "TS_ERROR_AICPU_EXCEPTION"),
        ("0x31", "TS_ERROR_VECTOR_CORE_EXCEPTION"),
    ],
)
def test_a_number_is_told_however_it_is_written(text: str, expected: str) -> None:
    assert find_code(text)[0].symbol == expected


@pytest.mark.parametrize("text", ["80818C00", "0x80818c00", "80818c00", "2155973632", "-2138993664", "event 80818C00"])
def test_an_event_is_told_however_it_is_written(text: str) -> None:
    assert [(c.family, c.number) for c in find_code(text)] == [("event", "80818C00")]


def test_a_number_of_two_families_gives_both_and_a_family_chooses() -> None:
    assert {c.family for c in find_code("9")} == {"hccl", "drv"}
    assert [c.family for c in find_code("9", "drv")] == ["drv"]
    assert [c.family for c in find_code("drv 9")] == ["drv"]


def test_bits_of_a_core_are_told_one_by_one() -> None:
    assert [c.number for c in find_code("(0x810000, 0, 0)")] == ["(0x10000, 0, 0)", "(0x800000, 0, 0)"]
    assert [c.number for c in find_code("0x810000", "aicore")] == ["(0x10000, 0, 0)", "(0x800000, 0, 0)"]


@pytest.mark.parametrize(
    ("text", "family", "words"),
    [
        ("107999", "rts", "the call is wrong"),
        ("207999", "rts", "a resource is missing"),
        ("507999", "rts", "a failure inside"),
        ("545999", "ge", "the graph engine"),
        ("561999", "aclnn", "an aclnn operator interface"),
        ("100099", "acl", "AscendCL"),
        ("0x070203ff", "rts-inner", "module 0x02 is drv, number 0x3ff"),
        ("0x50104005", "ge-inner", "common error on the host, module graph, number 5"),
        ("0x05010fff", "hccl", "HcclResult 4095 from HCOM"),
        ("0x03010007", "ge-inner", "module 1, number 7"),
        ("-8199", "dcmi", "DCMI"),
        ("0xabcdef01", "event", "like a fault event"),
        ("0x81AF8000", "event", "node type 215, module error"),  # npu-smi prints `node type ex=215` beside it
        ("80E181FE", "event", "HBM memory, sensor type 0xc0, state 510"),
        ("EZ4711", "plog", "that the table lacks"),
        ("ERR01999", "torch_npu", "that the table lacks"),
    ],
)
def test_a_number_that_the_table_lacks_is_taken_apart(text: str, family: str, words: str) -> None:
    (code,) = find_code(text)
    assert (code.family, code.known, words in code.en) == (family, False, True), code


@pytest.mark.parametrize(
    "text", ["", " ", "no code", "123456", "0", "12345678", "0x07990001", "999999", "z" * 5000, "drv", "drv x", "-", "0x", "EX1000"]
)
def test_what_is_no_code_gives_none(text: str) -> None:
    assert [c for c in find_code(text) if c.symbol != "DRV_ERROR_NONE" and c.value] == []


def test_usual_causes_go_with_a_number_with_a_beginning_and_with_a_family() -> None:
    own, beginning, family = find_code("EI0006")[0], find_code("EI4711")[0], find_code("drv 99")[0]
    assert all(code.causes("en") and code.causes("zh") for code in (own, beginning, family))
    assert len({own.causes_en, beginning.causes_en, family.causes_en}) == 3
    assert find_code("0x0000000005000009")[0].causes_en == find_code("hccl 9")[0].causes_en
    assert [c.number for c in known_codes() if c.family not in ("plog", "event") and not c.causes()] == []


def test_an_unknown_family_gives_none() -> None:
    assert (find_code("87", "nobody"), families_named("nobody")) == ((), ())


def test_what_is_spelled_almost_right_is_hinted_at() -> None:
    assert near_codes("HCCL_E_TIMEOT")[0] == "HCCL_E_TIMEOUT"
    assert near_codes("AICPU_EXCEPTION")[0] in ("ACL_ERROR_RT_AICPU_EXCEPTION", "RT_ERROR_TSFW_AICPU_EXCEPTION")
    assert near_codes("") == ()


def test_a_number_of_no_family_says_why() -> None:
    assert "module 23 is unknown" in out_of_range("123456")
    assert "class 9 is unknown" in out_of_range("907002")
    assert "module 0x99 is unknown" in out_of_range("0x07990001")
    assert out_of_range("broadcast") == ""


@given(st.text(max_size=40))
@example("٣")
@example("０x7")
@example("1_0")
@example("(0x, 0, 0)")
@example("(9" + "9" * 30 + ",0,0)")
def test_any_text_is_looked_up_without_a_fault(text: str) -> None:
    assert all(isinstance(code, Code) for code in find_code(text))
    out_of_range(text)


@settings(deadline=None)  # the first call reads the table
@given(st.integers(min_value=-(1 << 70), max_value=1 << 70), st.sampled_from(["", *FAMILIES]))
def test_any_number_is_looked_up_in_any_family_without_a_fault(value: int, family: str) -> None:
    for text in (str(value), hex(value)):
        assert all(code.family in FAMILIES for code in find_code(text, family))
        near_codes(text)
