"""`jumar compat`: what it says of versions and of this machine, in two languages and as JSON, and with which exit code."""

from __future__ import annotations

import json
from importlib import metadata
from pathlib import Path
from unittest import mock

import pytest
from click.testing import CliRunner, Result
from hypothesis import given, settings
from hypothesis import strategies as st

from jumar.base import DeviceError, ToolError
from jumar.device.ascend import parse_version, parse_version_file
from jumar.tools import compat
from jumar.tools.compat import Here, installed_here

FILES = Path(__file__).resolve().parents[1] / "device/ascend/version_files"
NOTHING = Here({"python": parse_version("3.11.4")}, (), False)


def asked(*arguments: str, here: Here = NOTHING) -> Result:
    with mock.patch.object(compat, "installed_here", return_value=here):
        return CliRunner().invoke(compat.command, ["--lang", "en", "--arch", "aarch64", *arguments], catch_exceptions=False)


def told(*arguments: str, here: Here = NOTHING) -> dict[str, object]:
    found: dict[str, object] = json.loads(asked(*arguments, "--json", here=here).output)
    return found


def test_one_version_gives_a_whole_set_and_its_steps() -> None:
    done = asked("--cann", "8.1.RC1", "--soc", "Ascend910B3")
    assert 0 == done.exit_code
    assert "driver 25.0.RC1 · firmware 25.0.RC1 · CANN 8.1.RC1 · kernels 8.1.RC1" in done.output
    assert "./Ascend-cann-kernels-910b_8.1.RC1_linux-aarch64.run --install" in done.output


def test_a_pair_that_fits_ends_well_and_one_that_does_not_ends_with_one() -> None:
    fits, not_named, clash = (
        asked("--mindspore", "2.6", "--cann", "8.1.RC1"),
        asked("--mindspore", "2.6", "--cann", "8.0.0"),
        asked("--mindspore", "2.6", "--cann", "8.2.RC1"),
    )
    assert (0, 0, 1) == (fits.exit_code, not_named.exit_code, clash.exit_code)
    assert "✓  MindSpore 2.6" in fits.output and "~  MindSpore 2.6" in not_named.output and "✗  MindSpore 2.6" in clash.output
    assert "No set fits: MindSpore 2.6.0 and CANN 8.2.RC1 exclude each other." in clash.output
    assert (
        "If CANN may change" in clash.output
        and "If MindSpore may change" in clash.output
        and "pip install mindspore==2.7.0" in clash.output
    )


def test_what_is_unknown_is_said_with_the_nearest_known() -> None:
    done = asked("--mindspore", "9.9", "--cann", "8.1.RC1")
    assert 2 == done.exit_code
    assert (
        "?  MindSpore 9.9" in done.output and "the nearest known, 2.10.0" in done.output and "MindSpore 9.9 is in no table" in done.output
    )


def test_the_answer_in_chinese() -> None:
    done = asked("--torch-npu", "2.5.1", "--cann", "7.0.0", "--lang", "zh")
    assert (
        "不匹配" in done.output
        and "没有可用的组合：torch_npu 2.5.1 与 CANN 7.0.0 互相排斥。" in done.output
        and "如果可以更换 CANN" in done.output
    )


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_no_placeholder_of_a_sentence_is_left(lang: str) -> None:
    for arguments in (
        ("--cann", "8.1.RC1"),
        ("--cann", "8.5.0", "--driver", "24.1.rc3"),
        ("--mindspore", "9.9", "--cann", "8.0.0"),
        ("--cann", "9.0.0", "--soc", "Ascend950DT"),
    ):
        assert "{" not in asked(*arguments, "--lang", lang).output


def test_a_command_is_never_broken_over_lines() -> None:
    lines = asked("--cann", "8.1.RC1", "--torch-npu", "2.9.0", "--soc", "A3").output.splitlines()
    (line,) = [x for x in lines if "--uninstall" in x or "toolkit_8.5" in x][:1] or [x for x in lines if "pip install" in x][:1]
    assert line.startswith("       ")


