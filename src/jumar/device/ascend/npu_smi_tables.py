"""The tables of plain `npu-smi info`: cards and processes, of every layout, cut, dressed or broken by a narrow terminal.

In: lines (complaint.py).  Out: `Tables`, which npu_smi.py joins with the other forms; `soc_of`, what chip a name means.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache

from jumar.base import DeviceError
from jumar.device.ascend.complaint import Complaint, quoted
from jumar.device.ascend.npu_smi_forms import Process, command_of

GENERATIONS = {
    "Ascend310": "310", "Ascend310P": "310p", "Ascend310B": "310b", "Ascend910": "910", "Ascend910B": "910b", "Ascend910_93": "910_93",
    "Ascend950": "950",
}  # fmt: skip


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
class Tables:
    """All tables of one text.   See NpuSmi for the fields."""

    tool: str = ""
    driver: str = ""
    layout: str = ""
    npus: tuple[Npu, ...] = ()
    processes: tuple[Process, ...] = ()
    idle: tuple[int, ...] = ()
    processes_listed: bool = False
    complaints: tuple[Complaint, ...] = ()


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
    from jumar.device.npu.chip import find_chip  # noqa: PLC0415  (0.1 s, only where a table names a chip)

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


def read_tables(lines: list[str]) -> Tables:
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
    return Tables(
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
