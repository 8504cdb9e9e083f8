"""Gradients: `grad`, `value_and_grad`, `vjp`, `jvp`, `vmap` and their kin, as functions of functions.

In: a function over Tensors.  Out: a function that also gives gradients.  The function runs under whatever recorder is under way, or a `Tape`; the recorded
nodes are differentiated by compiler.autodiff, and the gradient nodes belong to the same recorder: in a capture forward and backward are one Program.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from jumar.base import ImportFault, TensorType
from jumar.frontend.capture import Captured
from jumar.frontend.engine import apply
from jumar.frontend.recorder import Recorder, Tape, activated
from jumar.frontend.tensor import LOCAL, Tensor, wrap
from jumar.ir import Node, constant
from jumar.ir import apply as apply_node
from jumar.operators import Identity, Opaque, StopGradient, broadcast_to

Positions = int | tuple[int, ...] | None


def value_and_grad(
    fn: Any, grad_position: Positions = 0, weights: Any = None, has_aux: bool = False, return_ids: bool = False, sens_param: bool = False
) -> Any:
    """A function that returns what `fn` returns and its gradients.

    grad_position: which arguments (None: none).   weights: a Parameter or several: gradients by them, in their order.   has_aux: only the first
    result is differentiated.   sens_param: the last argument is the gradient that comes in.
    Gradients: (by arguments, by weights), or the one that was asked for.
    """
    wanted = _Wanted(_positions(grad_position), grad_position, weights, has_aux, return_ids, sens_param)
    if not callable(fn):
        raise TypeError(f"value_and_grad: fn must be a function or a cell, got {type(fn).__name__}")
    if not wanted.positions and weights is None:
        raise ValueError("value_and_grad: grad_position and weights must not both be None")
    return _Differentiated(fn, wanted, with_value=True)


def grad(fn: Any, grad_position: Positions = 0, weights: Any = None, has_aux: bool = False, return_ids: bool = False) -> Any:
    """A function that returns the gradients of `fn`; with has_aux (gradients, the other results)."""
    if not callable(fn):
        raise TypeError(f"grad: fn must be a function or a cell, got {type(fn).__name__}")
    wanted = _Wanted(_positions(grad_position), grad_position, weights, has_aux, return_ids, False)
    if not wanted.positions and weights is None:
        raise ValueError("grad: grad_position and weights must not both be None")
    return _Differentiated(fn, wanted, with_value=False)


def _positions(grad_position: Positions) -> tuple[int, ...]:
    if grad_position is None:
        return ()
    return (grad_position,) if isinstance(grad_position, int) else tuple(grad_position)


class _Wanted:
    """What to differentiate by, and how the answer looks."""

    def __init__(self, positions: tuple[int, ...], form: Positions, weights: Any, has_aux: bool, return_ids: bool, sens: bool) -> None:
        self.positions, self.form, self.has_aux, self.return_ids, self.sens = positions, form, has_aux, return_ids, sens
        self.single_weight = isinstance(weights, Tensor)
        self.weights: tuple[Tensor, ...] = () if weights is None else (weights,) if isinstance(weights, Tensor) else tuple(weights)
        self.has_weights = weights is not None


class _Differentiated:
    """The function that `grad` and `value_and_grad` return."""

    def __init__(self, fn: Any, wanted: _Wanted, with_value: bool) -> None:
        self.fn, self.wanted, self.with_value = fn, wanted, with_value
        self.captured: Captured | None = None
        self.__name__ = f"grad_of_{getattr(fn, '__name__', type(fn).__name__)}"
        functools.update_wrapper(self, fn, assigned=("__doc__", "__module__", "__qualname__"), updated=())

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if LOCAL.recorder is not None:
            return self.run(*args, **kwargs)
        if isinstance(self.fn, Captured) or _graph_mode():
            if self.captured is None:
                self.captured = Captured(self.run, f"gradients of {getattr(self.fn, '__qualname__', type(self.fn).__name__)}")
            return self.captured(*args, **kwargs)
        tape = Tape()
        try:
            with activated(tape):
                return self.run(*args, **kwargs)
        finally:
            tape.close()

    def run(self, *args: Any, **kwargs: Any) -> Any:
        """Forward and backward under the recorder that is under way."""
        wanted, recorder = self.wanted, LOCAL.recorder
        assert recorder is not None, "run is called under a recorder"
        seed = None
        if wanted.sens:
            *rest, seed = args
            args = tuple(rest)
        missing = [p for p in wanted.positions if not -len(args) <= p < len(args)]
        if missing:
            raise ValueError(f"grad: grad_position must be among the {len(args)} arguments, got {missing[0]}")
        inputs = list(args)
        by_input: list[tuple[int, list[Tensor]]] = []
        for p in wanted.positions:
            leaves: list[Tensor] = []
            inputs[p] = _renewed(args[p], recorder, leaves)
            by_input.append((p, leaves))
        weight_nodes = [recorder.node_of(w) for w in wanted.weights]
        result = self.fn(*inputs, **kwargs)
        outputs = tensors_in(result[0] if wanted.has_aux else result)
        nodes = [n for n in map(recorder.node_of, outputs) if n.dtype.is_float or n.dtype.kind == "c"]
        if not nodes:
            raise TypeError(
                f"grad: the function must return a tensor of floats to be differentiated, got {[str(t.dtype) for t in outputs]}"
            )
        wrt = [recorder.node_of(t) for _, leaves in by_input for t in leaves] + weight_nodes
        found = iter(differentiate(recorder, nodes, wrt, seed))
        of_inputs = [_like(args[p], leaves, [next(found) for _ in leaves]) for p, leaves in by_input]
        of_weights = tuple(_hooked(w, next(found)) for w in wanted.weights)
        answer = self._answer(of_inputs, of_weights)
        if self.with_value:
            return result, answer
        return (answer, tuple(result[1:])) if wanted.has_aux else answer

    def _answer(self, of_inputs: list[Any], of_weights: tuple[Tensor, ...]) -> Any:
        wanted = self.wanted
        if wanted.return_ids:
            of_inputs = [(p, g) for p, g in zip(wanted.positions, of_inputs, strict=True)]
            weights: Any = tuple((w.name, g) for w, g in zip(wanted.weights, of_weights, strict=True))
        else:
            weights = of_weights
        weights = weights[0] if wanted.single_weight else weights
        inputs: Any = of_inputs[0] if isinstance(wanted.form, int) else tuple(of_inputs)
        if wanted.has_weights and wanted.positions:
            return inputs, weights
        return weights if wanted.has_weights else inputs


def _graph_mode() -> bool:
    from jumar import context  # noqa: PLC0415  (the context knows Tensors)

    return context.MODE == 0


def differentiate(recorder: Recorder, nodes: Sequence[Node], wrt: Sequence[Node], seeds: Any = None) -> list[Tensor]:
    """Gradients of the sum of `nodes` (weighted by seeds) by the nodes of `wrt`, as tensors; zeros where there is none."""
    from jumar.compiler import gradients  # noqa: PLC0415  (see engines.Cpu.compile)

    seed_nodes = None
    if seeds is not None:
        given = tensors_in(seeds)
        if len(given) != len(nodes):
            raise ValueError(f"grad: there must be an incoming gradient for each of {len(nodes)} results, got {len(given)}")
        seed_nodes = [_fitted(recorder, g, n) for g, n in zip(given, nodes, strict=True)]
    found = gradients(list(nodes), list(wrt), seed_nodes, _Calls(recorder))
    return recorder.compute([g if g is not None else _zeros(n.type) for g, n in zip(found, wrt, strict=True)])


def _fitted(recorder: Recorder, seed: Tensor, node: Node) -> Node:
    if seed.dtype.dtype != node.dtype:
        seed = seed.astype(str(node.dtype.numpy)) if node.dtype.name != "bf16" else seed.astype("bfloat16")
    found = recorder.node_of(seed)
    return found if found.shape == node.shape else broadcast_to(found, node.shape)


def _zeros(type_: TensorType) -> Node:
    return broadcast_to(constant(0, type_.dtype), type_.dims)


class _Calls(dict[Node, Any]):
    """`custom` of autodiff: gradient functions that work on tensors, as functions on nodes."""

    def __init__(self, recorder: Recorder) -> None:
        super().__init__({n: self._on_nodes(recorder, f) for n, f in recorder.custom.items()})

    @staticmethod
    def _on_nodes(recorder: Recorder, function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*dys: Node | None) -> list[Node | None]:
            given = [None if d is None else recorder.compute([d])[0] for d in dys]
            return [None if g is None else recorder.node_of(g) for g in function(*given)]

        return call


def _renewed(value: Any, recorder: Recorder, leaves: list[Tensor]) -> Any:
    """The argument with a node of its own for each tensor in it: what is differentiated is this use of it."""
    if isinstance(value, Tensor):
        fresh = alias(value, recorder)
        leaves.append(fresh)
        return fresh
    if isinstance(value, tuple | list):
        return type(value)([_renewed(v, recorder, leaves) for v in value])
    if isinstance(value, dict):
        return type(value)((k, _renewed(v, recorder, leaves)) for k, v in value.items())
    if isinstance(value, bool | int | float):
        return value
    raise TypeError(f"grad: an argument to differentiate by must be a tensor, got {type(value).__name__}")


def alias(tensor: Tensor, recorder: Recorder) -> Tensor:
    """The same value under a new node."""
    node = apply_node(Identity(), recorder.node_of(tensor))
    if isinstance(recorder, Tape):
        recorder.known[node] = tensor.array
    return recorder.compute([node])[0]


def _like(value: Any, leaves: list[Tensor], found: list[Tensor]) -> Any:
    """Gradients in the structure of the argument."""
    rest = iter(found)

    def put(v: Any) -> Any:
        if isinstance(v, Tensor):
            return next(rest)
        if isinstance(v, tuple | list):
            return tuple(put(x) for x in v)
        if isinstance(v, dict):
            return {k: put(x) for k, x in v.items()}
        return wrap(np.zeros((), np.float32))

    return put(value)


def _hooked(weight: Tensor, gradient: Tensor) -> Tensor:
    for hook in weight.__dict__.get("_hooks", {}).values():
        changed = hook(gradient)
        gradient = gradient if changed is None else changed
    return gradient


def tensors_in(value: Any) -> list[Tensor]:
    """All tensors of a structure, in order."""
    if isinstance(value, Tensor):
        return [value]
    if isinstance(value, tuple | list):
        return [t for v in value for t in tensors_in(v)]
    if isinstance(value, dict):
        return [t for v in value.values() for t in tensors_in(v)]
    return []


# ---------------------------------------------------------------------- what changes gradients
def stop_gradient(value: Any) -> Any:
    """The same value, which no gradient passes."""
    if isinstance(value, tuple | list):
        return type(value)([stop_gradient(v) for v in value])
    if not isinstance(value, Tensor):
        return value
    return value if LOCAL.recorder is None else apply(StopGradient(), value)


def with_gradient(outputs: Sequence[Tensor], inputs: Sequence[Tensor], backward: Callable[..., Sequence[Tensor | None]]) -> list[Tensor]:
    """The outputs, whose gradients by `inputs` are what `backward(*douts)` says.   Under a recorder only."""
    recorder = LOCAL.recorder
    assert recorder is not None, "gradients are recorded"
    nodes = [*map(recorder.node_of, outputs), *map(recorder.node_of, inputs)]
    node = apply_node(Opaque(len(outputs)), *nodes)
    values = tuple(t._value for t in outputs)
    if isinstance(recorder, Tape):
        recorder.known[node] = values  # type: ignore[assignment]

    def call(*douts: Tensor | None) -> list[Tensor | None]:
        full = [wrap(np.zeros(o.shape, o.dtype.numpy)) if d is None else d for d, o in zip(douts, outputs, strict=True)]
        found = list(backward(*full))
        found += [None] * (len(inputs) - len(found))
        return [None] * len(outputs) + found[: len(inputs)]

    recorder.custom[node] = call
    return recorder.compute(list(node.results))


def call_with_bprop(cell: Any, args: Sequence[Any], kwargs: Any, run: Callable[..., Any] | None = None) -> Any:
    """A cell whose gradient is its own method `bprop(*inputs, out, dout)`."""
    result = (run or cell.construct)(*args, **kwargs)
    if LOCAL.recorder is None:
        return result
    inputs = [a for a in args if isinstance(a, Tensor)]
    outputs = tensors_in(result)

    def backward(*douts: Tensor) -> list[Tensor | None]:
        given = douts[0] if isinstance(result, Tensor) else refilled(result, douts)
        found = cell.bprop(*args, result, given)
        found = found if isinstance(found, tuple | list) else (found,)
        if len(found) == 2 and isinstance(found[0], tuple) and isinstance(found[1], dict | tuple | list):  # (inputs, weights)
            found = found[0]
        if len(found) < len(args):
            raise ImportFault(
                f"{type(cell).__name__}: bprop must return a gradient for each of {len(args)} inputs, got {len(found)}", code="bprop-count"
            )
        return [g if isinstance(g, Tensor) else None for a, g in zip(args, found, strict=False) if isinstance(a, Tensor)]

    return refilled(result, with_gradient(outputs, inputs, backward))


def refilled(value: Any, tensors: Sequence[Tensor]) -> Any:
    rest = iter(tensors)

    def put(v: Any) -> Any:
        if isinstance(v, Tensor):
            return next(rest)
        if isinstance(v, tuple | list):
            return type(v)([put(x) for x in v])
        if isinstance(v, dict):
            return type(v)((k, put(x)) for k, x in v.items())
        return v

    return put(value)


def hook_gradient(tensor: Tensor, hook: Callable[[Tensor], Tensor | None]) -> Tensor:
    """The tensor, whose incoming gradient `hook` sees and may replace."""
    if LOCAL.recorder is None:
        return tensor

    def backward(dout: Tensor) -> list[Tensor | None]:
        changed = hook(dout)
        return [dout if changed is None else changed]

    return with_gradient([stop_gradient(tensor)], [tensor], backward)[0]


def register_hook(tensor: Tensor, hook: Callable[[Tensor], Tensor | None]) -> Handle:
    """`Tensor.register_hook`: `hook(gradient)` is called when the tensor's gradient is known; what it returns replaces it."""
    handle = Handle(tensor.__dict__.setdefault("_hooks", {}), hook)
    recorder = LOCAL.recorder
    if recorder is not None and tensor._recorder is recorder:
        hooked = hook_gradient(tensor, lambda g: hook(g) if handle.key in handle.store else None)
        tensor._node = hooked._node
        recorder.adopt(tensor)
    return handle


