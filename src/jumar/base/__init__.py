"""The ground floor: types, errors, settings and traces that every other room shares."""

from jumar.base.choices import Asked, Option, Question, choices_key, choose, code_version, keep_choices, trying
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
from jumar.base.said import Language, Said, reason, told
from jumar.base.store import Store, seal, unseal
from jumar.base.toml import read_toml
from jumar.base.trace import Event, Span, event, recording, span
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

__all__ = [name for name in dir() if not name.startswith("_")]
