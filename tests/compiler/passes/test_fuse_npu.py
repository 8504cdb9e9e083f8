"""Kernels of several operators: what each chip joins, what a switch changes, and the reasons for the rest."""

from __future__ import annotations

import pytest
from tests.compiler.npu import conv, image, weights, zoo

from jumar.base import OpError, TensorType, f16, f32
from jumar.compiler.passes.formats import assign_formats
from jumar.compiler.passes.fuse_npu import fuse_npu
from jumar.compiler.passes.fusion_rules import described, head_of
from jumar.compiler.passes.select import select
from jumar.compiler.passes.switches import ALL_ON, parse_switches, rule_names
from jumar.compiler.twin.tasks import launches
from jumar.device.npu import find_chip
from jumar.ir import REGISTRY, Graph, apply, constant, param
from jumar.operators import (
    Add,
    Cast,
    Clip,
    Exp,
    Gelu,
    LayerNorm,
    MatMul,
    Mul,
    Neg,
    ReduceSum,
    Relu,
    Reshape,
    Sigmoid,
    Softmax,
    Tanh,
    Transpose,
)


def fused(chip: str, *outputs, switches: str = "", **options: bool):
    """The fusion of the graph that gives these nodes."""
    params = [n for n in Graph("g", (), outputs).nodes if n.op.name == "param"]
    return of_graph(chip, Graph("net", tuple(params), outputs), switches, **options)


def of_graph(chip: str, graph: Graph, switches: str = "", **options: bool):
    soc = find_chip(chip)
    on = parse_switches(switches) if switches else ALL_ON
    selection = select(graph, soc)
    return fuse_npu(selection, assign_formats(selection, soc, switches=on), soc, on, **options)


def names(fusion):
    """Operators of each group that has several."""
    return [[n.op.name for n in g.nodes] for g in fusion.groups if len(g.nodes) > 1]


def matrix(*shape: int, label: str = "x", dtype=f16):
    return param(label, TensorType(shape, dtype))


def residual(c: int = 32):
    x = Relu()(conv(image(3), c, name="stem"))
    return Relu()(Add()(conv(Relu()(conv(x, c, name="one")), c, name="two"), x))


@pytest.mark.parametrize("chip", ["310", "310P3", "910A"])
def test_where_units_share_a_core_a_residual_block_is_convolutions_only(chip) -> None:
    fusion = fused(chip, residual())
    assert names(fusion) == [["conv", "relu"], ["conv", "relu"], ["conv", "add", "relu"]]
    assert fusion.effects == {"TbeConvCommonRules0FusionPass": 3}


@pytest.mark.parametrize("chip", ["910B4", "910_9391"])
def test_where_they_do_not_only_relu_is_on_the_fixpipe(chip) -> None:
    fusion = fused(chip, residual())
    assert ["conv", "relu"] in names(fusion) and ["conv", "add", "relu"] not in names(fusion)
    (missed,) = [m for m in fusion.missed if m.consumer.startswith("Add") and "two" in m.producer]
    assert "hands its results over by memory" in missed.why
    assert missed.nbytes == 2 * 32 * 16 * 16 * 2


def test_relu_is_a_kernel_of_its_own_when_its_rule_is_off() -> None:
    on = fused("310P3", residual())
    off = fused("310P3", residual(), switches="TbeConvCommonRules0FusionPass:off")
    assert len(off.groups) > len(on.groups)
    assert ["conv", "relu"] not in names(off)
    assert {m.rule for m in off.missed if "switched off" in m.why} == {"TbeConvCommonRules0FusionPass"}


@pytest.mark.parametrize(
    "chip, rule", [("310P3", "ATbeMatMulElemwiseFusionPass"), ("910B4", "MatMulBiasAddFusionPass"), ("950", "MatMulBiasAddFusionPass")]
)
def test_bias_of_a_matrix_product_is_in_its_kernel(chip, rule) -> None:
    y = Add()(MatMul()(matrix(32, 64), weights(64, 128)), weights(128))
    fusion = fused(chip, y)
    assert names(fusion) == [["mat_mul", "add"]] or names(fusion) == [["matmul", "add"]]
    assert fusion.effects == {rule: 1}
    assert names(fused(chip, y, switches=f"{rule}:off")) == []


def test_activation_after_the_bias_is_in_it_where_units_share_a_core() -> None:
    y = Gelu()(Add()(MatMul()(matrix(32, 64), weights(64, 128)), weights(128)))
    assert names(fused("310P3", y)) == [["matmul", "add", "gelu"]]
    missed = fused("910B4", y).missed
    assert [m.consumer for m in missed] == ["Gelu"]
    assert "only dequant, cast, relu and quant run on the fixpipe" in missed[0].why


