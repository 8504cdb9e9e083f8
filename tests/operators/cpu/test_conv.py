"""Convolutions: a grid of shapes against the reference in f64; depthwise, Winograd, borders, epilogues, types."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from tests.operators.cpu.nodes import check_fused, close, random, run_node

from jumar.base import Array, type_of
from jumar.compiler import compile as compile_graph
from jumar.device import host
from jumar.device.cpu import named
from jumar.ir import Graph, Node, constant, param
from jumar.operators import Add, Conv, HardSwish, Mul, Relu, Silu, Transpose
from jumar.operators.cpu.contraction import lower_contraction, without_bias
from jumar.operators.cpu.conv import filters_of, geometry_of
from jumar.operators.cpu.root import root_group
from jumar.operators.cpu.winograd import Plan, lower_winograd
from jumar.operators.cpu.winograd_transform import Form


def conv_node(op: Conv, x: Array, w: Array, b: Array | None, fixed: bool = True) -> tuple[Node, dict[Node, Array]]:
    x_node = param("x", type_of(x))
    w_node = constant(w) if fixed else param("w", type_of(w))
    rest = [] if b is None else [constant(b)]
    return op(x_node, w_node, *rest), {x_node: x, w_node: w}


def exact(op: Conv, *arrays: Array) -> Array:
    return np.asarray(op.reference(*(a.astype(np.float64) for a in arrays)))


CHANNELS = [1, 3, 5, 7, 17, 24, 40, 255]
KERNELS = [(1, 1), (3, 3), (5, 5), (7, 7), (1, 3), (2, 5), (6, 6)]


def cases() -> list[tuple[Any, ...]]:
    """One of each axis in turn: every value meets many of the others, in a test that takes seconds."""
    rng = np.random.default_rng(1)
    found = []
    for i, (c, kernel) in enumerate(itertools.product(CHANNELS, KERNELS)):
        k = CHANNELS[(i * 3 + 1) % 8]
        groups = (1, 1, 1, 2)[i % 4]
        if c == 255 or k == 255:
            groups = 1
        spatial = tuple(int(s) for s in rng.integers(7, 12, 2))
        strides = tuple(int(s) for s in rng.integers(1, 3, 2))
        dilations = (1, 1) if max(kernel) > 3 else tuple(int(d) for d in rng.integers(1, 3, 2))
        low, high = (tuple(int(p) for p in rng.integers(0, kernel[0] + 1, 2)) for _ in range(2))
        found.append(((1, 3)[i % 2], c * groups, k * groups, groups, spatial, kernel, strides, dilations, low, high))
    return found


@pytest.mark.parametrize("n, c, k, groups, spatial, kernel, strides, dilations, low, high", cases())
def test_conv_of_many_shapes(
    n: int, c: int, k: int, groups: int, spatial: Any, kernel: Any, strides: Any, dilations: Any, low: Any, high: Any
) -> None:
    rng = np.random.default_rng(0)
    x, w, b = random(rng, n, *spatial, c), random(rng, k, c // groups, *kernel), random(rng, k)
    op = Conv(strides, low, high, dilations, groups, channels_last=True)
    node, values = conv_node(op, x, w, b, fixed=k % 2 == 1)
    close(exact(op, x, w, b), run_node(node, values), 2e-5)  # Winograd is among them


@pytest.mark.parametrize(
    "spatial, kernel, strides", [((9,), (3,), (2,)), ((5, 6, 7), (3, 2, 3), (1, 2, 1)), ((3, 4, 5, 4), (2, 2, 2, 3), (1, 1, 1, 1))]
)
def test_conv_of_any_spatial_rank(spatial: Any, kernel: Any, strides: Any) -> None:
    rng = np.random.default_rng(0)
    one = (1,) * len(spatial)
    x, w, b = random(rng, 2, *spatial, 6), random(rng, 10, 6, *kernel), random(rng, 10)
    op = Conv(strides, one, one, one, channels_last=True)
    node, values = conv_node(op, x, w, b)
    close(exact(op, x, w, b), run_node(node, values), 3e-6)


@pytest.mark.parametrize("channels", [1, 3, 8, 17, 24, 40, 70])
@pytest.mark.parametrize(
    "kernel, strides, dilation",
    [(3, (1, 1), 1), (3, (2, 2), 1), (5, (1, 1), 1), (5, (2, 1), 1), (3, (1, 1), 2), (7, (1, 1), 1), (1, (1, 1), 1)],
)
def test_depthwise_conv(channels: int, kernel: int, strides: Any, dilation: int) -> None:
    rng = np.random.default_rng(0)
    pad = kernel // 2
    for height, width in ((9, 15), (7, 7), (8, 3)):
        x, w, b = random(rng, 2, height, width, channels), random(rng, channels, 1, kernel, kernel), random(rng, channels)
        op = Conv(strides, (pad, pad), (pad, pad), (dilation, dilation), channels, channels_last=True)
        if dilation * (kernel - 1) + 1 > min(height, width) + 2 * pad:
            continue
        for fixed in (True, False):
            node, values = conv_node(op, x, w, b, fixed)
            close(exact(op, x, w, b), run_node(node, values), 3e-6)


@pytest.mark.parametrize("fixed", [True, False])
@pytest.mark.parametrize("stride", [1, 2])
@pytest.mark.parametrize("m", [2, 4])
@pytest.mark.parametrize("block, panels", [(5, 0), (12, 0), (3, 1), (12, 2)])
@pytest.mark.parametrize(
    "n, height, width, c, k, low, high",
    [(1, 8, 8, 8, 16, 1, 1), (2, 9, 13, 24, 17, 1, 1), (1, 5, 6, 40, 20, 0, 0), (3, 7, 7, 17, 33, 1, 2)],
)
def test_winograd_is_exact_to_a_few_parts_in_a_million(
    stride: int, m: int, block: int, panels: int, n: int, height: int, width: int, c: int, k: int, low: int, high: int, fixed: bool
) -> None:
    rng = np.random.default_rng(0)
    x, w, b = random(rng, n, height, width, c), random(rng, k, c, 3, 3), random(rng, k)
    op = Conv((stride, stride), (low, low), (high, high), (1, 1), channels_last=True)
    node, values = conv_node(op, x, w, b, fixed)
    group = root_group(node)
    assert group is not None
    group = without_bias(group)
    g = geometry_of(group.root)
    lowered = lower_winograd(group, g, group.place(group.root.inputs[0]), filters_of(g), host(), Plan(Form(m, stride), block, panels))
    assert lowered is not None
    close(exact(op, x, w, b), run_node(node, values, lowered), 1e-6 if m == 2 else 2e-5)


def test_setting_forbids_winograd(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    x, w = random(rng, 1, 28, 28, 64), random(rng, 64, 64, 3, 3)
    node, _ = conv_node(Conv((1, 1), (1, 1), (1, 1), (1, 1), channels_last=True), x, w, None)
    group = root_group(node)
    assert group is not None
    g, place = geometry_of(group.root), group.place(group.root.inputs[0])
    assert lower_winograd(group, g, place, filters_of(g), host()) is not None
    monkeypatch.setenv("JUMAR_WINOGRAD", "0")
    assert lower_winograd(group, g, place, filters_of(g), host()) is None


@pytest.mark.parametrize("stride, m", [(1, 2), (1, 4), (2, 2), (2, 4)])
@pytest.mark.parametrize("c", [16, 128, 512])
@pytest.mark.parametrize("values", ["normal", "positive", "spread"])
def test_winograd_error_is_below_a_ten_thousandth_of_the_scale(stride: int, m: int, c: int, values: str) -> None:
    rng = np.random.default_rng(c)
    x, w = random(rng, 1, 11, 14, c), random(rng, 32, c, 3, 3)
    if values == "positive":  # as behind a relu, with filters that add up
        x, w = np.abs(x), np.abs(w)
    if values == "spread":  # channels of very different size
        x = x * np.logspace(-3, 3, c, dtype=np.float32)
    node, given = conv_node(Conv((stride, stride), (1, 1), (1, 1), (1, 1), channels_last=True), x, w, None)
    group = root_group(node)
    assert group is not None
    g = geometry_of(group.root)
    lowered = lower_winograd(group, g, group.place(group.root.inputs[0]), filters_of(g), host(), Plan(Form(m, stride), 8))
    assert lowered is not None
    expected = exact(node.op, x, w)
    assert np.abs(run_node(node, given, lowered) - expected).max() <= 1e-4 * np.abs(expected).max()


def test_winograd_on_large_input_stays_within_its_bound() -> None:
    rng = np.random.default_rng(0)
    x, w = random(rng, 1, 28, 28, 256) * 100, random(rng, 64, 256, 3, 3)
    op = Conv((1, 1), (1, 1), (1, 1), (1, 1), channels_last=True)
    node, values = conv_node(op, x, w, None)
    close(exact(op, x, w), run_node(node, values), 1e-4)


@pytest.mark.parametrize("w_shape, groups", [((40, 24, 1, 1), 1), ((40, 24, 3, 3), 1), ((24, 1, 3, 3), 24), ((48, 12, 3, 3), 2)])
def test_epilogues_of_every_kind(w_shape: Any, groups: int) -> None:
    rng = np.random.default_rng(0)
    pad = w_shape[2] // 2
    x, w, b = random(rng, 2, 10, 9, 24), random(rng, *w_shape), random(rng, w_shape[0])
    residual, scale = random(rng, 2, 10, 9, w_shape[0]), random(rng, 2, 1, 1, w_shape[0])
    op = Conv((1, 1), (pad, pad), (pad, pad), (1, 1), groups, channels_last=True)
    check_fused(lambda x, r, s: Mul()(Relu()(Add()(op(x, constant(w), constant(b)), r)), s), x, residual, scale, tolerance=2e-5)
    check_fused(lambda x: Silu()(op(x, constant(w), constant(b))), x, tolerance=2e-5)
    check_fused(lambda x: HardSwish()(op(x, constant(w))), x, tolerance=2e-5)


@pytest.mark.parametrize("dtype, tolerance", [(np.float64, 1e-14), (np.float16, 1e-3), (np.uint8, 0), (np.int8, 0), (np.int32, 0)], ids=str)
@pytest.mark.parametrize("fixed", [False, True], ids=["computed", "constant"])
def test_conv_of_every_element_type(dtype: Any, tolerance: float, fixed: bool) -> None:
    rng = np.random.default_rng(0)
    x, w = random(rng, 2, 6, 7, 5, dtype=dtype), random(rng, 9, 5, 3, 3, dtype=dtype)
    op = Conv((1, 1), (1, 1), (1, 1), (1, 1), channels_last=True)
    node, values = conv_node(op, x, w, None, fixed)
    close(op.reference(x, w).astype(node.dtype.numpy), run_node(node, values), tolerance)


@pytest.mark.parametrize("spatial", [(5,), (5, 6), (1, 1)])
def test_channels_first_conv_runs_between_transposes(spatial: Any) -> None:
    rng = np.random.default_rng(0)
    one = (1,) * len(spatial)
    x, w, b = random(rng, 2, 3, *spatial), random(rng, 8, 3, *[3] * len(spatial)), random(rng, 8)
    op = Conv(one, one, one, one)
    node, values = conv_node(op, x, w, b)
    close(exact(op, x, w, b), run_node(node, values), 3e-6)


@pytest.mark.parametrize("cpu", ["x86-64-v2", "haswell", "skylake-avx512"])
@pytest.mark.parametrize("channels, filters", [(16, 80), (3, 16), (24, 72), (40, 13), (72, 40), (5, 70), (112, 72)])
def test_narrow_products(channels: int, filters: int, cpu: str) -> None:
    """Every width of the tile, panels that are full and that are not, rows that the last tile has not."""
    rng = np.random.default_rng(0)
    x, w, bias = random(rng, 2, 7, 9, channels), random(rng, filters, channels, 1, 1), random(rng, filters)
    op = Conv((1, 1), (0, 0), (0, 0), (1, 1), channels_last=True)
    for fixed in (True, False):
        node, values = conv_node(op, x, w, bias, fixed)
        found = lower_contraction(node, named(cpu))
        assert found and found.tasks[-1].kernel.name == "narrow"
        close(exact(op, x, w, bias), run_node(node, values, found), 3e-6)


@pytest.mark.parametrize("n, channels, filters", [(1, 40, 10), (1, 7, 130), (8, 33, 65)])
def test_a_convolution_of_few_places_is_skinny(n: int, channels: int, filters: int) -> None:
    rng = np.random.default_rng(0)
    x, w, bias = random(rng, n, 1, 1, channels), random(rng, filters, channels, 1, 1), random(rng, filters)
    op = Conv((1, 1), (0, 0), (0, 0), (1, 1), channels_last=True)
    node, values = conv_node(op, x, w, bias)
    found = lower_contraction(node, host())
    assert found and [t.kernel.name for t in found.tasks] == ["skinny"]
    close(exact(op, x, w, bias), run_node(node, values, found), 3e-6)


def test_narrow_products_with_their_epilogue() -> None:
    rng = np.random.default_rng(0)
    op = Conv((1, 1), (0, 0), (0, 0), (1, 1), channels_last=True)
    for channels, filters in ((24, 72), (72, 40)):
        x, w, b = random(rng, 2, 9, 8, channels), random(rng, filters, channels, 1, 1), random(rng, filters)
        residual, scale = random(rng, 2, 9, 8, filters), random(rng, 2, 1, 1, filters)
        check_fused(lambda x, r: Add()(HardSwish()(op(x, constant(w), constant(b))), r), x, residual)  # noqa: B023  (called at once)
        check_fused(lambda x, r, s: Mul()(Add()(op(x, constant(w)), r), s), x, residual, scale)  # noqa: B023


@pytest.mark.parametrize("cpu", ["x86-64-v2", "haswell", "skylake-avx512"])
@pytest.mark.parametrize(
    "channels, filters, kernel, strides, low, high",
    [
        (3, 16, (3, 3), (2, 2), (1, 1), (1, 1)), (1, 6, (5, 5), (1, 1), (2, 2), (2, 2)), (3, 40, (7, 7), (2, 2), (3, 3), (2, 3)),
        (4, 65, (6, 2), (3, 1), (0, 4), (5, 0)), (3, 32, (1, 3), (1, 2), (0, 0), (0, 0)),
    ],
)  # fmt: skip
def test_first_convolution_reads_planes(channels: int, filters: int, kernel: Any, strides: Any, low: Any, high: Any, cpu: str) -> None:
    rng = np.random.default_rng(0)
    x, w, bias = random(rng, 2, channels, 13, 17), random(rng, filters, channels, *kernel), random(rng, filters)
    planes = param("x", type_of(x))
    op = Conv(strides, low, high, (1, 1), channels_last=True)
    node = op(Transpose((0, 2, 3, 1))(planes), constant(w), constant(bias))
    found = lower_contraction(node, named(cpu))
    assert found and [t.kernel.name for t in found.tasks] == ["planes"]
    close(exact(op, np.moveaxis(x, 1, -1), w, bias), run_node(node, {planes: x}, found), 3e-6)


@pytest.mark.parametrize("cpu", ["x86-64-v2", "haswell", "skylake-avx512"])
@pytest.mark.parametrize("channels, in_planes", [(1, False), (1, True), (3, True)])
def test_planes_with_filters_that_are_computed(channels: int, in_planes: bool, cpu: str) -> None:
    rng = np.random.default_rng(0)
    x, w = random(rng, 3, channels, 12, 19), random(rng, 6, channels, 5, 4)
    rows = np.ascontiguousarray(np.moveaxis(x, 1, -1))
    image, filters = param("x", type_of(x if in_planes else rows)), param("w", type_of(w))
    op = Conv((1, 1), (2, 0), (1, 3), (1, 1), channels_last=True)
    node = op(Transpose((0, 2, 3, 1))(image) if in_planes else image, filters)
    found = lower_contraction(node, named(cpu))
    assert found and [t.kernel.name for t in found.tasks] == ["pack_filters", "planes"]
    close(exact(op, rows, w), run_node(node, {image: x if in_planes else rows, filters: w}, found), 3e-6)


def test_a_transpose_that_nobody_reads_is_not_computed() -> None:
    rng = np.random.default_rng(0)
    x, w = random(rng, 1, 3, 12, 12), random(rng, 16, 3, 3, 3)
    planes = param("x", type_of(x))
    op = Conv((2, 2), (1, 1), (1, 1), (1, 1))
    graph = Graph("g", (planes,), (Relu()(op(planes, constant(w))),))
    compiled = compile_graph(graph)
    assert [s.name for s in compiled.program.steps][:1] == ["conv+relu"]
    (y,) = compiled.instance(threads=1).run([x])
    close(np.maximum(exact(op, x, w), 0), y, 3e-6)
