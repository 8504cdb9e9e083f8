"""What a chip's arithmetic does to a model: which node overflows, which loses accuracy, and which to keep in fp32.

In: a graph with the casts of a precision mode (passes/precision.py), inputs, and a chip.  Out: `Findings`, plain data for reports.
Two runs side by side, node by node: one as the model means it, every float in fp32, and one as the chip computes it.  A node is charged
with the error that arises in it (its exact inputs, its own rounding); what it inherits and amplifies is listed apart.
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from jumar.base import Array, DeviceError, DType, IRError, Loc, dtype_of
from jumar.compiler.device_values import Written, device_value, exact_value, is_narrow, leaves_range, narrowed, types_of, widened
from jumar.compiler.passes.precision import Precision, set_precision
from jumar.device.npu import Arithmetic, Chip, arithmetic, limits
from jumar.ir import Constant, Get, Graph, Node, Param
from jumar.operators import Cast, Conv, Exp, LayerNorm, MatMul, ReduceMean, ReduceSum, RmsNorm, Softmax, Square

GROWS = 4.0  # an error that a node makes so many times as large as its inputs' is worth a trial
ALLOWED = 0.02  # of an output's length: a model in fp16 is well below
SHARE = 0.01  # of the elements: below, underflow is not worth a word


@dataclass(frozen=True)
class NodeNumerics:
    """One node whose result is of floats.   number: its place in the graph; name: the model's name for it; place: file, line.

    largest: the largest finite magnitude, exactly; limit: the largest that the type holds; filled: one over the other.
    error, max_error: against fp32 at this point of the graph, all nodes before included: relative (over all elements, in L2) and absolute.
    born: the relative error that arises here, on exact inputs.  grown: error over the largest error among the inputs.
    overflows: elements that leave the range here, of inputs that were within; broken: elements that are not finite here, but exactly are.
    zeros, subnormals: elements that underflow here, to 0, or to fewer bits.  unbounded: not finite in fp32 either.
    step: which operator inside leaves the range first, where several make the kernel; mask: only huge negative constants do.
    """

    number: int
    op: str
    name: str
    place: str
    dtype: str
    size: int
    largest: float
    limit: float
    filled: float
    error: float
    max_error: float
    born: float
    grown: float
    overflows: int
    broken: int
    zeros: int
    subnormals: int
    unbounded: int
    step: str = ""
    mask: bool = False

    @property
    def label(self) -> str:
        if not self.name:
            return f"{self.op} ({self.place or f'node {self.number}'})"
        return self.name if self.op.replace("_", "") in self.name.replace("_", "").lower() else f"{self.op} {self.name}"


@dataclass(frozen=True)
class OutputNumerics:
    """One output of the model.   agreement: part of the rows whose largest element stays where it was, of floats; wrong: elements that differ, of integers."""

    name: str
    type: str
    error: float
    max_error: float
    broken: int
    agreement: float | None
    wrong: int


@dataclass(frozen=True)
class Candidate:
    """Nodes to keep in fp32.   before, after: the error of the worst output without and with them (and the candidates before this one).

    keep: their names in the model, for `--precision MODE,keep=NAME` and ATC's --keep_dtype.
    """

    nodes: tuple[str, ...]
    keep: tuple[str, ...]
    reason: str
    before: float
    after: float | None


@dataclass(frozen=True)
class Findings:
    """What the chip's arithmetic does to a graph.   mode: in words; nodes: in the order of the graph; took_s: all of it."""

    chip: str
    mode: str
    nodes: tuple[NodeNumerics, ...]
    outputs: tuple[OutputNumerics, ...]
    candidates: tuple[Candidate, ...]
    advice: tuple[str, ...]
    took_s: float

    @property
    def first_overflow(self) -> NodeNumerics | None:
        """The first node that leaves the range; one that only clips a mask comes last."""
        found = sorted((n for n in self.nodes if n.overflows), key=lambda n: (n.mask, n.number))
        return found[0] if found else None

    @property
    def worst(self) -> tuple[NodeNumerics, ...]:
        """Nodes by what they add to the error, most first: what arises in them, and what they make larger."""
        return tuple(sorted((n for n in self.nodes if n.overflows or _blame(n)[1]), key=_blame, reverse=True))

    @property
    def within(self) -> bool:
        """Whether nothing overflows but masks, and no output is further off than ALLOWED."""
        first = self.first_overflow
        return (first is None or first.mask) and worst_error(self.outputs) <= ALLOWED

    @property
    def summary(self) -> str:
        """One line: what overflows first, and how far off the outputs are."""
        first = self.first_overflow
        if first is None or first.mask:
            said = "nothing overflows"
        else:
            how = f"in its {first.step}" if first.step else f"with {first.largest:.3g}"
            said = f"{first.label} overflows first, {how}: {first.dtype} ends at {first.limit:g}"
        worst = worst_error(self.outputs)
        return f"{said}; outputs are {'not finite' if math.isinf(worst) else f'off by {worst:.2%}'}"

    def document(self) -> dict[str, Any]:
        """For JSON, which has no infinities: they are texts."""
        found: dict[str, Any] = _plain(asdict(self))
        first = self.first_overflow
        return {
            **found,
            "within": self.within,
            "summary": self.summary,
            "first_overflow": None if first is None else first.number,
            "worst": [n.number for n in self.worst[:10]],
        }


