"""What `jumar run --explain` says: captured functions, why they were captured again or run by Python, compiled graphs, times, memory.

In: the recording that was open around the script, and the facts that captures left (`frontend.explain.FACTS`).  Out: a text, or a JSON document.
"""

from __future__ import annotations

import json
import resource
import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jumar.tools.run_twin import twin_document, twin_lines, twin_run

if TYPE_CHECKING:
    from jumar.base.trace import Recording

SCHEMA = "jumar-run/1"
_STAGES = {"data": "waiting for data", "compile": "compiling", "load": "loading compiled graphs from the cache"}
_SHOWN = 12  # lines of a list that are shown


@dataclass(frozen=True)
class Report:
    """What is known of a run."""

    script: str
    record: Recording
    seconds: float


def document(report: Report) -> dict[str, Any]:
    """The report as plain values."""
    events: dict[str, list[dict[str, Any]]] = {}
    for e in report.record.events:
        events.setdefault(e.name, []).append(e.facts)
    segments = events.get("segment", [])
    epochs = events.get("dataset", [])
    seconds = {name: report.record.seconds(name) for name in ("compile", "load")}
    seconds["data"] = sum(e.get("step_waited_s", 0.0) for e in epochs)
    times = {name: round(seconds[name], 4) for name in _STAGES}
    functions = [asdict(f) for f in _facts()]
    stood = twin_run() if "jumar.frontend.twin" in sys.modules else None
    return {
        "schema": SCHEMA,
        "script": report.script,
        "seconds": round(report.seconds, 4),
        "times": {**times, "rest": round(max(0.0, report.seconds - sum(times.values())), 4)},
        "peak_memory_nbytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
        "functions": functions,
        "graphs": [{"name": s.get("graph", ""), "nodes": s.get("nodes", 0), "cached": bool(s.get("cached"))} for s in segments],
        "starving": [f"epoch {e['epoch']}: {e['starving']}" for e in epochs if e.get("starving")],
        "fallbacks": events.get("fallback", []),
        "without_effect": [f"{c['key']}={c['value']}" for c in events.get("context", [])],
        "twin": twin_document(stood) if stood else None,
    }


def _facts() -> list[Any]:
    explain = sys.modules.get("jumar.frontend.explain")  # absent where the script computed nothing
    return list(explain.FACTS) if explain is not None else []


def report_text(found: dict[str, Any]) -> str:
    """The document as a text for a terminal."""
    lines = ["", f"jumar run {found['script']}: {found['seconds']:.2f} s, at most {found['peak_memory_nbytes'] >> 20} MiB"]
    for name, about in _STAGES.items():
        if found["times"][name] >= 0.005:
            lines.append(f"  {found['times'][name]:8.2f} s  {about}")
    lines.append(f"  {found['times']['rest']:8.2f} s  Python and running")
    graphs = found["graphs"]
    cached = sum(g["cached"] for g in graphs)
    lines.append(f"compiled graphs: {len(graphs)} ({cached} from the cache)")
    lines += _some(
        [f"  {g['nodes']:6} nodes  {g['name']}{'  (from the cache)' if g['cached'] else ''}" for g in _largest(graphs)], len(graphs)
    )
    functions = found["functions"]
    lines.append(f"captured functions: {len(functions)}")
    for f in functions[:_SHOWN]:
        lines += _function_lines(f)
    if len(functions) > _SHOWN:
        lines.append(f"  ... and {len(functions) - _SHOWN} more (--explain-json has all)")
    if found["starving"]:
        lines.append("steps waited for data, slowest stage:")
        lines += _some([f"  {e}" for e in found["starving"]], len(found["starving"]))
    if found["fallbacks"]:
        lines.append("run another way than asked for:")
        lines += _some([f"  {', '.join(f'{k}: {v}' for k, v in b.items())}" for b in found["fallbacks"]], len(found["fallbacks"]))
    if found["without_effect"]:
        lines.append("settings that have nothing to set here: " + ", ".join(dict.fromkeys(found["without_effect"])))
    if found["twin"]:
        lines += twin_lines(found["twin"])
    return "\n".join(lines)


def _largest(graphs: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return sorted(graphs, key=lambda g: -g["nodes"])


def _some(lines: list[str], count: int) -> list[str]:
    return lines if count <= _SHOWN else [*lines[:_SHOWN], f"  ... and {count - _SHOWN} more (--explain-json has all)"]


def _function_lines(f: dict[str, Any]) -> list[str]:
    pieces = f"{f['pieces']} piece{'s' * (f['pieces'] != 1)}, {f['nodes']} nodes"
    lines = [f"  {f['function']}: {pieces}; captured {_times(f['captures'])} in {f['seconds']:.2f} s"]
    if f["effects"]:
        lines.append(f"    Python runs at each call ({_times(f['replays'])} so far), since it")
        lines += [f"      {e}" for e in f["effects"][:_SHOWN]]
    elif f["replays"]:
        lines.append(f"    Python ran again {_times(f['replays'])}")
    counted: dict[str, int] = {}
    for why in f["recaptures"]:
        counted[why] = counted.get(why, 0) + 1
    lines += [f"    captured again {_times(n)}: {why}" for why, n in list(counted.items())[:_SHOWN]]
    return lines


def _times(n: int) -> str:
    return "once" if n == 1 else "twice" if n == 2 else f"{n} times"


def write_json(found: dict[str, Any], path: Path) -> None:
    """Writes a document."""
    path.write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
