"""Runs the tasks of one node by hand, for the tests of schedules: compiles, links, and calls every chunk."""

from __future__ import annotations

import ctypes
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import llvmlite.binding as llvm
import numpy as np

from jumar.base import Array
from jumar.device import Target, host
from jumar.ir import Node
from jumar.kernel import Kernel, compile_kernel
from jumar.operators.schedule import Lowered, Packed, Place, TempPlace

_LINKED: dict[Kernel, int] = {}
_ENGINES: list[Any] = []


def address(kernel: Kernel, target: Target) -> int:
    """Where the kernel's machine code is."""
    if kernel not in _LINKED:
        llvm.initialize_native_target()
        llvm.initialize_native_asmprinter()
        machine = llvm.Target.from_default_triple().create_target_machine()
        engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), machine)
        compiled = compile_kernel(kernel, target)
        engine.add_object_file(llvm.ObjectFileRef.from_data(compiled.object_bytes))
        engine.finalize_object()
        _ENGINES.append(engine)
        _LINKED[kernel] = engine.get_function_address(compiled.symbol) or engine.get_function_address(f"k.{compiled.symbol}")
        assert _LINKED[kernel], f"{kernel.name} must be linked"
    return _LINKED[kernel]


def aligned(nbytes: int, fill: int = 0xEE) -> Array:
    """Bytes at a 64-byte boundary, filled so that what is never written is seen."""
    whole = np.full(nbytes + 128, fill, np.uint8)
    start = -whole.ctypes.data % 64
    return whole[start : start + nbytes]


class Stand:
    """The tasks of a node, bound to arrays.   inputs: values of the node's inputs (constants give their own)."""

    def __init__(self, node: Node, lowered: Lowered, inputs: dict[Node, Array], target: Target | None = None, threads: int = 2) -> None:
        self.target = target or host()
        self.threads = threads
        self.keep: list[Any] = []
        self.memory: dict[Any, Array] = {}
        for i, array in inputs.items():
            self.memory[i, 0] = self.copy(array)
        types = node.type if isinstance(node.type, tuple) else (node.type,)
        self.types = types
        for i, t in enumerate(types):
            self.memory[node, i] = aligned(t.nbytes)
        self.node = node
        self.steps = [self.bind(task) for task in lowered.tasks]

    def copy(self, array: Array) -> Array:
        array = np.ascontiguousarray(array)
        memory = aligned(array.nbytes)
        memory[:] = array.reshape(-1).view(np.uint8)
        return memory

    def bind(self, task: Any) -> tuple[Any, Any, int]:
        words, given = [], iter(task.args)
        nbytes = -(-max(task.scratch_nbytes, 64) // 64) * 64
        scratch = aligned(nbytes * self.threads)
        self.keep.append(scratch)
        for param in task.kernel.params:
            words += [scratch.ctypes.data, nbytes] if param.kind == "scratch" else [self.word(next(given))]
        assert next(given, None) is None, "every argument has a parameter"
        array = np.array([w & (2**64 - 1) for w in words], np.uint64)
        self.keep.append(array)
        function = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)(address(task.kernel, self.target))
        return function, array.ctypes.data, task.chunks

    def word(self, arg: Any) -> int:
        match arg:
            case int():
                return arg
            case Kernel():
                return address(arg, self.target)
            case Packed():
                self.keep.append(memory := self.copy(arg.array))
                return int(memory.ctypes.data)
            case TempPlace():
                memory = self.memory.setdefault((arg.temp, 0), aligned(arg.temp.nbytes))
                return int(memory.ctypes.data) + arg.nbytes_offset
            case Place():
                if (arg.node, arg.result) not in self.memory:
                    assert arg.node.array is not None, f"{arg.node} has no value"
                    self.memory[arg.node, arg.result] = self.copy(arg.node.array)
                return int(self.memory[arg.node, arg.result].ctypes.data) + arg.nbytes_offset
        raise AssertionError(arg)

    def run(self) -> list[Array]:
        """The node's results."""
        with ThreadPoolExecutor(self.threads) as pool:
            for function, args, chunks in self.steps:
                if self.threads == 1 or chunks == 1:
                    for chunk in range(chunks):
                        function(args, chunk, 0)
                else:

                    def part(tid: int, function: Any = function, args: int = args, chunks: int = chunks) -> None:
                        for chunk in range(tid, chunks, self.threads):
                            function(args, chunk, tid)

                    list(pool.map(part, range(self.threads)))
        return [self.memory[self.node, i].view(t.dtype.numpy).reshape(t.dims) for i, t in enumerate(self.types)]


def run_node(node: Node, lowered: Lowered, inputs: dict[Node, Array], threads: int = 2) -> list[Array]:
    """The node's results by its tasks."""
    return Stand(node, lowered, inputs, threads=threads).run()
