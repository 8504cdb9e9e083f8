"""`Chip`: one Ascend SoC as data, and `find_chip`, which resolves the names that users meet.

In: chips/*.toml, one file a SoC, every figure with its kind and source.  Out: `Chip`, read by everything that speaks of an NPU.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


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
    cube_macs: multiply-adds a cycle of one cube core, by element type (`f16`, `bf16`, `i8`, `f32`, `hf32`); a type that is absent is not supported.
    vector_nbytes: bytes that one vector unit takes in a cycle.  Sizes in bytes, clocks in Hz, rates in bytes/s of the whole chip.
    dtypes: element types its kernels take.  overflow: what fp16 arithmetic does past the range, `saturate`, `infnan` or `both` (a mode).
    figures: where each of these comes from, by field name.
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

    def peak_flops_per_s(self, dtype: str = "f16") -> float:
        """Operations a second of all cube cores at that element type, 0 where it lacks it."""
        return 2.0 * self.cube_macs.get(dtype, 0) * self.cube_cores * self.clock_hz
