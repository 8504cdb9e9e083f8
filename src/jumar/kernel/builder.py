"""Builder: writes a kernel by running Python, statement by statement.

In: a schedule (operators) that calls these methods.  Out: `Kernel`, for `kernel.llvm`.

    k = Builder("scale")
    x, y = k.pointer("x", f32), k.pointer("y", f32)
    n = k.integer("n")
    with k.loop(0, n - 7, 8) as i:
        k.store(k.load(x, i, lanes=8) * 2.0, y, i)
    kernel = k.finish()

A `Value` takes the operators of Python.  Numbers become constants of the other operand's type; a scalar next to a vector
is spread over its lanes; two different element types are an error, since a conversion should be seen (`k.convert`).
f16 and bf16 are for memory: convert to f32 to compute.  bool is one byte (0 or 1) in memory and one bit in registers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from jumar.base import DType, KernelError, Loc, bf16, bool_, f16, f32, f64, i8, i32, i64, u8, u16, u32, u64
from jumar.kernel.ir import (
    INDEX,
    Attribute,
    Branch,
    Call,
    Const,
    Declare,
    Do,
    Kernel,
    Let,
    Loop,
    Name,
    Number,
    Operand,
    Param,
    Stmt,
    Store,
    Type,
)
from jumar.kernel.value import Value, Variable


class Builder:
    """Records one kernel.   entry `args` (a step of a Program) or `plain` (a micro-kernel called through a pointer)."""

    def __init__(self, name: str, *, entry: str = "args", loc: Loc | None = None) -> None:
        if entry not in ("args", "plain"):
            raise KernelError(f"kernel {name}: entry must be 'args' or 'plain', got {entry!r}", code="kernel-entry")
        self.name = name
        self.entry = entry
        self.loc = loc
        self._count = 0
        self._params: list[Param] = []
        self._blocks: list[list[Stmt]] = [[]]
        self._chunk = self._name(INDEX, "chunk") if entry == "args" else None
        self._tid = self._name(INDEX, "tid") if entry == "args" else None

    # ------------------------------------------------------------------ recording
    def _name(self, type: Type, label: str = "") -> Name:
        self._count += 1
        return Name(self._count, type, label)

    def emit(self, stmt: Stmt) -> None:
        """Adds a statement to the block that is open."""
        self._blocks[-1].append(stmt)

    def let(self, type: Type, op: str, args: tuple[Operand, ...], attrs: tuple[Attribute, ...] = ()) -> Value:
        """The result of `op`; the methods below check and name what can be written with it."""
        self._count += 1
        result = Name(self._count, type)
        self._blocks[-1].append(Let(result, op, args, attrs))
        return Value(self, result)

    def finish(self) -> Kernel:
        """The kernel."""
        if len(self._blocks) != 1:
            raise KernelError(f"kernel {self.name}: every loop must be closed before finish", code="kernel-open")
        return Kernel(self.name, tuple(self._params), tuple(self._blocks[0]), self.entry, self._chunk, self._tid, self.loc)

    # ------------------------------------------------------------------ parameters
    def _param(self, label: str, type: Type, kind: str, entry: str, nbytes: int = 0) -> Value:
        if entry != self.entry:
            wanted = "k.pointer, k.integer" if self.entry == "args" else "k.argument_pointer, k.argument_integer"
            raise KernelError(f"kernel {self.name}: parameters of entry {self.entry!r} must come from {wanted}", code="kernel-entry")
        if any(p.name.label == label for p in self._params) or label in ("chunk", "tid"):
            raise KernelError(f"kernel {self.name}: parameter names must differ, got {label!r} twice", code="kernel-parameter")
        name = self._name(type, label)
        self._params.append(Param(name, kind, nbytes))
        return Value(self, name)

    def pointer(self, name: str, dtype: DType) -> Value:
        """The next word of `args`: a pointer to elements of `dtype`."""
        return self._param(name, Type(dtype, pointer=True), "pointer", "args")

    def integer(self, name: str) -> Value:
        """The next word of `args`: an i64."""
        return self._param(name, INDEX, "integer", "args")

    def number(self, name: str, dtype: DType) -> Value:
        """The next word of `args`: a scalar of `dtype` in its low bytes."""
        return self._param(name, Type(dtype), "number", "args")

    def function_pointer(self, name: str) -> Value:
        """The next word of `args`: the address of a kernel with entry `plain`."""
        return self._param(name, Type(u64, pointer=True), "function", "args")

    def thread_scratch(self, name: str, nbytes: int, dtype: DType = f32) -> Value:
        """Pointer to `nbytes` of 64-byte-aligned memory that only this thread uses while the kernel runs (one `Ref("scratch", offset)`)."""
        return self._param(name, Type(dtype, pointer=True), "scratch", "args", nbytes)

    def fault_word(self) -> tuple[Value, Value]:
        """Two words that the assembler fills: a pointer to the run's fault word, and the number that names this step when stored there."""
        return self._param("fault", Type(i64, pointer=True), "fault", "args"), self._param("fault_step", INDEX, "step", "args")

    def argument_pointer(self, name: str, dtype: DType) -> Value:
        """The next argument of a `plain` kernel: a pointer."""
        return self._param(name, Type(dtype, pointer=True), "pointer", "plain")

    def argument_integer(self, name: str) -> Value:
        """The next argument of a `plain` kernel: an i64."""
        return self._param(name, INDEX, "integer", "plain")

    def argument_number(self, name: str, dtype: DType, lanes: int = 1) -> Value:
        """The next argument of a `plain` kernel: a scalar or vector, in a register."""
        return self._param(name, Type(dtype, lanes), "number", "plain")

    @property
    def chunk(self) -> Value:
        """Which chunk of the step this call is to do: 0 .. chunks - 1."""
        return self._entry_value(self._chunk)

    @property
    def tid(self) -> Value:
        """Which thread this is: 0 .. threads - 1."""
        return self._entry_value(self._tid)

    def _entry_value(self, name: Name | None) -> Value:
        if name is None:
            raise KernelError(f"kernel {self.name}: chunk and tid must be read in entry 'args', got entry 'plain'", code="kernel-entry")
        return Value(self, name)

    # ------------------------------------------------------------------ constants and shapes of values
    def const(self, value: Number, dtype: DType, lanes: int = 1) -> Value:
        """A number.   Integers wrap to their width, f32 keeps the nearest single."""
        return Value(self, Const(_fit(value, dtype), Type(dtype, lanes)))

    def index(self, value: Value | Number) -> Value:
        """An i64: the value itself, or a number as one."""
        return value if isinstance(value, Value) else Value(self, Const(int(value), INDEX))

    def splat(self, value: Value | Number, lanes: int, dtype: DType | None = None) -> Value:
        """The scalar in every lane."""
        if not isinstance(value, Value):
            return self.const(value, dtype or (f32 if isinstance(value, float) else i64), lanes)
        if value.lanes == lanes:
            return value
        if value.lanes != 1:
            raise KernelError(f"kernel {self.name}: splat must be of a scalar, got {value.type}", code="kernel-operand")
        if isinstance(value.operand, Const):
            return Value(self, Const(value.operand.value, Type(value.dtype, lanes)))
        return self.let(Type(value.dtype, lanes), "splat", (value.operand,))

    def value_like(self, value: Value | Number, type: Type) -> Value:
        """The value as one of `type`: a number becomes a constant, a scalar is spread over the lanes."""
        if not isinstance(value, Value):
            return self.const(value, type.dtype, type.lanes)
        if value.type == type:
            return value
        if value.type.dtype is type.dtype and value.lanes == 1 and not type.pointer and not value.type.pointer:
            return self.splat(value, type.lanes)
        raise KernelError(
            f"kernel {self.name}: operands must have one element type, got {value.type} where {type} is wanted",
            hint="convert one of them: k.convert(value, dtype)",
            code="kernel-operand",
        )

    def _pair(self, a: Value | Number, b: Value | Number) -> tuple[Value, Value]:
        if isinstance(a, Value):
            if isinstance(b, Value):
                if a.type == b.type:
                    return a, b
                if a.type.lanes < b.type.lanes:
                    return self.value_like(a, b.type), b
            return a, self.value_like(b, a.type)
        if isinstance(b, Value):
            return self.value_like(a, b.type), b
        raise KernelError(f"kernel {self.name}: an operand must be a value of the kernel, got {a!r} and {b!r}", code="kernel-operand")

    def iota(self, lanes: int, dtype: DType = i32) -> Value:
        """0, 1, 2 ... in the lanes."""
        numbers = tuple(_fit(lane, dtype) for lane in range(lanes))
        return Value(self, Const(numbers, Type(dtype, lanes)))

    def lane_mask(self, count: Value | Number, lanes: int) -> Value:
        """bool vector: lane < count.   For the masks of tails; `count` is an i64 and may be negative or larger than lanes."""
        count = self.index(count)
        if (known := count.constant) is not None:
            return Value(self, Const(tuple(lane < known for lane in range(lanes)), Type(bool_, lanes)))
        limited = self.maximum(self.minimum(count, lanes), 0)  # so that 32 bits hold it
        return self.compare("lt", self.iota(lanes, i32), self.convert(limited, i32))

    # ------------------------------------------------------------------ arithmetic
    def binary(self, op: str, a: Value | Number, b: Value | Number) -> Value:
        """`op` of two values of one type, elementwise; integer constants are folded."""
        a, b = self._pair(a, b)
        type = a.type
        if type.dtype is f16 or type.dtype is bf16 or type.pointer:
            self._refuse(op, type)
        x, y = a.operand, b.operand
        if isinstance(y, Const) and isinstance(y.value, int) and type.dtype.kind in "iu":
            if isinstance(x, Const) and isinstance(x.value, int) and op in _FOLD:
                return Value(self, Const(_fit(_FOLD[op](x.value, y.value), type.dtype), type))
            if (op, y.value) in _NEUTRAL_RIGHT:
                return a
            if y.value == 0 and op in ("mul", "and"):
                return b
        elif isinstance(x, Const) and isinstance(x.value, int) and type.dtype.kind in "iu":
            if (op, x.value) in _NEUTRAL_LEFT:
                return b
            if x.value == 0 and op in ("mul", "and"):
                return a
        return self.let(type, op, (x, y))

    def _refuse(self, op: str, type: Type) -> None:
        if type.pointer:
            raise KernelError(
                f"kernel {self.name}: {op} must be of numbers, got {type}", hint="k.offset moves a pointer", code="kernel-operand"
            )
        raise KernelError(
            f"kernel {self.name}: {op} must be in f32 or f64, got {type}", hint="k.convert(value, f32)", code="kernel-operand"
        )

    def add(self, a: Value | Number, b: Value | Number) -> Value:
        """a + b"""
        return self.binary("add", a, b)

    def subtract(self, a: Value | Number, b: Value | Number) -> Value:
        """a - b"""
        return self.binary("sub", a, b)

    def multiply(self, a: Value | Number, b: Value | Number) -> Value:
        """a * b"""
        return self.binary("mul", a, b)

    def divide(self, a: Value | Number, b: Value | Number) -> Value:
        """a / b; integers truncate, and x / 0 is 0: the machine's division would trap on it, and on the smallest / -1."""
        return self._divided("div", a, b)

    def remainder(self, a: Value | Number, b: Value | Number) -> Value:
        """What `divide` leaves, with the sign of a (C's %, NumPy's fmod); 0 for a divisor of 0."""
        return self._divided("rem", a, b)

    def _divided(self, op: str, a: Value | Number, b: Value | Number) -> Value:
        a, b = self._pair(a, b)
        known = b.constant
        if not a.dtype.is_integer or (known is not None and known not in (0, -1)):
            return self.binary(op, a, b)
        zero = b == 0
        if a.dtype.kind == "u":
            return self.select(zero, 0, self.binary(op, a, self.select(zero, 1, b)))
        minus = b == -1
        plain = self.binary(op, a, self.select(zero | minus, 1, b))
        return self.select(zero, 0, self.select(minus, 0 - a if op == "div" else 0, plain))

    def floor_divide(self, a: Value | Number, b: Value | Number) -> Value:
        """a // b rounded down, as NumPy's."""
        a, b = self._pair(a, b)
        if a.dtype.is_float:
            return self.floor(self.divide(a, b))
        q = self.divide(a, b)
        if a.dtype.kind == "u":
            return q
        r = self.remainder(a, b)
        return self.select((r != 0) & ((r ^ b) < 0), q - 1, q)

    def floor_remainder(self, a: Value | Number, b: Value | Number) -> Value:
        """a % b with the sign of b, as NumPy's."""
        a, b = self._pair(a, b)
        r = self.remainder(a, b)
        if a.dtype.kind == "u":
            return r
        if a.dtype.is_float:
            fixed = self.select((r != 0.0) & ((r < 0.0) ^ (b < 0.0)), r + b, r)
            return self.select(r == 0.0, self.copy_sign(r, b), fixed)
        return self.select((r != 0) & ((r ^ b) < 0), r + b, r)

    def negate(self, a: Value) -> Value:
        """-a"""
        return self.let(a.type, "neg", (a.operand,)) if a.dtype.is_float else self.binary("sub", 0, a)

    def fma(self, a: Value | Number, b: Value | Number, c: Value | Number) -> Value:
        """a * b + c, rounded once where the machine has it."""
        first = max((v for v in (a, b, c) if isinstance(v, Value)), key=lambda v: v.type.lanes)
        x, y, z = (self.value_like(v, first.type).operand for v in (a, b, c))
        if not first.dtype.is_float:
            return self.add(self.multiply(a, b), c)
        return self.let(first.type, "fma", (x, y, z))

    def dot4(self, total: Value, a: Value, b: Value, *, narrow: bool = False) -> Value:
        """total[i] + the sum over j < 4 of a[4 i + j] * b[4 i + j], exactly.   total: i32; a: u8 or i8, b: i8, of four times the lanes.

        narrow: the caller knows that two neighbouring products always fit 16 bits together, which machines without such an
        instruction use.
        """
        if total.dtype is not i32 or b.dtype is not i8 or a.dtype not in (u8, i8) or {a.lanes, b.lanes} != {4 * total.lanes}:
            raise KernelError(
                f"kernel {self.name}: dot4 must be of i32, bytes and i8, got {total.type}, {a.type}, {b.type}", code="kernel-operand"
            )
        return self.let(total.type, "dot4", (total.operand, a.operand, b.operand), (narrow,))

    def lookup(self, value: Value, table: Sequence[int], dtype: DType) -> Value:
        """table[value] for each lane of 8-bit codes: 256 bytes in the order of the codes' bits, as `dtype` of 8 bits."""
        if value.dtype not in (u8, i8) or dtype not in (u8, i8) or len(table) != 256:
            raise KernelError(
                f"kernel {self.name}: lookup must be of bytes in 256 bytes, got {value.type} in {len(table)}", code="kernel-operand"
            )
        return self.let(Type(dtype, value.lanes), "lookup", (value.operand,), (tuple(int(t) & 255 for t in table),))

    def minimum(self, a: Value | Number, b: Value | Number) -> Value:
        """The smaller; NaN if either is, as NumPy's."""
        return self.binary("min", a, b)

    def maximum(self, a: Value | Number, b: Value | Number) -> Value:
        """The larger; NaN if either is, as NumPy's."""
        return self.binary("max", a, b)

    def fmin(self, a: Value | Number, b: Value | Number) -> Value:
        """The smaller, in one instruction; where one is NaN the result is either of them."""
        return self.binary("fmin", a, b)

    def fmax(self, a: Value | Number, b: Value | Number) -> Value:
        """The larger, in one instruction; where one is NaN the result is either of them."""
        return self.binary("fmax", a, b)

    def clamp(self, a: Value, lo: Value | Number, hi: Value | Number) -> Value:
        """a limited to lo .. hi; NaN stays NaN."""
        return self.minimum(self.maximum(a, lo), hi)

    def unary(self, op: str, a: Value) -> Value:
        """One of sqrt, abs, floor, ceil, rint, trunc."""
        if a.dtype is f16 or a.dtype is bf16:
            self._refuse(op, a.type)
        return self.let(a.type, op, (a.operand,))

    def sqrt(self, a: Value) -> Value:
        """Square root, correctly rounded."""
        return self.unary("sqrt", a)

    def abs(self, a: Value) -> Value:
        """Absolute value."""
        return a if a.dtype.kind in "ub" else self.unary("abs", a)

    def floor(self, a: Value) -> Value:
        """Rounded down."""
        return self.unary("floor", a) if a.dtype.is_float else a

    def ceil(self, a: Value) -> Value:
        """Rounded up."""
        return self.unary("ceil", a) if a.dtype.is_float else a

    def round_even(self, a: Value) -> Value:
        """Rounded to the nearest integer, halves to the even one."""
        return self.unary("rint", a) if a.dtype.is_float else a

    def trunc(self, a: Value) -> Value:
        """Rounded toward zero."""
        return self.unary("trunc", a) if a.dtype.is_float else a

    def copy_sign(self, magnitude: Value, sign: Value | Number) -> Value:
        """|magnitude| with the sign of `sign`."""
        return self.let(magnitude.type, "copysign", (magnitude.operand, self.value_like(sign, magnitude.type).operand))

    # ------------------------------------------------------------------ comparison and choice
    def compare(self, op: str, a: Value | Number, b: Value | Number) -> Value:
        """bool: eq, ne, lt, le, gt or ge; with NaN everything is false but ne."""
        a, b = self._pair(a, b)
        if a.dtype is f16 or a.dtype is bf16:
            self._refuse(op, a.type)
        return self.let(Type(bool_, a.lanes), op, (a.operand, b.operand))

    def equal(self, a: Value | Number, b: Value | Number) -> Value:
        """a == b"""
        return self.compare("eq", a, b)

    def not_equal(self, a: Value | Number, b: Value | Number) -> Value:
        """a != b"""
        return self.compare("ne", a, b)

    def less(self, a: Value | Number, b: Value | Number) -> Value:
        """a < b"""
        return self.compare("lt", a, b)

    def less_equal(self, a: Value | Number, b: Value | Number) -> Value:
        """a <= b"""
        return self.compare("le", a, b)

    def greater(self, a: Value | Number, b: Value | Number) -> Value:
        """a > b"""
        return self.compare("gt", a, b)

    def greater_equal(self, a: Value | Number, b: Value | Number) -> Value:
        """a >= b"""
        return self.compare("ge", a, b)

    def is_nan(self, a: Value) -> Value:
        """bool: a is NaN."""
        return self.compare("ne", a, a) if a.dtype.is_float else self.const(False, bool_, a.lanes)

    def logical_and(self, a: Value | Number, b: Value | Number) -> Value:
        """Both, as bools."""
        return self.binary("and", self._truth(a), self._truth(b))

    def logical_or(self, a: Value | Number, b: Value | Number) -> Value:
        """Either, as bools."""
        return self.binary("or", self._truth(a), self._truth(b))

    def logical_xor(self, a: Value | Number, b: Value | Number) -> Value:
        """Exactly one, as bools."""
        return self.binary("xor", self._truth(a), self._truth(b))

    def logical_not(self, a: Value) -> Value:
        """Not a, as a bool."""
        return self.binary("xor", self._truth(a), True)

    def _truth(self, a: Value | Number) -> Value | Number:
        return self.convert(a, bool_) if isinstance(a, Value) else bool(a)

    def select(self, cond: Value | Number, a: Value | Number, b: Value | Number) -> Value:
        """a where cond, else b.   cond: bool, scalar or with the lanes of a and b."""
        if not isinstance(cond, Value):
            cond = self.const(bool(cond), bool_)
        if not isinstance(a, Value) and not isinstance(b, Value):
            dtype = f32 if isinstance(a, float) or isinstance(b, float) else i64
            a = self.const(a, dtype, cond.lanes)
        a, b = self._pair(a, b)
        if cond.lanes > a.lanes:
            a, b = self.splat(a, cond.lanes), self.splat(b, cond.lanes)
        if a.operand == b.operand:
            return a
        return self.let(a.type, "select", (cond.operand, a.operand, b.operand))

    # ------------------------------------------------------------------ conversion
    def convert(self, value: Value, dtype: DType) -> Value:
        """The number as `dtype`: to integers it truncates (C), to narrower floats it rounds to even, to bool it is != 0."""
        source = value.dtype
        if source is dtype:
            return value
        if dtype is bool_:
            if source is f16 or source is bf16:
                value = self.convert(value, f32)
            return self.compare("ne", value, 0)
        if source is bf16:
            wide = self.convert(self.bitcast(value, u16), u32) << 16
            return self.convert(self.bitcast(wide, f32), dtype)
        if dtype is bf16:
            return self._to_bf16(self._to_single(value))
        if source is f16 and dtype is not f32:
            return self.convert(self._cast(value, f32), dtype)
        if dtype is f16:
            return self._cast(self._to_single(value), f16)
        if source.is_float and dtype.is_integer and dtype is not u64:
            # out of range C gives what the machine gives; narrow results are the low bits, as NumPy's are
            middle = i32 if dtype.bits < 32 or dtype is i32 else i64
            return self._cast(self._cast(value, middle), dtype)
        return self._cast(value, dtype)

    def _cast(self, value: Value, dtype: DType) -> Value:
        if value.dtype is dtype:
            return value
        known = value.constant
        if known is not None and not value.dtype.is_float and dtype.is_integer:
            return self.const(known, dtype, value.lanes)
        return self.let(Type(dtype, value.lanes), "convert", (value.operand,))

    def _to_single(self, value: Value) -> Value:
        """f32, from which a second rounding (to 16 bits) is right: doubles are rounded to odd."""
        if value.dtype is not f64:
            return self.convert(value, f32)
        single = self._cast(value, f32)
        back = self._cast(single, f64)
        bits = self.bitcast(single, u32)
        above = self.abs(back) > self.abs(value)
        odd = self.select(above, bits - 1, bits) | 1
        inexact = (back != value) & ~self.is_nan(back) & (self.abs(back) != float("inf"))
        return self.bitcast(self.select(inexact, odd, bits), f32)

    def _to_bf16(self, single: Value) -> Value:
        bits = self.bitcast(single, u32)
        rounded = (bits + 0x7FFF + ((bits >> 16) & 1)) >> 16
        quiet = (bits >> 16) | 0x40
        half = self.select(self.is_nan(single), quiet, rounded)
        return self.bitcast(self.convert(half, u16), bf16)

    def bitcast(self, value: Value, dtype: DType) -> Value:
        """The same bits read as `dtype`; the number of lanes follows."""
        if value.dtype is dtype:
            return value
        total = value.lanes * value.dtype.bits
        if total % dtype.bits:
            raise KernelError(f"kernel {self.name}: bitcast must keep the bits, got {value.type} to {dtype}", code="kernel-operand")
        return self.let(Type(dtype, total // dtype.bits), "bitcast", (value.operand,))

    # ------------------------------------------------------------------ lanes
    def reduce(self, value: Value, how: str) -> Value:
        """One scalar from all lanes.   how: add, mul, max, min (NaN stays), and, or, xor; pairwise, so order is fixed."""
        if how not in ("add", "mul", "max", "min", "and", "or", "xor"):
            raise KernelError(f"kernel {self.name}: reduce must be add, mul, max, min, and, or, xor, got {how!r}", code="kernel-operand")
        while value.lanes > 1:
            half = value.lanes // 2
            if half * 2 != value.lanes:
                raise KernelError(f"kernel {self.name}: lanes must be a power of two, got {value.lanes}", code="kernel-lanes")
            low = self.shuffle(value, value, range(half))
            high = self.shuffle(value, value, range(half, 2 * half))
            value = self.binary(how, low, high)
        return value

    def shuffle(self, a: Value, b: Value, indices: Sequence[int]) -> Value:
        """A vector of the lanes named by `indices`: 0 .. lanes-1 are a's, lanes .. 2*lanes-1 are b's; one index gives a scalar."""
        if len(indices) == 1:
            which, lane = divmod(indices[0], a.lanes)
            return self.extract(b if which else a, lane)
        return self.let(Type(a.dtype, len(indices)), "shuffle", (a.operand, b.operand), (tuple(indices),))

    def extract(self, value: Value, lane: int) -> Value:
        """The scalar in one lane."""
        if value.lanes == 1:
            return value
        return self.let(Type(value.dtype), "extract", (value.operand,), (lane,))

    def insert(self, value: Value, scalar: Value | Number, lane: int) -> Value:
        """The vector with one lane replaced."""
        item = self.value_like(scalar, Type(value.dtype))
        return self.let(value.type, "insert", (value.operand, item.operand), (lane,))

    def concat(self, a: Value, b: Value) -> Value:
        """a's lanes, then b's."""
        if a.lanes == 1:
            return self.insert(self.splat(a, 2), b, 1)
        return self.shuffle(a, b, range(2 * a.lanes))

    # ------------------------------------------------------------------ memory
    def _pointer(self, pointer: Value) -> Value:
        if not pointer.type.pointer:
            raise KernelError(f"kernel {self.name}: a pointer is wanted, got {pointer.type}", code="kernel-operand")
        return pointer

    def offset(self, pointer: Value, elements: Value | Number) -> Value:
        """The pointer moved by so many elements."""
        elements = self.index(elements)
        if elements.constant == 0:
            return self._pointer(pointer)
        return self.let(self._pointer(pointer).type, "offset", (pointer.operand, elements.operand))

    def cast_pointer(self, pointer: Value, dtype: DType) -> Value:
        """The same address as a pointer to `dtype`."""
        if pointer.type == Type(dtype, pointer=True):
            return pointer
        return self.let(Type(dtype, pointer=True), "cast_pointer", (self._pointer(pointer).operand,))

    def load_pointer(self, pointer: Value, offset: Value | Number, dtype: DType) -> Value:
        """A pointer (to `dtype`) that lies in memory at `pointer + offset` 8-byte words."""
        return self.let(Type(dtype, pointer=True), "load_pointer", (self._pointer(pointer).operand, self.index(offset).operand))

    def store_pointer(self, value: Value, pointer: Value, offset: Value | Number = 0) -> None:
        """Writes the pointer `value` at `pointer + offset` 8-byte words, for `load_pointer` to find."""
        self.emit(Do("store_pointer", (self._pointer(value).operand, self._pointer(pointer).operand, self.index(offset).operand)))

    def load(self, pointer: Value, offset: Value | Number = 0, lanes: int = 1, mask: Value | None = None, aligned: bool = False) -> Value:
        """`lanes` elements at `pointer + offset`; masked-off lanes are not touched and read 0.   aligned: to the vector's size."""
        type = Type(self._pointer(pointer).dtype, lanes)
        align = min(64, type.dtype.nbytes * lanes) if aligned else type.dtype.nbytes
        args = (pointer.operand, self.index(offset).operand)
        if mask is None:
            return self.let(type, "load", args, (align,))
        return self.let(type, "load_masked", (*args, self.value_like(mask, Type(bool_, lanes)).operand), (align,))

    def store(
        self,
        value: Value | Number,
        pointer: Value,
        offset: Value | Number = 0,
        mask: Value | None = None,
        aligned: bool = False,
        nontemporal: bool = False,
    ) -> None:
        """Writes the value at `pointer + offset` elements.   nontemporal (past the caches) means aligned, too."""
        dtype = self._pointer(pointer).dtype
        if not isinstance(value, Value):
            value = self.const(value, dtype, mask.lanes if mask is not None else 1)
        if value.dtype is not dtype:
            raise KernelError(
                f"kernel {self.name}: store must be of {dtype}, got {value.type}", hint=f"k.convert(value, {dtype})", code="kernel-operand"
            )
        align = min(64, dtype.nbytes * value.lanes) if aligned or nontemporal else dtype.nbytes
        lanes_on = None if mask is None else self.value_like(mask, Type(bool_, value.lanes)).operand
        self.emit(Store(value.operand, pointer.operand, self.index(offset).operand, lanes_on, align, nontemporal))

    def gather(self, pointer: Value, offsets: Value, mask: Value | None = None) -> Value:
        """One element per lane, at `pointer + offsets[lane]`.   offsets: i32 or i64; masked-off lanes read 0."""
        args: tuple[Operand, ...] = (self._pointer(pointer).operand, offsets.operand)
        if mask is not None:
            args = (*args, self.value_like(mask, Type(bool_, offsets.lanes)).operand)
        return self.let(Type(pointer.dtype, offsets.lanes), "gather", args)

    def scatter(self, value: Value, pointer: Value, offsets: Value) -> None:
        """Writes lane by lane, in order, at `pointer + offsets[lane]`."""
        self.emit(Do("scatter", (value.operand, self._pointer(pointer).operand, offsets.operand)))

    def prefetch(self, pointer: Value, offset: Value | Number = 0, write: bool = False, locality: int = 3) -> None:
        """Asks for the cache line at `pointer + offset`; any address is allowed.   locality: 0 once .. 3 keep in L1."""
        self.emit(Do("prefetch", (self._pointer(pointer).operand, self.index(offset).operand), (int(write), locality)))

    def array(self, dtype: DType, count: int) -> Value:
        """Pointer to `count` elements on the stack, 64-byte aligned, for small tiles."""
        name = self._name(Type(dtype, pointer=True))
        self.emit(Declare(name, None, count))
        return Value(self, name)

    def var(self, init: Value | Number, dtype: DType | None = None, lanes: int = 1) -> Variable:
        """A mutable local with this first value."""
        if not isinstance(init, Value):
            init = self.const(init, dtype or (f32 if isinstance(init, float) else i64), lanes)
        elif lanes > 1:
            init = self.splat(init, lanes)
        name = self._name(init.type)
        self.emit(Declare(name, init.operand))
        return Variable(self, name)

    # ------------------------------------------------------------------ control
    @contextmanager
    def loop(self, lo: Value | Number, hi: Value | Number, step: Value | Number = 1) -> Iterator[Value]:
        """Runs the block for index lo, lo + step ... while index < hi; yields the index (i64)."""
        index = self._name(INDEX)
        bounds = [self.index(v).operand for v in (lo, hi, step)]
        self._blocks.append([])
        yield Value(self, index)
        body = tuple(self._blocks.pop())
        self.emit(Loop(index, bounds[0], bounds[1], bounds[2], body))

    @contextmanager
    def when(self, cond: Value) -> Iterator[None]:
        """Runs the block where the scalar condition holds."""
        if cond.type != Type(bool_):
            raise KernelError(f"kernel {self.name}: a condition must be a scalar bool, got {cond.type}", code="kernel-condition")
        self._blocks.append([])
        yield
        then = tuple(self._blocks.pop())
        self.emit(Branch(cond.operand, then))

    @contextmanager
    def otherwise(self) -> Iterator[None]:
        """The else of the `when` that closed just before."""
        last = self._blocks[-1][-1] if self._blocks[-1] else None
        if not isinstance(last, Branch) or last.other:
            raise KernelError(f"kernel {self.name}: otherwise must follow a `when`", code="kernel-condition")
        self._blocks.append([])
        yield
        other = tuple(self._blocks.pop())
        self._blocks[-1][-1] = Branch(last.cond, last.then, other)

    def call(self, function: Value, *args: Value | Number) -> None:
        """Calls a `plain` kernel by its address; numbers are passed as i64 or f32."""
        values = [a if isinstance(a, Value) else self.const(a, f32) if isinstance(a, float) else self.index(a) for a in args]
        self.emit(Call(function.operand, tuple(v.operand for v in values)))

    def call_libm(self, function: str, *args: Value) -> Value:
        """A function of the C library's math, lane by lane: `k.call_libm("erf", x)`; f32 uses its f-suffixed one."""
        if args[0].dtype not in (f32, f64):
            self._refuse(function, args[0].type)
        return self.let(args[0].type, "libm", tuple(self.value_like(a, args[0].type).operand for a in args), (function,))


def _fit(value: Number, dtype: DType) -> Number:
    """The number as `dtype` holds it: integers wrap, so that equal constants print equal."""
    if dtype.kind == "b":
        return bool(value)
    if dtype.is_float:
        return float(value)
    wrapped = int(value) & ((1 << dtype.bits) - 1)
    return wrapped - (1 << dtype.bits) if dtype.kind == "i" and wrapped >> (dtype.bits - 1) else wrapped


_FOLD: dict[str, Callable[[int, int], int]] = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "div": lambda a, b: abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1),
    "rem": lambda a, b: abs(a) % abs(b) * (-1 if a < 0 else 1),
    "and": lambda a, b: a & b,
    "or": lambda a, b: a | b,
    "xor": lambda a, b: a ^ b,
    "min": min,
    "max": max,
}
_NEUTRAL_RIGHT = {("add", 0), ("sub", 0), ("mul", 1), ("div", 1), ("shl", 0), ("shr", 0), ("or", 0), ("xor", 0)}
_NEUTRAL_LEFT = {("add", 0), ("mul", 1), ("or", 0), ("xor", 0)}
