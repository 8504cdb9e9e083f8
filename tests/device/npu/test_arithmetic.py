"""How a chip rounds: against NumPy, ml_dtypes and exact arithmetic, for any numbers."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from jumar.base import DTYPES, DeviceError, bf16, f16
from jumar.device.npu import arithmetic, chips, find_chip, hf32, limits, rounded

NUMBERS = arrays(np.float32, st.integers(1, 20), elements=st.floats(width=32, allow_nan=True, allow_infinity=True))
FINITE = arrays(np.float32, st.integers(1, 20), elements=st.floats(width=32, allow_nan=False, allow_infinity=False))


@given(NUMBERS)
def test_with_infinities_fp16_and_bf16_round_as_numpy_and_ml_dtypes(x: np.ndarray) -> None:
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(rounded(x, f16), x.astype(np.float16))
        np.testing.assert_array_equal(rounded(x, bf16).astype(np.float32), x.astype(ml_dtypes.bfloat16).astype(np.float32))


@given(NUMBERS)
def test_saturation_has_no_infinity_and_no_nan_and_is_the_same_within_the_range(x: np.ndarray) -> None:
    y = rounded(x, f16, saturates=True).astype(np.float32)
    assert np.isfinite(y).all() and (np.abs(y) <= 65504).all()
    assert (y[np.isnan(x)] == 0).all()
    there = np.abs(x) < limits(f16).too_large
    np.testing.assert_array_equal(y[there], x[there].astype(np.float16).astype(np.float32))
    assert (y[~there & ~np.isnan(x)] == np.sign(x[~there & ~np.isnan(x)]) * 65504).all()


@given(FINITE)
def test_hf32_is_the_nearest_number_with_eleven_bits_of_mantissa(x: np.ndarray) -> None:
    x = x[np.abs(x) >= np.float32(2.0**-126)]
    exact = x.astype(np.float64)
    step = np.exp2(np.floor(np.log2(np.abs(exact))) - 11) if exact.size else exact
    with np.errstate(over="ignore"):
        np.testing.assert_array_equal(hf32(x), (np.rint(exact / step) * step).astype(np.float32))


@given(NUMBERS)
def test_hf32_keeps_its_own_numbers_and_the_special_ones(x: np.ndarray) -> None:
    y = hf32(x)
    np.testing.assert_array_equal(hf32(y), y)
    np.testing.assert_array_equal(np.isnan(y), np.isnan(x))
    assert (y[np.isinf(x)] == x[np.isinf(x)]).all()
    assert ((y.view(np.uint32) & 0xFFF)[~np.isnan(x)] == 0).all()


@given(st.floats(0.5, 2.0, width=32), st.floats(0.5, 2.0, width=32))
def test_hf32_keeps_the_order(a: float, b: float) -> None:
    low, high = hf32(np.sort(np.array([a, b], np.float32)))
    assert low <= high


def test_hf32_keeps_the_shape() -> None:
    assert hf32(np.ones((2, 3), np.float32)[:, ::2]).shape == (2, 2)
    assert hf32(np.float32(1.0 + 2**-13).reshape(())).shape == ()


@pytest.mark.parametrize("name, there", [("f16", 65520.0), ("bf16", 2.0**128 * (1 - 2.0**-9))])
def test_the_first_number_that_is_too_large(name: str, there: float) -> None:
    dtype = DTYPES[name]
    assert limits(dtype).too_large == there
    below = np.nextafter(np.float32(there), np.float32(0)) if name == "f16" else np.float32(there * (1 - 2**-20))
    assert np.isfinite(rounded(np.array([below]), dtype).astype(np.float32)).all()


def test_eight_bit_floats_saturate() -> None:
    y = rounded(np.array([1e6, -1e6, 0.3], np.float32), DTYPES["f8e4m3fn"]).astype(np.float32)
    np.testing.assert_array_equal(y, np.array([448, -448, 0.3125], np.float32))


def test_what_is_not_set_is_the_chips_own() -> None:
    old, new = arithmetic(find_chip("910A")), arithmetic(find_chip("910B4"))
    assert (old.saturates, old.cube_f32, old.hf32_conv, old.bf16) == (True, False, False, False)
    assert (new.saturates, new.cube_f32, new.hf32_conv, new.hf32_matmul, new.bf16) == (False, True, True, False, True)
    assert [arithmetic(c).steps for c in chips()] == [c.name == "Ascend310" for c in chips()]


def test_modes_are_set() -> None:
    set_ = arithmetic(find_chip("910B4"), infnan=False, hf32=False)
    assert set_.saturates and not set_.hf32_conv
    assert arithmetic(find_chip("910B4"), hf32=True).hf32_matmul
    assert "HF32 in convolutions and matrix products" in str(arithmetic(find_chip("910B4"), hf32=True))


@pytest.mark.parametrize(
    "name, mode, what",
    [
        ("910A", {"infnan": True}, "must be saturation on Ascend910A"),
        ("950PR_9599", {"infnan": False}, "must be inf and nan on Ascend950PR_9599"),
        ("310P3", {"hf32": True}, "HF32 must be off on Ascend310P3"),
    ],
)
def test_a_mode_that_the_chip_lacks_is_refused(name: str, mode: dict[str, bool], what: str) -> None:
    with pytest.raises(DeviceError, match=what) as error:
        arithmetic(find_chip(name), **mode)
    assert error.value.code == "soc-mode"


def test_the_cube_reads_fp32_as_it_can() -> None:
    x = np.array([1 + 2.0**-12, 1e5], np.float32)
    assert arithmetic(find_chip("910B4"), hf32=False).product_input(x, conv=True) is x
    np.testing.assert_array_equal(arithmetic(find_chip("910B4")).product_input(x, conv=True), hf32(x))
    np.testing.assert_array_equal(arithmetic(find_chip("310P3")).product_input(x, conv=False), np.array([1, 65504], np.float32))
    half = np.ones(2, np.float16)
    assert arithmetic(find_chip("910B4")).product_input(half, conv=True).dtype == np.float32
