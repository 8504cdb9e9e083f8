"""Checks of arguments with MindSpore's error classes and texts: `check_positive_int(value, "kernel_size", "Conv2d")`.

In: a value, the argument's name and the name of what it is given to.  Out: the value, or a TypeError or ValueError.  Used by third-party packages.
"""

from __future__ import annotations

import functools
import inspect
import math
import operator
import re
from collections.abc import Callable, Iterable, Sequence
from enum import IntEnum
from typing import Any


class Rel(IntEnum):
    """How a value relates to a limit, or to a pair of limits."""

    EQ, NE, LT, LE, GT, GE, INC_NEITHER, INC_LEFT, INC_RIGHT, INC_BOTH, IN, NOT_IN = range(1, 13)


EQ, NE, LT, LE, GT, GE, INC_NEITHER, INC_LEFT, INC_RIGHT, INC_BOTH, IN, NOT_IN = (int(r) for r in Rel)
_COMPARE: dict[int, tuple[str, Callable[[Any, Any], bool]]] = {
    EQ: ("=", operator.eq), NE: ("!=", operator.ne), LT: ("<", operator.lt), LE: ("<=", operator.le), GT: (">", operator.gt), GE: (">=", operator.ge),
    IN: ("in", lambda a, b: a in b), NOT_IN: ("not in", lambda a, b: a not in b),
}  # fmt: skip
_RANGE = {INC_NEITHER: ("(", ")"), INC_LEFT: ("[", ")"), INC_RIGHT: ("(", "]"), INC_BOTH: ("[", "]")}
_HARDWARE = (
    "The supported data types depend on the hardware that executes the operator, for more details, please refer to the MindSpore official "
    "website to get more information about the data type."
)


def _for(prim_name: str | None, then: str) -> str:
    """`For 'Conv2d', the ...`, or `The ...` where nothing is named."""
    return f"For '{prim_name}', {then}" if prim_name else then[0].upper() + then[1:]


def _the(arg_name: str | None) -> str:
    return f"the '{arg_name}'" if arg_name else "the input value"


def _check_number(
    arg_value: Any, value: Any, rel: int, arg_type: type = int, arg_name: str | None = None, prim_name: str | None = None
) -> Any:
    kind = arg_type.__name__
    text = _for(prim_name, f"{_the(arg_name)} must be {kind}")
    if isinstance(arg_value, bool) and arg_type is int:
        raise TypeError(f"{text} and must {_COMPARE[rel][0]} {value}, but got '{arg_value}' with type 'bool'.")
    if not isinstance(arg_value, arg_type):
        raise TypeError(f"{text}, but got '{type(arg_value).__name__}'")
    if isinstance(arg_value, float) and not math.isfinite(arg_value):
        raise ValueError(_for(prim_name, f"{_the(arg_name)} must be a legal value, but got '{arg_value}'."))
    symbol, holds = _COMPARE[rel]
    if not holds(arg_value, value):
        raise ValueError(f"{text} and must {symbol} {value}, but got '{arg_value}' with type '{type(arg_value).__name__}'.")
    return arg_value


def check_int(arg_value: Any, value: int, rel: int, arg_name: str | None = None, prim_name: str | None = None) -> Any:
    """An int in a relation to a limit."""
    return _check_number(arg_value, value, rel, int, arg_name, prim_name)


def check_float(arg_value: Any, value: float, rel: int, arg_name: str | None = None, prim_name: str | None = None) -> Any:
    """A float in a relation to a limit."""
    return _check_number(arg_value, value, rel, float, arg_name, prim_name)


def check_equal_int(arg_value: Any, value: int, arg_name: str | None = None, prim_name: str | None = None) -> Any:
    """That int.

    >>> check_equal_int(3, 3)
    3
    """
    return check_int(arg_value, value, EQ, arg_name, prim_name)


