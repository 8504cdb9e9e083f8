"""The linker makes what LLVM emits callable, refuses what is foreign, and forgets code that no one holds."""

from __future__ import annotations

import ctypes
import gc
import math
import platform
from pathlib import Path

import pytest

from jumar.base import RuntimeFault, f64
from jumar.device import host, named
from jumar.kernel import Builder, compile_text, emit
from jumar.runtime import link
from jumar.runtime.native import pool_object, pool_text


def _libm(function: str) -> bytes:
    k = Builder(function)
    x = k.pointer("x", f64)
    k.store(k.call_libm(function, k.load(x)) + 1.25, x)
    return compile_text(emit(k.finish(), host()), function, host()).object_bytes


def test_functions_of_the_c_library_and_constants_are_reached() -> None:
    code = link({name: _libm(name) for name in ("erf", "exp", "sin")})
    for name in ("erf", "exp", "sin"):
        x, words = ctypes.c_double(0.5), (ctypes.c_int64 * 1)()
        words[0] = ctypes.addressof(x)
        ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)(code.address(name))(ctypes.addressof(words), 0, 0)
        assert x.value == getattr(math, name)(0.5) + 1.25


def test_unknown_functions_and_damaged_objects_are_refused() -> None:
    with pytest.raises(RuntimeFault, match="must be in the C library, got no_such_function"):
        link({"bad": _libm("no_such_function")})
    whole = _libm("exp")
    for raw in (b"", b"\x7fELF", whole[:200], b"MZ" + whole[2:]):
        with pytest.raises(RuntimeFault, match="is damaged"):
            link({"bad": raw})


@pytest.mark.skipif(platform.machine() != "x86_64", reason="makes code for the other architecture")
def test_code_for_another_architecture_is_refused_here_but_links_for_it() -> None:
    target = named("tsv110")
    k = Builder("exp")
    x = k.pointer("x", f64)
    k.store(k.call_libm("exp", k.load(x)) + 1.25, x)
    raw = compile_text(emit(k.finish(), target), "exp", target).object_bytes
    with pytest.raises(RuntimeFault, match=r"must be for this machine \(x86_64\), got aarch64"):
        link({"exp": raw})


def test_code_is_unmapped_when_no_one_holds_it() -> None:
    def mapped() -> int:
        return Path("/proc/self/maps").read_text().count("r-xp 00000000 00:00 0")

    held = link({"exp": _libm("exp")})
    gc.collect()
    before = mapped()
    more = [link({"exp": _libm("exp")}) for _ in range(5)]
    assert more[0].address("exp") != held.address("exp")
    del more
    gc.collect()
    assert mapped() <= before


def test_the_pool_is_made_for_both_architectures() -> None:
    for architecture, magic in (("x86_64", 62), ("aarch64", 183)):
        assert pool_object(architecture)[18] == magic
    assert "cntvct_el0" in pool_text("aarch64") and "stmxcsr" not in pool_text("aarch64")
