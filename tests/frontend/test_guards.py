"""What a captured function reads is guarded; what it does besides computing happens at each call."""

from __future__ import annotations

import contextlib
import datetime
import itertools
import logging
import os
import random
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import jumar
import jumar.nn
from jumar import context, nn
from jumar.frontend import Tensor
from jumar.frontend.capture import jit

X = np.ones((2, 2), np.float32)
RNG = np.random.default_rng(0)
COUNT = itertools.count()
SEEN: list[Any] = []
log = logging.getLogger("tests.guards")


def first(value: Tensor) -> float:
    return float(value.asnumpy()[0, 0])


EFFECTS: dict[str, Callable[[Tensor], Tensor]] = {
    "np.random": lambda a: a * float(np.random.randn()),
    "a NumPy generator": lambda a: a * float(RNG.normal()),
    "random": lambda a: a * random.random(),
    "randint": lambda a: a * random.randint(0, 10**9),
    "time": lambda a: a * (time.perf_counter_ns() % 999_983),
    "an iterator": lambda a: a * next(COUNT),
    "an outer list": lambda a: (SEEN.append(1), a * len(SEEN))[1],
    "urandom": lambda a: a * int.from_bytes(os.urandom(2), "little"),
}


@pytest.mark.parametrize("f", EFFECTS.values(), ids=EFFECTS)
def test_python_that_does_more_than_compute_runs_at_each_call(f: Callable[[Tensor], Tensor]) -> None:
    g = jit(f)
    values = [first(g(Tensor(X))) for _ in range(4)]
    assert len(set(values)) > 1
    assert (g.fact.captures, g.fact.replays) == (1, 3)
    assert g.fact.effects


def test_the_clock_is_read_at_each_call() -> None:
    g = jit(lambda a: a * datetime.datetime.now().year)
    first(g(Tensor(X)))
    first(g(Tensor(X)))
    assert "datetime.now" in g.fact.effects[0]


