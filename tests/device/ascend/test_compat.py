"""Whether versions fit: every row of the tables is a judgement, and so is what the packages declare of each other."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jumar.device.ascend import Version, pairings, parse_version, parse_version_file
from jumar.device.ascend.compat import PAIRS, declared_pairings, judge
from jumar.device.ascend.compat_table import Row, all_rows, applicable, declared, exact, fits, releases
from tests.field.machines import KINDS, write_folder

SAMPLES = Path(__file__).parent / "version_files"
MATRIX = Path(__file__).resolve().parents[3] / "../shared/facts/field/compat_matrix.csv"
NAMED = [r for r in all_rows() if r.kind == "tested" and ((r.a, r.b) in PAIRS or r.b == "python")]


def verdict(text: str) -> str:
    a, a_version, b, b_version = text.split()
    return judge(a, parse_version(a_version), b, parse_version(b_version)).verdict


def pairs_of(row: Row) -> list[tuple[Version, Version]]:
    """The releases that a row names; of a range of Pythons its ends."""
    ends = [t for token in row.b_spec for t in token.split("..")]
    return [(a, b) for x in row.a_spec for y in ends if (a := exact(x)) is not None and (b := exact(y)) is not None]


@pytest.mark.parametrize("row", NAMED, ids=lambda r: f"{r.a}-{r.a_spec[0]}-{r.b}")
def test_a_named_pair_is_ok(row: Row) -> None:
    for a, b in pairs_of(row):
        pair = judge("python", b, row.a, a) if row.b == "python" else judge(row.a, a, row.b, b)
        assert "ok" == pair.verdict and pair.source


@pytest.mark.skipif(not MATRIX.exists(), reason="the facts are not beside this checkout")
def test_the_matrix_of_the_facts_is_answered_as_it_says() -> None:
    checked = 0
    for row in csv.DictReader(MATRIX.read_text(encoding="utf-8").splitlines()):
        if row["framework"] in ("torch_npu", "vllm-ascend", "mindspore") and "recommended pairing" == row["kind"]:
            versions = row["version"].split()[0].lstrip("v"), row["cann_versions"].split(",")[0].split()[0]
            if versions[1].endswith("x"):
                continue
            name = row["framework"]
            assert "ok" == judge(name, parse_version(versions[0]), "cann", parse_version(versions[1])).verdict, versions
            checked += 1
    assert checked > 80


@pytest.mark.parametrize(
    "text, expected",
    [
        ("torch_npu 2.5.1 cann 8.1.RC1", "ok"),
        ("torch_npu 2.5.1 cann 8.0.RC3", "inside"),  # the adapter's official range
        ("torch_npu 2.5.1 cann 7.0.0", "outside"),
        ("torch_npu 2.9.0 cann 8.5.1", "ok"),  # with vllm-ascend
        ("torch_npu 2.9.0 cann 8.3.RC1", "outside"),
        ("torch_npu 2.5.1.post7 cann 7.0.0", "unknown"),
        ("torch_npu 3.1.0 cann 9.1.0", "unknown"),
        ("mindspore 2.6.0 cann 8.1.RC1.beta1", "ok"),
        ("mindspore 2.6.0 cann 8.0.0", "inside"),  # its own check takes 7.6
        ("mindspore 2.6.0 cann 8.2.RC1", "outside"),
        ("mindspore 2.2.11 cann 7.0.0", "ok"),
        ("mindspore 2.10.0 cann 8.5.0", "inside"),
        ("mindspore 2.7.1.post1 cann 8.3.RC1", "inside"),
        ("mindspore 1.10.1 cann 6.0.1", "unknown"),
        ("cann 8.1.RC1 driver 25.0.rc1", "ok"),
        ("cann 8.1.RC1 driver 24.1.rc3", "inside"),  # by the branches
        ("cann 8.2.RC1 driver 25.2.2", "inside"),
        ("cann 8.5.0 driver 24.1.rc3", "outside"),
        ("cann 9.1.0 driver 25.2.2", "inside"),
        ("cann 9.1.0 driver 25.0.rc1.1", "outside"),
        ("cann 8.3.RC1 driver 24.1.0.3", "inside"),
        ("cann 8.0.0 driver 25.3.rc1", "inside"),
        ("cann 7.0.0 driver 25.5.0", "unknown"),
        ("cann 8.0.0 driver 22.0.4", "outside"),
        ("driver 24.1.rc3 firmware 7.5.0.1.129", "ok"),
        ("driver 24.1.rc3 firmware 24.1.RC3", "ok"),
        ("driver 24.1.rc3 firmware 7.6.0.1.220", "outside"),
        ("driver 25.0.rc1.1 firmware 7.5.0.1.129", "outside"),  # the firmware's own list of drivers ends before
        ("driver 24.1.0.3 firmware 7.5.0.3.220", "inside"),
        ("driver 25.5.0 firmware 24.1.0", "outside"),
        ("torch 2.5.1+cpu torch_npu 2.5.1.post1", "ok"),
        ("torch 2.6.0 torch_npu 2.5.1", "outside"),
        ("vllm-ascend 0.9.1rc1 torch_npu 2.5.1.post1.dev20250528", "ok"),
        ("vllm-ascend 0.9.1rc1 torch_npu 2.5.1", "inside"),
        ("vllm-ascend 0.9.1rc1 vllm 0.9.2", "outside"),
        ("vllm-ascend 0.9.1rc1 vllm 0.9.1+empty", "ok"),
        ("mindie 2.1.RC1 cann 8.2.RC1", "inside"),
        ("mindspeed 2.1.0 cann 8.3.RC1", "outside"),
        ("kernels 8.1.RC1 cann 8.1.RC1", "ok"),
        ("kernels 8.0.0 cann 8.1.RC1", "outside"),
        ("kernels 9.0.0 cann 8.5.2", "ok"),
        ("kernels 8.1.RC1 cann 8.2.RC1", "outside"),
        ("nnal 8.0.0 cann 8.3.RC1", "outside"),
        ("python 3.10.17 torch_npu 2.5.1", "ok"),
        ("python 3.12 torch_npu 2.5.1", "outside"),
        ("python 3.13.1 mindspore 2.7.0", "outside"),
        ("python 3.12 cann 8.1.RC1", "outside"),
    ],
)
def test_a_pair_is_judged(text: str, expected: str) -> None:
    assert expected == verdict(text)


@pytest.mark.parametrize("kind", ["driver-too-old", "healthy"])
def test_the_tables_and_the_files_of_a_machine_say_the_same_of_driver_and_cann(kind: str, tmp_path: Path) -> None:
    write_folder(KINDS[kind], tmp_path)
    files = [parse_version_file(str(p), p.read_text()) for p in sorted(tmp_path.rglob("*.info"))]
    (own,) = [p for p in declared_pairings(files) if (p.a, p.b) == ("cann", "driver")]
    by_table = judge("cann", own.a_version, "driver", own.b_version)
    assert (own.verdict == "outside") == (by_table.verdict == "outside") == (kind == "driver-too-old")


def test_a_family_of_drivers_does_not_speak_for_its_candidates() -> None:
    judged = {
        d: judge("cann", parse_version("8.1.RC1"), "driver", parse_version(d)).verdict for d in ("23.0.rc1", "23.0.rc3", "23.0.0", "23.0.7")
    }
    assert judged == {"23.0.rc1": "outside", "23.0.rc3": "outside", "23.0.0": "inside", "23.0.7": "inside"}


def test_what_would_fit_is_said_the_named_pair_first() -> None:
    pair = judge("torch_npu", parse_version("2.5.1"), "cann", parse_version("7.0.0"))
    assert ("cann", "8.1.RC1") == (pair.wants, pair.wanted[0])
    assert ("python", ("3.9..3.11",)) == (
        (p := judge("python", parse_version("3.12"), "torch_npu", parse_version("2.5.1"))).wants,
        p.wanted,
    )


def test_an_unknown_version_names_the_nearest_known() -> None:
    pair = judge("torch_npu", parse_version("3.1.0"), "cann", parse_version("9.1.0"))
    assert ("unknown", "2.12.0", ("9.1.0",)) == (pair.verdict, pair.nearest, pair.wanted)


def test_pairings_are_those_of_the_parts_that_are_there() -> None:
    versions = {"torch_npu": "2.5.1", "torch": "2.5.1", "cann": "8.1.RC1", "driver": "24.1.rc3", "python": "3.12", "numpy": "1.26.4"}
    found = pairings({c: parse_version(v) for c, v in versions.items()})
    assert [
        ("cann", "driver", "inside"),
        ("torch_npu", "cann", "ok"),
        ("torch", "torch_npu", "ok"),
        ("python", "torch_npu", "outside"),
        ("python", "cann", "outside"),
    ] == [(p.a, p.b, p.verdict) for p in found]
    assert () == pairings({}) == pairings({"cann": parse_version("8.1.RC1")})


def test_an_inner_number_stands_for_its_release() -> None:
    (pair,) = pairings({"mindspore": parse_version("2.6.0"), "cann-inner": parse_version("7.5.0.1.129")})
    assert ("outside", "8.0.RC3") == (pair.verdict, str(pair.b_version))


def files(*names: str, **changes: str) -> list[str]:
    texts = [(SAMPLES / n).read_text(encoding="utf-8") for n in names]
    for old, new in changes.items():
        texts = [t.replace(old.replace("_", "."), new) for t in texts]
    return texts


ALL = (
    "driver_version.info_24.1.rc3",
    "firmware_version.info_24.1.rc3",
    "ascend_toolkit_install.info_8.1.RC1",
    "runtime_version.info_8.1.RC1",
    "opp_kernel_version.info_8.1.RC1",
)


def judged_files(texts: list[str]) -> dict[tuple[str, str], str]:
    read = [parse_version_file(name, text) for name, text in zip(ALL, texts, strict=True)]
    return {(p.a, p.b): p.verdict for p in declared_pairings(read)}


def test_the_files_of_a_machine_are_judged_by_their_own_words() -> None:
    found = judged_files(files(*ALL))
    assert {"inside"} == {found["driver", "firmware"], found["cann", "driver"]}
    assert {"ok"} == {found["runtime", "ascendhal"], found["runtime", "opp_kernel"], found["opp_kernel", "runtime"]}


def test_files_that_do_not_fit_are_outside() -> None:
    driver, firmware, toolkit, runtime, kernels = files(*ALL)
    assert (
        "outside" == judged_files([driver, firmware.replace("7.5.0.1.129", "7.7.0.1.231"), toolkit, runtime, kernels])["driver", "firmware"]
    )
    old = driver.replace("C19", "C10").replace("V100R001C15", "V100R001C09")
    assert "outside" == judged_files([old, firmware, toolkit, runtime, kernels])["cann", "driver"]
    assert "outside" == judged_files([driver.replace("7.35.23", "3.9.1"), firmware, toolkit, runtime, kernels])["runtime", "ascendhal"]
    assert (
        "outside"
        == judged_files([driver, firmware, toolkit, runtime, kernels.replace("7.7.0.1.238", "7.5.0.1.129")])["runtime", "opp_kernel"]
    )


def test_declared_words_settle_what_no_table_knows() -> None:
    versions = {"driver": parse_version("99.1"), "firmware": parse_version("7.5.0.1.129")}
    driver, firmware = files(*ALL[:2])
    read = [
        parse_version_file("driver", driver.replace("24.1.rc3", "99.1")),
        parse_version_file("firmware", firmware.replace("[24.1,24.1.]", "[99.1,99.1.]")),
    ]
    assert ["inside"] == [p.verdict for p in pairings(versions, read)]


def test_every_row_can_be_read_and_has_a_source() -> None:
    for row in all_rows():
        assert row.source and row.a_spec and row.b_spec, row
        if row.kind != "declared":
            for token in (*row.a_spec, *row.b_spec):
                assert fits(token, exact(token) or releases("cann")[0]) in (True, False)


def test_the_words_of_the_table() -> None:
    v = parse_version
    assert fits("25.5.*", v("25.5.1")) and not fits("25.5.*", v("25.3.rc1")) and fits("8.2.*", v("8.2.RC1"))
    assert fits("23.0.rc3.*", v("23.0.rc3.2")) and not fits("23.0.rc3.*", v("23.0.0"))
    assert fits("3.9..3.11", v("3.11.9")) and not fits("3.9..3.11", v("3.12")) and fits(">=8.0.0", v("8.1.RC1"))
    assert applicable("torch_npu", v("2.5.1"), "cann")[1] == "" and applicable("torch_npu", v("2.5.1.post9"), "cann")[1] == "2.5.1.post1"
    assert ("C19", "C15") == (declared("driver", v("24.1.0"))[0], declared("cann", v("8.3.RC1"))[1][0])


@given(st.sampled_from(PAIRS), st.data())
def test_any_two_versions_get_an_answer(pair: tuple[str, str], data: st.DataObject) -> None:
    texts = st.sampled_from([str(v) for c in pair for v in releases(c)] + ["0.1", "99.9.rc1", "3.11", "8.0.RC2.alpha001", "7.7.0.1.238"])
    a, b = parse_version(data.draw(texts)), parse_version(data.draw(texts))
    found = judge(pair[0], a, pair[1], b)
    assert found.verdict in ("ok", "inside", "outside", "unknown") and (pair, a, b) == (
        (found.a, found.b),
        found.a_version,
        found.b_version,
    )
    assert "ok" != found.verdict or found.source