def _against_zero(kind: type, rel: int, meaning: str) -> Callable[..., Any]:
    def check_zero(arg_value: Any, arg_name: str | None = None, prim_name: str | None = None) -> Any:
        return _check_number(arg_value, 0, rel, kind, arg_name, prim_name)

    check_zero.__doc__ = meaning
    return check_zero


check_positive_int = _against_zero(int, GT, "An int above 0.")
check_non_negative_int = _against_zero(int, GE, "An int that is 0 or more.")
check_negative_int = _against_zero(int, LT, "An int below 0.")
check_non_positive_int = _against_zero(int, LE, "An int that is 0 or less.")
check_positive_float = _against_zero(float, GT, "A float above 0.")
check_non_negative_float = _against_zero(float, GE, "A float that is 0 or more.")
check_negative_float = _against_zero(float, LT, "A float below 0.")
check_non_positive_float = _against_zero(float, LE, "A float that is 0 or less.")


def _sequence(one: Callable[..., Any]) -> Callable[..., Any]:
    def check_sequence(sequence: Iterable[Any], arg_name: str | None = None, prim_name: str | None = None) -> Any:
        """Each element passes the check of one."""
        for i, element in enumerate(sequence):
            one(element, f"{arg_name or 'arg_name'}[{i}]", prim_name)
        return sequence

    return check_sequence


check_positive_int_sequence = _sequence(check_positive_int)
check_non_negative_int_sequence = _sequence(check_non_negative_int)
check_positive_float_sequence = _sequence(check_positive_float)


def check_number(arg_name: str, arg_value: Any, value: Any, rel: int, prim_name: str) -> Any:
    """A number in a relation to a limit."""
    symbol, holds = _COMPARE[rel]
    if not holds(arg_value, value):
        raise ValueError(f"For '{prim_name}', the argument '{arg_name}' must {symbol} {value}, but got {arg_value}.")
    return arg_value


def check_number_range(
    arg_value: Any,
    lower_limit: Any,
    upper_limit: Any,
    rel: int,
    value_type: type,
    arg_name: str | None = None,
    prim_name: str | None = None,
) -> Any:
    """A number between two limits.

    >>> check_number_range(3, 0, 5, INC_BOTH, int)
    3
    """
    if not isinstance(arg_value, value_type) or isinstance(arg_value, bool):
        raise TypeError(_for(prim_name, f"{_the(arg_name)} must be '{value_type.__name__}',  but got '{type(arg_value).__name__}'."))
    if not _between(arg_value, lower_limit, upper_limit, rel):
        opening, closing = _RANGE[rel]
        raise ValueError(
            _for(
                prim_name,
                f"{_the(arg_name)} must be in range of {opening}{lower_limit}, {upper_limit}{closing}, "
                f"but got {arg_value} with type '{type(arg_value).__name__}'.",
            )
        )
    return arg_value


def _between(value: Any, low: Any, high: Any, rel: int) -> bool:
    opening, closing = _RANGE[rel]
    return bool((value >= low if opening == "[" else value > low) and (value <= high if closing == "]" else value < high))


def check_int_range(
    arg_value: Any, lower_limit: int, upper_limit: int, rel: int, arg_name: str | None = None, prim_name: str | None = None
) -> Any:
    """An int between two limits."""
    return check_number_range(arg_value, lower_limit, upper_limit, rel, int, arg_name, prim_name)


def check_float_range(
    arg_value: Any, lower_limit: float, upper_limit: float, rel: int, arg_name: str | None = None, prim_name: str | None = None
) -> Any:
    """A float between two limits."""
    return check_number_range(arg_value, lower_limit, upper_limit, rel, float, arg_name, prim_name)


def check(
    arg_name: str, arg_value: Any, value_name: str, value: Any, rel: int = EQ, prim_name: str | None = None, excp_cls: type[Exception] = ValueError
) -> Any:  # fmt: skip
    """A value in a relation to another one that has a name, too."""
    if rel in _RANGE:
        low, high = value
        fits = _between(arg_value, low, high, rel)
        wanted = f"in range of {_RANGE[rel][0]}{low}, {high}{_RANGE[rel][1]}"
    else:
        fits, wanted = _COMPARE[rel][1](arg_value, value), f"{_COMPARE[rel][0]} {value_name}: {value}"
    if not fits:
        raise excp_cls(_for(prim_name, f"the '{arg_name}' should be {wanted}, but got {arg_value}."))
    return arg_value


