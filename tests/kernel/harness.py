"""Runs one kernel on arrays, outside any Program: for the tests of what builder and code generator mean."""

from __future__ import annotations

import ctypes
from functools import cache

import numpy as np

from jumar.device import Target, host
from jumar.kernel import Kernel, compile_text, emit
from jumar.runtime import Code, link


@cache
def _linked(text: str, name: str, target: Target) -> Code:
    return link({name: compile_text(text, name, target).object_bytes})


def address(kernel: Kernel, target: Target | None = None) -> int:
    target = target or host()
    return _linked(emit(kernel, target), kernel.name, target).address(kernel.name)


def call(kernel: Kernel, *args: np.ndarray | int, chunk: int = 0, tid: int = 0, target: Target | None = None) -> None:
    """Calls a kernel with entry `args`: arrays become pointers, numbers words."""
    words = (ctypes.c_int64 * max(1, len(args)))(*(a.ctypes.data if isinstance(a, np.ndarray) else int(a) for a in args))
    function = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)(address(kernel, target))
    function(ctypes.addressof(words), chunk, tid)
