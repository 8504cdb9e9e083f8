"""Elementwise operators of ONNX: arithmetic, logic, comparison, activations, conversion, dropout."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from typing import Any

import numpy as np

from jumar.base import DType, f32, f64
from jumar.frontend.importers.onnx.node import OnnxNode, dtype_of_onnx
from jumar.frontend.importers.onnx.rule import RuleFunction, rule
from jumar.frontend.importers.onnx.trace import Tensor, Trace
from jumar.frontend.importers.onnx.value import Value
from jumar.ir import Node, Op, constant
from jumar.operators import (
    Abs,
    Acos,
    Acosh,
    Add,
    And,
    Asin,
    Asinh,
    Atan,
    Atanh,
    BitCast,
    BitwiseAnd,
    BitwiseNot,
    BitwiseOr,
    BitwiseXor,
    Cast,
    Ceil,
    Celu,
    Clip,
    Cos,
    Cosh,
    Div,
    Elu,
    Equal,
    Erf,
    Exp,
    Floor,
    Gelu,
    Greater,
    GreaterEqual,
    HardSigmoid,
    HardSwish,
    IsInf,
    IsNan,
    LeakyRelu,
    Less,
    LessEqual,
    Log,
    Maximum,
    Minimum,
    Mish,
    Mod,
    Mul,
    Neg,
    Not,
    Or,
    Pow,
    PRelu,
    RandomUniform,
    Reciprocal,
    Relu,
    Round,
    Select,
    Selu,
    ShiftLeft,
    ShiftRight,
    Sigmoid,
    Sign,
    Silu,
    Sin,
    Sinh,
    Softplus,
    Softsign,
    Sqrt,
    Sub,
    Tan,
    Tanh,
    ThresholdedRelu,
    Xor,
    add,
    cast,
    div,
    greater,
    greater_equal,
    less,
    mul,
    reshape,
    select,
    sub,
)

Make = Callable[[OnnxNode], Op]  # the operator that the attributes of a node ask for

UNARY: dict[str, Make] = {
    "Abs": lambda n: Abs(),
    "Acos": lambda n: Acos(),
    "Acosh": lambda n: Acosh(),
    "Asin": lambda n: Asin(),
    "Asinh": lambda n: Asinh(),
    "Atan": lambda n: Atan(),
    "Atanh": lambda n: Atanh(),
    "BitwiseNot": lambda n: BitwiseNot(),
    "Ceil": lambda n: Ceil(),
    "Celu": lambda n: Celu(n.attribute("alpha", 1.0)),
    "Cos": lambda n: Cos(),
    "Cosh": lambda n: Cosh(),
    "Elu": lambda n: Elu(n.attribute("alpha", 1.0)),
    "Erf": lambda n: Erf(),
    "Exp": lambda n: Exp(),
    "Floor": lambda n: Floor(),
    "Gelu": lambda n: Gelu(n.attribute("approximate", "none")),
    "HardSigmoid": lambda n: HardSigmoid(n.attribute("alpha", 0.2), n.attribute("beta", 0.5)),
    "HardSwish": lambda n: HardSwish(),
    "IsInf": lambda n: IsInf(bool(n.attribute("detect_positive", 1)), bool(n.attribute("detect_negative", 1))),
    "IsNaN": lambda n: IsNan(),
    "LeakyRelu": lambda n: LeakyRelu(n.attribute("alpha", 0.01)),
    "Log": lambda n: Log(),
    "Mish": lambda n: Mish(),
    "Neg": lambda n: Neg(),
    "Not": lambda n: Not(),
    "Reciprocal": lambda n: Reciprocal(),
    "Relu": lambda n: Relu(),
    "Round": lambda n: Round(),
    "Selu": lambda n: Selu(n.attribute("alpha", 1.6732631921768188), n.attribute("gamma", 1.0507010221481323)),
    "Sigmoid": lambda n: Sigmoid(),
    "Sign": lambda n: Sign(),
    "Sin": lambda n: Sin(),
    "Sinh": lambda n: Sinh(),
    "Softplus": lambda n: Softplus(),
    "Softsign": lambda n: Softsign(),
    "Sqrt": lambda n: Sqrt(),
    "Swish": lambda n: Silu(n.attribute("alpha", 1.0)),
    "Tan": lambda n: Tan(),
    "Tanh": lambda n: Tanh(),
    "ThresholdedRelu": lambda n: ThresholdedRelu(n.attribute("alpha", 1.0)),
}

BINARY: dict[str, Make] = {
    "Add": lambda n: Add(),
    "And": lambda n: And(),
    "BitShift": lambda n: ShiftLeft() if n.attribute("direction") == "LEFT" else ShiftRight(),
    "BitwiseAnd": lambda n: BitwiseAnd(),
    "BitwiseOr": lambda n: BitwiseOr(),
    "BitwiseXor": lambda n: BitwiseXor(),
    "Div": lambda n: Div(),
    "Equal": lambda n: Equal(),
    "Greater": lambda n: Greater(),
    "GreaterOrEqual": lambda n: GreaterEqual(),
    "Less": lambda n: Less(),
    "LessOrEqual": lambda n: LessEqual(),
    "Mod": lambda n: Mod(fmod=bool(n.attribute("fmod", 0))),
    "Mul": lambda n: Mul(),
    "Or": lambda n: Or(),
    "Sub": lambda n: Sub(),
    "Xor": lambda n: Xor(),
}


def _unary(make: Make) -> RuleFunction:
    def one(t: Trace, n: OnnxNode, x: Value) -> Node:
        return make(n)(t.node(x))

    return one


def _binary(make: Make) -> RuleFunction:
    def two(t: Trace, n: OnnxNode, a: Value, b: Value) -> Node:
        return make(n)(*pair(t, n, a, b))

    return two


for _name, _make in UNARY.items():
    rule(_name)(_unary(_make))
for _name, _make in BINARY.items():
    rule(_name)(_binary(_make))


def pair(t: Trace, n: OnnxNode, a: Value, b: Value) -> tuple[Node, Node]:
    """The operands of a binary node.   Before opset 7 b's dimensions were laid to a's from `axis` on, if asked to."""
    x, y = t.node(a), t.node(b)
    if n.opset < 7 and n.attribute("broadcast", 0) and n.has("axis"):
        after = x.rank - n.attribute("axis") % max(x.rank, 1) - y.rank
        y = reshape(y, (*y.shape, *(1,) * max(after, 0)))
    return x, y


def seed_of(n: OnnxNode) -> int:
    """The seed of a node that draws random numbers; where none is given, one that follows from its name, so that runs can be repeated."""
    return int(n.attribute("seed")) % 2**32 if n.has("seed") else zlib.crc32(f"{n.name}:{n.output_names}".encode())


# ------------------------------------------------------------------------------------------------- any number of inputs
def _folded(op: Op) -> RuleFunction:
    def fold(t: Trace, n: OnnxNode, *inputs: Value) -> Node:
        result, *rest = (t.node(i) for i in inputs)
        for x in rest:
            result = op(result, x)
        return result

    return fold


sum_rule = rule("Sum")(_folded(Add()))
rule("Max")(_folded(Maximum()))
rule("Min")(_folded(Minimum()))


@rule("Mean")
def mean(t: Trace, n: OnnxNode, *inputs: Value) -> Node:
    total: Node = sum_rule(t, n, *inputs)
    return total if len(inputs) == 1 else div(total, len(inputs))


# -------------------------------------------------------------------------------------------------------------- others
@rule("Identity")
def identity(t: Trace, n: OnnxNode, x: Value) -> Value:
    return x


@rule("Where")
def where(t: Trace, n: OnnxNode, condition: Value, x: Value, y: Value) -> Node:
    return Select()(t.node(condition), t.node(x), t.node(y))


@rule("Pow")
def pow_(t: Trace, n: OnnxNode, a: Value, b: Value) -> Node:
    """The exponent may be of another type; the result is of the base's."""
    x, y = pair(t, n, a, b)
    kind = _power_dtype(x.dtype, y.dtype)
    return cast(Pow()(cast(x, kind), cast(y, kind)), x.dtype)


