"""`jit` and what belongs to it: configuration, switching gradients off, executors, under the names of `mindspore.common.api`.

In: `jumar.frontend.capture`.  Out: what scripts and third-party packages import.  Where MindSpore's function steers its own compiler and Jumar has nothing to
steer, the function checks its arguments and gives the object back; where it promises a result that Jumar cannot give, it raises.
"""

from __future__ import annotations

import contextlib
import gc
import inspect
import threading
from collections.abc import Callable, Iterator
from typing import Any, NoReturn, TypeVar

from jumar.context import set_context
from jumar.frontend.capture import jit, jit_class
from jumar.frontend.promote import is_floating
from jumar.frontend.recorder import Recorder, is_capturing
from jumar.frontend.tensor import LOCAL, Tensor
from jumar.operators import StopGradient

F = TypeVar("F", bound=Callable[..., Any])
_LEVELS = {
    "jit_level": ("O0", "O1", "O2"), "exc_mode": ("auto", "sink", "no_sink"), "jit_syntax_level": ("STRICT", "LAX"), "debug_level": ("RELEASE", "DEBUG"),
    "infer_boost": ("on", "off"),
}  # fmt: skip


class JitConfig:
    """Wishes about compiling: checked and kept.   Jumar always compiles at its best level."""

    def __init__(
        self, jit_level: str = "", exc_mode: str = "auto", jit_syntax_level: str = "", debug_level: str = "RELEASE", infer_boost: str = "off",
        **kwargs: Any,
    ) -> None:  # fmt: skip
        given = {"jit_level": jit_level, "exc_mode": exc_mode, "jit_syntax_level": jit_syntax_level, "debug_level": debug_level,
                 "infer_boost": infer_boost}  # fmt: skip
        for name, value in given.items():
            if value not in ("", *_LEVELS[name]):
                raise ValueError(f"For '{name}' must be one of {list(_LEVELS[name])}.")
        self.jit_config_dict: dict[str, Any] = {**given, **kwargs}


# ---------------------------------------------------------------------- gradients switched off
class _Switch(threading.local):
    on = True


_SWITCH = _Switch()


def grad_enabled() -> bool:
    """Whether gradients are recorded in this thread."""
    return _SWITCH.on


def set_grad_enabled(on: bool) -> None:
    """Switches the recording of gradients: what is computed while it is off counts as constant."""
    _SWITCH.on = on
    recorder = LOCAL.recorder
    if recorder is None:
        return
    if on:
        recorder.__dict__.pop("apply", None)
        recorder.__dict__.pop("compute", None)
    elif "apply" not in recorder.__dict__:
        recorder.__dict__["apply"] = _stopped(recorder, type(recorder).apply)
        recorder.__dict__["compute"] = _stopped(recorder, type(recorder).compute)


def _stopped(recorder: Recorder, method: Callable[..., Any]) -> Callable[..., Any]:
    plain = type(recorder).apply

    def stop(value: Any) -> Any:
        if isinstance(value, tuple | list):
            return type(value)([stop(v) for v in value])
        return plain(recorder, StopGradient(), (value,)) if isinstance(value, Tensor) and is_floating(value) else value

    def run(*args: Any) -> Any:
        return stop(method(recorder, *args))

    return run


class _no_grad(contextlib.ContextDecorator):  # noqa: N801  (MindSpore's name)
    """A block or function whose results count as constants: `with _no_grad():`, `@_no_grad()`."""

    def __init__(self) -> None:
        self._before: list[bool] = []

    def _recreate_cm(self) -> _no_grad:
        return _no_grad()

    def __enter__(self) -> _no_grad:
        self._before.append(_SWITCH.on)
        set_grad_enabled(False)
        return self

    def __exit__(self, *_: object) -> None:
        set_grad_enabled(self._before.pop())


# ---------------------------------------------------------------------- marks
def mutable(input_data: Any, dynamic_len: bool = False) -> Any:
    """The value itself: in Jumar every argument may change from call to call.   Values of other kinds are refused, as in MindSpore."""
    _check_mutable(input_data, input_data, ())
    if dynamic_len and not isinstance(input_data, tuple | list):
        raise TypeError(
            f"For 'mutable', when the argument 'dynamic_len' is True, the 'input_data' should be list or tuple, but got {input_data}."
        )
    return input_data


def _check_mutable(value: Any, whole: Any, above: tuple[int, ...]) -> None:
    if isinstance(value, tuple | list | dict) and id(value) not in above:
        for inner in value.values() if isinstance(value, dict) else value:
            _check_mutable(inner, whole, (*above, id(value)))
    elif not isinstance(value, bool | int | float | Tensor):
        raise TypeError(
            "For 'mutable', the 'input_data' should be one of (bool, int, float, Tensor, tuple, list, dict) or their nested structures with no "
            f"self-reference, but got {type(whole).__name__}: {whole}."
        )


def lazy_inline(fn: F | None = None, attrs: Any = None, policy: Any = None) -> Any:
    """Marks a cell's `__init__`: MindSpore compiles such cells once.   Jumar's segments are shared by structure in any case."""
    return lazy_inline_mark if fn is None else fn


def lazy_inline_mark(fn: F) -> F:
    """The function itself."""
    return fn


def no_inline(fn: F | None = None) -> Any:
    """Marks a function that MindSpore compiles on its own; the function itself."""
    return no_inline_mark if fn is None else fn


