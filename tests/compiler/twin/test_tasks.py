"""Kernels in a row: operands as stored, who reads whom, and how many there are."""

from __future__ import annotations

import pytest
from tests.compiler.npu import conv, image, weights, zoo

from jumar.base import Loc, TensorType, f16
from jumar.compiler.passes.formats import assign_formats
from jumar.compiler.passes.fuse_npu import fuse_npu
from jumar.compiler.passes.select import select
from jumar.compiler.twin.tasks import counted, launches
from jumar.device.npu import find_chip
from jumar.ir import Graph, param
from jumar.operators import Add, Concat, LayerNorm, MatMul, MaxPool, Relu, Reshape, Slice, Softmax, TopK, Transpose


def row(chip: str, *outputs):
    params = [n for n in Graph("g", (), outputs).nodes if n.op.name == "param"]
    return of_graph(chip, Graph("net", tuple(params), outputs))


def of_graph(chip: str, graph: Graph):
    soc = find_chip(chip)
    selection = select(graph, soc)
    formats = assign_formats(selection, soc)
    return launches(selection, formats, fuse_npu(selection, formats, soc), soc)


def matrix(*shape: int, label: str = "x"):
    return param(label, TensorType(shape, f16))


def test_convolution_reads_blocks_of_channels_and_fractals() -> None:
    first, second, last = row("310P3", Relu()(conv(image(3), 32, name="stem")))
    assert (first.task.kind, first.task.inputs[0].format, first.task.outputs[0].format) == ("TransData", "NCHW", "NC1HWC0")
    assert first.task.outputs[0].shape == (1, 1, 16, 16, 16)
    assert (second.task.kind, second.task.fused, second.task.label) == ("Conv2D", ("Relu",), "stem")
    assert [(o.shape, o.format) for o in second.task.inputs] == [
        ((1, 1, 16, 16, 16), "NC1HWC0"), ((9, 2, 16, 16), "FRACTAL_Z"), ((32,), "ND"),
    ]  # fmt: skip
    assert second.task.attrs["strides"] == (1, 1) and second.task.attrs["pads_low"] == (1, 1)
    assert "net.py:7" in second.task.place
    assert last.task.outputs[0] == first.task.inputs[0].__class__((1, 32, 16, 16), f16, "NCHW")
    assert [x.reads for x in (first, second, last)] == [(-1,), (0, None, None), (1,)]


def test_filters_of_a_depthwise_convolution_are_counted_by_their_groups() -> None:
    x = conv(image(3), 64)
    found = row("310P3", conv(x, 64, groups=64))
    (depthwise,) = [x for x in found if x.task.kind == "DepthwiseConv2D"]
    assert depthwise.task.inputs[1].shape == (36, 1, 16, 16)


def test_views_launch_nothing_and_are_looked_through() -> None:
    x = matrix(4, 32)
    found = row("910B4", Softmax()(Reshape((8, 16))(Relu()(x))))
    assert [x.task.kind for x in found] == ["Relu", "SoftmaxV2"]
    assert found[1].task.inputs[0].shape == (8, 16)
    assert found[1].reads == (0,)


def test_matrix_product_takes_a_transpose_in() -> None:
    x = matrix(4, 32, 64)
    (product,) = row("910B4", MatMul()(x, Transpose((0, 2, 1))(x)))
    assert (product.task.attrs["transpose_a"], product.task.attrs["transpose_b"]) == (False, True)
    assert [o.shape for o in product.task.inputs] == [(4, 32, 64), (4, 32, 64)]
    assert product.reads == (-1, -1)
    found = row("310P3", MatMul()(x, Transpose((0, 2, 1))(x)))
    assert [o.shape for o in found[1].task.inputs] == [(4, 4, 2, 16, 16)] * 2


def test_operand_of_what_is_fused_comes_after_those_of_the_root() -> None:
    x = Relu()(conv(image(3), 32))
    found = row("310P3", Relu()(Add()(conv(x, 32), x)))
    last = found[2]
    assert last.task.fused == ("Add", "Relu")
    assert last.reads == (1, None, None, 1)


def test_several_results_have_slots() -> None:
    values, indices = TopK(2)(matrix(4, 32))
    found = row("910B4", Relu()(values), indices)
    top = next(i for i, x in enumerate(found) if x.task.kind.startswith("TopK"))
    assert len(found[top].task.outputs) == 2
    relu = next(x for x in found if x.task.kind == "Relu")
    assert (relu.reads, relu.slots) == ((top,), (0,))


