"""What is special about signals: long transforms by factors, inverses, windows."""

from __future__ import annotations

import numpy as np
import pytest

from jumar.ir import Graph, f32t, interpret, param
from jumar.operators.signal import Dft, Mel, mel_matrix, window


@pytest.mark.parametrize("n", [521, 600, 1024, 1152])
@pytest.mark.parametrize("inverse", [False, True])
def test_a_long_transform_by_factors_agrees_with_fft(n: int, inverse: bool) -> None:
    x = np.random.default_rng(0).normal(size=(2, n, 2)).astype(np.float32)
    p = param("x", f32t(2, n, 2))
    (y,) = interpret(Graph("f", (p,), (Dft(n, 1, inverse).decompose(p),)), [x])
    z = (np.fft.ifft if inverse else np.fft.fft)(x[..., 0] + 1j * x[..., 1].astype(np.float64))
    np.testing.assert_allclose(y[..., 0] + 1j * y[..., 1], z, atol=2e-4)


def test_the_inverse_of_a_onesided_transform_is_the_signal() -> None:
    x = np.random.default_rng(0).normal(size=(3, 9, 1)).astype(np.float32)
    half = Dft(9, 1, onesided=True).reference(x)
    assert half.shape == (3, 5, 2)
    np.testing.assert_allclose(Dft(9, 1, inverse=True, onesided=True).reference(half), x, atol=1e-6)


@pytest.mark.parametrize("kind, function", [("hann", np.hanning), ("hamming", np.hamming), ("blackman", np.blackman)])
def test_windows_that_are_not_periodic_are_numpys(kind: str, function: object) -> None:
    expected = function(9)  # type: ignore[operator]
    np.testing.assert_allclose(window(kind, 9, periodic=False), expected, atol=8e-3 if kind == "hamming" else 1e-12)


def test_each_mel_filter_rises_to_one() -> None:
    weights = mel_matrix(Mel(8, 256, 16000, 0.0, 8000.0))
    assert weights.shape == (129, 8)
    np.testing.assert_array_equal(weights.max(0), 1)
