"""Before an upgrade a snapshot, after it the difference in words, what fits worse, and the way back."""

from __future__ import annotations

import json
import platform
import shutil
from dataclasses import replace
from pathlib import Path

import click
import pytest
from click.testing import CliRunner, Result
from tests.field.machines import KERNELS, KINDS, TOOLKIT

from jumar.base import ToolError
from jumar.tools import snapshot as tool
from jumar.tools.doctor import snapshot as keeping
from jumar.tools.doctor.gather import gather
from jumar.tools.doctor.machine import Seen
from jumar.tools.knowledge import Evidence
from jumar.tools.snapshot import command, complete_name

DRIVER = "usr/local/Ascend/driver/version.info"
HAL = "usr/local/Ascend/driver/lib64/driver/libascend_hal.so"


@pytest.fixture(autouse=True)
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A 910B host as a tree of files, with CANN 8.1.RC1, torch_npu 2.5.1 and no other packages."""
    root = tmp_path / "root"
    for name, text in KINDS["healthy"].files.items():
        if name.startswith(("etc/", "usr/")):
            path = root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text.replace("arch=aarch64", f"arch={platform.machine()}"))
    (root / f"{TOOLKIT}/8.1.RC1/{KERNELS}/ascend910b").mkdir(parents=True)
    for name in (HAL, f"{TOOLKIT}/8.1.RC1/lib64/libascendcl.so", f"{TOOLKIT}/8.1.RC1/set_env.sh"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(f"content of {name}")
    monkeypatch.setattr(tool, "ROOT", root)
    monkeypatch.setenv("JUMAR_SNAPSHOT_DIR", str(tmp_path / "kept"))
    for name in ("ASCEND_HOME_PATH", "LD_LIBRARY_PATH"):
        monkeypatch.delenv(name, raising=False)
    packages(monkeypatch, {"torch-npu": "2.5.1", "torch": "2.5.1", "numpy": "1.26.4"})
    return root


def packages(monkeypatch: pytest.MonkeyPatch, found: dict[str, str]) -> None:
    seen = {name: Seen(version, Evidence("pip list -v", 3, name)) for name, version in found.items()}
    monkeypatch.setattr(tool, "gather", lambda root: replace(gather(root), packages=seen))


def call(*arguments: str, code: int = 0) -> Result:
    done = CliRunner().invoke(command, list(arguments), standalone_mode=False)
    if done.exception is not None:
        raise done.exception
    assert done.return_value == code, done.output
    return done


def out(*arguments: str, code: int = 0) -> str:
    return call(*arguments, code=code).output


def document(*arguments: str, code: int = 0) -> dict[str, object]:
    found = json.loads(out(*arguments, "--json", code=code))
    assert isinstance(found, dict)
    return found


def upgrade(root: Path) -> None:
    """Driver and CANN of other releases: the driver older than CANN's, the CANN too new for torch_npu."""
    driver = root / DRIVER
    driver.write_text(driver.read_text().replace("Version=", "Version=21.0.2\nOld=", 1))
    (root / HAL).write_text("another")
    new = root / TOOLKIT / "8.5.0"
    shutil.copytree(root / TOOLKIT / "8.1.RC1", new)
    shutil.rmtree(root / TOOLKIT / "8.1.RC1")
    if (root / TOOLKIT / "latest").exists():
        shutil.rmtree(root / TOOLKIT / "latest")
    for file in new.rglob("*"):
        if file.is_file():
            file.write_text(file.read_text().replace("8.1.RC1", "8.5.0"))


# ------------------------------------------------------------------------------ keeping


def test_a_snapshot_holds_versions_hashes_packages_and_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HCCL_IF_BASE_PORT", "60000")
    monkeypatch.setenv("HCCL_TEST_TOKEN", "abcd1234")
    assert "CANN 8.1.RC1" in out("save", "before", "--note", "the good one")
    found = keeping.load("before")
    assert found.note == "the good one" and found.version("cann", "CANN") == "8.1.RC1"
    assert found.version("driver", "driver") and found.version("firmware", "firmware")
    assert found.version("framework", "torch-npu") == "2.5.1" and found.version("python", "numpy") == "1.26.4"
    assert found.version("cann", "kernels for") == "ascend910b"
    assert found.version("system", "kernel") == platform.release()
    assert len(found.files[f"/{HAL}"].sha256) == 64 and f"/{TOOLKIT}/8.1.RC1/set_env.sh" in found.files
    assert found.environment["HCCL_IF_BASE_PORT"] == "60000" and "abcd1234" not in str(found)


