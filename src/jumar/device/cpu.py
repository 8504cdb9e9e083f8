"""The CPU that this is: instruction set, usable cores, caches, memory.

In: LLVM's host detection, /proc, /sys, and the settings `cpu` and `cpu_features`.  Out: `host()`, the `Target` of this machine.
"""

from __future__ import annotations

import ctypes
import hashlib
import importlib.util
import os
import platform
import sys
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from jumar.base import DeviceError, Store, config, nearest
from jumar.device.target import Target

_SYS_CPU = Path("/sys/devices/system/cpu")


def host(cores: int = 0) -> Target:
    """The machine that this process runs on, with the settings `cpu` and `cpu_features` applied.   cores: to plan for; 0 for all that it may use."""
    found = _host(config("cpu"), config("cpu_features"))
    return replace(found, cores=cores) if cores else found


@lru_cache(maxsize=8)
def _host(cpu: str, features: str) -> Target:
    machine = platform.machine().lower()
    if machine not in ("x86_64", "amd64", "aarch64", "arm64"):
        raise DeviceError(f"cpu: machine must be x86_64 or aarch64, got {machine}", code="cpu-unsupported")
    name, found, triple = _detected()
    if cpu and cpu != name:
        _check_name(cpu, triple)
    if cpu:  # a named CPU brings its own features; those found here may be ones it lacks, unless it is this one
        found = FEATURES.get(cpu, found if cpu == name else "")
    flags = merge_features(found, features)
    return Target(
        name="cpu",
        triple=triple,
        cpu=cpu or name,
        features=flags,
        vector_bits=vector_bits(triple, flags),
        cores=usable_cores(),
        l1_nbytes=_cache_nbytes(1) or 32 << 10,
        l2_nbytes=_cache_nbytes(2) or 512 << 10,
        l3_nbytes=_cache_nbytes(3),
        memory_nbytes=memory_nbytes(),
    )


_IDENTITY = (  # lines of /proc/cpuinfo that tell one kind of CPU from another
    "vendor_id", "cpu family", "model", "model name", "stepping", "flags",
    "CPU implementer", "CPU architecture", "CPU variant", "CPU part", "CPU revision", "Features",
)  # fmt: skip


def _detected() -> tuple[str, str, str]:
    """Name, features and triple of this CPU as LLVM tells them: asked once for each kind of CPU and each LLVM, then kept in the cache.

    Loading LLVM takes 20 ms and 40 MB, more than a small model that comes from the cache.
    """
    first = _read(Path("/proc/cpuinfo")).split("\n\n", 1)[0]
    lines = [line for line in first.splitlines() if line.partition(":")[0].strip() in _IDENTITY]
    spec = importlib.util.find_spec("llvmlite")
    store = Store(config("cache_dir") / "native") if config("cache") and lines and spec and spec.origin else None
    key = ""
    if store and spec and spec.origin:
        status = os.stat(spec.origin)
        key = hashlib.sha256("\n".join((*lines, spec.origin, f"{status.st_size} {status.st_mtime_ns}")).encode()).hexdigest()
        kept = (store.get(key) or b"").decode().split("\n")
        if len(kept) == 3:
            return kept[0], kept[1], kept[2]
    import llvmlite.binding  # noqa: PLC0415  (heavy, and a deployed package that has its code runs without)

    llvm: Any = llvmlite.binding  # untyped
    found = (llvm.get_host_cpu_name(), llvm.get_host_cpu_features().flatten(), llvm.get_process_triple())
    if store:
        store.put(key, "\n".join(found).encode())
    return found


# LLVM ends the whole process on a name that cannot be: so it is tried in a process of its own
_TRY = """
import sys
import llvmlite.binding as llvm
llvm.initialize_native_target()
llvm.initialize_native_asmprinter()
machine = llvm.Target.from_triple(sys.argv[1]).create_target_machine(cpu=sys.argv[2])
machine.emit_object(llvm.parse_assembly("define void @f() { ret void }"))
"""


