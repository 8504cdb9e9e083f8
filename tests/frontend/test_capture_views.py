"""Tensors that share memory outside of a capture still do when a capture writes to one of them."""

from __future__ import annotations

import numpy as np
import pytest

from jumar import Tensor
from jumar.frontend.capture import jit


@pytest.mark.parametrize("calls", [1, 3])
def test_a_write_to_a_view_made_outside_is_seen_in_its_base(calls: int) -> None:
    def f(y: Tensor) -> Tensor:
        y[0] = 100.0
        return y * 2

    g = jit(f)
    for _ in range(calls):
        base = Tensor(np.array([1, 2, 3], np.float32))
        result = g(base[1:])
        np.testing.assert_array_equal(result.asnumpy(), [200, 6])
        np.testing.assert_array_equal(base.asnumpy(), [1, 100, 3])


@pytest.mark.parametrize("graph", [False, True])
def test_one_element_is_a_view_too(graph: bool) -> None:
    def f(x: Tensor) -> Tensor:
        x = x * 1
        r = x[0]
        r.add_(1)
        return x

    result = (jit(f) if graph else f)(Tensor(np.array([1, 2, 3], np.float32)))
    np.testing.assert_array_equal(result.asnumpy(), [2, 2, 3])
