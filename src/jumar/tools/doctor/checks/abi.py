"""Python and the system's libraries: glibc and libstdc++ that a wheel needs, NumPy's ABI, what CANN's Python parts import.

In: a `View`.  Out: facts.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from jumar.device.ascend import read_version
from jumar.tools.doctor.machine import Seen
from jumar.tools.doctor.view import View, fact
from jumar.tools.knowledge import Fact

NEEDS_GLIBC = (  # package, from its version on, the C library that its wheels' tags (manylinux) ask for
    ("torch", "2.6.0", "2.28"),
    ("torch-npu", "2.6.0", "2.28"),
    ("vllm", "0.7.0", "2.28"),
)
NUMPY_1 = (("torch", "2.3.0"), ("torch-npu", "2.3.0"), ("mindspore", "2.7.0"))  # built against NumPy 1 before this version
CANN_NEEDS = ("numpy", "decorator", "attrs", "psutil", "scipy")  # what the operator compiler of every release imports


def glibc_old(v: View) -> list[Fact]:
    """The C library is older than an installed wheel's platform tag asks for."""
    have = v.machine.identity.glibc
    version = read_version(have.value) if have else None
    for package, since, needed in NEEDS_GLIBC:
        seen = v.machine.package(package)
        installed, first, least = (read_version(t) if t else None for t in (seen.value if seen else "", since, needed))
        if have and version and seen and installed and first and least and installed >= first and version < least:
            return [
                fact("glibc-too-old", [have.evidence, seen.evidence], have=have.value, needed=needed, package=f"{package} {seen.value}")
            ]
    return []


def libstdcxx_old(v: View) -> list[Fact]:
    """A library of CANN or of a framework asks for a newer libstdc++ than the one that is loaded."""
    offered = v.machine.identity.glibcxx
    have = read_version(offered.value) if offered else None
    if not (offered and have):
        return []
    for output in v.machine.output("needs-glibcxx"):
        for line, place in output.text.lines():
            found = re.match(r"^(\S+) needs GLIBCXX_(\S+)", line)
            needed = read_version(found[2]) if found else None
            if found and needed and needed > have:
                return [fact("libstdcxx-too-old", [offered.evidence, place], have=offered.value, needed=found[2], library=found[1])]
    return []


def numpy_2(v: View) -> list[Fact]:
    """NumPy 2 with a wheel that was built against NumPy 1."""
    numpy = v.machine.package("numpy")
    if numpy is None or not numpy.value.startswith("2."):
        return []
    for package, first in NUMPY_1:
        seen = v.machine.package(package)
        installed, since = read_version(seen.value) if seen else None, read_version(first)
        if seen and installed and since and installed < since:
            return [fact("numpy-2-with-old-wheel", [numpy.evidence, seen.evidence], numpy=numpy.value, package=f"{package} {seen.value}")]
    used = v.used
    cann, since = read_version(used.version) if used else None, read_version("8.0.0")
    if used and cann and since and cann < since and v.machine.package("torch-npu"):
        return [fact("numpy-2-with-old-wheel", [numpy.evidence, used.evidence], numpy=numpy.value, package=f"CANN {used.version}")]
    return []


def cann_imports(v: View) -> list[Fact]:
    """Python packages that CANN's operator compiler imports and that are not installed."""
    packages = v.machine.packages
    if not packages or not v.releases or not (v.machine.package("torch-npu") or v.machine.package("mindspore")) or "pip" not in packages:
        return []
    if packages["pip"].evidence.text.startswith("- "):
        return []  # a file that somebody wrote names what he wants, not all that is there
    lacking = [name for name in CANN_NEEDS if v.machine.package(name) is None]
    if not lacking:
        return []
    plugin: Seen | None = v.machine.package("torch-npu") or v.machine.package("mindspore")
    return [fact("cann-python-packages-missing", [plugin.evidence if plugin else None], packages=" ".join(lacking))]


def architecture(v: View) -> list[Fact]:
    """A CANN or a driver for another processor than the machine's."""
    arch = v.machine.identity.arch
    for release in (v.used,) if v.used else ():
        made = release.toolkit.get("arch")
        if arch and made and {arch.value, made.value} == {"aarch64", "x86_64"}:
            return [fact("cann-for-other-arch", [made.evidence, arch.evidence], cann=made.value, machine=arch.value)]
    return []


CHECKS: tuple[Callable[[View], list[Fact]], ...] = (architecture, glibc_old, libstdcxx_old, numpy_2, cann_imports)
