"""What `npu-smi info -t ...`, `-l`, `-m`, `watch`, `-t topo` and `-h` print: names and values, lists and matrices.

In: lines (complaint.py).  Out: `Forms`, which npu_smi.py joins with the table of plain `npu-smi info`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from itertools import product

from jumar.device.ascend.complaint import Complaint, loops, quoted

Value = int | float | str | None


@dataclass(frozen=True)
class Process:
    """One process that holds a chip.   chip: None where the text names only the NPU."""

    npu: int
    chip: int | None
    pid: int
    name: str
    memory_mb: int | None
    line: int = 0


@dataclass(frozen=True)
class Properties:
    """The names and values of one `-t` output of one chip.   kind: `board`, `health`, `ecc` ... as asked for or as the names tell.

    values: by snake-case name with its unit (`hbm_capacity_mb`, `aicore_usage_rate_percent`); numbers as such, None for NA and -.
    """

    kind: str
    npu: int | None
    chip: int | None
    values: Mapping[str, Value] = field(default_factory=dict)
    line: int = 0

    def number(self, name: str) -> float | None:
        """That value as a number, None where it is none."""
        value = self.values.get(name)
        return None if value is None or isinstance(value, str) else float(value)

    def text(self, name: str) -> str:
        """That value as a text, empty where there is none."""
        value = self.values.get(name)
        return "" if value is None else str(value)


@dataclass(frozen=True)
class FaultEvent:
    """An event that the card reports.   code: its id, as in the product's list of faults; severity: 0 lightest, None where not told."""

    npu: int | None
    chip: int | None
    code: int
    severity: int | None
    text: str
    line: int = 0

    @property
    def hex(self) -> str:
        """The id as the lists write it: `0x80818C00`."""
        return f"0x{self.code:08X}"


@dataclass(frozen=True)
class Mapped:
    """A row of `npu-smi info -m`: which ids one chip has.   A number that the table lacks is None."""

    npu: int
    chip: int | None
    logic_id: int | None
    phy_id: int | None
    slot: int | None
    name: str
    line: int = 0


@dataclass(frozen=True)
class Topology:
    """`npu-smi info -t topo`: links[i][j] says how devices[i] reaches devices[j] (`HCCS`, `PIX`, `SYS`, `UB` ...)."""

    devices: tuple[str, ...]
    links: tuple[tuple[str, ...], ...]
    affinity: tuple[str, ...]
    line: int = 0


@dataclass(frozen=True)
class Forms:
    """All that one text holds besides tables."""

    properties: tuple[Properties, ...] = ()
    processes: tuple[Process, ...] = ()
    events: tuple[FaultEvent, ...] = ()
    mapping: tuple[Mapped, ...] = ()
    topologies: tuple[Topology, ...] = ()
    types: tuple[str, ...] = ()
    commands: tuple[str, ...] = ()
    complaints: tuple[Complaint, ...] = ()


_COMMAND = re.compile(r"(?:^|[$#>%+]\s*|\bsudo\s+|\bdo\s+)npu-smi\s+((?:info|set|upgrade|clear|-h|--help|-v)\b[^|]{0,200}|$)")
_COLON = re.compile(r"(\s)[:：]|[:：]")
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9 /()%._-]{0,60}$")
_PROCESS = re.compile(
    r"Process id\s*:\s*([0-9]{1,10})\s+Process name\s*:(.{0,200}?)\s*Process memory\(MB\)\s*:\s*([0-9]{1,12})", re.IGNORECASE
)
_UNIT = re.compile(r"\(([A-Za-z%]{1,6})\)\s*$")
_UNITS = {"%": "percent", "page": "pages"}
_NOTHING = {"", "na", "n/a", "-", "--", "none", "null"}
_NUMBER = re.compile(r"[-+]?[0-9]{1,18}(?:\.[0-9]{1,12})?")
_COUNTED = re.compile(
    r"(?:^|_)(?:count|cnt|npu_id|chip_id|slot_id|bom_id|phy_id|logic_id|position_id|sdid|super_pod_id|super_pod_size|server_index)$"
)
_EVENT = re.compile(r"event id\s*=\s*(0x[0-9A-Fa-f]{1,8})(.{0,500})", re.IGNORECASE)
_SEVERITY = re.compile(r"severity\s*=\s*([0-9]{1,3})")
_ID = re.compile(r"\b(?:0x)?([0-9A-Fa-f]{8})\b")
_ALIASES = {"health_status": "health"}
_KINDS = (  # which names tell what was asked for, where the command is not in the text
    ("fault_event", "current-fault-event"),
    ("bit_error_count", "ecc"),
    ("aicore_freq", "common"),
    ("bandwidth_usage_rate", "usages"),
    ("ddr_usage_rate", "usages"),
    ("clock_speed", "memory"),
    ("software_version", "board"),
    ("chip_version", "board"),
    ("compatibility", "board"),
    ("board_id", "board"),
    ("error_information", "health"),
    ("health", "health"),
    ("super_pod_id", "spod-info"),
    ("total_count", "list"),
    ("product_name", "list"),
    ("temperature", "temp"),
    ("power", "power"),
)
_KNOWN = re.compile(  # names that begin a block without a command before it
    r"(?:npu|chip|board|slot|class|pcb|bom)_id|chip_(?:count|name|type)|health|error_(?:code|information)|(?:software|firmware)_version|compatibility"
    r"|pcie_bus_info|product_name|total_count|fault_event_(?:count|information)|(?:ddr|hbm|memory|aicore|aicpu|ctrlcpu|npu)_\w+|super_pod_id|sdid"
)
_COLUMNS = {
    "npu id": "npu", "slot id": "slot", "chip id": "chip", "chip phy-id": "phy_id", "chip logic id": "logic_id", "chip name": "name",
    "phy-id": "phy_id", "logic id": "logic_id",
}  # fmt: skip
_COLUMN = re.compile("|".join(sorted(_COLUMNS, key=len, reverse=True)), re.IGNORECASE)
_WATCHED = re.compile(r"([A-Za-z][A-Za-z ]{0,20}?)\s?\(([A-Za-z%]{1,6})\)")