def _check_name(cpu: str, triple: str) -> None:
    """Refuses a CPU that LLVM does not know, or that is of another architecture than this machine."""
    if cpu in FEATURES:
        if ("neon" in FEATURES[cpu]) == triple.startswith(("aarch64", "arm64")):
            return
        refused = True
    else:
        import subprocess  # noqa: PLC0415  (4 ms: a named CPU that we do not know is rare)

        done = subprocess.run([sys.executable, "-c", _TRY, triple, cpu], capture_output=True, text=True, check=False)
        refused = done.returncode != 0 or "not a recognized processor" in done.stderr
    if refused:
        raise DeviceError(
            f"config: JUMAR_CPU must name a CPU of {triple.partition('-')[0]} that LLVM knows, got {cpu!r}",
            hint=nearest(cpu, list(FEATURES)) or f"for example JUMAR_CPU={'x86-64-v2' if triple.startswith('x86_64') else 'neoverse-n1'}",
            code="setting-value",
        )


_V2 = "+sse3,+ssse3,+sse4.1,+sse4.2,+popcnt"
_V3 = f"{_V2},+avx,+avx2,+bmi,+bmi2,+f16c,+fma,+lzcnt,+movbe"
FEATURES = {  # CPUs that code is often made for elsewhere, with what a program may count on there
    "x86-64": "+sse2",
    "x86-64-v2": _V2,
    "x86-64-v3": _V3,
    "x86-64-v4": f"{_V3},+avx512f,+avx512bw,+avx512cd,+avx512dq,+avx512vl",
    "haswell": _V3,
    "znver3": _V3,
    "skylake-avx512": f"{_V3},+avx512f,+avx512bw,+avx512cd,+avx512dq,+avx512vl",
    "neoverse-n1": "+neon,+fp-armv8,+fullfp16,+lse,+dotprod",
    "cortex-a53": "+neon,+fp-armv8",
    "tsv110": "+neon,+fp-armv8,+fullfp16,+lse,+dotprod",  # Kunpeng 920, the host of most Atlas servers
}


def named(cpu: str, *, cores: int = 1) -> Target:
    """A `Target` for one of `FEATURES`, to emit code for a machine that is not here.

    >>> named("skylake-avx512").vector_bits
    512
    """
    if cpu not in FEATURES:
        raise DeviceError(f"cpu: name must be one of {', '.join(FEATURES)}, got {cpu!r}", code="cpu-unsupported")
    triple = "x86_64-unknown-linux-gnu" if "neon" not in FEATURES[cpu] else "aarch64-unknown-linux-gnu"
    return Target("cpu", triple, cpu, FEATURES[cpu], vector_bits(triple, FEATURES[cpu]), cores)


def merge_features(found: str, wanted: str) -> str:
    """The feature list with the wanted changes, each feature once.

    >>> merge_features("+avx,+avx2", "-avx2,+fma")
    '+avx,-avx2,+fma'
    """
    table = {item[1:]: item[0] for text in (found, wanted) for item in text.split(",") if item[:1] in ("+", "-")}
    return ",".join(f"{sign}{name}" for name, sign in table.items())


def vector_bits(triple: str, features: str) -> int:
    """Width of the vector registers that code should use."""
    if not triple.startswith(("x86_64", "amd64")):
        return 128  # NEON; the length of SVE vectors is not known when code is made
    on = {item[1:] for item in features.split(",") if item.startswith("+")}
    return 512 if {"avx512f", "avx512vl", "avx512bw", "avx512dq"} <= on else 256 if "avx" in on else 128


def usable_cores() -> int:
    """Cores that this process may use: its affinity, cut by the CPU quota of its control group (a container's limit)."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    quota = _cgroup_quota()
    return max(1, min(cores, int(quota + 0.5))) if quota else cores


def _cgroup_quota() -> float:
    """CPUs' worth of time that the control group (v2, then v1) allows; 0 for no limit."""
    for folder in _cgroup_folders():
        v2 = _read(folder / "cpu.max").split()
        if len(v2) == 2 and v2[0] != "max":
            return int(v2[0]) / int(v2[1])
        quota, period = _read(folder / "cpu.cfs_quota_us"), _read(folder / "cpu.cfs_period_us")
        if quota and period and int(quota) > 0:
            return int(quota) / int(period)
    return 0.0