def test_kernel_with_a_name_of_its_own_gives_both_values() -> None:
    x, r = matrix(32, 768), matrix(32, 768, label="r")
    total = Add()(x, r)
    found = row("910B4", LayerNorm()(total, weights(768), weights(768)), total)
    assert [x.task.kind for x in found] == ["AddLayerNorm"]
    assert len(found[0].task.outputs) == 2


def test_every_launch_reads_what_was_made_before() -> None:
    for name in ("resnet50", "mlp"):
        graph = zoo(name)
        for chip in ("310P3", "910B4", "950"):
            found = of_graph(chip, graph)
            assert all(r is None or r < i for i, x in enumerate(found) for r in x.reads)
            assert all(len(x.reads) == len(x.slots) >= len(x.task.inputs) and len(x.writes) == len(x.task.outputs) for x in found)
            assert len({x.task.label for x in found}) == len(found)


def test_labels_name_the_users_node() -> None:
    (product,) = row(
        "910B4",
        MatMul()(matrix(4, 8), weights(8, 4)).__class__(
            MatMul(), (matrix(4, 8), weights(8, 4)), TensorType((4, 4), f16), Loc("net.py", 3, "fc")
        ),
    )
    assert product.task.label == "fc"


@pytest.mark.parametrize("chip, count, transdata", [("310P3", 60, 4), ("910A", 60, 4), ("910B4", 74, 2)])
def test_resnet50_is_as_many_kernels_as_its_convolutions_and_a_few(chip, count, transdata) -> None:
    found = counted(of_graph(chip, zoo("resnet50")))
    assert (sum(found.values()), found["TransData"], found["Conv2D"]) == (count, transdata, 53)


def test_pool_keeps_blocks_of_channels() -> None:
    y = MaxPool((2, 2), (2, 2), (0, 0), (0, 0), (1, 1))(conv(image(3), 32))
    assert [x.task.kind for x in row("310P3", y)] == ["TransData", "Conv2D", "MaxPoolV3", "TransData"]


def test_slices_that_share_a_value_out_are_one_split() -> None:
    x = Relu()(matrix(8, 96))
    parts = [Slice((0, 32 * i), (8, 32 * i + 32), (1, 1))(x) for i in range(3)]
    found = row("910B4", *(Softmax()(p) for p in parts))
    (split,) = [x for x in found if x.task.kind == "SplitVD"]
    assert [o.shape for o in split.task.inputs] == [(8, 96)]
    assert [o.shape for o in split.task.outputs] == [(8, 32)] * 3
    assert [(x.reads, x.slots) for x in found[2:]] == [((1,), (i,)) for i in range(3)]
    some = row("910B4", *(Softmax()(p) for p in parts[:2]))
    assert [x.task.kind for x in some].count("Slice") == 2


def test_rows_that_are_cut_off_one_behind_the_other_are_read_where_they_lie() -> None:
    x = Relu()(matrix(8, 96))
    found = row("910B4", *(Softmax()(Slice((4 * i, 0), (4 * i + 4, 96), (1, 1))(x)) for i in range(2)))
    assert [x.task.kind for x in found] == ["Relu", "SoftmaxV2", "SoftmaxV2"]
    assert [x.reads for x in found[1:]] == [(0,), (0,)]


def test_concat_of_what_lies_together_launches_nothing_and_its_reader_waits_for_all() -> None:
    x = image(3)
    pieces = [Relu()(conv(x, c, name=f"c{c}")) for c in (16, 32)]
    found = row("310P3", conv(Concat(1)(*pieces), 16, name="after"))
    assert [x.task.kind for x in found] == ["TransData", "Conv2D", "Conv2D", "Conv2D", "TransData"]
    last = found[3]
    assert last.task.inputs[0].shape == (1, 3, 16, 16, 16)
    assert sorted(r for r in last.reads if r is not None) == [1, 2]
    assert len(last.reads) == len(last.task.inputs) + 1


def test_concat_of_several_images_is_written_in_place_by_convolutions_only() -> None:
    x = image(3, n=2)
    pieces = [Relu()(conv(x, c)) for c in (16, 32)]
    assert "ConcatD" not in counted(row("310P3", conv(Concat(1)(*pieces), 16)))
    pooled = MaxPool((2, 2), (1, 1), (0, 0), (1, 1), (1, 1))(pieces[0])
    assert counted(row("310P3", conv(Concat(1)(pooled, pieces[1]), 16)))["ConcatD"] == 1
