"""Contractions for machines with other vectors: the kernels are right for 4 and 16 lanes, too, and compile for those machines."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.operators.cpu.nodes import close, random, run_node

from jumar.base import type_of
from jumar.device.cpu import named
from jumar.ir import Node, constant, param
from jumar.kernel import Kernel, compile_kernel
from jumar.operators import Conv, MatMul
from jumar.operators.attention import Attention
from jumar.operators.cpu.contraction import lower_contraction

CPUS = ["x86-64-v2", "znver3", "skylake-avx512", "neoverse-n1"]


def nodes() -> list[tuple[str, Any]]:
    rng = np.random.default_rng(0)
    x = random(rng, 1, 14, 14, 36)
    one = (1, 1)
    codes, weights = rng.integers(0, 256, (63, 37), np.uint8), rng.integers(-128, 128, (37, 70)).astype(np.int8)

    def conv(w: Any, groups: int = 1) -> Any:
        return lambda n: Conv(one, one, one, one, groups, channels_last=True)(n, constant(w))

    return [
        ("matmul", (random(rng, 13, 300), lambda n: MatMul()(n, constant(random(np.random.default_rng(1), 300, 70))))),
        ("conv", (random(rng, 1, 9, 9, 3), conv(random(rng, 40, 3, 3, 3)))),
        ("winograd", (x, conv(random(rng, 36, 36, 3, 3)))),
        ("depthwise", (x, conv(random(rng, 36, 1, 3, 3), 36))),
        ("bytes", (codes, lambda n: MatMul(131)(n, constant(weights)))),
        ("narrow bytes", (codes, lambda n: MatMul(131)(n, constant(weights // 2)))),
        ("byte conv", (codes.reshape(1, 7, 9, 37)[..., :36].copy(), lambda n: Conv(one, one, one, one, 1, channels_last=True, x_zero=9)(
            n, constant(weights[:36, :9].T.reshape(9, 36, 1, 1).repeat(3, 2))))),
        ("attention", (random(rng, 2, 20, 24), lambda n: Attention(scale=0.2)(n, n, n))),
        ("attention of few", (random(rng, 2, 5, 24), lambda n: Attention(scale=0.2)(n, n, n))),
    ]  # fmt: skip


@pytest.mark.parametrize("cpu", CPUS)
@pytest.mark.parametrize("name, case", nodes(), ids=[n for n, _ in nodes()])
def test_contraction_for_another_machine(cpu: str, name: str, case: Any) -> None:
    x, build = case
    inner = param("x", type_of(x))
    node: Node = build(inner)
    lowered = lower_contraction(node, named(cpu))
    assert lowered is not None
    expected = node.op.reference(*(x if i is inner else i.array for i in node.inputs))
    close(expected, run_node(node, {inner: x}, lowered), 2e-5)  # on this machine: LLVM splits or joins the vectors
    for task in lowered.tasks:
        for kernel in (task.kernel, *(a for a in task.args if isinstance(a, Kernel))):
            assert compile_kernel(kernel, named(cpu)).object_bytes
