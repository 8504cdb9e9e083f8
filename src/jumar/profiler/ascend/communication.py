"""communication.json and communication_matrix.json: what collectives send over which link.

In: a `Step`.  Out: JSON values.  The twin's ranks arrive together, so nobody waits; what is no transit between ranks stands as idle time.
"""

from __future__ import annotations

from typing import Any

from jumar.device.npu import COMMUNICATION, Span, Task, transfers
from jumar.profiler.ascend.step import Step, collective_type

_TRANSPORTS = ("RDMA", "HCCS", "PCIE", "SDMA", "SIO")


def communication(step: Step) -> dict[str, Any]:
    """Every collective with its times and what it sent, and their sum."""
    found = {f"{step.kernel(s)}@{step.group}": _entry(step, [s]) for s in _spans(step)}
    if found:
        found["Total Op Info"] = _entry(step, _spans(step))
    return {f"step{step.number}": {"p2p": {}, "collective": found}}


def communication_matrix(step: Step) -> dict[str, Any]:
    """What goes from this rank to each other, for the collective of each type that takes longest (`top1`), and for all of a type."""
    found: dict[str, Any] = {}
    kinds: dict[str, list[Span]] = {}
    for span in _spans(step):
        kinds.setdefault(collective_type(step.line.tasks[span.index].kind), []).append(span)
    for kind, spans in kinds.items():
        short = kind.removeprefix("hcom_").rstrip("_").lower()
        longest = max(spans, key=lambda s: s.time_us)
        found[f"{short}-top1@{step.group}"] = _links(step, [longest], step.kernel(longest))
        found[f"{short}-total@{step.group}"] = _links(step, spans, "")
    return {f"step{step.number}": {"p2p": {}, "collective": found}}


def sent(step: Step, span: Span) -> tuple[int, float, str]:
    """Transfers of one rank in a collective: how many, megabytes of each, and the transport."""
    task = step.line.tasks[span.index]
    count, nbytes, link = transfers(task.kind, message(task), int(task.attrs.get("ranks", step.ranks)), step.line.chip)
    return count, nbytes / 1e6, {"hccs": "HCCS", "pcie": "PCIE", "roce": "RDMA", "ub": "HCCS"}[link]


def transit_us(step: Step, span: Span) -> float:
    """What of a collective's time is transfers between ranks: all of it where the prediction does not say."""
    pipes = step.line.predictions[span.index].pipes
    return min(span.time_us, pipes["links"] + pipes.get("network", 0.0)) if "links" in pipes else span.time_us


def message(task: Task) -> int:
    """Bytes of a rank's input."""
    return sum(o.nbytes for o in task.inputs)


def _spans(step: Step) -> list[Span]:
    return [s for s in step.device_spans if step.line.tasks[s.index].core == COMMUNICATION]


def _entry(step: Step, spans: list[Span]) -> dict[str, Any]:
    ms, transit = sum(s.time_us for s in spans) / 1e3, sum(transit_us(step, s) for s in spans) / 1e3
    times = {
        "Elapse Time(ms)": ms, "Transit Time(ms)": transit, "Wait Time(ms)": 0.0, "Synchronization Time(ms)": 0.0, "Idle Time(ms)": ms - transit,
        "Wait Time Ratio": 0.0, "Synchronization Time Ratio": 0.0,
    }  # fmt: skip
    if len(spans) == 1:
        times = {"Start Timestamp(us)": float(step.when(spans[0].start_us)), **times}
    links: dict[str, Any] = {name: _link(0, 0, {}) for name in _TRANSPORTS}
    for transport in {sent(step, s)[2] for s in spans}:
        used = [s for s in spans if sent(step, s)[2] == transport]
        sizes: dict[str, list[float]] = {}
        for s in used:
            count, size, _ = sent(step, s)
            entry = sizes.setdefault(f"{size:g}", [0, 0.0])
            entry[0] += count
            entry[1] += transit_us(step, s) / 1e3
        whole = _link(sum(sent(step, s)[0] * sent(step, s)[1] for s in used), sum(transit_us(step, s) for s in used) / 1e3, sizes)
        links[transport] = whole
        if transport != "RDMA":  # what is no RDMA is moved by SDMA: the profiler lists it under both
            links["SDMA"] = whole
    return {"Communication Time Info": times, "Communication Bandwidth Info": links}


def _link(size_mb: float, ms: float, sizes: dict[str, list[float]]) -> dict[str, Any]:
    rate = round(size_mb / ms, 4) if ms else 0
    return {
        "Transit Size(MB)": size_mb, "Transit Time(ms)": ms, "Bandwidth(GB/s)": rate, "Large Packet Ratio": 0, "Size Distribution": sizes,
    }  # fmt: skip


def _links(step: Step, spans: list[Span], name: str) -> dict[str, Any]:
    found: dict[str, Any] = {}
    others = [r for r in range(step.ranks) if r != step.rank]
    size = sum(sent(step, s)[0] * sent(step, s)[1] for s in spans) / max(1, len(others))
    copied = sum(step.line.predictions[s.index].pipes.get("local", 0.0) for s in spans)
    # the copy inside a device has a place of its own, and tells tools which rank this is
    links = {step.rank: ("LOCAL", sum(message(step.line.tasks[s.index]) for s in spans) / 1e6, copied)}
    links |= {r: (sent(step, spans[0])[2], size, sum(transit_us(step, s) for s in spans)) for r in others}
    for other, (transport, megabytes, us) in sorted(links.items()):
        found[f"{step.rank}-{other}"] = {
            "Transport Type": transport, "Transit Size(MB)": megabytes, "Transit Time(ms)": us / 1e3,
            "Bandwidth(GB/s)": round(megabytes / us * 1e3, 4) if us else 0, "Op Name": name or step.kernel(spans[0]),
        }  # fmt: skip
    return found