class Handle:
    """A registered hook.   remove() takes it away."""

    _next = 0

    def __init__(self, store: dict[int, Any], hook: Any) -> None:
        Handle._next += 1
        self.key, self.store = Handle._next, store
        store[self.key] = hook

    def remove(self) -> None:
        self.store.pop(self.key, None)


# ---------------------------------------------------------------------- products with Jacobians
def vjp(fn: Any, *inputs: Any, weights: Any = None, has_aux: bool = False) -> Any:
    """(result, a function from incoming gradients to those of the inputs); with has_aux (result, function, the other results)."""
    result = fn(*inputs)
    shown, aux = (result[0], result[1:]) if has_aux else (result, None)
    positions = tuple(range(len(inputs)))
    pulled = _Differentiated(fn, _Wanted(positions, positions, weights, has_aux, False, True), with_value=False)

    def vjp_fn(*seeds: Any) -> Any:
        seed = seeds[0] if len(seeds) == 1 else seeds
        found = pulled(*inputs, seed)
        found = found[0] if has_aux else found
        by_inputs, by_weights = found if weights is not None else (found, None)
        by_inputs = by_inputs[0] if len(positions) == 1 and weights is None else by_inputs
        return by_inputs if weights is None else (by_inputs, by_weights)

    return (shown, vjp_fn, aux) if has_aux else (shown, vjp_fn)


