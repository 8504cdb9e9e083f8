"""Reductions, row-wise normalizations and groups around them: layouts, types, long sums, several passes."""

from __future__ import annotations

import numpy as np
import pytest
from tests.operators.cpu.run import check, lower, run

from jumar.base import f32, type_of
from jumar.compiler import compile
from jumar.ir import Graph, Node, constant, interpret, param
from jumar.operators import (
    Add,
    ArgMax,
    ArgMin,
    Cast,
    Conv,
    Exp,
    Fused,
    GroupNorm,
    InstanceNorm,
    LayerNorm,
    LogSoftmax,
    MatMul,
    Mul,
    ReduceAll,
    ReduceAny,
    ReduceMax,
    ReduceMean,
    ReduceMin,
    ReduceProd,
    ReduceSum,
    Relu,
    Reshape,
    RmsNorm,
    Softmax,
    Sqrt,
    Square,
    Sub,
    Tanh,
    Transpose,
    exp,
    mul,
    sub,
)  # fmt: skip
from jumar.operators.cpu.region import region_of

RNG = np.random.default_rng(2)
CASES = [  # shape, axes
    ((), ()), ((1,), (0,)), ((5,), (0,)), ((3, 5), (1,)), ((3, 5), (0,)), ((2, 3, 7), (1,)), ((2, 3, 7), (0, 2)), ((4, 3, 2, 5), (0, 2)),
    ((4, 3, 2, 5), (1, 3)), ((17, 33), (1,)), ((33, 17), (0,)), ((2, 1000), (1,)), ((1000, 3), (0,)), ((7, 1, 3), (1,)), ((3, 0), (1,)),
    ((0, 3), (1,)), ((2, 3, 4, 5, 6), (0, 2, 4)),
]  # fmt: skip


def normal(*shape: int, dtype: str = "float32") -> np.ndarray:
    if dtype == "bool":
        return RNG.integers(0, 2, shape).astype(bool)
    if dtype[0] in "iu":
        return RNG.integers(0, 9, shape).astype(dtype)
    return np.asarray(RNG.standard_normal(shape)).astype(dtype)


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "int8", "uint8", "int32", "int64"])
def test_reductions(dtype: str) -> None:
    for shape, axes in CASES:
        x = normal(*shape, dtype=dtype)
        for op in (ReduceSum(axes, keepdims=len(shape) % 2 == 0), ReduceMax(axes)):
            check(op, x, scale=4)
    check(ReduceMin((1,)), normal(5, 40, dtype=dtype))
    check(ReduceProd((0,)), normal(5, 40, dtype=dtype), scale=4)
    check(ReduceMean((1,)), normal(5, 43, 2, dtype=dtype), scale=4)


def test_logic() -> None:
    for shape, axes in CASES:
        for op in (ReduceAny(axes), ReduceAll(axes)):
            check(op, normal(*shape, dtype="bool"))


@pytest.mark.parametrize("dtype", ["float32", "float16", "int8", "int64"])
def test_positions(dtype: str) -> None:
    for shape, axis in [((5,), 0), ((3, 100), 1), ((100, 3), 0), ((2, 33, 17), 1), ((4, 1), 1)]:
        for last in (False, True):
            check(ArgMax(axis, select_last=last), normal(*shape, dtype=dtype))
            check(ArgMin(axis, keepdims=True, select_last=last), normal(*shape, dtype=dtype))
    x = normal(4, 50)
    x[1, 7] = x[1, 40] = np.nan
    check(ArgMax(1), x)
    check(ArgMin(1, select_last=True), x)


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
@pytest.mark.parametrize("shape", [(1,), (3, 5), (2, 3, 17), (4, 7, 64), (2, 1000), (1, 1)])
def test_normalizations(dtype: str, shape: tuple[int, ...]) -> None:
    x = normal(*shape, dtype=dtype)
    for axis in range(len(shape)):
        check(Softmax(axis), x)
        check(LogSoftmax(axis), x, scale=4)
        scale, bias = normal(*shape[axis:], dtype=dtype), normal(*shape[axis:], dtype=dtype)
        if shape[axis] > 2:
            check(LayerNorm(axis), x, scale, bias, scale=16)
        check(RmsNorm(axis), x, scale, scale=8)