def test_json_holds_all_of_it() -> None:
    found = told("--torch-npu", "2.5.1", "--cann", "7.0.0")
    assert ["torch_npu", "cann", "outside"] == [found["pairs"][0][key] for key in ("a", "b", "verdict")]  # type: ignore[index]
    assert {"one": "torch_npu 2.5.1", "other": "cann 7.0.0", "over": "cann"}.items() <= found["contradiction"].items()  # type: ignore[attr-defined]
    assert ["cann", "torch_npu"] == [a["changes"] for a in found["alternatives"]] and 1 == found["exit_code"]  # type: ignore[attr-defined]


def test_a_chip_that_came_later_is_told() -> None:
    done = asked("--cann", "8.5.0", "--soc", "Ascend950PR_9599")
    assert 1 == done.exit_code and "Ascend950PR_9599 is driven by CANN 9.0.0 and newer" in done.output


def test_bad_options_are_told_by_name() -> None:
    with pytest.raises(DeviceError, match="text must be a version, got 'new'") as error:
        asked("--cann", "new")
    assert ["reading --cann"] == error.value.context
    with pytest.raises(ToolError, match="--soc must be an Ascend chip, got 'H100'"):
        asked("--cann", "8.1.RC1", "--soc", "H100")
    with pytest.raises(ToolError, match="must be installed here, or be named, got nothing"):
        asked()


def machine(root: Path, *, firmware: str = "7.5.0.1.129") -> Path:
    home = root / "usr/local/Ascend/ascend-toolkit/latest"
    for place, name in (
        (root / "usr/local/Ascend/driver/version.info", "driver_version.info_24.1.rc3"),
        (root / "usr/local/Ascend/firmware/version.info", "firmware_version.info_24.1.rc3"),
        (home / "version.cfg", "latest_version.cfg_8.1.RC1"),
        (home / "aarch64-linux/ascend_toolkit_install.info", "ascend_toolkit_install.info_8.1.RC1"),
        (home / "runtime/version.info", "runtime_version.info_8.1.RC1"),
    ):
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text((FILES / name).read_text(encoding="utf-8").replace("7.5.0.1.129", firmware), encoding="utf-8")
    return root


def test_a_machine_is_read_from_its_files(tmp_path: Path) -> None:
    here = installed_here(machine(tmp_path))
    assert here.is_host
    assert {"driver": "24.1.rc3", "firmware": "7.5.0.1.129", "cann": "8.1.RC1", "kernels": "8.1.RC1"}.items() <= {
        c: str(v) for c, v in here.versions.items()
    }.items()
    done = asked(here=here)
    assert 0 == done.exit_code and "~  CANN 8.1.RC1" in done.output and "✓  driver 24.1.rc3" in done.output


def test_firmware_that_does_not_fit_the_driver_is_found(tmp_path: Path) -> None:
    done = asked(here=installed_here(machine(tmp_path, firmware="7.7.0.1.231")))
    assert 1 == done.exit_code and "✗  driver 24.1.rc3" in done.output


def test_what_was_asked_is_judged_with_what_this_host_has(tmp_path: Path) -> None:
    done = asked("--cann", "8.5.0", here=installed_here(machine(tmp_path)))
    assert 1 == done.exit_code and "✗ CANN 8.5.0 driver 24.1.rc3" in " ".join(done.output.split())
    assert "1. firmware" in done.output and "Ascend-cann-toolkit_8.5.0_linux-aarch64.run --upgrade" in done.output


def test_wheels_are_read_from_their_metadata(tmp_path: Path) -> None:
    wheels = {"torch": "2.5.1+cpu", "torch-npu": "2.5.1.post1", "mindspore": "not a version"}

    def version(name: str) -> str:
        if name not in wheels:
            raise metadata.PackageNotFoundError(name)
        return wheels[name]

    with mock.patch.object(metadata, "version", version):
        here = installed_here(tmp_path)
    assert {"torch": "2.5.1+cpu", "torch_npu": "2.5.1.post1"}.items() <= {c: str(v) for c, v in here.versions.items()}.items()
    assert "mindspore" not in here.versions and not here.is_host


def test_damaged_files_are_named(tmp_path: Path) -> None:
    file = parse_version_file("driver/version.info", "Version=24.1.0\nhalf a li")
    done = asked(here=Here({"driver": parse_version("24.1.0"), "cann": parse_version("8.0.0")}, (file,), True))
    assert "driver/version.info: line 2: line must be key=value, got 'half a li'" in done.output


