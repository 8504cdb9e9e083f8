"""`Trace`: what rules see of a call that is being traced.  It makes nodes, evaluates what is known, and cuts where a value is needed.

In: values and nodes from rules.  Out: segments, host calls and decisions on a `Walk` (plan.py); evaluator.py drives it.

A *cut* is not an exception: the call that is traced has real inputs, so the graph so far is compiled and run and its value is there.
Only where there are no inputs (`Model.compile` on types) or in an attempt (`attempt()`) a cut raises `NeedsValue`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from jumar.base import Array, ImportFault, Loc, TensorType, type_of
from jumar.frontend.importers.onnx.plan import Compile, HostCall, Interpreted, NeedsValue, RunOp, Segment, Slot, Structure, Text, Walk
from jumar.frontend.importers.onnx.value import Known, Tensor, Traced, Value, as_array, leaves
from jumar.ir import Constant, Get, Graph, Node, Op, Param, constant, evaluate, param, topological
from jumar.operators import Dequantize

EAGER_ELEMENTS = 1 << 16  # results up to this size are computed while importing when all inputs are known
TINY_ELEMENTS = 1 << 12  # a demanded value whose graph has no larger value is interpreted: compiling costs more


class Trace:
    """One trace.   walk: where segments go; compile: makes executables; memory: bytes that one value may take."""

    def __init__(self, name: str, walk: Walk, compile_: Compile, memory: int) -> None:
        self.name = name
        self.walk = walk
        self.compile = compile_
        self.memory = memory
        self.slots: dict[Node, int] = {}  # nodes whose value lies in the frame
        self.values: dict[Node, Array] = {}  # nodes whose value is known by now
        self.constants: dict[int, tuple[Array, Node]] = {}  # by identity, so that a weight is one node
        self.scopes: list[dict[str, Value]] = []  # what later nodes read, by name; evaluator.py keeps them
        self.held: list[list[Any]] = []
        self.output_names: dict[Node, str] = {}
        self.used = 0  # slots so far
        self.attempts = 0
        self.loc = Loc()
        self._varies: dict[Node, bool] = {}

    # ---- what rules ask ----

    def node(self, value: Any) -> Node:
        """The node of a tensor value: a constant where known."""
        match value:
            case Node():
                return value
            case Known(array=array):
                return self._constant(array)
            case Traced(node=node):
                if node in self.values and node.type.size <= 1024:
                    return self._constant(self.values[node])
                return node
            case list():
                raise ImportFault("onnx: value must be a tensor here, got a sequence", loc=self.loc, code="node-invalid")
            case None:
                raise ImportFault("onnx: input must be given here, got none", loc=self.loc, code="node-invalid")
        return self._constant(as_array(value))

    def known(self, value: Any) -> Array | None:
        """The array of a value where it is known or depends on constants only; never cuts."""
        match value:
            case Known(array=array):
                return array
            case Traced(node=node) | (Node() as node):
                if node not in self.values and not self.varies(node):
                    self.values[node] = self._evaluate(node)
                return self.values.get(node)
            case None | list():
                return None
        return as_array(value)

    def array(self, value: Any) -> Array:
        """The array itself; where it depends on inputs, the trace is cut and run up to here."""
        found = self.known(value)
        if found is not None:
            return found
        if value is None or isinstance(value, list):
            raise ImportFault(
                f"onnx: value must be a tensor here, got {'none' if value is None else 'a sequence'}", loc=self.loc, code="node-invalid"
            )
        return self._demand(value.node if isinstance(value, Traced) else value)

    def ints(self, value: Any) -> tuple[int, ...]:
        """The value as a tuple of ints."""
        return tuple(int(i) for i in self.array(value).ravel())

    def scalar(self, value: Any) -> Any:
        """The value as one Python number, bool or text."""
        array = self.array(value)
        if array.size != 1:
            raise ImportFault(f"onnx: value must have one element here, got {type_of(array)}", loc=self.loc, code="node-invalid")
        return array.reshape(-1)[0].item() if array.dtype != object else array.reshape(-1)[0]

    def run(self, op: Op, *values: Value) -> Any:
        """Runs a data-dependent operator on the host at once: one value, or a tuple of them.   Its results' types are known from then on."""
        arrays = [self.known(v) for v in values]
        call = RunOp(op)
        if all(a is not None or v is None for a, v in zip(arrays, values, strict=True)):
            results = [Known(as_array(r)) for r in call(*arrays)]
        else:
            results = self.host(call, list(values))
        return tuple(results) if len(results) > 1 else results[0]

    def host(self, function: Callable[..., Any], inputs: list[Value]) -> Any:
        """Calls a function of arrays (and lists of them) on the host while the model runs; gives its result as values."""
        if self.blocked:
            raise NeedsValue(next(v.node for v in leaves(inputs) if isinstance(v, Traced)))
        self._materialise(v.node for v in leaves(inputs) if isinstance(v, Traced) and v.node not in self.values)
        first = self.used
        self.walk.next_step(lambda: HostCall(function, self._tree(inputs)))
        self.used += 1
        structure = self.walk.decide(first)
        return self.values_of(structure)

    @contextmanager
    def attempt(self) -> Iterator[None]:
        """Inside, a cut raises `NeedsValue`, so that nothing has happened when a rule then takes another way."""
        self.attempts += 1
        try:
            yield
        finally:
            self.attempts -= 1

    @contextmanager
    def holding(self, values: list[Any]) -> Iterator[list[Any]]:
        """Values in the list are kept across cuts: for rules that gather results while sub-graphs run."""
        self.held.append(values)
        try:
            yield values
        finally:
            self.held.pop()

    @property
    def blocked(self) -> bool:
        return self.attempts > 0 or self.walk.frame is None

    # ---- what the evaluator asks ----

    def values_of(self, structure: Structure, label: str = "v") -> Any:
        """Values for the next slots of the frame, which hold a tree of that structure."""
        match structure:
            case None:
                return None
            case Text(array=array):
                return Known(array)
            case TensorType():
                node = param(f"{label}{self.used}" if label == "v" else label, structure, self.loc)
                self.slots[node] = self.used
                self.used += 1
                return Traced(node)
        return [self.values_of(s, f"{label}.{i}" if label != "v" else label) for i, s in enumerate(structure)]

    def value(self, result: Any, *, eager: bool) -> Value:
        """A rule's result as a value.   eager: all inputs were known, so small results are computed now."""
        match result:
            case None | Known():
                return result
            case list():
                return [self.value(r, eager=eager) for r in result]
            case Traced(node=node) | (Node() as node):
                return self._settle(node, eager)
        return Known(as_array(result))

    def _settle(self, node: Node, eager: bool) -> Value:
        if isinstance(node.type, tuple):
            what = f"onnx: a rule must return one result for each output, got a node of {len(node.type)}: this is our bug"
            raise ImportFault(what, loc=self.loc, code="our-bug")
        if node.array is not None:
            return Known(node.array)
        if node in self.values:
            return Known(self.values[node])
        self.check_size(node.type)
        codes = isinstance(node.op, Dequantize) and node.inputs[0].dtype.bits == 8  # weights: the pass `quantize` wants them as they are
        if eager and not codes and node.type.size <= EAGER_ELEMENTS and not self.varies(node):
            self.values[node] = self._evaluate(node)
            return Known(self.values[node])
        return Traced(node)

    def check_size(self, type_: TensorType | tuple[TensorType, ...], loc: Loc | None = None) -> None:
        """Refuses a value that is no value or does not fit into memory, before anything is allocated for it."""
        for one in type_ if isinstance(type_, tuple) else (type_,):
            if any(d < 0 for d in one.dims):
                raise ImportFault(f"onnx: sizes of a value must be 0 or more, got {one}", loc=loc or self.loc, code="shape-absurd")
            if one.nbytes > self.memory:
                raise ImportFault(
                    f"onnx: a value must fit into {self.memory / 2**30:.1f} GiB of memory, got {one} of {one.nbytes / 2**30:.3g} GiB",
                    loc=loc or self.loc, code="memory",
                )  # fmt: skip

    def finish(self, outputs: list[Value], names: Sequence[str]) -> Any:
        """Compiles what the outputs still need and ends the plan."""
        wanted = {v.node: name for value, name in zip(outputs, names, strict=True) for v in leaves(value) if isinstance(v, Traced)}
        self.output_names = {node: name for node, name in wanted.items() if node not in self.values}
        self._materialise(self.output_names, last=True)
        return self.walk.finish(self._tree(outputs))

    def whole(self, outputs: list[Value], names: Sequence[str], inputs: Sequence[Any]) -> Graph:
        """The graph of all outputs, from the last cut on; where there was none, its parameters are all inputs, read or not."""
        tensors: list[tuple[Any, str]] = []
        for value, name in zip(outputs, names, strict=True):
            tensors += [(v, f"{name}.{i}" if isinstance(value, list) else name) for i, v in enumerate(leaves(value))]
        graph, _ = self._graph([self.node(v) for v, _ in tensors])
        params = graph.params
        given = tuple(v.node for v in inputs if isinstance(v, Traced))
        if all(n in given for n in self.slots):  # what came of a loop or of values lies in a slot, too, and is no input
            params = given
        labels = tuple(name for _, name in tensors)
        return Graph(self.name, params, graph.outputs, labels if len(set(labels)) == len(labels) else ())

    # ---- how ----

    def _constant(self, array: Array) -> Node:
        if id(array) not in self.constants:
            self.constants[id(array)] = (array, constant(array, loc=self.loc))
        return self.constants[id(array)][1]

    def varies(self, node: Node) -> bool:
        """The node depends on a parameter."""
        known = self._varies
        if node not in known:
            stack = [node]
            while stack:
                top = stack[-1]
                waiting = [i for i in top.inputs if i not in known]
                if waiting:
                    stack += waiting
                    continue
                known[top] = isinstance(top.op, Param) or any(known[i] for i in top.inputs)
                stack.pop()
        return known[node]

    def _evaluate(self, node: Node) -> Array:
        """The value of a node that depends on constants only."""
        done: dict[Node, Any] = {}
        for n in topological([node], list(self.values)):
            if n in self.values:
                done[n] = self.values[n]
                continue
            if not isinstance(n.op, Constant | Get):
                self.check_size(n.type, n.loc)
            done[n] = evaluate(n, [done[i] for i in n.inputs])
        result: Array = done[node]
        return result

    def _demand(self, node: Node) -> Array:
        if self.blocked:
            raise NeedsValue(node)
        if node not in self.slots:
            if self._tiny(node):
                self._segment([node], Interpreted)
            else:
                self._materialise([node])
        array: Array = self.walk.decide(self.slots[node]).copy()  # the frame's own may be handed out as a result
        self.values[node] = array
        return array

    def _tiny(self, node: Node) -> bool:
        nodes = topological([node], self.slots)[len(self.slots) :]
        varying = [n for n in nodes if self.varies(n)]
        sizes = (
            t.size
            for n in [*varying, *(i for n in varying for i in n.inputs)]
            for t in (n.type if isinstance(n.type, tuple) else (n.type,))
        )
        return len(varying) <= 64 and all(s <= TINY_ELEMENTS for s in sizes)

    def _materialise(self, nodes: Iterable[Node], *, last: bool = False) -> None:
        """Runs what the nodes need, and what later nodes read along with it."""
        wanted = [n for n in dict.fromkeys(nodes) if n not in self.slots]
        if not wanted:
            return
        if not last:
            later = (v for value in [*(v for scope in self.scopes for v in scope.values()), *self.held] for v in leaves(value))
            wanted += [v.node for v in later if isinstance(v, Traced) and v.node not in self.values and self.varies(v.node)]
        self._segment([n for n in dict.fromkeys(wanted) if n not in self.slots], self.compile)

    def _segment(self, targets: list[Node], compile_: Compile) -> None:
        def make() -> Segment:
            graph, inputs = self._graph(targets)
            return Segment(compile_(graph), inputs, graph)

        self.walk.next_step(make)
        for target in targets:
            self.slots[target] = self.used
            self.used += 1

    def _graph(self, targets: list[Node]) -> tuple[Graph, tuple[int, ...]]:
        """The graph of the targets, from what is known and what lies in the frame."""
        new: dict[Node, Node] = {}
        params: list[Node] = []
        for n in topological(targets, [*self.slots, *self.values]):
            if n in self.values:
                new[n] = self._constant(self.values[n]) if n.type.size <= 1024 or n not in self.slots else n
            if n in self.slots and (n not in self.values or n.type.size > 1024):
                new[n] = n if isinstance(n.op, Param) else param(f"v{self.slots[n]}", n.type, n.loc)
        needed = topological(targets, new)[len(new) :]
        reached = {i for n in needed for i in n.inputs} | {t for t in targets if t in new}
        inputs = []
        for old, node in new.items():
            if old in reached and isinstance(node.op, Param):
                params.append(node)
                inputs.append(self.slots[old])
        for n in needed:
            self.check_size(n.type, n.loc)
            same = all(new[i] is i for i in n.inputs)
            new[n] = n if same else Node(n.op, tuple(new[i] for i in n.inputs), n.type, n.loc)
        names = tuple(self.output_names[t] for t in targets) if all(t in self.output_names for t in targets) else ()
        return Graph(self.name, tuple(params), tuple(new[t] for t in targets), names if len(set(names)) == len(names) else ()), tuple(
            inputs
        )

    def _tree(self, value: Any) -> Any:
        """Values as a tree with slots or arrays as leaves."""
        match value:
            case list():
                return [self._tree(v) for v in value]
            case Known(array=array):
                return array
            case Traced(node=node):
                return Slot(self.slots[node]) if node in self.slots else self.values[node]
        return None


__all__ = ["NeedsValue", "Tensor", "Trace"]  # Tensor: rules annotate with it