def device_numerics(
    graph: Graph,
    inputs: Sequence[Array],
    chip: Chip,
    *,
    infnan: bool | None = None,
    hf32: bool | None = None,
    steps: bool | None = None,
    original: Graph | None = None,
    trials: int = 3,
) -> Findings:
    """The findings of one run of `graph` on `inputs`, in fp32 and as `chip` computes it.

    infnan, hf32, steps: see `arithmetic`; None is what the chip does by default.  trials: how many candidates are tried by a run each.
    original: the graph before its constants were cast, whose values count as exact.
    """
    started = time.perf_counter()
    math_ = arithmetic(chip, infnan=infnan, hf32=hf32, steps=steps)
    _check(graph, chip, inputs)
    with np.errstate(all="ignore"):  # infinities are what is looked for
        run = _Run(graph, math_, _originals(graph, original) if original is not None else {})
        run.go(inputs)
        outputs = tuple(
            _output(n, name, e, d)
            for n, name, e, d in zip(graph.outputs, _names(graph), run.exact_outputs, run.device_outputs, strict=True)
        )
        nodes = tuple(run.found.values())
        candidates = _candidates(run, inputs, worst_error(outputs), trials)
        advice = tuple(_advice(run, nodes, chip, math_, candidates))
    return Findings(chip.name, str(math_), nodes, outputs, candidates, advice, time.perf_counter() - started)


def run_precision(graph: Graph, inputs: Sequence[Array], chip: Chip, precision: Precision, *, trials: int = 3) -> Findings:
    """The findings of `graph`, in the model's own types, when `chip` runs it in a precision mode."""
    narrowed_, _ = set_precision(graph, chip, precision)
    return device_numerics(narrowed_, inputs, chip, infnan=precision.infnan, hf32=precision.hf32, original=graph, trials=trials)


def worst_error(outputs: Sequence[OutputNumerics]) -> float:
    """The error of the output that is furthest off; infinite where one is not finite."""
    return max((math.inf if o.broken else o.error for o in outputs), default=0.0)


def _check(graph: Graph, chip: Chip, inputs: Sequence[Array]) -> None:
    if len(inputs) != len(graph.params):
        raise IRError(f"{graph.name}: there must be {len(graph.params)} inputs, got {len(inputs)}")
    for p, array in zip(graph.params, inputs, strict=True):
        if np.shape(array) != p.type.shape:
            raise IRError(f"{graph.name}: input {p.op} must be {p.type}, got {list(np.shape(array))}", loc=p.loc)
    for node in graph.nodes:
        for type_ in types_of(node):
            if is_narrow(type_.dtype) and type_.dtype.name not in chip.dtypes:
                what = f"{node.op.name}: element type must be one that {chip.name} has, got {type_.dtype}"
                raise DeviceError(what, loc=node.loc, hint="f16 and f32 are on every chip, bf16 from Atlas A2 on", code="soc-mode")


def _originals(graph: Graph, original: Graph) -> dict[Node, Array]:
    """For each constant that a precision mode has cast, the value that it had: both graphs hold the same operators in one order, but for casts."""
    before, after = ([n for n in g.nodes if not isinstance(n.op, Cast | Constant | Param)] for g in (original, graph))
    if len(before) != len(after) or any(a.op != b.op for a, b in zip(before, after, strict=True)):
        return {}
    found: dict[Node, Array] = {}
    for old, new in zip(before, after, strict=True):
        for a, b in zip(old.inputs, new.inputs, strict=True):
            was, now = _through_casts(a), _through_casts(b)
            if now.array is not None and was.array is not None and now.dtype != was.dtype and was.dtype.is_float:
                found[now] = was.array
    return found


