"""Hooks of cells: functions that see inputs, outputs and gradients, and the handles that take them away again.

In: a cell with hooks and the arguments of a call.  Out: its result as the hooks left it.  Hooks on gradients are told to `frontend.grad`.
"""

from __future__ import annotations

import itertools
from collections import OrderedDict
from collections.abc import Callable, Iterator
from typing import Any

from jumar.frontend.guards import EPOCH
from jumar.frontend.tensor import LOCAL, Tensor

_NUMBERS = itertools.count()
KINDS = ("forward_pre", "forward", "backward_pre", "backward")
Entry = tuple[Callable[..., Any], bool, bool]  # function, with_kwargs, always_call


class HookHandle:
    """Takes a hook away again."""

    def __init__(self, hooks: OrderedDict[int, Entry], number: int, changed: Callable[[], None]) -> None:
        self._hooks, self._number, self._changed = hooks, number, changed

    def remove(self) -> None:
        """The hook is called no more."""
        if self._hooks.pop(self._number, None) is not None:
            EPOCH[0] += 1
            self._changed()

    def __enter__(self) -> HookHandle:
        return self

    def __exit__(self, *error: Any) -> None:
        self.remove()


def add_hook(cell: Any, kind: str, fn: Any, prepend: bool = False, with_kwargs: bool = False, always_call: bool = False) -> HookHandle:
    """Adds a hook of one of KINDS to a cell."""
    if not callable(fn):
        raise TypeError(f"register_{kind}_hook: hook_fn must be a function, got {type(fn).__name__}")
    EPOCH[0] += 1
    hooks: OrderedDict[int, Entry] = cell._hooks.setdefault(kind, OrderedDict())
    number = next(_NUMBERS)
    hooks[number] = (fn, with_kwargs, always_call)
    if prepend:
        hooks.move_to_end(number, last=False)
    cell._refresh_plain()
    return HookHandle(hooks, number, cell._refresh_plain)


def run_with_hooks(cell: Any, run: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """`run(*args, **kwargs)` between the cell's hooks."""
    hooks = cell._hooks
    for fn, with_kwargs, _ in list(hooks.get("forward_pre", {}).values()):
        if with_kwargs:
            changed = fn(cell, args, kwargs)
            if changed is not None:
                if not isinstance(changed, tuple) or len(changed) != 2:
                    raise TypeError(
                        f"forward_pre_hook: a hook with kwargs must return (args, kwargs) or None, got {type(changed).__name__}"
                    )
                args, kwargs = changed
        else:
            changed = fn(cell, args)
            if changed is not None:
                args = changed if isinstance(changed, tuple) else (changed,)
    try:
        output = _with_backward(cell, run, args, kwargs) if hooks.get("backward_pre") or hooks.get("backward") else run(*args, **kwargs)
    except BaseException:
        for fn, with_kwargs, always in list(hooks.get("forward", {}).values()):
            if always:
                fn(cell, args, kwargs, None) if with_kwargs else fn(cell, args, None)
        raise
    for fn, with_kwargs, _ in list(hooks.get("forward", {}).values()):
        changed = fn(cell, args, kwargs, output) if with_kwargs else fn(cell, args, output)
        if changed is not None:
            output = changed
    return output


def _with_backward(cell: Any, run: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """`run` between two identities whose gradients are what the hooks make of them."""
    if LOCAL.recorder is None:
        return run(*args, **kwargs)
    from jumar.frontend.grad import tensors_in, with_gradient  # noqa: PLC0415  (gradients are rarely hooked)

    before, after = (list(cell._hooks.get(kind, {}).values()) for kind in ("backward_pre", "backward"))
    of_output: list[tuple[Any, ...]] = []

    def at_output(*grads: Any) -> list[Any]:
        found: Any = grads
        for fn, _, _ in before:
            found = _tuple_or(fn(cell, found), found)
        of_output[:] = [tuple(found)]
        return list(found)

    def at_input(*grads: Any) -> list[Any]:
        found: Any = grads
        for fn, _, _ in after:
            found = _tuple_or(fn(cell, found, of_output[0] if of_output else ()), found)
        return list(found)

    inputs = [a for a in args if isinstance(a, Tensor)]
    if after and inputs:
        renewed = iter(with_gradient(inputs, inputs, at_input))
        args = tuple(next(renewed) if isinstance(a, Tensor) else a for a in args)
    output = run(*args, **kwargs)
    outputs = tensors_in(output)
    return _refilled(output, iter(with_gradient(outputs, outputs, at_output)))


def _tuple_or(found: Any, before: tuple[Any, ...]) -> tuple[Any, ...]:
    """What a hook returned as a tuple; what there was where it returned nothing."""
    if found is None:
        return before
    return tuple(found) if isinstance(found, tuple | list) else (found,)


def _refilled(value: Any, tensors: Iterator[Any]) -> Any:
    """The value with its tensors replaced, in order."""
    if isinstance(value, Tensor):
        return next(tensors)
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*(_refilled(v, tensors) for v in value))
    if isinstance(value, tuple | list):
        return type(value)(_refilled(v, tensors) for v in value)
    return {k: _refilled(v, tensors) for k, v in value.items()} if isinstance(value, dict) else value
