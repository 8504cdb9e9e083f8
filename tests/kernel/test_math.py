"""Vector math is as accurate as its docstrings say, over the whole range, and right where numbers are special."""

from __future__ import annotations

import math as python_math
from collections.abc import Callable

import numpy as np
import pytest

from jumar.base import f32, f64
from jumar.kernel import Builder, Kernel, math
from tests.kernel.harness import call

SPECIAL = [
    0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 1e-45, -1e-45, 1e-40, 1.1754944e-38, 3.4e38, -3.4e38, 88.72, 88.73, -87.3, -103.9,
    -104.0, 0.5, 2.0, 9.0, 10.0, -9.0, 127.99, 128.0, -149.0, -150.1, 3e-39, 1e-7, -1e-7, 1e6,
]  # fmt: skip


def _kernel(name: str, count: int, dtype: object = f32, lanes: int = 8) -> Kernel:
    k = Builder(name)
    xs = [k.pointer(f"x{i}", dtype) for i in range(count)]  # type: ignore[arg-type]
    y, n = k.pointer("y", dtype), k.integer("n")  # type: ignore[arg-type]
    with k.loop(0, n, lanes) as i:
        k.store(getattr(math, name)(k, *(k.load(x, i, lanes) for x in xs)), y, i)
    return k.finish()


