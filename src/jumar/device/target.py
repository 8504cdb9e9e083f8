"""Target: the machine that code is made for, as data.

In: what `device.cpu` detects, or a test that names another machine.  Out: `Target`, read by `kernel.llvm` (instruction set),
by the schedules (vector width, cache sizes) and by the executor (cores).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # NumPy comes with it
    from jumar.base import DType


@dataclass(frozen=True)
class Target:
    """One machine.   features: LLVM's list, `+avx2,-avx512f`; sizes in bytes; `cores` is what this process may use."""

    name: str
    triple: str
    cpu: str
    features: str
    vector_bits: int
    cores: int = 1
    l1_nbytes: int = 32 << 10
    l2_nbytes: int = 512 << 10
    l3_nbytes: int = 0
    memory_nbytes: int = 0

    @property
    def architecture(self) -> str:
        """`x86_64` or `aarch64`."""
        return self.triple.split("-")[0]

    def has(self, feature: str) -> bool:
        """Whether the features name this one: `target.has("fma")`."""
        return f"+{feature}" in self.features.split(",")

    def lanes(self, dtype: DType) -> int:
        """Elements of `dtype` in one vector register.   f16 and bf16 count as the f32 they are computed in.

        >>> from jumar.base import f32
        >>> Target("cpu", "x86_64-unknown-linux-gnu", "haswell", "+avx2", 256).lanes(f32)
        8
        """
        bits = 32 if dtype.is_float and dtype.bits < 32 else dtype.bits
        return max(1, self.vector_bits // bits)

    @property
    def vector_registers(self) -> int:
        """How many vector registers the instruction set names."""
        return 32 if self.architecture == "aarch64" or self.has("avx512f") else 16

    @property
    def instruction_set(self) -> str:
        """What generated code depends on, for cache keys; sizes and counts are not part of it."""
        return f"{self.triple}/{self.cpu}/{self.features}"

    @property
    def machine(self) -> str:
        """What the speed of generated code depends on: instruction set, cores and caches."""
        return f"{self.instruction_set}/{self.cores} cores/{self.l1_nbytes}/{self.l2_nbytes}/{self.l3_nbytes}"