def test_elementwise_chain_is_one_kernel_but_not_on_a_950() -> None:
    y = Tanh()(Exp()(Neg()(matrix(64, 64))))
    assert names(fused("310P3", y)) == [["neg", "exp", "tanh"]]
    assert fused("310P3", y).effects == {"TbeEltwiseFusionPass": 1}
    assert fused("910B4", y).effects == {"AutomaticUbFusion": 1}
    on_950 = fused("950", y)
    assert names(on_950) == []
    assert "a 950 has no UB fusion" in on_950.missed[0].why


def test_chain_is_cut_at_six_without_the_rule_for_longer_ones() -> None:
    y = matrix(64, 64)
    for _ in range(4):
        y = Tanh()(Neg()(y))
    assert [len(g) for g in names(fused("310P3", y))] == [8]
    assert sorted(len(g) for g in names(fused("310P3", y, switches="AutomaticUbFusion:off"))) == [2, 6]
    assert names(fused("310P3", y, switches='{"Switch": {"UBFusion": {"ALL": "off"}}}')) == []


def test_value_that_is_read_elsewhere_is_written_too_by_its_own_rule() -> None:
    x = Neg()(matrix(64, 64))
    fusion = fused("310P3", Exp()(x), Softmax()(x))
    assert fusion.effects == {"TbeMultiOutputFusionPass": 1}
    assert names(fused("310P3", Exp()(x), Softmax()(x), switches="TbeMultiOutputFusionPass:off")) == []


def test_group_never_waits_for_itself() -> None:
    x = Neg()(matrix(64, 64))
    y = Add()(x, Softmax()(x))
    assert all(len(g.nodes) == 1 for g in fused("310P3", y).groups)


def test_reduction_takes_in_what_surrounds_it() -> None:
    x = matrix(64, 64)
    y = Exp()(ReduceSum((1,), True)(Mul()(x, x)))
    fusion = fused("310P3", y)
    assert names(fusion) == [["mul", "reduce_sum", "exp"]]
    assert fusion.effects == {"TbeReduceElemwiseFusionPass": 1}


def test_add_and_layer_norm_have_a_kernel_on_a_910b() -> None:
    x, r = matrix(32, 768), matrix(32, 768, label="r")
    y = LayerNorm()(Add()(x, r), weights(768), weights(768))
    (group,) = [g for g in fused("910B4", y).groups if g.rule]
    assert (group.rule, group.kind) == ("AddLayerNormFusionPass", "AddLayerNorm")
    assert fused("310P3", y).effects == {"AddLayerNormV3FusionPass": 1}
    narrow = LayerNorm()(Add()(matrix(32, 100), matrix(32, 100, label="r")), weights(100), weights(100))
    assert "the last axis must be one of 320" in fused("310P3", narrow).missed[0].why


def heads():
    return Transpose((0, 2, 1, 3))(Reshape((1, 128, 4, 16))(MatMul()(matrix(1, 128, 64), weights(64, 64))))


def test_heads_are_cut_in_the_kernel_of_the_product_on_a_910() -> None:
    y = MatMul()(heads(), weights(16, 16))
    fusion = fused("910A", y)
    assert ["matmul", "reshape", "transpose"] in names(fusion)
    assert fusion.effects["MatmulConfusiontransposeUbFusion"] == 1
    assert ["reshape", "transpose"] in names(fused("910A", y, switches="MatmulConfusiontransposeUbFusion:off"))
    assert ["reshape", "transpose"] not in names(fused("910A", y, switches="ReshapeTransposeFusionPass:off"))


def test_heads_lie_in_fractals_as_they_are_on_a_310p() -> None:
    rule = "TransdataTransposeTransdataBatchMatMulv2FusionPass"
    fusion = fused("310P3", MatMul()(heads(), weights(16, 16)))
    assert len(fusion.groups) == 2
    assert fusion.effects[rule] == 1
    off = fused("310P3", MatMul()(heads(), weights(16, 16)), switches=f"{rule}:off")
    assert len(off.groups) == 2 and rule not in off.effects and off.effects["MatmulConfusiontransposeUbFusion"] == 1


