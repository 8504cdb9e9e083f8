"""Small graphs for the tests of the compiler: those of networks, and random ones."""

import random

import numpy as np

from jumar.ir import Graph, constant, f32t, param
from jumar.operators import (
    Add,
    Broadcast,
    Concat,
    Conv,
    Exp,
    Fused,
    Gelu,
    LayerNorm,
    MatMul,
    MaxPool,
    Mul,
    Neg,
    Pad,
    ReduceMean,
    ReduceSum,
    Relu,
    Reshape,
    Sigmoid,
    Silu,
    Slice,
    Softmax,
    Sub,
    Tanh,
    Transpose,
)


def weights(seed, *shape):
    return constant((np.random.default_rng(seed).standard_normal(shape) * 0.3).astype(np.float32))


def conv(k=3, stride=1, groups=1):
    pad = k // 2
    return Conv((stride, stride), (pad, pad), (pad, pad), (1, 1), groups)


def residual_net():
    """Two convolutions with a shortcut, a pool, a classifier."""
    x = param("image", f32t(2, 3, 12, 12))
    a = Relu()(conv(3, 2)(x, weights(0, 8, 3, 3, 3), weights(1, 8)))
    b = conv()(Silu()(conv(1)(a, weights(2, 16, 8, 1, 1))), weights(3, 8, 16, 3, 3), weights(4, 8))
    c = Relu()(Add()(a, b))
    d = MaxPool((2, 2), (2, 2), (0, 0), (0, 0), (1, 1))(c)
    e = Concat(1)(d, conv(3, 1, 8)(d, weights(5, 8, 1, 3, 3)))
    pooled = ReduceMean((2, 3))(e)
    return Graph("residual", (x,), (Softmax(-1)(Add()(MatMul()(pooled, weights(6, 16, 5)), weights(7, 5))), e))


def transformer():
    """One encoder block with split query, key and value."""
    x = param("tokens", f32t(2, 6, 16))
    h = LayerNorm(-1)(x, weights(0, 16), weights(1, 16))
    qkv = Add()(MatMul()(h, weights(2, 16, 96)), weights(3, 96))
    q, k, v = (Slice((0, 0, i * 32), (2, 6, i * 32 + 32), (1, 1, 1))(qkv) for i in range(3))
    q, k, v = (Transpose((0, 2, 1, 3))(Reshape((2, 6, 4, 8))(n)) for n in (q, k, v))
    scores = Mul()(MatMul()(q, Transpose((0, 1, 3, 2))(k)), constant(np.float32(8**-0.5)))
    y = Reshape((2, 6, 32))(Transpose((0, 2, 1, 3))(MatMul()(Softmax(-1)(scores), v)))
    x1 = Add()(x, Add()(MatMul()(y, weights(4, 32, 16)), weights(5, 16)))
    z = Gelu()(Add()(MatMul()(LayerNorm(-1)(x1, weights(6, 16), weights(7, 16)), weights(8, 16, 64)), weights(9, 64)))
    return Graph("transformer", (x,), (Add()(x1, Add()(MatMul()(z, weights(10, 64, 16)), weights(11, 16))),))


def odd_outputs():
    """Outputs that are inputs, constants, each other, parts of each other."""
    x = param("x", f32t(4, 6))
    y = Exp()(x)
    part = Slice((1, 0), (3, 6), (1, 1))(y)
    return Graph("odd", (x,), (x, y, y, Reshape((24,))(y), weights(0, 3), part, Neg()(x)))


def joined():
    """A concatenation along the outermost dimension whose pieces can be made in place, and one of what cannot."""
    x = param("x", f32t(3, 4))
    a, b = Exp()(x), Tanh()(x)
    both = Concat(0)(a, b)
    return Graph("joined", (x,), (MatMul()(both, weights(0, 4, 5)), Concat(0)(x, a), Add()(a, b)))


UNARY = (Exp, Neg, Relu, Sigmoid, Tanh)
BINARY = (Add, Mul, Sub)


def random_graph(seed, size=25):
    """Elementwise operators, reductions, movement and products on small matrices, values read several times."""
    r = random.Random(seed)
    x, y = param("x", f32t(4, 6)), param("y", f32t(4, 6))
    pool = [x, y, Sigmoid()(x)]

    def bounded(node):
        return Tanh()(node)

    for i in range(size):
        a, b = r.choice(pool), r.choice(pool)
        kind = r.randrange(11)
        if kind < 3:
            new = r.choice(UNARY)()(bounded(a) if r.random() < 0.5 else Tanh()(a))
        elif kind < 6:
            new = r.choice(BINARY)()(a, b)
        elif kind == 6:
            new = Mul()(a, ReduceSum((r.randrange(2),), keepdims=True)(b))
        elif kind == 7:
            new = Softmax(r.randrange(2))(a)
        elif kind == 8:
            t = Transpose((1, 0))(a)
            new = bounded(MatMul()(MatMul()(a, t), b))
        elif kind == 9:
            s = Slice((0, 1), (4, 5), (1, 1))(a)
            new = Pad((0, 1), (0, 1))(s) if r.random() < 0.5 else Concat(1)(s, Slice((0, 0), (4, 2), (1, 1))(b))
        else:
            new = Add()(Reshape((4, 6))(Transpose((1, 0))(Reshape((6, 4))(a))), Broadcast((4, 6))(weights(i, 6)))
        pool.append(bounded(new) if r.random() < 0.4 else new)
    outputs = tuple(r.sample(pool[3:], 3))
    return Graph(f"random_{seed}", (x, y), outputs)


def groups(graph):
    """The operators of each fused group, and the operators outside of groups."""
    return [
        tuple(m.op.name for m in n.op.body.nodes if m.inputs) if isinstance(n.op, Fused) else n.op.name for n in graph.nodes if n.inputs
    ]
