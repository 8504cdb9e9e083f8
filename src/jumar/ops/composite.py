"""Functions over structures of tensors: `HyperMap`, `Map`, functions chosen by the types of their arguments, `GradOperation`.

In: functions and (nested) tuples and lists.  Out: structures of the same form.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from jumar.frontend import dtype as types
from jumar.frontend.dtype import Type
from jumar.frontend.grad import GradOperation
from jumar.frontend.parameter import Parameter
from jumar.frontend.tensor import Tensor
from jumar.ops import places
from jumar.ops.arithmetic import add, clip_by_value, floor_divide, mul, pow, remainder, sub
from jumar.ops.creation import ones_like, zeros_like
from jumar.ops.normalization import clip_by_global_norm
from jumar.ops.random import gamma, laplace, multinomial, normal, uniform


class MultitypeFuncGraph:
    """A function that is chosen by the types of its arguments, among those that were registered under one name."""

    def __init__(self, name: str, read_value: bool = False, doc_url: str = "") -> None:
        self.name = name
        self.entries: list[tuple[tuple[Any, ...], Callable[..., Any]]] = []

    def register(self, *type_names: Any, **_: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
        """The decorator of a function for arguments of those types ("Tensor", "Number", ms types ...)."""

        def enter(function: Callable[..., Any]) -> Callable[..., Any]:
            self.entries.append((tuple(type_names), function))
            return function

        return enter

    def register_default(self) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
        """The decorator of the function for all other arguments."""

        def enter(function: Callable[..., Any]) -> Callable[..., Any]:
            self.entries.append((("...",), function))
            return function

        return enter

    def set_need_raise(self) -> None:
        """That no match is an error: it always is."""

    def __call__(self, *args: Any) -> Any:
        default = None
        for names, function in self.entries:
            if names == ("...",):
                default = function
            elif _fits(names, args):
                return function(*args)
        if default is not None:
            return default(*args)
        shown = ", ".join(type(a).__name__ for a in args)
        raise TypeError(f"{self.name}: arguments must fit one of its {len(self.entries)} signatures, got ({shown})")


def _fits(names: tuple[Any, ...], args: tuple[Any, ...]) -> bool:
    if len(names) == 1 and isinstance(names[0], list | tuple):
        names = tuple(names[0])
    return len(names) == len(args) and all(_is_a(n, a) for n, a in zip(names, args, strict=True))


def _is_a(name: Any, arg: Any) -> bool:
    """Whether an argument is of a type by MindSpore's names."""
    if isinstance(name, Type):
        if name is types.tensor_type:
            return isinstance(arg, Tensor)
        if name is types.number:
            return isinstance(arg, int | float | np.number) and not isinstance(arg, Tensor)
        if name is types.type_none:
            return arg is None
        if name in (types.tuple_type, types.list_type):
            return isinstance(arg, tuple if name is types.tuple_type else list)
        if name is types.function:
            return callable(arg)
        kinds: dict[str, Any] = {"Int": int, "UInt": int, "Float": float, "Bool": bool, "String": str}
        return isinstance(arg, kinds.get(name.kind, ())) and (name.kind == "Bool") == isinstance(arg, bool)
    if isinstance(name, type):
        return isinstance(arg, name)
    text = str(name).lower()
    if text in ("function", "func"):
        return callable(arg) and not isinstance(arg, Tensor)
    table: dict[str, Any] = {
        "tensor": Tensor, "parameter": Parameter, "number": (int, float, complex, np.number), "int": int, "float": float, "bool": bool,
        "string": str, "tuple": tuple, "list": list, "dict": dict, "dictionary": dict, "none": type(None), "typenone": type(None),
        "null": type(None), "slice": slice, "ellipsis": type(Ellipsis), "ref": Parameter, "undeterminedtype": object, "int64": int, "float32": float,
        "int32": int, "float64": float,
    }  # fmt: skip
    wanted = table.get(text)
    if wanted is None and text in ("rowtensor", "mapparameter", "cootensor", "csrtensor", "keyword", "any"):
        return type(arg).__name__.lower() == text
    if wanted is None:
        raise TypeError(f"MultitypeFuncGraph: type name must be known, got {name!r}")
    if wanted is int and isinstance(arg, bool):
        return False
    return isinstance(arg, wanted)


class HyperMap:
    """Applies a function to the leaves of structures of one form.   reverse: from the last to the first."""

    def __init__(self, ops: Callable[..., Any] | None = None, reverse: bool = False) -> None:
        self.ops, self.reverse = ops, reverse

    def __call__(self, *args: Any) -> Any:
        function, rest = (args[0], args[1:]) if self.ops is None else (self.ops, args)
        return self._walk(function, rest)

    def _walk(self, function: Callable[..., Any], parts: tuple[Any, ...]) -> Any:
        first = next((p for p in parts if isinstance(p, tuple | list)), None)
        if first is None or any(not isinstance(p, tuple | list) for p in parts):
            return function(*parts)
        if any(len(p) != len(first) for p in parts):
            raise ValueError(f"HyperMap: structures must have one length, got {', '.join(str(len(p)) for p in parts)}")
        rows = list(zip(*parts, strict=True))
        found = [self._walk(function, row) for row in (reversed(rows) if self.reverse else rows)]
        if self.reverse:
            found.reverse()
        return found if isinstance(first, list) else tuple(found)


class Map(HyperMap):
    """Applies a function to the elements of sequences, one level deep."""

    def _walk(self, function: Callable[..., Any], parts: tuple[Any, ...]) -> Any:
        if not parts or not isinstance(parts[0], tuple | list):
            return function(*parts)
        rows = list(zip(*parts, strict=True))
        found = [function(*row) for row in (reversed(rows) if self.reverse else rows)]
        if self.reverse:
            found.reverse()
        return found if isinstance(parts[0], list) else tuple(found)


def core(fn: Any = None, **flags: Any) -> Any:
    """Marks a function for the graph language: capture needs no marks."""
    return fn if fn is not None else lambda function: function


def add_flags(fn: Any = None, **flags: Any) -> Any:
    """Notes flags on a function or cell."""

    def enter(target: Any) -> Any:
        target._func_graph_flags = {**getattr(target, "_func_graph_flags", {}), **flags}
        return target

    return enter(fn) if fn is not None else enter


def env_get(*args: Any) -> Any:
    """Environments of gradients exist inside of MindSpore only."""
    raise NotImplementedError("composite.env_get: gradients are nodes here; use ops.GradOperation or value_and_grad")


def _add(x: Any, y: Any) -> Any:
    return add(x, y)


zip_operation = zip
hyper_add = MultitypeFuncGraph("hyper_add")
hyper_add.register("Tensor", "Tensor")(_add)
hyper_add.register("Tuple", "Tuple")(HyperMap(hyper_add))
hyper_add.register("Number", "Number")(lambda x, y: x + y)
index_add = places.index_add_rows
augassign_add, augassign_sub, augassign_mul = add, sub, mul
augassign_floordiv, augassign_mod = floor_divide, remainder
power = pow


__all__ = [
    "GradOperation", "HyperMap", "Map", "MultitypeFuncGraph", "add_flags", "clip_by_global_norm", "clip_by_value", "core", "env_get", "gamma",
    "hyper_add", "laplace", "multinomial", "normal", "ones_like", "uniform", "zeros_like", "zip_operation",
]  # fmt: skip
