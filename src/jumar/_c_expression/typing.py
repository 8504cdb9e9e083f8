"""Classes of element types: those of `jumar.common.dtype`."""

from __future__ import annotations

from jumar.common.dtype import BFloat, Bool, Complex, Float, Int, List, Number, String, TensorType, Tuple, Type, UInt

__all__ = ["BFloat", "Bool", "Complex", "Float", "Int", "List", "Number", "String", "TensorType", "Tuple", "Type", "UInt"]
