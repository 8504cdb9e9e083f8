"""What the driver says: lines of the kernel's log, of its user level, modules that `lsmod` lists, and the log of its installer.

In: texts of dmesg or /var/log/messages, plog, lsmod, ascend_install.log, also mixed with others.  Out: typed lines; which of them is the cause is
for the rules of the tools to say: many of them only follow from a fault elsewhere, some are normal.  Facts: hicann/driver, the CANN install guide.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from jumar.device.ascend.complaint import Complaint, plain_lines, quoted


@dataclass(frozen=True)
class DriverLine:
    """One line of the driver.   level: as printed, or empty in the kernel's log; time: as printed; time_s: seconds since boot, where it is that;
    module: `devdrv`, `devmm` ...; function, source_line: where in the source; process: name and ids; values: of `(ret=-19; dev_id=5)`.
    """

    module: str
    function: str
    text: str
    level: str = ""
    time: str = ""
    time_s: float | None = None
    source_line: int | None = None
    process: str = ""
    kernel: bool = True
    values: Mapping[str, str] = field(default_factory=dict)
    line: int = 0

    def number(self, name: str) -> int | None:
        """A value as a number, hexadecimal too; None where it is none."""
        text = self.values.get(name, "")
        if re.fullmatch(r"0[xX][0-9a-fA-F]{1,16}", text):
            return int(text, 16)
        return int(text) if re.fullmatch(r"-?[0-9]{1,19}", text) else None


@dataclass(frozen=True)
class KernelModule:
    """A row of lsmod.   uses: how often it is in use; by: the modules that use it."""

    name: str
    nbytes: int
    uses: int
    by: tuple[str, ...] = ()
    line: int = 0

    @property
    def of_driver(self) -> bool:
        return _OF_DRIVER.match(self.name) is not None


@dataclass(frozen=True)
class InstallLine:
    """A line of an installer's log.   package: `Driver`, `Firmware`, `Toolkit` ... or empty; code: of ERR_NO; success: it says that it is done."""

    level: str
    text: str
    package: str = ""
    time: str = ""
    code: int | None = None
    line: int = 0

    @property
    def success(self) -> bool:
        return "install success" in self.text.lower() or "upgrade success" in self.text.lower()


@dataclass(frozen=True)
class DriverTexts:
    """All of these in one text, in its order."""

    lines: tuple[DriverLine, ...] = ()
    modules: tuple[KernelModule, ...] = ()
    install: tuple[InstallLine, ...] = ()
    modules_listed: bool = False
    complaints: tuple[Complaint, ...] = ()


_OF_DRIVER = re.compile(r"(?:drv|ascend|davinci|devdrv|hisi_hdc)_")
_ASCEND = "[ascend]"
_SINCE_BOOT = re.compile(r"\[\s*([0-9]{1,9}\.[0-9]{1,9})\]")
_CLOCK = re.compile(
    r"\[([A-Z][a-z]{2} [A-Z][a-z]{2}\s{1,2}[0-9]{1,2} [0-9:]{8} [0-9]{4})\]"  # dmesg -T
    r"|([0-9]{4}-[0-9]{2}-[0-9]{2}[T -][0-9:]{8}(?:[.,][0-9.]{1,11})?)"
    r"|(?<![A-Za-z])([A-Z][a-z]{2}\s{1,2}[0-9]{1,2} [0-9:]{8})"
)
_BRACKET = re.compile(r"\s*\[\s*([^\[\]]{1,80}?)\s*\]")
_PROCESS = re.compile(r"\s*<([^<>]{1,80})>")
_BARE = re.compile(r"\s*([a-z_][a-z0-9_]{2,60})\s{1,40}(?=\S)")
_VALUES = re.compile(r"\(([^()]{1,300})\)")
_USER = re.compile(r"\[([A-Z]{3,8})\]\s*DRV\s*\(\s*([^()]{1,60})\)\s*:\s*([0-9T:. -]{0,40})\s*(?=\[)")
_LEVELS = {"ERROR", "ERR", "WARN", "WARNING", "INFO", "EVENT", "DEBUG", "NOTICE"}
_MODULE = re.compile(
    r"\s*([A-Za-z][A-Za-z0-9_]{1,60})\s{1,60}([0-9]{1,12})\s{1,20}(-?[0-9]{1,6})(?:\s{1,10}([A-Za-z0-9_,-]{1,2000}))?\s*(?:\[[a-z ]{1,40}\])?"
)
_INSTALL = re.compile(
    r"(?:\[(Driver|Firmware|Toolkit|Nnrt|Nnae|Kernels|Ascend[A-Za-z0-9_-]{0,30}|CANN[A-Za-z0-9_-]{0,30})\]\s*)?(?:\[([0-9][0-9 :.-]{8,30})\]\s*)?"
    r"\[(ERROR|WARNING|INFO)\]\s*:?\s*(.*)",
    re.IGNORECASE,
)
_ERR_NO = re.compile(r"ERR_NO\s*:\s*(0x[0-9A-Fa-f]{1,8})\s*[;,]?\s*(?:ERR_DES\s*:\s*)?", re.IGNORECASE)
_INSTALLER = re.compile(  # texts that are the installer's also where no package stands before them
    r"ERR_NO|vermagic|kernel primary version|dkms|driver_ko_install|missing tools|cannot install driver|rmmod|wait_device_ready|need rebuild driver"
    r"|davinci nodes are occupied|driver package|firmware package|os\([^)]{1,60}\) not support|install success|reboot needed",
    re.IGNORECASE,
)


