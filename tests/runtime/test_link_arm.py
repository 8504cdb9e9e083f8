"""aarch64 code, linked here, computes right in an emulator (where the package `unicorn` is installed: `pip install unicorn`)."""

from __future__ import annotations

import ctypes
import struct

import numpy as np
import pytest

from jumar.base import DType, f16, f32, f64, i8, u8
from jumar.device import named
from jumar.kernel import Builder, Kernel, compile_text, emit, math
from jumar.operators.cpu.integer_microkernel import byte_micro_kernel, byte_tile
from jumar.operators.cpu.integer_packing import pack_bytes
from jumar.runtime.link import Code, link, resolve
from tests.kernel.test_builder import gemm_micro_kernel
from tests.kernel.test_bytes import TABLE, dot_kernel, extremes, lookup_kernel

unicorn = pytest.importorskip("unicorn")
arm = pytest.importorskip("unicorn.arm64_const")

TARGET = named("neoverse-n1")
DATA, STACK, STOP = 1 << 32, 0x70000000, 0x60000000


def _linked(kernel: Kernel) -> Code:
    return link({kernel.name: compile_text(emit(kernel, TARGET), kernel.name, TARGET).object_bytes}, machine="aarch64")


def _run(kernel: Kernel, registers: list[int | np.ndarray], words: list[int | np.ndarray] | None = None) -> dict[int, np.ndarray]:
    """Runs the kernel; arrays stand for pointers.   Gives each array's bytes afterwards, by its id."""
    code = _linked(kernel)
    machine = unicorn.Uc(unicorn.UC_ARCH_ARM64, unicorn.UC_MODE_ARM)
    machine.ctl_set_cpu_model(arm.UC_CPU_ARM64_MAX)  # the usual one has no dot products
    machine.reg_write(arm.UC_ARM64_REG_CPACR_EL1, 3 << 20)  # vectors on
    machine.mem_map(code.base, (code.nbytes + 4095) & -4096)
    machine.mem_write(code.base, ctypes.string_at(code.base, code.nbytes))
    for start, size in ((DATA, 1 << 20), (STACK, 1 << 16), (STOP, 4096)):
        machine.mem_map(start, size)
    arrays = {id(a): a for a in [*registers, *(words or [])] if isinstance(a, np.ndarray)}
    places = {key: DATA + 4096 * (i + 1) for i, key in enumerate(arrays)}
    for key, a in arrays.items():
        machine.mem_write(places[key], a.tobytes())
    if words is not None and kernel.entry == "args":
        machine.mem_write(DATA, struct.pack(f"<{len(words)}q", *(places[id(w)] if isinstance(w, np.ndarray) else w for w in words)))
        registers = [DATA, 0, 0]
    for i, r in enumerate(registers):
        machine.reg_write(arm.UC_ARM64_REG_X0 + i, places[id(r)] if isinstance(r, np.ndarray) else r)
    exp = resolve("exp")
    machine.mem_map(exp & -4096, 8192)
    machine.mem_write(exp, struct.pack("<I", 0xD65F03C0))  # ret

    def on_exp(uc: object, *_: object) -> None:
        (value,) = struct.unpack("<d", struct.pack("<Q", machine.reg_read(arm.UC_ARM64_REG_D0)))
        machine.reg_write(arm.UC_ARM64_REG_D0, struct.unpack("<Q", struct.pack("<d", np.exp(value)))[0])

    machine.hook_add(unicorn.UC_HOOK_CODE, on_exp, begin=exp, end=exp)
    machine.reg_write(arm.UC_ARM64_REG_SP, STACK + (1 << 15))
    machine.reg_write(arm.UC_ARM64_REG_LR, STOP)
    machine.emu_start(code.address(kernel.name), STOP)
    return {key: np.frombuffer(bytes(machine.mem_read(places[key], a.nbytes)), a.dtype).reshape(a.shape) for key, a in arrays.items()}


def test_the_8x12_micro_kernel_multiplies_matrices() -> None:
    rng = np.random.default_rng(0)
    a, b, c = rng.normal(size=(8, 16)).astype(np.float32), rng.normal(size=(16, 12)).astype(np.float32), np.zeros((8, 12), np.float32)
    after = _run(gemm_micro_kernel(8, 3, 4), [16, a, 16, b, c, 12])
    np.testing.assert_allclose(after[id(c)], a @ b, rtol=1e-5, atol=1e-5)


def test_math_constants_and_half_conversion_are_right() -> None:
    k = Builder("activation")
    x, y, z, n = k.pointer("x", f32), k.pointer("y", f32), k.pointer("z", f16), k.integer("n")
    with k.loop(0, n, 4) as i:
        v = math.tanh(k, math.exp(k, k.load(x, i, 4)))
        k.store(v, y, i)
        k.store(k.convert(v, f16), z, i)
    values = np.linspace(-4, 1, 16, dtype=np.float32)
    single, half = np.zeros(16, np.float32), np.zeros(16, np.float16)
    after = _run(k.finish(), [], [values, single, half, 16])
    np.testing.assert_allclose(after[id(single)], np.tanh(np.exp(values)), rtol=1e-6)
    np.testing.assert_array_equal(after[id(half)], after[id(single)].astype(np.float16))


def test_functions_of_the_c_library_are_called_through_their_stub() -> None:
    k = Builder("exp")
    x = k.pointer("x", f64)
    k.store(k.call_libm("exp", k.load(x)) + 1.2345, x)
    value = np.array([0.5])
    assert _run(k.finish(), [], [value])[id(value)][0] == np.exp(0.5) + 1.2345


@pytest.mark.parametrize("dtype", [u8, i8], ids=str)
def test_bytes_are_multiplied_exactly(dtype: DType) -> None:
    kernel = dot_kernel(4, dtype, False)
    a, b, y = extremes(dtype, 16), extremes(i8, 16), np.arange(4, dtype=np.int32)
    after = _run(kernel, [], [a, b, y])
    expected = y + (a.astype(np.int32) * b.astype(np.int32)).reshape(4, 4).sum(1)
    np.testing.assert_array_equal(after[id(y)], expected)


def test_a_tile_of_bytes_multiplies_matrices() -> None:
    tile = byte_tile(TARGET, u8, 16, narrow=True)
    assert tile.flip, "the machine multiplies signed bytes"
    rng = np.random.default_rng(0)
    x, w = rng.integers(0, 256, (tile.rows, 20), np.uint8), rng.integers(-128, 128, (20, 16)).astype(np.int8)
    packed = pack_bytes(w[None, None], tile, 77)[0, 0]
    start, codes = packed[: 4 * tile.columns].copy(), packed[4 * tile.columns :].copy()
    sums, words = np.zeros((tile.rows, tile.columns), np.int32), np.zeros(tile.rows, np.int64)
    registers = [words, 1, 5, codes, start, sums]
    arrays = [a for a in registers if isinstance(a, np.ndarray)] + [x]
    words[:] = DATA + 4096 * (1 + len(arrays) - 1) + np.arange(tile.rows) * 20  # where `_run` puts x, which comes last
    after = _run(byte_micro_kernel(tile), registers, [x])
    np.testing.assert_array_equal(after[id(sums)], (x.astype(np.int32) - 77) @ w.astype(np.int32))


def test_bytes_are_looked_up() -> None:
    kernel = lookup_kernel(64)
    for first in range(0, 256, 64):
        x, y = np.arange(first, first + 64).astype(np.uint8), np.zeros(64, np.int8)
        after = _run(kernel, [], [x, y])
        np.testing.assert_array_equal(after[id(y)], np.array(TABLE, np.uint8)[x].view(np.int8))
