"""Activation functions: names for formulas of elementwise operators, fused as one.

In: one tensor (PRelu: and a slope).  Out: definitions whose `decompose` is the formula; a kernel evaluates the same formula on registers.
"""
# mypy: disable-error-code="override, no-any-return"

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from jumar.base import Array, TensorType, bf16, f16, f32, i8, i32
from jumar.ir import Constant, Node, Sample, f32t, param, sample, tensor, topological
from jumar.kernel import Builder, Value
from jumar.kernel import math as kmath
from jumar.operators.elementwise import (
    SPECIAL,
    Abs,
    And,
    Erf,
    Expm1,
    Grads,
    Log1p,
    Sigmoid,
    Tanh,
    add,
    div,
    exp,
    floats,
    greater,
    greater_equal,
    less,
    less_equal,
    maximum,
    minimum,
    mul,
    neg,
    select,
    square,
    sub,
)
from jumar.operators.families import Elementwise, wide


class Activation(Elementwise):
    """An elementwise operator that is defined by its formula in others."""

    abstract = True
    signature = "x[...] -> y[...]"
    samples: ClassVar[Sequence[Sample]] = floats()

    def decompose(self, *inputs: Node) -> Node:
        """The formula."""
        raise NotImplementedError(f"{self.name}: decompose must be defined")

    def compute(self, k: Builder, *x: Value) -> Value:
        """The formula on registers, where nothing is rounded in between."""
        inputs = [param(f"x{i}", TensorType((), v.dtype)) for i, v in enumerate(x)]
        formula = self.decompose(*inputs)
        values: dict[Node, Value] = dict(zip(inputs, x, strict=True))
        for node in topological([formula], inputs):
            if isinstance(node.op, Constant):
                values[node] = k.const(node.op.value.array.item(), node.dtype, x[0].lanes)
            elif isinstance(node.op, Elementwise):
                values[node] = node.op.compute(k, *(values[i] for i in node.inputs))
        return values[formula]


class Gelu(Activation):
    """x times the normal distribution function of x.   approximate: none (erf) or tanh."""

    approximate: str = "none"
    samples = (*floats(), sample(f32t(2, 5), approximate="tanh"))
    cann = "aclnnGelu"

    def reference(self, x: Array) -> Array:
        x = wide(x)
        if self.approximate == "tanh":
            return 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))
        return 0.5 * x * (1 + Erf().reference(x / np.asarray(math.sqrt(2), x.dtype)))

    def decompose(self, x: Node) -> Node:
        if self.approximate == "tanh":
            inner = mul(mul(x, add(mul(square(x), 0.044715), 1)), math.sqrt(2 / math.pi))
            return mul(mul(x, 0.5), add(Tanh()(inner), 1))
        return mul(mul(x, 0.5), add(Erf()(mul(x, 1 / math.sqrt(2))), 1))

    def compute(self, k: Builder, *x: Value) -> Value:
        """The formula in f32 by fewer operations; else as it is written."""
        if x[0].dtype is not f32:
            return super().compute(k, *x)
        return kmath.gelu_tanh(k, *x) if self.approximate == "tanh" else kmath.gelu(k, *x)

    def grad(self, x: Node, y: Node, dy: Node) -> Grads:
        if self.approximate == "tanh":
            c = math.sqrt(2 / math.pi)
            x2 = square(x)
            t = Tanh()(mul(mul(x, add(mul(x2, 0.044715), 1)), c))
            inner = mul(mul(x, add(mul(x2, 3 * 0.044715 * c), c)), sub(1, square(t)))
            return (mul(dy, mul(add(add(t, 1), inner), 0.5)),)
        below = mul(add(Erf()(mul(x, 1 / math.sqrt(2))), 1), 0.5)
        density = mul(exp(mul(square(x), -0.5)), 1 / math.sqrt(2 * math.pi))
        return (mul(dy, add(below, mul(x, density))),)


class Silu(Activation):
    """x * sigmoid(alpha * x), also called swish."""

    alpha: float = 1.0
    samples = (*floats(), sample(f32t(2, 5), alpha=1.7))
    cann = "aclnnSilu"

    def reference(self, x: Array) -> Array:
        x = wide(x)
        return x * Sigmoid().reference(np.asarray(self.alpha, x.dtype) * x)

    def decompose(self, x: Node) -> Node:
        return mul(x, Sigmoid()(x if self.alpha == 1 else mul(x, self.alpha)))

    def grad(self, x: Node, y: Node, dy: Node) -> Grads:
        z = x if self.alpha == 1 else mul(x, self.alpha)
        s = Sigmoid()(z)
        return (mul(dy, mul(s, add(mul(z, sub(1, s)), 1))),)


