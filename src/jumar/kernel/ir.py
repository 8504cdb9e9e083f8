"""Kernel IR: a small program over pointers, scalars and short vectors, in frozen dataclasses.

In: what `Builder` records for the schedules in `operators`.  Out: `Kernel`, whose text (`str(kernel)`) is the key of its
object code and whose statements `kernel.llvm` turns into machine code.

Every value has a `Type`: an element type, a number of lanes (1 is a scalar), or a pointer to elements.  Statements are
structured (`Loop`, `Branch`); what changes is a `Declare`d variable that is read with the op `get` and written by `Assign`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from jumar.base import DType, Loc, i64

Number = float | int | bool


@dataclass(frozen=True, slots=True)
class Type:
    """Type of one kernel value.   `f32`, `f32x8` (eight lanes), `f32*` (pointer to elements)."""

    dtype: DType
    lanes: int = 1
    pointer: bool = False

    def __str__(self) -> str:
        return f"{self.dtype.name}*" if self.pointer else self.dtype.name if self.lanes == 1 else f"{self.dtype.name}x{self.lanes}"


INDEX = Type(i64)


@dataclass(frozen=True, slots=True)
class Name:
    """A value that a statement or a parameter gives.   Printed `%label` or `%id`; ids are unique in a kernel."""

    id: int
    type: Type
    label: str = ""

    def __str__(self) -> str:
        return f"%{self.label or self.id}"


@dataclass(frozen=True, slots=True)
class Const:
    """A number, the same in every lane, or a tuple with one number per lane."""

    value: Number | tuple[Number, ...]
    type: Type

    def __str__(self) -> str:
        value = self.value
        text = f"<{','.join(map(_number, value))}>" if isinstance(value, tuple) else _number(value)
        return text if self.type == INDEX else f"{text}:{self.type}"


def _number(value: Number) -> str:
    return str(value).lower() if isinstance(value, bool) else repr(value)


Operand = Name | Const
Attribute = int | str | bool | tuple[int, ...] | None


@dataclass(frozen=True, slots=True)
class Let:
    """`result = op args`, with attributes where the op needs them (lane numbers, the name of a libm function)."""

    result: Name
    op: str
    args: tuple[Operand, ...]
    attrs: tuple[Attribute, ...] = ()


@dataclass(frozen=True, slots=True)
class Declare:
    """A variable: a mutable local of its initial value's type (a pointer where `count` elements are reserved on the stack)."""

    name: Name
    init: Operand | None = None
    count: int = 0


@dataclass(frozen=True, slots=True)
class Assign:
    """Writes a variable."""

    name: Name
    value: Operand


@dataclass(frozen=True, slots=True)
class Store:
    """Writes a value to memory at `pointer + offset` elements; lanes where `mask` is false are left alone."""

    value: Operand
    pointer: Operand
    offset: Operand
    mask: Operand | None = None
    align: int = 0
    nontemporal: bool = False


@dataclass(frozen=True, slots=True)
class Do:
    """An op without a result: `prefetch`, `scatter`, `store_pointer`."""

    op: str
    args: tuple[Operand, ...]
    attrs: tuple[Attribute, ...] = ()


@dataclass(frozen=True, slots=True)
class Call:
    """A call through a function pointer (a micro-kernel with entry `plain`)."""

    function: Operand
    args: tuple[Operand, ...]


@dataclass(frozen=True, slots=True)
class Loop:
    """`for index in lo .. hi step step`."""

    index: Name
    lo: Operand
    hi: Operand
    step: Operand
    body: tuple[Stmt, ...]


@dataclass(frozen=True, slots=True)
class Branch:
    """`if cond: then else: other`."""

    cond: Operand
    then: tuple[Stmt, ...]
    other: tuple[Stmt, ...] = ()


Stmt = Let | Declare | Assign | Store | Do | Call | Loop | Branch


@dataclass(frozen=True, slots=True)
class Param:
    """A parameter.   kind: pointer, integer, number, function, scratch (pointer to memory of the running thread), fault (pointer to the run's
    fault word) or step (what to store there).

    In a kernel with entry `args` each parameter is one 8-byte word of `args`, in order; a scratch parameter is two words
    (base of all threads' scratch, bytes per thread), which the executor fills from one `Ref("scratch", offset)`.  The assembler gives
    scratch, fault and step; a schedule gives the rest.
    """

    name: Name
    kind: str
    nbytes: int = 0  # of a scratch parameter: what the kernel needs

    @property
    def words(self) -> int:
        return 2 if self.kind == "scratch" else 1


@dataclass(frozen=True, slots=True)
class Kernel:
    """One function in machine code to be.

    entry `args`: `void kernel(ptr args, i64 chunk, i64 tid)`, what a step of a Program calls; `chunk` and `tid` are the
    names for the last two.  entry `plain`: `void kernel(params...)`, called by other kernels through a pointer.
    """

    name: str
    params: tuple[Param, ...]
    body: tuple[Stmt, ...]
    entry: str = "args"
    chunk: Name | None = None
    tid: Name | None = None
    loc: Loc | None = None

    def __str__(self) -> str:
        head = ", ".join(f"{p.name}: {p.name.type}" + (f" {p.kind}" if p.kind in ("function", "scratch") else "") for p in self.params)
        return "\n".join([f"kernel {self.name} {self.entry}({head}):", *_lines(self.body, "  ")])


def statements(body: Iterable[Stmt]) -> Iterator[Stmt]:
    """Every statement of a body, those inside loops and branches too."""
    for stmt in body:
        yield stmt
        match stmt:
            case Loop():
                yield from statements(stmt.body)
            case Branch():
                yield from statements(stmt.then)
                yield from statements(stmt.other)
            case _:
                pass


def _lines(body: Iterable[Stmt], pad: str) -> Iterator[str]:
    for stmt in body:
        match stmt:
            case Let(result, op, args, attrs):
                yield f"{pad}{result}: {result.type} = {op}{_attributes(attrs)} {' '.join(map(str, args))}".rstrip()
            case Store(value, pointer, offset, mask, align, nontemporal):
                tail = "" if mask is None else f" if {mask}"
                tail += (f" align {align}" if align else "") + (" nontemporal" if nontemporal else "")
                yield f"{pad}store {value} to {pointer} {offset}{tail}"
            case Declare(name, init, count):
                yield f"{pad}var {name}: {name.type}" + (f"[{count}]" if count else f" = {init}")
            case Assign(name, value):
                yield f"{pad}{name} := {value}"
            case Do(op, args, attrs):
                yield f"{pad}{op}{_attributes(attrs)} {' '.join(map(str, args))}"
            case Call(function, args):
                yield f"{pad}call {function} {' '.join(map(str, args))}"
            case Loop(index, lo, hi, step, inner):
                yield f"{pad}for {index} in {lo} .. {hi}" + ("" if step == Const(1, INDEX) else f" step {step}") + ":"
                yield from _lines(inner, pad + "  ")
            case Branch(cond, then, other):
                yield f"{pad}if {cond}:"
                yield from _lines(then, pad + "  ")
                if other:
                    yield f"{pad}else:"
                    yield from _lines(other, pad + "  ")


def _attributes(attrs: tuple[Attribute, ...]) -> str:
    return f"{{{', '.join(map(str, attrs))}}}" if attrs else ""
