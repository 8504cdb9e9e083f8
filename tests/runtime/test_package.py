"""A package runs where there is no compiler, and refuses what it cannot run with the reason."""

from __future__ import annotations

import json
import subprocess
import sys
import zipfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import jumar.runtime
from jumar.base import RuntimeFault, TensorType, f32
from jumar.runtime import HostStep, Ref, View, load_package, run_package, save_package
from tests.runtime.programs import chain, chain_expected

X = np.linspace(-1, 1, 64, dtype=np.float32)


@pytest.fixture
def package(tmp_path: Path) -> Path:
    programs = [replace(chain(3, n), target="") for n in (64, 128)]
    return save_package(tmp_path / "model.jmr", programs, name="model")


def test_a_package_runs_the_program_that_fits_the_inputs(package: Path) -> None:
    loaded = load_package(package)
    for n in (64, 128):
        x = np.linspace(0, 1, n, dtype=np.float32)
        np.testing.assert_array_equal(loaded.run([x])["y"], chain_expected(x, 3))
    np.testing.assert_array_equal(run_package(package, {"x": X})["y"], chain_expected(X, 3))
    with pytest.raises(RuntimeFault, match=r"inputs must be one of \[x: f32\[64\]; x: f32\[128\]\], got \[f32\[5\]\]"):
        loaded.run([np.zeros(5, np.float32)])
    with pytest.raises(RuntimeFault, match="inputs must be x, got z"):
        loaded.run({"z": X})


def test_the_manifest_can_be_read(package: Path) -> None:
    manifest = json.loads(zipfile.ZipFile(package).read("manifest.json"))
    assert manifest["name"] == "model" and manifest["programs"][0]["inputs"] == {"x": "f32[64]"}


def test_the_command_runs_with_base_device_and_runtime_only(package: Path, tmp_path: Path) -> None:
    np.savez(tmp_path / "in.npz", x=X)
    source = Path(jumar.runtime.__file__).parents[1]
    script = f"""
import sys, types
house = types.ModuleType("jumar")  # what jumar/__init__.py brings is for users of the compiler
house.__path__ = [{str(source)!r}]
sys.modules["jumar"] = house
from jumar.runtime.__main__ import main
assert main([{str(package)!r}, {str(tmp_path / "in.npz")!r}, "-o", {str(tmp_path / "out.npz")!r}]) == 0
rooms = {{m.split(".")[1] for m in sys.modules if m.startswith("jumar.")}}
assert rooms == {{"base", "device", "runtime"}}, rooms
assert not any(m.startswith("llvmlite") for m in sys.modules)
"""
    subprocess.run([sys.executable, "-c", script], check=True, timeout=120)
    np.testing.assert_array_equal(np.load(tmp_path / "out.npz")["y"], chain_expected(X, 3))


def test_host_steps_are_refused_with_their_names(tmp_path: Path) -> None:
    v = View(Ref("arena"), TensorType((4,), f32))
    program = replace(chain(1), steps=(HostStep("nonzero", (v,), (v,)),))
    with pytest.raises(RuntimeFault, match="every step must have native code, got host steps nonzero"):
        save_package(tmp_path / "model.jmr", [program])


def test_damaged_files_are_refused(package: Path) -> None:
    raw = package.read_bytes()
    for bit in range(0, 8 * len(raw), 8 * len(raw) // 150):
        changed = bytearray(raw)
        changed[bit // 8] ^= 1 << bit % 8
        package.write_bytes(changed)
        try:
            result = load_package(package).run([X])
        except RuntimeFault:
            continue
        np.testing.assert_array_equal(result["y"], chain_expected(X, 3))  # a date, or padding
    package.write_bytes(raw[:1000])
    with pytest.raises(RuntimeFault, match=r"must be a whole \.jmr file"):
        load_package(package)


def test_a_package_for_another_machine_is_refused(package: Path) -> None:
    program = replace(chain(1), target="x86_64-unknown-linux-gnu/knm/+avx512f,+neon,+avx512bw")
    save_package(package, [program], architecture="")
    with pytest.raises(RuntimeFault, match=r"which it lacks|machine must be x86_64"):
        load_package(package)
    save_package(package, [program], architecture="aarch64")
    if jumar.runtime.package.platform.machine() == "x86_64":
        with pytest.raises(RuntimeFault, match="machine must be aarch64, got x86_64"):
            load_package(package)
