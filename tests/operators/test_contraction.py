"""What is special about contractions: types that sum wider, transposed convolutions as the gradient of convolutions, letters of einsum."""

from __future__ import annotations

import numpy as np
import pytest

from jumar.base import OpError, f32, i8, i32, i64, u8
from jumar.ir import Graph, f32t, interpret, param, tensor
from jumar.operators.contraction import Conv, ConvTranspose, Einsum, MatMul, accumulator, einsum_terms
from jumar.operators.windows import windows_out


def test_integers_sum_in_32_bits_and_wrap() -> None:
    x = np.full((1, 3), 2**30, np.int32)
    y = MatMul().reference(x, np.full((3, 1), 2, np.int32))
    assert y.dtype == np.int32
    assert y.tolist() == [[-(2**31)]]
    assert [accumulator(d) for d in (u8, i32, i64, f32)] == [i32, i32, i64, f32]


def test_bytes_of_two_signs_multiply() -> None:
    assert MatMul().infer(tensor(u8, 2, 3), tensor(i8, 3, 4)) == tensor(i32, 2, 4)


def test_matmul_names_the_dimension_that_does_not_fit() -> None:
    with pytest.raises(OpError, match=r"dimension k must be the same in x and w, got 3 in x\[8, 2, 3\] and 5 in w\[5, 3\]"):
        MatMul()(param("x", f32t(8, 2, 3)), param("w", f32t(5, 3)))


def test_a_kernel_larger_than_its_input_is_refused() -> None:
    with pytest.raises(OpError, match="kernel must fit the padded input"):
        windows_out("conv", (3,), (6,), (1,), (0,), (0,), (1,))


@pytest.mark.parametrize("stride, dilation, low, high", [(1, 1, 0, 0), (2, 1, 1, 1), (3, 2, 2, 1), (2, 3, 0, 2)])
def test_transposed_convolution_is_the_adjoint_of_convolution(stride: int, dilation: int, low: int, high: int) -> None:
    rng = np.random.default_rng(0)
    conv = Conv((stride,), (low,), (high,), (dilation,), 2)
    x, w = rng.normal(size=(2, 4, 11)), rng.normal(size=(6, 2, 3))
    y = conv.reference(x, w)
    dy = rng.normal(size=y.shape)
    extra = 11 + low + high - (y.shape[2] - 1) * stride - dilation * 2 - 1
    dx = ConvTranspose((stride,), (low,), (high,), (extra,), (dilation,), 2).reference(dy, w)
    assert dx.shape == x.shape
    np.testing.assert_allclose((y * dy).sum(), (x * dx).sum())


def test_depthwise_channels_last_convolution_is_the_same_convolution() -> None:
    rng = np.random.default_rng(0)
    x, w, b = rng.normal(size=(1, 4, 6, 5)), rng.normal(size=(8, 1, 3, 3)), rng.normal(size=8)
    first = Conv((2, 1), (1, 0), (1, 1), (1, 1), 4).reference(x, w, b)
    last = Conv((2, 1), (1, 0), (1, 1), (1, 1), 4, channels_last=True).reference(x.transpose(0, 2, 3, 1), w, b)
    np.testing.assert_array_equal(first, last.transpose(0, 3, 1, 2))


def test_an_equation_without_arrow_sorts_the_letters_that_stand_once() -> None:
    assert einsum_terms("...b,ba", [3, 2]) == (["ABb", "ba"], "ABa")


def test_einsum_with_a_letter_of_two_sizes_is_refused() -> None:
    with pytest.raises(OpError, match="j must have one size, got 3 and 4"):
        Einsum("ij,jk->ik")(param("a", f32t(2, 3)), param("b", f32t(4, 5)))


@pytest.mark.parametrize("equation, shapes", [("iij->j", [(3, 3, 2)]), ("ab,b,ac->c", [(2, 3), (3,), (2, 4)]), ("i,i->", [(5,), (5,)])])
def test_einsum_decomposes_sums_and_diagonals(equation: str, shapes: list[tuple[int, ...]]) -> None:
    rng = np.random.default_rng(0)
    arrays = [rng.normal(size=s).astype(np.float32) for s in shapes]
    params = tuple(param(f"x{i}", f32t(*s)) for i, s in enumerate(shapes))
    (got,) = interpret(Graph("e", params, (Einsum(equation).decompose(*params),)), arrays)
    np.testing.assert_allclose(got, np.einsum(equation, *arrays), rtol=1e-5, atol=1e-6)
