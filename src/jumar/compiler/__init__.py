"""The graph engine: passes, selection, lowering, the memory plan, and the Program at the end; and the twin, what an NPU would do with a graph.

Names of the twin are imported when they are first asked for: who compiles for this CPU does not wait for them.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from jumar.compiler.assemble import Assembled, assemble
from jumar.compiler.autodiff import gradients
from jumar.compiler.compile import Compiled, CompileReport, PassReport, Refusal, compile, finish, optimize
from jumar.compiler.host import host_function
from jumar.compiler.lower import Choice, Lowering, Work, lower
from jumar.compiler.plan import Life, Plan, plan
from jumar.compiler.save import Saver, load_constants, load_graph
from jumar.compiler.stages import STAGES, Pass, Stage, stages

if TYPE_CHECKING:
    from jumar.compiler.passes.alternatives import Alternative
    from jumar.compiler.passes.precision import MODES as PRECISION_MODES
    from jumar.compiler.passes.precision import SYNONYMS as PRECISION_SYNONYMS
    from jumar.compiler.passes.precision import Precision, check_names, check_precision, parse_precision
    from jumar.compiler.passes.switches import read_switches
    from jumar.compiler.twin.advice import BATCH_COMMAND, Advice, advise, conversion_launches, prepared_graph
    from jumar.compiler.twin.findings import Candidate, Findings, NodeNumerics, OutputNumerics
    from jumar.compiler.twin.fit import Verdict, Way, fit
    from jumar.compiler.twin.forecast import Forecast, TwinOptions, forecast
    from jumar.compiler.twin.memory import DeviceMemory, device_memory
    from jumar.compiler.twin.numerics import device_numerics, run_precision
    from jumar.compiler.twin.sizes import batch_of
    from jumar.compiler.twin.train_memory import Training

_FACES = {  # where each name of the twin lives: file -> its names
    "passes.alternatives": "Alternative",
    "passes.precision": "Precision check_names check_precision parse_precision",
    "passes.switches": "read_switches",
    "twin.advice": "BATCH_COMMAND Advice advise conversion_launches prepared_graph",
    "twin.findings": "Candidate Findings NodeNumerics OutputNumerics",
    "twin.fit": "Verdict Way fit",
    "twin.forecast": "Forecast TwinOptions forecast",
    "twin.memory": "DeviceMemory device_memory",
    "twin.numerics": "device_numerics run_precision",
    "twin.sizes": "batch_of",
    "twin.train_memory": "Training",
}
_PLACES = {name: (file, name) for file, names in _FACES.items() for name in names.split()}
_PLACES |= {"PRECISION_MODES": ("passes.precision", "MODES"), "PRECISION_SYNONYMS": ("passes.precision", "SYNONYMS")}

__all__ = [
    "BATCH_COMMAND", "PRECISION_MODES", "PRECISION_SYNONYMS", "STAGES", "Advice", "Alternative", "Assembled", "Candidate", "Choice", "CompileReport",
    "Compiled", "DeviceMemory", "Findings", "Forecast", "Life", "Lowering", "NodeNumerics", "OutputNumerics", "Pass", "PassReport", "Plan", "Precision",
    "Refusal", "Saver", "Stage", "Training", "TwinOptions", "Verdict", "Way", "Work", "advise", "assemble", "batch_of", "check_names", "check_precision",
    "compile",
    "conversion_launches", "device_memory", "device_numerics", "finish", "fit", "forecast", "gradients", "host_function", "load_constants", "load_graph",
    "lower", "optimize", "parse_precision", "plan", "prepared_graph", "read_switches", "run_precision", "stages",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    """Finds a name of the twin and keeps it."""
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    file, inner = _PLACES[name]
    found = getattr(importlib.import_module(f"{__name__}.{file}"), inner)
    globals()[name] = found
    return found
