"""Makes a `Machine` of files that were copied off another one, in any layout: what each is, its content and its name say.

In: a folder, an archive or one text (archive.py).  Out: the same `Machine` that gather.py makes; what is in no known form becomes a log.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from pathlib import Path

from jumar.base import Said, ToolError
from jumar.device.ascend import inside_container
from jumar.tools.doctor import readings
from jumar.tools.doctor.archive import Shelf, read
from jumar.tools.doctor.machine import UNKNOWN, Entry, Identity, Listing, Machine, Output, Seen, Text
from jumar.tools.doctor.recognise import WHAT_TO_COPY, kind_of, known_command
from jumar.tools.doctor.transcript import Section, sections, tables
from jumar.tools.knowledge import Evidence

SEVERAL = "files of several machines"
MARKER = "jumar-collected.txt"  # its presence says that everything was copied that the checks look at
PARTIAL = "partial = yes"  # in it: only some of that was there
MANIFEST = "jumar-doctor.json"  # of a collection: its files' sizes and hashes, nothing of the machine
_ROOTS = re.compile(
    r"(?:^|[/!])((?:usr/local/Ascend|opt/Ascend|etc/(?:ascend|hccn|os-release)|proc/|var/log/|home/[^/]+/Ascend|root/Ascend|dev/|sys/class/net|sys/fs/cgroup).*)$"
)
_TREE = r"(?:usr/local/Ascend|opt/Ascend|home/[^/]+/Ascend|root/Ascend)/"
_PARTS = ["opp_kernel", "compiler", "runtime", "opp", "toolkit", "hccl", "fwkplugin", "aoe", "ncs"]
_KERNEL_FOLDER = "opp/built-in/op_impl/ai_core/tbe/kernel/config"


@dataclass
class _Pieces:
    """What was recognised so far (the buffer that foreign() freezes)."""

    files: dict[str, Text] = field(default_factory=dict)
    listings: dict[str, Listing] = field(default_factory=dict)
    outputs: list[Output] = field(default_factory=list)
    environment: dict[str, Seen] = field(default_factory=dict)
    packages: dict[str, Seen] = field(default_factory=dict)
    identity: Identity = UNKNOWN
    logs: list[Text] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def list(self, found: dict[str, Listing]) -> None:
        for folder, listing in found.items():
            self.listings[folder] = self.listings[folder].joined(listing) if folder in self.listings else listing


def foreign(path: Path) -> Machine:
    """The machine that the files below `path` tell of."""
    shelf = read(path)
    pieces = _Pieces()
    marker = next((name for name, _ in shelf.texts if _last(name) == MARKER), "")
    whole = bool(marker) and not shelf.cut and PARTIAL not in dict(shelf.texts)[marker]
    beside = marker.removesuffix(MARKER)
    _from_names(shelf, pieces)
    for name, text in shelf.texts:
        if name == marker:
            pieces.identity = _told(Text(name, text), pieces.identity)
        elif marker and name.startswith(f"{beside}files/"):
            place = name.removeprefix(f"{beside}files")
            pieces.files[place] = Text(name, text)
            _from_file(place, pieces.files[place], pieces)
        elif name != f"{beside}{MANIFEST}":
            _file(name, text, pieces)
    if pieces.identity.python is None and "python" in pieces.packages:  # conda lists it as a package
        pieces.identity = replace(pieces.identity, python=pieces.packages["python"])
    machine = Machine(
        pieces.files,
        pieces.listings,
        tuple(pieces.outputs),
        _expanded(pieces.environment),
        pieces.packages,
        pieces.identity,
        tuple(pieces.logs),
        whole=whole,
        notes=(*shelf.notes, *pieces.notes),
    )
    if machine.empty:
        raise ToolError(
            Said(
                f"{path.name or path}: must hold files of a machine, got none that is known",
                f"{path.name or path}：其中没有可识别的机器文件",
            ),
            hint=WHAT_TO_COPY,
            code="doctor-from",
        )
    return machine


def _last(name: str) -> str:
    """A file's own name: without its folders and the archives that it lies in."""
    return re.split(r"[/!]", name)[-1]