def command_of(line: str) -> str | None:
    """The arguments of an npu-smi command in a line that looks typed (after a prompt, or alone), None where there is none.

    >>> command_of("root@node:/# npu-smi info -t board -i 0"), command_of("then npu-smi info fails")
    ('info -t board -i 0', None)
    """
    found = _COMMAND.search(line) if "npu-smi" in line else None
    return found[1].strip() if found else None


def read_forms(lines: list[str]) -> Forms:
    """Every form in these lines; rows of tables are passed over."""
    blocks, loose, complaints = _blocks(lines)
    properties = [one for block in blocks for one in _properties(block, complaints)]
    processes = [_process(block, at, line) for block in blocks + loose for at, line in block.lines if _PROCESS.search(line)]
    mapping, topologies, watched, types, commands = _lists(lines)
    return Forms(
        properties=(*properties, *watched),
        processes=tuple(processes),
        events=tuple(event for one in properties for event in _events(one)),
        mapping=tuple(mapping),
        topologies=tuple(topologies),
        types=types,
        commands=commands,
        complaints=tuple(complaints),
    )


@dataclass
class _Block:
    """Lines that belong together while they are gathered.   kind: of the command, or empty."""

    kind: str
    npu: int | None
    chip: int | None
    lines: list[tuple[int, str]] = field(default_factory=list)
    loops: list[list[int]] = field(default_factory=list)  # ids of the shell's loops around the command, the outer first


_SPECIAL = {"-m", "-h", "--help", "watch", "topo", "proc"}  # read by _lists


def _blocks(lines: list[str]) -> tuple[list[_Block], list[_Block], list[Complaint]]:
    """Blocks of `name : value` lines, with what their commands say; loose: lines of processes that stand alone."""
    blocks: list[_Block] = []
    loose: list[_Block] = []
    complaints: list[Complaint] = []
    block: _Block | None = None
    asked = False
    for at, line in enumerate(lines, 1):
        command = command_of(line)
        if command is not None:
            block = _asked(command)
            asked = block is not None
            if block is not None:
                block.loops = loops(line)
                blocks.append(block)
            continue
        if not line or line.isspace():
            continue
        pair = _pair(line) if line.count("|") < 2 else None
        if pair and _PROCESS.search(line):
            (block or _loose(loose)).lines.append((at, line))
            continue
        padded = pair is not None and pair.padded
        known = pair is not None and _KNOWN.fullmatch(_name(pair.name)) is not None
        if pair and block is not None and (padded or known):
            block.lines.append((at, line))
        elif pair and padded and known:
            block, asked = _Block("", None, None, [(at, line)]), False
            blocks.append(block)
        elif block is not None:
            if asked and not block.lines and line.count("|") < 2:
                complaints.append(
                    Complaint(f"npu-smi -t {block.kind}: the output must be names and values, got {quoted(line)}", at, "form")
                )
            block, asked = None, False
    return blocks, loose, complaints


@dataclass(frozen=True)
class _Pair:
    """`name : value`.   padded: a blank before the colon, as npu-smi writes it."""

    name: str
    value: str
    padded: bool


