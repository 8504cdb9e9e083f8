"""The graph engine: passes, selection, lowering, the memory plan, and the Program at the end."""

from jumar.compiler.assemble import Assembled, assemble
from jumar.compiler.autodiff import gradients
from jumar.compiler.compile import Compiled, CompileReport, PassReport, Refusal, compile, finish, optimize
from jumar.compiler.host import host_function
from jumar.compiler.lower import Choice, Lowering, Work, lower
from jumar.compiler.passes.alternatives import Alternative
from jumar.compiler.passes.precision import MODES as PRECISION_MODES
from jumar.compiler.passes.precision import SYNONYMS as PRECISION_SYNONYMS
from jumar.compiler.passes.precision import Precision, check_precision, parse_precision
from jumar.compiler.passes.switches import read_switches
from jumar.compiler.plan import Life, Plan, plan
from jumar.compiler.save import Saver, load_constants, load_graph
from jumar.compiler.stages import STAGES, Pass, Stage, stages
from jumar.compiler.twin.advice import BATCH_COMMAND, Advice, advise, conversion_launches, prepared_graph
from jumar.compiler.twin.findings import Candidate, Findings, NodeNumerics, OutputNumerics
from jumar.compiler.twin.fit import Verdict, Way, fit
from jumar.compiler.twin.forecast import Forecast, TwinOptions, forecast
from jumar.compiler.twin.memory import DeviceMemory, device_memory
from jumar.compiler.twin.numerics import device_numerics, run_precision
from jumar.compiler.twin.sizes import batch_of
from jumar.compiler.twin.train_memory import Training

__all__ = [
    "BATCH_COMMAND", "PRECISION_MODES", "PRECISION_SYNONYMS", "STAGES", "Advice", "Alternative", "Assembled", "Candidate", "Choice", "CompileReport",
    "Compiled", "Findings", "Forecast", "Life", "Lowering", "NodeNumerics", "OutputNumerics", "Pass", "PassReport", "Plan", "Precision", "Refusal",
    "Saver", "Stage", "TwinOptions", "Work", "advise", "assemble", "batch_of", "check_precision", "compile",
    "conversion_launches", "device_numerics", "finish", "forecast",
    "gradients", "host_function", "load_constants", "load_graph", "lower", "optimize", "parse_precision", "plan", "prepared_graph", "read_switches",
    "run_precision", "stages",
    "DeviceMemory", "Training", "Verdict", "Way", "device_memory", "fit",
]  # fmt: skip
