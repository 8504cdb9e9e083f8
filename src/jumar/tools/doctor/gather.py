"""Gathers a `Machine` of this machine: version files, device nodes, environment, packages, what npu-smi and hccn_tool say.

In: files and folders below `root`, os.environ, the installed packages' metadata (nothing of theirs is imported), the tools of
commands.py.  Out: `Machine` with whole=True: what is not in it is not there.  Nothing is changed, nothing is sent.
"""

from __future__ import annotations

import fcntl
import grp
import os
import platform
import pwd
import re
import socket
import stat
import struct
import sys
from collections.abc import Iterator, Mapping
from contextlib import suppress
from importlib import metadata
from pathlib import Path

from jumar.device.ascend import inside_container
from jumar.tools.doctor import abi
from jumar.tools.doctor.commands import Runner, ask, run
from jumar.tools.doctor.machine import Entry, Identity, Listing, Machine, Output, Seen, Text, normal, not_read
from jumar.tools.doctor.rights import rights
from jumar.tools.knowledge.facts import Evidence

_ADDRESS_OF_CARD = 0x8915  # SIOCGIFADDR of linux/sockios.h
MOST = 2_000_000  # bytes of a file that are read: version files have hundreds
FILES = (
    "etc/ascend_install.info",
    "etc/hccn.conf",
    "etc/os-release",
    "etc/ld.so.conf",
    "etc/ld.so.conf.d/*",
    "usr/local/Ascend/driver/version.info",
    "usr/local/Ascend/firmware/version.info",
    "var/log/ascend_seclog/ascend_install.log",
    "proc/meminfo",
    "proc/modules",
    "proc/version",
    "proc/1/cgroup",
    "proc/self/mountinfo",
    "proc/self/limits",
    "proc/self/status",
    "proc/self/uid_map",
    "sys/fs/cgroup/devices/devices.list",  # of cgroup v1
    "sys/fs/cgroup/cgroup.controllers",  # shows that it is v2, whose list of devices no file shows
    "proc/sys/net/ipv4/ip_local_reserved_ports",
    "proc/net/tcp",
    "proc/net/tcp6",
    "usr/local/bin/npu-smi",
)
HOMES = (  # where CANN is put, a release each
    "usr/local/Ascend/cann*",
    "usr/local/Ascend/ascend-toolkit/*",
    "usr/local/Ascend/nnae/*",
    "usr/local/Ascend/nnrt/*",
    "opt/Ascend/cann*",
    "opt/Ascend/ascend-toolkit/*",
    "home/*/Ascend/cann*",
    "home/*/Ascend/ascend-toolkit/*",
    "root/Ascend/ascend-toolkit/*",
)
OF_CANN = (  # below a home
    "version.cfg",
    "ascend_toolkit_install.info",
    "*-linux/ascend_toolkit_install.info",
    *(f"{part}/version.info" for part in ("compiler", "runtime", "opp", "toolkit", "hccl", "opp_kernel", "fwkplugin")),
    *(f"*-linux/{part}/version.info" for part in ("compiler", "runtime", "opp", "toolkit", "hccl")),
    "share/info/*/version.info",
)
OF_NNAL = ("usr/local/Ascend/nnal/atb/*/version.info",)
FOLDERS = (  # listed as a whole
    "dev",
    "usr/local/Ascend",
    "usr/local/Ascend/driver",
    "usr/local/Ascend/driver/lib64",
    "usr/local/Ascend/driver/lib64/driver",
    "usr/local/Ascend/driver/lib64/common",
    "usr/local/Ascend/ascend-toolkit",
    "usr/local/bin",
    "usr/local/sbin",
)
KERNELS = ("opp/built-in/op_impl/ai_core/tbe/kernel/config", "opp/*/built-in/op_impl/ai_core/tbe/kernel/config")
OF_DEV = re.compile(r"davinci|devmm|hisi_hdc|dvpp|asdrv|ascend|shm|uburma|svm", re.IGNORECASE)
OF_FOLDER = {"/dev": OF_DEV} | dict.fromkeys(
    ("/usr/local/bin", "/usr/local/sbin"), re.compile(r"npu|hccn|ascend|dcmi|msn|^ms[a-z]+$|^atc$|^cann")
)
OPENED = re.compile(r"davinci(?:\d+|_manager)|devmm_svm|hisi_hdc")
VARIABLES = re.compile(
    r"^NNODES$|NODE_NUM|^(?:LOCAL_)?WORLD_|ASCEND|CANN|NPU|HCCL|HCCN|RANK|DEVICE_ID|LD_LIBRARY_PATH|LD_PRELOAD|PYTHONPATH|^PATH$|^MS_|GLOO|TP_SOCKET|^TORCH|TOOLCHAIN|ATB"
    r"|MASTER_(ADDR|PORT)|CONDA_(PREFIX|DEFAULT)|VIRTUAL_ENV|^TE_|TUNE|^DDK|^ASD|OMP_NUM|^LANG$|^LC_|SOC_VERSION|VLLM|^USER$|^HOME$|^KUBERNETES_SERVICE",
)
SECRET = re.compile(r"TOKEN|SECRET|PASSW|CREDENTIAL|API_?KEY|ACCESS_?KEY", re.IGNORECASE)


