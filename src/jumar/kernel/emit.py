"""Kernel to the text of LLVM IR.

In: a `Kernel` (builder.py) and the `Target` that it is for.  Out: one module with one function, which llvm.py compiles.
"""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Iterable, Sequence
from functools import cache, lru_cache
from math import isnan
from typing import Any

from jumar.base import DType, KernelError, bool_
from jumar.device import Target
from jumar.kernel.ir import (
    Assign,
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
    Stmt,
    Store,
    Type,
    statements,
)

_MEMORY = {
    "f64": "double", "f32": "float", "f16": "half", "bf16": "i16", "bool": "i8",
    **{f"{s}{b}": f"i{b}" for s in "iu" for b in (8, 16, 32, 64)},
}  # fmt: skip
_MANGLED = {"double": "f64", "float": "f32", "half": "f16"}
_FLOAT_OPS = {"add": "fadd", "sub": "fsub", "mul": "fmul", "div": "fdiv", "rem": "frem"}
_SIGNED_OPS = {
    "add": "add",
    "sub": "sub",
    "mul": "mul",
    "div": "sdiv",
    "rem": "srem",
    "and": "and",
    "or": "or",
    "xor": "xor",
    "shl": "shl",
    "shr": "ashr",
}
_UNSIGNED_OPS = _SIGNED_OPS | {"div": "udiv", "rem": "urem", "shr": "lshr"}
_FLOAT_TESTS = {"eq": "oeq", "ne": "une", "lt": "olt", "le": "ole", "gt": "ogt", "ge": "oge"}
_SIGNED_TESTS = {"eq": "eq", "ne": "ne", "lt": "slt", "le": "sle", "gt": "sgt", "ge": "sge"}
_UNSIGNED_TESTS = {"eq": "eq", "ne": "ne", "lt": "ult", "le": "ule", "gt": "ugt", "ge": "uge"}
_INTRINSICS = {"sqrt": "sqrt", "floor": "floor", "ceil": "ceil", "rint": "rint", "trunc": "trunc"}


@cache
def _is_number(operand: object) -> bool:
    """Whether it is a constant of one value that is no NaN."""
    return isinstance(operand, Const) and not isinstance(operand.value, tuple) and not isnan(operand.value)


def _text(type: Type) -> str:
    """LLVM's name of a register type; a bool is i1, a bf16 the i16 of its bits."""
    if type.pointer:
        return "ptr"
    scalar = "i1" if type.dtype is bool_ else _scalar(type.dtype)
    return scalar if type.lanes == 1 else f"<{type.lanes} x {scalar}>"


@cache
def _memory_text(type: Type) -> str:
    scalar = _scalar(type.dtype)
    return scalar if type.lanes == 1 else f"<{type.lanes} x {scalar}>"


def _scalar(dtype: DType) -> str:
    if dtype.name not in _MEMORY:
        raise KernelError(f"kernel: element type must be one that a CPU holds, got {dtype}", code="kernel-dtype")
    return _MEMORY[dtype.name]


@cache
def _suffix(text: str) -> str:
    """An intrinsic's type suffix: `<8 x float>` gives `v8f32`."""
    if text[0] == "<":
        lanes, _, scalar = text[1:-1].partition(" x ")
        return f"v{lanes}{_MANGLED.get(scalar, scalar)}"
    return _MANGLED.get(text, text)


def _constant(value: Number | tuple[Number, ...], type: Type) -> str:
    return _constant_text(repr(value), value, type)


