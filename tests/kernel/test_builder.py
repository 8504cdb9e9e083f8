"""What is written with the builder computes what NumPy computes, on this CPU and on poorer ones."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from jumar.base import DTYPES, NATIVE, DType, KernelError, bf16, bool_, f16, f32, f64, i8, i32, i64, u8, u32
from jumar.device import Target, can_execute_here, host, named
from jumar.kernel import Builder, Kernel, Value
from tests.kernel.harness import address, call

TARGETS = [
    host(),
    *(t for n in ("x86-64-v3", "x86-64-v2", "x86-64") if can_execute_here(t := named(n)) and host().architecture == "x86_64"),
]
NAMES = ["host", "x86-64-v3", "x86-64-v2", "x86-64"]
on_targets = pytest.mark.parametrize("target", TARGETS, ids=NAMES[: len(TARGETS)])


def elementwise(function: Callable[..., Value], dtypes: list[DType], result: DType, lanes: int = 8, name: str = "elementwise") -> Kernel:
    """A kernel that maps `function` over arrays whose length is a multiple of the lanes."""
    k = Builder(name)
    inputs = [k.pointer(f"x{i}", d) for i, d in enumerate(dtypes)]
    output, n = k.pointer("y", result), k.integer("n")
    with k.loop(0, n, lanes) as i:
        k.store(function(k, *(k.load(x, i, lanes) for x in inputs)), output, i)
    return k.finish()


def mapped(function: Callable[..., Value], *arrays: np.ndarray, result: DType, lanes: int = 8, target: Target | None = None) -> np.ndarray:
    from jumar.base import dtype_of

    y = np.zeros(len(arrays[0]), result.numpy)
    call(elementwise(function, [dtype_of(a.dtype) for a in arrays], result, lanes), *arrays, y, len(y), target=target)
    return y


@on_targets
@pytest.mark.parametrize("n", [0, 1, 7, 8, 9, 100])
def test_a_masked_tail_touches_only_its_lanes(n: int, target: Target) -> None:
    k = Builder("add")
    x, y, z, count = k.pointer("x", f32), k.pointer("y", f32), k.pointer("z", f32), k.integer("n")
    whole = count - count % 8
    with k.loop(0, whole, 8) as i:
        k.store(k.load(x, i, 8) + k.load(y, i, 8), z, i)
    mask = k.lane_mask(count - whole, 8)
    k.store(k.load(x, whole, 8, mask=mask) + k.load(y, whole, 8, mask=mask), z, whole, mask=mask)
    a, b = np.arange(n + 8, dtype=np.float32), np.full(n + 8, 0.5, np.float32)
    c = np.full(n + 8, -1, np.float32)
    call(k.finish(), a, b, c, n, target=target)
    np.testing.assert_array_equal(c[:n], a[:n] + b[:n])
    np.testing.assert_array_equal(c[n:], -1)


def _samples(dtype: DType) -> np.ndarray:
    rng = np.random.default_rng(0)
    if dtype is bool_:
        return rng.integers(0, 2, 64).astype(bool)
    if dtype.is_integer:
        info = np.iinfo(dtype.numpy)
        small = rng.integers(max(info.min, -100), 100, 56)
        return np.concatenate([small.astype(dtype.numpy), np.array([info.min, info.max, 0, 1, 2, 3, 4, 5], dtype.numpy)])
    return np.concatenate([rng.normal(0, 30, 56), [0.0, -0.0, 1.0, 0.5, 1.5, 2.5, 100.0, 65504.0]]).astype(dtype.numpy)


NATIVE_NAMES = sorted(d.name for d in NATIVE)


@on_targets
@pytest.mark.parametrize("source", NATIVE_NAMES)
def test_convert_is_astype_for_every_pair_of_native_types(source: str, target: Target) -> None:
    x = _samples(DTYPES[source])
    for name in NATIVE_NAMES:
        to = DTYPES[name]
        given = x
        if DTYPES[source].is_float and to.is_integer:
            info = np.iinfo(to.numpy)
            inside = (x.astype(np.float64) > info.min - 1) & (x.astype(np.float64) < min(info.max, 2**62))
            given = np.where(inside, x, np.zeros_like(x))
        with np.errstate(all="ignore"):
            expected = given.astype(to.numpy)
        for lanes in (1, 8):
            actual = mapped(lambda k, v, to=to: k.convert(v, to), given, result=to, lanes=lanes, target=target)
            np.testing.assert_array_equal(actual, expected, err_msg=f"{source} to {to}, {lanes} lanes")


@on_targets
def test_narrow_floats_round_to_even_and_keep_what_is_special(target: Target) -> None:
    rng = np.random.default_rng(1)
    x = rng.integers(0, 1 << 32, 1 << 14, dtype=np.uint64).astype(np.uint32).view(np.float32)
    near = (rng.integers(0, 1 << 16, 1 << 12) * 2.0**-25).astype(np.float32)  # among f16's subnormals and their halves
    special = np.array(
        [np.inf, -np.inf, np.nan, 0.0, -0.0, 65504, 65519.99, 65520, 6e-8, 2.9802322e-8, 2.9802326e-8, 3.3895314e38], np.float32
    )
    x = np.concatenate([x, near, special, np.zeros(4, np.float32)])
    for to in (f16, bf16):
        with np.errstate(all="ignore"):
            expected = x.astype(to.numpy)
        actual = mapped(lambda k, v, to=to: k.convert(v, to), x, result=to, target=target)
        np.testing.assert_array_equal(actual.astype(np.float32), expected.astype(np.float32))
        number = ~np.isnan(x)
        np.testing.assert_array_equal(actual.view(np.uint16)[number], expected.view(np.uint16)[number])


@on_targets
def test_every_half_widens_to_itself(target: Target) -> None:
    bits = np.arange(1 << 16, dtype=np.uint16)
    for dtype in (f16, bf16):
        x = bits.view(dtype.numpy)
        actual = mapped(lambda k, v: k.convert(v, f32), x, result=f32, target=target)
        np.testing.assert_array_equal(actual, x.astype(np.float32))


@on_targets
def test_doubles_round_once_on_their_way_to_half(target: Target) -> None:
    # 1 + 2^-11 + 2^-40 is above the middle of two halves; by way of a single it would be the middle, and go down
    x = np.array([1 + 2.0**-11 + 2.0**-40, 1 + 2.0**-11, 1 + 3 * 2.0**-11, 1e-300, 1e300, -1e300, np.inf, np.nan])
    with np.errstate(all="ignore"):
        expected = x.astype(np.float16)
    np.testing.assert_array_equal(mapped(lambda k, v: k.convert(v, f16), x, result=f16, target=target), expected)


@on_targets
def test_arithmetic_and_comparison_are_numpys(target: Target) -> None:
    rng = np.random.default_rng(2)
    for dtype in (f32, f64, i32, i64, u8, i8, u32):
        if dtype.is_float:
            a, b = (np.concatenate([rng.normal(0, 3, 59), [0.0, -0.0, np.inf, -np.inf, np.nan]]).astype(dtype.numpy) for _ in range(2))
            b = rng.permutation(b)
        else:
            low = 0 if dtype.kind == "u" else -50
            a, b = (rng.integers(low, 50, 64).astype(dtype.numpy) for _ in range(2))
            a[:2], b[:2] = np.iinfo(dtype.numpy).min, (-1 if dtype.kind == "i" else 1, 0)
        rules: dict[str, tuple[Callable[..., Value], Callable[..., np.ndarray]]] = {
            "+": (lambda k, p, q: p + q, lambda p, q: p + q),
            "-": (lambda k, p, q: p - q, lambda p, q: p - q),
            "*": (lambda k, p, q: p * q, lambda p, q: p * q),
            "min": (lambda k, p, q: k.minimum(p, q), np.minimum),
            "max": (lambda k, p, q: k.maximum(p, q), np.maximum),
            "//": (lambda k, p, q: k.floor_divide(p, q), np.floor_divide),
            "%": (lambda k, p, q: k.floor_remainder(p, q), np.remainder),
            "neg": (lambda k, p, q: -p, lambda p, q: -p),
            "abs": (lambda k, p, q: k.abs(p), lambda p, q: np.abs(p)),
        }
        if dtype.is_float:
            del rules["//"]  # NumPy's has corrections that an operator adds where it wants them
            rules["/"] = (lambda k, p, q: p / q, lambda p, q: p / q)
            rules["sqrt"] = (lambda k, p, q: k.sqrt(p), lambda p, q: np.sqrt(p))
            rules["floor"] = (lambda k, p, q: k.floor(p), lambda p, q: np.floor(p))
            rules["rint"] = (lambda k, p, q: k.round_even(p), lambda p, q: np.rint(p))
            rules["fmod"] = (lambda k, p, q: p % q, np.fmod)
        else:
            rules["&"] = (lambda k, p, q: p & q, lambda p, q: p & q)
            rules["^"] = (lambda k, p, q: p ^ q, lambda p, q: p ^ q)
            rules[">>"] = (lambda k, p, q: p >> (q & 7), lambda p, q: p >> (q & 7))
            rules["fmod"] = (lambda k, p, q: p % q, np.fmod)
        for name, (ours, theirs) in rules.items():
            with np.errstate(all="ignore"):
                expected = theirs(a, b)
            actual = mapped(ours, a, b, result=dtype, target=target)
            np.testing.assert_array_equal(actual, expected, err_msg=f"{name} of {dtype}")
        for name in ("eq", "ne", "lt", "le", "gt", "ge"):
            operator = {"eq": np.equal, "ne": np.not_equal, "lt": np.less, "le": np.less_equal, "gt": np.greater, "ge": np.greater_equal}[
                name
            ]
            actual = mapped(lambda k, p, q, name=name: k.compare(name, p, q), a, b, result=bool_, target=target)
            np.testing.assert_array_equal(actual, operator(a, b), err_msg=f"{name} of {dtype}")


def test_division_by_zero_and_the_smallest_by_minus_one_do_not_trap() -> None:
    a = np.array([5, -5, -(2**31), 0, 7, 8, 9, -(2**31)], np.int32)
    b = np.array([0, 0, -1, 0, 2, -3, 1, 1], np.int32)
    np.testing.assert_array_equal(mapped(lambda k, p, q: p / q, a, b, result=i32), [0, 0, -(2**31), 0, 3, -2, 9, -(2**31)])
    np.testing.assert_array_equal(mapped(lambda k, p, q: p % q, a, b, result=i32), [0, 0, 0, 0, 1, 2, 0, 0])


@on_targets
@pytest.mark.parametrize("how", ["add", "mul", "max", "min"])
def test_reduce_is_numpys_over_all_lanes(how: str, target: Target) -> None:
    x = np.random.default_rng(3).normal(0, 1, 16).astype(np.float32)
    k = Builder("reduce")
    p, y = k.pointer("x", f32), k.pointer("y", f32)
    k.store(k.reduce(k.load(p, 0, 16), how), y)
    out = np.zeros(1, np.float32)
    call(k.finish(), x, out, target=target)
    expected = {"add": np.sum, "mul": np.prod, "max": np.max, "min": np.min}[how](x.astype(np.float64))
    np.testing.assert_allclose(out[0], expected, rtol=1e-5)
    x[5] = np.nan
    call(k.finish(), x, out, target=target)
    assert np.isnan(out[0])


def test_bools_are_bytes_in_memory_and_bits_in_registers() -> None:
    x = np.array([True, False] * 8)
    y = np.array([True, True, False, False] * 4)
    assert (mapped(lambda k, a, b: a & ~b, x, y, result=bool_) == (x & ~y)).all()
    k = Builder("any")
    p, out = k.pointer("x", bool_), k.pointer("y", bool_)
    k.store(k.reduce(k.load(p, 0, 16), "or"), out)
    answer = np.zeros(1, bool)
    call(k.finish(), x, answer)
    assert answer[0]


def test_loops_branches_and_variables_nest() -> None:
    k = Builder("collatz")
    out, n = k.pointer("out", i64), k.integer("n")
    with k.loop(0, n) as i:
        value, steps = k.var(i + 1), k.var(0)
        with k.loop(0, 200):
            v = value.get()
            with k.when(v > 1):
                with k.when((v & 1) == 0):
                    value.set(v >> 1)
                with k.otherwise():
                    value.set(v * 3 + 1)
                steps.set(steps.get() + 1)
        k.store(steps.get(), out, i)
    got = np.zeros(50, np.int64)
    call(k.finish(), got, 50)

    def collatz(v: int) -> int:
        return 0 if v == 1 else 1 + collatz(v // 2 if v % 2 == 0 else 3 * v + 1)

    assert got.tolist() == [collatz(i + 1) for i in range(50)]


@on_targets
def test_gather_scatter_shuffle_and_lane_access(target: Target) -> None:
    x = np.arange(64, dtype=np.float32)
    where = np.random.default_rng(4).permutation(64)[:8].astype(np.int32)
    k = Builder("lanes")
    p, w, y = k.pointer("x", f32), k.pointer("w", i32), k.pointer("y", f32)
    offsets = k.load(w, 0, 8)
    g = k.gather(p, offsets)
    k.store(g, y, 0)
    k.store(k.shuffle(g, g, range(7, -1, -1)), y, 8)
    k.store(k.insert(g, k.extract(g, 3), 0), y, 16)
    k.store(k.gather(p, offsets, mask=k.lane_mask(3, 8)), y, 24)
    k.scatter(g + 100.0, p, offsets)
    y_out = np.zeros(32, np.float32)
    before = x.copy()
    call(k.finish(), x, where, y_out, target=target)
    np.testing.assert_array_equal(y_out[:8], before[where])
    np.testing.assert_array_equal(y_out[8:16], before[where][::-1])
    np.testing.assert_array_equal(y_out[16:24], [before[where[3]], *before[where[1:]]])
    np.testing.assert_array_equal(y_out[24:], np.where(np.arange(8) < 3, before[where], 0))
    before[where] += 100
    np.testing.assert_array_equal(x, before)


def test_a_micro_kernel_is_called_through_its_address() -> None:
    m, n, depth = 6, 16, 40
    micro = gemm_micro_kernel(m, 2, 8)
    k = Builder("gemm")
    f, a, b, c, kk = k.function_pointer("f"), k.pointer("a", f32), k.pointer("b", f32), k.pointer("c", f32), k.integer("k")
    k.call(f, kk, a, kk, b, c, n)
    rng = np.random.default_rng(5)
    x, y, out = rng.normal(size=(m, depth)).astype(np.float32), rng.normal(size=(depth, n)).astype(np.float32), np.zeros((m, n), np.float32)
    call(k.finish(), address(micro), x, y, out, depth)
    np.testing.assert_allclose(out, x @ y, rtol=1e-5, atol=1e-5)


def gemm_micro_kernel(rows: int, columns: int, lanes: int, unroll: int = 4) -> Kernel:
    k = Builder("micro", entry="plain")
    depth, a, lda = k.argument_integer("k"), k.argument_pointer("a", f32), k.argument_integer("lda")
    b, c, ldc = k.argument_pointer("b", f32), k.argument_pointer("c", f32), k.argument_integer("ldc")
    sums = [[k.var(0.0, f32, lanes) for _ in range(columns)] for _ in range(rows)]
    starts = [k.offset(a, lda * i) for i in range(rows)]
    with k.loop(0, depth, unroll) as i:
        panel = k.offset(b, i * (columns * lanes))
        for u in range(unroll):
            vectors = [k.load(panel, (u * columns + j) * lanes, lanes) for j in range(columns)]
            for r in range(rows):
                x = k.splat(k.load(starts[r], i + u), lanes)
                for j in range(columns):
                    sums[r][j].set(k.fma(x, vectors[j], sums[r][j].get()))
    for r in range(rows):
        for j in range(columns):
            k.store(sums[r][j].get(), c, ldc * r + j * lanes)
    return k.finish()


def test_numbers_scratch_and_stack_arrays_reach_the_kernel() -> None:
    k = Builder("mixed")
    scale, y = k.number("scale", f32), k.pointer("y", f32)
    tmp = k.thread_scratch("tmp", 64)
    tile = k.array(f32, 8)
    k.store(k.splat(scale, 8), tile)
    k.store(k.load(tile, 0, 8) + 1.0, tmp)
    k.store(k.load(tmp, 0, 8), y)
    y_out, scratch = np.zeros(8, np.float32), np.zeros(3 * 128, np.uint8)
    call(k.finish(), int(np.float32(2.5).view(np.uint32)), y_out, scratch, 128, tid=2)
    assert y_out.tolist() == [3.5] * 8
    assert scratch[:256].sum() == 0 and scratch[256:].view(np.float32)[:8].tolist() == [3.5] * 8


def test_a_plain_number_argument_travels_in_a_register() -> None:
    callee = Builder("callee", entry="plain")
    v, s, out = callee.argument_number("v", f32, 4), callee.argument_number("s", f32), callee.argument_pointer("out", f32)
    callee.store(v * s, out)
    k = Builder("caller")
    f, x, y = k.function_pointer("f"), k.pointer("x", f32), k.pointer("y", f32)
    k.call(f, k.load(x, 0, 4), 3.0, y)
    x_in, y_out = np.arange(4, dtype=np.float32), np.zeros(4, np.float32)
    call(k.finish(), address(callee.finish()), x_in, y_out)
    np.testing.assert_array_equal(y_out, x_in * 3)


def test_nontemporal_stores_and_prefetch_change_no_values() -> None:
    k = Builder("stream")
    x, y = k.pointer("x", f32), k.pointer("y", f32)
    k.prefetch(x, 1 << 20)
    k.store(k.load(x, 0, 8), y, 0, nontemporal=True)
    x_in, raw = np.arange(8, dtype=np.float32), np.zeros(32, np.float32)
    start = -raw.ctypes.data // 4 % 16
    call(k.finish(), x_in, raw[start:])
    np.testing.assert_array_equal(raw[start : start + 8], x_in)


def test_constants_are_folded_in_index_arithmetic() -> None:
    k = Builder("fold")
    n = k.integer("n")
    assert (k.index(3) * 4 + 2).constant == 14
    assert (n + 0) is n and (n * 1) is n and (n * 0).constant == 0
    assert (k.index(-7) / 2).constant == -3 and (k.index(-7) % 2).constant == -1


def test_operands_of_different_types_are_refused_with_the_way_out() -> None:
    k = Builder("mixed")
    x, n = k.pointer("x", f32), k.integer("n")
    with pytest.raises(KernelError, match=r"operands must have one element type, got i64 where f32 is wanted"):
        k.load(x) + n
    with pytest.raises(KernelError, match="add must be in f32 or f64, got f16"):
        k.const(1.0, f16) + 1.0
    with pytest.raises(KernelError, match=r"must use k.when or k.select"):
        bool(n > 3)
    with pytest.raises(KernelError, match="store must be of f32, got f64x4"):
        k.store(k.const(1.0, f64, 4), x)
    with pytest.raises(KernelError, match="chunk and tid must be read in entry 'args'"):
        _ = Builder("micro", entry="plain").chunk
    with pytest.raises(KernelError, match="parameter names must differ"):
        k.pointer("x", f32)
