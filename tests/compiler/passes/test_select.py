import numpy as np
import pytest

import jumar.operators as ops
from jumar.base import CompileError, Loc, OpError, TensorType, bf16, f16, f32, f64, i8, i32, i64, u8
from jumar.compiler.passes.precision import parse_precision
from jumar.compiler.passes.select import select
from jumar.device.npu import AI_CPU, CUBE, DVPP, HOST, VECTOR, find_chip
from jumar.ir import REGISTRY, Graph, apply, constant, f32t, interpret, param, tensor

CHIPS = ("310P3", "910B4", "950")
NEVER_HERE = ("param", "constant", "get", "fused", "batchwise")  # made by graphs and by the passes for CPUs


def graph_of(op, *inputs):
    """One operator on parameters (of types) and constants (of arrays)."""
    nodes = [param(f"x{i}", t) if isinstance(t, TensorType) else constant(t) for i, t in enumerate(inputs)]
    node = apply(op, *nodes, loc=Loc("net.py", 7))
    return Graph("net", tuple(n for n in nodes if n.array is None), node.results)


def only(selection):
    (choice,) = [c for c in selection.choices.values() if c.how != "view"]
    return choice


def samples():
    for name, cls in REGISTRY.items():
        if name not in NEVER_HERE:
            for sample in cls.samples:
                yield name, cls, sample


@pytest.mark.parametrize("chip", CHIPS)
def test_every_sample_of_every_operator_has_a_choice_that_is_explained(chip):
    soc = find_chip(chip)
    unexplained, mapped = [], set()
    for name, cls, sample in samples():
        try:
            graph = graph_of(cls(**sample.attributes), *sample.inputs)
        except OpError:  # what depends on data stands in no graph
            continue
        for node, c in select(graph, soc).choices.items():
            mapped.add(name)
            if c.how in ("aclnn", "ge"):
                explained = bool(c.unit and c.kind and c.source and c.evidence in ("documented", "inferred"))
            elif c.how == "view":
                explained = not c.unit and bool(c.why)
            else:
                explained = bool(c.why) and (c.how == "none" or bool(c.unit and c.kind))
            if not explained:
                unexplained.append((node, c))
    assert unexplained == []
    assert len(mapped) > 130


def test_a_kernel_says_its_unit_and_what_that_stands_on():
    soft = only(select(graph_of(ops.Softmax(), f32t(2, 5)), find_chip("910B4")))
    assert (soft.unit, soft.kind, soft.aclnn, soft.how, soft.evidence) == (VECTOR, "SoftmaxV2", "aclnnSoftmax", "aclnn", "documented")
    conv = ops.Conv((1, 1), (0, 0), (0, 0), (1, 1))
    of_910a = only(select(graph_of(conv, tensor(f16, 1, 3, 8, 8), tensor(f16, 4, 3, 3, 3)), find_chip("910A")))
    assert (of_910a.unit, of_910a.kind, of_910a.how, of_910a.evidence) == (CUBE, "Conv2D", "ge", "inferred")
    assert "binary package" in of_910a.source


def test_names_follow_the_generation():
    kinds = [only(select(graph_of(ops.Transpose((1, 0)), f32t(2, 5)), find_chip(c))).kind for c in CHIPS]
    assert kinds == ["TransposeD", "Transpose", "Transpose"]
    depthwise = ops.Conv((1, 1), (1, 1), (1, 1), (1, 1), groups=8)
    assert only(select(graph_of(depthwise, tensor(f16, 1, 8, 8, 8), tensor(f16, 8, 1, 3, 3)), find_chip("310P3"))).kind == "DepthwiseConv2D"


def test_views_launch_nothing():
    x = param("x", f32t(1, 4, 5))
    moved = ops.Transpose((1, 0, 2))(ops.Reshape((4, 1, 5))(x))
    selection = select(Graph("net", (x,), (moved,)), find_chip("910B4"))
    assert {c.how for c in selection.choices.values()} == {"view"}
    assert selection.by_unit() == {"": 2}


