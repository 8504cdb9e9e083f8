"""The graph engine: passes, selection, lowering, the memory plan, and the Program at the end."""

from jumar.compiler.assemble import Assembled, assemble
from jumar.compiler.autodiff import gradients
from jumar.compiler.compile import Compiled, CompileReport, PassReport, Refusal, compile, finish, optimize
from jumar.compiler.device_numerics import Candidate, Findings, NodeNumerics, OutputNumerics, device_numerics, run_precision
from jumar.compiler.forecast import Forecast, TwinOptions, forecast
from jumar.compiler.host import host_function
from jumar.compiler.lower import Choice, Lowering, Work, lower
from jumar.compiler.passes.precision import Precision
from jumar.compiler.plan import Life, Plan, plan
from jumar.compiler.save import Saver, load_constants, load_graph
from jumar.compiler.stages import STAGES, Pass, Stage, stages

__all__ = [
    "STAGES", "Assembled", "Choice", "CompileReport", "Compiled", "Life", "Lowering", "Pass", "PassReport", "Plan", "Refusal", "Saver",
    "Candidate", "Findings", "Forecast", "Precision", "TwinOptions", "forecast", "NodeNumerics", "OutputNumerics", "device_numerics", "run_precision",
    "Stage", "Work", "assemble", "compile", "finish", "gradients", "host_function", "load_constants", "load_graph", "lower", "optimize", "plan", "stages",
]  # fmt: skip