def _pair(line: str) -> _Pair | None:
    """The name and value in a line, behind whatever prefix of a log; the first colon after a blank, else the first one, parts them."""
    colons = list(_COLON.finditer(line[:300]))
    colon = next((one for one in colons if one[1]), colons[0] if colons else None)
    name = _NAME.search(line[max(0, colon.start() - 64) : colon.start()].rstrip()) if colon else None
    return _Pair(name[0].strip(), line[colon.end() :].strip(), colon[1] is not None) if colon and name else None


def _loose(loose: list[_Block]) -> _Block:
    loose.append(_Block("proc-mem", None, None))
    return loose[-1]


def _asked(command: str) -> _Block | None:
    """The block that a command opens, None for those that print no names and values."""
    words = re.split(r"[;&>]", command)[0].split()
    kind = _after(words, "-t")
    if "-l" in words:
        kind = "list"
    if words[:1] != ["info"] or not kind or kind in _SPECIAL or _SPECIAL & set(words):
        return None
    return _Block(kind, _int(_after(words, "-i")), _int(_after(words, "-c")))


def _after(words: list[str], option: str) -> str:
    at = words.index(option) + 1 if option in words else len(words)
    return words[at] if at < len(words) else ""


def _int(text: str) -> int | None:
    return int(text) if re.fullmatch(r"[0-9]{1,18}", text) else None


def _name(words: str) -> str:
    """`DDR Capacity(MB)` as `ddr_capacity_mb`."""
    unit = _UNIT.search(words)
    base = words[: unit.start()] if unit else words
    name = re.sub(r"[^a-z0-9]+", "_", base.lower()).strip("_")
    if unit:
        name += "_" + _UNITS.get(unit[1].lower(), unit[1].lower())
    return _ALIASES.get(name, name)


def _value(name: str, text: str) -> tuple[Value, bool]:
    """The value of a property, and whether it is what its name promises."""
    text = text.strip()
    if text.lower() in _NOTHING:
        return None, True
    if not (_COUNTED.search(name) or name.rsplit("_", 1)[-1] in {"percent", "mb", "c", "w", "mhz", "pages", "v", "kb", "gb", "a"}):
        return text, True
    found = _NUMBER.fullmatch(text)
    if found:
        return (float(text) if "." in text else int(text)), True
    return text, name in {"bom_id", "slot_id"}


def _properties(block: _Block, complaints: list[Complaint]) -> list[Properties]:
    """The chips of one block: a name that comes again, a new NPU, or a chip's name after its values begins the next one."""
    found: list[Properties] = []
    values: dict[str, Value] = {}
    first, npu, chip, last = 0, block.npu, block.chip, 0

    def close() -> None:
        nonlocal chip
        if values:
            kind = block.kind or next((kind for part, kind in _KINDS if any(part in name for name in values)), "")
            mine = values.get("chip_id")
            found.append(Properties(kind, npu, mine if isinstance(mine, int) else chip, dict(values), first))
            values.clear()

    for at, line in block.lines:
        pair = _pair(line)
        if pair is None or _PROCESS.search(line):
            continue
        name = _name(pair.name)
        value, good = _value(name, pair.value)
        if not good:
            complaints.append(Complaint(f"npu-smi: {pair.name} must be a number, got {quoted(pair.value)}", at, "number"))
            value = None
        if name == "fault_event_information" and name in values:  # several events of one chip
            values[name] = f"{values[name]}; {value}"
            last = at
            continue
        gap = 0 < last < at - 1
        begins = (name == "npu_id" and (gap or len(values) > 1)) or (gap and name in {"chip_name", "chip_id"})
        if values and (name in values or begins):
            close()
        if not values:
            first = at
        if name == "npu_id" and isinstance(value, int):
            npu = value
        values[name] = value
        last = at
    close()
    ids = list(product(*block.loops)) if block.loops else []
    if len(ids) == len(found) and len(block.loops) < 3 and all(one.npu is None for one in found):  # the loop tells which card each is of
        return [replace(one, npu=of[0], chip=of[1] if len(of) > 1 else one.chip) for one, of in zip(found, ids)]
    return found


def _process(block: _Block, at: int, line: str) -> Process:
    found = _PROCESS.search(line)
    assert found is not None, "the caller looked"
    npu = block.npu
    for before, text in block.lines:
        pair = _pair(text) if before < at else None
        if pair and _name(pair.name) == "npu_id":
            npu = _int(pair.value)
    return Process(-1 if npu is None else npu, block.chip, int(found[1]), found[2].strip(), int(found[3]), at)


def _events(properties: Properties) -> list[FaultEvent]:
    """Events of `-t health` and `-t current-fault-event`."""
    where = (properties.npu, properties.chip)
    found = []
    for event in re.split(r"; (?=event id)", properties.text("fault_event_information")):
        told = _EVENT.search(event)
        if told:
            severity = _SEVERITY.search(told[2])
            found.append(FaultEvent(*where, int(told[1], 16), int(severity[1]) if severity else None, event.strip(), properties.line))
    if properties.kind == "health":
        about = properties.text("error_information")
        found += [FaultEvent(*where, int(code, 16), None, about, properties.line) for code in _ID.findall(properties.text("error_code"))]
    return found


