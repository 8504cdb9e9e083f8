"""`npu-smi`'s outputs as values: cards, their health and memory, who holds them, and the form that asks for one thing (`-t board`).

In: the text of one or many outputs, as pasted: of any layout, with prompts, colours, cut lines.  Out: `NpuSmi`; what is not understood is a
`Complaint`, never an exception.  Facts: hicann/driver documentation of npu-smi, the npu-smi reference, public outputs.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache

from jumar.base import DeviceError
from jumar.device.ascend.complaint import Complaint, plain_lines, quoted
from jumar.device.ascend.npu_smi_forms import FaultEvent, Mapped, Process, Properties, Topology, command_of, read_forms
from jumar.device.npu.chip import find_chip

GENERATIONS = {
    "Ascend310": "310", "Ascend310P": "310p", "Ascend310B": "310b", "Ascend910": "910", "Ascend910B": "910b", "Ascend910_93": "910_93",
    "Ascend950": "950",
}  # fmt: skip
HUGEPAGE_KB = 2048  # npu-smi counts pages of this size
IDLE_HBM_MB = 4600  # what an idle card shows as used HBM: 2.8 to 3.4 GB on A2 and A3, 4.4 GB on a 950
ISOLATED_PAGES = 64  # HBM pages that a card can isolate before it must be replaced


@dataclass(frozen=True)
class Npu:
    """One chip of a table.   npu, chip: as npu-smi counts; device: the `Device` or `Phy-ID` column, None where there is none.

    name: as printed; soc: CANN's soc_version, or its family where the name does not tell the chip, empty when unknown;
    generation: `310`, `310p`, `310b`, `910` (the first), `910b` (A2), `910_93` (A3), `950` or empty; utilisation: percent.
    Values that the board does not tell (NA, -) are None.  table: which table of the text, from 0; line: where its first row is.
    """

    npu: int
    chip: int
    device: int | None
    name: str
    soc: str
    generation: str
    health: str
    power_w: float | None = None
    temperature_c: float | None = None
    hugepages_used: int | None = None
    hugepages_total: int | None = None
    bus_id: str = ""
    utilisation: float | None = None
    memory_used_mb: int | None = None
    memory_total_mb: int | None = None
    hbm_used_mb: int | None = None
    hbm_total_mb: int | None = None
    table: int = 0
    line: int = 0

    @property
    def healthy(self) -> bool:
        return self.health.lower() == "ok"


@dataclass(frozen=True)
class Failure:
    """npu-smi did not answer.   kind: `dcmi` (with its code), `not-found`, `library` (text names it), `permission`, `driver-log-level`,
    `query`, `unsupported`."""

    kind: str
    code: int | None
    text: str
    line: int


@dataclass(frozen=True)
class NpuSmi:
    """All that one text of npu-smi holds.   tool, driver: versions of the title (they differ after half an upgrade); firmware,
    compatibility: of `-t board`; layout: `910`, `A3`, `310`, `950` or empty; idle: NPUs of which no process is shown.
    """

    tool: str = ""
    driver: str = ""
    firmware: str = ""
    compatibility: str = ""
    layout: str = ""
    npus: tuple[Npu, ...] = ()
    processes: tuple[Process, ...] = ()
    idle: tuple[int, ...] = ()
    processes_listed: bool = False
    properties: tuple[Properties, ...] = ()
    events: tuple[FaultEvent, ...] = ()
    mapping: tuple[Mapped, ...] = ()
    topologies: tuple[Topology, ...] = ()
    types: tuple[str, ...] = ()
    commands: tuple[str, ...] = ()
    failures: tuple[Failure, ...] = ()
    complaints: tuple[Complaint, ...] = ()

    @property
    def failure_code(self) -> int | None:
        """The code of the first failure that has one: -8005, -8020 ..."""
        return next((failure.code for failure in self.failures if failure.code is not None), None)

    @property
    def empty(self) -> bool:
        """Nothing of npu-smi was found."""
        return not (self.tool or self.npus or self.processes_listed or self.processes or self.properties or self.mapping) and not (
            self.topologies or self.types or self.failures
        )

    def of(self, kind: str) -> tuple[Properties, ...]:
        """The outputs of `-t kind`."""
        return tuple(one for one in self.properties if one.kind == kind)


@dataclass(frozen=True)
class Holding:
    """Who holds a chip.   used_mb, total_mb: its HBM, or memory where it has no HBM; elsewhere_mb: what neither the processes shown nor
    an idle card explain: processes of another container or host, or of a table that was not copied.
    """

    npu: int
    chip: int | None
    processes: tuple[Process, ...]
    used_mb: int | None
    total_mb: int | None
    elsewhere_mb: int
    line: int

    @property
    def held(self) -> bool:
        return bool(self.processes) or self.elsewhere_mb > 0


@dataclass(frozen=True)
class HealthFinding:
    """Something that a card or its driver reports.   kind: `health`, `event`, `compatibility`, `ecc`, `throttled`, `versions`; text: what, with values."""

    kind: str
    npu: int | None
    chip: int | None
    text: str
    line: int = 0


def parse_npu_smi(text: str) -> NpuSmi:
    """What a text of npu-smi says, of one output or of many.

    >>> smi = parse_npu_smi("| 0     910B4 | OK | 82.5  50  0 / 0 |\\n| 0 | 0000:01:00.0  | 0  0 / 0  2871 / 32768 |")
    >>> smi.npus[0].soc, smi.npus[0].generation, smi.npus[0].power_w, smi.npus[0].hbm_total_mb
    ('Ascend910B4', '910b', 82.5, 32768)
    >>> parse_npu_smi("dcmi module initialize failed. ret is -8005").failure_code
    -8005
    """
    lines = plain_lines(text)
    tables, forms = _read_tables(lines), read_forms(lines)
    failures = _failures(lines)
    refused = {one.line for one in failures}
    boards = [one for one in forms.properties if one.kind == "board"]

    def first(name: str) -> str:
        return next((one.text(name) for one in boards if one.text(name)), "")

    smi = replace(
        tables,
        driver=tables.driver or first("software_version"),
        firmware=first("firmware_version"),
        compatibility=first("compatibility"),
        processes=tables.processes + forms.processes,
        properties=forms.properties,
        events=forms.events,
        mapping=forms.mapping,
        topologies=forms.topologies,
        types=forms.types,
        commands=forms.commands,
        failures=failures,
        complaints=tuple(one for one in tables.complaints + forms.complaints if one.line not in refused),
    )
    if smi.empty and not smi.complaints:
        nothing = "the text is empty" if not text.strip() else f"no output of it was recognised, the text begins {quoted(text[:200])}"
        smi = replace(smi, complaints=(Complaint(f"npu-smi: {nothing}", 0, "nothing"),))
    return smi


def busy(smi: NpuSmi) -> tuple[Holding, ...]:
    """Each chip with who holds it: the processes shown and the memory that they do not explain, in order of the tables."""
    found = []
    named: set[Process] = set()
    for npu in smi.npus:
        processes = tuple(p for p in smi.processes if p.npu == npu.npu and p.chip in (None, npu.chip))
        named.update(processes)
        used, total = (npu.hbm_used_mb, npu.hbm_total_mb) if npu.hbm_total_mb else (npu.memory_used_mb, npu.memory_total_mb)
        explained = sum(p.memory_mb or 0 for p in processes)
        # a 310's memory is the host's too: its system takes up to a sixth, what that is grows with the board
        idle = IDLE_HBM_MB if npu.hbm_total_mb else max(IDLE_HBM_MB, (total or 0) // 6)
        elsewhere = max(0, (used or 0) - explained - idle)
        found.append(Holding(npu.npu, npu.chip, processes, used, total, elsewhere, npu.line))
    rest = [p for p in smi.processes if p not in named]
    for key in dict.fromkeys((p.npu, p.chip) for p in rest):
        mine = tuple(p for p in rest if (p.npu, p.chip) == key)
        found.append(Holding(*key, mine, None, None, 0, mine[0].line))
    return tuple(found)


def health_findings(smi: NpuSmi) -> tuple[HealthFinding, ...]:
    """All that is not well: states, events, pairs of driver and firmware that do not fit, bit errors, a throttled clock, versions that differ."""
    found = [
        HealthFinding("health", npu.npu, npu.chip, f"NPU {npu.npu} chip {npu.chip} ({npu.name}): health {npu.health}", npu.line)
        for npu in smi.npus
        if npu.health and not npu.healthy
    ]
    if smi.tool and smi.driver and smi.tool != smi.driver and any(c.isdigit() for c in smi.driver):
        found.append(HealthFinding("versions", None, None, f"npu-smi {smi.tool} and driver {smi.driver} differ: half an upgrade"))
    for one in smi.properties:
        where = f"NPU {'?' if one.npu is None else one.npu}"
        say = [("health", f"health {one.text('health')}")] if one.text("health") and one.text("health").upper() != "OK" else []
        if one.text("compatibility").upper() in {"NOK", "UNKNOWN"}:
            say.append(("compatibility", f"driver and firmware: Compatibility {one.text('compatibility')}"))
        for name, value in one.values.items():
            if isinstance(value, int) and value > 0 and "double_bit" in name:
                say.append(
                    ("ecc", f"{name} {value} (a card takes {ISOLATED_PAGES} isolated pages)" if "isolated" in name else f"{name} {value}")
                )
        rated, now = one.number("aicore_freq_mhz"), one.number("aicore_curfreq_mhz")
        if rated and now and now < rated and (one.number("aicore_usage_rate_percent") or 0) > 0:
            say.append(("throttled", f"AI Core runs at {now:g} of {rated:g} MHz under load"))
        if (one.number("faulty_chip_count") or 0) > 0:
            say.append(("health", f"faulty chips: {one.number('faulty_chip_count'):g}"))
        found += [HealthFinding(kind, one.npu, one.chip, f"{where}: {what}", one.line) for kind, what in say]
    found += [
        HealthFinding("event", e.npu, e.chip, f"NPU {'?' if e.npu is None else e.npu}: event {e.hex} {e.text}".rstrip(), e.line)
        for e in smi.events
    ]
    return tuple(found)


@lru_cache(maxsize=256)
def soc_of(name: str, *, phy_column: bool = False) -> tuple[str, str]:
    """CANN's name and the generation of a chip that npu-smi names; empty where the name tells nothing.

    A bare 910B is the first generation; `Ascend910` in a table with physical ids is A3, of which that name tells no more.

    >>> soc_of("910B"), soc_of("910B4"), soc_of("Ascend910", phy_column=True)
    (('Ascend910B', '910'), ('Ascend910B4', '910b'), ('Ascend910_93', '910_93'))
    """
    if phy_column and re.fullmatch(r"(?:ascend)?910", name, re.IGNORECASE):
        return "Ascend910_93", "910_93"
    if not re.fullmatch(r"(?:ascend)?[ _-]?(?:310|910|950|710|93|95)[A-Za-z0-9_-]{0,16}", name, re.IGNORECASE):
        return "", ""
    try:
        chip = find_chip(name)
    except DeviceError:  # a bin that the tables lack: its family is in the name
        bare = re.sub(r"(?i)^ascend[ _-]?", "", name)
        match = re.match(r"(?i)310[PB]|310|910B(?=[0-9])|910_93|910C|910|950", bare)
        family = {"910c": "910_93"}.get(match[0].lower(), match[0].lower()) if match else ""
        return f"Ascend{bare}" if family else "", family
    generation = GENERATIONS.get(chip.family, "")
    bare = re.sub(r"(?i)^ascend[ _-]?", "", name)
    if bare.upper() in {"310P", "310B", "910_93", "910C", "950", "950PR", "950DT"}:  # a family, not the chip that find_chip takes for it
        return "Ascend910_93" if generation == "910_93" else f"Ascend{bare.upper()}", generation
    return chip.name, generation


# ---- tables

_TITLE = re.compile(r"npu-smi\s+(\S{1,40})\s+Version\s*[:：]\s*(\S{1,40})")
_TOOL = re.compile(r"npu-smi\s+version\s*[:：]\s*([0-9]\S{0,40})", re.IGNORECASE)  # of `npu-smi -v`
_STATES = re.compile(r"(?:OK|Warning|Alarm|Critical|UNKNOWN|Offline|Abnormal|Minor|Major)", re.IGNORECASE)
_BUS = re.compile(r"[0-9A-Fa-f]{4,8}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.[0-9A-Fa-f]{1,2}")
_SHARE = re.compile(r"([0-9]{1,12}|NA|-)\s*/\s*([0-9]{1,12}|NA|-)")
_RULE = re.compile(r"\+[-=+]{3,}")
_BROKEN = re.compile(r"\+[-=+]{30,}[-=]")  # a rule that does not end with its corner
_IDLE = re.compile(r"No running processes? found in NPU\s*([0-9]{1,9})", re.IGNORECASE)
_FIRST = re.compile(r"([0-9]{1,9})(?:\s+(\S.*))?")


@dataclass(frozen=True)
class _Header:
    """What the header of a table promises."""

    layout: str = ""
    hugepages: bool = True
    memory: bool = True
    hbm: bool = True


def _read_tables(lines: list[str]) -> NpuSmi:
    """The titles, cards and processes of all tables."""
    tool = driver = ""
    header, seen = _Header(), False
    table = -1
    npus: list[Npu] = []
    waiting: Npu | None = None  # has its first row
    processes: list[Process] = []
    idle: list[int] = []
    part = ""  # "npu" or "process": what the last header began
    complaints: list[Complaint] = []

    def close() -> None:
        nonlocal waiting
        if waiting is not None:
            complaints.append(
                Complaint(f"npu-smi: NPU {waiting.npu} must have a second row with bus and memory, got none", waiting.line, "row-missing")
            )
            npus.append(waiting)
            waiting = None

    for at, line in _unwrapped(lines):
        title = _TITLE.search(line) if "npu-smi" in line else None
        if "npu-smi" in line and (alone := _TOOL.search(line)):
            tool = tool or alone[1]
        if title:
            close()
            tool, driver, part = tool or title[1], driver or title[2], "npu"
            table += 1
            continue
        if command_of(line) is not None:
            close()
            part = ""
            continue
        nobody = _IDLE.search(line)
        if nobody:
            close()
            idle.append(int(nobody[1]))
            part, seen = "process", True
            continue
        if "|" not in line or _RULE.search(line):
            if "|" not in line and "+" not in line and line.strip():
                part = "" if waiting is None else part
            continue
        cells = _cells(line)
        joined = " ".join(cells)
        if "Process id" in joined:
            close()
            part, seen = "process", True
        elif "Health" in joined and "NPU" in joined:
            close()
            if part != "npu":
                table += 1
            part = "npu"
            header = _Header("950" if "NPU ID" in joined else "", "Hugepages" in joined or "Power" not in joined)
        elif "Bus-Id" in joined:
            header = _second_header(header, joined)
        elif (row := _first_row(cells, at, header, max(table, 0), waiting is not None)) is not None:
            close()
            waiting = row
        elif waiting is not None and (done := _second_row(cells, waiting, header, at, complaints)) is not None:
            npus.append(done)
            waiting = None
        elif (process := _process(cells, at)) is not None:
            processes.append(process)
            part, seen = "process", True
        elif part:
            complaints.append(Complaint(f"npu-smi: a row of the table must be of a card or a process, got {quoted(line)}", at, "row"))
    close()
    return NpuSmi(
        tool=tool,
        driver=driver,
        layout=header.layout or _layout(npus),
        npus=tuple(npus),
        processes=tuple(processes),
        idle=tuple(idle),
        processes_listed=seen,
        complaints=tuple(complaints),
    )


def _unwrapped(lines: list[str]) -> Iterator[tuple[int, str]]:
    """The lines with their numbers; rows that a narrow terminal broke in two are one again: the table's rules show that it did, and where."""
    width = max((len(line) for line in lines if _BROKEN.fullmatch(line)), default=0)
    joined = False
    for at, (line, after) in enumerate(zip(lines, [*lines[1:], ""]), 1):
        if joined:  # it went with the one before
            joined = False
            continue
        joined = 0 < len(line) <= width and line[0] == "|" and after != "" and after[0] != "+"
        yield at, line.ljust(width) + after if joined else line


