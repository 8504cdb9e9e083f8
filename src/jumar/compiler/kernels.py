"""Kernels to machine code while the graph is still being lowered: packing weights and generating code share the cores.

In: kernels, as lower.py meets them.  Out: for each its symbol and object code, equal kernels once; see kernel.compile_kernel for the cache.
"""

from __future__ import annotations

import contextvars
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from types import TracebackType

from jumar.base import config, span
from jumar.device import Target, usable_cores
from jumar.kernel import CompiledKernel, Kernel, compile_kernel, kernel_key


@dataclass(frozen=True)
class Made:
    """A kernel, the name of its code in a Program, and the code."""

    symbol: str
    kernel: Kernel
    code: CompiledKernel


class KernelMaker:
    """Compiles kernels on threads of its own; a context manager, so that no thread outlives the compile."""

    def __init__(self, target: Target, threads: int = 0) -> None:
        self.target = target
        self.pool = ThreadPoolExecutor(threads or config("threads") or usable_cores(), thread_name_prefix="jumar-kernels")
        self.futures: dict[int, tuple[Kernel, Future[Made]]] = {}  # by identity; the kernel is held, so that its id stays its own

    def __enter__(self) -> KernelMaker:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.pool.shutdown(wait=True, cancel_futures=error is not None)

    def add(self, kernel: Kernel) -> None:
        """Begins with a kernel, if it is new."""
        if id(kernel) not in self.futures:
            context = contextvars.copy_context()  # spans of the work go to whoever records this compile
            self.futures[id(kernel)] = (kernel, self.pool.submit(context.run, self._make, kernel))

    def _make(self, kernel: Kernel) -> Made:
        symbol = f"{kernel.name}_{kernel_key(kernel, self.target)[:16]}"
        return Made(symbol, kernel, compile_kernel(kernel, self.target))

    def finish(self) -> dict[int, Made]:
        """All kernels, by identity."""
        with span("kernels"):
            return {key: future.result() for key, (_, future) in self.futures.items()}
