"""Storage formats: shapes as measured profiles list them, and layouts against plain loops."""

from __future__ import annotations

import numpy as np
import pytest

from jumar.base import DeviceError, bf16, bool_, f16, f32, i8
from jumar.device.npu.formats import channel_block, from_format, stored_nbytes, stored_shape, to_format


@pytest.mark.parametrize(
    "shape, format, dtype, expected",
    [
        # as the profile of an AlexNet on a 910B2 lists them: fp32 on the cube has blocks of 8 channels
        ((32, 3, 224, 224), "NC1HWC0:8", f32, (32, 1, 224, 224, 8)),
        ((192, 64, 5, 5), "FRACTAL_Z:8", f32, (200, 12, 16, 8)),
        ((256, 384, 3, 3), "FRACTAL_Z:8", f32, (432, 16, 16, 8)),
        ((32, 192, 13, 13), "NC1HWC0", f32, (32, 12, 13, 13, 16)),
        ((1, 3, 640, 640), "NC1HWC0", i8, (1, 1, 640, 640, 32)),
        ((64, 3, 7, 7), "FRACTAL_Z", f16, (49, 4, 16, 16)),
        ((8, 2048), "NC1HWC0", f16, (8, 128, 1, 1, 16)),
        ((12, 128, 64), "FRACTAL_NZ", f16, (12, 4, 8, 16, 16)),
        ((197, 768), "FRACTAL_NZ", bf16, (48, 13, 16, 16)),
        ((256, 512), "FRACTAL_NZ", i8, (16, 16, 16, 32)),
        ((2, 20, 4, 6, 6), "NDC1HWC0", f16, (2, 4, 2, 6, 6, 16)),
        ((33, 20, 3, 3, 3), "FRACTAL_Z_3D", f16, (54, 3, 16, 16)),
        ((5, 7), "ND", f16, (5, 7)),
    ],
)  # fmt: skip
def test_stored_shape_is_as_profiles_list_it(shape, format, dtype, expected) -> None:
    assert stored_shape(shape, format, dtype) == expected


def test_filters_of_a_depthwise_convolution_share_blocks() -> None:
    # 16 groups of one channel fill a block of 16 channels, so 64 channels need 4 blocks of each tap
    assert stored_shape((64, 1, 3, 3), "FRACTAL_Z", f16, groups=64) == (4 * 9, 1, 16, 16)


def test_block_of_channels_is_32_bytes_but_16_at_least() -> None:
    assert [channel_block(d) for d in (f16, f32, i8, bool_)] == [16, 16, 32, 16]


def test_bytes_count_the_padding() -> None:
    assert stored_nbytes((1, 3, 8, 8), "NC1HWC0", f16) == 8 * 8 * 16 * 2


def test_image_in_blocks_of_channels_against_a_loop() -> None:
    x = np.random.default_rng(0).standard_normal((2, 19, 3, 4)).astype(np.float16)
    y = to_format(x, "NC1HWC0")
    expected = np.zeros((2, 2, 3, 4, 16), np.float16)
    for n, c, h, w in np.ndindex(*x.shape):
        expected[n, c // 16, h, w, c % 16] = x[n, c, h, w]
    np.testing.assert_array_equal(y, expected)


def test_filters_in_fractals_against_a_loop() -> None:
    x = np.random.default_rng(0).standard_normal((18, 20, 3, 2)).astype(np.float16)
    y = to_format(x, "FRACTAL_Z")
    expected = np.zeros((2 * 3 * 2, 2, 16, 16), np.float16)
    for k, c, h, w in np.ndindex(*x.shape):
        expected[(c // 16 * 3 + h) * 2 + w, k // 16, k % 16, c % 16] = x[k, c, h, w]
    np.testing.assert_array_equal(y, expected)


def test_matrix_in_fractals_against_a_loop() -> None:
    x = np.random.default_rng(0).standard_normal((2, 20, 35)).astype(np.float16)
    y = to_format(x, "FRACTAL_NZ")
    expected = np.zeros((2, 3, 2, 16, 16), np.float16)
    for b, m, n in np.ndindex(*x.shape):
        expected[b, n // 16, m // 16, m % 16, n % 16] = x[b, m, n]
    np.testing.assert_array_equal(y, expected)


def test_depthwise_filters_lie_on_the_diagonal_of_their_block() -> None:
    x = np.random.default_rng(0).standard_normal((20, 1, 2, 3)).astype(np.float16)
    y = to_format(x, "C1HWNCoC0")
    expected = np.zeros((2, 2, 3, 1, 16, 16), np.float16)
    for c, n, h, w in np.ndindex(*x.shape):
        expected[c // 16, h, w, n, c % 16, c % 16] = x[c, n, h, w]
    np.testing.assert_array_equal(y, expected)


@pytest.mark.parametrize(
    "shape, format",
    [((2, 19, 3, 4), "NC1HWC0"), ((2, 19, 5), "NC1HWC0"), ((2, 19), "NC1HWC0"), ((2, 19, 2, 3, 4), "NDC1HWC0"), ((18, 20, 3, 2), "FRACTAL_Z"),
     ((18, 20, 3), "FRACTAL_Z"), ((18, 20, 2, 3, 2), "FRACTAL_Z_3D"), ((20, 1, 2, 3), "C1HWNCoC0"), ((3, 20, 35), "FRACTAL_NZ"), ((35,), "FRACTAL_NZ"),
     ((3, 4), "ND")],
)  # fmt: skip
def test_what_went_in_comes_out_and_has_the_stored_shape(shape, format) -> None:
    x = np.random.default_rng(0).standard_normal(shape).astype(np.float16)
    y = to_format(x, format)
    assert y.shape == stored_shape(shape, format, f16)
    np.testing.assert_array_equal(from_format(y, format, shape), x)


def test_unknown_format_names_the_nearest() -> None:
    with pytest.raises(DeviceError, match=r"name must be one of .*got 'NC1HWC1'") as caught:
        stored_shape((1, 2, 3, 4), "NC1HWC1", f16)
    assert "NC1HWC0" in caught.value.hint


def test_shape_that_does_not_fit_is_refused() -> None:
    with pytest.raises(DeviceError, match=r"a tensor in NDC1HWC0 must have 5 dimensions, got shape \[2, 3\]"):
        stored_shape((2, 3), "NDC1HWC0", f16)
