"""Captured functions: what is computed, when Python runs again, and why."""

from __future__ import annotations

import gc
import importlib
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import jumar.ops  # noqa: F401  (arithmetic of tensors)
from jumar.base import OpError
from jumar.frontend import Parameter, Tensor
from jumar.frontend.capture import Captured, jit
from jumar.frontend.grad import grad, jvp, value_and_grad, vmap
from jumar.frontend.guards import _importing

G = 3
LIST = [1, 2]
X = np.array([[1.0, -2.0, 3.0], [4.0, 5.0, -6.0]], np.float32)


@pytest.fixture
def x() -> Tensor:
    global G  # noqa: PLW0603  (what is tested)
    G = 3
    LIST[:] = [1, 2]
    return Tensor(X)


def calls(function: Captured) -> tuple[int, int]:
    """How often Python ran to record, and how often to replay."""
    return function.fact.captures, function.fact.replays


def same(expected: Any, actual: Any) -> None:
    np.testing.assert_allclose(actual.asnumpy(), expected, rtol=1e-6)


def test_a_plain_function_runs_python_once(x: Tensor) -> None:
    f = jit(lambda a: a * 2 + 1)
    for _ in range(3):
        same(X * 2 + 1, f(x))
    assert calls(f) == (1, 0)


def test_a_changed_global_is_seen(x: Tensor) -> None:
    global G  # noqa: PLW0603  (what is tested)
    f = jit(lambda a: a * G)
    same(X * 3, f(x))
    G = 5
    same(X * 5, f(x))
    assert calls(f) == (2, 0)
    assert f.fact.recaptures == ["global G"]


def test_a_changed_list_is_seen(x: Tensor) -> None:
    f = jit(lambda a: a * LIST[0] + len(LIST))
    same(X + 2, f(x))
    LIST.append(7)
    same(X + 3, f(x))
    LIST[0] = 9
    same(X * 9 + 3, f(x))


def test_a_changed_closure_and_attribute_are_seen(x: Tensor) -> None:
    class Config:
        k = 2

    config, n = Config(), 1

    def f(a: Tensor) -> Tensor:
        return a * config.k + n

    g = jit(f)
    same(X * 2 + 1, g(x))
    config.k = 4
    same(X * 4 + 1, g(x))
    n = 10
    same(X * 4 + 10, g(x))
    Config.k, _ = 6, config.__dict__.pop("k")
    same(X * 6 + 10, g(x))


def test_a_branch_on_a_value_is_taken_as_python_takes_it(x: Tensor) -> None:
    def f(a: Tensor) -> Tensor:
        if a.sum() > 0:
            return a + 1
        return a - 1

    g = jit(f)
    same(X + 1, g(x))
    same(-X - 1, g(Tensor(-X)))
    same(X + 1, g(x))
    same(-X - 1, g(Tensor(-X)))
    assert calls(g) == (2, 0)


def test_a_loop_on_a_value_ends_when_the_value_says_so(x: Tensor) -> None:
    def f(a: Tensor, n: Tensor) -> Tensor:
        i = n * 0
        while i < n:
            a = a + 1
            i = i + 1
        return a

    g = jit(f)
    for n in (3, 5, 3):
        same(X + n, g(x, Tensor(n)))


def test_a_counter_recompiles_nothing(x: Tensor) -> None:
    state = {"n": 0}

    def f(a: Tensor) -> Tensor:
        state["n"] += 1
        return a * state["n"]

    g = jit(f)
    for i in range(1, 5):
        same(X * i, g(x))
    assert calls(g) == (1, 3)
    assert g.fact.effects[0].startswith("changes")


def test_a_plain_number_argument_recompiles_nothing(x: Tensor) -> None:
    g = jit(lambda a, k: a * k)
    for k in range(40):
        same(X * k, g(x, k))


def test_printing_happens_at_each_call(x: Tensor, capsys: pytest.CaptureFixture[str]) -> None:
    def f(a: Tensor) -> Tensor:
        print("here", a.shape)
        return a + 1

    g = jit(f)
    for _ in range(3):
        same(X + 1, g(x))
    assert capsys.readouterr().out.count("here") == 3


def test_values_handed_to_numpy_are_fresh_at_each_call(x: Tensor) -> None:
    g = jit(lambda a: Tensor(np.sqrt(np.abs(a.asnumpy()))) + a)
    same(np.sqrt(np.abs(X)) + X, g(x))
    same(np.sqrt(np.abs(2 * X)) + 2 * X, g(Tensor(2 * X)))


def test_a_parameter_is_written_in_place(x: Tensor) -> None:
    p = Parameter(np.ones((2, 3), np.float32), name="p")
    memory = p.array

    def f(a: Tensor) -> Tensor:
        p.set_data(p + a)
        return p * 2

    g = jit(f)
    for i in range(1, 4):
        same(2 * (1 + i * X), g(x))
        assert p.array is memory
    assert calls(g) == (1, 0)


def test_an_argument_written_to_is_changed_for_the_caller(x: Tensor) -> None:
    def f(a: Tensor) -> Tensor:
        a[0, 0] = 100.0
        return a * 1

    g = jit(f)
    for _ in range(2):
        y = Tensor(X)
        expected = X.copy()
        expected[0, 0] = 100
        same(expected, g(y))
        same(expected, y)


def test_an_error_leaves_parameters_as_they_were(x: Tensor) -> None:
    p = Parameter(np.ones((2, 3), np.float32), name="p")

    def f(a: Tensor) -> Tensor:
        p.set_data(p + a)
        raise ValueError("stop")

    with pytest.raises(ValueError, match="stop"):
        jit(f)(x)
    same(np.ones((2, 3)), p)