def _through_casts(node: Node) -> Node:
    while isinstance(node.op, Cast):
        (node,) = node.inputs
    return node


class _Run:
    """Both runs, side by side; what is known of each node is kept, its values only until their last reader."""

    def __init__(self, graph: Graph, arithmetic_: Arithmetic, originals: Mapping[Node, Array]) -> None:
        self.graph = graph
        self.originals = originals
        self.math = arithmetic_
        self.found: dict[Node, NodeNumerics] = {}
        self.errors: dict[Node, float] = {}
        self.largest: dict[Node, float] = {}
        self.exact_outputs: list[Array] = []
        self.device_outputs: list[Array] = []

    def go(self, inputs: Sequence[Array]) -> None:
        exact: dict[Node, tuple[Any, ...]] = {}
        device: dict[Node, tuple[Any, ...]] = {}
        last = {i: n for n in self.graph.nodes for i in n.inputs}
        keep = set(self.graph.outputs)
        given = dict(zip(self.graph.params, inputs, strict=True))
        for number, node in enumerate(self.graph.nodes):
            if node in given:
                exact[node], written = _fed(node, given[node], self.math)
            elif node in self.originals:
                exact[node] = (self.originals[node],)
                written = Written(device_value(node, [], self.math).values, exact[node])
                self._note(number, node, exact[node], [], [], written, written)
            else:
                exact_in, device_in = [_read(exact, i) for i in node.inputs], [_read(device, i) for i in node.inputs]
                exact[node] = (
                    tuple(exact_in[0][node.op.index : node.op.index + 1]) if isinstance(node.op, Get) else exact_value(node, exact_in)
                )
                written = device_value(node, device_in, self.math)
                if not isinstance(node.op, Get | Constant):
                    local = self._local(node, exact_in, exact[node], written)
                    self._note(number, node, exact[node], device_in, exact_in, written, local)
            device[node] = written.values
            if node not in self.found and isinstance(node.op, Get | Param | Constant):
                self._inherit(node, exact[node], written.values)
            for i in set(node.inputs):
                if last[i] is node and i not in keep:
                    del exact[i], device[i]
        self.exact_outputs = [exact[o][0] for o in self.graph.outputs]
        self.device_outputs = [device[o][0] for o in self.graph.outputs]

    def _inherit(self, node: Node, exact: tuple[Any, ...], device: tuple[Any, ...]) -> None:
        """Errors of what is no kernel: inputs, constants, one of several results."""
        if _is_float(exact[0]):
            self.errors[node] = _error(exact[0], device[0])[0]
            self.largest[node] = _largest(exact[0])

    def _local(self, node: Node, exact_in: list[Any], exact: tuple[Any, ...], written: Written) -> Written:
        """What the chip writes on exact inputs.   Where a kernel rounds once, that is the exact result, rounded."""
        types = types_of(node)
        if all(is_narrow(t.dtype) for t in types) and not written.stepped and all(map(_is_float, exact)):
            return Written(tuple(self.math.rounded(e, t.dtype) for e, t in zip(exact, types, strict=True)), exact)
        return device_value(node, exact_in, self.math)

    def _note(
        self, number: int, node: Node, exact: tuple[Any, ...], device_in: list[Any], exact_in: list[Any], written: Written, local: Written
    ) -> None:
        floats = [i for i, t in enumerate(types_of(node)) if t.dtype.is_float and exact[i].size and _is_float(exact[i])]
        if not floats:
            return
        dtype = types_of(node)[floats[0]].dtype
        pairs = [(exact[i], written.values[i]) for i in floats]
        error, max_error = (max(v) for v in zip(*(_error(e, d) for e, d in pairs), strict=True))
        born = max(_error(exact[i], local.values[i])[0] for i in floats)
        clean = all(_finite(x) for x in device_in)
        over = [leaves_range(written.raw[i], dtype) & np.isfinite(exact[i]) for i in floats] if is_narrow(dtype) and clean else []
        overflows = sum(int(o.sum()) for o in over)
        under = [_underflow(exact[i], dtype) for i in floats] if is_narrow(dtype) and _computes(node) else []
        reached = max((self.errors.get(i, 0.0) for i in node.inputs), default=0.0)
        step = written.step or local.step
        self.errors[node] = error
        self.largest[node] = max(_largest(exact[i]) for i in floats)
        self.found[node] = NodeNumerics(
            number=number,
            op=node.op.name,
            name=node.loc.name,
            place=_place(node.loc),
            dtype=str(dtype),
            size=sum(exact[i].size for i in floats),
            largest=self.largest[node],
            limit=limits(dtype).largest,
            filled=self.largest[node] / limits(dtype).largest if is_narrow(dtype) else 0.0,
            error=error,
            max_error=max_error,
            born=born,
            grown=error / max(reached, limits(dtype).step / 8),
            overflows=overflows + (0 if overflows or not step else 1),
            broken=sum(int((np.isfinite(e) & ~np.isfinite(widened(d))).sum()) for e, d in pairs),
            zeros=sum(z for z, _ in under),
            subnormals=sum(s for _, s in under),
            unbounded=sum(int((~np.isfinite(exact[i])).sum()) for i in floats) if all(map(_finite, exact_in)) else 0,
            step=step,
            mask=overflows > 0
            and all(bool((exact[i][o] < -1e4).all()) for i, o in zip(floats, over, strict=True))
            and _from_constants(node),
        )

    def again(self, inputs: Sequence[Array], kept: frozenset[Node]) -> list[Array]:
        """The outputs as the chip computes them when the kernels of `kept` work in fp32 and what lies between them stays fp32."""
        values: dict[Node, tuple[Any, ...]] = {}
        last = {i: n for n in self.graph.nodes for i in n.inputs}
        keep = set(self.graph.outputs)
        given = dict(zip(self.graph.params, inputs, strict=True))
        for node in self.graph.nodes:
            if node in given:
                values[node] = _fed(node, given[node], self.math)[1].values
                continue
            up = isinstance(node.op, Cast) and not is_narrow(node.op.dtype)  # with fp32 before it there is no cast
            if node in kept:  # it reads constants as they were
                arrays = [self.originals[i] if i in self.originals else _read(values, i) for i in node.inputs]
            else:
                arrays = [_read(values, i) if up else narrowed(_read(values, i), i, self.math) for i in node.inputs]
            values[node] = device_value(node, arrays, self.math, keep=node in kept).values
            for i in set(node.inputs):
                if last[i] is node and i not in keep:
                    del values[i]
        return [narrowed(values[o][0], o, self.math) if o in kept else values[o][0] for o in self.graph.outputs]


