"""Gradients of convolutions: a grid of shapes against the reference in f64; phases, groups, depthwise, what is fused behind."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from tests.operators.cpu.nodes import check_fused, close, random, run_node

from jumar.base import Array, type_of
from jumar.device import host
from jumar.device.cpu import named
from jumar.ir import Op, constant, param
from jumar.operators import Add, Conv, ConvGradInput, ConvGradWeight, Greater, Mul, Select
from jumar.operators.cpu.contraction import lower_contraction
from jumar.operators.cpu.conv_grad_weight import lower_weight_gradient


def exact(op: Op, *arrays: Array) -> Array:
    return np.asarray(op.reference(*(a.astype(np.float64) for a in arrays)))


def check(op: Op, a: Array, b: Array, tolerance: float = 2e-5, fixed: bool = False) -> None:
    first, second = param("a", type_of(a)), constant(b) if fixed else param("b", type_of(b))
    node = op(first, second)
    close(exact(op, a, b), run_node(node, {first: a, second: b}), tolerance)


CHANNELS = [1, 3, 8, 17, 24, 40]
KERNELS = [(1, 1), (3, 3), (5, 5), (7, 7), (1, 3), (2, 5), (3, 4)]
STRIDES = [(1, 1), (2, 2), (1, 2), (3, 2), (4, 4)]


def cases() -> list[tuple[Any, ...]]:
    """One of each axis in turn."""
    rng = np.random.default_rng(1)
    found = []
    for i, (c, kernel) in enumerate(itertools.product(CHANNELS, KERNELS)):
        k, groups = CHANNELS[(i * 3 + 1) % 6], (1, 1, 1, 2)[i % 4]
        strides, dilations = STRIDES[i % 5], (1, 1) if max(kernel) > 3 else tuple(int(d) for d in rng.integers(1, 4, 2))
        spatial = tuple(int(s) for s in rng.integers(8, 15, 2))
        low, high = (tuple(int(p) for p in rng.integers(0, kernel[0] + 1, 2)) for _ in range(2))
        found.append(((1, 3)[i % 2], c * groups, k * groups, groups, spatial, kernel, strides, dilations, low, high))
    return found


def sizes(
    n: int, c: int, k: int, groups: int, spatial: Any, kernel: Any, op: Conv
) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
    """Shapes of x, w, dy, channels last."""
    x, w = (n, *spatial, c), (k, c // groups, *kernel)
    y = op.infer(type_of(np.zeros(x, np.float32)), type_of(np.zeros(w, np.float32)))
    return x, w, y.dims  # type: ignore[union-attr]


@pytest.mark.parametrize("n, c, k, groups, spatial, kernel, strides, dilations, low, high", cases())
def test_gradient_of_the_input_of_many_shapes(
    n: int, c: int, k: int, groups: int, spatial: Any, kernel: Any, strides: Any, dilations: Any, low: Any, high: Any
) -> None:
    rng = np.random.default_rng(0)
    conv = Conv(strides, low, high, dilations, groups, channels_last=True)
    x, w, y = sizes(n, c, k, groups, spatial, kernel, conv)
    op = ConvGradInput(x, strides, low, high, dilations, groups, channels_last=True)
    check(op, random(rng, *y), random(rng, *w), fixed=c % 2 == 0)


@pytest.mark.parametrize("cpu", ["x86-64-v2", "haswell", "skylake-avx512"])
@pytest.mark.parametrize("fixed", [False, True])
@pytest.mark.parametrize(
    "n, c, k, spatial, kernel, low, high",
    [
        (3, 6, 16, (14, 14), (5, 5), (0, 0), (0, 0)),
        (1, 1, 9, (70, 20), (3, 3), (1, 2), (0, 1)),
        (2, 2, 16, (9, 11), (4, 7), (3, 0), (2, 6)),
    ],
)
def test_gradient_of_an_input_of_few_channels(
    n: int, c: int, k: int, spatial: Any, kernel: Any, low: Any, high: Any, fixed: bool, cpu: str
) -> None:
    rng = np.random.default_rng(0)
    conv = Conv((1, 1), low, high, (1, 1), channels_last=True)
    x, w, y = sizes(n, c, k, 1, spatial, kernel, conv)
    op = ConvGradInput(x, (1, 1), low, high, (1, 1), channels_last=True)
    dy, filters, scale, more = random(rng, *y), random(rng, *w), random(rng, c), random(rng, *x)
    first, second = param("dy", type_of(dy)), constant(filters) if fixed else param("w", type_of(filters))
    node = op(first, second)
    found = lower_contraction(node, named(cpu))
    assert found and [t.kernel.name for t in found.tasks] == ["collect", "few_channels"][fixed:]
    close(exact(op, dy, filters), run_node(node, {first: dy, second: filters}, found), 2e-5)
    check_fused(lambda dy, w, s, m: Add()(Mul()(op(dy, w), s), m), dy, filters, scale, more, tolerance=2e-5)


@pytest.mark.parametrize(
    "spatial, kernel, strides", [((9,), (3,), (2,)), ((5, 6, 8), (3, 2, 3), (1, 2, 1)), ((4, 4, 6), (3, 3, 3), (1, 1, 2))]
)
def test_gradient_of_the_input_of_any_spatial_rank(spatial: Any, kernel: Any, strides: Any) -> None:
    rng = np.random.default_rng(0)
    one = (1,) * len(spatial)
    conv = Conv(strides, one, one, one, channels_last=True)
    x, w, y = sizes(2, 6, 10, 1, spatial, kernel, conv)
    check(ConvGradInput(x, strides, one, one, one, channels_last=True), random(rng, *y), random(rng, *w))


@pytest.mark.parametrize("channels", [1, 8, 17, 40])
@pytest.mark.parametrize("kernel, strides, dilation", [(3, (1, 1), 1), (3, (2, 2), 1), (5, (2, 1), 1), (3, (1, 1), 2), (2, (3, 3), 1)])
def test_depthwise_gradient_of_the_input(channels: int, kernel: int, strides: Any, dilation: int) -> None:
    rng = np.random.default_rng(0)
    pad = kernel // 2
    for spatial in ((8, 14), (7, 7), (9, 6)):
        conv = Conv(strides, (pad, pad), (pad, pad), (dilation, dilation), channels, channels_last=True)
        x, w, y = sizes(2, channels, channels, channels, spatial, (kernel, kernel), conv)
        op = ConvGradInput(x, strides, (pad, pad), (pad, pad), (dilation, dilation), channels, channels_last=True)
        check(op, random(rng, *y), random(rng, *w))


@pytest.mark.parametrize("spatial", [(8, 8), (7, 9)])
@pytest.mark.parametrize("strides, groups", [((1, 1), 1), ((2, 2), 1), ((2, 2), 4), ((2, 2), 24), ((4, 4), 1)])
def test_what_is_behind_a_gradient_follows_its_phases(spatial: Any, strides: Any, groups: int) -> None:
    rng = np.random.default_rng(0)
    conv = Conv(strides, (1, 1), (1, 1), (1, 1), groups, channels_last=True)
    x, w, y = sizes(3, 24, 24, groups, spatial, (3, 3), conv)
    op = ConvGradInput(x, strides, (1, 1), (1, 1), (1, 1), groups, channels_last=True)
    dy, filters, mask, more = random(rng, *y), random(rng, *w), random(rng, *x), random(rng, *x)
    zero = constant(np.float32(0))
    check_fused(
        lambda dy, w, m, r: Select()(Greater()(m, zero), Add()(op(dy, w), r), zero), dy, filters, mask, more, tolerance=2e-5
    )  # fmt: skip
    image, channel = random(rng, 3, 1, 1, 24), random(rng, 24)
    check_fused(lambda dy, w, s, b: Add()(Mul()(op(dy, w), s), b), dy, filters, image, channel, tolerance=2e-5)


@pytest.mark.parametrize("n, c, k, groups, spatial, kernel, strides, dilations, low, high", cases())
def test_gradient_of_the_filters_of_many_shapes(
    n: int, c: int, k: int, groups: int, spatial: Any, kernel: Any, strides: Any, dilations: Any, low: Any, high: Any
) -> None:
    rng = np.random.default_rng(0)
    conv = Conv(strides, low, high, dilations, groups, channels_last=True)
    x, w, y = sizes(n, c, k, groups, spatial, kernel, conv)
    check(ConvGradWeight(w, strides, low, high, dilations, groups, channels_last=True), random(rng, *x), random(rng, *y))


@pytest.mark.parametrize("channels", [*range(1, 14), 64, 100])
def test_gradient_of_the_filters_with_any_number_of_channels(channels: int) -> None:
    rng = np.random.default_rng(0)
    for kernel, dilation in ((1, 1), (3, 1), (3, 2)):
        pad = kernel // 2
        conv = Conv((1, 1), (pad, pad), (pad, pad), (dilation, dilation), channels_last=True)
        x, w, y = sizes(4, channels, 20, 1, (30, 17), (kernel, kernel), conv)
        check(ConvGradWeight(w, (1, 1), (pad, pad), (pad, pad), (dilation, dilation), channels_last=True), random(rng, *x), random(rng, *y))


@pytest.mark.parametrize("cpu", ["haswell", "skylake-avx512"])
@pytest.mark.parametrize(
    "n, c, k, spatial, kernel, strides, low, high",
    [
        (5, 1, 6, (32, 32), (5, 5), (1, 1), (0, 0), (0, 0)), (1, 1, 8, (90, 20), (7, 3), (2, 3), (1, 2), (0, 1)),
        (33, 3, 5, (9, 11), (4, 3), (3, 1), (3, 0), (2, 6)), (3, 6, 8, (14, 14), (5, 7), (1, 1), (0, 2), (0, 1)),
        (2, 2, 1, (3, 200), (3, 2), (1, 2), (1, 1), (1, 1)),
    ],
)  # fmt: skip
def test_gradient_of_few_filters(
    n: int, c: int, k: int, spatial: Any, kernel: Any, strides: Any, low: Any, high: Any, cpu: str
) -> None:  # fmt: skip
    rng = np.random.default_rng(0)
    conv = Conv(strides, low, high, (1, 1), channels_last=True)
    x, w, y = sizes(n, c, k, 1, spatial, kernel, conv)
    op = ConvGradWeight(w, strides, low, high, (1, 1), channels_last=True)
    image, dy = random(rng, *x), random(rng, *y)
    first, second = param("x", type_of(image)), param("dy", type_of(dy))
    node = op(first, second)
    found = lower_weight_gradient(node, named(cpu, cores=2))
    assert found and [t.kernel.name for t in found.tasks] == ["few_filters", "weight_order"]
    close(exact(op, image, dy), run_node(node, {first: image, second: dy}, found), 2e-5)


@pytest.mark.parametrize("stride", [1, 2])
def test_gradient_of_the_filters_with_rows_in_the_same_cache_sets(stride: int) -> None:
    rng = np.random.default_rng(0)
    conv = Conv((stride, stride), (0, 0), (0, 0), (1, 1), channels_last=True)
    x, w, y = sizes(8, 1024, 520, 1, (9 * stride, 11 * stride), (1, 1), conv)
    check(ConvGradWeight(w, (stride, stride), (0, 0), (0, 0), (1, 1), channels_last=True), random(rng, *x), random(rng, *y))


@pytest.mark.parametrize(
    "spatial, kernel, strides", [((9,), (3,), (2,)), ((5, 6, 8), (3, 2, 3), (1, 2, 1)), ((4, 4, 6), (3, 3, 3), (2, 2, 2))]
)
def test_gradient_of_the_filters_of_any_spatial_rank(spatial: Any, kernel: Any, strides: Any) -> None:
    rng = np.random.default_rng(0)
    one = (1,) * len(spatial)
    conv = Conv(strides, one, one, one, channels_last=True)
    x, w, y = sizes(2, 6, 10, 1, spatial, kernel, conv)
    check(ConvGradWeight(w, strides, one, one, one, channels_last=True), random(rng, *x), random(rng, *y))


@pytest.mark.parametrize("channels", [1, 8, 17, 40])
@pytest.mark.parametrize(
    "kernel, strides, dilation", [(3, (1, 1), 1), (3, (2, 2), 1), (5, (2, 1), 1), (3, (1, 1), 2), (2, (3, 3), 1), (7, (1, 1), 1)]
)
def test_depthwise_gradient_of_the_filters(channels: int, kernel: int, strides: Any, dilation: int) -> None:
    rng = np.random.default_rng(0)
    pad = kernel // 2
    for spatial in ((8, 14), (7, 7), (9, 6)):
        conv = Conv(strides, (pad, pad), (pad, pad), (dilation, dilation), channels, channels_last=True)
        x, w, y = sizes(2, channels, channels, channels, spatial, (kernel, kernel), conv)
        op = ConvGradWeight(w, strides, (pad, pad), (pad, pad), (dilation, dilation), channels, channels_last=True)
        check(op, random(rng, *x), random(rng, *y))


@pytest.mark.parametrize("m", [2, 4])
@pytest.mark.parametrize(
    "n, height, width, c, k, low, high",
    [(1, 8, 8, 8, 16, 1, 1), (2, 9, 13, 24, 17, 1, 1), (3, 5, 6, 40, 20, 0, 0), (3, 7, 7, 17, 33, 1, 2)],
)
def test_winograd_gradient_of_the_filters(m: int, n: int, height: int, width: int, c: int, k: int, low: int, high: int) -> None:
    rng = np.random.default_rng(0)
    conv = Conv((1, 1), (low, low), (high, high), (1, 1), channels_last=True)
    x, w, y = sizes(n, c, k, 1, (height, width), (3, 3), conv)
    a, b = random(rng, *x), random(rng, *y)
    op = ConvGradWeight(w, (1, 1), (low, low), (high, high), (1, 1), channels_last=True)
    first, second = param("x", type_of(a)), param("dy", type_of(b))
    node = op(first, second)
    lowered = lower_weight_gradient(node, host(), m)
    close(exact(op, a, b), run_node(node, {first: a, second: b}, lowered), 1e-6 if m == 2 else 2e-5)
