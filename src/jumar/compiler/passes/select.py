"""Which operator of CANN runs each node on a chip, on which unit, and on what evidence.

In: a graph whose element types are settled (precision.py) and a chip.  Out: `Selection`: the graph, with what CANN has no operator for taken
apart, and a `Choice` for each of its operators.  formats.py, fuse_npu.py and tasks.py go on from there; reports print the table.
In order: nothing at all (a view), an AI Core kernel that takes the element type, other operators (expand.py), the AI CPU, DVPP, the host,
and where none will do, nothing, which `strict` makes an error.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from jumar.base import CompileError, TensorType, event
from jumar.compiler.passes.alternatives import Alternative, alternatives, cost_us, task_of
from jumar.compiler.passes.cann_kernels import Kernel, elements, is_new, kernels, size
from jumar.compiler.passes.canonicalize import Canonicalize
from jumar.compiler.passes.expand import Expansion, expand
from jumar.compiler.passes.fold import Fold
from jumar.compiler.passes.merge import Merge
from jumar.compiler.passes.precision import Precision, uses_hf32
from jumar.device.npu import AI_CPU, DVPP, HOST, Chip, find_chip, library
from jumar.ir import Constant, Get, Graph, Node, Param, param, rebuild, same_node, topological

ACLNN, GE, COMPOSITE, CPU, MEDIA, ON_HOST, VIEW, NONE = "aclnn", "ge", "composite", "ai cpu", "dvpp", "host", "view", "none"
DOCUMENTED, INFERRED = "documented", "inferred"
ATOMIC = frozenset(map(library.plain, (  # kernels whose cores add to one memory, in any order unless told otherwise
    "Conv2DBackpropFilter", "DepthwiseConv2DBackpropFilter", "Conv3DBackpropFilterV2", "EmbeddingDenseGradV2", "UnsortedSegmentSum", "ScatterNdAdd",
    "ScatterElements", "LayerNormGradV3", "BatchNormGrad", "FlashAttentionScoreGrad",
)))  # fmt: skip
MAX_DEPTH = 8  # expansions within expansions: an LSTM's gradient needs three


@dataclass(frozen=True, eq=False)
class Choice:
    """What runs one node.   unit: one of device.npu.CORES, empty for a view; kind: CANN's operator type; aclnn: the function that launches it.

    how: one of the words at the top of this file.  evidence, source: `documented` by that source, or `inferred` from it.
    why: for whatever is not on the AI Core.  attrs: what the operator says beside its tensors, for the task.
    On a chip whose cores hold both units (310P, 910A) cube and vector kernels keep their units' names, though its profiles say AI_CORE of both.
    """

    node: Node
    unit: str
    kind: str
    aclnn: str
    how: str
    evidence: str
    source: str
    why: str = ""
    alternatives: tuple[Alternative, ...] = ()
    attrs: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class Composite:
    """A node of the first graph that CANN has no operator for.   parts: the nodes of the second that it became; cost_us: theirs."""

    node: Node
    parts: tuple[Node, ...]
    why: str
    cost_us: float | None = None


@dataclass(frozen=True, eq=False)
class Selection:
    """graph: each operator of it is one operator of CANN; choices: for each node but parameters and constants; warnings: said loudly."""

    graph: Graph
    choices: Mapping[Node, Choice]
    composites: tuple[Composite, ...] = ()
    warnings: tuple[str, ...] = ()

    def by_unit(self) -> Mapping[str, int]:
        """Number of operators on each unit; "" counts views."""
        found: dict[str, int] = {}
        for c in self.choices.values():
            found[c.unit] = found.get(c.unit, 0) + 1
        return found


def select(graph: Graph, chip: Chip, *, strict: bool = False, inference: bool = True, precision: Precision | None = None) -> Selection:
    """Maps every operator of the graph to what runs it on the chip.

    strict: an operator that neither the AI Core nor the AI CPU runs is an error, not a warning.  inference: no gradient follows.
    precision: what the graph was cast by; says which products of f32 are computed in HF32.
    """
    choices: dict[Node, Choice] = {}
    composites: list[Composite] = []
    new: dict[Node, Node] = {p: p for p in graph.params}
    several: dict[Node, tuple[Node, ...]] = {}  # results of a node that was taken apart

    for node in graph.nodes:
        if node in new:
            continue
        if isinstance(node.op, Get) and node.inputs[0] in several:
            new[node] = several[node.inputs[0]][node.op.index]
            continue
        found = same_node(node, tuple(new[i] for i in node.inputs))
        plan = plan_of(found, chip)
        choices |= plan.choices
        if plan.expansion is None:
            new[node] = found
            continue
        results = plan.expansion.results
        composites.append(Composite(node, tuple(plan.choices), plan.expansion.why, cost_of(plan, chip)))
        several[node] = results
        new[node] = results[0]
    result = graph.with_outputs(new[o] for o in graph.outputs)
    kept = {n: choices[n] for n in result.nodes if n in choices}
    if precision is not None:
        kept |= {n: replace(c, attrs={**c.attrs, "hf32": True}) for n, c in kept.items() if uses_hf32(n, chip, precision)}
        if precision.deterministic:
            kept |= {n: replace(c, attrs={**c.attrs, "deterministic": True}) for n, c in kept.items() if library.plain(c.kind) in ATOMIC}
    warnings = tuple(_warning(c, chip) for c in kept.values() if c.how in (NONE, ON_HOST))
    if strict:
        for c in kept.values():
            if c.how in (NONE, ON_HOST):
                raise _unmapped(c, chip)
    selection = Selection(result, kept, tuple(composites), warnings)
    event("select", chip=chip.name, **{unit or "view": n for unit, n in selection.by_unit().items()})
    return selection


@dataclass(frozen=True)
class Select:
    """The pass under a name, for golden files: the graph in operators that the chip has."""

    soc: str = "310P3"
    name = "select"

    def __call__(self, graph: Graph) -> Graph:
        return select(graph, find_chip(self.soc)).graph


@dataclass(frozen=True, eq=False)
class Plan:
    """How one node is run: choices for it, or for what it is taken apart into."""

    choices: Mapping[Node, Choice]
    expansion: Expansion | None = None


def plan_of(node: Node, chip: Chip, depth: int = 0) -> Plan:
    """The choice for a node whose inputs are final; where it is taken apart, the choices of its parts."""
    if isinstance(node.op, Param | Constant):
        return Plan({})
    if reason := view(node):
        return Plan({node: Choice(node, "", "", "", VIEW, DOCUMENTED, "shapes of the graph", reason)})
    on_core = _on_core(node, chip)
    if on_core is not None:
        return Plan({node: on_core})
    apart = _apart(node, chip, depth)
    if apart is not None and _on_cores(apart):
        return apart
    elsewhere = _elsewhere(node, chip, apart)
    # what the AI CPU has whole is its own; parts are better than nothing, if each of them runs somewhere
    if apart is not None and elsewhere.how in (NONE, ON_HOST) and not any(c.how == NONE for c in apart.choices.values()):
        return apart
    return Plan({node: elsewhere})


def _on_cores(plan: Plan) -> bool:
    return all(c.how in (ACLNN, GE, VIEW) for c in plan.choices.values())


def cost_of(plan: Plan, chip: Chip) -> float:
    """Predicted microseconds of a plan's kernels, one after another."""
    return cost_us((task_of(c.node, c.kind, c.unit, c.attrs) for c in plan.choices.values() if c.kind), chip)


