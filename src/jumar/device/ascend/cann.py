"""Is there an Ascend NPU, and CANN to drive it?  What was found, and where was looked.

In: device files, the driver's tool, environment variables, the usual folders.  Out: `Cann`, read by `jumar doctor` and `select`.
Nothing is loaded or started here.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

_FOLDERS = (
    "/usr/local/Ascend/cann",
    "/usr/local/Ascend/ascend-toolkit/latest",
    "/usr/local/Ascend/nnae/latest",
    "/usr/local/Ascend/nnrt/latest",
)
_VERSION_FILES = (
    "version.cfg",
    "version.info",
    "compiler/version.info",
    "runtime/version.info",
    "ascend_toolkit_install.info",
    "*/ascend_toolkit_install.info",
)


@dataclass(frozen=True)
class Cann:
    """The state of this machine as an Ascend host.

    devices: /dev/davinci0 ...; home: the toolkit's folder; version: CANN's; driver: the driver's version;
    looked: every place, with what it showed.
    """

    devices: tuple[str, ...] = ()
    npu_smi: str = ""
    home: str = ""
    version: str = ""
    driver: str = ""
    looked: tuple[str, ...] = ()

    @property
    def usable(self) -> bool:
        """A device and a toolkit are both there."""
        return bool(self.devices and self.home)

    def __str__(self) -> str:
        npu = f"{len(self.devices)} NPU" if self.devices else "no NPU"
        cann = f"CANN {self.version or 'of unknown version'} in {self.home}" if self.home else "no CANN"
        return "\n".join([f"{npu}, {cann}", *(f"  looked at {place}" for place in self.looked)])


def find_cann(root: Path = Path("/"), environment: Mapping[str, str] | None = None) -> Cann:
    """What there is of Ascend on this machine.   root, environment: for tests."""
    env = os.environ if environment is None else environment
    looked: list[str] = []

    def seen(place: str, what: str) -> None:
        looked.append(f"{place}: {what or 'nothing'}")

    devices = tuple(str(p) for p in sorted((root / "dev").glob("davinci[0-9]*")))
    seen("/dev/davinci*", ", ".join(devices))
    import shutil  # noqa: PLC0415  (3 ms, since it brings all compressions)

    npu_smi = shutil.which("npu-smi", path=env.get("PATH", "")) or ""
    usual = root / "usr/local/sbin/npu-smi"
    npu_smi = npu_smi or (str(usual) if os.path.isfile(usual) else "")
    seen("npu-smi on PATH and in /usr/local/sbin", npu_smi)
    driver = _version(root / "usr/local/Ascend/driver/version.info")
    seen("/usr/local/Ascend/driver/version.info", driver)

    home, version = "", ""
    places = [(name, Path(env[name])) for name in ("ASCEND_HOME_PATH", "ASCEND_TOOLKIT_HOME", "ASCEND_OPP_PATH") if env.get(name)]
    if not places:
        seen("ASCEND_HOME_PATH, ASCEND_TOOLKIT_HOME", "not set")
    places += [(folder, root / folder.lstrip("/")) for folder in _FOLDERS]
    for name, folder in places:
        if not os.path.isdir(folder):
            seen(name, "")
            continue
        found = next((v for pattern in _VERSION_FILES for file in sorted(folder.glob(pattern)) if (v := _version(file))), "")
        seen(name, f"{folder}, version {found or 'unknown'}")
        if not home:
            home, version = str(folder), found
    return Cann(devices, npu_smi, home, version, driver, tuple(looked))


def _version(file: Path) -> str:
    """The version that one of CANN's version files states, or an empty text."""
    try:
        text = file.read_text(errors="replace")
    except OSError:
        return ""
    found = re.search(r"(?im)^\s*(?:version|runtime_running_version)\s*=\s*\[?[^\d\n]*([\d][\w.]*)(?::([\w.]+))?", text)
    return (found[2] or found[1]) if found else ""  # version.cfg holds [build:release]