def _fed(node: Node, array: Any, arithmetic_: Arithmetic) -> tuple[tuple[Any, ...], Written]:
    """An input as the model means it, and as it is on the chip."""
    dtype = node.type.dtype
    if not dtype.is_float:
        value = np.asarray(array).astype(dtype.numpy, copy=False)
        return (value,), Written((value,), (value,))
    wide = np.asarray(array).astype(np.float64 if dtype.bits == 64 else np.float32)
    return (wide,), Written((arithmetic_.rounded(wide, dtype),), (wide,))


def _read(values: dict[Node, tuple[Any, ...]], node: Node) -> Any:
    """What a reader of a node gets: its result, or all of them, for `get`."""
    return values[node] if isinstance(node.type, tuple) else values[node][0]


def _is_float(x: Any) -> bool:
    return isinstance(x, np.ndarray) and dtype_of(x.dtype).is_float


def _finite(x: Any) -> bool:
    return all(map(_finite, x)) if isinstance(x, tuple) else not _is_float(x) or bool(np.isfinite(widened(x)).all())


def _largest(x: Array) -> float:
    size = np.abs(x[np.isfinite(x)])
    return float(size.max()) if size.size else 0.0


def _error(exact: Array, device: Any) -> tuple[float, float]:
    """The relative error in L2 and the largest absolute one, over what is finite in both."""
    wide = widened(np.asarray(device))
    difference = np.asarray(wide - exact)
    e = exact
    if not np.isfinite(difference).all():  # infinity less infinity is no number either
        both = np.isfinite(exact) & np.isfinite(wide)
        difference, e = difference[both], exact[both]
    if not difference.size:
        return 0.0, 0.0
    worst = max(float(difference.max()), -float(difference.min()))
    if not worst:
        return 0.0, 0.0
    size = _norm(e)
    return (_norm(difference) / size if size else math.inf), worst