def jvp(fn: Any, inputs: Any, v: Any, has_aux: bool = False) -> Any:
    """(result, how it changes along `v`): two reversed passes, since the first is linear in its incoming gradient."""
    points = inputs if isinstance(inputs, tuple | list) else (inputs,)
    along = v if isinstance(v, tuple | list) else (v,)
    if len(points) != len(along):
        raise ValueError(f"jvp: there must be a direction for each of {len(points)} inputs, got {len(along)}")
    result = fn(*points)
    shown, aux = (result[0], result[1:]) if has_aux else (result, None)
    outputs = tensors_in(shown)
    dummies = tuple(wrap(np.zeros(o.shape, o.dtype.numpy)) for o in outputs)
    positions = tuple(range(len(points)))
    pulled = _Differentiated(fn, _Wanted(positions, positions, None, has_aux, False, True), with_value=False)

    def linear(*seeds: Any) -> Any:
        found = pulled(*points, seeds if len(seeds) > 1 else seeds[0])
        return tuple(tensors_in(found[0] if has_aux else found))

    pushed = _Differentiated(
        linear, _Wanted(tuple(range(len(dummies))), tuple(range(len(dummies))), None, False, False, True), with_value=False
    )
    tangents = pushed(*dummies, tuple(along))
    changed = refilled(shown, list(tangents))
    return (shown, changed, aux) if has_aux else (shown, changed)