def test_the_environment_is_read_at_each_call(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TEST_GUARDS", "2")
    g = jit(lambda a: a * float(os.environ.get("TEST_GUARDS", "1")))
    assert first(g(Tensor(X))) == 2
    monkeypatch.setenv("TEST_GUARDS", "5")
    assert first(g(Tensor(X))) == 5


class Tool:
    factor = 2

    @staticmethod
    def apply(a: Tensor) -> Tensor:
        return a + 1

    @property
    def size(self) -> int:
        return self.factor * 10


def test_a_replaced_method_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    g = jit(lambda a: Tool.apply(a) * 1)
    assert first(g(Tensor(X))) == 2
    monkeypatch.setattr(Tool, "apply", staticmethod(lambda a: a + 2))
    assert first(g(Tensor(X))) == 3


def test_a_property_reads_through(monkeypatch: pytest.MonkeyPatch) -> None:
    tool = Tool()
    g = jit(lambda a: a * tool.size)
    assert first(g(Tensor(X))) == 20
    monkeypatch.setattr(Tool, "factor", 3)
    assert first(g(Tensor(X))) == 30
    tool.factor = 4
    assert first(g(Tensor(X))) == 40


def test_nested_containers_are_followed() -> None:
    state = {"a": {"b": [1, (2, {"c": 3})]}}
    g = jit(lambda a: a * state["a"]["b"][1][1]["c"])  # type: ignore[index]
    assert first(g(Tensor(X))) == 3
    state["a"]["b"][1][1]["c"] = 7  # type: ignore[index]
    assert first(g(Tensor(X))) == 7


def test_a_global_that_shadows_a_builtin_is_seen() -> None:
    names: dict[str, Any] = {}
    exec("def f(a):\n    return a * max(1, 2)\n", names)
    g = jit(names["f"])
    assert first(g(Tensor(X))) == 2
    names["max"] = min
    assert first(g(Tensor(X))) == 1


def test_a_tensor_from_outside_is_read_anew() -> None:
    w = Tensor(X)
    g = jit(lambda a: a + w)
    assert first(g(Tensor(X))) == 2
    w[0, 0] = 5.0
    assert first(g(Tensor(X))) == 6


def test_functions_without_source_and_generators_are_captured() -> None:
    names: dict[str, Any] = {}
    exec("def f(a):\n    def parts():\n        for i in range(3):\n            yield a * i\n    return sum(parts())\n", names)
    g = jit(names["f"])
    assert [first(g(Tensor(X))) for _ in range(2)] == [3, 3]
    assert (g.fact.captures, g.fact.replays) == (1, 0)


def test_a_logger_that_is_silent_costs_nothing() -> None:
    g = jit(lambda a: (log.debug("x"), a * 2)[1])
    assert [first(g(Tensor(X))) for _ in range(2)] == [2, 2]
    assert (g.fact.captures, g.fact.replays) == (1, 0)


def test_a_cell_that_is_captured_again_does_not_read_its_own_captures() -> None:
    net = nn.SequentialCell(nn.Dense(200, 200), nn.ReLU(), nn.Dense(200, 200), nn.ReLU())
    context.set_context(mode=context.GRAPH_MODE)
    try:
        for rows in (400, 400, 400, 300):  # the second form meets what the first left in the cell
            net(Tensor(np.ones((rows, 200), np.float32)))
    finally:
        context.set_context(mode=context.PYNATIVE_MODE)
    fact = net.__dict__["_captured"].fact
    assert (fact.captures, fact.replays, fact.effects) == (2, 0, [])


def test_what_changes_at_each_call_is_replayed_in_the_end() -> None:
    global OUTER  # noqa: PLW0603  (what is tested)
    OUTER = 0
    g = jit(lambda a: a * OUTER)
    for OUTER in range(20):
        assert first(g(Tensor(X))) == OUTER
    assert g.fact.captures < 12


OUTER = 0


class Base:
    size = 2


class Derived(Base):
    pass


def test_an_attribute_that_is_shadowed_later_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    thing = Derived()
    g = jit(lambda a: a * thing.size)
    assert first(g(Tensor(X))) == 2
    monkeypatch.setattr(Derived, "size", 4, raising=False)
    assert first(g(Tensor(X))) == 4
    monkeypatch.setattr(Base, "size", 9)
    assert first(g(Tensor(X))) == 4


def test_an_attribute_that_was_not_there_is_seen() -> None:
    thing = Tool()
    g = jit(lambda a: a * getattr(thing, "zz", 3) * (5 if hasattr(thing, "ww") else 1))
    assert first(g(Tensor(X))) == 3
    thing.zz = 10  # type: ignore[attr-defined]
    assert first(g(Tensor(X))) == 10
    thing.ww = 1  # type: ignore[attr-defined]
    assert first(g(Tensor(X))) == 50


class Counting:
    entered = 0
    total = 0

    def __enter__(self) -> None:
        self.entered += 1

    def __exit__(self, *_: object) -> None:
        self.entered += 10
        type(self).total += 1


def test_effects_of_a_context_manager_happen_at_each_call() -> None:
    manager = Counting()

    def f(a: Tensor) -> Tensor:
        with manager:
            return a * 2

    g = jit(f)
    for _ in range(3):
        assert first(g(Tensor(X))) == 2
    assert (manager.entered, Counting.total) == (33, 3)


def test_a_changed_dict_argument_is_changed_at_each_call() -> None:
    def f(d: dict[str, Any], a: Tensor) -> dict[str, Any]:
        d["y"] = a * 2
        d.pop("z", None)
        return d

    g = jit(f)
    for _ in range(3):
        given: dict[str, Any] = {"z": 1}
        assert g(given, Tensor(X)) is given
        assert list(given) == ["y"]
        assert first(given["y"]) == 2


EVENTS: list[str] = []


@contextlib.contextmanager
def noted() -> Iterator[None]:
    EVENTS.append("in")
    try:
        yield
    finally:
        EVENTS.append("out")


def test_effects_of_a_generator_happen_at_each_call() -> None:
    def f(a: Tensor) -> Tensor:
        with noted():
            if a.sum() > 0:
                return a * 2
            return a

    g = jit(f)
    for _ in range(4):
        assert first(g(Tensor(X))) == 2
    assert EVENTS == ["in", "out"] * 4


def test_effects_in_a_local_class_and_in_a_decorated_helper_happen_at_each_call() -> None:
    made: list[str] = []

    class Maker:
        def __init__(self, k: int) -> None:
            made.append("made")
            self.k = k

    @contextlib.contextmanager
    def helper() -> Iterator[None]:
        made.append("helped")
        yield

    def f(a: Tensor) -> Tensor:
        with helper():
            return a * Maker(3).k

    g = jit(f)
    for _ in range(4):
        assert first(g(Tensor(X))) == 3
    assert made == ["helped", "made"] * 4


def test_an_attribute_that_a_network_gets_later_is_seen() -> None:
    class Net(jumar.nn.Cell):
        def construct(self, a: Tensor) -> Tensor:
            try:
                scale = self.scale
            except AttributeError:
                scale = 1
            return a * (100 if getattr(self, "debug", False) else 1) * scale

    net = Net()
    g = jit(net)
    assert first(g(Tensor(X))) == 1
    net.debug = True
    assert first(g(Tensor(X))) == 100
    net.scale = 2
    assert first(g(Tensor(X))) == 200


def test_defaults_and_code_of_functions_and_bytes_are_guarded() -> None:
    def helper(a: Tensor, k: int = 2) -> Tensor:
        return a * k

    data = bytearray(b"\x03")
    g = jit(lambda a: helper(a) * data[0])
    assert first(g(Tensor(X))) == 6
    helper.__defaults__ = (5,)
    assert first(g(Tensor(X))) == 15
    data[0] = 1
    assert first(g(Tensor(X))) == 5


def test_the_context_is_guarded() -> None:
    g = jit(lambda a: a * (2 if jumar.get_context("jit_syntax_level") == jumar.LAX else 3))
    before = jumar.get_context("jit_syntax_level")
    try:
        jumar.set_context(jit_syntax_level=jumar.LAX)
        assert first(g(Tensor(X))) == 2
        jumar.set_context(jit_syntax_level=jumar.STRICT)
        assert first(g(Tensor(X))) == 3
    finally:
        jumar.set_context(jit_syntax_level=before)