def _expanded(environment: dict[str, Seen]) -> dict[str, Seen]:
    """Variables whose values name others (`${ASCEND_TOOLKIT_HOME}/opp`, of a set_env.sh) with those filled in."""

    def of(name: re.Match[str]) -> str:
        known = environment.get(name[1])
        return known.value if known and "$" not in known.value and len(known.value) < 1000 else name[0]

    return {
        n: replace(s, value=re.sub(r"\$\{?([A-Za-z_]\w{0,60})\}?", of, s.value)) if "$" in s.value else s for n, s in environment.items()
    }


def _from_names(shelf: Shelf, pieces: _Pieces) -> None:
    """What names alone tell: device files, and folders of kernels in a copied tree."""
    marker = next((name for name in shelf.names if _last(name) in (".dockerenv", ".containerenv")), "")
    if marker:
        pieces.identity = replace(pieces.identity, container=Seen("docker", Evidence(marker, 0, "it is there")))
    nodes = {name: (mode, owner, group) for name, mode, owner, group in shelf.nodes}
    for name in shelf.names:
        node = re.search(r"(?:^|[/!])dev/((?:davinci|devmm_svm|hisi_hdc|asdrv_svm)[^/]*)$", name)
        if node:
            mode, owner, group = nodes.get(name, ("", "", ""))
            pieces.list(
                {"/dev": Listing(name, (Entry(node[1], mode, owner, group, evidence=Evidence(name, 0, f"{mode} {node[1]}".strip())),), ())}
            )
        kernels = re.search(rf"(?:^|[/!])({_TREE}.*?{_KERNEL_FOLDER})/(ascend\d\w*)/", name)
        if kernels:
            pieces.list({f"/{kernels[1]}": Listing(name, (Entry(kernels[2], evidence=Evidence(name, 0, kernels[2])),))})


def _file(name: str, text: str, pieces: _Pieces) -> None:
    placed = _ROOTS.search(name)
    if placed and ("/ascend_seclog/" in name or not re.search(r"\.(?:log|txt)$", name)):
        path = "/" + placed[1]
        other = pieces.files.get(path)
        if other is not None and other.text != text and not any(n.startswith(SEVERAL) for n in pieces.notes):
            pieces.notes.append(
                Said(
                    f"{SEVERAL}: {other.source} and {name} differ; give the folder of one",
                    f"含有多台机器的文件：{other.source} 与 {name} 不同；请只给其中一台的目录",
                )
            )
        pieces.files[path] = Text(name, text)
        _from_file(path, Text(name, text), pieces)
        return
    found = sections(text)
    if any(s.command for s in found):
        for section in found:
            _section(name, section, pieces)
        return
    kind = kind_of(name, text)
    if kind == "log" or not found:
        pieces.logs.append(Text(name, text))
        return
    if kind in _FEW and _mostly_other(kind, text):
        pieces.logs.append(Text(name, text))
        for command in _RUN.finditer(text):
            line = text.count("\n", 0, command.start()) + 1
            pieces.outputs.append(Output("docker run", Text(name, command[0], line)))
        return
    for part in tables(found[0]):
        if kind_of(name, text) == "collect-env" and not part.command:
            _collected(Text(name, part.text, part.first_line), pieces)
        else:
            _section(name, part, pieces)


_RUN = re.compile(r"^[ \t]*(?:sudo[ \t]+)?(?:docker|nerdctl|podman)[ \t]+run\b(?:[^\n]*\\\n)*[^\n]*", re.MULTILINE)
_FEW = {  # kinds that one line of a log may look like
    "docker-run": _RUN,
    "ls": re.compile(r"^(?:[bcdl-][rwxsStT-]{9}[.+@]?\s+\d+\s|ls: |total \d|总(?:用量|计) \d|/\S+:?$).*$", re.MULTILINE),
}


def _mostly_other(kind: str, text: str) -> bool:
    """Is a text of this kind by a few lines only?"""
    lines = sum(bool(line.strip()) for line in text.split("\n"))
    return 2 * sum(match[0].count("\n") + 1 for match in _FEW[kind].finditer(text)) < lines


