"""Runs a node that reads constants, or a fused group, by its own schedule: for the tests of contractions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from tests.operators.cpu.run import lower, run_task

from jumar.base import Array, type_of
from jumar.ir import Graph, Node, interpret, param
from jumar.operators.fused import Fused
from jumar.operators.schedule import Lowered, Place

GUARD = 128


def run_node(node: Node, values: dict[Node, Array], lowered: Lowered | None = None) -> Array:
    """The node's only result by its tasks.   values: of its inputs that are no constants."""
    lowered = lowered or lower(node)
    assert lowered is not None, f"{node.op} has a schedule"
    memory: dict[Any, Array] = {(n, 0): np.ascontiguousarray(v) for n, v in values.items()}
    guarded = np.full(node.type.nbytes + 2 * GUARD, 0xAB, np.uint8)
    memory[node, 0] = guarded[GUARD:-GUARD]
    scratch = np.full(max((t.scratch_nbytes for t in lowered.tasks), default=0) + 64, 0x7F, np.uint8)
    for task in lowered.tasks:
        for arg in task.args:
            if isinstance(arg, Place) and (arg.node, arg.result) not in memory:
                assert arg.node.array is not None, f"{arg.node} has a value"
                memory[arg.node, arg.result] = np.ascontiguousarray(arg.node.array)
        run_task(task, memory, scratch)
    assert (guarded[:GUARD] == 0xAB).all() and (guarded[-GUARD:] == 0xAB).all(), "a kernel wrote outside of its result"
    return guarded[GUARD:-GUARD].view(node.type.dtype.numpy).reshape(node.type.dims)


def fused(build: Callable[..., Node], *arrays: Array) -> tuple[Node, dict[Node, Array]]:
    """A fused group of what `build` makes from its parameters, and the values of its inputs."""
    inner = [param(f"x{i}", type_of(a)) for i, a in enumerate(arrays)]
    outer = [param(f"p{i}", type_of(a)) for i, a in enumerate(arrays)]
    return Fused(Graph("group", tuple(inner), (build(*inner),)))(*outer), dict(zip(outer, arrays, strict=True))


def check_fused(build: Callable[..., Node], *arrays: Array, tolerance: float = 3e-6) -> None:
    """The group's tasks give what its body means."""
    node, values = fused(build, *arrays)
    assert isinstance(node.op, Fused), "a group"
    (expected,) = interpret(node.op.body, arrays)
    close(expected, run_node(node, values), tolerance)


def close(expected: Array, actual: Array, tolerance: float) -> None:
    """Equal to a part of the largest value; integers exactly."""
    assert expected.shape == actual.shape, (expected.shape, actual.shape)
    if not np.issubdtype(actual.dtype, np.integer):
        wide = expected.astype(np.float64)
        error = np.abs(actual.astype(np.float64) - wide).max(initial=0) / max(np.abs(wide).max(initial=0), 1e-30)
        assert error <= tolerance, f"error {error} of the scale"
    else:
        np.testing.assert_array_equal(expected, actual)


def random(rng: np.random.Generator, *shape: int, dtype: Any = np.float32) -> Array:
    """Numbers around 0."""
    if np.issubdtype(np.dtype(dtype), np.integer):
        low, high = (0, 9) if np.dtype(dtype).kind == "u" else (-9, 9)
        return rng.integers(low, high, shape).astype(dtype)
    return rng.standard_normal(shape).astype(dtype)


Shapes = Sequence[tuple[int, ...]]
