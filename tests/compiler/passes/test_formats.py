"""Formats of values on the device: which conversions are needed, and why."""

from __future__ import annotations

import numpy as np
import pytest
from tests.compiler.npu import conv, image, weights, zoo

from jumar.base import TensorType, f16, f32
from jumar.compiler.passes.formats import assign_formats
from jumar.compiler.passes.select import select
from jumar.device.npu import NC1HWC0, ND, find_chip
from jumar.ir import Graph, constant, param
from jumar.operators import (
    Add,
    Cast,
    Concat,
    Conv,
    MatMul,
    MaxPool,
    Mul,
    Pad,
    ReduceMean,
    Relu,
    Reshape,
    Sigmoid,
    Slice,
    Softmax,
    Transpose,
)


def formats_of(chip: str, *outputs, **options):
    """Formats of the graph that gives these nodes."""
    params = [n for n in Graph("g", (), outputs).nodes if n.op.name == "param"]
    return assign_formats(select(Graph("net", tuple(params), outputs), find_chip(chip)), find_chip(chip), **options)


def steps(formats):
    return [(c.source, c.target) for c in formats.launched]


@pytest.mark.parametrize("chip", ["310P3", "910A", "910B4"])
def test_chain_of_convolutions_is_converted_at_its_ends_only(chip) -> None:
    x = image(3)
    y = conv(Relu()(conv(x, 32)), 64)
    formats = formats_of(chip, y)
    assert steps(formats) == [(ND, NC1HWC0), (NC1HWC0, ND)]
    assert [c.constant for c in formats.conversions].count(True) == 2
    first, last = formats.launched
    assert "an input of the model is in plain memory" in first.why and "--is_input_adjust_hw_layout" in first.avoid
    assert "an output of the model leaves in plain memory" in last.why


def test_a_950_reads_plain_images() -> None:
    assert steps(formats_of("950", conv(Relu()(conv(image(3), 32)), 64))) == []


def test_residual_stays_in_blocks_of_channels() -> None:
    x = conv(image(3), 32)
    formats = formats_of("310P3", Relu()(Add()(conv(x, 32), x)))
    assert steps(formats) == [(ND, NC1HWC0), (NC1HWC0, ND)]


def test_gate_of_each_channel_stays_in_blocks() -> None:
    x = conv(image(3), 32)
    gate = Sigmoid()(conv(ReduceMean((2, 3), True)(x), 32, 1))
    assert steps(formats_of("310P3", Mul()(x, gate))) == [(ND, NC1HWC0), (NC1HWC0, ND)]


def test_operand_that_is_broadcast_along_channels_forces_plain_memory() -> None:
    x = conv(image(3), 32)
    mask = param("mask", TensorType((1, 1, 16, 16), f16))
    formats = formats_of("310P3", conv(Mul()(x, mask), 32))
    assert steps(formats) == [(ND, NC1HWC0), (NC1HWC0, ND), (ND, NC1HWC0), (NC1HWC0, ND)]
    assert "broadcasts [1, 1, 16, 16] along channels" in formats.launched[1].why


def test_softmax_over_rows_forces_plain_memory_and_says_so() -> None:
    x = conv(image(3), 32)
    formats = formats_of("310P3", conv(Softmax(3)(x), 32))
    assert steps(formats) == [(ND, NC1HWC0), (NC1HWC0, ND), (ND, NC1HWC0), (NC1HWC0, ND)]
    assert formats.launched[1].why == "softmax along axis 3 reads rows of plain memory"


def test_channels_are_joined_in_blocks_where_they_fill_them() -> None:
    x = image(3)
    assert steps(formats_of("310P3", conv(Concat(1)(conv(x, 32), conv(x, 16)), 32))) == [(ND, NC1HWC0), (NC1HWC0, ND)]
    ragged = formats_of("310P3", conv(Concat(1)(conv(x, 24), conv(x, 16)), 32))
    assert steps(ragged)[1:-1] == [(NC1HWC0, ND), (NC1HWC0, ND), (ND, NC1HWC0)]
    assert ragged.launched[1].why == "concat joins 24 along axis 1, and blocks are of 16"
    assert ragged.launched[1].avoid == "make it a multiple of 16: 32"


def test_channels_are_cut_at_the_edges_of_blocks() -> None:
    x = conv(image(3), 32)

    def cut(a, b):
        return Slice((0, a, 0, 0), (1, b, 16, 16), (1, 1, 1, 1))(x)

    assert len(steps(formats_of("310P3", conv(cut(16, 32), 32)))) == 2
    assert len(steps(formats_of("310P3", conv(cut(8, 32), 32)))) == 4


def test_one_conversion_serves_all_readers() -> None:
    x = image(3)
    formats = formats_of("310P3", conv(x, 32), conv(x, 16))
    assert steps(formats).count((ND, NC1HWC0)) == 1
    assert len(formats.launched[0].consumers) == 2


