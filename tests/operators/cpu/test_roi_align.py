"""RoiAlign over boxes inside, across and outside of the image, with as many points as asked for or as the bins have cells."""

from __future__ import annotations

import numpy as np
import pytest
from tests.operators.cpu.run import check

from jumar.operators import RoiAlign

RNG = np.random.default_rng(13)
BOXES = np.array([[0, 0, 4, 4], [1.5, 2, 5, 5.5], [-3, -2, 12, 9], [20, 20, 30, 30], [3, 3, 3, 3], [4, 4, 1, 1], [0.2, 0.1, 6.9, 7.8]], "f")


@pytest.mark.parametrize("mode", ["avg", "max"])
@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
def test_boxes(mode: str, dtype: str) -> None:
    batch = np.array([0, 1, 1, 0, 1, 0, 1])
    for c in (1, 8, 19):
        x = RNG.standard_normal((2, c, 7, 8)).astype(dtype)
        for out, sampling, scale, half_pixel in (
            ((1, 1), 0, 1.0, True),
            ((2, 3), 2, 0.5, False),
            ((3, 2), 0, 0.7, False),
            ((4, 4), 3, 1.3, True),
        ):
            check(RoiAlign(out, mode, sampling, scale, half_pixel), x, BOXES.astype(dtype), batch, scale=2)