def _collected(text: Text, pieces: _Pieces) -> None:
    """A report of collect_env: packages, variables, the system, and the toolkit's install.info among them."""
    pieces.packages.update(
        {k: v for k, v in readings.packages(text).items() if v.evidence.text.startswith("[") and k not in pieces.packages}
    )
    named = {k: v for k, v in readings.environment(text).items() if k.isupper()}
    pieces.environment.update(named)
    keys = text.keys()
    if "innerversion" in keys and "version" in keys:
        _of_cann("toolkit", text, pieces)
    system, library, python = keys.get("OS"), keys.get("Libc version"), keys.get("Python version")
    if system:
        pieces.identity = replace(pieces.identity, os=system)
    if library:
        pieces.identity = replace(pieces.identity, glibc=Seen(library.value.removeprefix("glibc-"), library.evidence))
    if python:
        pieces.identity = replace(pieces.identity, python=Seen(python.value.split()[0], python.evidence))
    for component, package in (("vLLM Version", "vllm"), ("vLLM Ascend Version", "vllm-ascend"), ("PyTorch version", "torch")):
        if component in keys and keys[component].value[:1].isdigit():
            pieces.packages.setdefault(package, Seen(keys[component].value.split()[0], keys[component].evidence))


def _section(name: str, section: Section, pieces: _Pieces) -> None:
    text = Text(name, section.text, section.first_line)
    copied = re.match(r"^(?:cat|head|tail)\b(?:\s+-\S+(?:\s+\d+)?)*\s+(/\S+)$", section.command)
    if copied and "No such file" not in section.text:
        path = copied[1]
        pieces.files[path] = text
        _from_file(path, text, pieces)
        return
    if re.match(r"(?:docker|nerdctl|podman|isula)\s+(?:container\s+)?(?:run|create)\b", section.command):
        whole = Text(name, f"{section.command}\n{section.text}", section.first_line - 1)
        pieces.outputs.append(Output("docker run", whole, section.code))
        if section.text.strip():  # what the container printed
            pieces.logs.append(text)
        return
    asked = re.match(r"^echo\s+\"?\$\{?(\w+)\}?\"?$", section.command)
    if asked:
        value = section.text.strip()
        if value:
            pieces.environment[asked[1]] = Seen(value, text.at(0))
        return
    if section.text.strip() or known_command(section.command):
        _take(kind_of(name, section.text, section.command), text, section, pieces)


def _take(kind: str, text: Text, section: Section, pieces: _Pieces) -> None:
    """Puts one text where its kind belongs."""
    command = section.command
    if kind.startswith("file:"):
        path = kind[5:]
        pieces.files.setdefault(path, text)
        _from_file(path, text, pieces)
        return
    match kind:
        case "env":
            pieces.environment.update(readings.environment(text))
        case "pip":
            pieces.packages.update({k: v for k, v in readings.packages(text).items() if k not in pieces.packages})
        case "ls":
            pieces.list(readings.listings(text, command))
        case "toolkit" | "component" | "version.cfg" | "nnal" | "kernels":
            _of_cann(kind, text, pieces)
        case "rank-table":
            pieces.files.setdefault(f"/{text.source}", text)
        case "known":
            pass
        case "log":
            pieces.logs.append(text)
        case "other":
            pieces.notes.append(Said(f"{text.source}: not known, left out", f"{text.source}：无法识别，未读"))
        case _:
            if command and not known_command(command):  # a loop, or a script of one's own: what it printed tells what it asked
                text = Text(text.source, f"{command}\n{text.text}", text.first_line - 1)
                command = _LIKELY.get(kind, kind)
            pieces.outputs.append(Output(command or _LIKELY.get(kind, kind), text, section.code))
            pieces.identity = _identity(kind, text, command, pieces.identity)


_LIKELY = {
    "npu-smi": "npu-smi info",
    "hccn": "hccn_tool",
    "ip": "ip a",
    "ports": "ss -ltn",
    "ulimit": "ulimit -a",
    "df": "df -h",
    "mount": "mount",
    "uname": "uname -a",
}