def check_is_number(arg_value: Any, arg_type: type, arg_name: str | None = None, prim_name: str | None = None) -> Any:
    """A number of that class; a float must be finite."""
    if not isinstance(arg_value, arg_type) or isinstance(arg_value, bool):
        name = f"'{arg_name}'" if arg_name else "input value"
        raise TypeError(_for(prim_name, f"the type of {name} must be '{arg_type.__name__}', but got '{type(arg_value).__name__}'."))
    if isinstance(arg_value, float) and not math.isfinite(arg_value):
        raise ValueError(_for(prim_name, f"{_the(arg_name)} must be a legal float, but got '{arg_value}'."))
    return arg_value


def check_is_int(arg_value: Any, arg_name: str | None = None, prim_name: str | None = None) -> Any:
    """An int."""
    return check_is_number(arg_value, int, arg_name, prim_name)


def check_is_float(arg_value: Any, arg_name: str | None = None, prim_name: str | None = None) -> Any:
    """A finite float."""
    return check_is_number(arg_value, float, arg_name, prim_name)


def check_bool(arg_value: Any, arg_name: str | None = None, prim_name: str | None = None) -> Any:
    """True or False."""
    if not isinstance(arg_value, bool):
        raise TypeError(_for(prim_name, f"{_the(arg_name)} must be a bool, but got {type(arg_value).__name__}."))
    return arg_value


def check_string(arg_value: Any, valid_values: Any, arg_name: str | None = None, prim_name: str | None = None) -> Any:
    """One of some texts."""
    if not isinstance(arg_value, str) or arg_value not in valid_values:
        raise ValueError(_for(prim_name, f"{_the(arg_name)} must be str and must be in '{valid_values}', but got '{arg_value}'."))
    return arg_value


# ---------------------------------------------------------------------- classes and element types
def check_value_type(arg_name: str, arg_value: Any, valid_types: Any, prim_name: str | None = None) -> Any:
    """A value of one of some classes; a bool counts as an int only if bool is among them."""
    valid = tuple(valid_types) if isinstance(valid_types, list | tuple) else (valid_types,)
    if isinstance(arg_value, valid) and not (isinstance(arg_value, bool) and bool not in valid):
        return arg_value
    names = [getattr(t, "__name__", str(t)) for t in valid]
    wanted = f"'{names[0]}'" if len(names) == 1 else f"one of '{names}'"
    raise TypeError(_for(prim_name, f"the type of '{arg_name}' should be {wanted}, but got type '{type(arg_value).__name__}'."))


def check_isinstance(arg_name: str, arg_value: Any, classes: Any) -> Any:
    """A value of a class."""
    if not isinstance(arg_value, classes):
        raise ValueError(f"The parameter '{arg_name}' must be isinstance of {classes}, but got {arg_value}.")
    return arg_value


def check_type_name(arg_name: str, arg_type: Any, valid_types: Any, prim_name: str | None) -> Any:
    """One of some element types or classes."""
    valid = list(valid_types) if isinstance(valid_types, Iterable) and not isinstance(valid_types, str) else [valid_types]
    if arg_type in valid:
        return arg_type
    got = arg_type.__name__ if isinstance(arg_type, type) else repr(arg_type)
    wanted = str(valid[0]) if len(valid) == 1 else f"one of {valid}"
    raise TypeError(_for(prim_name, f"the '{arg_name}' should be {wanted}, but got '{got}'."))


