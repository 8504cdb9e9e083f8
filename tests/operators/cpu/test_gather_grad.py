"""What a table receives: every axis, doubled and negative indices, tables cut by rows and by columns."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from tests.operators.cpu.run import check

from jumar.base import RuntimeFault, type_of
from jumar.compiler import compile
from jumar.device import Target, host
from jumar.ir import Graph, apply, param
from jumar.operators import GatherGrad
from jumar.operators.cpu.gather_grad import lower_gather_grad

RNG = np.random.default_rng(4)


def arrays(shape: tuple[int, ...], axis: int, index_shape: tuple[int, ...], dtype: Any = np.float32) -> tuple[np.ndarray, np.ndarray]:
    indices = RNG.integers(-shape[axis], shape[axis], index_shape).astype(RNG.choice(["int32", "int64"]))
    return RNG.standard_normal((*shape[:axis], *index_shape, *shape[axis + 1 :])).astype(dtype), indices


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
def test_gradients(dtype: str) -> None:
    for shape in [(7,), (5, 3), (4, 9, 64), (2, 6, 17), (500, 9), (3, 300), (2, 1000), (1000, 130)]:
        for axis in range(len(shape)):
            for index_shape in [(), (1,), (11,), (2, 30)]:
                check(GatherGrad(axis, shape), *arrays(shape, axis, index_shape, dtype), scale=2)
    check(GatherGrad(0, (3, 4)), *arrays((3, 4), 0, (0,), dtype))


def test_many_narrow_numbers_are_summed_in_wide_ones() -> None:
    check(GatherGrad(0, (2, 3)), np.full((5000, 3), 0.1, np.float16), np.zeros(5000, np.int64))


@pytest.mark.parametrize("shape, parts", [((1000, 768), 8), ((2, 768), 8), ((130, 256), 8), ((3, 5), 1), ((100000,), 8)])
def test_chunks_own_rows_or_columns(shape: tuple[int, ...], parts: int) -> None:
    target: Target = replace(host(), cores=2)
    dy, indices = arrays(shape, 0, (40,))
    lowered = lower_gather_grad(apply(GatherGrad(0, shape), param("dy", type_of(dy)), param("i", type_of(indices))), target)
    assert lowered is not None and [t.chunks for t in lowered.tasks] == [parts]


def test_threads_give_the_same_and_a_foreign_index_is_an_error() -> None:
    shape = (5000, 200)
    dy, indices = arrays(shape, 0, (8, 128))
    params = (param("dy", type_of(dy)), param("i", type_of(indices)))
    instance = compile(Graph("g", params, (GatherGrad(0, shape)(*params),))).instance(threads=2)
    expected = GatherGrad(0, shape).reference(dy, indices)
    np.testing.assert_allclose(instance.run([dy, indices])[0], expected, rtol=1e-6, atol=1e-6)
    indices[3, 5] = 5000
    with pytest.raises(RuntimeFault, match="indices must be within"):
        instance.run([dy, indices])