def _inputs() -> np.ndarray:
    rng = np.random.default_rng(0)
    parts = [
        np.array(SPECIAL),
        rng.integers(0, 1 << 32, 1 << 16, dtype=np.uint64).astype(np.uint32).view(np.float32),
        rng.normal(0, 1, 1 << 15),
        rng.normal(0, 30, 1 << 15),
        rng.normal(0, 1e-3, 1 << 14),
        1 + rng.normal(0, 1e-2, 1 << 14),
    ]
    x = np.concatenate([p.astype(np.float32) for p in parts])
    return x[: len(x) // 8 * 8].copy()


def _ulps(actual: np.ndarray, exact: np.ndarray) -> np.ndarray:
    """Distance in units in the last place of the exact result; 0 where both are the same infinity or NaN."""
    with np.errstate(all="ignore"):
        nearest = exact.astype(np.float32)
        error = np.abs(actual.astype(np.float64) - exact) / np.spacing(np.abs(nearest)).astype(np.float64)
    error[(actual == nearest) & ~np.isfinite(error)] = 0
    error[np.isinf(nearest) & (actual == nearest)] = 0
    error[np.isnan(actual) & np.isnan(nearest)] = 0
    return np.where(np.isnan(error), np.inf, error)


ACCURACY: dict[str, tuple[float, Callable[[np.ndarray], np.ndarray]]] = {
    "exp": (1.0, np.exp),
    "exp2": (1.0, np.exp2),
    "expm1": (1.5, np.expm1),
    "log": (1.0, np.log),
    "log2": (1.0, np.log2),
    "log10": (1.0, np.log10),
    "log1p": (2.0, np.log1p),
    "tanh": (2.2, np.tanh),
    "sin": (1.6, np.sin),
    "cos": (1.6, np.cos),
    "erf": (1.0, np.vectorize(python_math.erf)),
    "tan": (1.1, np.tan),
    "atan": (1.0, np.arctan),
    "asinh": (2.0, np.arcsinh),
    "sinh": (2.0, np.sinh),
    "acos": (1.0, np.arccos),
}


@pytest.mark.parametrize("name", ACCURACY)
def test_f32_is_within_its_stated_ulps(name: str) -> None:
    ulps, exact = ACCURACY[name]
    x = _inputs()
    y = np.empty_like(x)
    call(_kernel(name, 1), x, y, len(x))
    with np.errstate(all="ignore"):
        expected = exact(x.astype(np.float64))
    error = _ulps(y, expected)
    worst = int(error.argmax())
    assert error[worst] <= ulps, f"{name}({x[worst]!r}) = {y[worst]!r}, exact {expected[worst]!r}: {error[worst]} ulp"
    zero = (expected == 0) & (x == 0)
    np.testing.assert_array_equal(np.signbit(y[zero]), np.signbit(expected[zero]))


def test_sigmoid_is_within_its_stated_ulps() -> None:
    x = _inputs()
    y = np.empty_like(x)
    call(_kernel("sigmoid", 1), x, y, len(x))
    with np.errstate(all="ignore"):
        expected = 1 / (1 + np.exp(-x.astype(np.float64)))
    assert _ulps(y, expected)[~(x < -88.0)].max() <= 2.5
    assert (y[x < -88.0] <= 6.1e-39).all()


def test_exp_below_is_within_its_stated_ulps() -> None:
    x = _inputs()
    x = np.minimum(x, np.float32(88.0))  # NaN stays
    y = np.empty_like(x)
    call(_kernel("exp_below", 1), x, y, len(x))
    with np.errstate(all="ignore"):
        expected = np.exp(x.astype(np.float64))
    tiny = expected < 1.2e-38
    assert _ulps(y, expected)[~tiny].max() <= 1.0
    assert (y[tiny] <= 1.2e-38).all() and (y[x == -np.inf] == 0).all()


@pytest.mark.parametrize(("name", "error"), [("gelu", 1.8e-7), ("gelu_tanh", 2e-7)])
def test_gelu_is_as_near_as_stated(name: str, error: float) -> None:
    x = _inputs()
    x = x[np.isfinite(x)][: len(x) // 16 * 8]
    x = np.concatenate([x, np.linspace(-12, 12, 1 << 16, dtype=np.float32)])
    x = x[: len(x) // 8 * 8].copy()
    y = np.empty_like(x)
    call(_kernel(name, 1), x, y, len(x))
    wide = x.astype(np.float64)
    with np.errstate(all="ignore"):
        inner = np.sqrt(2 / np.pi) * (wide + 0.044715 * wide**3)
        expected = (
            wide / (1 + np.exp(-2 * inner)) if name == "gelu_tanh" else wide / 2 * (1 + np.vectorize(python_math.erf)(wide / np.sqrt(2)))
        )
    off = np.abs(y - expected) - error * np.abs(wide)
    worst = int(off.argmax())
    assert off[worst] <= 2e-37, f"{name}({x[worst]!r}) = {y[worst]!r}, exact {expected[worst]!r}"
    special = np.array([np.nan, np.inf, 0.0, -0.0, 1e30, -1e30, 3.0, -3.0], np.float32)
    found = np.empty_like(special)
    call(_kernel(name, 1), special, found, len(special))
    assert np.isnan(found[0]) and found[1] == np.inf and np.signbit(found[3]) and found[4] == special[4] and abs(found[5]) <= 2e-37


def test_pow_is_correctly_rounded_nearly_always_and_right_at_the_edges() -> None:
    x = _inputs()
    rng = np.random.default_rng(1)
    y = rng.permutation(x)
    y[: len(y) // 2] = np.round(rng.normal(0, 5, len(y) // 2))
    edges = np.array([0, -0.0, 1, -1, np.inf, -np.inf, np.nan, 2, -2, 0.5, -0.5, 3, -3, 1e30, -1e30, 1e-45, 16777216, 1.5], np.float32)
    a, b = (g.ravel() for g in np.meshgrid(edges, edges))
    x, y = np.concatenate([a, x]), np.concatenate([b, y])
    x, y = x[: len(x) // 8 * 8].copy(), y[: len(x) // 8 * 8].copy()
    z = np.empty_like(x)
    call(_kernel("pow", 2), x, y, z, len(x))
    with np.errstate(all="ignore"):
        expected = np.power(x.astype(np.float64), y.astype(np.float64))
    error = _ulps(z, expected)
    worst = int(error.argmax())
    assert error[worst] <= 0.6, f"pow({x[worst]!r}, {y[worst]!r}) = {z[worst]!r}, exact {expected[worst]!r}"
    number = ~np.isnan(expected)
    np.testing.assert_array_equal(np.signbit(z[number]), np.signbit(expected[number]))


@pytest.mark.parametrize("name", ["exp", "log", "tanh", "erf", "sin", "log1p"])
def test_f64_is_the_c_librarys(name: str) -> None:
    x = np.abs(np.random.default_rng(2).normal(0, 2, 64))
    y = np.empty_like(x)
    call(_kernel(name, 1, f64, 4), x, y, len(x))
    np.testing.assert_allclose(y, np.vectorize(getattr(python_math, name))(x), rtol=1e-15)


def test_one_lane_gives_what_eight_lanes_give() -> None:
    x = _inputs()[:4096]
    for name in ("exp", "log", "tanh", "erf", "sin"):
        one, eight = np.empty_like(x), np.empty_like(x)
        call(_kernel(name, 1, lanes=1), x, one, len(x))
        call(_kernel(name, 1), x, eight, len(x))
        np.testing.assert_array_equal(one, eight)
