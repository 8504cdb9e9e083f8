"""Kernels of chips whose cores hold both units: what is counted in blocks of the cube, and through which port it comes."""

from __future__ import annotations

import pytest

from jumar.base import f16
from jumar.device.npu import Operand, Task, find_chip, predict
from jumar.device.npu.counts import rows_of
from jumar.device.npu.work import work

CHIP = find_chip("310P3")
NZ, IMAGES, FILTERS = "FRACTAL_NZ", "NC1HWC0", "FRACTAL_Z"


def test_rows_of_a_matrix_in_blocks_are_the_matrix_s() -> None:
    assert rows_of(Operand((8, 48, 8, 16, 16), f16, NZ)) == (8 * 128, 768)
    assert rows_of(Operand((8, 128, 768), f16)) == (8 * 128, 768)


def test_a_norm_in_blocks_takes_about_what_it_takes_in_rows() -> None:
    weight = Operand((768,), f16)
    blocks, rows = Operand((8, 48, 8, 16, 16), f16, NZ), Operand((8, 128, 768), f16)
    times = [predict(Task("LayerNorm", (x, weight, weight), (x,)), CHIP).time_us for x in (blocks, rows)]
    assert 0.3 < times[0] / times[1] < 1.5


def test_a_depthwise_filter_in_blocks_is_a_window_of_a_fractal() -> None:
    x, w = Operand((4, 60, 7, 7, 16), f16, IMAGES), Operand((540, 1, 16, 16), f16, FILTERS)
    found = work(Task("DepthwiseConv2D", (x, w), (x,), {"groups": 960}), CHIP)
    assert found.flops == 2.0 * 60 * 4 * 49 * 9 * 16 * 16


def test_groups_of_few_channels_share_a_fractal() -> None:
    x, w = Operand((8, 8, 56, 56, 16), f16, IMAGES), Operand((72, 1, 16, 16), f16, FILTERS)
    found = work(Task("Conv2D", (x, w), (x,), {"groups": 32}), CHIP)
    assert found.flops == 2.0 * 8 * 8 * 56 * 56 * 9 * 16 * 16


@pytest.mark.parametrize("batch", [1, 4, 8])
def test_images_do_not_bound_the_cores(batch: int) -> None:
    x, w = Operand((batch, 16, 28, 28, 16), f16, IMAGES), Operand((144, 16, 16, 16), f16, FILTERS)
    assert work(Task("Conv2D", (x, w), (x,)), CHIP).blocks > 4


def test_a_product_that_leaves_turned_is_counted_by_its_operands() -> None:
    x, w = Operand((64, 768, 16, 16), f16, NZ), Operand((64, 64, 16, 16), f16, NZ)
    heads = Operand((96, 16, 4, 8, 16, 16), f16, NZ)
    plain = work(Task("MatMulV2", (x, w), (x,)), CHIP)
    turned = work(Task("MatMulV2", (x, w), (heads,), fused=("TransposeD",)), CHIP)
    assert turned.flops == plain.flops == 2.0 * 12288 * 1024 * 1024
    assert turned.cube_cycles == plain.cube_cycles


def test_codes_are_converted_on_the_way_out_of_the_cube() -> None:
    x, w = Operand((8, 16, 28, 28, 16), f16, IMAGES), Operand((144, 16, 16, 16), f16, FILTERS)
    plain, quantised, added = (
        work(Task("Conv2D", (x, w), (x,), fused=fused), CHIP).vector_cycles
        for fused in ((), ("AscendDequant", "Relu", "AscendQuant"), ("AscendDequant", "Add", "AscendQuant"))
    )
    assert plain == quantised < added


def test_functions_are_slower_than_sums_on_older_vector_units() -> None:
    x = Operand((1 << 20,), f16)
    gelu, hard, norm = (work(Task(kind, (x,), (x,)), CHIP) for kind in ("Gelu", "HardSwish", "BNTrainingUpdate"))
    assert gelu.function_cycles == gelu.vector_cycles > 0
    assert hard.function_cycles == norm.function_cycles == 0
    times = [predict(Task("Gelu", (x,), (x,)), find_chip(chip)).pipes["vector"] for chip in ("310P3", "910B4")]
    assert times[0] / times[1] > 5  # eight units against forty, and 2.8 times the cycles


def test_a_fused_function_counts_as_one() -> None:
    x, w = Operand((64, 64, 16, 16), f16, NZ), Operand((64, 64, 16, 16), f16, NZ)
    plain, added, activated = (work(Task("MatMulV2", (x, w), (x,), fused=f), CHIP) for f in ((), ("Add",), ("Add", "Gelu")))
    assert plain.function_cycles == added.function_cycles == 0 < activated.function_cycles < activated.vector_cycles
