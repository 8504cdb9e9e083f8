"""A version is read from every spelling, prints as it was written, and is ordered as the releases were."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jumar.base import DeviceError
from jumar.device.ascend import Version, parse_version, read_version
from jumar.device.ascend.versions import within

SPELLINGS = (  # noqa: SIM905
    "8.0.RC3.alpha001 8.0.RC3 8.0.0.alpha001 8.0.0.beta1 8.5.0-beta.1 24.1.rc2.2 24.1.0.3 6.3.T2.0.B107 7.1.RC1.B020 2.1.0.post12 2.7.1.dev20250724 "
    "2.5.1.post1.dev20250619 2.9.0.post1+git4c901a4 0.9.1rc1 1.11.0.rc2 2.0.0-alpha 23.0.rc2.b020 8.3RC1 2.1.0a0+gitabc "
    "7.7.0.1.238 V100R001C21SPC001B238 V100R001C21 6.3.RC3.1"
).split()

releases = st.lists(st.integers(0, 300), min_size=1, max_size=5).map(lambda ns: ".".join(map(str, ns)))
stages = st.sampled_from(
    [
        "",
        ".RC1",
        "rc2",
        ".RC3.alpha001",
        ".beta1",
        "-beta.2",
        ".post3",
        ".post1.dev20250101",
        ".rc1.1",
        ".B150",
        ".RC1.B020",
        ".T2.0.B107",
        "a1",
    ]
)
locals_ = st.sampled_from(["", "+cpu", "+git4c901a4", "+g4c.empty"])
branches = st.builds(lambda c, s, b: f"V100R001C{c:02}SPC{s:03}B{b:03}", st.integers(0, 99), st.integers(0, 999), st.integers(0, 999))
versions = st.one_of(st.builds(lambda r, s, l: parse_version(r + s + l), releases, stages, locals_), branches.map(parse_version))


@pytest.mark.parametrize("text", SPELLINGS)
def test_a_version_prints_as_it_was_written(text: str) -> None:
    assert text == str(parse_version(text))


def test_releases_stand_in_the_order_in_which_they_came_out() -> None:
    for line in (
        "8.0.RC1.alpha001 8.0.RC1 8.0.RC2.alpha001 8.0.RC2.beta1 8.0.RC2 8.0.RC3 8.0.0.alpha001 8.0.0.beta1 8.0.0 8.0.1 8.1.RC1 8.1.RC1.B020 8.2.RC1",
        "8.5.0.alpha001 8.5.0-beta.1 8.5.0 8.5.0.2.220",
        "23.0.RC3 23.0.0 23.0.7 24.1.rc2 24.1.rc2.2 24.1.rc3 24.1.0 24.1.0.3 25.0.rc1 25.0.rc1.1 25.0.rc1.2 25.2.0",
        "1.9.0 2.0.0-alpha 2.0.0rc1 2.0.0 2.1.0.dev20230101 2.1.0.rc1 2.1.0 2.1.0+cpu 2.1.0.post4 2.1.0.post10 2.5.1.post1.dev20250528 2.5.1.post1 2.10.0",
        "0.9.1rc1 0.9.1rc2 0.9.1 0.10.0rc1",
        "V100R001C15SPC006B220 V100R001C18SPC001B233 V100R001C21SPC001B238 V100R001C21SPC002B220",
    ):
        ordered = [parse_version(t) for t in line.split()]
        assert ordered == sorted(ordered)
        assert len(set(ordered)) == len(ordered)


def test_spellings_of_one_release_are_one_version() -> None:
    for group in ("8.1.RC1 8.1.rc1 8.1RC1 v8.1.rc1 8.1-RC1", "2.1 2.1.0 v2.1.0.0", "0.9.1rc1 v0.9.1.rc1 0.9.1-rc1"):
        assert 1 == len({parse_version(t) for t in group.split()})


def test_what_only_names_a_build_falls_away_in_public() -> None:
    for text, public in (
        ("8.1.RC1.beta1", "8.1.RC1"),
        ("2.8.0+cpu", "2.8.0"),
        ("8.1.RC1.B150", "8.1.RC1"),
        ("9.1.0-beta.1", "9.1.0"),
        ("8.0.RC2.alpha001", "8.0.RC2.alpha001"),
    ):
        assert public == str(parse_version(text).public)


def test_a_branch_is_that_of_the_inner_version() -> None:
    assert "C21" == parse_version("V100R001C21SPC001B238").branch
    assert "" == parse_version("7.7.0.1.238").branch


def test_ranges_of_packages_are_prefixes() -> None:
    v = parse_version
    assert within(v("7.7.0.1.238"), v("7.6"), v("7.7")) and within(v("7.2.99"), v("7.0.0"), v("7.2.99"))
    assert not within(v("7.5.0.1.129"), v("7.6"), v("7.7")) and not within(v("7.6.0"), v("7.0.0"), v("7.5.99"))


@pytest.mark.parametrize(
    "text", ["", "RC1", "8.x", "2024/10/12", "1.2.3.sh", "1..2", "eight", "1" * 200, "8.1.RC1 8.2", "C21", "8.1.RC1\n8.2"]
)
def test_what_is_no_version_is_refused(text: str) -> None:
    assert read_version(text) is None
    with pytest.raises(DeviceError, match="text must be a version, got"):
        parse_version(text)


@given(versions)
def test_reading_what_was_printed_gives_the_same(version: Version) -> None:
    again = parse_version(str(version))
    assert version == again and hash(version) == hash(again) and str(version) == str(again)


@given(st.lists(versions, min_size=3, max_size=3))
def test_the_order_is_total(three: list[Version]) -> None:
    for a, b in itertools.product(three, three):
        assert 1 == (a < b) + (a == b) + (a > b)
    low, middle, high = sorted(three)
    assert low <= middle <= high and low <= high


@given(st.text(max_size=40))
def test_no_text_breaks_the_reader(text: str) -> None:
    found = read_version(text)
    assert found is None or parse_version(str(found)) == found


@given(versions)
def test_public_is_at_rest(version: Version) -> None:
    assert version.public == version.public.public
