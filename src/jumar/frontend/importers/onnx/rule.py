"""Rules: how each ONNX operator is said in ours.

    @rule("Relu")
    def relu(t: Trace, n: OnnxNode, x: Value) -> Result:
        return Relu()(t.node(x))

In: functions decorated with `@rule` in the files of `rules/`.  Out: `find_rule(op, domain)` for evaluator.py.

A rule gets the trace, the node, and one `Value` for each input (None where an optional input is absent; inputs past the last one given
are None too, up to the function's number of parameters).  It returns one result for each output: a `Node`, an array or number, a `Value`,
a list of such (a sequence); a tuple where there are several outputs.  It may return more results than the node lists.  What it may ask:

| call | gives |
|---|---|
| `t.node(x)` | the `Node` of a value, a constant where known |
| `t.array(x)` | the array itself; where traced, the trace is cut and run up to here |
| `t.ints(x)`, `t.scalar(x)` | the same as a tuple of ints, as one Python number |
| `t.known(x)` | the array where it is known, else None; never cuts |
| `t.run(op, *values)` | runs a data-dependent operator (`NonZero()`, `Unique()`) on the host at once; returns a `Value`, or a tuple of them |
| `x.type`, `x.shape`, `x.rank`, `x.dtype` | of any tensor value |
| `n.attribute("axis", 1)` | a decoded attribute: float, int, str, array, tuple of those, graph |
| `n.opset` | version of the node's domain that the model imports |
| `n.outputs` | number of outputs listed (trailing unnamed ones not counted); `n.wants(i)`: output i has a name |

What does not fit is an error: `raise n.fault("axis must be within the rank, got 7", hint=..., code=...)`.
"""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from jumar.base import Array, IRError
from jumar.frontend.importers.onnx import rules as rules_package
from jumar.frontend.importers.onnx.value import Value
from jumar.ir import Node

Result = Node | Array | Value | tuple[Any, ...]
RuleFunction = Callable[..., Any]


@dataclass(frozen=True)
class Rule:
    """One operator's rule.   inputs: number of positional inputs of the function; None where it takes any number."""

    name: str
    domain: str
    function: RuleFunction
    inputs: int | None
    scoped: bool = False  # the function gets the scope as its third argument: control flow only
    required: tuple[str, ...] = ()  # attributes that must be there, where no schema of the standard says so

    def pad(self, values: list[Value]) -> list[Value]:
        """As many values as the function has parameters."""
        return values if self.inputs is None else values + [None] * (self.inputs - len(values))


RULES: dict[tuple[str, str], Rule] = {}


def rule(*names: str, domain: str = "", scoped: bool = False, required: tuple[str, ...] = ()) -> Callable[[RuleFunction], RuleFunction]:
    """Registers a function as the rule of the operators `names` of a domain ("" is the standard one)."""

    def register(function: RuleFunction) -> RuleFunction:
        parameters = list(inspect.signature(function).parameters.values())[3 if scoped else 2 :]
        any_number = any(p.kind is inspect.Parameter.VAR_POSITIONAL for p in parameters)
        count = sum(p.kind in (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD) for p in parameters)
        for name in names:
            made = Rule(name, domain, function, None if any_number else count, scoped, required)
            before = RULES.setdefault((domain, name), made)
            if before.function.__module__ != function.__module__:
                raise IRError(
                    f"rule: {domain or 'ai.onnx'} {name} must have one rule, got {before.function.__module__} and {function.__module__}"
                )
            RULES[domain, name] = made
        return function

    return register


def find_rule(name: str, domain: str = "") -> Rule | None:
    """The rule of an operator; None where there is none."""
    load_rules()
    return RULES.get((normal_domain(domain), name))


def normal_domain(domain: str) -> str:
    """The standard domain has two names."""
    return "" if domain == "ai.onnx" else domain


_LOADED = False


def load_rules() -> None:
    """Imports every file of `rules/`, once; a new file needs no entry anywhere."""
    global _LOADED  # noqa: PLW0603
    if not _LOADED:
        for module in pkgutil.iter_modules(rules_package.__path__):
            importlib.import_module(f"{rules_package.__name__}.{module.name}")
        _LOADED = True