def _cells(line: str) -> list[str]:
    """The cells of a row: what is between bars, also where the line's end is cut; a prefix with bars of its own stays in front."""
    cells = [cell.strip() for cell in line.split("|")[:40]]
    return cells[1:-1] if not cells[-1] and len(cells) > 2 else cells[1:]


def _second_header(header: _Header, joined: str) -> _Header:
    layout = header.layout or ("A3" if "Phy-ID" in joined else "310" if "Device" in joined else "910")
    return _Header(layout, header.hugepages, "Memory-Usage" in joined or "HBM" not in joined, "HBM-Usage" in joined)


def _first_row(cells: list[str], at: int, header: _Header, table: int, waits: bool) -> Npu | None:
    """The card that a first row begins: `0 910B1 | OK | 94.6 49 0 / 0`, or with the name in a cell of its own (950)."""
    state = next((i for i in range(len(cells) - 1, 0, -1) if _STATES.fullmatch(cells[i])), None)
    if state is None:
        if waits or len(cells) < 2 or not re.fullmatch(r"[0-9]{1,9}\s+\S*[A-Za-z]\S*", cells[0]) or cells[1] not in {"NA", "-", ""}:
            return None
        state = 1
    own = _FIRST.fullmatch(cells[state - 1])
    if own is not None and own[2]:
        npu, name = int(own[1]), own[2]
    elif state >= 2 and (before := re.fullmatch(r"[0-9]{1,9}", cells[state - 2])):
        npu, name, header = int(before[0]), cells[state - 1], replace(header, layout="950")
    else:
        return None
    figures = " ".join(cells[state + 1 : state + 2]).replace("N/A", "NA")
    share = _SHARE.search(figures)
    words = (figures[: share.start()] if share else figures).split()
    used, total = _share(share)
    soc, generation = soc_of(name, phy_column=header.layout == "A3")
    generation = generation or ("950" if header.layout == "950" else "")
    power, temperature = (_float(words[0]) if words else None), (_float(words[1]) if len(words) > 1 else None)
    return Npu(npu, 0, None, name, soc, generation, cells[state], power, temperature, used, total, table=table, line=at)


