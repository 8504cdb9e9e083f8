"""Random bits: the same numbers as the reference, for any size."""

from __future__ import annotations

import numpy as np
import pytest
from tests.operators.cpu.nodes import run_node

from jumar.base import TensorType, u64
from jumar.ir import param
from jumar.operators import RandomBits


@pytest.mark.parametrize("size", [1, 3, 31, 32, 33, 100, 16384, 16385, 50007])
def test_random_bits_are_those_of_the_reference(size: int) -> None:
    key, offset = param("key", TensorType((), u64)), param("offset", TensorType((), u64))
    for seed, at in ((0, 0), (2**63 + 11, 2**40 + 3)):
        values = {key: np.array(seed, np.uint64), offset: np.array(at, np.uint64)}
        op = RandomBits((size,))
        np.testing.assert_array_equal(run_node(op(key, offset), values), op.reference(*values.values()))