def gather(root: Path = Path("/"), environment: Mapping[str, str] | None = None, runner: Runner | None = run) -> Machine:
    """This machine.   root, environment, runner: for tests; runner None asks no tool."""
    env = dict(os.environ) if environment is None else dict(environment)
    notes: list[str] = []
    files: dict[str, Text] = {}
    homes = _homes(root, env)
    for file in _found(root, FILES, [p for home in homes for p in _below(home, OF_CANN)], env):
        text = _read(file, notes)
        if text is not None:
            path = _logical(root, file)
            files[path] = Text(path, text)
    listings = _listings(root, homes, notes)
    cards = sorted(int(name[7:]) for name in listings["/dev"].names() if re.fullmatch(r"davinci\d+", name)) if "/dev" in listings else []
    packages, places = _packages()
    listings |= _plugins(places, notes)
    nodes = [f"/dev/{n}" for n in (listings["/dev"].names() if "/dev" in listings else ()) if OPENED.fullmatch(n)]
    outputs = [*_mounts(root, env), *_networks(root), *_needs(places, homes), *rights(root, nodes, env)]
    if runner is not None:
        outputs += ask(cards, runner)
    kept = {name: value for name, value in sorted(env.items()) if VARIABLES.search(name) and not SECRET.search(name)}
    seen = {name: Seen(value, Evidence("environment", 0, f"{name}={value}"[:300])) for name, value in kept.items()}
    return Machine(
        files=files,
        listings=listings,
        outputs=tuple(outputs),
        environment=seen,
        packages=packages,
        identity=_identity(root, env, files, notes),
        whole=True,
        here=root == Path("/"),
        notes=tuple(notes),
    )


def _logical(root: Path, file: Path) -> str:
    return "/" + str(file.relative_to(root)) if file.is_relative_to(root) else str(file)


def _glob(root: Path, pattern: str) -> list[Path]:
    if not any(c in pattern for c in "*?["):
        return [root / pattern] if os.path.lexists(root / pattern) else []
    try:
        return sorted(root.glob(pattern))
    except OSError:
        return []


def _below(home: Path, patterns: tuple[str, ...]) -> Iterator[Path]:
    for pattern in patterns:
        yield from _glob(home, pattern)


def _homes(root: Path, env: Mapping[str, str]) -> tuple[Path, ...]:
    """Folders that hold a CANN release, as they are named (a link `latest` and what it points to both count)."""
    named = [env[n] for n in ("ASCEND_HOME_PATH", "ASCEND_TOOLKIT_HOME") if env.get(n, "").startswith("/")]
    places = [root / name.lstrip("/") for name in named] + [p for pattern in HOMES for p in _glob(root, pattern)]
    return tuple(dict.fromkeys(p for p in places if os.path.isdir(p) and not p.name.startswith(".")))


def _found(root: Path, patterns: tuple[str, ...], more: list[Path], env: Mapping[str, str]) -> tuple[Path, ...]:
    places = [p for pattern in (*patterns, *OF_NNAL) for p in _glob(root, pattern)] + more
    for name in ("RANK_TABLE_FILE", "HCCL_CONFIG_PATH"):
        if env.get(name, "").startswith("/"):
            places.append(root / env[name].lstrip("/"))
    installed = root / "etc/ascend_install.info"
    if os.access(installed, os.R_OK):  # the driver may lie elsewhere
        found = re.search(r"(?m)^Driver_Install_Path_Param=(/\S+)", installed.read_text(errors="replace"))
        if found:
            places += [root / found[1].lstrip("/") / part / "version.info" for part in ("driver", "firmware")]
    return tuple(dict.fromkeys(p for p in places if os.path.isfile(p)))