def no_inline_mark(fn: F) -> F:
    """The function itself."""
    return fn


def enable_dynamic(**kwargs: Any) -> Callable[[F], F]:
    """Says which dimensions of arguments change.   Jumar needs no telling; names that the function does not have are an error."""

    def mark(fn: F) -> F:
        known = inspect.signature(fn).parameters
        unknown = [name for name in kwargs if name not in known]
        if unknown:
            raise ValueError(f"enable_dynamic: arguments must be those of {fn.__name__}, got {', '.join(unknown)}")
        return fn

    return mark


class Symbol:
    """A dimension that changes: bounds and divisor, for `Cell.set_inputs`."""

    def __init__(self, max: int = 0, min: int = 1, divisor: int = 1, remainder: int = 0, unique: bool = False, **kwargs: Any) -> None:
        for name, value in (("max", max), ("min", min), ("divisor", divisor), ("remainder", remainder)):
            if not isinstance(value, int) or isinstance(value, bool):
                raise TypeError(f"For 'Symbol', the argument '{name}' must be int, but got {type(value)}.")
        if min < 0 or divisor < 1 or (max and max < min):
            raise ValueError(f"For 'Symbol', the value of 'max', 'min' and 'divisor' must fit, but got {max}, {min} and {divisor}.")
        self.max, self.min, self.divisor, self.remainder, self.unique = max, min, divisor, remainder, unique

    def to_dict(self) -> dict[str, Any]:
        """Bounds and divisor by name."""
        return {"max": self.max, "min": self.min, "divisor": self.divisor, "remainder": self.remainder, "unique": self.unique}

    def __str__(self) -> str:
        return str(self.to_dict())


def set_recursion_limit(recursion_limit: int = 1000) -> None:
    """How deep calls may nest in a graph: kept in the context."""
    if not isinstance(recursion_limit, int) or isinstance(recursion_limit, bool):
        raise TypeError(f"The argument 'recursion_limit' must be type of int, but got {type(recursion_limit)}.")
    set_context(max_call_depth=recursion_limit)


def ms_memory_recycle() -> None:
    """Frees what nothing refers to any more."""
    gc.collect()


_ms_memory_recycle = ms_memory_recycle


def flops_collection(phase: str = "train") -> NoReturn:
    """Raises: graphs are counted by `jumar enable`."""
    raise NotImplementedError("flops_collection: floating-point operations of a captured graph are not counted yet")


class saved_tensors_hooks:  # noqa: N801  (MindSpore's name)
    """Hooks on what the backward pass keeps: not here, since the compiler decides what is kept."""

    def __init__(self, pack_hook: Any, unpack_hook: Any) -> None:
        raise NotImplementedError("saved_tensors_hooks: the compiler decides what the backward pass keeps; hooks on it do not exist here")


def register_saved_tensors_hooks(pack_hook: Any, unpack_hook: Any) -> NoReturn:
    """Raises, as `saved_tensors_hooks` does."""
    raise NotImplementedError(
        "register_saved_tensors_hooks: the compiler decides what the backward pass keeps; hooks on it do not exist here"
    )


def _function_forbid_reuse(func: F) -> F:
    """The function itself: Jumar keeps no graph of it that could be reused wrongly."""
    return func


def _run_in_jit() -> bool:
    """Whether a function is being captured."""
    return is_capturing()


# ---------------------------------------------------------------------- executors
class _PyNativeExecutor:
    """The names that third-party code calls on MindSpore's eager executor."""

    @staticmethod
    def sync() -> None:
        """Nothing to wait for: an operator has run when its call returns."""

    @staticmethod
    def enable_grad() -> bool:
        """Whether gradients are recorded."""
        return grad_enabled()

    @staticmethod
    def set_enable_grad(flag: bool) -> None:
        """Switches the recording of gradients."""
        set_grad_enabled(flag)

    @staticmethod
    def requires_grad() -> bool:
        """Whether a gradient is being recorded now."""
        return LOCAL.recorder is not None and grad_enabled()

    @staticmethod
    def clear_res() -> None:
        """Frees what nothing refers to any more."""
        gc.collect()

    def __getattr__(self, name: str) -> NoReturn:
        raise AttributeError(
            f"_pynative_executor has no {name!r}: MindSpore's eager executor is not here; sync, enable_grad, set_enable_grad are"
        )


class _CellGraphExecutor:
    """MindSpore's graph executor: Jumar has none; calling the cell captures and compiles it."""

    def __getattr__(self, name: str) -> NoReturn:
        raise AttributeError(f"_cell_graph_executor has no {name!r}: calling the cell in GRAPH_MODE captures and compiles it")


_pynative_executor = _PyNativeExecutor()
_cell_graph_executor = _CellGraphExecutor()
cells_compile_cache: dict[int, Any] = {}


@contextlib.contextmanager
def _unsafe_preserve_version_counter(*tensors: Tensor) -> Iterator[None]:
    """A block; tensors have no version counter here."""
    yield


__all__ = [
    "JitConfig", "Symbol", "_no_grad", "enable_dynamic", "flops_collection", "jit", "jit_class", "lazy_inline", "ms_memory_recycle", "mutable",
    "no_inline", "register_saved_tensors_hooks", "saved_tensors_hooks", "set_recursion_limit",
]  # fmt: skip
