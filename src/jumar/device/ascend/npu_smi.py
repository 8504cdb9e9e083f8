"""`npu-smi`'s outputs as values: cards, their health and memory, who holds them, and the form that asks for one thing (`-t board`).

In: the text of one or many outputs, as pasted: of any layout, with prompts, colours, cut lines.  Out: `NpuSmi`; what is not understood is a
`Complaint`, never an exception.  Facts: hicann/driver documentation of npu-smi, the npu-smi reference, public outputs.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from jumar.device.ascend.complaint import Complaint, plain_lines, quoted
from jumar.device.ascend.npu_smi_forms import FaultEvent, Mapped, Process, Properties, Topology, read_forms
from jumar.device.ascend.npu_smi_tables import Npu, read_tables

IDLE_HBM_MB = 4600  # what an idle card shows as used HBM: 2.8 to 3.4 GB on A2 and A3, 4.4 GB on a 950
ISOLATED_PAGES = 64  # HBM pages that a card can isolate before it must be replaced


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
    tables, forms = read_tables(lines), read_forms(lines)
    failures = _failures(lines)
    refused = {one.line for one in failures}
    boards = [one for one in forms.properties if one.kind == "board"]

    def first(name: str) -> str:
        return next((one.text(name) for one in boards if one.text(name)), "")

    smi = NpuSmi(
        tool=tables.tool,
        layout=tables.layout,
        npus=tables.npus,
        idle=tables.idle,
        processes_listed=tables.processes_listed,
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
        if one.text("compatibility").strip().upper() not in ("", "OK", "NA", "NOT SUPPORT", "NOT SUPPORTED"):
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