def test_without_a_name_the_time_is_the_name() -> None:
    out("save")
    assert keeping.names()[0].startswith("20")


def test_a_name_that_is_there_is_kept_unless_force_is_given() -> None:
    out("save", "one", "--note", "first")
    with pytest.raises(ToolError, match="name must be new"):
        out("save", "one")
    assert keeping.load("one").note == "first"
    out("save", "one", "--note", "second", "--force")
    assert keeping.load("one").note == "second"


@pytest.mark.parametrize("name", ["now", "../x", "a/b", "", ".hidden", "x" * 80, "a b"])
def test_a_name_that_is_no_name_is_refused(name: str) -> None:
    with pytest.raises(ToolError, match="name must be letters"):
        keeping.load(name)


def test_the_list_has_a_line_for_each_the_oldest_first() -> None:
    assert "no snapshots in" in out("list") and "没有快照" in out("list", "--lang", "zh")
    out("save", "b", "--note", "before all")
    out("save", "a")
    lines = out("list").splitlines()
    assert [line.split()[0] for line in lines] == ["b", "a"]
    assert lines[0].endswith("before all") and "torch-npu 2.5.1" in lines[0]
    assert [row["name"] for row in json.loads(out("list", "--json"))] == ["b", "a"]


@pytest.mark.parametrize("spoilt", ["", "{", "[]", "{}", '{"format": 1}', None, '{"format": 99, "sha256": ""}'])
def test_a_damaged_file_is_named_and_the_others_are_listed(tmp_path: Path, spoilt: str | None) -> None:
    out("save", "good")
    out("save", "bad")
    file = tmp_path / "kept" / "bad.json"
    file.write_text(file.read_text().replace("8.1.RC1", "8.2.RC1") if spoilt is None else spoilt)
    found = out("list")
    assert "damaged" in found and str(file) in found and "good" in found
    assert "bad is damaged; compared with the newest that is whole: good" in out("diff")
    with pytest.raises(ToolError, match="must be as it was written") as error:
        out("diff", "bad")
    assert str(file) in str(error.value)


def test_an_unknown_name_is_an_error_with_the_nearest() -> None:
    with pytest.raises(ToolError, match="there must be one"):
        out("diff")
    out("save", "before-8.2")
    with pytest.raises(ToolError, match=r"before-8\.2"):
        out("diff", "before-8.3")


def test_names_are_completed() -> None:
    out("save", "before-8.2")
    context = click.Context(command)
    assert [i.value for i in complete_name(context, command, "bef")] == ["before-8.2"]  # type: ignore[arg-type]
    assert complete_name(context, command, "x") == []  # type: ignore[arg-type]


# ------------------------------------------------------------------------------ comparing


@pytest.mark.parametrize("lang, said", [("en", "nothing is different"), ("zh", "没有差别")])
def test_the_same_machine_is_the_same(lang: str, said: str) -> None:
    out("save", "one")
    assert said in out("diff", "one", "--lang", lang)
    out("save", "two")
    assert said in out("diff", "one", "two", "--lang", lang)