def jacrev(fn: Any, grad_position: Positions = 0, has_aux: bool = False) -> Any:
    """A function that returns the Jacobian of `fn`: [*shape of the result, *shape of the input]."""
    position = grad_position if isinstance(grad_position, int) else None

    def jacobian(*args: Any) -> Any:
        result = fn(*args)
        out, aux = (result[0], result[1:]) if has_aux else (result, None)
        positions = _positions(grad_position)
        pulled = _Differentiated(fn, _Wanted(positions, positions, None, has_aux, False, True), with_value=False)
        rows: list[tuple[Tensor, ...]] = []
        for i in range(out.size):
            seed = np.zeros(out.size, out.dtype.numpy)
            seed[i] = 1
            found = pulled(*args, wrap(seed.reshape(out.shape)))
            rows.append(tuple(found[0] if has_aux else found))
        columns = tuple(_stacked([r[k] for r in rows]).reshape((*out.shape, *args[p].shape)) for k, p in enumerate(positions))
        found_all = columns[0] if position is not None else columns
        return (found_all, aux) if has_aux else found_all

    return functools.wraps(fn)(jacobian) if hasattr(fn, "__name__") else jacobian


def jacfwd(fn: Any, grad_position: Positions = 0, has_aux: bool = False) -> Any:
    """As `jacrev`; the same Jacobian."""
    return jacrev(fn, grad_position, has_aux)