def test_group_and_instance_norm_are_one_task() -> None:
    x, c = normal(2, 6, 5, 7), normal(6)
    check(GroupNorm(2), x, c, c, scale=8)
    check(InstanceNorm(), x, c, c, scale=8)
    nodes = [param(f"x{i}", type_of(a)) for i, a in enumerate((x, c, c))]
    assert len(lower(GroupNorm(3)(*nodes)).tasks) == 1  # type: ignore[union-attr]


def test_softmax_of_minus_infinity_and_of_large_numbers() -> None:
    x = np.array([[-np.inf, 0.0, 1.0], [1e30, 1e30, -1e30], [88.0, 89.0, 90.0]], np.float32)
    check(Softmax(-1), x)


def test_long_sums_are_accurate_and_shared() -> None:
    x = RNG.uniform(0, 1, (1 << 20)).astype(np.float32)
    node = ReduceSum()(param("x", type_of(x)))
    assert len(lower(node).tasks) == 2  # type: ignore[union-attr]
    (y,) = run(ReduceSum(), x)
    assert abs(float(y) - x.astype(np.float64).sum()) < 1.0
    (y,) = run(ReduceMean(), x.reshape(4, -1))
    assert abs(float(y) - x.astype(np.float64).mean()) < 1e-6
    for shape, axes in [((70000, 3), (0,)), ((70001,), (0,)), ((3, 50000), (1,)), ((2, 9000, 40), (1,)), ((300, 5, 300), (0, 2))]:
        x = normal(*shape)
        (y,) = run(ReduceSum(axes), x)
        np.testing.assert_allclose(y, x.astype(np.float64).sum(axes), atol=2e-3)
        check(ReduceMax(axes), x)
        check(ReduceMax(axes), (x * 10).astype(np.int8))


@pytest.mark.parametrize("shape", [(20000, 6), (25088, 6), (70000, 1), (16384, 13), (33000, 3), (6, 4096, 5)])
def test_sums_down_few_columns_with_results_for_each_element(shape: tuple[int, ...]) -> None:
    x, y, bias = normal(*shape), normal(*shape), normal(shape[-1])
    a, b, c = (param(n, type_of(v)) for n, v in (("a", x), ("b", y), ("c", bias)))
    product = Mul()(a, b)
    total = Add()(ReduceSum(tuple(range(len(shape) - 1)))(product), c)
    each, summed = run(group([product, total], a, b, c), x, y, bias)
    np.testing.assert_array_equal(each, x * y)
    expected = (x.astype(np.float64) * y).sum(tuple(range(len(shape) - 1))) + bias
    np.testing.assert_allclose(summed, expected, atol=2e-3)


def group(outputs: list[Node], *params: Node) -> Fused:
    return Fused(Graph("group", params, tuple(outputs)))


def test_attention_scores_with_scale_mask_and_softmax() -> None:
    s, m = param("s", type_of(normal(2, 3, 5, 37))), param("m", type_of(normal(2, 1, 1, 37)))
    y = Softmax(-1)(Add()(Mul()(s, constant(np.float32(0.125))), m))
    check(group([y], s, m), normal(2, 3, 5, 37), normal(2, 1, 1, 37))


def test_residual_and_norm_with_two_results() -> None:
    a, b, c = (param(n, type_of(normal(*s))) for n, s in (("a", (9, 70)), ("b", (9, 70)), ("c", (70,))))
    total = Add()(a, b)
    y = Tanh()(LayerNorm(-1)(total, c, c))
    check(group([total, y], a, b, c), normal(9, 70), normal(9, 70), normal(70), scale=16)


def test_prologue_epilogue_and_row_operands() -> None:
    x, r = param("x", type_of(normal(6, 50, 9))), param("r", type_of(normal(6, 9)))
    for axis in (0, 1, 2):
        norm = Sqrt()(ReduceSum((axis,), keepdims=True)(Square()(Sub()(x, constant(np.float32(0.5))))))
        check(group([norm], x), normal(6, 50, 9), scale=4)
        check(group([Mul()(x, norm)], x), normal(6, 50, 9), scale=8)
    mean = ReduceMean((1,))(Exp()(x))
    check(group([Add()(mean, r)], x, r), normal(6, 50, 9), normal(6, 9), scale=8)