def _apart(node: Node, chip: Chip, depth: int) -> Plan | None:
    """The node in other operators, each with its choice; None where it cannot be taken apart."""
    if depth >= MAX_DEPTH:
        return None
    made = expand(node, chip)
    if made is None:
        return None
    results = _simplified(node, made.results)
    choices: dict[Node, Choice] = {}
    new: dict[Node, Node] = {i: i for i in node.inputs}
    several: dict[Node, tuple[Node, ...]] = {}
    for part in topological(results, node.inputs):
        if part in new:
            continue
        if isinstance(part.op, Get) and part.inputs[0] in several:
            new[part] = several[part.inputs[0]][part.op.index]
            continue
        found = same_node(part, tuple(new[i] for i in part.inputs))
        plan = plan_of(found, chip, depth + 1)
        choices |= plan.choices
        new[part] = found
        if plan.expansion is not None:
            several[part] = plan.expansion.results
            new[part] = plan.expansion.results[0]
    finals = tuple(new[r] for r in results)
    live = set(topological(finals, node.inputs))
    return Plan({n: c for n, c in choices.items() if n in live}, Expansion(finals, made.why))


def _simplified(node: Node, results: tuple[Node, ...]) -> tuple[Node, ...]:
    """Parts without what a compiler removes at once: constants that fold, equals, casts in a row."""
    free = tuple(dict.fromkeys(i for i in node.inputs if i.array is None))
    inside = {i: param(f"x{k}", i.type) for k, i in enumerate(free)}
    part = rebuild(Graph("part", free, results), lambda n, inputs: Node(n.op, inputs, n.type, n.loc))
    new: dict[Node, Node] = dict(inside)
    for n in topological(part.outputs, free):
        if n not in new:
            new[n] = Node(n.op, tuple(new[i] for i in n.inputs), n.type, n.loc)
    graph = Graph("part", tuple(inside.values()), tuple(new[o] for o in part.outputs))
    for step in (Canonicalize(), Fold(), Merge()):
        graph = step(graph)
    back: dict[Node, Node] = {p: i for i, p in inside.items()}
    for n in graph.nodes:
        if n not in back:
            back[n] = Node(n.op, tuple(back[i] for i in n.inputs), n.type, n.loc)
    return tuple(back[o] for o in graph.outputs)


