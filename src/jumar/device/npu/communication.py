"""What a collective costs between Ascend devices: a mesh inside a server, a ring between servers, and copies through the buffer.

In: the kind (`all_reduce` ...), bytes, ranks, a `Chip` with its links.  Out: a `Prediction`, read by the compiler's forecast and by advice.
Constants and the shape of servers with their sources: communication.csv; bench/twin_communication.py compares them with what was measured.
"""

from __future__ import annotations

import csv
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path

from jumar.base import DeviceError, nearest
from jumar.device.npu.chip import Chip
from jumar.device.npu.task import Prediction

# transfers inside a domain of d ranks, each as a part of the message; the part of it that is copied through the buffer; rounds between servers
KINDS: Mapping[str, tuple[str, float, int]] = {
    "all_reduce": ("2/d", 1.0, 2), "reduce_scatter": ("1/d", 1.0, 1), "all_gather": ("1", 1.0, 1),
    "broadcast": ("2/d", 1.0, 2), "reduce": ("2/d", 1.0, 2), "all_to_all": ("1/d", 1.0, 1), "send_recv": ("1", 0.0, 0),
}  # fmt: skip
_NAMES = {k.replace("_", ""): k for k in KINDS} | {
    "alltoallv": "all_to_all", "alltoallvc": "all_to_all", "batchsendrecv": "send_recv", "send": "send_recv", "receive": "send_recv",
}  # fmt: skip


def collective(kind: str, nbytes: int, ranks: int, chip: Chip, *, servers: int = 0) -> Prediction:
    """Time of one collective when all ranks arrive together.   kind: of KINDS, also as CANN spells it (`hcom_allReduce_`); nbytes: of one rank's input;
    servers: how many the ranks are spread over, 0 for as few as hold them.

    >>> from jumar.device.npu import find_chip
    >>> collective("all_reduce", 1, 1, find_chip("Ascend910B4")).time_us
    0.0
    """
    name = _name(kind)
    if ranks < 1 or nbytes < 0:
        raise DeviceError(
            f"collective: ranks must be 1 or more and bytes 0 or more, got {ranks} ranks and {nbytes} bytes", code="npu-collective"
        )
    if ranks == 1:
        return Prediction(0.0, 0.0, 0.0, "communication", evidence="one rank: nothing is sent")
    link = _link(chip)
    domain = int(_constant("domain", chip.family, "value") or 1)
    servers = servers or -(-ranks // domain) if link != "pcie" else 1
    parts, least, most = (_parts(name, nbytes, ranks, chip, link, max(1, servers), which) for which in ("value", "high", "low"))
    measured = chip.family == "Ascend910B" and servers == 1
    evidence = "calibrated" if measured else f"rates of {link} and between servers on {chip.name} are documented, not measured"
    return Prediction(sum(parts.values()), sum(least.values()), sum(most.values()), "communication", parts, evidence=evidence)


def transfers(kind: str, nbytes: int, ranks: int, chip: Chip) -> tuple[int, float, str]:
    """What one rank sends in a collective inside a server: how many transfers, bytes of each, and over which link."""
    name, link = _name(kind), _link(chip)
    if ranks < 2:
        return 0, 0.0, link
    shape = KINDS[name][0]
    rounds = int(shape.split("/", maxsplit=1)[0])
    peers = 1 if name == "send_recv" else ranks - 1
    return rounds * peers, nbytes / ranks if "/" in shape else float(nbytes), link


def _name(kind: str) -> str:
    name = _NAMES.get(kind.lower().replace("hcom", "").replace("_", ""))
    if name is None:
        raise DeviceError(
            f"collective: kind must be one of {', '.join(KINDS)}, got {kind!r}", hint=nearest(kind, list(KINDS)), code="npu-collective"
        )
    return name


def _link(chip: Chip) -> str:
    link = next((x for x in ("hccs", "ub", "pcie") if x in chip.links), "")
    if not link:
        raise DeviceError(
            f"collective: {chip.name} must have a link to others, got none",
            hint="run on one rank, or choose a chip with HCCS",
            code="npu-collective",
        )
    return link


def _parts(name: str, nbytes: int, ranks: int, chip: Chip, link: str, servers: int, which: str) -> dict[str, float]:
    """Microseconds by part.   which: `value`, or `high` for what is quickest (high rates, low costs), or `low` for the slowest.

    setup: what any collective costs; links: transfers inside a server; network: between servers; local: copies to and from the buffer.
    """
    costs = {"value": "value", "high": "low", "low": "high"}[which]
    shape, copied, rounds = KINDS[name]
    near = -(-ranks // servers)
    domain = int(_constant("domain", chip.family, "value") or near)
    switched = bool(_constant("switched", chip.family, "value")) or link == "pcie"
    rate = chip.links[link] * (_constant(link, "any", which) or 1.0)
    # a mesh has one link to each peer; behind a switch the peers share one port, so n - 1 transfers follow one another
    peers = max(1, near - 1)
    per_link = rate if switched else rate / max(1, domain - 1)
    serial = peers if switched and name != "send_recv" else 1
    part = nbytes / near if "/" in shape else float(nbytes)
    transfer, ramp = _constant("transfer_us", "any", costs) or 0.0, _constant("ramp_nbytes", "any", costs) or 0.0
    local = chip.memory_bytes_per_s * (_constant("local", "any", which) or 1.0)
    parts = {"setup": _constant("setup_us", "any", costs) or 0.0, "links": 0.0, "network": 0.0, "local": copied * nbytes / local * 1e6}
    if near > 1:
        parts["links"] = int(shape.split("/", maxsplit=1)[0]) * serial * (transfer + (part + min(part, ramp)) / per_link * 1e6)
    if servers > 1:
        between = next((x for x in ("roce", "ub", "hccs", "pcie") if x in chip.links), link)
        outer = chip.links[between] * (_constant(between, "any", which) or 1.0)
        # a ring over the servers of what each rank holds after the inner step
        pieces = rounds * (servers - 1) or 1
        each = part / servers if rounds and name != "all_gather" else part
        parts["network"] = pieces * (transfer + each / outer * 1e6)
    return parts


def _constant(item: str, family: str, which: str) -> float | None:
    row = _constants().get((item, family))
    return row[which] if row else None


@lru_cache(maxsize=1)
def _constants() -> dict[tuple[str, str], dict[str, float]]:
    with (Path(__file__).parent / "communication.csv").open(encoding="utf-8", newline="") as file:
        return {(r["item"], r["family"]): {k: float(r[k]) for k in ("value", "low", "high")} for r in csv.DictReader(file)}