def _second_row(cells: list[str], card: Npu, header: _Header, at: int, complaints: list[Complaint]) -> Npu | None:
    """The card with its bus, load and memory, None where these cells are no second row."""
    bus = next((i for i, cell in enumerate(cells) if _BUS.fullmatch(cell)), None)
    if bus is None:
        bus = next((i for i, cell in enumerate(cells) if cell in {"NA", "N/A", "-"} and i > 0), None)
        if bus is None:
            return None
    ids = [int(word) for word in cells[bus - 1].split() if re.fullmatch(r"[0-9]{1,9}", word)] if bus > 0 else []
    figures = " ".join(cells[bus + 1 : bus + 2]).replace("N/A", "NA")
    shares = list(_SHARE.finditer(figures))
    words = (figures[: shares[0].start()] if shares else figures).split()
    wanted = [name for name, there in (("memory", header.memory), ("hbm", header.hbm)) if there]
    if header.layout == "" and len(shares) == 1:  # no header to tell: one pair is the memory of a 310
        wanted = ["memory"]
    if len(shares) < len(wanted):
        missing = " and ".join({"memory": "Memory-Usage", "hbm": "HBM-Usage"}[name] for name in wanted[len(shares) :])
        complaints.append(Complaint(f"npu-smi: NPU {card.npu} must have {missing}, the row ends before", at, "row-cut"))
    values = {name: _share(share) for name, share in zip(wanted, shares)}
    memory, hbm = values.get("memory", (None, None)), values.get("hbm", (None, None))
    generation = card.generation
    if not generation and memory[1] and hbm[1]:  # a masked name: only the first generation has both memories
        generation = "910"
    device = ids[1] if len(ids) > 1 else None
    if device is not None and re.fullmatch(r"(?:Ascend)?910", card.name) and card.generation == "910":
        generation = "910_93"  # a header that was not copied: two ids in this row tell it
    return replace(
        card,
        chip=ids[0] if ids else 0,
        device=device,
        generation=generation,
        soc="Ascend910_93" if generation == "910_93" and card.generation == "910" else card.soc,
        bus_id=cells[bus] if _BUS.fullmatch(cells[bus]) else "",
        utilisation=_float(words[0]) if words else None,
        memory_used_mb=memory[0],
        memory_total_mb=memory[1],
        hbm_used_mb=hbm[0],
        hbm_total_mb=hbm[1],
    )


