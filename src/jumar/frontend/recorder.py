"""Recorders: what is under way in a thread while operators are not simply run.

In: operators on Tensors, and Python's demands for their values.  Out: nodes, and values when they are needed.
`Tape` runs each operator at once and keeps its node, for gradients in PYNATIVE mode.  `Capture` only makes nodes; when Python needs a value,
or at the end, all that Python can still reach is computed by one Program (segment.py), and what was done is noted in `log`, so that it can be
done again without Python (path.py, tree.py).
"""

from __future__ import annotations

import weakref
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from jumar.base import Array, Loc, StackError, type_of
from jumar.frontend.engine import execute, not_tensors
from jumar.frontend.segment import Segment, segment_of, shape_of
from jumar.frontend.tensor import LOCAL, Scalar, Tensor, element, pending, wrap
from jumar.frontend.user import explained, user_loc
from jumar.ir import Get, Node, Op, constant, param
from jumar.ir import apply as apply_node


@dataclass(frozen=True, eq=False)
class Piece:
    """A segment that ran.   inputs: known nodes; wanted: nodes that became known; updates: tensors written in place, by output."""

    segment: Segment
    inputs: tuple[Node, ...]
    numbers: tuple[Array, ...]
    wanted: tuple[Node, ...]


@dataclass(frozen=True, eq=False)
class HostCall:
    """An operator whose result's shape depends on data: it ran on the host.   results: nodes that became known."""

    op: Op
    inputs: tuple[Node, ...]
    results: tuple[Node, ...]


@dataclass(frozen=True, eq=False)
class Decision:
    """Python went on by a value.   index: which element, None for the only one; kind: as what (bool, int), None for as it is."""

    node: Node
    index: Any
    kind: Any
    value: Any


@dataclass(frozen=True)
class Effect:
    """Why Python must run again at the next call."""

    what: str
    loc: Loc

    def __str__(self) -> str:
        return f"{self.what} at {self.loc}" if self.loc.file else self.what


class Recorder:
    """What tapes and captures share: which node stands for which tensor, and the values that are known."""

    def __init__(self) -> None:
        self.nodes: dict[int, Node] = {}  # of tensors from outside, by their identity
        self.bound: dict[Node, Tensor] = {}  # the same the other way round; keeps them alive
        self.known: dict[Node, Array] = {}
        self.refs: list[weakref.ref[Tensor]] = []  # tensors that have a node of this recorder
        self.frozen = False  # whether assignments are left out: what runs has run before
        self.views: Any = None  # which tensors share elements with which (ops/views.py), once there are any
        self.custom: dict[Node, Any] = {}  # opaque node -> its gradient function (custom bprop, hooks)

    def node_of(self, tensor: Tensor) -> Node:
        """The node that stands for a tensor."""
        if tensor._recorder is self:
            assert tensor._node is not None, "a tensor of a recorder has a node"
            return tensor._node
        node = self.nodes.get(id(tensor))
        return self.bind(tensor) if node is None else node

    def bind(self, tensor: Tensor) -> Node:
        """A tensor from outside becomes an input."""
        array = tensor.array
        if type(tensor) is Scalar:
            return constant(array)
        node = param(f"t{len(self.bound)}", type_of(array))
        self.nodes[id(tensor)] = node
        self.bound[node] = tensor
        self.known[node] = array
        return node

    def adopt(self, tensor: Tensor) -> None:
        """Looks after a tensor that has a node of this recorder."""
        self.refs.append(weakref.ref(tensor))

    def apply(self, op: Op, tensors: Sequence[Tensor]) -> Any:
        raise NotImplementedError

    def results(self, node: Node) -> Any:
        """Tensors of a node's results."""
        raise NotImplementedError

    def compute(self, nodes: Sequence[Node]) -> list[Tensor]:
        """Tensors of nodes that were made outside of `apply`, by gradients."""
        raise NotImplementedError

    def write(self, tensor: Tensor, new: Tensor) -> None:
        raise NotImplementedError

    @contextmanager
    def without_writes(self) -> Iterator[None]:
        """Inside, assignments to tensors from outside are left out."""
        before, self.frozen = self.frozen, True
        try:
            yield
        finally:
            self.frozen = before

    def materialise(self, tensor: Tensor) -> None:
        raise NotImplementedError

    def decide(self, tensor: Tensor, index: Any, kind: Any) -> Any:
        return element(tensor.array, index, kind)

    def opaque(self, tensor: Tensor, how: str) -> None:
        """Python takes a whole value."""

    def effect(self, what: str) -> None:
        """Python does something that must happen at each call."""

    def close(self) -> None:
        """The tensors that are left are plain ones from now on."""
        for ref in self.refs:
            tensor = ref()
            if tensor is not None and tensor._recorder is self:
                tensor._node = tensor._recorder = None
        self.refs.clear()