def test_fp32_of_a_910b_goes_through_the_cube_in_blocks_of_8() -> None:
    x = param("x", TensorType((1, 3, 16, 16), f32))
    w = constant(np.ones((32, 3, 3, 3), np.float32))
    from jumar.operators import Conv

    formats = formats_of("910B2", Conv((1, 1), (1, 1), (1, 1), (1, 1))(x, w))
    assert steps(formats) == [(ND, "NC1HWC0:8"), ("NC1HWC0:8", ND)]
    assert formats.launched[0].nbytes == 4 * 16 * 16 * (3 + 8)


def test_matrix_products_of_the_first_generations_read_fractals_and_later_ones_rows() -> None:
    x = param("x", TensorType((32, 64), f16))
    y = Add()(MatMul()(x, weights(64, 128)), weights(128))
    assert steps(formats_of("310P3", y)) == [(ND, "FRACTAL_NZ"), ("FRACTAL_NZ", ND)]
    assert steps(formats_of("910A", y)) == [(ND, "FRACTAL_NZ"), ("FRACTAL_NZ", ND)]
    assert steps(formats_of("910B4", y)) == []


def attention(rows: int):
    """One head of attention over rows, from projected queries, keys and values."""
    x = param("x", TensorType((1, rows, 64), f16))
    q, k, v = (MatMul()(x, weights(64, 64)) for _ in range(3))
    heads = [Transpose((0, 2, 1, 3))(Reshape((1, rows, 4, 16))(i)) for i in (q, k, v)]
    scores = Softmax(3)(MatMul()(heads[0], Transpose((0, 1, 3, 2))(heads[1])))
    return Reshape((1, rows, 64))(Transpose((0, 2, 1, 3))(MatMul()(scores, heads[2])))


@pytest.mark.parametrize("chip", ["310P3", "910A"])
def test_attention_of_whole_blocks_stays_in_fractals(chip) -> None:
    assert steps(formats_of(chip, attention(128))) == [(ND, "FRACTAL_NZ"), ("FRACTAL_NZ", ND)]


def test_attention_of_197_rows_leaves_fractals_for_the_softmax_and_names_208() -> None:
    formats = formats_of("310P3", attention(197))
    assert steps(formats) == [(ND, "FRACTAL_NZ"), ("FRACTAL_NZ", ND)] * 2
    assert formats.launched[1].why == "softmax along rows of [1, 4, 197, 197] would add padding up"
    assert formats.launched[1].avoid == "pad to multiples of 16: 197 -> 208"
    assert len(formats_of("910A", attention(197)).launched) > 8


def test_operators_one_by_one_get_and_give_plain_memory() -> None:
    formats = formats_of("910B4", conv(Relu()(conv(image(3), 32)), 64), eager=True)
    assert steps(formats) == [(ND, NC1HWC0), (NC1HWC0, ND)] * 2


def test_transpose_that_a_matrix_product_takes_in_is_no_conversion() -> None:
    x = param("x", TensorType((4, 32, 64), f16))
    y = MatMul()(x, Transpose((0, 2, 1))(x))
    formats = formats_of("310P3", y)
    assert [n.op.name for n in formats.turned] == ["transpose"]
    assert steps(formats) == [(ND, "FRACTAL_NZ"), ("FRACTAL_NZ", ND)]


def test_cast_that_would_change_the_block_stays_outside() -> None:
    x = conv(image(3), 32)
    from jumar.base import i8

    formats = formats_of("310P3", Cast(i8)(Relu()(x)))
    assert steps(formats)[-1] == (NC1HWC0, ND)
    assert "would change blocks of 16" in formats.launched[-1].why


def test_networks_of_the_zoo_need_few_conversions() -> None:
    resnet = zoo("resnet50")
    assert len(assign_formats(select(resnet, find_chip("310P3")), find_chip("310P3")).launched) == 4
    assert len(assign_formats(select(resnet, find_chip("910B4")), find_chip("910B4")).launched) == 2


def test_casts_at_the_ends_of_a_model_are_told_as_its_input_and_output() -> None:
    x = param("x", TensorType((1, 3, 16, 16), f32))
    formats = formats_of("310P3", Cast(f32)(conv(Cast(f16)(x), 32)))
    first, last = formats.launched
    assert "an input of the model is in plain memory" in first.why and "--input_fp16_nodes" in first.avoid
    assert "an output of the model leaves in plain memory" in last.why and "--output_type=FP16" in last.avoid


def step(chip: str, **options):
    """Formats of a step that makes the filters of a convolution smaller."""
    x, w = image(16), param("w", TensorType((32, 16, 3, 3), f16))
    y = Conv((1, 1), (1, 1), (1, 1), (1, 1), 1)(x, w)
    smaller = Mul()(w, constant(np.float16(0.9)))
    graph = Graph("step", (x, w), (y, smaller), updates=((1, 1),))
    return assign_formats(select(graph, find_chip(chip), inference=False), find_chip(chip), inference=False, **options), w, smaller


