"""LLVM's text to machine code.

In: what emit.py writes for a `Kernel` and a `Target`.  Out: an object file with one function (`compile_kernel`), which the executor
links.  Every kernel is a module of its own in a context of its own, so that several compile at once.
"""

from __future__ import annotations

import ctypes
import hashlib
import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import Any

from jumar.base import KernelError, Store, config, span
from jumar.device import Target, host, usable_cores
from jumar.kernel.emit import emit
from jumar.kernel.ir import Kernel

CODE_VERSION = 3  # raise it when the same kernel text is to give other code


@dataclass(frozen=True)
class CompiledKernel:
    """Object code of one kernel.   symbol: the name that it defines.   *_ms: what the making took, 0 from the cache."""

    symbol: str
    object_bytes: bytes
    parse_ms: float = 0.0
    optimize_ms: float = 0.0
    codegen_ms: float = 0.0


def kernel_key(kernel: Kernel, target: Target) -> str:
    """Names the object code of a kernel: a hash of its text, the instruction set, and the versions of generator and LLVM."""
    return hashlib.sha256(f"{CODE_VERSION}\n{_llvm_version()}\n{target.instruction_set}\n{kernel}".encode()).hexdigest()


@lru_cache(maxsize=1)
def _llvm_version() -> str:
    import llvmlite  # noqa: PLC0415  (heavy: only where code is made)
    import llvmlite.binding  # noqa: PLC0415

    return f"llvmlite {llvmlite.__version__}, LLVM {'.'.join(map(str, llvmlite.binding.llvm_version_info))}"


def compile_kernel(kernel: Kernel, target: Target | None = None) -> CompiledKernel:
    """Machine code of the kernel, from the cache on disk where it is there.   May be called from several threads at once."""
    target = target or host()
    cache = _cache()
    key = kernel_key(kernel, target) if cache else ""
    if cache and (found := cache.get(key)) is not None:
        return CompiledKernel(kernel.name, found)
    with span("compile kernel", kernel=kernel.name) as facts:
        compiled = compile_text(emit(kernel, target), kernel.name, target)
        facts["codegen_ms"] = compiled.codegen_ms
    if cache:
        cache.put(key, compiled.object_bytes)
    return compiled


def compile_kernels(kernels: Sequence[Kernel], target: Target | None = None, threads: int = 0) -> list[CompiledKernel]:
    """Machine code of all of them, in order, on as many threads as there are cores."""
    target = target or host()
    workers = min(threads or usable_cores(), len(kernels))
    if workers <= 1:
        return [compile_kernel(k, target) for k in kernels]
    with ThreadPoolExecutor(workers) as pool:
        return list(pool.map(lambda k: compile_kernel(k, target), kernels))


def _cache() -> Store | None:
    return Store(config("cache_dir") / "kernels") if config("cache") else None


def compile_text(text: str, symbol: str, target: Target) -> CompiledKernel:
    """Object code of LLVM IR text.   Our mistake in the text is a KernelError with LLVM's words."""
    times = [time.perf_counter()]
    module = _Module(text, symbol, target)
    try:
        times.append(time.perf_counter())
        module.optimize()
        times.append(time.perf_counter())
        code = module.generate(as_object=True)
        times.append(time.perf_counter())
    finally:
        module.close()
    parse, optimize, codegen = ((b - a) * 1e3 for a, b in pairwise(times))
    return CompiledKernel(symbol, code, parse, optimize, codegen)


def assembly(kernel: Kernel, target: Target | None = None) -> str:
    """Assembly text of the kernel, for people."""
    target = target or host()
    module = _Module(emit(kernel, target), kernel.name, target)
    try:
        module.optimize()
        return module.generate(as_object=False).decode()
    finally:
        module.close()


class _Api:
    """LLVM's functions as ctypes has them, without the one lock that llvmlite holds around every call.

    LLVM may run on several threads as long as each has its own context, module, pass builder and target machine.  llvmlite's
    lock serialises it all the same; the wrapped functions behind the lock are the same C functions, and ctypes releases the GIL.
    """

    def __init__(self) -> None:
        import llvmlite.binding  # noqa: PLC0415  (as above)

        llvm: Any = llvmlite.binding  # untyped

        llvm.initialize_all_targets()
        llvm.initialize_all_asmprinters()
        self.llvm = llvm
        self.lib = llvm.ffi.lib

    def __getattr__(self, name: str) -> Any:
        locked = getattr(self.lib, f"LLVMPY_{name}")
        function = getattr(locked, "_cfn", locked)
        setattr(self, name, function)
        return function


@lru_cache(maxsize=1)
def _api() -> _Api:
    return _Api()


_THREAD = threading.local()


def _machine(target: Target) -> Any:
    """The target machine of this thread (it is not to be shared between threads)."""
    machines = _THREAD.__dict__.setdefault("machines", {})
    if target.instruction_set not in machines:
        found = _api().llvm.Target.from_triple(target.triple)
        machines[target.instruction_set] = found.create_target_machine(
            cpu=target.cpu, features=target.features, opt=3, reloc="pic", codemodel="small"
        )
    return machines[target.instruction_set]


class _Module:
    """One LLVM module in its own context, from text to code."""

    def __init__(self, text: str, symbol: str, target: Target) -> None:
        api = _api()
        self.api = api
        self.symbol = symbol
        self.machine = _machine(target)
        self.context = api.ContextCreate()
        error = ctypes.c_char_p()
        self.module = api.ParseAssembly(self.context, text.encode(), ctypes.byref(error))
        if not self.module:
            message = _message(error)
            api.ContextDispose(self.context)
            raise KernelError(f"kernel {symbol}: LLVM must accept its text (this is our bug), got {message}", code="kernel-llvm")

    def optimize(self) -> None:
        """The passes that this code needs: variables to registers, loops tested at their end, common parts once.

        LLVM's own -O3 list takes five times as long and gives the same inner loops: what it could vectorise or unroll, schedules
        write out, and what is invariant in a loop the machine-code passes move (measured on the kernels of tests/kernel).
        """
        llvm = self.api.llvm
        options = llvm.create_pipeline_tuning_options(speed_level=3)
        options.slp_vectorization = options.loop_vectorization = options.loop_unrolling = options.loop_interleaving = False
        builder = llvm.create_pass_builder(self.machine, options)
        passes = llvm.create_new_module_pass_manager()
        passes.add_sroa_pass()
        passes.add_instruction_combine_pass()
        passes.add_simplify_cfg_pass()
        passes.add_loop_rotate_pass()
        passes.add_new_gvn_pass()
        passes.add_instruction_combine_pass()
        self.api.RunNewModulePassManager(passes, self.module, builder)

    def generate(self, as_object: bool) -> bytes:
        """Object file or assembly."""
        api, error = self.api, ctypes.c_char_p()
        buffer = api.TargetMachineEmitToMemory(self.machine, self.module, int(as_object), ctypes.byref(error))
        if not buffer:
            raise KernelError(f"kernel {self.symbol}: LLVM must make code (this is our bug), got {_message(error)}", code="kernel-llvm")
        try:
            return ctypes.string_at(api.GetBufferStart(buffer), api.GetBufferSize(buffer))
        finally:
            api.DisposeMemoryBuffer(buffer)

    def close(self) -> None:
        self.api.DisposeModule(self.module)
        self.api.ContextDispose(self.context)


def _message(error: ctypes.c_char_p) -> str:
    return (error.value or b"no reason").decode(errors="replace").strip()
