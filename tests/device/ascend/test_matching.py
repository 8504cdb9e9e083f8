"""A proposed set fits in all its pairs, holds what was fixed, changes little, and its steps stand in the order that works."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jumar.device.ascend import MatchingSet, Version, matching_set, parse_version
from jumar.device.ascend.compat_table import releases


def of(text: str) -> dict[str, Version]:
    words = text.split()
    return {c: parse_version(v) for c, v in zip(words[::2], words[1::2], strict=True)}


def told(found: MatchingSet) -> dict[str, str]:
    return {c: str(v) for c, v in found.versions.items()}


RELEASES = [(c, v) for c in ("cann", "mindspore", "torch_npu", "vllm-ascend", "driver", "mindie") for v in releases(c)]


@settings(max_examples=60, deadline=None)
@given(st.sampled_from(RELEASES))
def test_a_set_around_one_release_is_all_ok(one: tuple[str, Version]) -> None:
    found = matching_set({one[0]: one[1]})
    if found.versions:
        assert found.versions[one[0]] == one[1]
        assert {"driver", "firmware", "cann", "kernels", "python"} <= set(found.versions)
        assert all(p.verdict == "ok" or one[0] in (p.a, p.b) for p in found.pairings)
        assert "outside" not in {p.verdict for p in found.pairings}


@settings(max_examples=40, deadline=None)
@given(st.sampled_from(RELEASES), st.sampled_from(RELEASES))
def test_two_fixed_releases_get_a_set_or_a_reason(one: tuple[str, Version], other: tuple[str, Version]) -> None:
    fixed = dict([one, other])
    found = matching_set(fixed)
    if found.versions:
        assert fixed == {c: found.versions[c] for c in fixed}
        assert {p.verdict for p in found.pairings} <= {"ok", "inside"}
    elif found.contradiction:
        assert found.contradiction.one and found.contradiction.other and found.contradiction.over


@settings(max_examples=30, deadline=None)
@given(st.sampled_from(["2.3.0", "2.4.1", "2.5.0", "2.6.0", "2.7.0", "2.7.2", "2.9.0"]))
def test_a_proposed_set_is_at_rest(mindspore: str) -> None:
    found = matching_set(of(f"mindspore {mindspore}"))
    again = matching_set({}, found.versions)
    assert told(found) == told(again) and () == again.steps


@pytest.mark.parametrize(
    "fixed, expected",
    [
        ("mindspore 2.6", "cann 8.1.RC1 driver 25.0.RC1 firmware 25.0.RC1 python 3.11 kernels 8.1.RC1 nnal 8.1.RC1"),
        ("torch_npu 2.5.1", "cann 8.1.RC1 torch 2.5.1"),
        ("torch 2.6.0", "cann 8.5.0 torch_npu 2.6.0.post5"),
        ("cann 8.1.RC1", "mindspore 2.6.0 torch_npu 2.5.1 torch 2.5.1"),
        ("driver 24.1.rc3", "cann 8.0.RC3 firmware 7.5.0.1.129"),
        ("vllm-ascend 0.9.1rc1", "cann 8.1.RC1 vllm 0.9.1 torch_npu 2.5.1.post1.dev20250528"),
        ("python 3.12", "python 3.12"),
        ("mindie 3.0.0", "cann 8.5.1"),
    ],
)
def test_a_set_holds_the_named_pairs(fixed: str, expected: str) -> None:
    found = told(matching_set(of(fixed)))
    assert {c: str(v) for c, v in of(expected).items()} == {c: found.get(c) for c in of(expected)}


def test_what_is_installed_stays_where_it_fits() -> None:
    installed = of("torch_npu 2.5.1 torch 2.5.1 cann 8.3.RC1 driver 25.3.rc1 python 3.10.12 kernels 8.3.RC1 nnal 8.3.RC1")
    found = matching_set({}, installed)
    assert ["torch", "torch_npu"] == [s.component for s in found.steps]
    assert parse_version("8.3.RC1") == found.versions["cann"] and parse_version("3.10.12") == found.versions["python"]


def test_the_steps_of_an_upgrade_put_firmware_before_driver() -> None:
    installed = of("mindspore 2.5.0 cann 8.0.0 driver 24.1.0 firmware 7.6.0.1.220 python 3.10 kernels 8.0.0 nnal 8.0.0")
    steps = matching_set(of("mindspore 2.6.0"), installed, soc="Ascend910B3").steps
    assert ["firmware", "driver", "reboot", "cann", "source", "kernels", "nnal", "mindspore"] == [
        s.component if s.action not in ("reboot", "source") else s.action for s in steps
    ]
    assert "./Ascend-hdk-910b-npu-driver_25.0.rc1_linux-aarch64.run --upgrade" == steps[1].command
    assert ("upgrade", "2.5.0", "mindspore==2.6.0") == (steps[-1].action, steps[-1].was, steps[-1].package)


def test_the_steps_of_a_fresh_machine_put_driver_before_firmware() -> None:
    steps = matching_set(of("mindspore 2.6.0"), soc="310P3", arch="x86_64").steps
    assert ["driver", "firmware", "", "python", "cann"] == [s.component for s in steps[:5]]
    assert "./Ascend-hdk-310p-npu-driver_25.0.rc1_linux-x86_64.run --full --install-for-all" == steps[0].command
    assert "Ascend-cann-kernels-310p_8.1.RC1_linux-x86_64.run" in [s.package for s in steps]


def test_an_older_cann_is_laid_down_after_the_newer_one_is_gone() -> None:
    steps = matching_set(of("cann 8.1.RC1"), of("cann 8.5.0 driver 25.0.rc1 mindspore 2.6.0"), soc="910B1").steps
    (down,) = [s for s in steps if s.component == "cann" and s.action == "downgrade"]
    assert (
        "./Ascend-cann-toolkit_8.5.0_linux-aarch64.run --uninstall && ./Ascend-cann-toolkit_8.1.RC1_linux-aarch64.run --install"
        == down.command
    )


def test_firmware_that_cannot_be_seen_is_not_called_missing() -> None:
    found = matching_set({}, of("cann 8.1.RC1 driver 25.0.rc1 mindspore 2.6.0 python 3.11 kernels 8.1.RC1 nnal 8.1.RC1"))
    assert () == found.steps


@pytest.mark.parametrize(
    "fixed, one, other, over",
    [
        ("torch_npu 2.5.1 cann 7.0.0", "torch_npu 2.5.1", "cann 7.0.0", "cann"),
        ("python 3.12 mindspore 2.6.0", "mindspore 2.6.0", "python 3.12", "python"),
        ("cann 8.5.0 driver 24.1.rc3", "cann 8.5.0", "driver 24.1.RC3", "driver"),
        ("mindspore 2.2.14 torch_npu 2.9.0", "mindspore 2.2.14", "torch_npu 2.9.0", "cann"),
    ],
)
def test_requirements_that_exclude_each_other_are_named(fixed: str, one: str, other: str, over: str) -> None:
    found = matching_set(of(fixed)).contradiction
    assert found is not None and (one, other, over) == (found.one, found.other, found.over)
    assert found.one_allows and found.other_allows and not set(found.one_allows) & set(found.other_allows)


def test_a_version_that_no_table_knows_is_said() -> None:
    assert ("mindspore 9.9",) == matching_set(of("mindspore 9.9")).unknown
