"""operator_memory.csv and memory_record.csv: which tensor is on the device from when to when, and how much that makes.

In: a `Step` with `lives`.  Out: rows of text.  Megabytes and kilobytes are of 1024, as the profiler's are.
"""

from __future__ import annotations

from jumar.profiler.ascend.kernels import Rows, number
from jumar.profiler.ascend.step import Step

OPERATOR_MEMORY = (
    "Name,Size(KB),Allocation Time(us),Release Time(us),Active Release Time(us),Duration(us),Active Duration(us),Allocation Total Allocated(MB),"
    "Allocation Total Reserved(MB),Allocation Total Active(MB),Release Total Allocated(MB),Release Total Reserved(MB),Release Total Active(MB),"
    "Stream Ptr,Device Type"
)
MEMORY_RECORD = "Component,Timestamp(us),Total Allocated(MB),Total Reserved(MB),Total Active(MB),Stream Ptr,Device Type"


def operator_memory(step: Step) -> Rows:
    """One row a tensor; without a release where it outlives the step."""
    device = f"NPU:{step.rank}"
    moments = _moments(step)
    rows: Rows = [OPERATOR_MEMORY.split(",")]
    for i, life in enumerate(step.lives):
        begin, end = moments[i, True], moments.get((i, False))
        released = [step.when(end[0]) + "\t"] * 2 + [number(end[0] - begin[0]) + "\t"] * 2 if end else [""] * 4
        after = [_mb(end[1]), _mb(end[2]), _mb(end[1])] if end else [""] * 3
        allocated = [_mb(begin[1]), _mb(begin[2]), _mb(begin[1])]
        rows.append([life.name, f"{life.nbytes / 1024:g}", step.when(begin[0]) + "\t", *released, *allocated, *after, "0", device])
    return rows


def memory_record(step: Step) -> Rows:
    """The pool after each allocation and release (PTA), and what the process holds of the device (APP)."""
    device = f"NPU:{step.rank}"
    rows: Rows = [MEMORY_RECORD.split(",")]
    moments = sorted(_moments(step).values())
    for us, allocated, reserved in moments:
        rows.append(["PTA", step.when(us) + "\t", _mb(allocated), _mb(reserved), _mb(allocated), "0", device])
    if moments:
        rows.append(["APP", step.when(0.0) + "\t", "", _mb(max(step.reserved_nbytes, *(m[2] for m in moments))), "", "", device])
    return rows


def _moments(step: Step) -> dict[tuple[int, bool], tuple[float, int, int]]:
    """For the life's index and whether it begins: when, bytes in use after it, bytes set aside by then."""
    spans = {s.index: s for s in step.line.spans}
    sunk = step.line.mode == "sunk"
    events: list[tuple[float, bool, int]] = []
    for i, life in enumerate(step.lives):
        # a host that launches kernel by kernel allocates when it launches
        events.append((spans[life.first].start_us if sunk else spans[life.first].launch_us, True, i))
        if life.last is not None:
            events.append((spans[life.last].end_us, False, i))
    found: dict[tuple[int, bool], tuple[float, int, int]] = {}
    allocated = step.resident_nbytes
    reserved = max(allocated, step.reserved_nbytes)
    for us, begins, i in sorted(events):
        allocated += step.lives[i].nbytes if begins else -step.lives[i].nbytes
        reserved = max(reserved, allocated)
        found[i, begins] = (us, allocated, reserved)
    return found


def _mb(nbytes: int) -> str:
    return repr(nbytes / 2**20)