def check_subclass(arg_name: str, type_: Any, template_types: Any, prim_name: str, addition_error_info: str | None = None) -> None:
    """An element type, or class, that is one of some or narrower."""
    from jumar.common.dtype import _issubclass_  # noqa: PLC0415  (element types are checked rarely, and their room is heavy)

    templates = list(template_types) if isinstance(template_types, Iterable) else [template_types]
    if any(_issubclass_(type_, t) or (type_ is t) for t in templates):
        return
    texts = ", ".join(str(t) for t in templates)
    wanted = texts if len(templates) == 1 else f"one of {texts}"
    raise TypeError(f"For '{prim_name}', the element of '{arg_name}' must be {wanted}, but got {type_}.{addition_error_info or _HARDWARE}")


def check_types_same_and_valid(args: dict[str, Any], valid_values: Any, prim_name: str) -> None:
    """Element types that are valid and all the same."""
    first: tuple[str, Any] | None = None
    for name, found in args.items():
        check_subclass(name, found, valid_values, prim_name)
        if first is None:
            first = (name, found)
        elif found != first[1]:
            raise TypeError(
                f"For '{prim_name}', the type of '{name}' should be same as '{first[0]}', "
                f"but got '{first[0]}' with type {first[1]} and '{name}' with type {found}."
            )


def check_tensor_dtype_valid(arg_name: str, arg_type: Any, valid_dtypes: Any, prim_name: str) -> None:
    """The type of a tensor whose elements are of one of some types."""
    from jumar.common.dtype import TensorType  # noqa: PLC0415  (see check_subclass)

    valid = list(valid_dtypes) if isinstance(valid_dtypes, Iterable) else [valid_dtypes]
    if isinstance(arg_type, TensorType) and arg_type.element_type() in valid:
        return
    check_subclass(arg_name, arg_type, [TensorType(v) for v in valid], prim_name)


def check_tensors_dtypes_same_and_valid(args: dict[str, Any], valid_dtypes: Any, prim_name: str) -> None:
    """Types of tensors that are valid and all the same."""
    for name, found in args.items():
        check_tensor_dtype_valid(name, found, valid_dtypes, prim_name)
    check_types_same_and_valid(args, list(args.values()), prim_name)


def check_element_type_of_iterable(arg_name: str, arg_value: Iterable[Any], valid_types: Any, prim_name: str | None = None) -> Any:
    """Elements of one of some classes."""
    valid = tuple(valid_types) if isinstance(valid_types, list | tuple) else (valid_types,)
    for element in arg_value:
        if not isinstance(element, valid) or (isinstance(element, bool) and bool not in valid):
            names = [t.__name__ for t in valid]
            wanted = names[0] if len(names) == 1 else f"one of {names}"
            raise TypeError(
                _for(prim_name, f"the type of '{arg_name}' should be {wanted}, but got '{element}' with type '{type(element).__name__}'.")
            )
    return arg_value


def check_element_type_of_dict(
    arg_name: str, arg_value: dict[Any, Any], key_types: Any, value_types: Any, prim_name: str | None = None
) -> Any:
    """Keys and values of some classes."""
    check_element_type_of_iterable(arg_name, arg_value.keys(), key_types, prim_name)
    check_element_type_of_iterable(arg_name, arg_value.values(), value_types, prim_name)
    return arg_value


def check_size_and_element_type_of_tuple(
    arg_name: str, arg_value: Any, expect_size: int, expect_element_type: type, prim_name: str | None = None
) -> Any:
    """A tuple of that length and of elements of that class."""
    check_value_type(arg_name, arg_value, [tuple], prim_name)
    check_equal_int(len(arg_value), expect_size, f"{arg_name} size", prim_name)
    for element in arg_value:
        check_value_type(f"{arg_name}[0]", element, [expect_element_type], prim_name)
    return arg_value


# ---------------------------------------------------------------------- texts, files, functions
def check_str_by_regular(target: str, reg: str | None = None, flag: Any = re.ASCII, prim_name: str | None = None) -> bool:
    """A text that a pattern fits: a name, without one."""
    pattern = reg or r"^\w+[0-9a-zA-Z\_\.]*$"
    if re.match(pattern, target, flag) is None:
        raise ValueError(_for(prim_name, f"the '{target}' is illegal, it must be match regular'{pattern}' by flags'{flag}.'"))
    return True


