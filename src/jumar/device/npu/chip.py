"""`Chip`: one Ascend SoC as data, and `find_chip`, which resolves the names that users meet.

In: chips/*.toml, one file a SoC with its bins, every figure with its kind and source.  Out: `Chip`, read by everything that speaks of an NPU.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import MISSING, dataclass, field, fields, replace
from functools import cache
from pathlib import Path
from typing import Any

from jumar.base import DeviceError, read_toml

_CHIPS = Path(__file__).with_name("chips")
DOCUMENTED, MEASURED, DERIVED = KINDS = ("documented", "measured", "derived")


@dataclass(frozen=True)
class Figure:
    """One number of a chip.   kind: `documented`, `measured` or `derived`; source: where from; note: conflicts, doubts."""

    value: float
    unit: str
    kind: str
    source: str
    note: str = ""


@dataclass(frozen=True)
class Chip:
    """One SoC.   name: CANN's soc_version; family: CANN's short name (`Ascend910B`, `Ascend310P`); arch: the NPU architecture (2201 ...).

    split: cube and vector units are cores of their own (910B and later), else one AI core holds both.
    cube_cores, vector_cores: what one kernel is cut over; extra_vector_cores: those of a 310P beside its AI cores, for kernels that ask for them.
    cube_macs: multiply-adds a cycle of one cube core, by element type (`f16`, `bf16`, `i8`, `f32`, `hf32`); a type that is absent is not supported.
    vector_nbytes: bytes that one vector unit takes in a cycle.  Sizes in bytes, clocks in Hz, rates in bytes/s of the whole chip.
    clock_hz: what it runs at, measured where a measurement is known; rated_clock_hz: what its configuration says.
    rates: bytes a cycle and core that CANN's compiler tiles by (`ddr`, `l2_read`, `l2_write`, `l1_to_l0a`, ...): hints, no measurements.
    alignment: bytes, by memory (`ub`, `l1`, `l0a`, `l0b`, `l0c`, `gm`).
    dtypes: element types its kernels take; vector_dtypes: those its vector units compute in, the rest is widened first.
    overflow: what fp16 arithmetic does past the range, `saturate`, `infnan` or `both` (a mode).  modes: `bf16`, `hf32`, `infnan`, `deterministic`.
    links: bytes/s in one direction (`hccs`, `roce`, `pcie`, `sio`, `ub`).
    figures: where each of these comes from, by field name, or `links.hccs` for a table's entry.
    caution: what must be said loudly, since the name it was asked by means another chip, too (filled by find_chip).
    """

    name: str
    title: str
    family: str
    arch: int
    aliases: tuple[str, ...]
    split: bool
    cube_cores: int
    vector_cores: int
    ai_cpus: int
    clock_hz: float
    vector_clock_hz: float
    cube_macs: Mapping[str, int]
    vector_nbytes: int
    l0a_nbytes: int
    l0b_nbytes: int
    l0c_nbytes: int
    l1_nbytes: int
    ub_nbytes: int
    l2_nbytes: int
    memory_nbytes: int
    memory_bytes_per_s: float
    l2_bytes_per_s: float
    dtypes: frozenset[str]
    overflow: str
    dvpp: bool = False
    links: Mapping[str, float] = field(default_factory=dict)
    figures: Mapping[str, Figure] = field(default_factory=dict, repr=False)
    notes: tuple[str, ...] = ()
    extra_vector_cores: int = 0
    rated_clock_hz: float = 0.0
    bias_table_nbytes: int = 0
    rates: Mapping[str, float] = field(default_factory=dict)
    alignment: Mapping[str, int] = field(default_factory=dict)
    vector_dtypes: frozenset[str] = frozenset()
    modes: frozenset[str] = frozenset()
    npu_smi: str = ""
    products: tuple[str, ...] = ()
    stands_for: tuple[str, ...] = ()
    variant_of: str = ""
    caution: str = field(default="", compare=False)

    def __hash__(self) -> int:
        return hash(self.name)

    def peak_flops_per_s(self, dtype: str = "f16") -> float:
        """Operations a second of all cube cores at that element type, 0 where it lacks it."""
        return 2.0 * self.cube_macs.get(dtype, 0) * self.cube_cores * self.clock_hz

    def peak_vector_per_s(self, dtype: str = "f16") -> float:
        """Elements a second that all vector units take; an element type that they lack is widened to fp32."""
        width = {"f16": 2, "i16": 2, "u16": 2, "i8": 1, "u8": 1}.get(dtype, 4) if dtype in self.vector_dtypes else 4
        return self.vector_nbytes / max(width, 2) * self.vector_cores * self.vector_clock_hz


@cache
def chips() -> tuple[Chip, ...]:
    """Every chip that is known, the bins of one file after the chip that gives the file its name."""
    names = sorted(path.name for path in _CHIPS.glob("*.toml"))
    return tuple(chip for name in names for chip in _read(read_toml(_CHIPS / name)))


def find_chip(name: str) -> Chip:
    """The chip that a name means: CANN's soc_version in any case, npu-smi's name, or a product's name where that has one chip only.

    >>> find_chip("910b4").name, find_chip("Ascend310P3").name, find_chip("Atlas 300I Duo").name
    ('Ascend910B4', 'Ascend310P3', 'Ascend310P3')

    A name that means more than one chip gives the chip with a `caution` where one is meant by the tools themselves, else an error.

    >>> find_chip("910B").caution
    "npu-smi's bare 910B is the first generation (30 cores, no bf16; it may be a 910ProB); for Atlas A2 name 910B1, 910B2, 910B3 or 910B4"
    """
    exact, families, products = _index()
    key = _key(name)
    if key in exact:
        return exact[key]
    if key in families:
        return families[key]
    found = products.get(key, ())
    if len(found) == 1:
        return found[0]
    names = ", ".join(c.name for c in found)
    hint = "`npu-smi info` prints the name; `jumar soc list` lists all"
    if found:
        raise DeviceError(f"soc: the name must mean one chip, got {name!r}, which is built with {names}", hint=hint, code="soc-unknown")
    close = _nearest(key)
    hint = f"{close} {hint}" if close else hint
    raise DeviceError(f"soc: the name must be one of {len(chips())} known chips, got {name!r}", hint=hint, code="soc-unknown")


def _key(name: str) -> str:
    """A name without case, blanks, dashes and the maker: all spellings of one chip."""
    return re.sub(r"[\s_\-()（）]|huawei|华为|昇腾|ascend", "", name.strip().lower())


def _nearest(key: str) -> str:
    """A question after the names that come near, whatever their case and blanks, or an empty text."""
    from difflib import get_close_matches  # noqa: PLC0415  (only an error pays for it)

    exact, families, _ = _index()
    shown = {_key(product): product for c in chips() for product in c.products}
    shown |= {known: chip.name for known, chip in {**families, **exact}.items()}
    close = get_close_matches(key, list(shown), n=3, cutoff=0.6)
    return f"did you mean {' or '.join(dict.fromkeys(shown[known] for known in close))}?" if close else ""


@cache
def _index() -> tuple[dict[str, Chip], dict[str, Chip], dict[str, tuple[Chip, ...]]]:
    """Chips by exact name, by the name of a family for which one of it stands, and by product."""
    exact: dict[str, Chip] = {}
    families: dict[str, Chip] = {}
    products: dict[str, tuple[Chip, ...]] = {}
    for chip in chips():
        for alias in (chip.name, *chip.aliases):
            # a caution about names that stand for it is none for who names it
            exact[_key(alias)] = replace(chip, caution="") if chip.stands_for else chip
        for family in chip.stands_for:
            said = f"{family} names a family: {chip.name} is taken for it; name the chip itself for its own figures"
            families[_key(family)] = replace(chip, caution=". ".join(filter(None, (said, chip.caution))))
        for product in chip.products:
            products[_key(product)] = (*products.get(_key(product), ()), chip)
    return exact, families, products


def _read(table: dict[str, Any]) -> list[Chip]:
    """The chip of a file and its variants, which say only what differs."""
    variants: dict[str, dict[str, Any]] = table.pop("variants", {})
    figures = _flat(table["figures"])
    found = [_chip(table, figures)]
    for name, own in variants.items():
        mine = {
            key: value if isinstance(value, dict) else {**figures[key], "value": value}
            for key, value in _flat(own.pop("figures", {})).items()
        }
        found.append(_chip({**table, "caution": "", **own, "name": name, "variant_of": table["name"]}, {**figures, **mine}))
    return found


def _flat(figures: dict[str, Any]) -> dict[str, Any]:
    """Tables of tables by one key: `links.hccs`."""
    flat: dict[str, Any] = {}
    for key, value in figures.items():
        if isinstance(value, dict) and "value" not in value:
            flat.update({f"{key}.{inner}": figure for inner, figure in value.items()})
        else:
            flat[key] = value
    return flat


_TABLES = ("cube_macs", "links", "rates", "alignment")
_SETS = ("dtypes", "vector_dtypes", "modes")


def _chip(table: dict[str, Any], raw: dict[str, Any]) -> Chip:
    sources = {key: str(text).format(name=table["name"]) for key, text in table["sources"].items()}
    figures = {key: Figure(**{**value, "source": sources[value["source"]]}) for key, value in raw.items()}
    values: dict[str, Any] = {key: figure.value for key, figure in figures.items() if "." not in key}
    for name in _TABLES:
        values[name] = {key.split(".", 1)[1]: figure.value for key, figure in figures.items() if key.startswith(f"{name}.")}
    known = {f.name for f in fields(Chip)}
    for key, value in table.items():
        if key in known and key not in values and key != "figures":
            values[key] = frozenset(value) if key in _SETS else tuple(value) if isinstance(value, list) else value
    missing = [f.name for f in fields(Chip) if f.default is MISSING and f.default_factory is MISSING and f.name not in values]
    assert not missing, f"chips/*.toml: {table['name']} must give {', '.join(missing)}"
    return Chip(**values, figures=figures)