def test_an_upgrade_is_told_by_component_in_the_order_of_the_stack(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out("save", "before")
    old = keeping.load("before").version("driver", "driver")
    upgrade(root)
    packages(monkeypatch, {"torch-npu": "2.5.1.post1", "torch": "2.5.1", "numpy": "2.0.0", "sympy": "1.13"})
    text = out("diff", "before", code=1)
    lines = text.splitlines()
    assert f"  driver {old} -> 21.0.2" in lines and "  CANN 8.1.RC1 -> 8.5.0" in lines
    assert "  torch-npu 2.5.1 -> 2.5.1.post1" in lines and "  sympy 1.13 is new" in lines
    assert [line for line in lines if line in ("driver", "CANN", "frameworks", "Python")] == ["driver", "CANN", "frameworks", "Python"]
    assert "  files: 2 changed with it" in lines and "though" not in text


def test_pairs_that_fit_worse_are_told(root: Path) -> None:
    out("save", "before")
    upgrade(root)
    found = document("diff", "before", code=1)
    worse = {(w["a"], w["b"]): w for w in found["worse"]}  # type: ignore[attr-defined]
    assert worse["torch_npu", "cann"]["now"] == "outside" and worse["torch_npu", "cann"]["before"] in ("ok", "inside")
    assert "! torch_npu 2.5.1 with cann 8.5.0" in out("diff", "before", code=1)


def test_the_way_back_names_packages_and_commands_in_their_order(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out("save", "before")
    old = keeping.load("before").version("driver", "driver")
    upgrade(root)
    packages(monkeypatch, {"torch-npu": "2.6.0", "torch": "2.6.0", "numpy": "2.0.0", "sympy": "1.13"})
    monkeypatch.setenv("HCCL_IF_BASE_PORT", "60000")
    found = document("diff", "before", code=1)
    back = [(s["component"], s["version"]) for s in found["back"] if s["component"]]  # type: ignore[attr-defined]
    assert [c for c, _ in back] == ["driver", "cann", "cann", "kernels", "torch", "torch_npu"]
    assert dict(back)["driver"] == old and dict(back)["torch_npu"] == "2.5.1"
    assert found["pip"] == ["pip install --no-deps numpy==1.26.4", "pip uninstall -y sympy"]
    assert found["variables"] == ["unset HCCL_IF_BASE_PORT"]
    text = out("diff", "before", code=1)
    assert "Ascend-hdk-910b-npu-driver_" in text, "the kernels tell the chip where npu-smi does not"
    assert text.index("npu-driver_") < text.index("cann-toolkit_8.1.RC1") < text.index("pip install torch==2.5.1")


def test_a_file_that_changed_though_the_version_did_not_is_a_warning(root: Path) -> None:
    out("save", "before")
    (root / HAL).write_text("patched by hand")
    (root / f"{TOOLKIT}/8.1.RC1/set_env.sh").unlink()
    lines = out("diff", "before", code=1).splitlines()
    assert f"  ! /{HAL} changed, though the version of driver did not" in lines
    assert f"  ! /{TOOLKIT}/8.1.RC1/set_env.sh is gone, though the version of CANN did not" in lines


def test_settings_of_the_system_are_told_without_a_warning(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LD_LIBRARY_PATH", "/a/lib:/b/lib")
    out("save", "before")
    (root / "etc/hccn.conf").write_text("address_0=192.168.100.101\n")
    monkeypatch.setenv("LD_LIBRARY_PATH", "/b/lib:/c/lib")
    text = out("diff", "before", code=1)
    assert "/etc/hccn.conf" in text and "!" not in text
    assert "LD_LIBRARY_PATH: -/a/lib, +/c/lib" in text and "export LD_LIBRARY_PATH=/a/lib:/b/lib" in text
    monkeypatch.setenv("LD_LIBRARY_PATH", "/b/lib:/a/lib")
    assert "目录顺序变了" in out("diff", "before", "--lang", "zh", code=1)


def test_a_long_list_of_packages_is_cut_in_the_terminal_and_whole_in_json(monkeypatch: pytest.MonkeyPatch) -> None:
    out("save", "before")
    packages(monkeypatch, {f"package-{n}": "1" for n in range(100)})
    assert len(out("diff", "before", code=1).splitlines()) < 40
    assert len(document("diff", "before", code=1)["changes"]) > 100  # type: ignore[arg-type]


def test_only_so_many_bytes_are_hashed_and_the_size_of_the_rest_is_kept(monkeypatch: pytest.MonkeyPatch, root: Path) -> None:
    monkeypatch.setattr(keeping, "MOST_NBYTES", 4000)
    (root / HAL).write_bytes(bytes(5000))
    out("save", "before")
    assert keeping.load("before").files[f"/{HAL}"] == keeping.Stored(5000)
    (root / HAL).write_bytes(bytes(5001))
    assert f"/{HAL} changed" in out("diff", "before", code=1)


def test_the_list_goes_by_when_a_snapshot_was_taken_whatever_happened_to_its_file(tmp_path: Path) -> None:
    for name in ("c", "a", "b"):
        call("save", name)
        kept = tmp_path / "kept" / f"{name}.json"
        one = keeping.load(name)
        kept.unlink()
        keeping.save(replace(one, taken=f"2026-01-0{'cab'.index(name) + 1}T10:00:00+0800"))
    (tmp_path / "kept" / "c.json").touch()
    assert keeping.names() == ("c", "a", "b")


def test_an_empty_name_is_refused() -> None:
    with pytest.raises(ToolError, match="snapshot: name must"):
        call("save", "")