def _stacked(parts: Sequence[Tensor]) -> Tensor:
    return _joined(parts, 0)  # type: ignore[no-any-return]


def vmap(fn: Any, in_axes: Any = 0, out_axes: Any = 0, chunk_size: int | None = None) -> Any:
    """A function that maps `fn` over an axis of its arguments.   in_axes: an axis, None, or one for each argument; out_axes: likewise for results."""

    def mapped(*args: Any) -> Any:
        axes = tuple(in_axes) if isinstance(in_axes, tuple | list) else (in_axes,) * len(args)
        if len(axes) != len(args):
            raise ValueError(f"vmap: in_axes must have one entry for each of {len(args)} arguments, got {len(axes)}")
        sizes = {t.shape[a] for arg, axis in zip(args, axes, strict=True) for t, a in _with_axes(arg, axis) if a is not None}
        if len(sizes) != 1:
            raise ValueError(f"vmap: mapped axes must be of one size, got {sorted(sizes)}")
        results = [fn(*(_picked(arg, axis, i) for arg, axis in zip(args, axes, strict=True))) for i in range(sizes.pop())]
        if not isinstance(results[0], tuple | list):
            return _joined(results, out_axes)
        outs = tuple(out_axes) if isinstance(out_axes, tuple | list) else (out_axes,) * len(results[0])
        return tuple(_joined([r[k] for r in results], outs[k]) for k in range(len(results[0])))

    return functools.wraps(fn)(mapped) if hasattr(fn, "__name__") else mapped


