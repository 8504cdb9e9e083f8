"""What to do where a chip's arithmetic is too narrow: which nodes to keep in fp32, tried, and advice in words.

In: two runs side by side (device_runs.py).  Out: candidates and lines for `Findings`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from jumar.base import Array, DType
from jumar.compiler.passes.precision import node_name
from jumar.compiler.twin.findings import Candidate, NodeNumerics, blame, worst_error
from jumar.compiler.twin.runs import SideBySide, computes, output_numerics
from jumar.compiler.twin.values import is_narrow, types_of
from jumar.device.npu import Arithmetic, Chip, limits
from jumar.ir import Constant, Node
from jumar.operators import Cast, Conv, Exp, LayerNorm, MatMul, Mul, ReduceMean, ReduceSum, RmsNorm, Softmax, Square

GROWS = 4.0  # an error that a node makes so many times as large as its inputs' is worth a trial
MOST = 10  # candidates
SHARE = 0.01  # of the elements: below, underflow is not worth a word


def candidates(run: SideBySide, inputs: Sequence[Array], before: float, trials: int) -> tuple[Candidate, ...]:
    """Groups of nodes to keep in fp32: all that overflow, then those that make errors grow; the first few are tried, on top of those that helped."""
    narrow = {node: n for node, n in run.found.items() if is_narrow(types_of(node)[0].dtype)}
    groups: list[tuple[frozenset[Node], str]] = []
    over = [node for node, n in narrow.items() if n.overflows and (not n.mask or math.isinf(before))]
    if over:
        first = narrow[over[0]]
        more = f", and {len(over) - 1} more" if len(over) > 1 else ""
        groups.append((frozenset().union(*(_until_it_fits(run, node) for node in over)), f"{first.label} overflows{more}"))
    taken = set(groups[0][0]) if groups else set()
    growing = [(node, n) for node, n in narrow.items() if n.grown > GROWS and n.error > limits(_dtype(node)).step and computes(node)]
    for node, n in sorted(growing, key=lambda kv: -blame(kv[1])[1]):
        if node not in taken:
            group = _with_sources(run, node)
            taken |= group
            groups.append((group, f"{n.label} makes an error {n.grown:.0f} times as large"))
    found: list[Candidate] = []
    kept: frozenset[Node] = frozenset()
    for i, (group, reason) in enumerate(groups[:MOST]):
        candidate = _candidate(run, group, reason, before, run.again(inputs, kept | group) if i < trials else None)
        found.append(candidate)
        if candidate.helps and candidate.after is not None:
            kept, before = kept | group, candidate.after
    return tuple(found)


def _candidate(run: SideBySide, group: frozenset[Node], reason: str, before: float, again: Sequence[Array] | None) -> Candidate:
    """again: the outputs with the group in fp32, where it was tried"""
    after = None
    if again is not None:
        after = worst_error([output_numerics(o, "", e, d) for o, e, d in zip(run.graph.outputs, run.exact_outputs, again, strict=True)])
    known = [n for n in run.graph.nodes if n in group and n in run.found]
    kernels = [n for n in known if not isinstance(n.op, Cast | Constant)] or known
    names = dict.fromkeys(node_name(n) for n in kernels if n.loc.name and not isinstance(n.op, Cast | Constant))
    return Candidate(tuple(run.found[n].label for n in kernels), tuple(names), reason, before, after)


def _until_it_fits(run: SideBySide, start: Node) -> frozenset[Node]:
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


def _with_sources(run: SideBySide, node: Node) -> frozenset[Node]:
    """The node and the kernels whose rounded results it reads."""
    return _with_casts({node, *(i for i in node.inputs if i in run.found and computes(i))})


def _with_casts(nodes: set[Node]) -> frozenset[Node]:
    casts = {i for n in nodes for i in n.inputs if isinstance(i.op, Cast) and is_narrow(i.op.dtype)}
    return frozenset(nodes | casts)


_REMEDIES: tuple[tuple[tuple[type[Any], ...], str], ...] = (
    ((Exp,), "subtract the row's largest value before exp, as softmax does, or keep exp, its sum and the division in fp32"),
    ((MatMul, Conv), "scale an input before the product (1/sqrt(d) before, not after, in attention), or let it write fp32"),
    ((ReduceSum, ReduceMean), "scale down what is summed, or keep the sum, and what divides by it, in fp32"),
    ((Cast,), "the value itself is beyond the type: scale the input, or keep what reads it in fp32"),
    ((Constant,), "the weights are beyond the type: scale them and what they multiply, or keep their product in fp32"),
    ((LayerNorm, RmsNorm, Softmax), "its kernel rounds after each step here: let it work in fp32 (high_precision)"),
)


_SQUARES = "keep the sum of squares in fp32, or use the normalization as one operator: its kernel widens by itself"


def _remedy(node: Node) -> str:
    """What helps where a node leaves the range; for a sum, by what it adds up."""
    added = node
    if isinstance(node.op, ReduceSum | ReduceMean):
        added = node.inputs[0]
        while isinstance(added.op, Cast):
            added = added.inputs[0]
    if isinstance(added.op, Square) or (isinstance(added.op, Mul) and added.inputs[0] is added.inputs[1]):
        return _SQUARES
    kind = added.op if isinstance(added.op, Exp) else node.op
    return next((text for kinds, text in _REMEDIES if isinstance(kind, kinds)), "keep it in fp32")


def advice(run: SideBySide, nodes: Sequence[NodeNumerics], chip: Chip, arithmetic_: Arithmetic) -> list[str]:
    """What to do, most pressing first."""
    lines: list[str] = []
    by_number = {n.number: node for node, n in run.found.items()}
    over = sorted((n for n in nodes if n.overflows), key=lambda n: (n.mask, n.number))
    for n in (x for x in over[:3] if not x.mask):
        remedy = _remedy(by_number[n.number])
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
    training = bool(run.graph.updates)  # there a small gradient counts, however large its neighbours are
    lost = (n for n in nodes if n.zeros > SHARE * n.size and (training or n.born > 2 * limits(_dtype(by_number[n.number])).step))
    small = max(lost, key=lambda n: n.zeros / n.size, default=None)
    if small is not None:
        how = "a loss scale lifts gradients over that" if training else "scale it up, or keep it in fp32, if it matters"
        lines.append(f"{small.label}: {small.zeros / small.size:.0%} of its elements become 0 in {small.dtype}; {how}")
    return lines


def _dtype(node: Node) -> DType:
    return next(t.dtype for t in types_of(node) if t.dtype.is_float)