# ---------------------------------------------------------------------------------------------------------------------------- views
def view(node: Node) -> str:
    """Why a node launches nothing, empty where it does."""
    match node.op.name:
        case "get" | "identity" | "stop_gradient" | "after" | "opaque":
            return "passes its input on"
        case "reshape" | "bit_cast":
            return "the same bytes under another type"
    if isinstance(node.type, TensorType) and size(node) == 0:
        return "has no elements"
    match node.op.name:
        case "transpose":
            kept = [p for p in node.op.perm if node.inputs[0].shape[p] != 1]  # type: ignore[attr-defined]
            return "moves only dimensions of 1" if kept == sorted(kept) else ""
        case "broadcast" | "slice" | "pad" | "concat":
            same = len(node.inputs) == 1 and size(node) == size(node.inputs[0])
            steps = getattr(node.op, "steps", ())
            return "takes the whole of its input" if same and all(s > 0 for s in steps or ()) else ""
        case "cast":
            return "has that element type already" if node.inputs[0].type == node.type else ""
    return ""


# --------------------------------------------------------------------------------------------------------------------------- kernels
def _deciding(node: Node, kernel: Kernel) -> str:
    return str((node.type if kernel.decides < 0 else node.inputs[kernel.decides].type).dtype)


def _fits(node: Node, kernel: Kernel, chip: Chip) -> bool:
    """Whether the AI Core kernel takes the node's element types."""
    if node.op.name == "cast":
        pairs, _ = library.find_casts(library.column(chip.family))
        return (str(node.inputs[0].dtype), str(node.dtype)) in pairs
    return _deciding(node, kernel) in elements(kernel, chip)


def _on_core(node: Node, chip: Chip) -> Choice | None:
    for k in kernels(node, chip):
        if k.unit not in (AI_CPU, DVPP, HOST) and _fits(node, k, chip):
            how, evidence, source = _evidence(k, chip, _deciding(node, k))
            return Choice(node, k.unit, k.kind, _aclnn(k), how, evidence, source, k.why if "DSA" in k.why else "", (), attrs_of(node))
    return None


def _aclnn(kernel: Kernel) -> str:
    return "" if kernel.aclnn == "-" else kernel.aclnn


def _evidence(kernel: Kernel, chip: Chip, dtype: str) -> tuple[str, str, str]:
    """How it is called, and whether that it runs on this chip is documented or inferred, and from what."""
    family = library.column(chip.family)
    function = library.find_aclnn(_aclnn(kernel))
    kind = library.find_ge(kernel.kind)
    how = ACLNN if function is not None and family in function.on else GE
    known = library.find_core(kernel.kind, family)
    if known is not None and (kernel.unit == AI_CPU or dtype in known.dtypes):
        return how, DOCUMENTED, known.source
    if kernel.kind == "Cast" and (source := library.find_casts(family)[1]):
        return how, DOCUMENTED, source
    if function is not None and how == ACLNN:
        return how, DOCUMENTED if function.takes(dtype) else INFERRED, function.source
    if kind is not None and family in kind.on:
        return how, DOCUMENTED, kind.source
    if (primitive := library.kinds_of_mindspore().get(kernel.kind)) is not None:
        return GE, INFERRED, f"MindSpore maps {primitive} to {kernel.kind}; its kernel is in CANN's binary package"
    if kind is not None:
        return GE, INFERRED, f"{kind.source}; its kernel is in CANN's binary package"
    return GE, INFERRED, f"name {kernel.kind} as profiles and graphs of CANN print it"


