"""CANN's operators as data: which aclnn functions and GE operator types there are, on which chips, for which element types.

In: library/*.csv (their README says from where).  Out: `AclnnOp`, `GeOp` and `Primitive` by name; read by the pass that maps a graph.
A row is what CANN's open repositories say.  An operator type whose kernel is only in the binary package has no family of chips here:
that it runs on the AI Core is then an inference, and whoever reads says so.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path

FOLDER = Path(__file__).parent / "library"
FAMILIES = ("310", "310b", "310p", "910", "910b", "910_93", "950")


def column(family: str) -> str:
    """What the tables call a chip's family.

    >>> column("Ascend910_93"), column("Ascend310P")
    ('910_93', '310p')
    """
    name = family.removeprefix("Ascend").lower()
    return {"910_95": "950", "910a": "910", "910c": "910_93"}.get(name, name)


@dataclass(frozen=True)
class _Row:
    """What both tables have.   on: families of chips that it is said to run on; source: the file that says so."""

    name: str
    on: frozenset[str]
    text: str
    source: str

    @cached_property
    def dtypes(self) -> Mapping[str, tuple[str, ...]]:
        """Element types of each tensor that the table knows them of; names that are no element type of ours stay as CANN has them."""
        found = (part.split(":", 1) for part in self.text.split(";") if part)
        return {name: tuple(types.split()) for name, types in found}

    def takes(self, dtype: str) -> bool | None:
        """Whether any tensor may have that element type; None where the table does not say."""
        if not self.dtypes:
            return None
        return any(dtype in types for types in self.dtypes.values())


@dataclass(frozen=True)
class AclnnOp(_Row):
    """An operator that is called from the host, one by one.   kinds: the GE operator types behind it; off: families that it is said not to run on."""

    kinds: tuple[str, ...] = ()
    off: frozenset[str] = frozenset()


@dataclass(frozen=True)
class GeOp(_Row):
    """An operator type of a graph.   on: families whose AI Core kernel is defined in the open repositories; empty where only the binary package has it."""


@dataclass(frozen=True)
class Primitive:
    """An operator of MindSpore and what it becomes.   evidence: of the aclnn name, `documented`, `inferred` (from names) or `conflict`."""

    name: str
    kinds: tuple[str, ...]
    aclnn: str
    evidence: str
    source: str


@dataclass(frozen=True)
class CoreTypes:
    """Element types with which CANN sends an operator type to the AI Core of a family of chips; all others go to the AI CPU."""

    kind: str
    dtypes: frozenset[str]
    source: str


def find_aclnn(name: str) -> AclnnOp | None:
    """The aclnn operator of that name, None where the table lacks it."""
    row = _rows("aclnn").get(name)
    if row is None:
        return None
    return AclnnOp(name, frozenset(row[2].split()), row[4], row[5], tuple(row[1].split()), frozenset(row[3].split()))


def find_ge(kind: str) -> GeOp | None:
    """The GE operator type of that name, None where the table lacks it."""
    row = _rows("ge").get(kind)
    return None if row is None else GeOp(kind, frozenset(row[2].split()), row[1], row[3])


def find_primitive(name: str) -> Primitive | None:
    """The MindSpore operator of that name, None where the table lacks it."""
    row = _rows("primitives").get(name)
    return None if row is None else Primitive(name, tuple(row[1].split()), row[2], row[3], row[4])


def find_core(kind: str, family: str) -> CoreTypes | None:
    """What the AI Core of a family takes of an operator type, whatever version its name says; None where the sources do not say."""
    return _cores().get((plain(kind), family))


def find_casts(family: str) -> tuple[frozenset[tuple[str, str]], str]:
    """Pairs of element types that the AI Core of a family casts, and the source."""
    for families, pairs, source in _lines("casts"):
        if family in families.split():
            split = (part.split(":") for part in pairs.split(";"))
            return frozenset((a, b) for a, targets in split for b in targets.split()), source
    return frozenset(), ""


def plain(name: str) -> str:
    """An operator type without what tells its versions apart, in lower case: `MatMul` and `MatMulV3` mean one operator.

    >>> plain("BatchMatMulV2"), plain("ReduceSumD"), plain("Conv2D")
    ('batchmatmul', 'reducesum', 'conv2d')
    """
    name = re.sub(r"V\d+$", "", name)
    return (name[:-1] if re.search(r"[a-z]D$", name) else name).lower()


def aclnn_ops() -> Iterator[AclnnOp]:
    """All aclnn operators, by name."""
    return (op for name in _rows("aclnn") if (op := find_aclnn(name)) is not None)


def ge_ops() -> Iterator[GeOp]:
    """All GE operator types, by name."""
    return (op for name in _rows("ge") if (op := find_ge(name)) is not None)


@cache
def kinds_of_mindspore() -> Mapping[str, str]:
    """GE operator types that MindSpore maps its operators to, and the first such operator of each."""
    found: dict[str, str] = {}
    for name, row in _rows("primitives").items():
        for kind in row[1].split():
            found.setdefault(kind, name)
    return found


@cache
def _cores() -> Mapping[tuple[str, str], CoreTypes]:
    """Rows of cores.csv by operator and family."""
    return {
        (plain(kind), family): CoreTypes(kind, frozenset(dtypes.split()), source)
        for kind, families, dtypes, source in _lines("cores")
        for family in families.split()
    }


@cache
def _lines(table: str) -> tuple[tuple[str, ...], ...]:
    """Rows of a table in order."""
    with (FOLDER / f"{table}.csv").open(newline="", encoding="utf-8") as file:
        lines = csv.reader(file)
        next(lines)
        return tuple(tuple(line) for line in lines)


@cache
def _rows(table: str) -> Mapping[str, tuple[str, ...]]:
    """Rows of a table by their first column; a row is looked at when it is asked for."""
    return {line[0]: line for line in _lines(table)}