def _norm(x: Array) -> float:
    """The root of the sum of squares."""
    flat = x.ravel()
    if flat.dtype == np.float32 and not 1e-15 < float(np.abs(flat).max()) < 1e15:  # squares of these leave fp32
        flat = flat.astype(np.float64)
    return math.sqrt(float(np.dot(flat, flat)))


def _underflow(exact: Array, dtype: DType) -> tuple[int, int]:
    """Elements that become 0, and elements that keep fewer bits."""
    size = np.abs(exact)
    there = limits(dtype)
    zeros = int(((size > 0) & (size <= there.smallest / 2)).sum())
    return zeros, int(((size > 0) & (size < there.normal)).sum()) - zeros


def _computes(node: Node) -> bool:
    return node.op.family not in ("movement", "source")


def _from_constants(node: Node) -> bool:
    """Whether it, or one of its inputs, is known before the run: a mask's fill, not an activation."""
    return isinstance(node.op, Constant) or any(
        isinstance(i.op, Constant) or (isinstance(i.op, Cast) and isinstance(i.inputs[0].op, Constant)) for i in node.inputs
    )


def _place(loc: Loc) -> str:
    return f"{loc.file}:{loc.line}" if loc.line else loc.file


def _names(graph: Graph) -> tuple[str, ...]:
    return graph.output_names or tuple(f"output {i}" for i in range(len(graph.outputs)))


def _output(node: Node, name: str, exact: Array, device: Array) -> OutputNumerics:
    if not _is_float(exact):
        wrong = int((np.asarray(exact) != np.asarray(device)).sum())
        return OutputNumerics(name, str(node.type), 0.0, 0.0, 0, None, wrong)
    wide = widened(np.asarray(device))
    error, worst = _error(exact, wide)
    broken = int((np.isfinite(exact) & ~np.isfinite(wide)).sum())
    agreement = None
    if exact.ndim and exact.shape[-1] > 1 and exact.size:
        agreement = float(((np.argmax(exact, -1) == np.argmax(wide, -1)) & ~np.isnan(wide).any(-1)).mean())
    return OutputNumerics(name, str(node.type), error, worst, broken, agreement, 0)


def _blame(n: NodeNumerics) -> tuple[bool, float]:
    """What a node adds: an overflow first, then the larger of what arises in it and what it makes of its inputs' errors."""
    inherited = n.error / n.grown if n.grown > 1 else n.error
    return (n.overflows > 0 and not n.mask, max(n.born, n.error - inherited))


def _candidates(run: _Run, inputs: Sequence[Array], before: float, trials: int) -> tuple[Candidate, ...]:
    """Groups of nodes to keep in fp32, the ones that overflow first, then those that make errors grow; the first few are tried, one on top of the other."""
    groups: list[tuple[frozenset[Node], str]] = []
    taken: set[Node] = set()
    narrow = {node: n for node, n in run.found.items() if is_narrow(types_of(node)[0].dtype)}
    for node, n in narrow.items():
        if n.overflows and not n.mask and node not in taken:
            group = _until_it_fits(run, node)
            taken |= group
            limit = limits(types_of(node)[0].dtype).largest
            groups.append((group, f"{n.label} reaches {n.largest:.3g}, {n.dtype} ends at {limit:g}"))
    growing = sorted(
        (kv for kv in narrow.items() if kv[1].grown > GROWS and _computes(kv[0]) and kv[0] not in taken), key=lambda kv: -_blame(kv[1])[1]
    )
    for node, n in growing:
        if node not in taken and n.error > limits(types_of(node)[0].dtype).step:
            group = _with_sources(run, node)
            taken |= group
            groups.append((group, f"{n.label} makes an error {n.grown:.0f} times as large"))
    found: list[Candidate] = []
    kept: frozenset[Node] = frozenset()
    for i, (group, reason) in enumerate(groups[:10]):
        after = None
        kept |= group
        if i < trials:
            again = run.again(inputs, kept)
            outputs = [_output(o, "", e, d) for o, e, d in zip(run.graph.outputs, run.exact_outputs, again, strict=True)]
            after = worst_error(outputs)
        shown = [narrow[g].label for g in run.graph.nodes if g in group and g in narrow and not isinstance(g.op, Cast | Constant)]
        shown = shown or [narrow[g].label for g in run.graph.nodes if g in group and g in narrow]
        names = dict.fromkeys(g.loc.name for g in run.graph.nodes if g in group and g.loc.name and not isinstance(g.op, Cast | Constant))
        found.append(Candidate(tuple(shown), tuple(names), reason, before, after))
        before = before if after is None else after
    return tuple(found)