def test_element_types_that_no_core_takes_go_to_the_ai_cpu_and_say_why():
    c = only(select(graph_of(ops.Exp(), tensor(f64, 4)), find_chip("910B4")))
    assert (c.unit, c.how, c.aclnn) == (AI_CPU, "ai cpu", "aclnnExp")
    assert "takes bf16, f16, f32, got f64" in c.why
    assert c.alternatives[0].how == "cast the inputs of exp to f32"


def test_an_operator_without_a_kernel_is_taken_apart_and_computes_the_same():
    rng = np.random.default_rng(0)
    cases = [
        (ops.ThresholdedRelu(0.5), f32t(3, 4)),
        (ops.ArgMax(axis=1, select_last=True), f32t(3, 9)),
        (ops.MatMul(x_zero=3), tensor(u8, 4, 5), tensor(u8, 5, 6)),
        (ops.MatMul(), tensor(u8, 4, 5), tensor(i8, 5, 6)),
        (ops.Conv((1, 1), (1, 1), (1, 1), (1, 1), x_zero=7), tensor(u8, 1, 2, 5, 5), tensor(u8, 3, 2, 3, 3)),
        (ops.Conv((1, 1), (1, 1), (1, 1), (1, 1), groups=2, x_zero=7), tensor(u8, 1, 4, 5, 5), tensor(u8, 6, 2, 3, 3)),
        (ops.Lookup(i8, tuple(i - 128 for i in range(256))), tensor(i8, 7)),
        (ops.Quantize(u8), f32t(3, 4), np.array(0.02, np.float32), np.array(128, np.uint8)),
        (ops.Dequantize(), tensor(u8, 3, 4), np.array(0.02, np.float32), np.array(128, np.uint8)),
        (ops.AvgPool((3,), (1,), (0,), (0,), (2,)), f32t(1, 2, 9)),
        (ops.Pad((4,), (5,), "wrap"), tensor(i64, 3)),
        (ops.ReduceSum((1,)), tensor(i32, 3, 4)),
        (ops.Conv((1, 1), (1, 1), (1, 1), (1, 1), 2, x_zero=-7), tensor(i8, 1, 2, 5, 5), np.full((2, 1, 3, 3), 254, np.int16)),
        (ops.Conv((1, 1), (1, 1), (1, 1), (1, 1), 2, x_zero=7), tensor(u8, 1, 2, 5, 5), np.full((2, 1, 3, 3), -99, np.int16)),
        (ops.MaxPool((2, 2), (2, 2), (0, 0), (0, 0), (1, 1)), tensor(i8, 1, 2, 4, 4)),
    ]
    for op, *inputs in cases:
        graph = graph_of(op, *inputs)
        chip = "910B4" if isinstance(op, ops.AvgPool) else "310P3"  # there its sums would be of f16
        selection = select(graph, find_chip(chip))
        assert [c.node.op for c in selection.composites] == [op]
        assert selection.composites[0].why
        arrays = [
            rng.integers(0, 255, p.shape).astype(p.dtype.numpy) if p.dtype.is_integer else rng.normal(size=p.shape).astype(np.float32)
            for p in graph.params
        ]
        for expected, actual in zip(interpret(graph, arrays), interpret(selection.graph, arrays), strict=True):
            np.testing.assert_allclose(expected, actual, rtol=1e-6, atol=1e-6)
        assert {c.how for c in selection.choices.values()} <= {"aclnn", "ge", "view", "ai cpu"}


def test_a_product_of_f32_on_a_cube_without_it_is_of_f16_between_casts():
    graph = graph_of(ops.MatMul(), f32t(16, 16), np.ones((16, 16), np.float32))
    selection = select(graph, find_chip("310P3"))
    assert [n.op.name for n in selection.graph.nodes if n in selection.choices] == ["cast", "matmul", "cast"]
    assert {n.dtype for n in selection.graph.nodes if n.op.name == "matmul"} == {f16}
    assert [n.dtype for n in selection.graph.nodes if n.array is not None] == [f16]  # the weight was cast once, here
    assert not select(graph, find_chip("910B4")).composites
    assert select(graph, find_chip("910B4")).graph.outputs[0].dtype is f32