def test_clip_after_a_convolution_needs_whole_blocks_of_channels() -> None:
    assert fused("310P3", Clip(0.0, 1.0)(conv(image(3), 32))).effects == {"ConvClipByValueFusionPass": 1}
    assert fused("310P3", Clip(0.0, 6.0)(conv(image(3), 24))).effects == {"TbeConvCommonRules0FusionPass": 1}
    (missed,) = fused("310P3", Clip(0.0, 1.0)(conv(image(3), 24))).missed
    assert missed.rule in ("ConvClipByValueFusionPass", "TbeConvCommonRules0FusionPass") and "got" in missed.why


def test_wide_results_leave_a_half_precision_product_by_its_own_rule() -> None:
    y = Cast(f32)(MatMul()(matrix(32, 64), weights(64, 128)))
    assert fused("310P3", y).effects == {"MatmulCastFusionPass": 1}
    assert fused("910B4", y).effects == {"TbeMatmulFixPipeFusionPass": 1}


def test_script_that_launches_by_itself_joins_nothing() -> None:
    fusion = fused("310P3", residual(), eager=True)
    assert all(len(g.nodes) == 1 for g in fusion.groups)
    assert {m.why for m in fusion.missed} == {"operators are launched one by one as the script calls them"}


def test_what_is_read_twice_stays_and_says_so() -> None:
    x = conv(image(3), 32)
    fusion = fused("310P3", Relu()(x), Sigmoid()(x))
    assert {m.why for m in fusion.missed} == {"its value is read 2 times"}


def test_convolution_of_a_950_takes_relu_in_as_a_kernel_of_another_name() -> None:
    rule = "Conv2DFixPipeToExtendConv2DFusionPass"
    fusion = fused("950", Sigmoid()(Relu()(conv(image(3), 32))))
    assert fusion.effects == {rule: 1}
    assert [g.kind for g in fusion.groups] == ["ExtendConv2D", ""]
    assert fused("950", Sigmoid()(Relu()(conv(image(3), 32))), switches=f"{rule}:off").effects == {}


@pytest.mark.parametrize(("chip", "count"), [("950", 1), ("910B4", 1), ("310P3", 40)])
def test_autofuse_joins_chains_of_any_length_on_a_910b_and_later(chip, count) -> None:
    y = matrix(64, 64)
    for i in range(40):
        y = (Exp(), Neg())[i % 2](y)
    fusion = fused(chip, y, autofuse=True, switches="AutomaticUbFusion:off\nTbeEltwiseFusionPass:off\nTbeMultiOutputFusionPass:off")
    assert len(fusion.groups) == count
    assert fusion.effects == ({"AutoFuse": 1} if count == 1 else {})


def test_every_rule_of_the_tables_is_one_of_canns() -> None:
    assert {name for name, _, _ in described()} <= set(rule_names())


def test_every_kernel_is_in_one_group_and_in_order() -> None:
    graph = zoo("resnet50")
    for chip in ("310P3", "910B4"):
        fusion = of_graph(chip, graph)
        nodes = [n for g in fusion.groups for n in g.nodes]
        assert len(nodes) == len(set(nodes))
    assert len(of_graph("310P3", graph).groups) == 56


@pytest.mark.parametrize("name", ["mobilenet_v3_large", "unet"])
def test_cube_of_a_910b_has_nothing_behind_it_but_a_bias_and_the_fixpipe(name) -> None:
    groups = [g for g in of_graph("910B4", zoo(name)).groups if head_of(g.root)]
    behind = {n.op.name for g in groups for n in g.nodes[1:]}
    assert behind <= {"add", "relu", "leaky_relu", "prelu", "cast", "quantize", "dequantize"}
    added = [n for g in groups for n in g.nodes if n.op.name == "add"]
    assert all(n.inputs[1].array is not None for n in added)


@pytest.mark.parametrize("chip", ["310P3", "910B4"])
def test_every_operators_examples_become_kernels_in_an_order(chip) -> None:
    soc = find_chip(chip)
    count = 0
    for name, cls in REGISTRY.items():
        if name in ("param", "constant", "get", "fused", "batchwise"):
            continue
        for sample in cls.samples:
            nodes = [param(f"x{i}", t) if isinstance(t, TensorType) else constant(t) for i, t in enumerate(sample.inputs)]
            try:
                node = apply(cls(**sample.attributes), *nodes)
            except OpError:  # what depends on data stands in no graph
                continue
            selection = select(Graph("net", tuple(n for n in nodes if n.array is None), node.results), soc)
            formats = assign_formats(selection, soc)
            found = launches(selection, formats, fuse_npu(selection, formats, soc), soc)
            assert all(r is None or r < i for i, x in enumerate(found) for r in x.reads)
            count += 1
    assert count > 400
