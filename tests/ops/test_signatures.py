"""Forms of arguments that depend on their names or kinds: pairs for `ops.pad` (MindSpore up to 2.0), NumPy's keywords of `max`."""

from __future__ import annotations

import numpy as np

from jumar import Tensor, ops


def test_pairs_go_from_the_first_dimension_on() -> None:
    x = np.arange(6, dtype=np.float32).reshape(1, 2, 3)
    expected = np.pad(x, ((0, 0), (0, 1), (2, 1)))
    np.testing.assert_array_equal(ops.pad(Tensor(x), ((0, 0), (0, 1), (2, 1))).asnumpy(), expected)
    np.testing.assert_array_equal(ops.pad(Tensor(x), paddings=((0, 0), (0, 1), (2, 1))).asnumpy(), expected)


def test_max_with_numpys_keywords_gives_values_only() -> None:
    """As MindSpore 2.10 does: `max(1)` and `max(1, keepdim=True)` are pairs, `max(1, keepdims=True)` and `max(axis=1)` are not."""
    x = Tensor(np.array([[1, 3, 2], [6, 4, 5]], np.float32))
    np.testing.assert_array_equal(x.max(1, keepdims=True).asnumpy(), [[3], [6]])
    np.testing.assert_array_equal(x.min(axis=1).asnumpy(), [1, 4])
    values, places = x.max(1, keepdim=True)
    np.testing.assert_array_equal(values.asnumpy(), [[3], [6]])
    np.testing.assert_array_equal(places.asnumpy(), [[1], [0]])
