"""The search for an Ascend NPU tells what is there and where it looked."""

from __future__ import annotations

from pathlib import Path

from jumar.device import find_cann


def test_a_machine_without_ascend_says_so_with_every_place(tmp_path: Path) -> None:
    found = find_cann(tmp_path, {})
    assert not found.usable and found.devices == () and found.home == ""
    assert str(found).startswith("no NPU, no CANN\n")
    assert any("/dev/davinci*: nothing" in place for place in found.looked)
    assert any("ASCEND_HOME_PATH" in place for place in found.looked)


def test_devices_driver_and_toolkit_are_found(tmp_path: Path) -> None:
    (tmp_path / "dev").mkdir()
    for i in range(2):
        (tmp_path / f"dev/davinci{i}").touch()
    (tmp_path / "dev/davinci_manager").touch()
    driver = tmp_path / "usr/local/Ascend/driver"
    driver.mkdir(parents=True)
    (driver / "version.info").write_text("Version=24.1.0\n")
    home = tmp_path / "usr/local/Ascend/ascend-toolkit/latest"
    (home / "compiler").mkdir(parents=True)
    (home / "compiler/version.info").write_text("Version=8.0.RC3\nversion_dir=8.0.RC3\n")
    found = find_cann(tmp_path, {})
    assert found.usable and len(found.devices) == 2
    assert (found.driver, found.version, found.home) == ("24.1.0", "8.0.RC3", str(home))


def test_the_environment_names_the_toolkit_first(tmp_path: Path) -> None:
    home = tmp_path / "mine"
    home.mkdir()
    (home / "version.cfg").write_text("runtime_running_version=[7.6.0.1.220:8.0.1]\n")
    found = find_cann(tmp_path, {"ASCEND_HOME_PATH": str(home)})
    assert found.home == str(home) and found.version == "8.0.1"
    assert not found.usable