class HardSigmoid(Activation):
    """alpha * x + beta within 0 .. 1."""

    alpha: float = 0.2
    beta: float = 0.5
    samples = (*floats(-4, 4), sample(f32t(2, 5), alpha=1 / 6))
    cann = "aclnnHardsigmoid"

    def reference(self, x: Array) -> Array:
        x = wide(x)
        return np.clip(np.asarray(self.alpha, x.dtype) * x + np.asarray(self.beta, x.dtype), 0, 1)

    def decompose(self, x: Node) -> Node:
        return minimum(maximum(add(mul(x, self.alpha), self.beta), 0), 1)

    def grad(self, x: Node, y: Node, dy: Node) -> Grads:
        return (select(And()(greater(y, 0), less(y, 1)), mul(dy, self.alpha), 0),)


class HardSwish(Activation):
    """x * (x / 6 + 1/2 within 0 .. 1)."""

    samples = floats(-4, 4)
    cann = "aclnnHardswish"

    def reference(self, x: Array) -> Array:
        x = wide(x)
        return x * np.clip(x / 6 + np.asarray(0.5, x.dtype), 0, 1)

    def decompose(self, x: Node) -> Node:
        return mul(x, minimum(maximum(add(mul(x, 1 / 6), 0.5), 0), 1))

    def grad(self, x: Node, y: Node, dy: Node) -> Grads:
        return (select(less(x, -3), 0, select(greater(x, 3), dy, mul(dy, add(mul(x, 1 / 3), 0.5)))),)


class LeakyRelu(Activation):
    """x above zero, alpha * x below."""

    alpha: float = 0.01
    samples = (*floats(), sample(f32t(2, 5), alpha=0.3), sample(SPECIAL))
    cann = "aclnnLeakyRelu"

    def reference(self, x: Array) -> Array:
        x = wide(x)
        return np.where(x < 0, np.asarray(self.alpha, x.dtype) * x, x)

    def decompose(self, x: Node) -> Node:
        return select(less(x, 0), mul(x, self.alpha), x)

    def grad(self, x: Node, y: Node, dy: Node) -> Grads:
        return (select(greater(x, 0), dy, mul(dy, self.alpha)),)


class PRelu(Activation):
    """x above zero, slope * x below; the slope broadcasts to x."""

    signature = "x[...], slope[...] -> y[...]"
    samples = (
        sample(f32t(2, 3, 4), f32t(3, 1)),
        sample(f32t(5), f32t()),
        sample(tensor(f16, 9), tensor(f16, 1)),
        sample(tensor(i32, 5), tensor(i32, 5)),
    )
    cann = "aclnnPrelu"

    def reference(self, x: Array, slope: Array) -> Array:
        return np.where(x < 0, wide(x) * wide(slope), wide(x))

    def decompose(self, x: Node, slope: Node) -> Node:
        return select(less(x, 0), mul(x, slope), x)

    def grad(self, x: Node, slope: Node, y: Node, dy: Node) -> Grads:
        above = greater(x, 0)
        return select(above, dy, mul(dy, slope)), select(above, 0, mul(dy, x))


class ThresholdedRelu(Activation):
    """x above alpha, else zero."""

    alpha: float = 1.0
    samples = (*floats(), sample(f32t(2, 5), alpha=0.5))

    def reference(self, x: Array) -> Array:
        return np.where(wide(x) > np.asarray(self.alpha, wide(x).dtype), x, np.zeros_like(x))

    def decompose(self, x: Node) -> Node:
        return select(greater(x, self.alpha), x, 0)

    def grad(self, x: Node, y: Node, dy: Node) -> Grads:
        return (select(greater(x, self.alpha), dy, 0),)


class Elu(Activation):
    """x above zero, alpha * (exp(x) - 1) below."""

    alpha: float = 1.0
    samples = (*floats(), sample(f32t(2, 5), alpha=2.0))
    cann = "aclnnElu"

    def reference(self, x: Array) -> Array:
        x = wide(x)
        return np.where(x < 0, np.asarray(self.alpha, x.dtype) * np.expm1(x), x)

    def decompose(self, x: Node) -> Node:
        return select(less(x, 0), mul(Expm1()(x), self.alpha), x)

    def grad(self, x: Node, y: Node, dy: Node) -> Grads:
        return (select(less(x, 0), mul(dy, add(y, self.alpha)), dy),)


