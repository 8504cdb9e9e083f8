"""Kernels become objects: the same on every thread, for machines that are not here, and from the cache."""

from __future__ import annotations

import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from jumar.base import KernelError, Store, f16, f32, i32
from jumar.device import host, named
from jumar.kernel import Builder, Kernel, assembly, compile_kernel, compile_kernels, compile_text, emit, kernel_key, math
from tests.kernel.test_builder import gemm_micro_kernel


def _activation(name: str = "activation", lanes: int = 8) -> Kernel:
    k = Builder(name)
    x, y, n = k.pointer("x", f32), k.pointer("y", f16), k.integer("n")
    with k.loop(0, n, lanes) as i:
        v = math.erf(k, math.tanh(k, math.exp(k, k.load(x, i, lanes))))
        mask = k.lane_mask(n - i, lanes)
        k.store(k.convert(k.gather(x, k.iota(lanes, i32), mask) + v, f16), y, i, mask=mask)
    return k.finish()


@pytest.mark.skipif(not host().has("fma"), reason="counts x86's FMA instructions")
def test_the_6x16_micro_kernel_keeps_its_accumulators_in_registers() -> None:
    text = assembly(gemm_micro_kernel(6, 2, 8, unroll=4), named("x86-64-v3"))
    assert len(re.findall(r"vfmadd231ps", text)) == 6 * 2 * 4
    assert len(re.findall(r"vbroadcastss", text)) == 6 * 4
    assert not re.findall(r"v?mov[au]ps\s.*\(%rsp", text), "a vector is spilled"


def test_code_is_made_for_machines_that_are_not_here() -> None:
    wide = assembly(gemm_micro_kernel(6, 2, 16), named("skylake-avx512"))
    assert "zmm" in wide and "vfmadd231ps" in wide
    arm = assembly(gemm_micro_kernel(8, 3, 4), named("neoverse-n1"))
    assert len(re.findall(r"fmla\s+v\d+\.4s, v\d+\.4s, v\d+\.(4s|s\[)", arm)) == 8 * 3 * 4
    poor = assembly(gemm_micro_kernel(4, 2, 4), named("x86-64"))
    assert "mulps" in poor and "fmaf" not in poor
    for cpu, magic in (("skylake-avx512", 62), ("x86-64", 62), ("tsv110", 183), ("cortex-a53", 183)):
        target = named(cpu)
        made = compile_text(emit(_activation(lanes=target.lanes(f32)), target), "activation", target)
        assert made.object_bytes[:4] == b"\x7fELF" and made.object_bytes[18] == magic


def test_the_pass_list_moves_invariant_work_out_of_loops() -> None:
    k = Builder("invariant")
    x, y, n, s = k.pointer("x", f32), k.pointer("y", f32), k.integer("n"), k.number("s", f32)
    with k.loop(0, n, 8) as i:
        k.store(k.load(x, i, 8) / k.sqrt(k.splat(s, 8) + 1.0), y, i)
    text = assembly(k.finish(), named("x86-64-v3"))
    loop = re.search(r"(\.LBB0_\d+):(?:(?!\.LBB).)*?\bj\w+\s+\1", text, re.S)
    assert loop and "vdivps" in loop[0] and "sqrt" not in loop[0] and "broadcast" not in loop[0]


def test_many_threads_make_the_same_code_as_one() -> None:
    kernels = [gemm_micro_kernel(rows, columns, 8, unroll) for rows in range(1, 7) for columns in (1, 2) for unroll in (1, 2, 4)]
    texts = [emit(k, host()) for k in kernels]
    alone = [compile_text(t, "micro", host()).object_bytes for t in texts]
    with ThreadPoolExecutor(4) as pool:
        together = list(pool.map(lambda t: compile_text(t, "micro", host()).object_bytes, texts * 4))
    assert together == alone * 4


def test_the_cache_gives_the_same_object_and_mends_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JUMAR_CACHE_DIR", str(tmp_path))
    kernel = _activation("cached")
    first = compile_kernel(kernel)
    assert first.codegen_ms > 0
    second = compile_kernel(kernel)
    assert second.codegen_ms == 0 and second.object_bytes == first.object_bytes
    path = Store(tmp_path / "kernels").path(kernel_key(kernel, host()))
    raw = bytearray(path.read_bytes())
    raw[len(raw) // 2] ^= 1
    path.write_bytes(raw)
    third = compile_kernel(kernel)
    assert third.codegen_ms > 0 and third.object_bytes == first.object_bytes
    assert [c.object_bytes for c in compile_kernels([kernel, kernel])] == [first.object_bytes] * 2


def test_the_key_of_a_kernel_holds_its_text_and_the_instruction_set() -> None:
    a, b = _activation("one"), _activation("two")
    assert kernel_key(a, host()) == kernel_key(_activation("one"), host())
    assert len({kernel_key(a, host()), kernel_key(b, host()), kernel_key(a, named("x86-64-v2"))}) == 3


def test_a_kernel_may_have_the_name_of_a_library_function() -> None:
    k = Builder("erf")
    x = k.pointer("x", f32)
    k.store(k.call_libm("erf", k.load(x)), x)
    assert compile_text(emit(k.finish(), host()), "erf", host()).object_bytes


def test_text_that_llvm_refuses_is_our_bug_and_says_so() -> None:
    with pytest.raises(KernelError, match=r"LLVM must accept its text \(this is our bug\)"):
        compile_text("define void @k() { nonsense }", "k", host())
