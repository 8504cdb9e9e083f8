"""NumPy's scalar class of bfloat16, at the place where MindSpore has it."""

from __future__ import annotations

from ml_dtypes import bfloat16

__all__ = ["bfloat16"]
