"""Every version file of an Ascend host becomes typed values; what is damaged is said, with its line."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jumar.device.ascend import parse_version, parse_version_file, read_version_files
from jumar.device.ascend.version_files import VersionFile
from jumar.device.ascend.versions import inner_of_market, market_of_inner, parse_range

SAMPLES = Path(__file__).parent / "version_files"
SHARED = Path(__file__).resolve().parents[3] / "../shared/facts/field/versions"
FILES = {path.name: path.read_text(encoding="utf-8") for path in sorted(SAMPLES.iterdir())}


def sample(name: str) -> VersionFile:
    return parse_version_file(name, FILES[name])


@pytest.mark.parametrize("name", FILES)
def test_a_sample_is_read_without_complaint(name: str) -> None:
    file = sample(name)
    assert () == file.complaints and "unknown" != file.kind and file.values


@pytest.mark.parametrize("path", sorted(SHARED.glob("*")), ids=lambda p: p.name)
def test_the_facts_are_read_without_complaint(path: Path) -> None:
    assert () == parse_version_file(path.name, path.read_text(encoding="utf-8")).complaints


def test_a_driver_says_its_branch_whom_it_serves_and_its_firmware() -> None:
    driver = sample("driver_version.info_24.1.rc3")
    assert ("driver", "24.1.rc3", "C19") == (driver.kind, str(driver.version), driver.branch)
    assert ("C13", "C15", "C17", "C18", "C19") == driver.serves
    assert parse_version("7.35.23") == driver.provides["ascendhal"]
    (firmware,) = driver.firmwares
    assert firmware.holds(parse_version("7.5.0.1.129")) and not firmware.holds(parse_version("7.6.0.1.220"))


def test_a_firmware_says_its_drivers_by_families() -> None:
    firmware = sample("firmware_version.info_24.1.rc3")
    assert ("firmware", "24.1.rc3", "7.5.0.1.129") == (firmware.kind, str(firmware.version), str(firmware.inner))

    def fits(text: str) -> bool:
        return any(r.holds(parse_version(text)) for r in firmware.drivers)

    assert fits("24.1.rc3") and fits("23.0.0.5") and fits("24.1.0") and not fits("25.0.rc1") and not fits("23.0.7")


def test_components_say_what_they_require() -> None:
    runtime = sample("runtime_version.info_8.1.RC1")
    assert ("component", "runtime", "8.1.RC1", "7.7.0.1.238") == (runtime.kind, runtime.component, str(runtime.version), str(runtime.inner))
    assert parse_version("4.0.0") == runtime.demands["ascendhal"]
    assert runtime.requires["opp_kernel"].holds(parse_version("7.6.0.1.220")) and not runtime.requires["toolkit"].holds(
        parse_version("7.6.0.1.220")
    )
    assert "opp_kernel" == sample("opp_kernel_version.info_8.1.RC1").component


def test_the_other_kinds() -> None:
    toolkit = sample("ascend_toolkit_install.info_8.5.1")
    assert ("toolkit", "8.5.1", "C25") == (toolkit.kind, str(toolkit.version), toolkit.branch) and "C23" in toolkit.serves
    cfg = sample("latest_version.cfg_8.1.RC1")
    assert ("cfg", "8.1.RC1", 11) == (cfg.kind, str(cfg.version), len(cfg.parts))
    nnal = sample("nnal_atb_version.info_8.1.RC1")
    assert ("nnal", "8.1.RC1", "8.1.RC1.B150") == (nnal.kind, str(nnal.version), str(nnal.inner))
    assert ["ascend-install", "component-install", "environment"] == [
        sample(n).kind for n in ("etc_ascend_install.info", "component_ascend_install.info", "set_env_variables_8.1.RC1")
    ]


def test_a_file_of_another_name_is_known_by_its_content() -> None:
    for name, text in FILES.items():
        if not name.startswith(("compiler", "set_env")):
            assert sample(name).kind == parse_version_file("upload (3).txt", text).kind


@pytest.mark.parametrize(
    "name, text, complaint",
    [
        ("driver/version.info", "", "file must hold key=value lines, got none"),
        ("driver/version.info", "Version=24.1.rc3\nthis was cut her", "line 2: line must be key=value, got 'this was cut her'"),
        ("driver/version.info", "Version=new\nascendhal_version=7.35.23", "line 1: Version must be a version, got 'new'"),
        ("driver/version.info", "ascendhal_version=7.35.23", "Version must be stated, got nothing"),
        (
            "driver/version.info",
            "Version=24.1.0\ncompatible_version_fw=[7.0.0,7.",
            "line 2: compatible_version_fw must be ranges like [7.0.0,7.5.99], got '[7.0.0,7.'",
        ),
        (
            "driver/version.info",
            "Version=24.1.0\ncompatible_version_fw=[7.9.0,7.5.99]",
            "line 2: compatible_version_fw must start below its end, got '[7.9.0,7.5.99]'",
        ),
        (
            "x",
            "package_name=Ascend-cann-toolkit\nversion=8.5.1\ncompatible_version=[C21]",
            "line 3: compatible_version must list branches like [V100R001C21], got 'C21'",
        ),
        ("x", "toolkit_running_version=[7.7.0.1.238]", "line 1: toolkit_running_version must be [inner:release], got '[7.7.0.1.238]'"),
        (
            "x",
            "toolkit_running_version=[7.7.0.1.238:8.1.RC1]\nopp_kernel_running_version=[7.5.0.1.129:8.0.RC3]",
            "the running packages must be of one release, got toolkit 8.1.RC1, opp_kernel 8.0.RC3",
        ),
        (
            "opp/version.info",
            "Version=7.7.0.1.238\nVersion=7.6.0.1.220",
            "line 2: Version must be stated once, got '7.7.0.1.238' and '7.6.0.1.220'",
        ),
        (
            "opp/version.info",
            'Version=7.7.0\nrequired_package_opp_version=">= new"',
            "line 2: required_package_opp_version must be a range of versions, got '\">= new\"'",
        ),
        (
            "opp/version.info",
            'Version=7.7.0\nrequired_package_opp_version=">=7.7, <=7.6"',
            "line 2: required_package_opp_version must start below its end, got '\">=7.7, <=7.6\"'",
        ),
        ("notes.txt", "colour=red", "file must be one of the known version files, got the keys colour"),
        ("driver/version.info", "Version=24.1.0\x00\x00", "file must be text, holds bytes of zero"),
    ],
)
def test_damage_is_said_with_its_line(name: str, text: str, complaint: str) -> None:
    assert complaint in [str(c) for c in parse_version_file(name, text).complaints]


@pytest.mark.parametrize(
    "text, inside, outside",
    [
        (">=7.6, <=7.7", "7.6.0 7.7.0.1.238 7.7", "7.5.9 7.8.0 8.0"),
        ('"7.7"', "7.7 7.7.0.1.238", "7.6.0 7.8"),
        (">7.6, <8", "7.7.0 7.9", "7.6 7.6.1 8.0 8.0.1"),
        (">=4.0.0", "4.0.0 7.35.23", "3.9"),
    ],
)
def test_ranges_hold_what_the_packages_mean(text: str, inside: str, outside: str) -> None:
    wanted = parse_range(text)
    assert wanted is not None
    assert all(wanted.holds(parse_version(v)) for v in inside.split())
    assert not any(wanted.holds(parse_version(v)) for v in outside.split()) and not wanted.holds(None)


def test_inner_numbers_and_releases_belong_together() -> None:
    for inner, release in (
        ("1.84.15.1.310", "6.0.1"),
        ("6.4.12.1.241", "6.3.RC2"),
        ("7.5.0.1.129", "8.0.RC3"),
        ("7.6.0.1.220", "8.0.0"),
        ("7.7.0.1.238", "8.1.RC1"),
        ("8.5.0.2.220", "8.5.0"),
    ):
        assert release == str(market_of_inner(parse_version(inner)))
        found = inner_of_market(parse_version(release))
        assert found is not None and inner.startswith(str(found))
    assert market_of_inner(parse_version("7.0.0.5.242")) is None and inner_of_market(parse_version("7.0.RC1")) is None


def test_a_machine_gives_all_its_files_and_names_the_one_that_it_cannot_read(tmp_path: Path) -> None:
    home = tmp_path / "usr/local/Ascend/ascend-toolkit/latest"
    for place, name in (
        (tmp_path / "usr/local/Ascend/driver/version.info", "driver_version.info_24.1.rc3"),
        (tmp_path / "usr/local/Ascend/firmware/version.info", "firmware_version.info_24.1.rc3"),
        (tmp_path / "etc/ascend_install.info", "etc_ascend_install.info"),
        (home / "version.cfg", "latest_version.cfg_8.1.RC1"),
        (home / "aarch64-linux/ascend_toolkit_install.info", "ascend_toolkit_install.info_8.1.RC1"),
        (home / "compiler/version.info", "compiler_version.info_8.1.RC1"),
        (tmp_path / "usr/local/Ascend/nnal/atb/latest/version.info", "nnal_atb_version.info_8.1.RC1"),
    ):
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(FILES[name], encoding="utf-8")
    files = read_version_files(tmp_path)
    assert ["ascend-install", "driver", "firmware", "cfg", "toolkit", "component", "nnal"] == [f.kind for f in files]
    assert "compiler" == files[5].component and not any(f.complaints for f in files)
    assert () == read_version_files(tmp_path / "nothing")


@given(st.sampled_from(sorted(FILES)), st.data())
def test_no_damage_breaks_the_reader(name: str, data: st.DataObject) -> None:
    text = FILES[name]
    start = data.draw(st.integers(0, len(text)))
    end = data.draw(st.integers(start, len(text)))
    file = parse_version_file(name, text[:start] + data.draw(st.text(max_size=20)) + text[end:])
    assert all(c.what and c.line >= 0 for c in file.complaints)
    assert file.values or file.complaints