def _elsewhere(node: Node, chip: Chip, apart: Plan | None) -> Choice:
    """The AI CPU, the media engine, the host, or nothing.   apart: the node taken apart, for what that would cost."""
    parts = None
    if apart is not None and _on_cores(apart):
        parts = ", ".join(dict.fromkeys(c.kind for c in apart.choices.values() if c.kind)), cost_of(apart, chip)
    found = kernels(node, chip)
    attrs = attrs_of(node)
    for k in found:
        dtype = _deciding(node, k) if (node.inputs or k.decides < 0) else "f32"
        _, evidence, source = _evidence(k, chip, dtype)
        if k.unit == DVPP:
            return Choice(node, DVPP, k.kind, "", MEDIA, evidence, source, k.why, (), attrs)
        if k.unit == HOST:
            return Choice(node, HOST, k.kind, "", ON_HOST, INFERRED, source, k.why, alternatives(node, chip, k, parts), attrs)
        if k.unit == AI_CPU or k.cpu:
            if not _cpu_takes(node, chip):
                continue
            why = k.why or _refusal(node, k, chip)
            return Choice(node, AI_CPU, k.kind, _aclnn(k), CPU, evidence, source, why, alternatives(node, chip, k, parts), attrs)
    if not found:
        what = f"CANN has no operator for {node.op} on {chip.name}"
    else:
        what = _refusal(node, found[0], chip)
    if not found and node.op.name in HOST_FALLBACK:
        return Choice(node, HOST, "", "", ON_HOST, INFERRED, "no row in the tables", what, alternatives(node, chip, None, parts), attrs)
    return Choice(
        node, "", "", "", NONE, INFERRED, "no row in the tables", what, alternatives(node, chip, found[0] if found else None, parts), attrs
    )


def _refusal(node: Node, kernel: Kernel, chip: Chip) -> str:
    """Why the AI Core does not take it."""
    if node.op.name == "cast":
        return f"the AI Core of {chip.name} casts no {node.inputs[0].dtype} to {node.dtype}"
    taken = ", ".join(sorted(elements(kernel, chip)))
    if not taken:
        return f"CANN has no {kernel.kind} for the AI Core of {chip.name}"
    return f"{kernel.kind} on the AI Core of {chip.name} takes {taken}, got {_deciding(node, kernel)}"


HOST_FALLBACK = frozenset({"ngrams", "image_decode"})


def _cpu_takes(node: Node, chip: Chip) -> bool:
    """Whether kernels of the AI CPU hold all element types of the node."""
    types = [i.type for i in node.inputs] + [node.type]
    flat = [t for x in types for t in (x if isinstance(x, tuple) else (x,))]
    return all(
        t.dtype.kind != "s" and (t.dtype.bits >= 16 or t.dtype.name in ("i8", "u8", "bool")) and (t.dtype.name != "bf16" or is_new(chip))
        for t in flat
    )


def attrs_of(node: Node) -> Mapping[str, Any]:
    """Attributes of the operator that are plain values."""
    return {k: v for k, v in node.op.attributes().items() if isinstance(v, int | float | str | bool | tuple)}


def _warning(choice: Choice, chip: Chip) -> str:
    where = f" ({choice.node.loc})" if str(choice.node.loc) else ""
    what = "runs on the HOST" if choice.how == ON_HOST else "runs NOWHERE"
    return f"{choice.node.op.name}{where} {what} with {chip.name}: {choice.why}"


def _unmapped(choice: Choice, chip: Chip) -> CompileError:
    ways = "; ".join(f"{a.what}: {a.how}" for a in choice.alternatives)
    return CompileError(
        f"select: {choice.node.op.name} must be an operator that {chip.name} runs, got {choice.node.op} on "
        f"({', '.join(str(i.type) for i in choice.node.inputs)}): {choice.why}",
        loc=choice.node.loc, hint=ways, code="npu-unmapped",
    )  # fmt: skip