def test_the_same_tensor_twice_is_another_form_than_two_tensors(x: Tensor) -> None:
    g = jit(lambda a, b: a * b)
    same(X * X, g(x, x))
    same(X * (X + 1), g(x, Tensor(X + 1)))


def test_a_shape_error_names_the_line(x: Tensor) -> None:
    def f(a: Tensor) -> Tensor:
        return a @ a

    with pytest.raises(OpError) as found:
        jit(f)(x)
    assert "return a @ a" in str(found.value)


@pytest.mark.parametrize("mode", [lambda f: f, jit], ids=["pynative", "graph"])
def test_gradients_of_gradients(mode: Callable[[Any], Any], x: Tensor) -> None:
    def cube(a: Tensor) -> Tensor:
        return (a * a * a).sum()

    value, first = mode(value_and_grad(cube))(x)
    same((X**3).sum(), value)
    same(3 * X**2, first)
    same(6 * X, mode(grad(lambda a: grad(cube)(a).sum()))(x))


def test_a_gradient_goes_through_branches_and_loops(x: Tensor) -> None:
    def f(a: Tensor) -> Tensor:
        while a.sum() < 100:
            a = a * 2
        return a.sum()

    expected, k = X.copy(), 1
    while expected.sum() < 100:
        expected, k = expected * 2, k * 2
    same(np.full_like(X, k), grad(f)(x))
    same(np.full_like(X, k), jit(grad(f))(x))


def test_jvp_and_vmap(x: Tensor) -> None:
    value, along = jvp(lambda a: a * a, (x,), (x,))
    same(X * X, value)
    same(2 * X * X, along)
    same(X.sum(1), vmap(Tensor.sum)(x))


def test_a_train_step_is_one_piece(x: Tensor) -> None:
    w = Parameter(np.ones((3, 2), np.float32), name="w")

    def step(a: Tensor) -> Tensor:
        loss, (dw,) = value_and_grad(lambda: ((a @ w) ** 2).mean(), None, [w])()  # noqa: PLW0108  (grad takes functions)
        w.set_data(w - dw * 0.01)
        return loss

    g = jit(step)
    losses = [float(g(x)) for _ in range(5)]
    assert sorted(losses, reverse=True) == losses
    assert (g.fact.captures, g.fact.replays, g.fact.pieces) == (1, 0, 1)


def test_a_returned_new_value_does_not_share_memory_with_the_parameter(x: Tensor) -> None:
    p, q = (Parameter(np.zeros((2, 3), np.float32), name=n) for n in "pq")

    def f(a: Tensor) -> tuple[Tensor, Tensor]:
        new = p + a
        p.set_data(new)
        q.set_data(new)
        return new, new

    g = jit(f)
    first = [g(x) for _ in range(3)]
    for i, (a, b) in enumerate(first, 1):
        same(i * X, a)
        same(i * X, b)
    same(3 * X, p)
    same(3 * X, q)
    p.set_data(Tensor(np.zeros((2, 3), np.float32)))
    same(3 * X, q)


def test_a_parameter_that_takes_an_argument_does_not_share_its_memory(x: Tensor) -> None:
    p = Parameter(np.zeros((2, 3), np.float32), name="p")

    def f(a: Tensor) -> Tensor:
        p.set_data(a)
        return a + 1

    g = jit(f)
    for _ in range(3):
        g(x)
        p.set_data(p * 2)
        same(X, x)
        same(2 * X, p)


def test_garbage_that_lives_longer_does_not_mix_up_a_tree(x: Tensor) -> None:
    """What is alive at a cut may differ from call to call; a tree grows only where it does what was recorded."""

    def f(a: Tensor) -> Tensor:
        junk: list[Any] = [a * 3, a * 5]
        junk.append(junk)  # a circle: it goes when the collector runs
        if junk and a.sum() > 0:
            return a * 2 + 1
        return a * 4 - 1

    g = jit(f)
    gc.disable()
    try:
        same(X * 2 + 1, g(x))
        gc.collect()
        for sign in (-1, 1, -1, 1):
            same(X * 2 + 1 if sign > 0 else -X * 4 - 1, g(Tensor(sign * X)))
    finally:
        gc.enable()


def test_what_runs_for_an_import_is_known_since_it_is_no_effect_of_the_call(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Hooks of imports are Python code that reads files and paths; an import happens once, whatever the call does."""
    (tmp_path / "imported_late.py").write_text(
        "import sys\nfrom jumar.frontend.guards import _importing\nINSIDE = _importing(sys._getframe())\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    assert importlib.import_module("imported_late").INSIDE
    assert not _importing(sys._getframe())


class Finalised:
    """Garbage in a circle, whose finaliser reads a clock and a global that it changes."""

    def __init__(self) -> None:
        self.me = self

    def __del__(self) -> None:
        CLOCK[0] = time.perf_counter()


CLOCK = [0.0]


def test_what_the_garbage_collector_calls_is_no_effect_of_the_function(x: Tensor) -> None:
    def clock(phase: str, info: dict[str, int]) -> None:
        CLOCK[0] = time.perf_counter()

    collect = gc.collect

    def f(x: Tensor) -> Tensor:
        Finalised()
        collect()
        return x * 2 + 1

    gc.callbacks.append(clock)
    try:
        g = Captured(f)
        same(X * 2 + 1, g(x))
    finally:
        gc.callbacks.remove(clock)
    assert CLOCK[0] > 0
    assert not g.fact.effects and next(iter(g.forms.values())).entries
    assert not any(getattr(c, "__self__", None) for c in gc.callbacks)