@pytest.mark.parametrize("op", [ops.BatchNormTrain(), ops.BatchNormGrad()], ids=lambda op: op.name)
def test_batch_normalization_in_training_is_two_kernels_before_910b(op):
    types = type(op).samples[0].inputs
    graph = graph_of(op, *types)
    assert only(select(graph, find_chip("910B4"))).kind.startswith("BatchNorm")
    selection = select(graph, find_chip("910A"))
    kinds = [c.kind for c in selection.choices.values() if c.how != "view"]
    assert [k.startswith("BNTraining") for k in kinds] == [True, True]
    arrays = [np.abs(a) + 0.5 for a in type(op).samples[0].arrays()]
    for expected, actual in zip(interpret(graph, arrays), interpret(selection.graph, arrays), strict=True):
        np.testing.assert_allclose(expected, actual, rtol=1e-3, atol=1e-4)


def test_what_precision_asks_of_a_kernel_stands_in_its_attributes():
    conv = ops.Conv((1, 1), (0, 0), (0, 0), (1, 1))
    graph = graph_of(conv, f32t(1, 4, 8, 8), f32t(4, 4, 1, 1))
    assert only(select(graph, find_chip("910B4"), precision=parse_precision("origin"))).attrs["hf32"]
    assert "hf32" not in only(select(graph, find_chip("910B4"), precision=parse_precision("origin,hf32=off"))).attrs
    adds = graph_of(ops.ScatterNd("add"), f32t(4, 3), np.array([[0], [2]]), f32t(2, 3))
    assert only(select(adds, find_chip("910B4"), precision=parse_precision("origin,deterministic"))).attrs["deterministic"]
    assert "deterministic" not in only(select(adds, find_chip("910B4"), precision=parse_precision("origin"))).attrs


def test_pictures_are_resized_by_the_media_engine():
    op = ops.Resize((1, 3, 64, 64), (1.0, 1.0, 0.5, 0.5), "linear")
    c = only(select(graph_of(op, tensor(u8, 1, 3, 128, 128)), find_chip("310P3")))
    assert (c.unit, c.how) == (DVPP, "dvpp")
    assert "media engine" in c.why
    assert only(select(graph_of(op, tensor(f16, 1, 3, 128, 128)), find_chip("310P3"))).unit == VECTOR


def test_products_that_no_cube_makes_are_the_ai_cpu_s():
    for dtype in (f64, i32):
        c = only(select(graph_of(ops.MatMul(), tensor(dtype, 4, 5), tensor(dtype, 5, 6)), find_chip("910B4")))
        assert (c.unit, c.kind) == (AI_CPU, "MatMul")
        assert c.why == f"no cube multiplies {dtype}: products of it are the AI CPU's"


def test_what_runs_nowhere_is_said_and_strict_makes_it_an_error():
    graph = graph_of(ops.Exp(), tensor(bf16, 4))
    (said,) = select(graph, find_chip("310P3")).warnings
    assert said == "exp (net.py:7) runs NOWHERE with Ascend310P3: Exp on the AI Core of Ascend310P3 takes f16, f32, got bf16"
    with pytest.raises(
        CompileError, match=r"(?s)exp must be an operator that Ascend310P3 runs.*net.py:7.*cast the inputs of exp to f32"
    ) as error:
        select(graph, find_chip("310P3"), strict=True)
    assert error.value.code == "npu-unmapped"


def test_the_host_is_said_loudly():
    _, cls, sample = next(s for s in samples() if s[0] == "ngrams")
    selection = select(graph_of(cls(**sample.attributes), *sample.inputs), find_chip("910B4"))
    assert only(selection).unit == HOST
    assert "runs on the HOST" in selection.warnings[0]