class Tape(Recorder):
    """Runs operators at once and keeps their nodes."""

    def apply(self, op: Op, tensors: Sequence[Tensor]) -> Any:
        whole = getattr(op, "whole", op)  # with what its gradient reads, so that it need not run again for that
        try:
            result = execute(whole, [t.array for t in tensors])
        except StackError as error:
            raise explained(error) from error.__cause__
        several = isinstance(result, tuple)
        if getattr(op, "data_dependent", False):
            fresh = tuple(self._fresh(r) for r in (result if several else (result,)))
            return fresh if several else fresh[0]
        node = apply_node(whole, *map(self.node_of, tensors), loc=user_loc())
        if several:
            self.known[node] = result  # a gradient asks the node for its results anew
            count = len(result) if whole is op else len(apply_node(op, *node.inputs).results)
            return tuple(self._result(node[i], r) for i, r in enumerate(result[:count]))
        return self._result(node, result)

    def _fresh(self, value: Array) -> Tensor:
        return self._result(param(f"t{len(self.known)}", type_of(value)), value)

    def _result(self, node: Node, value: Array) -> Tensor:
        self.known[node] = value
        tensor = wrap(value)
        tensor._node, tensor._recorder = node, self
        self.refs.append(weakref.ref(tensor))
        return tensor

    def results(self, node: Node) -> Any:
        made = tuple(self._result(n, self._value(n)) for n in node.results)
        return made if isinstance(node.type, tuple) else made[0]

    def compute(self, nodes: Sequence[Node]) -> list[Tensor]:
        return [self._result(n, self._value(n)) for n in nodes]

    def _value(self, root: Node) -> Any:
        """The value of a node, by running the operators between it and what is known."""
        stack = [root]
        held: dict[Node, Any] = self.known
        while stack:
            node = stack[-1]
            if node in held:
                stack.pop()
                continue
            missing = [i for i in node.inputs if i not in held]
            if missing:
                stack += missing
                continue
            stack.pop()
            arrays = [held[i] for i in node.inputs]
            if isinstance(node.op, Get):
                held[node] = np.asarray(node.op.reference(*arrays))
            else:
                held[node] = execute(node.op, arrays)
        return held[root]

    def write(self, tensor: Tensor, new: Tensor) -> None:
        if self.frozen and id(tensor) in self.nodes:
            return
        node, value = self.node_of(new), new.array
        tensor._value = value.copy()  # the old array stays what the recorded operators have read
        tensor._node, tensor._recorder = node, self
        self.refs.append(weakref.ref(tensor))


