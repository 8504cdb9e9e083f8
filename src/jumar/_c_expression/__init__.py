"""Names of MindSpore's C++ module that third-party packages import: the few that mean something outside of it.

In: `jumar.frontend`.  Out: `TensorPy`, `typing`, `amp`, `frombuffer` and their like.  All others raise AttributeError.
"""

from __future__ import annotations

import gc
from typing import Any

import numpy as np

from jumar._c_expression import amp, typing
from jumar.common import dtype as _types
from jumar.context import get_context, set_context
from jumar.frontend.tensor import Tensor as _Tensor
from jumar.frontend.tensor import wrap

Tensor = TensorPy = Tensor_ = _Tensor  # its names in MindSpore 2.2, 2.6 and 2.10


class MSContext:
    """The context as C++ code has it."""

    _instance: MSContext | None = None

    @classmethod
    def get_instance(cls) -> MSContext:
        """The only one."""
        if cls._instance is None:
            cls._instance = cls()
        return cls._instance

    @staticmethod
    def get_ascend_soc_version() -> str:
        """Empty: there is no Ascend chip."""
        return ""

    @staticmethod
    def get_target() -> str:
        """The device that runs."""
        return str(get_context("device_target"))

    @staticmethod
    def get_param(key: str) -> Any:
        """A key of the context, by its name."""
        return get_context(key)

    @staticmethod
    def set_param(key: str, value: Any) -> None:
        """Sets a key of the context, by its name."""
        set_context(**{key: value})


def frombuffer(buffer: Any, dtype: Any = None, count: int = -1, offset: int = 0) -> _Tensor:
    """A tensor over the bytes of a buffer, shared where the buffer can be written to."""
    found = np.frombuffer(buffer, _types.float32.numpy if dtype is None else dtype.numpy, count, offset)
    return wrap(found if found.flags.writeable else found.copy())


def _reuse_data_ptr(dst: _Tensor, src: _Tensor, offset: int = 0) -> None:
    """`dst` becomes a view of the elements of `src` from `offset` on."""
    size = dst.size
    dst._value = src.array.reshape(-1)[offset : offset + size].reshape(dst.shape)


def _empty_instance(cls: Any) -> Any:
    """An object whose `__init__` has not run."""
    return cls.__new__(cls)


def _ms_memory_recycle() -> None:
    """Frees what nothing refers to any more."""
    gc.collect()


def disable_multi_thread() -> None:
    """One thread: operators have run when their calls return, in any case."""


def __getattr__(name: str) -> Any:
    if name in ("Cell_", "CellPy"):  # `nn` is made of this room
        from jumar.nn import Cell  # noqa: PLC0415

        return Cell
    raise AttributeError(f"module 'jumar._c_expression' has no attribute {name!r}: MindSpore's C++ code is not here")


__all__ = ["MSContext", "TensorPy", "Tensor_", "amp", "disable_multi_thread", "frombuffer", "typing"]