def _with_axes(arg: Any, axis: Any) -> list[tuple[Tensor, Any]]:
    if isinstance(arg, Tensor):
        return [(arg, axis)]
    if isinstance(arg, tuple | list):
        axes = axis if isinstance(axis, tuple | list) else [axis] * len(arg)
        return [found for a, x in zip(arg, axes, strict=True) for found in _with_axes(a, x)]
    return []


def _picked(arg: Any, axis: Any, i: int) -> Any:
    if isinstance(arg, tuple | list):
        axes = axis if isinstance(axis, tuple | list) else [axis] * len(arg)
        return type(arg)([_picked(a, x, i) for a, x in zip(arg, axes, strict=True)])
    if axis is None or not isinstance(arg, Tensor):
        return arg
    return arg[(slice(None),) * (axis % arg.ndim) + (i,)]


def _joined(parts: Sequence[Any], axis: int) -> Any:
    from jumar.ops import movement  # noqa: PLC0415  (ops is made of this room)

    return movement.stack(list(parts), axis) if isinstance(parts[0], Tensor) else wrap(np.array(parts))


def get_grad(gradients: Any, identifier: Any) -> Tensor:
    """One gradient of those that `grad(..., return_ids=True)` gave, by the position of an argument, or by a Parameter or its name."""
    wanted = identifier if isinstance(identifier, int | str) else identifier.name
    stack = [gradients]
    while stack:
        found = stack.pop()
        if isinstance(found, tuple) and len(found) == 2 and isinstance(found[0], int | str) and isinstance(found[1], Tensor):
            if found[0] == wanted and type(found[0]) is type(wanted):
                return found[1]
        elif isinstance(found, tuple | list):
            stack += found
    raise ImportFault(
        f"get_grad: gradient of {wanted!r} must be among those given", hint="ask for it with return_ids=True", code="gradient-missing"
    )


class GradOperation:
    """MindSpore's older form: `GradOperation(get_all, get_by_list, sens_param)(fn, weights)(*inputs)`."""

    def __init__(self, get_all: bool = False, get_by_list: bool = False, sens_param: bool = False) -> None:
        self.get_all, self.get_by_list, self.sens_param = get_all, get_by_list, sens_param

    def __call__(self, fn: Any, weights: Any = None, grad_position: Positions = None) -> Any:
        if self.get_by_list and weights is None:
            weights = fn.trainable_params()

        def run(*args: Any) -> Any:
            count = len(args) - self.sens_param
            positions: Positions = tuple(range(count)) if self.get_all else None if self.get_by_list else 0
            found = _Differentiated(
                fn, _Wanted(_positions(positions), positions, weights if self.get_by_list else None, False, False, self.sens_param), False
            )
            return found(*args)

        return run