def _cgroup_folders() -> list[Path]:
    folders = [Path("/sys/fs/cgroup"), Path("/sys/fs/cgroup/cpu")]
    for line in _read(Path("/proc/self/cgroup")).splitlines():
        _, controllers, path = line.split(":", 2)
        if controllers == "":
            folders.insert(0, Path("/sys/fs/cgroup") / path.lstrip("/"))
        elif "cpu" in controllers.split(","):
            folders.insert(0, Path("/sys/fs/cgroup/cpu") / path.lstrip("/"))
    return folders


def memory_nbytes() -> int:
    """Bytes of memory in the machine, cut by the control group's limit; 0 where unknown."""
    total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") if hasattr(os, "sysconf") else 0
    limits = [_read(folder / "memory.max") for folder in _cgroup_folders()]
    return min([total, *(int(text) for text in limits if text.isdigit())])


def free_nbytes() -> int:
    """Bytes that a process can still get without swapping, as far as the system and the control group tell; 0 where unknown."""
    found = [int(line.split()[1]) << 10 for line in _read(Path("/proc/meminfo")).splitlines() if line.startswith("MemAvailable:")]
    for folder in _cgroup_folders():
        limit, used = _read(folder / "memory.max"), _read(folder / "memory.current")
        if limit.isdigit() and used.isdigit():
            reclaimable = [int(line.split()[1]) for line in _read(folder / "memory.stat").splitlines() if line.startswith("inactive_file ")]
            found.append(int(limit) - int(used) + sum(reclaimable))
    return max(0, min(found)) if found else 0


def _cache_nbytes(level: int) -> int:
    """Size of the data cache of that level of core 0; 0 where unknown."""
    for folder in sorted((_SYS_CPU / "cpu0/cache").glob("index*")):
        if _read(folder / "level") == str(level) and _read(folder / "type") in ("Data", "Unified"):
            size = _read(folder / "size")
            unit = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}.get(size[-1:], 1)
            return int(size.rstrip("KMG") or 0) * unit
    return 0


def _read(path: Path) -> str:
    try:
        return path.read_text().strip()
    except OSError:
        return ""


def pin(core: int) -> bool:
    """Binds the calling thread to one core; whether the system did it.   For measurements."""
    try:
        os.sched_setaffinity(0, {core})
    except (OSError, AttributeError):
        return False
    return True


def can_execute_here(target: Target) -> bool:
    """Whether code made for `target` can run on this machine, as far as its features tell."""
    here = _host("", "")
    needs = {item for item in target.features.split(",") if item.startswith("+")}
    return ctypes.sizeof(ctypes.c_void_p) == 8 and here.architecture == target.architecture and needs <= set(here.features.split(","))


_PROC_NAMES = {"sse4.1": "sse4_1", "sse4.2": "sse4_2", "lzcnt": "abm", "bmi": "bmi1", "sse3": "pni", "neon": "asimd", "fullfp16": "asimdhp"}
_PROC_NAMES |= {"lse": "atomics", "dotprod": "asimddp", "fp-armv8": "fp", "avx512vnni": "avx512_vnni", "avxvnni": "avx_vnni"}
# what generated code may use; LLVM names many more that it never does
_VECTOR_FEATURES = (
    "sse3", "ssse3", "sse4.1", "sse4.2", "popcnt", "avx", "avx2", "fma", "f16c", "bmi", "bmi2", "lzcnt", "movbe",
    "avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl", "avx512vnni", "avxvnni", "neon", "fullfp16", "lse", "dotprod", "i8mm",
)  # fmt: skip


def missing_features(features: str) -> tuple[str, ...]:
    """Which of the features (LLVM's list) this CPU lacks, by /proc/cpuinfo: what a deployed package asks, without LLVM."""
    text = _read(Path("/proc/cpuinfo"))
    lines = [line.partition(":")[2] for line in text.splitlines() if line.lower().startswith(("flags", "features"))]
    if not lines:
        return ()
    here = set(lines[0].split())
    wanted = [item[1:] for item in features.split(",") if item.startswith("+")]
    return tuple(w for w in wanted if w in _VECTOR_FEATURES and _PROC_NAMES.get(w, w) not in here)
