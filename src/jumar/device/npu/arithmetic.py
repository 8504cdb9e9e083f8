"""The arithmetic of a chip: how it rounds, and what it makes of a number that its type cannot hold.

In: a Chip and the modes that a run has set.  Out: `Arithmetic`, whose functions bring arrays to an element type as that chip does.
It knows arrays only; compiler/twin/numerics.py runs graphs with it.

What the vendor documents, and we do: fp16 and bf16 round to the nearest even; a cube multiplies them exactly and adds in fp32; HF32 keeps 11 bits of
the mantissa, to the nearest even; in saturation mode an infinity becomes the largest number and NaN becomes 0.  What we assume: a kernel
that rounds fp16 is within half a unit of the last place (hardware `exp` and `ln` may be off by one more), and fp32 never saturates.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np

from jumar.base import DTYPES, Array, DeviceError, DType
from jumar.device.npu.chip import Chip

# vector units that have no exp and no division in fp32: kernels written for fp16 work in fp16 from step to step there, elsewhere they widen
_NARROW_VECTORS = frozenset({"Ascend310"})


@dataclass(frozen=True)
class Arithmetic:
    """What decides a chip's results.   chip: its name.

    saturates: past the range comes the largest number, not infinity, and 0 instead of NaN.
    hf32_conv, hf32_matmul: the cube takes fp32 as HF32 in convolutions, in matrix products.
    cube_f32: the cube takes fp32 at all, else as fp16.  bf16: it has that type.
    steps: kernels of several steps (softmax, gelu, a normalization) round after each, else they compute in fp32 and round once.
    """

    chip: str
    saturates: bool
    hf32_conv: bool
    hf32_matmul: bool
    cube_f32: bool
    bf16: bool
    steps: bool

    def rounded(self, x: Array, dtype: DType) -> Array:
        """The array in another floating type, past its range as this chip has it.

        >>> from jumar.base import f16
        >>> from jumar.device.npu import find_chip
        >>> x = np.array([9e4, -1e9, np.nan], np.float32)
        >>> arithmetic(find_chip("910A")).rounded(x, f16).tolist(), arithmetic(find_chip("910B4")).rounded(x, f16).tolist()
        ([65504.0, -65504.0, 0.0], [inf, -inf, nan])
        """
        return rounded(x, dtype, saturates=self.saturates)

    def product_input(self, x: Array, *, conv: bool) -> Array:
        """A floating input of a product as the cube reads it, in fp32: fp16 and bf16 as they are, fp32 as HF32 or fp16 where it must."""
        if x.dtype != np.float32:
            return x.astype(np.float32) if x.dtype.itemsize < 4 else x
        if not self.cube_f32:
            return self.rounded(x, DTYPES["f16"]).astype(np.float32)
        return hf32(x) if (self.hf32_conv if conv else self.hf32_matmul) else x

    def __str__(self) -> str:
        parts = ["saturates" if self.saturates else "inf and nan"]
        if not self.cube_f32:
            parts.append("fp32 products in fp16")
        hf32_for = [name for name, on in (("convolutions", self.hf32_conv), ("matrix products", self.hf32_matmul)) if on]
        parts += [f"HF32 in {' and '.join(hf32_for)}"] if hf32_for else []
        parts += ["kernels of several steps round after each"] if self.steps else []
        return ", ".join(parts)


def arithmetic(chip: Chip, *, infnan: bool | None = None, hf32: bool | None = None, steps: bool | None = None) -> Arithmetic:
    """How `chip` computes.   infnan: infinities and NaN rather than saturation; hf32: fp32 products as HF32; steps: see Arithmetic.

    None is what the chip does where nothing is set: inf and nan where it has them, HF32 in convolutions but not in matrix products.
    """
    if infnan is True and chip.overflow == "saturate":
        what = f"numerics: overflow mode must be saturation on {chip.name}, its only one, got inf and nan"
        raise DeviceError(what, hint="from Atlas A2 on there are infinities", code="soc-mode")
    if infnan is False and chip.overflow == "infnan":
        what = f"numerics: overflow mode must be inf and nan on {chip.name}, its only one, got saturation"
        raise DeviceError(what, hint="Atlas A2 and A3 have both modes, earlier chips saturate", code="soc-mode")
    if hf32 and "hf32" not in chip.modes:
        what = f"numerics: HF32 must be off on {chip.name}, which lacks it, got on"
        raise DeviceError(what, hint="Atlas A2, A3 and the 950 have it", code="soc-mode")
    default = "hf32" in chip.modes and "f32" in chip.cube_macs
    return Arithmetic(
        chip=chip.name,
        saturates=chip.overflow == "saturate" if infnan is None else not infnan,
        hf32_conv=default if hf32 is None else hf32,
        hf32_matmul=bool(hf32),
        cube_f32="f32" in chip.cube_macs,
        bf16="bf16" in chip.dtypes,
        steps=chip.name in _NARROW_VECTORS if steps is None else steps,
    )


def rounded(x: Array, dtype: DType, *, saturates: bool = False) -> Array:
    """The array in floating type `dtype`, to the nearest even.   saturates: ±largest for ±infinity, 0 for NaN

    The 8-bit floats saturate in either mode but for NaN: f8e4m3fn has no infinity.
    """
    with np.errstate(all="ignore"):
        if dtype.bits >= 32:
            return x.astype(dtype.numpy, copy=False)
        top = limits(dtype).largest
        if dtype.bits == 8:
            return np.clip(x.astype(np.float32), -top, top).astype(dtype.numpy)
        y = x.astype(dtype.numpy)
        if saturates:
            wide = y.astype(np.float32)
            if not np.isfinite(wide).all():
                y = np.nan_to_num(wide, nan=0.0, posinf=top, neginf=-top).astype(dtype.numpy)
        return y


def hf32(x: Array) -> Array:
    """fp32 with 11 bits of mantissa, to the nearest even; infinities and NaN stay.   -> fp32

    >>> hf32(np.array([1 + 2**-11, 1 + 2**-12, 1 + 3 * 2**-12], np.float32)).tolist() == [1 + 2**-11, 1.0, 1 + 2**-10]
    True
    """
    bits = np.ascontiguousarray(x, np.float32).view(np.uint32)
    even = (bits >> np.uint32(12)) & np.uint32(1)
    with np.errstate(over="ignore"):
        kept = (bits + (np.uint32(0x7FF) + even)) & np.uint32(0xFFFFF000)
    special = (bits & np.uint32(0x7F800000)) == np.uint32(0x7F800000)
    return np.where(special, bits, kept).view(np.float32).reshape(x.shape)


@dataclass(frozen=True)
class Limits:
    """The range of a floating type.   normal: smallest with all its bits; smallest: smallest above 0; step: from 1 to the next."""

    largest: float
    normal: float
    smallest: float
    step: float

    @property
    def too_large(self) -> float:
        """The least number that rounds past the largest: half a step above it."""
        return self.largest + self.step * 2.0 ** (math.frexp(self.largest)[1] - 2)


def limits(dtype: DType) -> Limits:
    """The range of a floating type.

    >>> limits(DTYPES["f16"]).largest, limits(DTYPES["bf16"]).step
    (65504.0, 0.0078125)
    """
    info: Any = np.finfo(dtype.numpy) if dtype.numpy.kind == "f" else ml_dtypes.finfo(dtype.numpy)  # type: ignore[no-untyped-call]
    return Limits(float(info.max), float(info.smallest_normal), float(info.smallest_subnormal), float(info.eps))