def _process(cells: list[str], at: int) -> Process | None:
    """`0 0 | 139667 | python | 30780`, or with the NPU alone (950); a memory that is cut off is None."""
    if len(cells) < 3:
        return None
    cells = cells[-4:] if len(cells) >= 4 else cells
    ids = re.fullmatch(r"([0-9]{1,9})(?:\s+([0-9]{1,9}))?", cells[0])
    if ids is None or not re.fullmatch(r"[0-9]{1,12}", cells[1]) or not cells[2]:
        return None
    memory = cells[3] if len(cells) > 3 else ""
    chip = int(ids[2]) if ids[2] else None
    return Process(int(ids[1]), chip, int(cells[1]), cells[2], int(memory) if re.fullmatch(r"[0-9]{1,12}", memory) else None, at)


def _share(found: re.Match[str] | None) -> tuple[int | None, int | None]:
    used, total = (found[1], found[2]) if found else ("", "")
    return (int(used) if used.isdigit() else None), (int(total) if total.isdigit() else None)


def _float(word: str) -> float | None:
    return float(word) if re.fullmatch(r"-?[0-9]{1,9}(?:\.[0-9]{1,6})?", word) else None


def _layout(npus: list[Npu]) -> str:
    """The layout of a table whose header was not copied, by its cards."""
    known = {"310": "310", "310p": "310", "310b": "310", "910_93": "A3", "950": "950", "910": "910", "910b": "910"}
    return known.get(npus[0].generation, "") if npus else ""


