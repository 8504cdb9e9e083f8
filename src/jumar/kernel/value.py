"""The handles that a schedule holds while it writes a kernel: values, with Python's operators, and variables.

In: results of `Builder`'s methods.  Out: calls of those methods, one for each operator.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from jumar.base import DType, KernelError, bool_
from jumar.kernel.ir import Assign, Const, Name, Number, Operand

if TYPE_CHECKING:  # each value knows the builder that records it
    from jumar.kernel.builder import Builder


class Value:
    """A value of the kernel that is being built.   Overloads + - * / // % & | ^ << >> ~ and comparisons, elementwise.

    On integers `/`, `//` and `%` truncate as in C, and give 0 for a divisor of 0 (see `Builder.floor_divide` for NumPy's).
    """

    __slots__ = ("builder", "operand", "type")
    __hash__ = object.__hash__

    def __init__(self, builder: Builder, operand: Operand) -> None:
        self.builder = builder
        self.operand = operand
        self.type = operand.type

    @property
    def dtype(self) -> DType:
        return self.type.dtype

    @property
    def lanes(self) -> int:
        return self.type.lanes

    @property
    def constant(self) -> Number | None:
        """The number that this is, where it is known while building."""
        operand = self.operand
        return operand.value if isinstance(operand, Const) and not isinstance(operand.value, tuple) else None

    def __repr__(self) -> str:
        return f"{self.operand}: {self.type}"

    def __bool__(self) -> bool:
        raise KernelError("kernel: a condition on a value must use k.when or k.select, got `if` or `and`", code="kernel-condition")

    def __add__(self, other: Value | Number) -> Value:
        return self.builder.add(self, other)

    def __radd__(self, other: Number) -> Value:
        return self.builder.add(other, self)

    def __sub__(self, other: Value | Number) -> Value:
        return self.builder.subtract(self, other)

    def __rsub__(self, other: Number) -> Value:
        return self.builder.subtract(other, self)

    def __mul__(self, other: Value | Number) -> Value:
        return self.builder.multiply(self, other)

    def __rmul__(self, other: Number) -> Value:
        return self.builder.multiply(other, self)

    def __truediv__(self, other: Value | Number) -> Value:
        return self.builder.divide(self, other)

    def __rtruediv__(self, other: Number) -> Value:
        return self.builder.divide(other, self)

    def __floordiv__(self, other: Value | Number) -> Value:
        return self.builder.divide(self, other)

    def __rfloordiv__(self, other: Number) -> Value:
        return self.builder.divide(other, self)

    def __mod__(self, other: Value | Number) -> Value:
        return self.builder.remainder(self, other)

    def __rmod__(self, other: Number) -> Value:
        return self.builder.remainder(other, self)

    def __and__(self, other: Value | Number) -> Value:
        return self.builder.binary("and", self, other)

    __rand__ = __and__

    def __or__(self, other: Value | Number) -> Value:
        return self.builder.binary("or", self, other)

    __ror__ = __or__

    def __xor__(self, other: Value | Number) -> Value:
        return self.builder.binary("xor", self, other)

    __rxor__ = __xor__

    def __lshift__(self, other: Value | Number) -> Value:
        return self.builder.binary("shl", self, other)

    def __rshift__(self, other: Value | Number) -> Value:
        return self.builder.binary("shr", self, other)

    def __invert__(self) -> Value:
        return self.builder.binary("xor", self, True if self.type.dtype is bool_ else -1)

    def __neg__(self) -> Value:
        return self.builder.negate(self)

    def __lt__(self, other: Value | Number) -> Value:
        return self.builder.compare("lt", self, other)

    def __le__(self, other: Value | Number) -> Value:
        return self.builder.compare("le", self, other)

    def __gt__(self, other: Value | Number) -> Value:
        return self.builder.compare("gt", self, other)

    def __ge__(self, other: Value | Number) -> Value:
        return self.builder.compare("ge", self, other)

    def __eq__(self, other: object) -> Value:  # type: ignore[override]
        return self.builder.compare("eq", self, _comparable(other))

    def __ne__(self, other: object) -> Value:  # type: ignore[override]
        return self.builder.compare("ne", self, _comparable(other))


def _comparable(other: object) -> Value | Number:
    if not isinstance(other, Value | int | float):
        raise KernelError(f"kernel: a value must be compared with a value or a number, got {other!r}", code="kernel-operand")
    return other


class Variable:
    """A mutable local: `v = k.var(0.0)`, `v.get()`, `v.set(x)`.   It lives in a register wherever it fits."""

    __slots__ = ("builder", "name")

    def __init__(self, builder: Builder, name: Name) -> None:
        self.builder = builder
        self.name = name

    def get(self) -> Value:
        return self.builder.let(self.name.type, "get", (self.name,))

    def set(self, value: Value | Number) -> None:
        self.builder.emit(Assign(self.name, self.builder.value_like(value, self.name.type).operand))