def parse_driver_texts(text: str) -> DriverTexts:
    """The driver's lines of a text; what is another's is passed over.

    >>> found = parse_driver_texts("[  456.36] [ascend] [devdrv] [devdrv_refresh 571] <kworker/u385:0:15232> send unsuccessful. (ret=-19; dev_id=5)")
    >>> line = found.lines[0]
    >>> line.module, line.function, line.source_line, line.number("ret"), line.time_s
    ('devdrv', 'devdrv_refresh', 571, -19, 456.36)
    """
    lines: list[DriverLine] = []
    modules: list[KernelModule] = []
    install: list[InstallLine] = []
    complaints: list[Complaint] = []
    table = listed = False
    for at, line in enumerate(plain_lines(text), 1):
        found = _driver_line(line, at)
        if found is not None:
            lines.append(found)
            continue
        if _ASCEND in line:
            complaints.append(Complaint(f"driver: after [ascend] the module must stand, got {quoted(line)}", at, "line"))
            continue
        if line.split()[:2] == ["Module", "Size"]:
            table = listed = True
            continue
        row = _module(line, at, table)
        if row is not None:
            modules.append(row)
            listed = True
            continue
        table = table and not line.strip()
        said = _install_line(line, at)
        if said is not None:
            install.append(said)
    return DriverTexts(tuple(lines), tuple(modules), tuple(install), listed, tuple(complaints))


def _driver_line(line: str, at: int) -> DriverLine | None:
    """A line of the kernel's part or the user level, None where it is neither."""
    if "DRV" in line and (user := _USER.search(line)):
        return _user_line(line, user, at)
    start = line.find(_ASCEND)
    if start < 0:
        return None
    rest = line[start + len(_ASCEND) :]
    level, module = "", ""
    first = _BRACKET.match(rest)
    if first and first[1].upper() in _LEVELS:  # some lines give a level in the module's place
        level, rest = first[1].upper(), rest[first.end() :]
        first = _BRACKET.match(rest)
    if first:
        module, rest = first[1], rest[first.end() :]
    function, number = "", None
    second = _BRACKET.match(rest)
    bare = _BARE.match(rest)
    if second and (parts := re.fullmatch(r"([A-Za-z_]\w{0,79})(?:[\s,:]{1,3}([0-9]{1,7}))?", second[1])):
        function, number, rest = parts[1], int(parts[2]) if parts[2] else None, rest[second.end() :]
    elif bare and "_" in bare[1]:
        function, rest = bare[1], rest[bare.end() :]
    process = _PROCESS.match(rest)
    text = rest[process.end() :] if process else rest
    if not (module or function) or not text.strip():
        return None
    boot = _SINCE_BOOT.search(line[:start])
    return DriverLine(
        module=module,
        function=function,
        text=text.strip(),
        level=level,
        time=boot[1] if boot else _clock(line[:start]),
        time_s=float(boot[1]) if boot else None,
        source_line=number,
        process=process[1] if process else "",
        values=_values(text),
        line=at,
    )


def _user_line(line: str, user: re.Match[str], at: int) -> DriverLine:
    """`[LEVEL] DRV(pid, name): [file:line][ascend][curpid: pid, tid][drv][module][function] text`."""
    rest = line[user.end() :]
    parts: list[str] = []
    while len(parts) < 8 and (found := _BRACKET.match(rest)):
        parts.append(found[1])
        rest = rest[found.end() :]
    source = re.fullmatch(r"[^:]{1,70}:([0-9]{1,7})", parts[0]) if parts else None
    names = [part for part in parts[1:] if part not in {"ascend", "drv"} and not part.startswith("curpid")]
    return DriverLine(
        module=names[0] if names else "",
        function=names[1] if len(names) > 1 else "",
        text=rest.strip(),
        level=user[1],
        time=user[3].strip(" -") or _clock(line[: user.start()]),
        source_line=int(source[1]) if source else None,
        process=user[2].strip(),
        kernel=False,
        values=_values(rest),
        line=at,
    )


def _clock(before: str) -> str:
    found = _CLOCK.search(before)
    return next((part for part in found.groups() if part), "") if found else ""


def _values(text: str) -> dict[str, str]:
    """`(ret=-19; dev_id=5)` as names and values; the last bracket that holds any counts."""
    for group in reversed(_VALUES.findall(text)):
        pairs = [part.split("=", 1) for part in re.split(r"[;,]", group) if "=" in part]
        if pairs:
            return {name.strip(): value.strip().strip('"') for name, value in pairs}
    return {}


def _module(line: str, at: int, table: bool) -> KernelModule | None:
    """A row of lsmod: any of a table, else only what is named as the driver's modules are (`lsmod | grep drv`)."""
    found = _MODULE.fullmatch(line)
    if found is None or not (table or _OF_DRIVER.match(found[1])):
        return None
    by = tuple(name for name in (found[4] or "").split(",") if name and name != "-")
    return KernelModule(found[1], int(found[2]), int(found[3]), by, at)


def _install_line(line: str, at: int) -> InstallLine | None:
    """A line of an installer: it names a package, or its words are an installer's."""
    found = _INSTALL.search(line) if "[" in line else None
    if found is None:
        number = _ERR_NO.search(line) if "ERR_NO" in line else None
        if number is None:
            return None
        return InstallLine("ERROR", line[number.end() :].strip(), code=int(number[1], 16), line=at)
    if not (found[1] or _INSTALLER.search(found[4])):
        return None
    text = found[4].strip()
    number = _ERR_NO.search(text)
    code = int(number[1], 16) if number else None
    return InstallLine(
        found[3].upper(),
        (text[: number.start()] + text[number.end() :]).strip() if number else text,
        found[1] or "",
        found[2] or "",
        code,
        at,
    )