@lru_cache(maxsize=4096)
def _constant_text(_name: str, value: Number | tuple[Number, ...], type: Type) -> str:  # by name, too: 0.0 == -0.0
    if isinstance(value, tuple):
        scalar = Type(type.dtype)
        return "<" + ", ".join(f"{_text(scalar)} {_constant(v, scalar)}" for v in value) + ">"
    if type.lanes > 1:
        scalar = Type(type.dtype)
        return "zeroinitializer" if value == 0 and str(value)[0] != "-" else f"splat ({_text(scalar)} {_constant(value, scalar)})"
    if type.dtype.name == "f32":
        single = ctypes.c_float(value).value if abs(value) < 3.5e38 or isnan(value) else float(value)
        return f"0x{struct.unpack('>Q', struct.pack('>d', single))[0]:016X}"
    if type.dtype.name == "f64":
        return f"0x{struct.unpack('>Q', struct.pack('>d', value))[0]:016X}"
    if type.dtype.name == "f16":
        return f"0xH{struct.unpack('>H', struct.pack('>e', value))[0]:04X}"
    if type.dtype.name == "bf16":
        bits = struct.unpack(">I", struct.pack(">f", value))[0]
        return str((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16)
    if type.dtype is bool_:
        return "true" if value else "false"
    return str(int(value))


class _Writer:
    """Writes the body of one kernel.   It is a class for its line buffer and counters only."""

    def __init__(self, kernel: Kernel, target: Target) -> None:
        self.kernel = kernel
        self.target = target
        self.arm = target.architecture == "aarch64"
        self.wide_gather = target.has("avx2") or target.has("avx512f")
        self.half = self.arm or target.has("f16c") or target.has("avx512f")
        self.fused = self.arm or target.has("fma")
        self.lines: list[str] = []
        self.entry: list[str] = []
        self.globals: list[str] = []
        self.count = 0
        self.block = "body"

    # -------------------------------------------------------------- helpers
    def put(self, text: str) -> None:
        self.lines.append("  " + text)

    def new(self, text: str) -> str:
        self.count += 1
        name = f"%t{self.count}"
        self.lines.append(f"  {name} = {text}")
        return name

    def ref(self, operand: Operand) -> str:
        return f"%v{operand.id}" if isinstance(operand, Name) else _constant(operand.value, operand.type)

    def typed(self, operand: Operand) -> str:
        return f"{_text(operand.type)} {self.ref(operand)}"

    def label(self, name: str) -> None:
        self.lines.append(f"{name}:")
        self.block = name

    # -------------------------------------------------------------- function
    def function(self) -> str:
        kernel = self.kernel
        if kernel.entry == "args":
            head = "ptr noundef %args, i64 noundef %chunk, i64 noundef %tid"
            self.parameters()
        else:
            head = ", ".join(f"{_text(p.name.type)} noundef %v{p.name.id}" for p in kernel.params)
        self.body(kernel.body)
        wide = ' "prefer-vector-width"="512" "min-legal-vector-width"="512"' if self.target.vector_bits == 512 else ""
        return "\n".join(
            [
                f'define void @"k.{kernel.name}"({head}) nounwind{wide} {{',
                "entry:",
                *self.entry,
                "  br label %body",
                "body:",
                *self.lines,
                "  ret void",
                "}",
                "!0 = !{i32 1}",
                "!1 = !{}",
                "",
            ]
        )

    def parameters(self) -> None:
        kernel, word = self.kernel, 0
        for name, source in ((kernel.chunk, "%chunk"), (kernel.tid, "%tid")):
            if name is not None:
                self.entry.append(f"  %v{name.id} = add i64 {source}, 0")
        for param in kernel.params:
            type = _text(param.name.type) if param.kind == "number" else "i64" if param.kind in ("integer", "step") else "ptr"
            target = f"%v{param.name.id}" if param.kind != "scratch" and type != "i1" else f"%w{param.name.id}"
            self.entry.append(f"  %p{param.name.id} = getelementptr inbounds i64, ptr %args, i64 {word}")
            self.entry.append(f"  {target} = load {type if type != 'i1' else 'i8'}, ptr %p{param.name.id}, align 8, !invariant.load !1")
            if type == "i1":
                self.entry.append(f"  %v{param.name.id} = icmp ne i8 {target}, 0")
            if param.kind == "scratch":
                n = param.name.id
                self.entry.append(f"  %q{n} = getelementptr inbounds i64, ptr %args, i64 {word + 1}")
                self.entry.append(f"  %s{n} = load i64, ptr %q{n}, align 8, !invariant.load !1")
                self.entry.append(f"  %o{n} = mul i64 %s{n}, %tid")
                self.entry.append(f"  %v{n} = getelementptr i8, ptr {target}, i64 %o{n}")
            word += param.words

    def body(self, body: tuple[Stmt, ...]) -> None:
        for stmt in body:
            kind = type(stmt)
            if kind is Let:
                _LET[stmt.op](self, stmt)  # type: ignore[union-attr]
            else:
                _STATEMENT[kind](self, stmt)

    # -------------------------------------------------------------- statements
    def declare(self, stmt: Declare) -> None:
        name = stmt.name
        if stmt.count:
            self.entry.append(f"  %v{name.id} = alloca [{stmt.count} x {_scalar(name.type.dtype)}], align 64")
        else:
            self.entry.append(f"  %v{name.id} = alloca {_text(name.type)}")
            assert stmt.init is not None, "a variable has a first value"
            self.put(f"store {self.typed(stmt.init)}, ptr %v{name.id}")

    def assign(self, stmt: Assign) -> None:
        self.put(f"store {self.typed(stmt.value)}, ptr %v{stmt.name.id}")

    def address(self, pointer: Operand, offset: Operand) -> str:
        if isinstance(offset, Const) and offset.value == 0:
            return self.ref(pointer)
        return self.new(f"getelementptr {_scalar(pointer.type.dtype)}, ptr {self.ref(pointer)}, {self.typed(offset)}")

    def store(self, stmt: Store) -> None:
        where = self.address(stmt.pointer, stmt.offset)
        type, value = stmt.value.type, self.ref(stmt.value)
        memory = _memory_text(type)
        if type.dtype is bool_:
            value = self.new(f"zext {_text(type)} {value} to {memory}")
        if stmt.mask is None:
            self.put(f"store {memory} {value}, ptr {where}, align {stmt.align}" + (", !nontemporal !0" if stmt.nontemporal else ""))
        else:
            mask = self.typed(stmt.mask)
            self.put(f"call void @llvm.masked.store.{_suffix(memory)}.p0({memory} {value}, ptr align {stmt.align} {where}, {mask})")

    def do(self, stmt: Do) -> None:
        if stmt.op == "prefetch":
            write, locality = stmt.attrs
            self.put(f"call void @llvm.prefetch.p0(ptr {self.address(*stmt.args)}, i32 {write}, i32 {locality}, i32 1)")
        elif stmt.op == "store_pointer":
            value, pointer, word = stmt.args
            self.put(
                f"store ptr {self.ref(value)}, ptr {self.new(f'getelementptr i64, ptr {self.ref(pointer)}, {self.typed(word)}')}, align 8"
            )
        else:
            self.scatter(*stmt.args)

    def scatter(self, value: Operand, pointer: Operand, offsets: Operand) -> None:
        memory, lanes = _scalar(value.type.dtype), value.type.lanes
        whole = self.ref(value)
        if value.type.dtype is bool_:
            whole = self.new(f"zext {_text(value.type)} {whole} to {_memory_text(value.type)}")
        for lane in range(lanes):
            item = self.new(f"extractelement {_memory_text(value.type)} {whole}, i32 {lane}") if lanes > 1 else whole
            self.put(f"store {memory} {item}, ptr {self.lane_address(pointer, offsets, lane)}, align {value.type.dtype.nbytes}")

    def lane_address(self, pointer: Operand, offsets: Operand, lane: int) -> str:
        item = self.new(f"extractelement {self.typed(offsets)}, i32 {lane}") if offsets.type.lanes > 1 else self.ref(offsets)
        return self.new(f"getelementptr {_scalar(pointer.type.dtype)}, ptr {self.ref(pointer)}, {_scalar(offsets.type.dtype)} {item}")

    def call(self, stmt: Call) -> None:
        self.put(f"call void {self.ref(stmt.function)}({', '.join(map(self.typed, stmt.args))})")

    def loop(self, stmt: Loop) -> None:
        self.count += 1
        n, index, before = self.count, f"%v{stmt.index.id}", self.block
        self.put(f"br label %head{n}")
        self.label(f"head{n}")
        self.put(f"{index} = phi i64 [ {self.ref(stmt.lo)}, %{before} ], [ %next{n}, %latch{n} ]")
        self.put(f"%more{n} = icmp slt i64 {index}, {self.ref(stmt.hi)}")
        self.put(f"br i1 %more{n}, label %loop{n}, label %done{n}")
        self.label(f"loop{n}")
        self.body(stmt.body)
        self.put(f"br label %latch{n}")
        self.label(f"latch{n}")
        self.put(f"%next{n} = add nsw i64 {index}, {self.ref(stmt.step)}")
        self.put(f"br label %head{n}")
        self.label(f"done{n}")

    def branch(self, stmt: Branch) -> None:
        self.count += 1
        n = self.count
        other = f"else{n}" if stmt.other else f"join{n}"
        self.put(f"br i1 {self.ref(stmt.cond)}, label %then{n}, label %{other}")
        self.label(f"then{n}")
        self.body(stmt.then)
        self.put(f"br label %join{n}")
        if stmt.other:
            self.label(other)
            self.body(stmt.other)
            self.put(f"br label %join{n}")
        self.label(f"join{n}")

    # -------------------------------------------------------------- ops
    def set(self, stmt: Let, text: str) -> None:
        self.lines.append(f"  %v{stmt.result.id} = {text}")

    def get(self, stmt: Let) -> None:
        self.set(stmt, f"load {_text(stmt.result.type)}, ptr {self.ref(stmt.args[0])}")

    def arithmetic(self, stmt: Let) -> None:
        a, b = stmt.args
        dtype = a.type.dtype
        table = _FLOAT_OPS if dtype.is_float else _SIGNED_OPS if dtype.kind == "i" else _UNSIGNED_OPS
        if stmt.op not in table:
            raise KernelError(f"kernel {self.kernel.name}: {stmt.op} must be of integers or bools, got {a.type}", code="kernel-operand")
        self.set(stmt, f"{table[stmt.op]} {self.typed(a)}, {self.ref(b)}")

    def negate(self, stmt: Let) -> None:
        self.set(stmt, f"fneg {self.typed(stmt.args[0])}")

    def compare(self, stmt: Let) -> None:
        a, b = stmt.args
        kind = a.type.dtype.kind
        test = f"fcmp {_FLOAT_TESTS[stmt.op]}" if kind == "f" else f"icmp {(_SIGNED_TESTS if kind == 'i' else _UNSIGNED_TESTS)[stmt.op]}"
        self.set(stmt, f"{test} {self.typed(a)}, {self.ref(b)}")

    def intrinsic(self, stmt: Let, name: str, operands: Sequence[str], extra: str = "") -> None:
        type = _text(stmt.result.type)
        inside = ", ".join(f"{type} {o}" for o in operands)
        self.set(stmt, f"call {type} @llvm.{name}.{_suffix(type)}({inside}{extra})")

    def fma(self, stmt: Let) -> None:
        a, b, c = map(self.ref, stmt.args)
        if self.fused:
            self.intrinsic(stmt, "fma", (a, b, c))
        else:  # a call of the C library for each lane would be a hundred times slower
            type = _text(stmt.result.type)
            self.set(stmt, f"fadd {type} {self.new(f'fmul {type} {a}, {b}')}, {c}")

    def dot4(self, stmt: Let) -> None:
        """One instruction where the machine has it (VNNI, NEON); else products of 16 bits, or of bytes where the caller says they fit."""
        total, a, b = map(self.ref, stmt.args)
        lanes, unsigned = stmt.result.type.lanes, stmt.args[1].type.dtype.kind == "u"
        bits, bytes_, shorts, words = 32 * lanes, f"<{4 * lanes} x i8>", f"<{2 * lanes} x i16>", f"<{lanes} x i32>"
        has = self.target.has
        if (
            unsigned
            and ((has("avx512vnni") and (bits == 512 or has("avx512vl"))) or (has("avxvnni") and bits < 512))
            and bits in (128, 256, 512)
        ):
            self.set(stmt, f"call {words} @llvm.x86.avx512.vpdpbusd.{bits}({words} {total}, {bytes_} {a}, {bytes_} {b})")
            return
        if self.arm and lanes == 4 and ((not unsigned and has("dotprod")) or (unsigned and has("i8mm"))):
            name = "usdot" if unsigned else "sdot"
            self.set(stmt, f"call {words} @llvm.aarch64.neon.{name}.v4i32.v16i8({words} {total}, {bytes_} {a}, {bytes_} {b})")
            return
        names = {
            128: ("ssse3", "ssse3.pmadd.ub.sw.128", "sse2.pmadd.wd"),
            256: ("avx2", "avx2.pmadd.ub.sw", "avx2.pmadd.wd"),
            512: ("avx512bw", "avx512.pmaddubs.w.512", "avx512.pmaddw.d.512"),
        }
        feature, of_bytes, of_shorts = names.get(bits, ("", "", ""))
        if not self.arm and feature and (has(feature) or bits == 128):
            add = f"call {words} @llvm.x86.{of_shorts}"
            if stmt.attrs[0] and unsigned and has(feature):
                pairs = self.new(f"call {shorts} @llvm.x86.{of_bytes}({bytes_} {a}, {bytes_} {b})")
                four = self.new(f"{add}({shorts} {pairs}, {shorts} splat (i16 1))")
                self.set(stmt, f"add {words} {total}, {four}")
                return

            # even bytes and odd bytes as 16 bits; what is made from one operand LLVM shares between all its uses
            def parts(value: str, signed: bool) -> tuple[str, str]:
                whole = self.new(f"bitcast {bytes_} {value} to {shorts}")
                eight = f"{shorts} {{}}, splat (i16 8)"
                up = self.new("shl " + eight.format(whole))
                shift = "ashr " if signed else "lshr "
                return self.new(shift + eight.format(up)), self.new(shift + eight.format(whole))

            for x, y in zip(parts(a, not unsigned), parts(b, True), strict=True):
                total = self.new(f"add {words} {total}, {self.new(f'{add}({shorts} {x}, {shorts} {y})')}")
            self.set(stmt, f"add {words} {total}, zeroinitializer")
            return
        x, y = (self.new(f"bitcast {bytes_} {v} to {words}") for v in (a, b))
        for j in range(4):
            up = f"{words} {{}}, splat (i32 {24 - 8 * j})"
            left, right = self.new("shl " + up.format(x)), self.new("shl " + up.format(y))
            left = self.new(f"{'lshr' if unsigned else 'ashr'} {words} {left}, splat (i32 24)")
            right = self.new(f"ashr {words} {right}, splat (i32 24)")
            total = self.new(f"add {words} {total}, {self.new(f'mul {words} {left}, {right}')}")
        self.set(stmt, f"add {words} {total}, zeroinitializer")

    def lookup(self, stmt: Let) -> None:
        """In registers, 64 or 16 lanes at a time, where the machine looks bytes up there; else lane by lane in memory."""
        table, lanes = stmt.attrs[0], stmt.result.type.lanes
        assert isinstance(table, tuple), "a lookup has its table"
        wide = 64 if self.target.has("avx512vbmi") else 16 if self.arm else 0
        value = self.ref(stmt.args[0])
        if not wide or lanes == 1:
            name = f"@table{len(self.globals)}"
            self.globals.append(f"{name} = private unnamed_addr constant [256 x i8] [{', '.join(f'i8 {t}' for t in table)}], align 64\n")
            whole = "poison"
            for lane in range(lanes):
                index = self.new(f"extractelement <{lanes} x i8> {value}, i32 {lane}") if lanes > 1 else value
                where = self.new(f"getelementptr i8, ptr {name}, i64 {self.new(f'zext i8 {index} to i64')}")
                item = self.new(f"load i8, ptr {where}, align 1")
                whole = self.new(f"insertelement <{lanes} x i8> {whole}, i8 {item}, i32 {lane}") if lanes > 1 else item
            self.set(stmt, f"freeze {_text(stmt.result.type)} {whole}")
            return
        vector = f"<{wide} x i8>"
        parts = [f"{vector} <{', '.join(f'i8 {t}' for t in table[i : i + wide])}>" for i in range(0, 256, wide)]
        found = []
        for first in range(0, lanes, wide):
            index = self.cut(value, lanes, first, wide)
            if wide == 64:
                halves = [
                    self.new(f"call {vector} @llvm.x86.avx512.vpermi2var.qi.512({parts[i]}, {vector} {index}, {parts[i + 1]})")
                    for i in (0, 2)
                ]
                high = self.new(f"icmp slt {vector} {index}, zeroinitializer")
                found.append(self.new(f"select <64 x i1> {high}, {vector} {halves[1]}, {vector} {halves[0]}"))
                continue
            one = self.new(f"call {vector} @llvm.aarch64.neon.tbl4.v16i8({', '.join(parts[:4])}, {vector} {index})")
            for i in (4, 8, 12):
                index = self.new(f"sub {vector} {index}, splat (i8 64)")
                one = self.new(
                    f"call {vector} @llvm.aarch64.neon.tbx4.v16i8({vector} {one}, {', '.join(parts[i : i + 4])}, {vector} {index})"
                )
            found.append(one)
        self.set(stmt, f"bitcast <{lanes} x i8> {self.joined(found, wide, lanes)} to <{lanes} x i8>")

    def cut(self, value: str, lanes: int, first: int, count: int) -> str:
        """`count` of the lanes of bytes from `first`; those that do not exist are anything."""
        mask = ", ".join(f"i32 {first + i}" if first + i < lanes else "i32 poison" for i in range(count))
        return self.new(f"shufflevector <{lanes} x i8> {value}, <{lanes} x i8> poison, <{count} x i32> <{mask}>")

    def joined(self, parts: list[str], width: int, lanes: int) -> str:
        """The first `lanes` of vectors of bytes one after the other."""
        while len(parts) > 1:
            mask = ", ".join(f"i32 {i}" for i in range(2 * width))
            kind = f"<{width} x i8>"
            pairs = zip(parts[::2], parts[1::2], strict=True)
            parts = [self.new(f"shufflevector {kind} {a}, {kind} {b}, <{2 * width} x i32> <{mask}>") for a, b in pairs]
            width *= 2
        mask = ", ".join(f"i32 {i}" for i in range(lanes))
        return self.new(f"shufflevector <{width} x i8> {parts[0]}, <{width} x i8> poison, <{lanes} x i32> <{mask}>")

    def extreme(self, stmt: Let) -> None:
        """min, max (NaN goes through) and fmin, fmax (any)."""
        a, b = map(self.ref, stmt.args)
        type, dtype = _text(stmt.result.type), stmt.result.type.dtype
        low = stmt.op.endswith("min")
        if dtype is bool_:
            self.set(stmt, f"{'and' if low else 'or'} {type} {a}, {b}")
        elif not dtype.is_float:
            self.intrinsic(stmt, ("s" if dtype.kind == "i" else "u") + ("min" if low else "max"), (a, b))
        elif self.arm:
            name = ("minimum" if low else "maximum") if stmt.op[0] == "m" else ("minnum" if low else "maxnum")
            self.intrinsic(stmt, name, (a, b))
        else:
            # x86's minps and maxps give their second operand when either is NaN: a number goes first; else one compare mends the first
            if _is_number(stmt.args[1]):
                a, b = b, a
            bits = "<" + f"{stmt.result.type.lanes} x i1>" if stmt.result.type.lanes > 1 else "i1"
            test = self.new(f"fcmp {'olt' if low else 'ogt'} {type} {a}, {b}")
            plain = f"select {bits} {test}, {type} {a}, {type} {b}"
            if stmt.op[0] == "f" or any(map(_is_number, stmt.args)):
                self.set(stmt, plain)
            else:
                result = self.new(plain)
                nan = self.new(f"fcmp uno {type} {a}, zeroinitializer" if bits != "i1" else f"fcmp uno {type} {a}, 0.0")
                self.set(stmt, f"select {bits} {nan}, {type} {a}, {type} {result}")

    def unary(self, stmt: Let) -> None:
        a = self.ref(stmt.args[0])
        if stmt.op == "abs":
            if stmt.result.type.dtype.is_float:
                self.intrinsic(stmt, "fabs", (a,))
            else:
                self.intrinsic(stmt, "abs", (a,), ", i1 false")
        else:
            self.intrinsic(stmt, _INTRINSICS[stmt.op], (a,))

    def copysign(self, stmt: Let) -> None:
        self.intrinsic(stmt, "copysign", [self.ref(a) for a in stmt.args])

    def select(self, stmt: Let) -> None:
        self.set(stmt, f"select {', '.join(map(self.typed, stmt.args))}")

    def convert(self, stmt: Let) -> None:
        source, result = stmt.args[0].type.dtype, stmt.result.type.dtype
        to, value = _text(stmt.result.type), self.typed(stmt.args[0])
        if (source.bits == 16 or result.bits == 16) and source.is_float and result.is_float and not self.half:
            self.set(stmt, self.half_by_integers(stmt.args[0], stmt.result.type.lanes))
            return
        match source.kind, result.kind:
            case "f", "f":
                op = "fpext" if result.bits > source.bits else "fptrunc"
            case "f", "u":
                op = "fptoui"
            case "f", _:
                op = "fptosi"
            case "i", "f":
                op = "sitofp"
            case _, "f":
                op = "uitofp"
            case _:
                width = 1 if source is bool_ else source.bits
                if result.bits == width:
                    self.set(stmt, f"bitcast {value} to {to}")
                    return
                op = "trunc" if result.bits < width else "sext" if source.kind == "i" else "zext"
        self.set(stmt, f"{op} {value} to {to}")

    def half_by_integers(self, value: Operand, lanes: int) -> str:
        """f16 to f32 or f32 to f16 on a machine without F16C, whose other way is a call into compiler-rt."""

        def vector(scalar: str) -> str:
            return scalar if lanes == 1 else f"<{lanes} x {scalar}>"

        def number(text: str) -> str:
            return text.split(" ")[1] if lanes == 1 else f"splat ({text})"

        i32, f32, i16, half, i1 = (vector(s) for s in ("i32", "float", "i16", "half", "i1"))

        def op(name: str, a: str, constant: int) -> str:
            return self.new(f"{name} {i32} {a}, {number(f'i32 {constant}')}")

        def choose(cond: str, a: str, b: str) -> str:
            return self.new(f"select {i1} {cond}, {i32} {a}, {i32} {b}")

        if value.type.dtype.bits == 16:
            bits = self.new(f"zext {i16} {self.new(f'bitcast {half} {self.ref(value)} to {i16}')} to {i32}")
            sign = op("shl", op("and", bits, 0x8000), 16)
            magnitude = op("and", bits, 0x7FFF)
            normal = op("add", op("shl", magnitude, 13), 112 << 23)
            special = op("or", op("shl", magnitude, 13), 0xFF << 23)
            # a subnormal half is its integer times 2^-24; the product is exact and normal, so flush-to-zero does not touch it
            tiny = self.new(f"fmul {f32} {self.new(f'uitofp {i32} {magnitude} to {f32}')}, {number('float 0x3E70000000000000')}")
            result = choose(op("icmp ult", magnitude, 0x400), self.new(f"bitcast {f32} {tiny} to {i32}"), normal)
            result = choose(op("icmp uge", magnitude, 0x7C00), special, result)
            return f"bitcast {i32} {self.new(f'or {i32} {result}, {sign}')} to {f32}"
        bits = self.new(f"bitcast {f32} {self.ref(value)} to {i32}")
        sign = op("lshr", op("and", bits, -0x80000000), 16)
        magnitude = op("and", bits, 0x7FFFFFFF)
        odd = op("and", op("lshr", magnitude, 13), 1)
        rounded = op("lshr", self.new(f"add {i32} {op('add', magnitude, 0xFFF - (112 << 23))}, {odd}"), 13)
        # adding 0.5 shifts a subnormal half's bits into place, rounded to even by the adder itself
        single = self.new(f"bitcast {i32} {magnitude} to {f32}")
        summed = self.new(f"bitcast {f32} {self.new(f'fadd {f32} {single}, ' + number('float 0x3FE0000000000000'))} to {i32}")
        tiny = op("sub", summed, 0x3F000000)
        special = choose(op("icmp ugt", magnitude, 0x7F800000), number(f"i32 {0x7E00}"), number(f"i32 {0x7C00}"))
        result = choose(op("icmp ult", magnitude, 113 << 23), tiny, rounded)
        result = choose(op("icmp uge", magnitude, 0x477FF000), special, result)
        narrow = self.new(f"trunc {i32} {self.new(f'or {i32} {result}, {sign}')} to {i16}")
        return f"bitcast {i16} {narrow} to {half}"

    def bitcast(self, stmt: Let) -> None:
        self.set(stmt, f"bitcast {self.typed(stmt.args[0])} to {_text(stmt.result.type)}")

    def splat(self, stmt: Let) -> None:
        type = _text(stmt.result.type)
        one = self.new(f"insertelement {type} poison, {self.typed(stmt.args[0])}, i32 0")
        self.set(stmt, f"shufflevector {type} {one}, {type} poison, <{stmt.result.type.lanes} x i32> zeroinitializer")

    def shuffle(self, stmt: Let) -> None:
        a, b = stmt.args
        indices = stmt.attrs[0]
        assert isinstance(indices, tuple), "a shuffle has lane numbers"
        mask = ", ".join(f"i32 {i}" for i in indices)
        self.set(stmt, f"shufflevector {self.typed(a)}, {self.typed(b)}, <{len(indices)} x i32> <{mask}>")

    def extract(self, stmt: Let) -> None:
        self.set(stmt, f"extractelement {self.typed(stmt.args[0])}, i32 {stmt.attrs[0]}")

    def insert(self, stmt: Let) -> None:
        self.set(stmt, f"insertelement {self.typed(stmt.args[0])}, {self.typed(stmt.args[1])}, i32 {stmt.attrs[0]}")

    def offset(self, stmt: Let) -> None:
        pointer, elements = stmt.args
        self.set(stmt, f"getelementptr {_scalar(pointer.type.dtype)}, ptr {self.ref(pointer)}, {self.typed(elements)}")

    def cast_pointer(self, stmt: Let) -> None:
        self.set(stmt, f"getelementptr i8, ptr {self.ref(stmt.args[0])}, i64 0")

    def load_pointer(self, stmt: Let) -> None:
        pointer, word = stmt.args
        where = self.new(f"getelementptr i64, ptr {self.ref(pointer)}, {self.typed(word)}")
        self.set(stmt, f"load ptr, ptr {where}, align 8")

    def load(self, stmt: Let) -> None:
        where, type = self.address(stmt.args[0], stmt.args[1]), stmt.result.type
        text = f"load {_memory_text(type)}, ptr {where}, align {stmt.attrs[0]}"
        self.from_memory(stmt, text)

    def from_memory(self, stmt: Let, text: str) -> None:
        type = stmt.result.type
        if type.dtype is bool_:
            zero = "0" if type.lanes == 1 else "zeroinitializer"
            self.set(stmt, f"icmp ne {_memory_text(type)} {self.new(text)}, {zero}")
        else:
            self.set(stmt, text)

    def load_masked(self, stmt: Let) -> None:
        pointer, offset, mask = stmt.args
        memory = _memory_text(stmt.result.type)
        where = self.address(pointer, offset)
        args = f"ptr align {stmt.attrs[0]} {where}, {self.typed(mask)}, {memory} zeroinitializer"
        self.from_memory(stmt, f"call {memory} @llvm.masked.load.{_suffix(memory)}.p0({args})")

    def gather(self, stmt: Let) -> None:
        pointer, offsets = stmt.args[:2]
        mask = stmt.args[2] if len(stmt.args) > 2 else None
        type = stmt.result.type
        memory, lanes = _memory_text(type), type.lanes
        if mask is None and (lanes == 1 or not self.wide_gather or type.dtype.bits < 32):
            whole = "poison"
            for lane in range(lanes):
                item = self.new(f"load {_scalar(type.dtype)}, ptr {self.lane_address(pointer, offsets, lane)}, align {type.dtype.nbytes}")
                whole = self.new(f"insertelement {memory} {whole}, {_scalar(type.dtype)} {item}, i32 {lane}") if lanes > 1 else item
            self.from_memory(stmt, f"bitcast {memory} {whole} to {memory}")
            return
        where = self.new(f"getelementptr {_scalar(type.dtype)}, ptr {self.ref(pointer)}, {self.typed(offsets)}")
        on = self.typed(mask) if mask is not None else f"<{lanes} x i1> splat (i1 true)"
        args = f"<{lanes} x ptr> align {type.dtype.nbytes} {where}, {on}, {memory} zeroinitializer"
        self.from_memory(stmt, f"call {memory} @llvm.masked.gather.{_suffix(memory)}.v{lanes}p0({args})")

    def libm(self, stmt: Let) -> None:
        type = stmt.result.type
        scalar = _scalar(type.dtype)
        function = f"{stmt.attrs[0]}f" if scalar == "float" else str(stmt.attrs[0])
        whole = "poison"
        for lane in range(type.lanes):
            items = [self.ref(a) if type.lanes == 1 else self.new(f"extractelement {self.typed(a)}, i32 {lane}") for a in stmt.args]
            one = f"call {scalar} @{function}({', '.join(f'{scalar} {i}' for i in items)})"
            if type.lanes == 1:
                self.set(stmt, one)
                return
            last = lane == type.lanes - 1
            text = f"insertelement {_text(type)} {whole}, {scalar} {self.new(one)}, i32 {lane}"
            if last:
                self.set(stmt, text)
            else:
                whole = self.new(text)


_LET: dict[str, Any] = {
    **dict.fromkeys(("add", "sub", "mul", "div", "rem", "and", "or", "xor", "shl", "shr"), _Writer.arithmetic),
    **dict.fromkeys(("eq", "ne", "lt", "le", "gt", "ge"), _Writer.compare),
    **dict.fromkeys(("min", "max", "fmin", "fmax"), _Writer.extreme),
    **dict.fromkeys(("sqrt", "abs", "floor", "ceil", "rint", "trunc"), _Writer.unary),
    "get": _Writer.get, "neg": _Writer.negate, "fma": _Writer.fma, "dot4": _Writer.dot4,
    "lookup": _Writer.lookup, "copysign": _Writer.copysign, "select": _Writer.select,
    "convert": _Writer.convert, "bitcast": _Writer.bitcast, "splat": _Writer.splat, "shuffle": _Writer.shuffle,
    "extract": _Writer.extract, "insert": _Writer.insert, "offset": _Writer.offset, "cast_pointer": _Writer.cast_pointer,
    "load_pointer": _Writer.load_pointer, "load": _Writer.load, "load_masked": _Writer.load_masked, "gather": _Writer.gather,
    "libm": _Writer.libm,
}  # fmt: skip
_STATEMENT: dict[type, Any] = {
    Declare: _Writer.declare, Assign: _Writer.assign, Store: _Writer.store, Do: _Writer.do, Call: _Writer.call,
    Loop: _Writer.loop, Branch: _Writer.branch,
}  # fmt: skip


def emit(kernel: Kernel, target: Target) -> str:
    """LLVM IR text of the kernel for a machine."""
    writer = _Writer(kernel, target)
    text = writer.function()
    return "".join([f'target triple = "{target.triple}"\n', *sorted(set(_libm_declarations(kernel))), *writer.globals, text])


def _libm_declarations(kernel: Kernel) -> Iterable[str]:
    for stmt in statements(kernel.body):
        if isinstance(stmt, Let) and stmt.op == "libm":
            scalar = _scalar(stmt.result.type.dtype)
            function = f"{stmt.attrs[0]}f" if scalar == "float" else str(stmt.attrs[0])
            yield f"declare {scalar} @{function}({', '.join([scalar] * len(stmt.args))}) nounwind memory(none)\n"
