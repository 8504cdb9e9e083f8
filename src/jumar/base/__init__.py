"""The ground floor: types, errors, settings and traces that every other room shares.

Types and choices are imported when they are first asked for: they bring NumPy, for which a command that reads texts would wait a tenth of a second.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from jumar.base.config import SETTINGS, Setting, code_settings, config
from jumar.base.errors import (
    CompileError,
    DeviceError,
    ImportFault,
    IRError,
    KernelError,
    Loc,
    OpError,
    RuntimeFault,
    StackError,
    ToolError,
    did_you_mean,
    during,
    nearest,
)
from jumar.base.said import UNSAID, Language, Said, reason, told
from jumar.base.store import Store, seal, unseal
from jumar.base.toml import read_toml, toml_of
from jumar.base.trace import Event, Span, event, recording, span

if TYPE_CHECKING:
    from jumar.base.choices import Asked, Option, Question, choices_key, choose, code_version, keep_choices, trying
    from jumar.base.types import (
        DTYPES,
        NATIVE,
        Array,
        Dim,
        DType,
        TensorType,
        bf16,
        bool_,
        c64,
        c128,
        dtype_of,
        f4e2m1,
        f8e4m3fn,
        f8e4m3fnuz,
        f8e5m2,
        f8e5m2fnuz,
        f8e8m0,
        f16,
        f32,
        f64,
        i2,
        i4,
        i8,
        i16,
        i32,
        i64,
        parse_type,
        str_,
        type_of,
        u2,
        u4,
        u8,
        u16,
        u32,
        u64,
    )

_FACES: dict[str, str] = {  # where each name lives: file -> its names
    "choices": "Asked Option Question choices_key choose code_version keep_choices trying",
    "types": (
        "DTYPES NATIVE Array Dim DType TensorType bf16 bool_ c64 c128 dtype_of f4e2m1 f8e4m3fn f8e4m3fnuz f8e5m2 f8e5m2fnuz "
        "f8e8m0 f16 f32 f64 i2 i4 i8 i16 i32 i64 parse_type str_ type_of u2 u4 u8 u16 u32 u64"
    ),
}
_PLACES = {name: file for file, names in _FACES.items() for name in names.split()}

__all__ = [
    "Array",
    "Asked",
    "CompileError",
    "DTYPES",
    "DType",
    "DeviceError",
    "Dim",
    "Event",
    "IRError",
    "ImportFault",
    "KernelError",
    "Language",
    "Loc",
    "NATIVE",
    "OpError",
    "Option",
    "Question",
    "RuntimeFault",
    "SETTINGS",
    "Said",
    "Setting",
    "Span",
    "StackError",
    "Store",
    "TensorType",
    "ToolError",
    "UNSAID",
    "bf16",
    "bool_",
    "c128",
    "c64",
    "choices_key",
    "choose",
    "code_settings",
    "code_version",
    "config",
    "did_you_mean",
    "dtype_of",
    "during",
    "event",
    "f16",
    "f32",
    "f4e2m1",
    "f64",
    "f8e4m3fn",
    "f8e4m3fnuz",
    "f8e5m2",
    "f8e5m2fnuz",
    "f8e8m0",
    "i16",
    "i2",
    "i32",
    "i4",
    "i64",
    "i8",
    "keep_choices",
    "nearest",
    "parse_type",
    "read_toml",
    "reason",
    "recording",
    "seal",
    "span",
    "str_",
    "told",
    "toml_of",
    "trying",
    "type_of",
    "u16",
    "u2",
    "u32",
    "u4",
    "u64",
    "u8",
    "unseal",
]


def __getattr__(name: str) -> Any:
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(f"{__name__}.{_PLACES[name]}"), name)
    globals()[name] = value
    return value
