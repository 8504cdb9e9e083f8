"""What host steps name."""

import numpy as np

from jumar.compiler import host_function


def test_host_function_runs_the_reference_of_an_operator_from_its_text():
    x = np.array([[3.0, 1.0, 2.0]], np.float32)
    assert host_function("cum_sum(axis=1)")(x).tolist() == [[3.0, 4.0, 6.0]]
    assert host_function("transpose(perm=(1, 0))")(x).shape == (3, 1)
