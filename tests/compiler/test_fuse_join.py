"""Groups with several results never wait for each other, and compute the same, whatever the graph."""

import random

import numpy as np
import pytest

from jumar.compiler.passes.fuse import Fuse
from jumar.compiler.passes.recompute import Recompute
from jumar.ir import Graph, Sample, f32t, interpret, param
from jumar.operators import Add, Fused, MatMul, Mul, Neg, ReduceSum, Relu, Sub, Tanh, Transpose


@pytest.mark.parametrize("seed", range(60))
def test_random_graphs_keep_their_meaning(seed):
    rng = random.Random(seed)
    params = tuple(param(f"p{i}", f32t(6, 6)) for i in range(rng.randint(1, 4)))
    values = list(params)
    unary, binary = (Tanh(), Neg(), Relu(), Transpose((1, 0))), (Add(), Sub(), Mul())
    for _ in range(rng.randint(10, 70)):
        recent = values[-12:]
        a, b = rng.choice(recent), rng.choice(values)
        kind = rng.random()
        if kind < 0.3:
            values.append(rng.choice(unary)(a))
        elif kind < 0.85:
            values.append(rng.choice(binary)(a, b))
        elif kind < 0.93:
            values.append(Tanh()(MatMul()(a, b)))
        else:
            values.append(Mul()(a, ReduceSum((0,))(b)))
    graph = Graph("random", params, tuple(rng.sample(values[-20:], min(3, len(values)))))
    fused = Fuse()(Recompute(least_nbytes=0)(graph))
    arrays = Sample(tuple(p.type for p in params)).arrays(seed)
    for expected, actual in zip(interpret(graph, arrays), interpret(fused, arrays), strict=True):
        np.testing.assert_allclose(actual, expected, rtol=1e-4, atol=1e-4)
    assert all(len(n.op.body.outputs) <= Fuse().max_results for n in fused.nodes if isinstance(n.op, Fused))
