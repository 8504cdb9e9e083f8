"""A graph computed twice, side by side: as the model means it, every float in fp32, and as a chip computes it.

In: a graph, inputs, the chip's `Arithmetic`.  Out: what is known of each node and output; numerics.py asks for it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from jumar.base import Array, DType, Loc, dtype_of
from jumar.compiler.twin.findings import NodeNumerics, OutputNumerics
from jumar.compiler.twin.values import Written, device_value, exact_value, is_narrow, leaves_range, narrowed, types_of, widened
from jumar.device.npu import Arithmetic, limits
from jumar.ir import Constant, Get, Graph, Node, Param
from jumar.operators import Add, Cast, MatMul

TIE = 1e-3  # of the largest: what is as near to it is as good a choice


class SideBySide:
    """Both runs, side by side; what is known of each node is kept, its values only until their last reader."""

    def __init__(self, graph: Graph, arithmetic_: Arithmetic, originals: Mapping[Node, Array]) -> None:
        self.graph = graph
        self.originals = originals
        self.math = arithmetic_
        self.joined = {n for n in graph.nodes if _takes_bias(graph, n)}
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
                written = device_value(node, device_in, self.math, keep=node in self.joined)
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
        if node in self.joined:
            return Written(exact, exact)
        if all(is_narrow(t.dtype) for t in types) and not written.stepped and all(map(_is_float, exact)):
            return Written(tuple(self.math.rounded(e, t.dtype) for e, t in zip(exact, types, strict=True)), exact)
        return device_value(node, exact_in, self.math)

    def _note(
        self, number: int, node: Node, exact: tuple[Any, ...], device_in: list[Any], exact_in: list[Any], written: Written, local: Written
    ) -> None:
        floats = [i for i, t in enumerate(types_of(node)) if t.dtype.is_float and exact[i].size and _is_float(exact[i])]
        if not floats:
            self._note_decisions(number, node, exact, written)
            return
        dtype = types_of(node)[floats[0]].dtype
        narrow = is_narrow(dtype) and node not in self.joined
        pairs = [(exact[i], written.values[i]) for i in floats]
        error, max_error = (max(v) for v in zip(*(_error(e, d) for e, d in pairs), strict=True))
        born = max(_error(exact[i], local.values[i])[0] for i in floats)
        clean = all(_finite(x) for x in device_in)
        over = [leaves_range(written.raw[i], dtype) & np.isfinite(exact[i]) for i in floats] if narrow and clean else []
        overflows = sum(int(o.sum()) for o in over)
        under = [_underflow(exact[i], dtype) for i in floats] if narrow and computes(node) else []
        reached = max((self.errors.get(i, 0.0) for i in node.inputs), default=0.0)
        if any(self.found[i].wrong for i in node.inputs if i in self.found):
            reached = max(reached, error)  # other codes or choices come in: what follows of them arose before
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

    def _note_decisions(self, number: int, node: Node, exact: tuple[Any, ...], written: Written) -> None:
        """A node of integers or truth values, where one differs: rounding has turned a decision, or a code of a quantized model."""
        wrong = sum(int((np.asarray(e) != np.asarray(d)).sum()) for e, d in zip(exact, written.values, strict=True))
        if not wrong or any(np.asarray(e).dtype.kind not in "iub" for e in exact):
            return
        numbers = [(np.asarray(e, np.float64), np.asarray(d, np.float64)) for e, d in zip(exact, written.values, strict=True)]
        error, max_error = (max(v) for v in zip(*(_error(e, d) for e, d in numbers), strict=True))
        reached = max((self.errors.get(i, 0.0) for i in node.inputs), default=0.0)
        self.errors[node] = error
        self.found[node] = NodeNumerics(
            number=number,
            op=node.op.name,
            name=node.loc.name,
            place=_place(node.loc),
            dtype=str(types_of(node)[0].dtype),
            size=sum(e.size for e, _ in numbers),
            error=error,
            max_error=max_error,
            grown=error / reached if reached else 0.0,
            wrong=wrong,
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
                arrays = [_read(values, i) if up or i in self.joined else narrowed(_read(values, i), i, self.math) for i in node.inputs]
            values[node] = device_value(node, arrays, self.math, keep=node in kept or node in self.joined).values
            for i in set(node.inputs):
                if last[i] is node and i not in keep:
                    del values[i]
        return [narrowed(values[o][0], o, self.math) if o in kept else values[o][0] for o in self.graph.outputs]


def _takes_bias(graph: Graph, node: Node) -> bool:
    """Whether a product is written with its bias only: the cube adds that to the sums in fp32."""
    if not isinstance(node.op, MatMul) or not is_narrow(node.dtype) or node in graph.outputs or len(graph.users[node]) != 1:
        return False
    (user,) = graph.users[node]
    if not isinstance(user.op, Add) or user.type != node.type:
        return False
    bias = user.inputs[1] if user.inputs[0] is node else user.inputs[0]
    return bias is not node and bias.type.size == bias.shape[-1] == node.shape[-1] if bias.rank else False


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


def computes(node: Node) -> bool:
    return node.op.family not in ("movement", "source")


def _from_constants(node: Node) -> bool:
    """Whether it, or one of its inputs, is known before the run: a mask's fill, not an activation."""
    return isinstance(node.op, Constant) or any(
        isinstance(i.op, Constant) or (isinstance(i.op, Cast) and isinstance(i.inputs[0].op, Constant)) for i in node.inputs
    )


def _place(loc: Loc) -> str:
    return f"{loc.file}:{loc.line}" if loc.line else loc.file


def output_numerics(node: Node, name: str, exact: Array, device: Array) -> OutputNumerics:
    if not _is_float(exact):
        wrong = int((np.asarray(exact) != np.asarray(device)).sum())
        return OutputNumerics(name, str(node.type), 0.0, 0.0, 0, None, wrong, exact.size)
    wide = widened(np.asarray(device))
    error, worst = _error(exact, wide)
    broken = int((np.isfinite(exact) & ~np.isfinite(wide)).sum())
    agreement = None
    if 0 < exact.ndim <= 3 and exact.shape[-1] > 1 and exact.size:  # more dimensions are maps: their rows choose nothing
        best = exact.max(-1, keepdims=True)
        chosen = np.take_along_axis(exact, np.argmax(wide, -1)[..., None], -1)
        decided = (np.isfinite(wide) | ~np.isfinite(exact)).all(
            -1, keepdims=True
        )  # where elements overflow, the first of them is no choice
        agreement = float(((best - chosen <= TIE * np.abs(best)) & decided & ~np.isnan(wide).any(-1, keepdims=True)).mean())
    return OutputNumerics(name, str(node.type), error, worst, broken, agreement, 0, exact.size)
