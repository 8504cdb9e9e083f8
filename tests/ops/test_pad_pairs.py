"""`ops.pad` with a pair for each dimension, as MindSpore had it up to 2.0 and clients still write it."""

from __future__ import annotations

import numpy as np

from jumar import Tensor, ops


def test_pairs_go_from_the_first_dimension_on() -> None:
    x = np.arange(6, dtype=np.float32).reshape(1, 2, 3)
    expected = np.pad(x, ((0, 0), (0, 1), (2, 1)))
    np.testing.assert_array_equal(ops.pad(Tensor(x), ((0, 0), (0, 1), (2, 1))).asnumpy(), expected)
    np.testing.assert_array_equal(ops.pad(Tensor(x), paddings=((0, 0), (0, 1), (2, 1))).asnumpy(), expected)
