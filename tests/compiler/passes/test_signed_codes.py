import numpy as np

import jumar.operators as ops
from jumar.base import f32, i8, u8
from jumar.compiler.passes.signed_codes import SignedCodes
from jumar.ir import Graph, constant, f32t, interpret, param, tensor


def test_whatever_reads_codes_computes_the_same():
    x, i = param("x", f32t(2, 4, 6, 6)), param("i", tensor(i8, 2))
    scale, zero = constant(np.float32(0.02)), constant(np.uint8(120))
    codes = ops.Quantize(u8)(x, scale, zero)
    pooled = ops.MaxPool((2, 2), (2, 2), (0, 0), (0, 0), (1, 1))(codes)
    padded = ops.Pad((0, 0, 1, 1), (0, 0, 1, 1), "constant", 120)(pooled)
    joined = ops.Concat(1)(padded, constant(np.full((2, 4, 5, 5), 7, np.uint8)))
    looked = ops.Lookup(u8, tuple((k * 7) % 256 for k in range(256)))(joined)
    filters = constant(np.random.default_rng(0).integers(-9, 9, (3, 8, 3, 3)).astype(np.int8))
    without_zero = ops.Quantize(u8)(x, scale)
    outputs = (
        ops.Conv((1, 1), (1, 1), (1, 1), (1, 1), x_zero=120)(looked, filters),
        ops.Dequantize()(ops.Transpose((0, 2, 3, 1))(looked), scale, zero),
        ops.Dequantize()(without_zero, scale),
        ops.Cast(f32)(without_zero),
        ops.Lookup(i8, tuple(range(-128, 128)))(joined),
        looked,  # a result is given as it is
        ops.BitwiseNot()(codes),  # and so is what is read bit by bit
        ops.Add()(i, i),
    )
    graph = Graph("net", (x, i), outputs)
    made = SignedCodes()(graph)
    assert {str(n.dtype) for n in made.nodes if n.op.name in ("quantize", "max_pool", "pad", "concat", "transpose")} == {"i8"}
    rng = np.random.default_rng(1)
    arrays = [rng.normal(size=(2, 4, 6, 6)).astype(np.float32), rng.integers(-9, 9, 2).astype(np.int8)]
    for expected, actual in zip(interpret(graph, arrays), interpret(made, arrays), strict=True):
        np.testing.assert_array_equal(expected, actual)


def test_a_graph_without_unsigned_codes_stays_itself():
    x = param("x", f32t(4))
    graph = Graph("net", (x,), (ops.Quantize(i8)(x, constant(np.float32(0.1))),))
    assert SignedCodes()(graph) is graph