def check_file_name_by_regular(target: str, reg: str | None = None, prim_name: str | None = None) -> bool:
    """The name of a file without odd characters."""
    pattern = reg or r"^[0-9a-zA-Z@\_\-\.\:\/\\]+$"
    if re.match(pattern, target) is None:
        raise ValueError(_for(prim_name, f"the '{target}' is illegal, it must be match regular '{pattern}'."))
    return True


def check_valid_input(arg_name: str, arg_value: Any, prim_name: str) -> Any:
    """Anything but None."""
    if arg_value is None:
        raise ValueError(f"For '{prim_name}', the argument '{arg_name}'can not be None, but got None.")
    return arg_value


def check_hook_fn(hook_fn: Any) -> bool:
    """A function."""
    if not callable(hook_fn):
        raise TypeError(f"Expected a callable hook function, but got {type(hook_fn).__name__}.")
    return True


def check_pad_value_by_mode(pad_mode: str, padding: Any, prim_name: str) -> Any:
    """A padding that the mode allows."""
    given = padding if isinstance(padding, tuple | list) else (padding,)
    if pad_mode != "pad" and any(given):
        raise ValueError(f"For '{prim_name}', padding must be zero when pad_mode is '{pad_mode}', but got {padding}.")
    return padding


def check_input_format(input_param: Any) -> Any:
    """NCHW."""
    if input_param != "NCHW":
        raise ValueError(f"The data format must be NCHW, but got {input_param}.")
    return input_param


def check_input_data(*data: Any, data_class: Any) -> None:
    """Values of a class, or lists, tuples and dicts of them."""
    classes = data_class if isinstance(data_class, tuple | list) else (data_class,)
    for item in data:
        inner = item.values() if isinstance(item, dict) else item if isinstance(item, list | tuple) else (item,)
        for element in inner:
            if not isinstance(element, tuple(classes)):
                names = [c.__name__ for c in classes]
                kinds = [*names, *(f"{k}[{n}]" for k in ("tuple", "list", "dict") for n in names)]
                raise TypeError(f"The types of input data must be in the Union({', '.join(kinds)}), but got type {type(item).__name__}.")