class Capture(Recorder):
    """Only makes nodes; see the head of the file."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self.name = name
        self.log: list[Piece | HostCall | Decision] = []
        self.effects: list[Effect] = []
        self.written: dict[int, tuple[Tensor, Array]] = {}  # tensors from outside that were assigned to, with the arrays they had
        self.updated: dict[Node, Tensor] = {}  # new values that a piece has written over the old ones, and of which tensor
        self.draws: dict[Any, int] = {}  # generator -> how many offsets were taken
        self.drawn: dict[Node, tuple[Any, int]] = {}  # input -> generator and which of its offsets; -1 is its key
        self._keys: dict[Any, Tensor] = {}

    # ------------------------------------------------------------------ recording
    def apply(self, op: Op, tensors: Sequence[Tensor]) -> Any:
        if getattr(op, "data_dependent", False):
            return self._host(op, tensors)
        try:
            node = apply_node(op, *map(self.node_of, tensors), loc=user_loc())
        except StackError as error:
            raise explained(error) from error.__cause__
        except AttributeError as error:
            raise not_tensors(op, tensors, error) from None
        return self.results(node)

    def results(self, node: Node) -> Any:
        if isinstance(node.type, tuple):
            return tuple(self._pending(n) for n in node.results)
        return self._pending(node)

    def compute(self, nodes: Sequence[Node]) -> list[Tensor]:
        return [self._pending(n) for n in nodes]

    def _pending(self, node: Node) -> Tensor:
        tensor = pending(node, self)
        self.refs.append(weakref.ref(tensor))
        return tensor

    def _host(self, op: Op, tensors: Sequence[Tensor]) -> Any:
        arrays = [t.array for t in tensors]  # cuts
        inputs = tuple(self.node_of(t) for t in tensors)
        result = execute(op, arrays)
        values = result if isinstance(result, tuple) else (result,)
        nodes = tuple(param(f"h{len(self.known)}_{i}", type_of(v)) for i, v in enumerate(values))
        self.log.append(HostCall(op, inputs, nodes))
        made = []
        for node, value in zip(nodes, values, strict=True):
            self.known[node] = value
            tensor = wrap(value)
            tensor._node, tensor._recorder = node, self
            self.refs.append(weakref.ref(tensor))
            made.append(tensor)
        return tuple(made) if isinstance(result, tuple) else made[0]

    def write(self, tensor: Tensor, new: Tensor) -> None:
        if self.frozen and (tensor._recorder is not self or id(tensor) in self.written):
            return
        node = self.node_of(new)
        if tensor._recorder is not self and id(tensor) not in self.written:
            self.node_of(tensor)  # bound: its old value is an input from now on
            self.written[id(tensor)] = (tensor, tensor.array)
        tensor._value = None
        tensor._node, tensor._recorder = node, self
        self.refs.append(weakref.ref(tensor))

    def draw(self, generator: Any) -> tuple[Tensor, Tensor]:
        """Key and next offset of a generator, as inputs."""
        key = self._keys.get(generator)
        if key is None:
            key = self._keys[generator] = wrap(np.array(generator.seed_value, np.uint64))
            self.drawn[self.node_of(key)] = (generator, -1)
        offset = wrap(np.array(generator.offset, np.uint64))
        count = self.draws.get(generator, 0)
        self.draws[generator] = count + 1
        self.drawn[self.node_of(offset)] = (generator, count)
        return key, offset

    # ------------------------------------------------------------------ values
    def materialise(self, tensor: Tensor) -> None:
        self.cut()

    def decide(self, tensor: Tensor, index: Any, kind: Any) -> Any:
        node = self.node_of(tensor)
        value = element(tensor.array, index, kind)
        if type(tensor) is Scalar:
            return value
        if isinstance(value, float | complex):
            self.effect("takes a number of many possible values out of a tensor")
        self.log.append(Decision(node, index, kind, value))
        return value

    def opaque(self, tensor: Tensor, how: str) -> None:
        self.effect(f"hands a tensor's value to Python ({how})")

    def effect(self, what: str, *, located: bool = True) -> None:
        self.effects.append(Effect(what, (user_loc() if located else None) or Loc()))

    def live(self) -> list[Tensor]:
        """Pending tensors that Python can still reach, oldest first."""
        found: dict[int, Tensor] = {}
        refs = []
        for ref in self.refs:
            tensor = ref()
            if tensor is None or tensor._recorder is not self or id(tensor) in found:
                continue
            refs.append(ref)
            found[id(tensor)] = tensor
        self.refs = refs
        return [t for t in found.values() if t._value is None]

    def alive(self) -> list[Tensor]:
        """Tensors that this capture has made and Python can still reach."""
        return [t for ref in self.refs if (t := ref()) is not None and t._recorder is self]

    def forget(self) -> None:
        """The function is over: gradient functions, and the tensors that they hold, are not needed any more."""
        self.custom.clear()

    def cut(self, *, final: bool = False) -> list[Tensor]:
        """Computes all pending tensors that Python can reach.   final: parameters that were assigned to are written in place."""
        live = self.live()
        # last made first: gradients of the last layers come first, so that what the forward pass kept for them is free early
        wanted = list(dict.fromkeys(t._node for t in reversed(live) if t._node is not None and t._node not in self.known))
        if wanted:
            self._run(wanted, self._updates(wanted) if final else {})
        owned: set[Node] = set()
        for t in sorted(live, key=lambda t: id(t) not in self.written):  # a parameter owns the memory of its new value
            node = t._node
            assert node is not None, "pending tensors have nodes"
            value = self.known[node]
            t._value = value.copy() if node in self.bound or node in owned else value
            owned.add(node)
        if final:
            self._settle()
        return live

    def _settle(self) -> None:
        """New values of tensors from outside go into the memory that they have, which others may see (views, NumPy arrays)."""
        for tensor, old in self.written.values():
            value = tensor._value
            if value is not None and value is not old and fits(old, value):
                old[...] = value
                tensor._value = old

    def _updates(self, wanted: Sequence[Node]) -> dict[int, Node]:
        """Outputs that may take the memory of an input: new values of parameters from outside."""
        at = {n: i for i, n in enumerate(wanted)}
        found: dict[int, Node] = {}
        for key, (tensor, old) in self.written.items():
            place, source = at.get(tensor._node), self.nodes.get(key)  # type: ignore[arg-type]
            if place is None or place in found or source is None or self.known.get(source) is not old:
                continue
            if tensor.in_place and old.flags.c_contiguous and old.flags.writeable and wanted[place].type == source.type:
                found[place] = source
        return found

    def _run(self, wanted: list[Node], updates: dict[int, Node]) -> None:
        shape = shape_of(wanted, self.known)
        where = {n: i for i, n in enumerate(shape.inputs)}
        pairs = tuple((o, where[n]) for o, n in updates.items() if n in where)
        segment = segment_of(wanted, shape, pairs, self.name)
        values = segment.run([self.known[n] for n in shape.inputs], shape.numbers)
        self.log.append(Piece(segment, shape.inputs, shape.numbers, tuple(wanted)))
        self.updated |= {wanted[o]: self.bound[shape.inputs[i]] for o, i in pairs}
        for node, value in zip(wanted, values, strict=True):
            self.known[node] = value

    def abandon(self) -> None:
        """After an error: tensors from outside are what they were."""
        for tensor, old in self.written.values():
            tensor._value, tensor._node, tensor._recorder = old, None, None
        self.close()


def fits(memory: Array, value: Array) -> bool:
    """Whether a value may be written into that memory as it is."""
    return memory.shape == value.shape and memory.dtype == value.dtype and memory.flags.writeable


@contextmanager
def activated(recorder: Recorder) -> Iterator[None]:
    """The recorder is under way in this thread."""
    before = LOCAL.recorder
    LOCAL.recorder = recorder
    try:
        yield
    finally:
        LOCAL.recorder = before


def is_capturing() -> bool:
    """Whether a GRAPH capture is under way."""
    return isinstance(LOCAL.recorder, Capture)