def _read(file: Path, notes: list[str]) -> str | None:
    try:
        with file.open("rb") as stream:
            raw = stream.read(MOST)
    except OSError as error:
        notes.append(not_read(file, error))
        return None
    return "(a program)" if raw.startswith(b"\x7fELF") else raw.decode("utf-8", "replace")


def _listings(root: Path, homes: tuple[Path, ...], notes: list[str]) -> dict[str, Listing]:
    folders = [root / f for f in FOLDERS] + list(homes) + [p for home in homes for p in _below(home, KERNELS)]
    found: dict[str, Listing] = {}
    for folder in folders:
        if not os.path.isdir(folder):
            continue
        path = _logical(root, folder)
        try:
            names = sorted(os.listdir(folder))
        except OSError as error:
            notes.append(not_read(path, error))
            continue
        wanted = OF_FOLDER.get(path)  # other names there tell of their owner, not of an NPU
        kept = [n for n in names if wanted is None or wanted.search(n)]
        found[path] = Listing(f"ls -la {path}", tuple(_entry(path, folder / n, i) for i, n in enumerate(kept, 2)))
    return found


def _entry(folder: str, path: Path, line: int) -> Entry:
    try:
        status = path.lstat()
        target = os.readlink(path) if stat.S_ISLNK(status.st_mode) else ""
    except OSError:
        return Entry(path.name)
    node = (os.major(status.st_rdev), os.minor(status.st_rdev)) if stat.S_ISCHR(status.st_mode) else None
    mode, owner, group = stat.filemode(status.st_mode), _user(status.st_uid), _group(status.st_gid)
    numbers = f"{node[0]}, {node[1]} " if node else ""
    text = f"{mode} {owner} {group} {numbers}{path.name}" + (f" -> {target}" if target else "")
    return Entry(path.name, mode, owner, group, target, Evidence(f"ls -la {folder}", line, text), node)


def _user(number: int) -> str:
    try:
        return pwd.getpwuid(number).pw_name
    except KeyError:
        return str(number)


def _group(number: int) -> str:
    try:
        return grp.getgrgid(number).gr_name
    except KeyError:
        return str(number)


def _packages() -> tuple[dict[str, Seen], dict[str, Path]]:
    """What is installed for this interpreter, by the names of its metadata's folders (reading each takes half a second), and the folder of each."""
    found: dict[str, Seen] = {}
    places: dict[str, Path] = {}
    for place in dict.fromkeys(Path(entry or ".") for entry in sys.path):
        try:
            entries = sorted(os.listdir(place))
        except OSError:  # not there, or a zip
            continue
        for entry in entries:
            named = re.fullmatch(r"([A-Za-z0-9][\w.]*)-([^-]+)\.dist-info", entry)
            name, version = (named[1], named[2]) if named else _of_egg(place / entry) if entry.endswith(".egg-info") else ("", "")
            if name and normal(name) not in found:
                found[normal(name)] = Seen(version, Evidence("pip list -v", len(found) + 3, f"{name} {version} {place}"))
                places[normal(name)] = place
    return found, places


def _of_egg(path: Path) -> tuple[str, str]:
    """Name and version of a package that was installed in the old way."""
    package = metadata.Distribution.at(path)
    try:
        return package.metadata["Name"] or "", package.version or ""
    except (KeyError, TypeError, OSError):
        return "", ""


def _plugins(places: Mapping[str, Path], notes: list[str]) -> dict[str, Listing]:
    """MindSpore's plug-ins: a CPU build has none for Ascend."""
    folder = places["mindspore"] / "mindspore/lib/plugin" if "mindspore" in places else None
    if folder is None or not os.path.isdir(folder):
        return {}
    try:
        names = sorted(os.listdir(folder))
    except OSError as error:
        notes.append(not_read(folder, error))
        return {}
    return {str(folder): Listing(f"ls -la {folder}", tuple(_entry(str(folder), folder / n, i) for i, n in enumerate(names, 2)))}


def _needs(places: Mapping[str, Path], homes: tuple[Path, ...]) -> list[Output]:
    """The newest GLIBCXX that the frameworks' and CANN's own libraries ask for."""
    patterns = (("torch-npu", "torch_npu/_C*.so"), ("torch-npu", "torch_npu/lib/libtorch_npu.so"), ("mindspore", "mindspore/_c_*.so"))
    files = [f for name, pattern in patterns if name in places for f in _glob(places[name], pattern)]
    files += [home / "lib64/libascendcl.so" for home in homes[:4]]
    rows = [f"{file} needs GLIBCXX_{wanted}" for file in files if os.path.isfile(file) and (wanted := abi.newest(file).get("GLIBCXX"))]
    return [Output("needs-glibcxx", Text("libraries", "\n".join(rows)), 0)] if rows else []