def _of_cann(kind: str, text: Text, pieces: _Pieces) -> None:
    """Files of a CANN release whose folder is not in the name: the release that they state names it."""
    keys = text.keys()
    stem = _last(text.source).lower()
    if kind == "toolkit":
        home = (
            keys["path"].value
            if "path" in keys
            else f"/usr/local/Ascend/ascend-toolkit/{keys['version'].value if 'version' in keys else 'latest'}"
        )
        pieces.files.setdefault(f"{home}/ascend_toolkit_install.info", text)
    elif kind == "version.cfg":
        named = re.search(r"\[[^:\[\]\n]{1,60}:([^\[\]\n]{1,60})\]", text.text)
        pieces.files.setdefault(f"/usr/local/Ascend/ascend-toolkit/{named[1] if named else 'latest'}/version.cfg", text)
    elif kind == "nnal":
        pieces.files.setdefault("/usr/local/Ascend/nnal/atb/latest/version.info", text)
    elif kind == "kernels":
        entries = tuple(
            Entry(line.split()[-1], evidence=place) for line, place in text.lines() if re.search(r"(?:^|\s)ascend\d\w*/?$", line)
        )
        pieces.list({f"/usr/local/Ascend/ascend-toolkit/latest/{_KERNEL_FOLDER}": Listing(text.source, entries)})
    else:
        release = keys["version_dir"].value if "version_dir" in keys else "latest"
        part = next((p for p in _PARTS if p in text.source.lower()), "")
        part = part or ("opp_kernel" if "ops_version" in keys else "runtime" if "runtime_acl_version" in keys else stem.split(".")[0])
        pieces.files.setdefault(f"/usr/local/Ascend/ascend-toolkit/{release}/{part}/version.info", text)


def _from_file(path: str, text: Text, pieces: _Pieces) -> None:
    """What a file of a known place tells beyond itself."""
    if path == "/etc/os-release":
        keys = text.keys()
        pieces.identity = replace(pieces.identity, os=keys.get("PRETTY_NAME") or keys.get("NAME"))
    elif path == "/proc/version":
        pieces.identity = _identity("uname", text, "", pieces.identity)
    elif path == "/proc/1/cgroup":
        kind = inside_container(text.text).kind
        if kind:
            pieces.identity = replace(
                pieces.identity, container=Seen(kind, text.find(r"docker|kubepods|containerd|libpod|isula|lxc") or text.at(0))
            )


def _told(text: Text, identity: Identity) -> Identity:
    """Our own collection's first file: `name = value` of each field of Identity."""
    keys = text.keys()
    return replace(identity, **{name: keys[name] for name in Identity.__dataclass_fields__ if name in keys})


def _identity(kind: str, text: Text, command: str, known: Identity) -> Identity:
    """What the outputs of uname, ldd, id, python and strings tell."""
    where = text.at(0)
    match kind:
        case "uname":
            found = re.search(r"Linux(?: \S+| version) (?P<kernel>\d+\.\d+\.\S+)", text.text) or re.match(
                r"(?P<kernel>\d+\.\d+\.\S+)$", text.text.strip()
            )
            arch = re.search(r"\b(x86_64|aarch64)\b", text.text)
            kernel = Seen(found["kernel"], where) if found else known.kernel
            return replace(known, kernel=kernel, arch=Seen(arch[1], where) if arch else known.arch)
        case "ldd" if found := re.search(r"^ldd \(.*\) (\d+\.\d+)", text.text, re.MULTILINE):
            return replace(known, glibc=Seen(found[1], where))
        case "glibcxx":
            numbers = [tuple(map(int, n.split("."))) for n in re.findall(r"^GLIBCXX_(\d{1,3}(?:\.\d{1,3}){1,2})$", text.text, re.MULTILINE)]
            newest = ".".join(map(str, max(numbers)))
            return replace(known, glibcxx=Seen(newest, text.find(rf"^GLIBCXX_{re.escape(newest)}$") or where))
        case "python" if found := re.search(r"^Python (\d+\.\d+\.\d+\S*)", text.text, re.MULTILINE):
            return replace(known, python=Seen(found[1], where))
        case "id" if found := re.search(r"(?:uid|用户id)=\d+\(([^)]+)\).*?(?:groups|组)=(?!.*[组s]=)(.*)", text.text):
            return replace(known, user=Seen(found[1], where), groups=Seen(" ".join(re.findall(r"\d+(?=\()|(?<=\()[^)]+", found[2])), where))
        case "whoami" if found := re.fullmatch(r"\s*([\w.-]+)\s*", text.text):
            return replace(known, user=known.user or Seen(found[1], where))
        case "groups" if found := re.fullmatch(r"\s*(?:[\w.-]+ : )?([\w.-]+(?: [\w.-]+)*)\s*", text.text):
            return replace(known, groups=known.groups or Seen(found[1], where))
    return known
