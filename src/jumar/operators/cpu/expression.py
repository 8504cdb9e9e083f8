"""Expressions: a body of elementwise operators in a form that is its own key, written out on registers.

In: steps that `region.py` (or a contraction's epilogue) takes from a graph.  Out: kernel values, through each operator's `compute`.

Values in registers have the compute type: f16 and bf16 are f32 there, bool is a mask.  The result of an operator inside an expression is
NOT rounded to f16 or bf16 between operators; only stores and explicit casts round.  That is the more accurate choice, and the
cheaper one; it differs from operators run one by one by at most the roundings that it saves.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from jumar.base import DType, bf16, f16, f32
from jumar.device import Target
from jumar.ir import Op
from jumar.kernel import Builder, Value
from jumar.operators.families import Elementwise


@dataclass(frozen=True)
class Number:
    """A constant written into the code.   text: what tells constants apart (0.0 and -0.0, NaN and NaN)."""

    text: str
    value: float | int | bool = field(compare=False)

    @property
    def name(self) -> str:
        return "number"


@dataclass(frozen=True)
class Position:
    """The index along the reduced axis, as i32."""

    @property
    def name(self) -> str:
        return "position"


@dataclass(frozen=True)
class Accumulate:
    """All elements along the reduced axes as one.   how: add, mul, max, min, and, or."""

    how: str

    @property
    def name(self) -> str:
        return f"accumulate_{self.how}"


StepOp = Op | Number | Position | Accumulate


@dataclass(frozen=True)
class Step:
    """One operator of an expression.   args: numbers of inputs (first) and of earlier steps; dtype: of the result."""

    op: StepOp
    args: tuple[int, ...]
    dtype: DType


@dataclass(frozen=True)
class Expression:
    """Operators in order, without shapes: equal for all bodies that compute the same.

    inputs: element types in memory; outputs: the values numbered inputs first, then steps.
    """

    inputs: tuple[DType, ...]
    steps: tuple[Step, ...]
    outputs: tuple[int, ...]

    def dtype(self, number: int) -> DType:
        """Element type of a value."""
        count = len(self.inputs)
        return self.inputs[number] if number < count else self.steps[number - count].dtype

    def step(self, number: int) -> Step | None:
        """The step that makes a value; None for an input."""
        return self.steps[number - len(self.inputs)] if number >= len(self.inputs) else None

    @property
    def dtypes(self) -> tuple[DType, ...]:
        """Element types of all values."""
        return (*self.inputs, *(s.dtype for s in self.steps))

    @property
    def cost(self) -> float:
        """Work for one vector of elements, in units of a simple instruction."""
        return sum(step_cost(s) for s in self.steps)

    def emit(self, k: Builder, inputs: Sequence[Value], lanes: int = 1) -> list[Value]:
        """The outputs, in compute types.   inputs: in compute types; scalars are spread where they meet vectors of `lanes`."""
        values = list(inputs)
        for step in self.steps:
            values.append(emit_step(k, step, [values[a] for a in step.args]))
        return [k.splat(values[o], lanes) for o in self.outputs]


def emit_step(k: Builder, step: Step, args: Sequence[Value]) -> Value:
    """One operator on registers; on scalars where all arguments are scalars."""
    kind = compute_dtype(step.dtype)
    match step.op:
        case Number(value=value):
            return k.const(value, kind)
        case Elementwise() as op:
            lanes = max(a.lanes for a in args)
            return k.convert(op.compute(k, *(k.splat(a, lanes) for a in args)), kind)
        case _:
            raise AssertionError(f"{step.op.name} is not an elementwise step: this is our bug")


def compute_dtype(dtype: DType) -> DType:
    """The type of a value in a register."""
    return f32 if dtype in (f16, bf16) else dtype


def load(k: Builder, pointer: Value, offset: Value | int, lanes: int = 1, mask: Value | None = None) -> Value:
    """Elements in their compute type, from a pointer to their memory type."""
    return widen(k, k.load(pointer, offset, lanes, mask))


def widen(k: Builder, value: Value) -> Value:
    """The value in its compute type."""
    return k.convert(value, compute_dtype(value.dtype))


def store(k: Builder, value: Value, pointer: Value, offset: Value | int, mask: Value | None = None) -> None:
    """Writes a value of the compute type as the pointer's memory type."""
    k.store(k.convert(value, pointer.type.dtype), pointer, offset, mask)


def lanes_of(dtypes: Sequence[DType], target: Target) -> int:
    """Lanes of the vectors on which values of all these types are computed: the widest fills a register, 64-bit ones two."""
    widths = [compute_dtype(d).bits for d in dtypes] or [32]
    widest = max(widths)
    if widest == 64 and any(w != 64 for w in widths):
        widest = 32  # mixed with narrower ones two registers for the wide are better than half empty ones
    return max(1, target.vector_bits // widest)


def masks_are_cheap(dtypes: Sequence[DType], target: Target) -> bool:
    """The machine loads and stores these types under a mask: AVX does for 32 and 64 bits."""
    return target.vector_bits >= 256 and all(d.bits in (32, 64) for d in dtypes)


_COSTS = {
    "exp": 14, "expm1": 18, "log": 16, "log1p": 20, "sqrt": 4, "rsqrt": 8, "div": 4, "reciprocal": 4, "sin": 24, "cos": 24, "tan": 32,
    "asin": 20, "acos": 20, "atan": 20, "sinh": 24, "cosh": 24, "asinh": 30, "acosh": 30, "atanh": 30, "tanh": 18, "sigmoid": 18, "erf": 20,
    "pow": 40, "mod": 20, "gelu": 26, "silu": 20, "elu": 18, "selu": 18, "celu": 18, "softplus": 36, "mish": 50, "softsign": 5,
    "position": 1, "number": 0,
}  # fmt: skip


def step_cost(step: Step) -> float:
    """Work of one step, in units of a simple instruction."""
    return _COSTS.get(step.op.name, 1) * (2.5 if step.dtype.bits == 64 and step.dtype.is_float else 1)


def number_of(value: float | int | bool) -> Number:
    """The constant step of a Python number."""
    return Number(repr(value) if not (isinstance(value, float) and math.isnan(value)) else "nan", value)