def args_type_check(*type_args: Any, **type_kwargs: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Decorator: arguments of a function must be of these classes; None is always allowed.

    >>> args_type_check(x=int)(lambda x: x + 1)(2)
    3
    """

    def decorate(func: Callable[..., Any]) -> Callable[..., Any]:
        signature = inspect.signature(func)
        wanted = signature.bind_partial(*type_args, **type_kwargs).arguments

        @functools.wraps(func)
        def checked(*args: Any, **kwargs: Any) -> Any:
            for name, value in signature.bind(*args, **kwargs).arguments.items():
                if value is not None and name in wanted and not isinstance(value, wanted[name]):
                    raise TypeError(f"The parameter '{name}' must be {wanted[name]}, but got {type(value)}")
            return func(*args, **kwargs)

        return checked

    return decorate


# ---------------------------------------------------------------------- axes and shapes
def check_axis_in_range(axis: int, ndim: int) -> int:
    """The axis, counted from the front."""
    if not isinstance(axis, int):
        raise TypeError(f"The axis must be integer, but got {type(axis)}")
    if not -ndim <= axis < ndim:
        raise ValueError(f"The 'axis' must be in the range of [{-ndim}, {ndim}), but got {axis}.")
    return axis % ndim


def check_axis_valid(axes: Any, ndim: int) -> tuple[int, ...]:
    """Axes, counted from the front; None means all.

    >>> check_axis_valid((-1, 0), 3)
    (2, 0)
    """
    if axes is None:
        return tuple(range(ndim))
    found = tuple(check_axis_in_range(a, ndim) for a in (axes if isinstance(axes, tuple | list) else (axes,)))
    if len(set(found)) != len(found):
        raise ValueError(f"duplicate axis in 'axes', got {axes}")
    return found


def check_and_canonicalize_axes(axes: Any, ndim: int) -> tuple[int, ...]:
    """Axes, counted from the front."""
    return check_axis_valid(axes if isinstance(axes, tuple | list) else (axes,), ndim)


def check_swapaxes_axis(axes: Any, ndim: int) -> Any:
    """Axes, counted from the front, in the form they were given in."""
    return check_axis_in_range(axes, ndim) if isinstance(axes, int) else tuple(check_axis_in_range(a, ndim) for a in axes)


def check_transpose_axis(axes: Any, ndim: int) -> tuple[int, ...]:
    """The permutation that `transpose(*axes)` means; none given reverses."""
    if not axes or axes == (None,):
        return tuple(reversed(range(ndim)))
    found = axes[0] if len(axes) == 1 and isinstance(axes[0], tuple | list) else axes
    if len(found) != ndim:
        raise ValueError(f"For Tensor.transpose, the number of axes must be {ndim}, but got {len(found)}.")
    return check_axis_valid(tuple(found), ndim)


def check_reshape_shp(shp: Any) -> Any:
    """The shape that `reshape(*shape)` means."""
    return tuple(shp[0]) if len(shp) == 1 and isinstance(shp[0], tuple | list) else shp


def infer_out_shape(*shapes: Sequence[int]) -> tuple[int, ...]:
    """The shape in which shapes meet by broadcasting.

    >>> infer_out_shape((2, 1), (3,))
    (2, 3)
    """
    rank = max(map(len, shapes))
    dims: list[int] = []
    for found in zip(*((1,) * (rank - len(s)) + tuple(s) for s in shapes)):
        if any(d not in (1, max(found)) for d in found):
            raise ValueError(
                "For Tensor, the dimension on each axis must be 1 or the max value on the axis to support broadcasting, "
                f"but got shapes {shapes}"
            )
        dims.append(1 if not all(found) else max(found))
    return tuple(dims)


def prepare_shape_for_squeeze(shape: Sequence[int], axes: Any) -> tuple[int, ...]:
    """The shape without those axes, which must be 1."""
    if not isinstance(axes, int | tuple | list):
        raise TypeError(f"For Tensor.squeeze, the parameter 'axes' must be one of [int, tuple, list], but got {type(axes)}.")
    gone = check_and_canonicalize_axes(axes, len(shape))
    if any(shape[a] != 1 for a in gone):
        raise ValueError(f"For Tensor.squeeze, the dimension of 'axes' must be 1, but got shape {tuple(shape)} and axes {axes}.")
    return tuple(d for i, d in enumerate(shape) if i not in gone)


def expanded_shape(ndim: int, axis_size: int, axis: int) -> tuple[int, ...]:
    """Ones, but `axis_size` at `axis`."""
    at = check_axis_in_range(axis, ndim)
    return tuple(axis_size if i == at else 1 for i in range(ndim))


def tuple_slice(tup: tuple[Any, ...], start: int, end: int) -> tuple[Any, ...]:
    """A part of a tuple."""
    return tup[start:end]


def check_flatten_order(order: str) -> None:
    """C or F."""
    if order not in ("C", "F"):
        raise ValueError(f"For Tensor.flatten, the parameter 'order' must be 'C' or 'F', but got '{order}'")


def _times(n: int) -> Callable[[Any], Any]:
    def repeat_value(m: Any) -> Any:
        """A number repeated; what is a sequence already stays."""
        return m if isinstance(m, Iterable) and not isinstance(m, str) else (m,) * n

    return repeat_value


once, twice, triple = _times(1), _times(2), _times(3)


class Validator:
    """The checks as static methods, as older packages call them."""


for _name, _function in list(globals().items()):
    if _name.startswith(("check", "_check_number")) and callable(_function):
        setattr(Validator, _name, staticmethod(_function))
del _name, _function
