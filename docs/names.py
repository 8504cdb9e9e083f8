"""Which of MindSpore's names there are in Jumar: found by looking, with what is missing inside of them by a table kept here.

In: names.csv (names that third-party packages use, with how often) and the package.  Out: rows for names.md (docs/generate.py) and for tests/test_names.py.
"""

from __future__ import annotations

import csv
import dis
import importlib
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

DATA = Path(__file__).with_name("names.csv")
WORKS, PARTLY_WORKS, REFUSES, NOT_YET, GONE = "works", "partly", "refuses", "not yet", "not in MindSpore 2.10"

# names that are there and do less than MindSpore's: what they do not do
PARTLY = {
    "mindspore.set_context": "device_target must be CPU; keys of devices are checked and have no effect",
    "mindspore.set_device": "CPU only",
    "mindspore.DeviceCtx": "CPU only",
    "mindspore.set_auto_parallel_context": "kept for scripts that ask; training on several devices is not there",
    "mindspore.communication.init": "a job of one process",
    "mindspore.communication.management.init": "a job of one process",
    "mindspore.communication.create_group": "the group of process 0",
    "mindspore.communication.management.create_group": "the group of process 0",
    "mindspore.Layout": "a description; nothing is split over devices",
    "mindspore.parallel.Layout": "a description; nothing is split over devices",
    "mindspore.parallel.shard": "on one device: the function itself",
    "Cell.shard": "on one device: the cell itself",
    "mindspore.recompute": "context_fn",
    "mindspore.Profiler": "spans and events of this stack; no counters of devices",
    "mindspore.profiler.Profiler": "spans and events of this stack; no counters of devices",
    "mindspore.profiler.profile": "spans and events of this stack; no counters of devices",
    "mindspore.get_ckpt_path_with_strategy": "checkpoints of one device",
    "mindspore.mindio_preload": "always False: there is no MindIO",
    "mindspore.hal.get_device_properties": "the CPU",
    "mindspore.runtime.set_memory": "a CPU has no pool; the level is kept",
}


# attributes that scripts set: to read them before is an error in MindSpore, too
SET_FIRST = {"Cell.pipeline_stage": 0}


@dataclass(frozen=True)
class Row:
    """A name.   count: how often the packages use it."""

    name: str
    count: int
    state: str
    about: str = ""


def rows() -> list[Row]:
    """All names, most used first."""
    lines = [line for line in DATA.read_text(encoding="utf-8").splitlines() if not line.startswith("#")]
    return [_row(r["name"], int(r["count"]), r["exists"] == "yes") for r in csv.DictReader(lines)]


def _row(name: str, count: int, exists: bool) -> Row:
    if resolves(name):
        if refuses(name):
            return Row(name, count, REFUSES)
        return Row(name, count, PARTLY_WORKS, PARTLY[name]) if name in PARTLY else Row(name, count, WORKS)
    return Row(name, count, NOT_YET if exists else GONE)


def resolves(name: str) -> bool:
    """Whether the name leads to something.

    >>> resolves("mindspore.float32"), resolves("Tensor.shape"), resolves("mindspore.flaot32")
    (True, True, False)
    """
    first, *rest = name.split(".")
    try:
        found = _owner(first)
    except (ImportError, AttributeError):
        return False
    if name in SET_FIRST:
        setattr(found, rest[0], SET_FIRST[name])
    path = "jumar"
    for part in rest:
        path += f".{part}"
        try:
            found = getattr(found, part)
            continue
        except (AttributeError, ImportError):
            pass
        if first != "mindspore":
            return False
        try:  # a module that a function of its name hides
            found = importlib.import_module(path)
        except ImportError:
            return False
    return True


def refuses(name: str) -> bool:
    """Whether a name of the package is a function, or a class whose making is one, that can only raise.

    >>> refuses("mindspore.train.export"), refuses("mindspore.nn.Dense")
    (True, False)
    """
    first, *rest = name.split(".")
    if first != "mindspore":  # methods that subclasses write
        return False
    found = _owner(first)
    for part in rest:
        found = getattr(found, part, None)
    call = found.__init__ if isinstance(found, type) else found
    code = getattr(getattr(call, "__func__", call), "__code__", None)
    return code is not None and not any(i.opname.startswith(("RETURN", "YIELD")) for i in dis.get_instructions(code))


_OWNERS: dict[str, Any] = {}


def _owner(first: str) -> Any:
    """What the first word of a name means: the package, or an object whose attributes are asked for."""
    if first not in _OWNERS:
        import jumar  # noqa: PLC0415  (its docs are read without it)

        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            make = {
                "mindspore": lambda: jumar,
                "Tensor": lambda: jumar.Tensor([1.0]),
                "Parameter": lambda: jumar.Parameter(jumar.Tensor([1.0]), name="p"),
                "Cell": jumar.nn.Cell,
            }
            _OWNERS[first] = make[first]()
    return _OWNERS[first]


def page(note: str) -> str:
    """names.md."""
    found = rows()
    counts = {s: sum(r.state == s for r in found) for s in (WORKS, PARTLY_WORKS, REFUSES, NOT_YET, GONE)}
    lines = [
        "# Names of MindSpore's", "", note.strip(), "",
        f"{len(found)} names that third-party packages use: {counts[WORKS]} work, {counts[PARTLY_WORKS]} partly, "
        f"{counts[REFUSES]} are there and refuse with a reason when they are called, {counts[NOT_YET]} are not there yet; "
        f"MindSpore 2.10 has removed {counts[GONE]}.",
        "Whether a name is there is found by looking; whether it computes what MindSpore computes is what the tests of its room say. "
        "`Tensor.x`, `Parameter.x` and `Cell.x` are attributes of objects.", "",
        "The names were counted in mindcv, mindyolo, mindnlp, mindformers, mindocr, mindone and mindaudio (all Apache-2.0); names and numbers only.", "",
        "## Partly", "", "| name | uses | what it does not do |", "|---|---|---|",
        *(f"| `{r.name}` | {r.count} | {r.about} |" for r in found if r.state == PARTLY_WORKS),
        "", "## Refuse with a reason", "", _list(found, REFUSES), "", "## Not yet", "", _list(found, NOT_YET), "", "## Works", "", _list(found, WORKS),
        "", "## Gone from MindSpore 2.10", "", _list(found, GONE),
    ]  # fmt: skip
    return "\n".join(lines) + "\n"


def _list(found: list[Row], state: str) -> str:
    return ", ".join(f"`{r.name}` {r.count}" for r in found if r.state == state) or "None."