# ---- texts instead of an answer

_RET = re.compile(r"\bret(?:urn(?: value)?)?\s*(?:is|=|:)\s*(-?[0-9]{1,10})", re.IGNORECASE)
_FAILED = (
    ("driver-log-level", re.compile(r"DrvMngGetConsoleLogLevel\s+failed", re.IGNORECASE)),
    ("dcmi", re.compile(r"dcmi\s+(?:module|model)\s+initiali[sz]ed?\s+failed", re.IGNORECASE)),
    ("library", re.compile(r"npu-smi.{0,80}error while loading shared libraries", re.IGNORECASE)),
    ("permission", re.compile(r"npu-smi.{0,60}(?:permission denied|权限不够)", re.IGNORECASE)),
    ("unsupported", re.compile(r"^\W{0,4}this device does not support\b", re.IGNORECASE)),
    (
        "not-found",
        re.compile(
            r"npu-smi.{0,40}(?:command not found|: not found|未找到命令|no such file or directory|没有那个文件或目录|executable file not found)"
            r"|command not found: npu-smi|command 'npu-smi' not found",
            re.IGNORECASE,
        ),
    ),
    (
        "query",
        re.compile(r"(?:failed to (?:query|get|obtain)|does(?:n't| not) support (?:querying|this)|query failed).{0,120}", re.IGNORECASE),
    ),
)


def _failures(lines: list[str]) -> tuple[Failure, ...]:
    """Lines that say that npu-smi could not answer."""
    found = []
    for at, line in enumerate(lines, 1):
        low = line.lower()
        if not any(word in low for word in ("npu-smi", "fail", "support", "ret")):
            continue
        for kind, pattern in _FAILED:
            if pattern.search(line):
                ret = _RET.search(line)
                if kind == "query" and (ret is None or line.count("|") > 1):
                    continue
                found.append(Failure(kind, int(ret[1]) if ret else None, line.strip(), at))
                break
        else:
            ret = _RET.search(line)
            if ret and re.fullmatch(r"-8[0-9]{3}", ret[1]):  # DCMI's own codes, whatever the words around them
                found.append(Failure("dcmi", int(ret[1]), line.strip(), at))
    return tuple(found)
