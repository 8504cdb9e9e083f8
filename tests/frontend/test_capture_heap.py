"""Tracing looks for garbage among what it made itself, not in the whole heap."""

from __future__ import annotations

import gc

import numpy as np
import pytest

from jumar.frontend import Tensor
from jumar.frontend.capture import jit, young_heap
from jumar.frontend.explain import FACTS


class Box:
    pass


def test_what_was_there_before_is_not_looked_at() -> None:
    assert gc.get_freeze_count() == 0
    with young_heap():
        assert gc.get_freeze_count() > 0
        outer = gc.get_freeze_count()
        with young_heap():
            assert gc.get_freeze_count() <= outer
        assert gc.get_freeze_count() > 0
    assert gc.get_freeze_count() == 0


def test_tensors_in_garbage_in_circles_do_not_make_a_function_replayed() -> None:
    def circles(x: Tensor) -> Tensor:
        box = Box()
        box.itself, box.value = box, x * 2
        return x + 1

    run = jit(circles)
    before = len(FACTS)
    for _ in range(2):
        assert run(Tensor(np.ones(3, np.float32))).asnumpy().tolist() == [2, 2, 2]
    (fact,) = FACTS[before:]
    assert fact.replays == 0
    assert gc.get_freeze_count() == 0


def test_a_trace_that_fails_leaves_the_heap_as_it_was() -> None:
    def fails(x: Tensor) -> Tensor:
        raise KeyError("no")

    with pytest.raises(KeyError):
        jit(fails)(Tensor(1.0))
    assert gc.get_freeze_count() == 0
