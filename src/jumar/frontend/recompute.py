"""Recomputation: a block whose inner values the backward pass computes again instead of keeping them.

In: a function on tensors, its arguments, and the parameters that it reads.  Out: its result, with a gradient that runs the function once more, from
inputs that count as new (operators.After), and differentiates that run.  Random numbers are the same ones again, and assignments happen once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from jumar.frontend.engine import apply
from jumar.frontend.grad import differentiate, refilled, tensors_in, with_gradient
from jumar.frontend.random import DEFAULT
from jumar.frontend.recorder import Capture, Recorder
from jumar.frontend.tensor import LOCAL, Tensor
from jumar.operators import After


def recomputed(function: Callable[..., Any], args: Sequence[Any], kwargs: dict[str, Any], parameters: Sequence[Tensor]) -> Any:
    """The function's result; under a recorder its inner values are not kept for the gradient."""
    recorder = LOCAL.recorder
    if recorder is None:
        return function(*args, **kwargs)
    before = _position(recorder)
    read = [p for p in parameters if getattr(p, "requires_grad", True)]
    nodes = [recorder.node_of(p) for p in read]
    result = function(*args, **kwargs)
    inputs = tensors_in([*args, *kwargs.values()])

    def backward(*douts: Tensor) -> list[Tensor]:
        fresh = [apply(After(), t, douts[0]) for t in inputs]
        rest = iter(fresh)
        again = [_put(a, rest) for a in args], {k: _put(v, rest) for k, v in kwargs.items()}
        with _same_draws(recorder, before), recorder.without_writes():
            outputs = tensors_in(function(*again[0], **again[1]))
        wrt = [*map(recorder.node_of, fresh), *nodes]
        return differentiate(recorder, [recorder.node_of(t) for t in outputs], wrt, list(douts))

    outputs = tensors_in(result)
    return refilled(result, with_gradient(outputs, [*inputs, *read], backward))


def _put(value: Any, rest: Iterator[Tensor]) -> Any:
    if isinstance(value, Tensor):
        return next(rest)
    if isinstance(value, tuple | list):
        return type(value)([_put(v, rest) for v in value])
    if isinstance(value, dict):
        return type(value)((k, _put(v, rest)) for k, v in value.items())
    return value


def _position(recorder: Recorder) -> tuple[int, int]:
    """Where the stream of random numbers is."""
    return DEFAULT.offset, recorder.draws.get(DEFAULT, 0) if isinstance(recorder, Capture) else 0


@contextmanager
def _same_draws(recorder: Recorder, before: tuple[int, int]) -> Iterator[None]:
    """Inside, the numbers of the first run are drawn again; afterwards the stream is where it was."""
    now = _position(recorder)
    _move(recorder, before)
    try:
        yield
    finally:
        _move(recorder, now)


def _move(recorder: Recorder, position: tuple[int, int]) -> None:
    DEFAULT.offset = position[0]
    if isinstance(recorder, Capture) and DEFAULT in recorder.draws:
        recorder.draws[DEFAULT] = position[1]