def _power_dtype(base: DType, exponent: DType) -> DType:
    if base == exponent or (base.is_float and not exponent.is_float):
        return base
    if base.is_integer and exponent.is_integer:
        return base if base.bits >= exponent.bits else exponent
    return f64 if max(base.bits, exponent.bits) > 32 or base.is_integer else f32


@rule("Clip")
def clip(t: Trace, n: OnnxNode, x: Value, low: Value, high: Value) -> Node:
    if n.opset < 11:
        return Clip(n.attribute("min"), n.attribute("max"))(t.node(x))
    known = [t.known(b) for b in (low, high)]
    if all(b is None or k is not None for b, k in zip((low, high), known, strict=True)):
        bounds = [None if k is None else _number(k) for k in known]
        return Clip(*bounds)(t.node(x))
    result = t.node(x)
    result = result if low is None else Maximum()(result, _scalar(t.node(low)))
    return result if high is None else Minimum()(result, _scalar(t.node(high)))


def _number(array: Any) -> float | int:
    """The one number in an array."""
    one = array.reshape(-1)[0]
    return int(one) if array.dtype.kind in "iu" else float(one)


def _scalar(x: Node) -> Node:
    return reshape(x, ())


@rule("PRelu")
def prelu(t: Trace, n: OnnxNode, x: Value, slope: Value) -> Node:
    """Before opset 7 a vector of slopes is one for each channel."""
    data, s = t.node(x), t.node(slope)
    if n.opset < 7 and s.rank == 1 and data.rank > 2:
        s = reshape(s, (*s.shape, *(1,) * (data.rank - 2)))
    return PRelu()(data, s)