def _mounts(root: Path, env: Mapping[str, str]) -> list[Output]:
    """Room in the folders that the work needs, as `df -Pk` prints it."""
    home = env.get("HOME", "/root")
    asked = [
        "/",
        "/tmp",
        "/dev/shm",
        "/var/log",
        home,
        *(env.get(n, "") for n in ("ASCEND_CACHE_PATH", "ASCEND_WORK_PATH", "TE_CACHE", "TMPDIR")),
    ]
    rows = []
    for path in dict.fromkeys(p for p in asked if p.startswith("/")):
        try:
            room = os.statvfs(root / path.lstrip("/"))
        except OSError:
            continue
        total, free = (n * room.f_frsize // 1024 for n in (room.f_blocks, room.f_bavail))
        used = total - room.f_bfree * room.f_frsize // 1024
        rows.append(f"- {total} {used} {free} {100 * used // max(used + free, 1)}% {path}")
    head = "Filesystem 1024-blocks Used Available Capacity Mounted on"
    return [Output("df -Pk", Text("df -Pk", "\n".join([head, *rows])), 0)] if rows else []


def _networks(root: Path) -> list[Output]:
    """Network cards with their MTU, as `ip -o link` prints them."""
    rows = []
    for number, card in enumerate(_glob(root, "sys/class/net/*"), 1):
        try:
            mtu, state = ((card / name).read_text().strip() for name in ("mtu", "operstate"))
        except OSError:
            continue
        rows.append(f"{number}: {card.name}: <> mtu {mtu} state {state.upper()}")
    named = [f"{number}: {name}    inet {address}" for number, name, address in _addresses(root)]
    found = [("ip -o link", rows), ("ip -o -4 addr", named)]
    return [Output(command, Text(command, "\n".join(lines)), 0) for command, lines in found if lines]


def _addresses(root: Path) -> Iterator[tuple[int, str, str]]:
    """Number, name and IPv4 address of each network card of this machine; nothing is sent for it."""
    if root != Path("/"):
        return
    try:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asked:
            for number, name in socket.if_nameindex():
                with suppress(OSError):  # a card without an address
                    told = fcntl.ioctl(asked, _ADDRESS_OF_CARD, struct.pack("256s", name.encode()[:15]))
                    yield number, name, socket.inet_ntoa(told[20:24])
    except OSError:
        return


def _identity(root: Path, env: Mapping[str, str], files: Mapping[str, Text], notes: list[str]) -> Identity:
    def said(source: str, value: str) -> Seen | None:
        return Seen(value, Evidence(source, 0, value)) if value else None

    release = files.get("/etc/os-release", Text("", "")).keys()
    system = release.get("PRETTY_NAME") or release.get("NAME")
    conda = [str(Path(sys.prefix) / "lib")] if root == Path("/") else []  # its python looks there before LD_LIBRARY_PATH
    library = abi.libstdcxx(root, ":".join([*conda, env.get("LD_LIBRARY_PATH", "")]))
    offered = abi.newest(library).get("GLIBCXX", "") if library else ""
    cxx = Seen(offered, Evidence(str(library), 0, f"GLIBCXX_{offered}")) if offered else None
    try:
        groups = " ".join(sorted({_group(g) for g in (*os.getgroups(), os.getegid())}))
    except OSError:
        groups = ""
    return Identity(
        os=system,
        kernel=said("uname -r", platform.release()),
        arch=said("uname -m", platform.machine()),
        glibc=said("ldd --version", abi.glibc()),
        glibcxx=cxx,
        python=said("python --version", platform.python_version()),
        user=said("id", _user(os.geteuid())),
        groups=said("id", groups),
        container=_container(root, env, files),
    )


def _container(root: Path, env: Mapping[str, str], files: Mapping[str, Text]) -> Seen:
    """What shows that this is a container; "no" where nothing does."""
    found = inside_container(
        files.get("/proc/1/cgroup", Text("", "")).text,
        dockerenv=os.path.exists(root / ".dockerenv"),
        environment=env,
        mounts=files.get("/proc/self/mountinfo", Text("", "")).text,
    )
    told = found.evidence[0] if found.evidence else "no container named"
    return Seen(found.kind or "no", Evidence("/proc/1/cgroup" if "cgroup" in told or not found else "system", 0, told))
