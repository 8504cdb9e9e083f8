"""Other ways to run what a chip does not run on its AI Core, in the order of what they cost there.

In: a node, the operator type that would run it, the chip, and the node taken apart, where it can be.  Out: `Alternative`s for a `Choice`.
Costs are predictions of the kernels alone, in formats ND; what nothing predicts (another chip, work of the user's) comes last.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from jumar.base import DTYPES, DType, TensorType
from jumar.compiler.passes.cann_kernels import Kernel, elements
from jumar.device.npu import VECTOR, Chip, Operand, Task, library, predict
from jumar.ir import Node

FLOATS, INTEGERS = ("f32", "f16", "bf16"), ("i32", "i64", "i16", "f32", "f16")  # what to try, the nearest in meaning first


@dataclass(frozen=True)
class Alternative:
    """Another way to run a node.   cost_us: predicted on the device, None where nothing predicts it; how: what the user does for it.

    dtype: the element type that its inputs are cast to, where that is all of it."""

    what: str
    cost_us: float | None
    how: str
    dtype: str = ""


def task_of(node: Node, kind: str, unit: str, attrs: Mapping[str, Any], dtype: DType | None = None) -> Task:
    """The kernel that runs a node, its tensors in format ND.   dtype: instead of the node's own."""
    types = node.type if isinstance(node.type, tuple) else (node.type,)
    own = _dtype(node)

    def operand(t: TensorType) -> Operand:
        return Operand(t.dims, dtype if dtype is not None and t.dtype == own else t.dtype)

    inputs = tuple(operand(i.type) for i in node.inputs if isinstance(i.type, TensorType))
    return Task(kind, inputs, tuple(operand(t) for t in types), attrs, unit)


def cost_us(tasks: Iterable[Task], chip: Chip) -> float:
    """Microseconds of kernels one after another."""
    return sum(predict(t, chip).time_us for t in tasks)


def alternatives(node: Node, chip: Chip, kernel: Kernel | None, parts: tuple[str, float] | None) -> tuple[Alternative, ...]:
    """Ways out, cheapest first.   kernel: the operator type that would run it; parts: names and cost of the operators it can be taken apart into."""
    found: list[Alternative] = []
    if parts is not None:
        found.append(Alternative(f"in parts on the AI Core: {parts[0]}", parts[1], f"write {node.op.name} in these operators"))
    if node.op.name == "cast":
        found += _by_way_of(node, chip)
    elif kernel is not None and kernel.takes != "none":
        found += _in_another_type(node, chip, kernel)
    found.sort(key=lambda a: a.cost_us if a.cost_us is not None else float("inf"))
    if kernel is not None and (row := library.find_ge(kernel.kind)) is not None:
        others = sorted(row.on - {library.column(chip.family)})
        if others and not elements(kernel, chip):
            found.append(Alternative(f"{kernel.kind} on the AI Core of {', '.join(others)}", None, "a chip of that family"))
    if kernel is None or not elements(kernel, chip):
        found.append(Alternative("the operator in a newer CANN", None, "look it up in the operator list of the newest release"))
    found.append(Alternative("an operator of your own", None, "write it in Ascend C (msopgen) and register it with the model's importer"))
    return tuple(found)


def _in_another_type(node: Node, chip: Chip, kernel: Kernel) -> list[Alternative]:
    own, taken = _dtype(node), elements(kernel, chip)
    for name in FLOATS if own.is_float else INTEGERS:
        if name in taken:
            other = DTYPES[name]
            tasks = [task_of(node, kernel.kind, kernel.unit, {}, other)]
            for t in (*(i.type for i in node.inputs), node.type):
                if isinstance(t, TensorType) and t.dtype == own:
                    tasks.append(Task("Cast", (Operand(t.dims, own),), (Operand(t.dims, other),), core=VECTOR))
            what = f"{kernel.kind} in {name} on the AI Core"
            return [Alternative(what, cost_us(tasks, chip), f"cast the inputs of {node.op.name} to {name}", name)]
    return []


def _by_way_of(node: Node, chip: Chip) -> list[Alternative]:
    """Two casts that the AI Core has, where it lacks the one."""
    pairs, _ = library.find_casts(library.column(chip.family))
    source, target, shape = node.inputs[0].dtype, node.dtype, node.inputs[0].shape
    for name in ("i32", "f32", "f16"):
        if (source.name, name) in pairs and (name, target.name) in pairs:
            steps = ((source, DTYPES[name]), (DTYPES[name], target))
            tasks = [Task("Cast", (Operand(shape, a),), (Operand(shape, b),), core=VECTOR) for a, b in steps]
            return [Alternative(f"two casts on the AI Core, by way of {name}", cost_us(tasks, chip), f"cast to {name}, then to {target}")]
    return []


def _dtype(node: Node) -> DType:
    """The element type that the node computes in: that of its first input of numbers, else its result's."""
    found = [i.dtype for i in node.inputs if isinstance(i.type, TensorType) and i.dtype.kind != "b"]
    types = node.type if isinstance(node.type, tuple) else (node.type,)
    own: DType = found[0] if found else types[0].dtype
    return own