@pytest.mark.parametrize("chip", ["910A", "910B4"])
def test_variables_of_a_graph_stay_in_fractals_from_step_to_step(chip) -> None:
    formats, w, smaller = step(chip)
    assert formats.of[w] == formats.of[smaller] == formats.outputs[1] == "FRACTAL_Z"
    assert steps(formats) == [(ND, NC1HWC0), (NC1HWC0, ND)]


def test_script_that_launches_by_itself_converts_filters_in_every_step() -> None:
    formats, w, _ = step("910B4", eager=True)
    assert formats.of[w] == ND
    assert sorted(steps(formats)) == sorted([(ND, NC1HWC0), (ND, "FRACTAL_Z"), (NC1HWC0, ND)])


def test_what_no_core_runs_reads_plain_memory() -> None:
    x = conv(image(32), 32)
    pooled = MaxPool((2, 2), (2, 2), (0, 0), (0, 0), (1, 1))(Cast(f32)(x))  # of f32 on a 310P: the AI CPU's
    formats = formats_of("310P3", conv(Cast(f16)(pooled), 32))
    (pool,) = [n for n in formats.of if isinstance(n.op, MaxPool)]
    assert (formats.wants[pool, 0], formats.of[pool]) == (ND, ND)


def part(x, starts, stops, steps=(1, 1, 1, 1)):
    return Slice(starts, stops, steps)(x)


@pytest.mark.parametrize(
    ("starts", "stops", "steps_", "why"),
    [
        ((0, 16, 0, 0), (1, 40, 16, 16), (1, 1, 1, 1), ""),
        ((0, 0, 2, 2), (1, 40, 14, 14), (1, 1, 1, 1), ""),
        ((0, 0, 0, 0), (1, 40, 16, 16), (1, 1, 2, 2), ""),
        ((0, 8, 0, 0), (1, 40, 16, 16), (1, 1, 1, 1), "slice cuts channels 8 to 40, and blocks are of 16"),
        ((0, 0, 0, 0), (1, 24, 16, 16), (1, 1, 1, 1), "slice cuts channels 0 to 24, and blocks are of 16"),
        ((0, 0, 0, 0), (1, 40, 16, 16), (1, 2, 1, 1), "slice cuts channels 0 to 40 by 2, and blocks are of 16"),
    ],
)
def test_part_of_an_image_stays_in_blocks_from_edge_to_edge_or_to_the_end(starts, stops, steps_, why) -> None:
    formats = formats_of("310P3", conv(part(conv(image(3), 40), starts, stops, steps_), 16))
    assert steps(formats) == [(ND, NC1HWC0), (NC1HWC0, ND)] * (2 if why else 1)
    assert formats.launched[1].why == why or not why


def test_split_of_matrices_stays_in_fractals_where_it_cuts_batches() -> None:
    x = MatMul()(param("x", TensorType((4, 32, 64), f16)), weights(64, 96))
    batches = [MatMul()(Slice((2 * i, 0, 0), (2 * i + 2, 32, 96), (1, 1, 1))(x), weights(96, 16)) for i in range(2)]
    assert steps(formats_of("310P3", *batches)) == [(ND, "FRACTAL_NZ"), ("FRACTAL_NZ", ND), ("FRACTAL_NZ", ND)]
    columns = [MatMul()(Slice((0, 0, 48 * i), (4, 32, 48 * i + 48), (1, 1, 1))(x), weights(48, 16)) for i in range(2)]
    split = formats_of("310P3", *columns)
    assert split.launched[1].why == "a split along axis 2 of f16[4, 32, 96] reads plain memory"
    assert split.launched[1].avoid == "make each part by a product of its own"


@pytest.mark.parametrize(("channels", "high", "count"), [(32, 0, 2), (32, 16, 2), (32, 8, 4), (24, 0, 4)])
def test_padding_keeps_blocks_of_whole_channels(channels, high, count) -> None:
    padded = Pad((0, 0, 1, 1), (0, high, 1, 1))(conv(image(3), channels))
    assert len(steps(formats_of("310P3", conv(padded, 16)))) == count


def test_reason_is_looked_for_through_views_and_behind_what_follows() -> None:
    x = param("x", TensorType((1, 20, 64), f16))
    y = Add()(MatMul()(x, weights(64, 64)), param("r", x.type))
    formats = formats_of("310P3", MatMul()(Softmax()(y), weights(64, 16)))
    into, out, back, _ = formats.launched
    assert (into.target, out.target, back.target) == ("FRACTAL_NZ", ND, "FRACTAL_NZ")
    assert out.why == "Add stays in plain memory for what reads it: softmax along rows of [1, 20, 64] would add padding up"
    assert out.avoid == back.avoid == "pad to multiples of 16: 20 -> 32"
    rows = Reshape((20, 64))(Softmax()(x))
    assert formats_of("310P3", MatMul()(rows, weights(64, 16))).launched[0].why.startswith("MatMulV2 reads FRACTAL_NZ")
