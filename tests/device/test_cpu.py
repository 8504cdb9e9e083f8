"""The machine is described as it is, and other machines by name."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from pathlib import Path

import pytest

import jumar.device.cpu as machine
from jumar.base import DeviceError, f16, f32, f64, i8
from jumar.device import can_execute_here, host, missing_features, named, usable_cores


def test_the_host_is_a_machine_that_code_can_be_made_for() -> None:
    target = host()
    assert target.architecture in ("x86_64", "aarch64")
    assert target.cores == usable_cores() >= 1
    assert target.vector_bits in (128, 256, 512)
    assert 16 << 10 <= target.l1_nbytes <= target.l2_nbytes
    assert can_execute_here(target) and missing_features(target.features) == ()


def test_usable_cores_follow_the_affinity() -> None:
    before = os.sched_getaffinity(0)
    try:
        os.sched_setaffinity(0, {min(before)})
        assert usable_cores() == 1
    finally:
        os.sched_setaffinity(0, before)


@pytest.mark.parametrize(
    "quota, cores", [("50000 100000", 1), ("100000 100000", 1), ("150000 100000", 2), ("240000 100000", 2), ("max 100000", 4), ("", 4)]
)
def test_usable_cores_follow_the_quota_of_a_container(quota: str, cores: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "cpu.max").write_text(quota)
    monkeypatch.setattr(machine, "_cgroup_folders", lambda: [tmp_path])
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(4)))
    assert cores == usable_cores()


def test_usable_cores_follow_the_quota_of_an_older_container(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "cpu.cfs_quota_us").write_text("50000")
    (tmp_path / "cpu.cfs_period_us").write_text("100000")
    monkeypatch.setattr(machine, "_cgroup_folders", lambda: [tmp_path])
    assert 1 == usable_cores()


def test_settings_name_another_cpu_and_change_features(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JUMAR_CPU", "x86-64-v2")
    assert host().cpu == "x86-64-v2" and host().vector_bits == 128 and not host().has("avx2")
    monkeypatch.setenv("JUMAR_CPU_FEATURES", "+avx,+avx2")
    assert host().has("avx2") and host().vector_bits == 256


def test_this_cpu_named_keeps_what_it_has(monkeypatch: pytest.MonkeyPatch) -> None:
    features = "+avx,+avx2,+fma,+avxvnni"
    monkeypatch.setattr(machine, "_detected", lambda: ("alderlake", features, "x86_64-unknown-linux-gnu"))
    monkeypatch.setattr(platform, "machine", lambda: "x86_64")
    monkeypatch.setenv("JUMAR_CPU", "alderlake")
    machine._host.cache_clear()
    try:
        assert host().features == features and host().vector_bits == 256
    finally:
        machine._host.cache_clear()


@pytest.mark.parametrize(
    "cpu, bits, registers", [("x86-64", 128, 16), ("x86-64-v3", 256, 16), ("skylake-avx512", 512, 32), ("neoverse-n1", 128, 32)]
)
def test_named_targets_have_their_width_and_registers(cpu: str, bits: int, registers: int) -> None:
    target = named(cpu)
    assert (target.vector_bits, target.vector_registers) == (bits, registers)
    assert target.lanes(f32) == target.lanes(f16) == bits // 32
    assert target.lanes(f64) == bits // 64 and target.lanes(i8) == bits // 8


def test_an_unknown_cpu_is_refused_with_the_known_ones() -> None:
    with pytest.raises(DeviceError, match=r"name must be one of x86-64, .* got 'z80'"):
        named("z80")


def test_missing_features_names_what_a_package_cannot_have_here() -> None:
    assert missing_features("+prfchw,+sse2") == ()
    lacking = missing_features("+avx512f,+neon,+avx512bw")
    assert lacking and set(lacking) <= {"avx512f", "neon", "avx512bw"}


@pytest.mark.parametrize("name", ["potato", "i386", "neoverse-n1" if host().architecture == "x86_64" else "haswell"])
def test_a_cpu_that_code_cannot_be_made_for_is_refused_and_not_an_abort(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JUMAR_CPU", name)
    with pytest.raises(DeviceError, match=rf"JUMAR_CPU must name a CPU of \w+ that LLVM knows, got '{name}'"):
        host()


def test_llvm_is_asked_once_for_each_kind_of_cpu(tmp_path: Path) -> None:
    code = "import sys\nfrom jumar.device import host\nprint(host(), 'llvmlite.binding' in sys.modules, sep='|')"
    environment = dict(os.environ, JUMAR_CACHE_DIR=str(tmp_path), JUMAR_CPU="")
    runs = [subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True) for _ in range(2)]
    (first, asked), (second, again) = (run.stdout.strip().split("|") for run in runs)
    assert first == second
    assert (asked, again) == ("True", "False")
