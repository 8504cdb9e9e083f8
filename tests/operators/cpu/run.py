"""Runs the tasks of one node, chunk by chunk in one thread: what these tests need of an executor, before there is one."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np

from jumar.base import Array, type_of
from jumar.device import host
from jumar.ir import Graph, Node, Op, apply, param
from jumar.kernel import Kernel, compile_kernel, kernel_key
from jumar.operators.fused import Fused
from jumar.operators.schedule import Lowered, Packed, Place, Task, TempPlace, find_schedule
from jumar.runtime.link import Code, link

Entry = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)
_CODE: dict[str, Code] = {}


def address(kernel: Kernel) -> int:
    """Where the kernel's machine code is.   By its text: kernels that differ in a -0.0 compare equal."""
    key = kernel_key(kernel, host())
    if key not in _CODE:
        _CODE[key] = link({key: compile_kernel(kernel).object_bytes})
    return _CODE[key].address(key)


def run_task(task: Task, memory: dict[Any, Array], scratch: Array) -> None:
    words: list[int] = []
    for arg in task.args:
        match arg:
            case int():
                words.append(arg)
            case Place(node=node, nbytes_offset=offset, result=result):
                words.append(memory[node, result].ctypes.data + offset)
            case TempPlace(temp=temp, nbytes_offset=offset):
                found = memory.setdefault(temp, np.full(temp.nbytes + 64, 0xCD, np.uint8))
                words.append((found.ctypes.data + 63) // 64 * 64 + offset)
            case Packed(array=array):
                memory[id(array)] = np.ascontiguousarray(array)
                words.append(memory[id(array)].ctypes.data)
            case Kernel():
                words.append(address(arg))
    kinds = [p.kind for p in task.kernel.params]
    fault = ctypes.c_int64(0)
    own = {"scratch": [(scratch.ctypes.data + 63) // 64 * 64, 0], "fault": [ctypes.addressof(fault)], "step": [1]}
    given = iter(words)
    words = [w for kind in kinds for w in (own[kind] if kind in own else [next(given)])]
    assert len(words) == sum(p.words for p in task.kernel.params), (len(words), kinds)
    table = (ctypes.c_int64 * max(1, len(words)))(*(w if w < 1 << 63 else w - (1 << 64) for w in words))
    entry = Entry(address(task.kernel))
    for chunk in range(task.chunks):
        entry(ctypes.cast(table, ctypes.c_void_p), chunk, 0)
    assert not fault.value, task.fault


def lower(node: Node) -> Lowered | None:
    found = find_schedule("cpu", node.op)
    return found(node, host()) if found else None


def run(op: Op, *arrays: Array) -> list[Array]:
    """Results of the operator's own schedule.  Results lie between guards, which must survive."""
    node = apply(op, *(param(f"p{i}", type_of(a)) for i, a in enumerate(arrays)))
    lowered = lower(node)
    assert lowered is not None, f"{op} on {[type_of(a) for a in arrays]} has no schedule"
    memory: dict[Any, Array] = {(i, 0): np.ascontiguousarray(a) for i, a in zip(node.inputs, arrays, strict=True)}
    types = node.type if isinstance(node.type, tuple) else (node.type,)
    results, guards = [], []
    if lowered.alias is not None:
        source = memory[lowered.alias.node, 0]
        flat = source.reshape(-1).view(np.uint8)[lowered.alias.nbytes_offset :][: types[0].nbytes]
        return [flat.view(types[0].dtype.numpy).reshape(types[0].dims)]
    for r, t in enumerate(types):
        guarded = np.full(t.nbytes + 256, 0xAB, np.uint8)
        inner = guarded[128 : 128 + t.nbytes]
        memory[node, r] = inner
        guards.append(guarded)
        results.append((inner, t))
    scratch = np.zeros(max((t.scratch_nbytes for t in lowered.tasks), default=0) + 64, np.uint8)
    for task in lowered.tasks:
        run_task(task, memory, scratch)
    for guarded in guards:
        assert (guarded[:128] == 0xAB).all() and (guarded[-128:] == 0xAB).all(), "a kernel wrote outside of its result"
    return [inner.view(t.dtype.numpy).reshape(t.dims) for inner, t in results]


def fused(graph: Graph) -> Fused:
    return Fused(graph)


TOLERANCE = {"float16": 2e-3, "bfloat16": 1.6e-2, "float32": 4e-6, "float64": 1e-12}


def same(expected: Any, actual: Array, scale: float = 1.0) -> None:
    """Equal to a tolerance that follows the dtype; integers exactly."""
    expected = np.asarray(expected)
    assert expected.shape == actual.shape, (expected.shape, actual.shape)
    tolerance = TOLERANCE.get(str(actual.dtype), 0.0) * scale
    if tolerance == 0.0:
        np.testing.assert_array_equal(actual, expected)
        return
    kind = np.float64
    np.testing.assert_allclose(actual.astype(kind), expected.astype(actual.dtype).astype(kind), rtol=tolerance, atol=tolerance)


def check(op: Op, *arrays: Array, scale: float = 1.0) -> None:
    """The schedule gives what the reference gives."""
    expected = op.reference(*arrays)
    expected = expected if isinstance(expected, tuple) else (expected,)
    for e, a in zip(expected, run(op, *arrays), strict=True):
        same(e, a, scale)