def _until_it_fits(run: _Run, start: Node) -> frozenset[Node]:
    """The node and those after it, to where values are back in range; a narrowing cast before them falls away."""
    found, todo = {start}, [start]
    while todo:
        node = todo.pop()
        dtype = types_of(node)[0].dtype
        if not is_narrow(dtype) or run.largest.get(node, 0.0) <= limits(dtype).largest:
            continue
        for user in run.graph.users[node]:
            if user not in found:
                found.add(user)
                todo.append(user)
    return _with_casts(found)


def _with_sources(run: _Run, node: Node) -> frozenset[Node]:
    """The node and the kernels whose rounded results it reads."""
    return _with_casts({node, *(i for i in node.inputs if i in run.found and _computes(i))})


def _with_casts(nodes: set[Node]) -> frozenset[Node]:
    casts = {i for n in nodes for i in n.inputs if isinstance(i.op, Cast) and is_narrow(i.op.dtype)}
    return frozenset(nodes | casts)


_REMEDIES: tuple[tuple[tuple[type[Any], ...], str], ...] = (
    ((Exp,), "subtract the row's largest value before exp, as softmax does, or keep exp, its sum and the division in fp32"),
    ((MatMul, Conv), "scale an input before the product (1/sqrt(d) before, not after, in attention), or let it write fp32"),
    (
        (Square, ReduceSum, ReduceMean),
        "keep the sum of squares in fp32, or use the normalization as one operator: its kernel widens by itself",
    ),
    ((LayerNorm, RmsNorm, Softmax), "its kernel rounds after each step here: let it work in fp32 (high_precision)"),
)


def _advice(run: _Run, nodes: Sequence[NodeNumerics], chip: Chip, arithmetic_: Arithmetic, candidates: Sequence[Candidate]) -> list[str]:
    """What to do, most pressing first."""
    lines: list[str] = []
    by_number = {n.number: node for node, n in run.found.items()}
    over = sorted((n for n in nodes if n.overflows), key=lambda n: (n.mask, n.number))
    for n in (x for x in over[:3] if not x.mask):
        op = by_number[n.number].op
        remedy = next((text for kinds, text in _REMEDIES if isinstance(op, kinds)), "keep it in fp32")
        silent = f"; {chip.name} saturates, so no inf or nan shows it" if arithmetic_.saturates else ""
        wider = "" if n.dtype == "bf16" or "bf16" not in chip.dtypes else "; bf16 has the range of fp32"
        lines.append(f"{n.label}: {remedy}{wider}{silent}")
    if any(n.mask for n in over):
        n = next(n for n in over if n.mask)
        becomes = f"{-limits(_dtype(by_number[n.number])).largest:g}" if arithmetic_.saturates else "-inf"
        lines.append(
            f"{n.label}: a mask's fill becomes {becomes}: a row that is masked wholly, or 0 times the fill, gives nan; fill with -1e4"
        )
    for n in (x for x in nodes if x.unbounded):
        lines.append(f"{n.label}: {n.unbounded} elements are not finite in fp32 either: this is the model, not the chip")
        break
    lines += [
        f"keep in fp32: {', '.join(c.nodes)} (outputs {_shown(c.before)} -> {_shown(c.after)})"
        for c in candidates
        if c.after is not None and _helps(c)
    ]
    small = max((n for n in nodes if n.zeros > SHARE * n.size), key=lambda n: n.zeros / n.size, default=None)
    if small is not None:
        how = "a loss scale lifts gradients over that" if run.graph.updates else "scale it up, or keep it in fp32, if it matters"
        lines.append(f"{small.label}: {small.zeros / small.size:.0%} of its elements become 0 in {small.dtype}; {how}")
    return lines


def _dtype(node: Node) -> DType:
    return next(t.dtype for t in types_of(node) if t.dtype.is_float)


def _helps(candidate: Candidate) -> bool:
    return candidate.after is not None and candidate.after < 0.7 * candidate.before


def _shown(error: float | None) -> str:
    return "not tried" if error is None else "not finite" if math.isinf(error) else f"off by {error:.2%}"


def _plain(value: Any) -> Any:
    """Lists, dictionaries, texts and finite numbers."""
    match value:
        case dict():
            return {k: _plain(v) for k, v in value.items()}
        case list() | tuple():
            return [_plain(v) for v in value]
        case float() if not math.isfinite(value):
            return str(value)
    return value
