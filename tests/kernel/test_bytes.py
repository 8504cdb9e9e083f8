"""dot4 and lookup: exact on every way that a machine has of doing them, with the extreme codes."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from jumar.base import DType, KernelError, i8, i32, u8
from jumar.device import Target, can_execute_here, host, named
from jumar.kernel import Builder, Kernel
from tests.kernel.harness import call

CPUS = ["", "znver3", "skylake-avx512", "x86-64-v2", "x86-64"]
TABLE = tuple(int(t) for t in np.random.default_rng(5).permutation(256))


def target_of(cpu: str) -> Target:
    """The CPU to make code for; one whose instructions this machine lacks is left out: its code may use any of them."""
    target = named(cpu) if cpu else host()
    if not can_execute_here(target):
        pytest.skip(f"this machine cannot run code for {cpu}")
    return target


@cache
def dot_kernel(lanes: int, dtype: DType, narrow: bool) -> Kernel:
    k = Builder(f"dot_{lanes}_{dtype}_{narrow}")
    a, b, y = k.pointer("a", dtype), k.pointer("b", i8), k.pointer("y", i32)
    k.store(k.dot4(k.load(y, 0, lanes), k.load(a, 0, 4 * lanes), k.load(b, 0, 4 * lanes), narrow=narrow), y, 0)
    return k.finish()


def extremes(dtype: DType, count: int, low: int | None = None, high: int | None = None) -> np.ndarray:
    rng = np.random.default_rng(count)
    info = np.iinfo(dtype.numpy)
    least, most = info.min if low is None else low, info.max if high is None else high
    ends = rng.choice([least, most, 0], count)
    return np.where(rng.random(count) < 0.7, ends, rng.integers(least, most + 1, count)).astype(dtype.numpy)


@pytest.mark.parametrize("cpu", CPUS)
@pytest.mark.parametrize("lanes", [4, 8, 16])
@pytest.mark.parametrize("dtype", [u8, i8], ids=str)
@pytest.mark.parametrize("narrow", [False, True])
def test_dot4_is_exact(cpu: str, lanes: int, dtype: DType, narrow: bool) -> None:
    a = extremes(dtype, 4 * lanes)
    b = extremes(i8, 4 * lanes, *((-64, 64) if narrow else ()))
    y = np.arange(lanes, dtype=np.int32) * 1000 - 7
    expected = y + (a.astype(np.int32) * b.astype(np.int32)).reshape(lanes, 4).sum(1)
    call(dot_kernel(lanes, dtype, narrow), a, b, y, target=target_of(cpu))
    np.testing.assert_array_equal(expected, y)


@cache
def lookup_kernel(lanes: int) -> Kernel:
    k = Builder(f"lookup_{lanes}")
    x, y = k.pointer("x", u8), k.pointer("y", i8)
    k.store(k.lookup(k.load(x, 0, lanes), TABLE, i8), y, 0)
    return k.finish()


@pytest.mark.parametrize("cpu", CPUS)
@pytest.mark.parametrize("lanes", [1, 4, 16, 32, 64, 128])
def test_lookup_finds_every_code(cpu: str, lanes: int) -> None:
    codes = np.arange(256, dtype=np.uint8)
    for first in range(0, 256, lanes):
        x, y = codes[first : first + lanes].copy(), np.zeros(lanes, np.int8)
        call(lookup_kernel(lanes), x, y, target=target_of(cpu))
        np.testing.assert_array_equal(np.array(TABLE, np.uint8)[x].view(np.int8), y)


def test_operands_must_be_bytes() -> None:
    k = Builder("wrong")
    with pytest.raises(KernelError, match=r"dot4 must be of i32, bytes and i8, got i32x4, i32x4, i8x16"):
        k.dot4(k.const(0, i32, 4), k.const(0, i32, 4), k.const(0, i8, 16))
    with pytest.raises(KernelError, match=r"lookup must be of bytes in 256 bytes, got u8x16 in 3"):
        k.lookup(k.const(0, u8, 16), (1, 2, 3), u8)
