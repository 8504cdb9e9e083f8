"""`Primitive`: an operator with its attributes as an object: `ops.Softmax(axis=1)(x)`; and the decorators that stand beside it in client code.

In: a name and attributes.  Out: callables.  The table of all of them is primitives.py.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any, ClassVar, TypeVar

F = TypeVar("F", bound=Callable[..., Any])


class Primitive:
    """An operator as an object.   name: its name; attrs: what was set by `add_prim_attr`.

    Subclasses of users have no kernel: calling them says so, unless they define `__call__` (or, as MindSpore's older examples do, `construct`).
    """

    _repr_ignore_list: ClassVar[list[str]] = ["input_names", "output_names"]
    parameters: ClassVar[tuple[tuple[str, Any], ...]] = ()
    compute: ClassVar[Any] = None

    def __init__(self, name: str) -> None:
        self.name = name
        self.attrs: dict[str, Any] = {}
        self.init_attrs: dict[str, Any] = {"name": name}
        self.instance_name: str | None = None

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if type(self).compute is None:
            raise NotImplementedError(f"{self.name}: Primitive must be one that Jumar has or define __call__, got one without a kernel")
        return type(self).compute(self, *args, **kwargs)

    def add_prim_attr(self, name: str, value: Any) -> Primitive:
        """Sets an attribute."""
        self.attrs[name] = value
        self.__dict__[name] = value
        return self

    def del_prim_attr(self, name: str) -> Primitive:
        """Removes an attribute."""
        self.attrs.pop(name, None)
        self.__dict__.pop(name, None)
        return self

    _add_prim_attr = add_prim_attr
    _set_prim_attr = add_prim_attr

    def get_attr_dict(self) -> dict[str, Any]:
        """The attributes."""
        return dict(self.attrs)

    def init_prim_io_names(self, inputs: Any, outputs: Any) -> None:
        """Names of inputs and outputs."""
        self.attrs["input_names"], self.attrs["output_names"] = inputs, outputs

    def set_prim_instance_name(self, name: str) -> Primitive:
        """The name of this instance."""
        self.instance_name = name
        return self

    def shard(self, in_strategy: Any = None, out_strategy: Any = None) -> Primitive:
        """How the operator is cut among devices: on one device nothing is."""
        self.attrs["in_strategy"], self.attrs["out_strategy"] = in_strategy, out_strategy
        return self

    def set_stage(self, stage: int) -> Primitive:
        """The pipeline stage."""
        return self.add_prim_attr("stage", stage)

    def set_device(self, device_target: str) -> Primitive:
        """Where the operator runs."""
        return self.add_prim_attr("primitive_target", device_target)

    def place(self, role: str, rank_id: int) -> Primitive:
        """Which process runs the operator."""
        return self

    def recompute(self, mode: bool = True) -> Primitive:
        """Whether gradients compute the operator again."""
        return self.add_prim_attr("recompute", mode)

    def set_recompute(self, mode: bool = True) -> Primitive:
        """Whether gradients compute the operator again."""
        return self.recompute(mode)

    def infer_shape(self, *shapes: Any) -> Any:
        raise NotImplementedError(f"{self.name}: infer_shape must be defined by the subclass")

    @property
    def update_parameter(self) -> bool:
        """Whether the operator writes to a parameter."""
        return bool(self.attrs.get("side_effect_mem", False))

    def __repr__(self) -> str:
        shown = ", ".join(f"{k}={v}" for k, v in self.attrs.items() if k not in self._repr_ignore_list)
        return f"Prim[{self.name}]<{shown}>" if shown else f"Prim[{self.name}]"


class PrimitiveWithInfer(Primitive):
    """The older base of users' own primitives."""


class PrimitiveWithCheck(Primitive):
    """The older base of users' own primitives."""


class PrimitiveWithUserDefinedInfer(Primitive):
    """The older base of users' own primitives."""


REQUIRED = object()


def make(name: str, compute: Callable[..., Any], **parameters: Any) -> type[Primitive]:
    """The class of a primitive.   compute: (self, *inputs); parameters: what __init__ takes, with defaults, REQUIRED for none."""
    given = tuple(parameters.items())
    signature = inspect.Signature(
        [
            inspect.Parameter(n, inspect.Parameter.POSITIONAL_OR_KEYWORD, default=inspect.Parameter.empty if d is REQUIRED else d)
            for n, d in given
        ]
    )

    def init(self: Any, *args: Any, **kwargs: Any) -> None:
        Primitive.__init__(self, name)
        try:
            bound = signature.bind(*args, **kwargs)
        except TypeError as error:
            raise TypeError(f"ops.{name}: arguments must be ({', '.join(n for n, _ in given)}): {error}") from error
        bound.apply_defaults()
        self.attrs.update(bound.arguments)
        self.init_attrs.update(bound.arguments)
        self.__dict__.update(bound.arguments)

    return type(name, (Primitive,), {
        "__init__": init, "__module__": "jumar.ops.primitives", "__doc__": (compute.__doc__ or "").split("\n")[0], "parameters": given,
        "compute": compute, "__signature__": signature,
    })  # fmt: skip


def simple(name: str, function: Callable[..., Any]) -> type[Primitive]:
    """The class of a primitive without attributes that is one function."""

    def compute(self: Any, *args: Any, **kwargs: Any) -> Any:
        return function(*args, **kwargs)

    compute.__doc__ = function.__doc__
    return make(name, compute)


# ----------------------------------------------------------------------------------------------------------- decorators
def constexpr(fn: Any = None, get_instance: bool = True, name: str | None = None, reuse_result: bool = True, check: bool = True) -> Any:
    """A function whose result is known when a graph is made: the Python function itself, since capture runs Python."""
    if fn is not None:
        return fn
    return lambda function: function


_primexpr = constexpr


def prim_attr_register(fn: F) -> F:
    """The decorator of a primitive's __init__: arguments become attributes."""
    signature = inspect.signature(fn)

    @functools.wraps(fn)
    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        if not hasattr(self, "attrs"):
            Primitive.__init__(self, type(self).__name__)
        bound = signature.bind(self, *args, **kwargs)
        bound.apply_defaults()
        for key, value in list(bound.arguments.items())[1:]:
            self.attrs[key] = value
            self.__dict__[key] = value
            self.init_attrs[key] = value
        return fn(self, *args, **kwargs)

    return call  # type: ignore[return-value]


def prim_arg_register(fn: F) -> F:
    """The decorator of a primitive's __init__: arguments become attributes."""
    return prim_attr_register(fn)


def _run_op(primitive: Any, name: str, args: Any) -> Any:
    """Calls a primitive."""
    return primitive(*args)


__all__ = [
    "Primitive", "PrimitiveWithCheck", "PrimitiveWithInfer", "PrimitiveWithUserDefinedInfer", "constexpr", "prim_arg_register",
    "prim_attr_register",
]  # fmt: skip