def _lists(lines: list[str]) -> tuple[list[Mapped], list[Topology], list[Properties], tuple[str, ...], tuple[str, ...]]:
    """Tables without rules: mapping (-m), topology, watch; and the help's words."""
    mapping: list[Mapped] = []
    topologies: list[Topology] = []
    watched: list[Properties] = []
    types: list[str] = []
    commands: list[str] = []
    columns: list[str] = []  # of the table that the next rows belong to
    table = ""
    for at, line in enumerate(lines, 1):
        words = line.split()
        if not words:
            continue
        if line.count("|") >= 2 and "Usage:" not in line:
            table = ""
            continue
        if "Usage: npu-smi" in line:
            table = "help"
            continue
        if re.search(r"\bNPU ID\b.*\bChip\b", line, re.IGNORECASE) and ":" not in line:
            table, columns = "map", [_COLUMNS[name.lower()] for name in _COLUMN.findall(line)]
            continue
        if "NpuID" in line:
            table, columns = "watch", [_watched(name, unit) for name, unit in _WATCHED.findall(line)]
            continue
        start = next((i for i, word in enumerate(words) if re.fullmatch(r"(?:NPU|Phy-ID)[0-9]{1,4}", word)), None)
        if start is not None and len(words) > start + 1 and re.fullmatch(r"(?:NPU|Phy-ID)[0-9]{1,4}|CPU", words[start + 1]):
            names = [word for word in words[start:] if re.fullmatch(r"(?:NPU|Phy-ID|NIC)[0-9]{1,4}", word)]
            table = "topo"
            topologies.append(Topology(tuple(names), (), (), at))
        elif table == "topo" and start is not None:
            topologies[-1] = _with_row(topologies[-1], words[start + 1 :])
        elif table == "map":
            row = _mapped(columns, words, at)
            if row is None:
                table = ""
            else:
                mapping.append(row)
        elif table == "watch":
            numbers = [_value("x_w", word)[0] for word in words]
            if len(numbers) < 2 or not isinstance(numbers[0], int):
                table = ""
                continue
            values = dict(zip(columns, numbers))
            npu, chip = values.get("npu_id"), values.get("chip_id")
            watched.append(Properties("watch", npu if isinstance(npu, int) else None, chip if isinstance(chip, int) else None, values, at))
        elif table == "help":
            types, commands, table = _help(line, types, commands)
    return mapping, topologies, watched, tuple(types), tuple(commands)


def _watched(name: str, unit: str) -> str:
    if unit == "Idx":
        return {"npuid": "npu_id", "chipid": "chip_id"}.get(name.lower(), name.lower())
    return _name(f"{name}({unit})")


def _with_row(topology: Topology, words: list[str]) -> Topology:
    """The matrix with one more row; a cut row is filled with empty texts."""
    count = len(topology.devices)
    row = (words + [""] * count)[:count]
    return Topology(topology.devices, (*topology.links, tuple(row)), (*topology.affinity, " ".join(words[count:])), topology.line)


def _mapped(columns: list[str], words: list[str], at: int) -> Mapped | None:
    if len(words) < len(columns) or not re.fullmatch(r"[0-9]{1,9}", words[0]) or columns[:1] != ["npu"]:
        return None
    row = dict(zip(columns, [*words[: len(columns) - 1], " ".join(words[len(columns) - 1 :])]))
    ids = {name: _int(row.get(name, "")) for name in ("chip", "logic_id", "phy_id", "slot")}
    return Mapped(int(words[0]), ids["chip"], ids["logic_id"], ids["phy_id"], ids["slot"], row.get("name", ""), at)


def _help(line: str, types: list[str], commands: list[str]) -> tuple[list[str], list[str], str]:
    """One line of `npu-smi info -h`: a command with its text, or types."""
    text = line.strip()
    if text in {"Commands:", "Options:"}:
        return types, commands, "help"
    command = re.match(r"(watch|proc|-[a-z](?:, --[a-z]+)?)(?: type)?\s{2,}\S", text)
    if command:
        return types, [*commands, command[1]], "help"
    listed = text.removeprefix("type:")
    if text.startswith("type:") or (types and re.fullmatch(r"[A-Za-z0-9_-]+(?:\s*,\s*[A-Za-z0-9_.-]+)*\s*,?", listed.strip())):
        return [*types, *(word for word in re.split(r"[,\s]+", listed) if re.fullmatch(r"[A-Za-z0-9_-]+", word))], commands, "help"
    return types, commands, ""
