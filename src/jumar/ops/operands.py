"""What all functions of this room share: unary and binary operators as functions, axes, shapes and keyword names.

In: operator definitions, and whatever users give for tensors, axes and shapes.  Out: functions that end in `apply`, and plain tuples of ints.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from jumar.base import Array, nearest
from jumar.frontend.dtype import Type, as_type
from jumar.frontend.engine import apply
from jumar.frontend.promote import as_tensor, cast, floating, numpy_dtype, operands
from jumar.frontend.tensor import LOCAL, Scalar, Tensor, scalar, wrap
from jumar.ir import Op
from jumar.operators import Broadcast

F32 = np.dtype(np.float32)
I64 = np.dtype(np.int64)
I32 = np.dtype(np.int32)
BOOL = np.dtype(np.bool_)
Function = Callable[..., Any]

# names of one and the same argument in the three interfaces (mindspore.ops, mindspore.mint, Tensor)
SYNONYMS: tuple[frozenset[str], ...] = tuple(
    frozenset(group.split())
    for group in (
        "input x input_x x1 self tensor input1 logits inputs a A X abs start",
        "other y x2 input2 value exponent vec2 mat2 b tensor2 label labels",
        "dim axis dims axes concat_dim dim0 axis0",
        "dim1 axis1",
        "keepdim keepdims keep_dims",
        "tensors inputs input_x arrays values",
        "dtype d_type",
        "size shape dims",
        "dims reps multiples input_perm",
        "index indices",
        "target label labels",
        "split_size_or_sections indices_or_sections split_size",
        "correction ddof",
        "diagonal offset k",
        "min clip_value_min",
        "max clip_value_max",
        "fill_value value",
        "negative_slope alpha",
        "repeats rep",
        "eps epsilon",
        "num_classes depth",
        "pad padding paddings",
        "mat1 input",
        "steps num",
        "src updates update source",
        "boundaries sorted_sequence",
    )
)


def lenient(function: Function) -> Function:
    """The function, which also takes its keyword arguments by their names in the other interfaces (`axis` for `dim`, `shape` for `*shape`)."""
    parameters = inspect.signature(function).parameters
    if any(p.kind is p.VAR_KEYWORD for p in parameters.values()):
        return function
    several = next((n for n, p in parameters.items() if p.kind is p.VAR_POSITIONAL), None)
    known = frozenset(n for n in parameters if n != several)
    table: dict[str, str] = {}
    for own in reversed([n for n in parameters if n != several]):  # where two could be meant, the first parameter of the group is
        for group in SYNONYMS:
            if own in group:
                table |= dict.fromkeys(group - known, own)
    spread = frozenset(n for group in SYNONYMS if several in group for n in group) - known

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        if kwargs and not kwargs.keys() <= known:
            for name in spread & kwargs.keys():
                args = (*args, kwargs.pop(name))
            kwargs = {k if k in known else table.get(k, k): v for k, v in kwargs.items()}
        return function(*args, **kwargs)

    return call


def public(*modules: Any) -> dict[str, Any]:
    """The public functions that these modules define, ready for users."""
    found: dict[str, Any] = {}
    for module in modules:
        for name in module.__all__:
            value = getattr(module, name)
            found[name] = lenient(value) if inspect.isfunction(value) else value
    return found


def missing(module: str, name: str, known: Sequence[str]) -> AttributeError:
    """The error for a name that a public module lacks."""
    near = nearest(name, list(known))
    return AttributeError(f"mindspore.{module}.{name}: API must be one that Jumar has{f'; {near}' if near else ''}")


# -------------------------------------------------------------------------------------------------- operators as functions
def _entitled(function: Function, name: str, op: Op) -> Function:
    function.__name__ = function.__qualname__ = name
    function.__doc__ = (type(op).__doc__ or "").split("\n")[0]
    return function


def unary(name: str, op: Op) -> Function:
    """A function of one tensor that keeps its element type."""

    def call(input: Any) -> Tensor:
        return apply(op, input if isinstance(input, Tensor) else as_tensor(input))  # type: ignore[no-any-return]

    return _entitled(call, name, op)


def float_unary(name: str, op: Op) -> Function:
    """A function of one tensor of floats; integers become float32."""

    def call(input: Any) -> Tensor:
        return apply(op, floating(input))  # type: ignore[no-any-return]

    return _entitled(call, name, op)


def rounding(name: str, op: Op) -> Function:
    """A function that rounds floats; integers are what they are."""

    def call(input: Any) -> Tensor:
        x = as_tensor(input)
        return apply(op, x) if numpy_dtype(x).kind not in "iub" else x

    return _entitled(call, name, op)


def binary(name: str, op: Op) -> Function:
    """A function of two tensors or numbers, in the element type in which they meet."""

    def call(input: Any, other: Any) -> Tensor:
        return apply(op, *operands(input, other))  # type: ignore[no-any-return]

    return _entitled(call, name, op)


def float_operands(a: Any, b: Any) -> tuple[Tensor, Tensor]:
    """Both as tensors of floats."""
    x, y = operands(a, b)
    return floating(x), floating(y)


# ------------------------------------------------------------------------------------------------------ numbers and shapes
def ints(values: Any) -> tuple[int, ...]:
    """Plain ints from an int, a tensor, or a sequence of them."""
    if isinstance(values, int):
        return (values,)
    if isinstance(values, Tensor | np.ndarray):
        return tuple(int(v) for v in np.atleast_1d(np.asarray(values.asnumpy() if isinstance(values, Tensor) else values)))
    if isinstance(values, np.integer):
        return (int(values),)
    return tuple(int(v) for v in values)


def sizes(*shape: Any) -> tuple[int, ...]:
    """A shape that was given as one sequence or as several numbers."""
    if len(shape) == 1:
        return ints(shape[0])
    return tuple(int(d) for d in shape)


def axis_of(axis: Any, rank: int, what: str = "axis") -> int:
    """One axis from 0 up."""
    number = int(axis)
    bound = max(rank, 1)
    if not -bound <= number < bound:
        raise ValueError(f"{what}: axis must be within -{bound}..{bound - 1}, got {number}")
    return number + bound if number < 0 else number


def axes_of(axis: Any, rank: int) -> tuple[int, ...]:
    """Axes from 0 up; None or () are all of them, as `Reduction` has it."""
    if axis is None:
        return ()
    found = tuple(axis_of(a, rank) for a in ints(axis))
    if len(set(found)) != len(found):
        raise ValueError(f"axis: axes must be distinct, got {axis}")
    return found if rank else ()


def constant(array: Array) -> Scalar:
    """An array that belongs to the function itself: in a capture a constant, not an input."""
    return scalar(array, array.dtype)


def type_or(dtype: Any, default: Type) -> Type:
    """The element type that was asked for, else the default."""
    return default if dtype is None else as_type(dtype)


def eager() -> bool:
    """Whether nothing records: arrays may be handled directly."""
    return LOCAL.recorder is None


def expanded(x: Tensor, shape: tuple[int, ...]) -> Tensor:
    """The tensor repeated up to a shape."""
    return x if x.shape == shape else apply(Broadcast(shape), x)


__all__ = [
    "BOOL", "F32", "I32", "I64", "Array", "Function", "Scalar", "Tensor", "Type", "apply", "as_tensor", "as_type", "axes_of", "axis_of", "binary",
    "cast", "constant", "eager", "expanded", "float_operands", "float_unary", "floating", "ints", "lenient", "missing", "numpy_dtype",
    "operands", "public", "rounding", "scalar", "sizes", "type_or", "unary", "wrap",
]  # fmt: skip