class Selu(Activation):
    """gamma * x above zero, gamma * alpha * (exp(x) - 1) below."""

    alpha: float = 1.6732631921768188
    gamma: float = 1.0507010221481323
    samples = (*floats(), sample(f32t(2, 5), alpha=2.0, gamma=3.0))
    cann = "aclnnSelu"

    def reference(self, x: Array) -> Array:
        x = wide(x)
        return np.asarray(self.gamma, x.dtype) * np.where(x <= 0, np.asarray(self.alpha, x.dtype) * np.expm1(x), x)

    def decompose(self, x: Node) -> Node:
        return mul(select(less_equal(x, 0), mul(Expm1()(x), self.alpha), x), self.gamma)

    def grad(self, x: Node, y: Node, dy: Node) -> Grads:
        return (select(less_equal(x, 0), mul(dy, add(y, self.alpha * self.gamma)), mul(dy, self.gamma)),)


class Celu(Activation):
    """x above zero, alpha * (exp(x / alpha) - 1) below."""

    alpha: float = 1.0
    samples = (*floats(), sample(f32t(2, 5), alpha=2.0))
    cann = "aclnnCelu"

    def reference(self, x: Array) -> Array:
        x = wide(x)
        return np.maximum(x, 0) + np.minimum(0, np.asarray(self.alpha, x.dtype) * np.expm1(x / np.asarray(self.alpha, x.dtype)))

    def decompose(self, x: Node) -> Node:
        return add(maximum(x, 0), minimum(mul(Expm1()(div(x, self.alpha)), self.alpha), 0))

    def grad(self, x: Node, y: Node, dy: Node) -> Grads:
        return (select(less(x, 0), mul(dy, add(mul(y, 1 / self.alpha), 1)), dy),)


class Softplus(Activation):
    """log(1 + exp(x))."""

    samples = (*floats(), sample(f32t(9), low=-200, high=200))
    cann = "aclnnSoftplus"

    def reference(self, x: Array) -> Array:
        x = wide(x)
        return np.maximum(x, 0) + np.log1p(np.exp(-np.abs(x)))

    def decompose(self, x: Node) -> Node:
        return add(maximum(x, 0), Log1p()(exp(neg(Abs()(x)))))  # exp of what is never positive cannot overflow

    def grad(self, x: Node, y: Node, dy: Node) -> Grads:
        return (mul(dy, Sigmoid()(x)),)


class Softsign(Activation):
    """x / (1 + |x|)."""

    cann = "aclnnSoftsign"

    def reference(self, x: Array) -> Array:
        x = wide(x)
        return x / (1 + np.abs(x))

    def decompose(self, x: Node) -> Node:
        return div(x, add(Abs()(x), 1))

    def grad(self, x: Node, y: Node, dy: Node) -> Grads:
        return (div(dy, square(add(Abs()(x), 1))),)


class Mish(Activation):
    """x * tanh(log(1 + exp(x)))."""

    cann = "aclnnMish"

    def reference(self, x: Array) -> Array:
        x = wide(x)
        return x * np.tanh(Softplus().reference(x))

    def decompose(self, x: Node) -> Node:
        return mul(x, Tanh()(Softplus().decompose(x)))

    def grad(self, x: Node, y: Node, dy: Node) -> Grads:
        t = Tanh()(Softplus()(x))
        return (mul(dy, add(t, mul(mul(x, Sigmoid()(x)), sub(1, square(t))))),)


class Clip(Activation):
    """x within low .. high, of which each may be absent; NaN stays NaN."""

    low: float | int | None = None
    high: float | int | None = None
    samples = (  # `sample` takes low and high for itself
        Sample((f32t(2, 5),), {"low": -1.0, "high": 1.0}),
        Sample((f32t(5),), {"low": 0.0}),
        Sample((tensor(f16, 9),), {"high": 0.5}),
        Sample((tensor(bf16, 3),), {"low": 0.0, "high": 6.0}),
        Sample((tensor(i8, 5),), {"low": -3, "high": 3}),
        Sample((SPECIAL,), {"low": 0.0, "high": 6.0}),
        Sample((f32t(4),), {"low": 1.0, "high": -1.0}),
        Sample((f32t(5),)),
    )
    cann = "aclnnClamp"

    def reference(self, x: Array) -> Array:
        y = wide(x)
        y = y if self.low is None else np.maximum(y, np.asarray(self.low, y.dtype))
        return y if self.high is None else np.minimum(y, np.asarray(self.high, y.dtype))

    def decompose(self, x: Node) -> Node:
        y = x if self.low is None else maximum(x, self.low)
        return y if self.high is None else minimum(y, self.high)

    def grad(self, x: Node, y: Node, dy: Node) -> Grads:
        """To what lies within, the bounds included."""
        tests = [greater_equal(x, self.low)] if self.low is not None else []
        tests += [less_equal(x, self.high)] if self.high is not None else []
        if not tests:
            return (dy,)
        return (select(And()(*tests) if len(tests) == 2 else tests[0], dy, 0),)