@settings(max_examples=40, deadline=None)
@given(
    st.dictionaries(
        st.sampled_from(["--cann", "--driver", "--torch-npu", "--mindspore", "--python", "--firmware"]),
        st.sampled_from(["8.1.RC1", "2.5.1", "25.0.rc1", "3.10", "7.5.0.1.129", "0.1", "V100R001C21SPC001B238"]),
        min_size=1,
    )
)
def test_any_versions_get_an_answer(options: dict[str, str]) -> None:
    done = asked(*(word for pair in options.items() for word in pair))
    assert done.exit_code in (0, 1, 2) and done.output


@pytest.mark.parametrize(
    ("option", "version", "near"),
    [
        ("--cann", "8.1", "jumar compat --cann 8.1.RC1"),
        ("--cann", "V100R001C21", "jumar compat --cann 8.1.RC1"),
        ("--mindie", "2.0.RC1", "jumar compat --mindie 2.1.RC1"),
    ],
)
def test_what_no_table_knows_is_told_with_the_nearest_that_it_does(option: str, version: str, near: str) -> None:
    assert near in asked(option, version).output


@pytest.mark.parametrize(("option", "version"), [("--cann", "CANN-8.1.RC1.alpha001"), ("--mindspeed", "v2.0.0_core_r0.8.0")])
def test_a_tag_is_taken_for_its_version(option: str, version: str) -> None:
    assert {"8.1.RC1.alpha001", "2.0.0"} & set(json.loads(asked(option, version, "--json").output)["versions"].values())


def test_a_bare_910b_is_the_first_generation_and_said() -> None:
    done = asked("--cann", "8.1.RC1", "--soc", "910B")
    assert "first generation" in done.stderr
    assert "kernels-910_8.1.RC1" in done.output


def test_kernels_of_another_release_do_not_fit_and_may_change() -> None:
    done = asked("--kernels", "8.0.0", "--cann", "8.1.RC1")
    assert done.exit_code == 1 and "If kernels may change" in done.output
    assert "kernels 8.1.RC1" in done.output


@pytest.mark.parametrize("more", [(), ("--torch", "2.5.1"), ("--driver", "23.0.0", "--kernels", "7.0.0", "--torch", "2.5.1")])
def test_each_way_out_says_every_step_to_its_set(more: tuple[str, ...]) -> None:
    options = ("--torch-npu", "2.5.1", "--cann", "7.0.0", "--soc", "910B3", *more)
    found = json.loads(asked(*options, "--json").output)
    ways = {way["changes"]: way for way in found["alternatives"]}
    assert set(ways) == {"cann", "torch_npu"}
    assert ways["cann"]["set"]["kernels"] == ways["cann"]["set"]["cann"] == "8.1.RC1"
    assert ways["torch_npu"]["set"]["torch"] == ways["torch_npu"]["set"]["torch_npu"] == "2.1.0"
    named = dict(zip(options[::2], options[1::2], strict=True))
    for way in ways.values():
        done = {step["component"]: step["version"] for step in way["steps"]}
        kept = {c for c, v in way["set"].items() if named.get("--" + c.replace("_", "-")) == v}
        assert set(way["set"]) - kept - set(done) <= ({"firmware"} if "--driver" in named else set())
    shown = asked(*options).output
    for command in (step["command"] for way in ways.values() for step in way["steps"]):
        assert command in shown


def test_versions_that_no_table_pairs_as_one_set_are_told_what_set_each_is_in() -> None:
    ways = {
        w["changes"]: w["set"] for w in json.loads(asked("--vllm-ascend", "0.9.1", "--torch-npu", "2.5.1", "--json").output)["alternatives"]
    }
    assert list(ways) == ["torch_npu", "vllm-ascend"]
    assert ways["torch_npu"] | {"vllm-ascend": "0.9.1", "torch_npu": "2.5.1.post1"} == ways["torch_npu"]
    assert ways["vllm-ascend"]["torch_npu"] == "2.5.1"
    done = asked("--vllm-ascend", "0.9.1", "--torch-npu", "2.5.1")
    assert done.exit_code == 0
    assert "torch_npu 2.5.1.post1: upgrade from 2.5.1" in done.output


def test_versions_are_completed() -> None:
    option = next(p for p in compat.command.params if p.name == "cann")
    assert "8.1.RC1" in [item.value for item in option.shell_complete(compat.command.make_context("compat", []), "8.1")]