def test_half_precision_is_summed_in_single() -> None:
    x = np.full((3, 4000), 1.0, np.float16)
    (y,) = run(ReduceSum((1,)), x)
    assert y.tolist() == [4000.0] * 3
    p = param("x", type_of(x))
    check(group([ReduceSum((1,))(Cast(f32)(p))], p), x)


def test_transposes_and_reshapes_inside_of_a_group() -> None:
    x = param("x", type_of(normal(4, 6, 10)))
    y = ReduceSum((-1,))(Transpose((2, 0, 1))(x))  # over dimension 1 of x
    check(group([y], x), normal(4, 6, 10), scale=4)
    y = ReduceMax((1, 2))(Reshape((4, 3, 2, 10))(x))
    check(group([y], x), normal(4, 6, 10))


def test_reductions_over_different_axes_are_not_one_nest() -> None:
    x = param("x", type_of(normal(4, 6)))
    both = Add()(ReduceSum((0,), keepdims=True)(x), ReduceSum((1,), keepdims=True)(x))
    assert region_of([both]) is None
    square = param("x", type_of(normal(5, 5)))
    turned = Add()(square, ReduceSum((0,))(Transpose((1, 0))(square)))  # one nest that reads x in two orders
    check(group([turned], square), normal(5, 5))
    wrong = Add()(square, Reshape((5, 1))(ReduceSum((0,))(square)))
    assert region_of([wrong]) is None


@pytest.mark.parametrize("norm", [GroupNorm(1), GroupNorm(4), GroupNorm(16), InstanceNorm()])
def test_group_and_instance_norm_between_convolutions_need_no_transpose(norm: GroupNorm | InstanceNorm) -> None:
    """Channels last from the first convolution to the last: transposes for the graph's input and output only, and a norm is one step."""
    x = param("x", type_of(normal(2, 3, 12, 10)))
    w, v, c = constant(normal(16, 3, 3, 3)), constant(normal(16, 16, 3, 3)), constant(normal(16))
    conv = Conv((1, 1), (1, 1), (1, 1), (1, 1))
    y = Relu()(norm(conv(x, w), c, c))
    graph = Graph("g", (x,), (conv(Relu()(norm(conv(y, v), c, c)), v),))
    compiled = compile(graph)
    assert compiled.graph is not None
    assert sum(isinstance(n.op, Transpose) for n in compiled.graph.nodes) == 2
    names = [s.name for s in compiled.program.steps]
    assert sum("rsqrt" in n for n in names) == 2 and not any("transpose" in n and n != "transpose" for n in names), names
    a = normal(2, 3, 12, 10)
    np.testing.assert_allclose(compiled.instance(threads=1).run([a])[0], interpret(graph, [a])[0], rtol=1e-4, atol=2e-4)


def test_results_of_a_row_do_not_overwrite_operands_of_each_other() -> None:
    """A group with two results: the first may take an operand's memory only if the second has read it."""
    a, b, x = (param(n, type_of(np.zeros((8, 10), np.float32))) for n in ("a", "b", "x"))
    w = param("w", type_of(np.zeros((10, 10), np.float32)))
    held = MatMul()(a, w)  # an intermediate value whose memory is free once the group has read it
    logits = LogSoftmax(1)(x)
    centered = sub(held, mul(exp(logits), ReduceSum((1,), keepdims=True)(held)))
    graph = Graph("rows", (a, b, x, w), (MatMul()(logits, w), MatMul()(centered, w)))
    rng = np.random.default_rng(0)
    arrays = [rng.standard_normal(p.shape).astype(np.float32) for p in graph.params]
    for expected, actual in zip(interpret(graph, arrays), compile(graph).instance().run(arrays), strict=True):
        np.testing.assert_allclose(actual, expected, rtol=1e-4, atol=1e-4)