@rule("Shrink")
def shrink(t: Trace, n: OnnxNode, value: Value) -> Node:
    source = t.node(value)
    bias, limit = n.attribute("bias", 0.0), n.attribute("lambd", 0.5)
    x = source if source.dtype.is_float else cast(source, f64)
    return cast(select(less(x, -limit), add(x, bias), select(greater(x, limit), sub(x, bias), 0)), source.dtype)


@rule("SwiGLU")
def swiglu(t: Trace, n: OnnxNode, a: Value, b: Value) -> Node:
    return mul(Silu(n.attribute("alpha", 1.0))(t.node(a)), t.node(b))


@rule("Cast")
def cast_(t: Trace, n: OnnxNode, x: Value) -> Node:
    return _cast(t, n, x, dtype_of_onnx(n.attribute("to")))


@rule("CastLike")
def cast_like(t: Trace, n: OnnxNode, x: Value, like: Tensor) -> Node:
    return _cast(t, n, x, like.dtype)


def _cast(t: Trace, n: OnnxNode, value: Value, dtype: DType) -> Node:
    x = t.node(value)
    return x if x.dtype == dtype else Cast(dtype, bool(n.attribute("saturate", 1)), n.attribute("round_mode", "up"))(x)


@rule("BitCast")
def bit_cast(t: Trace, n: OnnxNode, x: Value) -> Node:
    return BitCast(dtype_of_onnx(n.attribute("to")))(t.node(x))


@rule("Dropout")
def dropout(t: Trace, n: OnnxNode, x: Value, ratio: Value, training: Value) -> tuple[Node, Node]:
    """While training, each element is dropped with probability `ratio` and the others are scaled up for it."""
    data = t.node(x)
    rate = float(t.scalar(ratio)) if ratio is not None else n.attribute("ratio", 0.5)
    trains = bool(t.scalar(training)) if training is not None else n.opset < 7 and not n.attribute("is_test", 0)
    if not trains or rate == 0:
        everything = constant(np.ones(data.shape, np.bool_))
        return data, everything if n.opset >= 10 else cast(everything, data.dtype)
    kept = greater_equal(RandomUniform(data.shape, seed=seed_of(n), dtype=f64)(), rate)
    return mul(mul(data, cast(kept, data.dtype)), 1 / (1 - rate)), kept if n.opset >= 10 else cast(kept, data.dtype)
