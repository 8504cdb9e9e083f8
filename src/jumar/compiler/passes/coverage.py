"""The operator list of a chip: what would run each of our operators there, for each element type that its samples have.

In: the operators' samples and a chip.  Out: `Coverage` rows, which `jumar ops --soc` prints.  The choices are those of select.py.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from jumar.base import OpError, TensorType
from jumar.compiler.passes.select import COMPOSITE, Choice, Plan, plan_of
from jumar.device.npu import Chip
from jumar.ir import REGISTRY, Constant, Get, Node, Op, Param, Sample, apply, constant, param

OF_GRAPHS = frozenset({Param.name, Constant.name, Get.name, "fused", "batchwise"})  # made by graphs and by passes for CPUs


@dataclass(frozen=True)
class Coverage:
    """One operator in one element type on a chip.   unit, kind, aclnn, how, evidence, source, why: as in `Choice`; parts: kinds of a composite."""

    op: str
    dtype: str
    unit: str
    kind: str
    aclnn: str
    how: str
    evidence: str
    source: str
    why: str = ""
    parts: tuple[str, ...] = ()


def coverage(chip: Chip) -> tuple[Coverage, ...]:
    """A row for each operator and element type, by operator."""
    found: dict[tuple[str, str], Coverage] = {}
    for name, op in sorted(REGISTRY.items()):
        if name in OF_GRAPHS:
            continue
        for node in _samples(op):
            types = node.inputs[0].type if node.inputs else node.type
            dtype = str(types.dtype) if isinstance(types, TensorType) else ""
            row = _row(name, dtype, node, plan_of(node, chip))
            known = found.get((name, dtype))
            if known is None or (known.how == "view" and row.how != "view"):  # a sample without elements says nothing
                found[name, dtype] = row
    return tuple(found.values())


def _samples(op: type[Op]) -> Iterator[Node]:
    for s in op.samples:
        yield _node(op, s)


def _node(op: type[Op], s: Sample) -> Node:
    """The operator on a sample's types; where the shape of its result depends on data, the type of its first input stands for it."""
    made = op(**s.attributes)
    inputs = tuple(param(f"x{i}", t) if isinstance(t, TensorType) else constant(t) for i, t in enumerate(s.inputs))
    try:
        return apply(made, *inputs)
    except OpError:
        return Node(made, inputs, inputs[0].type)


def _row(name: str, dtype: str, node: Node, plan: Plan) -> Coverage:
    if plan.expansion is None:
        c: Choice = plan.choices[node]
        return Coverage(name, dtype, c.unit, c.kind, c.aclnn, c.how, c.evidence, c.source, c.why)
    kinds = tuple(dict.fromkeys(c.kind for c in plan.choices.values() if c.kind))
    units = sorted({c.unit for c in plan.choices.values() if c.unit})
    documented = all(c.evidence == "documented" for c in plan.choices.values())
    evidence = "documented" if documented else "inferred"
    return Coverage(name, dtype, "+".join(units), "", "", COMPOSITE, evidence, "its parts", plan.expansion.why, kinds)
