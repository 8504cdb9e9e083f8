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
    name = _NAMES.get(kind.lower().replace("hcom", "").replace("_", ""))
    if name is None:
        raise DeviceError(
            f"collective: kind must be one of {', '.join(KINDS)}, got {kind!r}", hint=nearest(kind, list(KINDS)), code="npu-collective"
        )
    if ranks < 1 or nbytes < 0:
        raise DeviceError(
            f"collective: ranks must be 1 or more and bytes 0 or more, got {ranks} ranks and {nbytes} bytes", code="npu-collective"
        )
    if ranks == 1:
        return Prediction(0.0, 0.0, 0.0, "communication", evidence="one rank: nothing is sent")
    link = next((x for x in ("hccs", "ub", "pcie") if x in chip.links), "")
    if not link:
        raise DeviceError(
            f"collective: {chip.name} must have a link to others, got none",
            hint="run on one rank, or choose a chip with HCCS",
            code="npu-collective",
        )
    domain = int(_constant("domain", chip.family, "value") or 1)
    servers = servers or -(-ranks // domain) if link != "pcie" else 1
    time_us, low_us, high_us = (_time(name, nbytes, ranks, chip, link, max(1, servers), which) for which in ("value", "high", "low"))
    measured = chip.family == "Ascend910B" and servers == 1
    evidence = "calibrated" if measured else f"rates of {link} and between servers on {chip.name} are documented, not measured"
    return Prediction(time_us, low_us, high_us, "communication", {"communication": time_us}, evidence=evidence)


def _time(name: str, nbytes: int, ranks: int, chip: Chip, link: str, servers: int, which: str) -> float:
    """Microseconds.   which: `value`, or `high` for what is quickest (high rates, low costs), or `low` for the slowest."""
    costs = {"value": "value", "high": "low", "low": "high"}[which]
    shape, copied, rounds = KINDS[name]
    near = -(-ranks // servers)
    domain = int(_constant("domain", chip.family, "value") or near)
    switched = bool(_constant("switched", chip.family, "value")) or link == "pcie"
    rate = chip.links[link] * (_constant(link, "any", which) or 1.0)
    # a mesh has one link to each peer; behind a switch the peers share one port, so n - 1 transfers follow one another
    peers = max(1, near - 1)
    per_link = rate / peers if switched and shape != "1" else rate if switched else rate / max(1, domain - 1)
    transfers = float(shape.split("/", maxsplit=1)[0])
    part = nbytes / near if "/" in shape else float(nbytes)
    serial = peers if switched and name == "all_gather" else 1
    transfer, setup = _constant("transfer_us", "any", costs) or 0.0, _constant("setup_us", "any", costs) or 0.0
    time_us = setup
    ramp = _constant("ramp_nbytes", "any", costs) or 0.0
    if near > 1:
        time_us += transfers * serial * (transfer + (part + min(part, ramp)) / per_link * 1e6)
    local = chip.memory_bytes_per_s * (_constant("local", "any", which) or 1.0)
    time_us += copied * nbytes / local * 1e6
    if servers > 1:
        between = next((x for x in ("roce", "ub", "hccs", "pcie") if x in chip.links), link)
        outer = chip.links[between] * (_constant(between, "any", which) or 1.0)
        # a ring over the servers of what each rank holds after the inner step
        held = part if name != "send_recv" else float(nbytes)
        pieces = rounds * (servers - 1) or 1
        each = held / servers if rounds and name != "all_gather" else held
        time_us += pieces * (transfer + each / outer * 1e6)
    return time_us


def _constant(item: str, family: str, which: str) -> float | None:
    row = _constants().get((item, family))
    return row[which] if row else None


@lru_cache(maxsize=1)
def _constants() -> dict[tuple[str, str], dict[str, float]]:
    with (Path(__file__).parent / "communication.csv").open(encoding="utf-8", newline="") as file:
        return {(r["item"], r["family"]): {k: float(r[k]) for k in ("value", "low", "high")} for r in csv.DictReader(file)}
