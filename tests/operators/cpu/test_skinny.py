"""Products of few rows by a constant matrix: every height, vector width, epilogue."""

from __future__ import annotations

import numpy as np
import pytest
from tests.operators.cpu.nodes import check_fused, close, random, run_node
from tests.operators.cpu.run import lower

from jumar.base import f32, type_of
from jumar.device import host
from jumar.device.cpu import FEATURES, named
from jumar.ir import constant, param
from jumar.operators import Add, Gelu, MatMul, Relu, Transpose
from jumar.operators.cpu.skinny import CHUNK_NBYTES, MOST_ROWS, panel_block, strip_of

WIDTHS = ["", "znver3", "x86-64-v2"] if host().architecture == "x86_64" else [""]


@pytest.mark.parametrize("cpu", WIDTHS)
@pytest.mark.parametrize("rows", range(1, MOST_ROWS + 1))
def test_every_number_of_rows_on_every_vector_width(rows: int, cpu: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JUMAR_CPU", cpu)
    rng = np.random.default_rng(rows)
    x, w = random(rng, rows, 403), random(rng, 403, 203)
    node = param("x", type_of(x))
    product = MatMul()(node, constant(w))
    lowered = lower(product)
    assert lowered is not None and [t.kernel.name for t in lowered.tasks] == ["skinny"]
    close(x.astype(np.float64) @ w, run_node(product, {node: x}), 3e-6)


@pytest.mark.parametrize("columns", [1, 7, 16, 32, 33, 64, 300])
def test_every_width_with_bias_and_residual(columns: int) -> None:
    rng = np.random.default_rng(columns)
    w, bias = constant(random(rng, 37, columns)), constant(random(rng, columns))
    check_fused(lambda x, r: Add()(Gelu()(Add()(MatMul()(x, w), bias)), r), random(rng, 3, 37), random(rng, 3, columns))


def test_rows_of_several_dimensions_and_a_matrix_that_is_turned() -> None:
    rng = np.random.default_rng(0)
    w = constant(random(rng, 65, 40))
    check_fused(lambda x: Relu()(MatMul()(x, Transpose((1, 0))(w))), random(rng, 2, 2, 1, 40))


def test_narrow_types_are_widened_on_the_way() -> None:
    rng = np.random.default_rng(0)
    w = constant(random(rng, 37, 21, dtype=np.float16))
    check_fused(lambda x: MatMul()(x, w), random(rng, 2, 37, dtype=np.float16), tolerance=1e-3)


@pytest.mark.parametrize("cpu", FEATURES)
@pytest.mark.parametrize("rows", range(1, MOST_ROWS + 1))
def test_a_strip_leaves_registers_for_weights_and_a_row(cpu: str, rows: int) -> None:
    target = named(cpu)
    strip = strip_of(rows, 4096, f32, target)
    assert strip.rows * strip.vectors * strip.splits + strip.vectors + 1 <= target.vector_registers


def test_chunks_are_neither_tiny_nor_long() -> None:
    strip = strip_of(1, 50257, f32, named("haswell"))
    each = 768 * strip.columns * 4
    for columns in (16, 768, 3072, 50257):
        block = panel_block(columns, 768, strip, 2)
        assert block == 1 or CHUNK_NBYTES[0] - each < block * each <= CHUNK_NBYTES[1]
