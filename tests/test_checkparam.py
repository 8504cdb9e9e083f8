"""Checks of arguments: classes and texts of errors are MindSpore's (observed with 2.10)."""

from __future__ import annotations

from typing import Any

import pytest

import jumar
from jumar import _checkparam as check

GOOD: list[tuple[str, tuple[Any, ...], Any]] = [
    ("check_positive_int", (3, "arg", "Prim"), 3),
    ("check_non_negative_int", (0,), 0),
    ("check_bool", (True,), True),
    ("check_is_float", (2.5,), 2.5),
    ("check_int_range", (5, 0, 5, check.INC_BOTH, "arg"), 5),
    ("check_float_range", (0.0, 0.0, 5.0, check.INC_LEFT, "arg"), 0.0),
    ("check_value_type", ("arg", None, [int, type(None)], "P"), None),
    ("check_string", ("b", ["b", "c"], "arg"), "b"),
    ("check_type_name", ("arg", jumar.float32, [jumar.float32, jumar.float16], "P"), jumar.float32),
    ("check_axis_in_range", (-1, 2), 1),
    ("check_axis_valid", (None, 3), (0, 1, 2)),
    ("check_transpose_axis", (((1, 0),), 2), (1, 0)),
    ("infer_out_shape", ((2, 1), (3,)), (2, 3)),
    ("prepare_shape_for_squeeze", ((1, 2, 1), 0), (2, 1)),
    ("expanded_shape", (3, 4, 1), (1, 4, 1)),
    ("twice", (3,), (3, 3)),
    ("twice", ((1, 2),), (1, 2)),
]
BAD: list[tuple[str, tuple[Any, ...], type[Exception], str]] = [
    ("check_positive_int", (0, "arg", "Prim"), ValueError, "For 'Prim', the 'arg' must be int and must > 0, but got '0' with type 'int'."),
    ("check_positive_int", (True, "arg", "Prim"), TypeError, "For 'Prim', the 'arg' must be int and must > 0, but got 'True' with type 'bool'."),
    ("check_positive_int", ("a",), TypeError, "The input value must be int, but got 'str'"),
    ("check_non_negative_float", (float("nan"), "arg", "Prim"), ValueError, "For 'Prim', the 'arg' must be a legal value, but got 'nan'."),
    ("check_bool", (0, "arg", "Prim"), TypeError, "For 'Prim', the 'arg' must be a bool, but got int."),
    ("check_is_int", (2.5, "arg"), TypeError, "The type of 'arg' must be 'int', but got 'float'."),
    ("check_float_range", (7.0, 0.0, 5.0, check.INC_RIGHT, "arg", "Prim"), ValueError,
     "For 'Prim', the 'arg' must be in range of (0.0, 5.0], but got 7.0 with type 'float'."),
    ("check_int_range", (1.0, 0, 5, check.INC_LEFT, "arg", "Prim"), TypeError, "For 'Prim', the 'arg' must be 'int',  but got 'float'."),
    ("check", ("argn", 3, "valn", [1, 2], check.IN, "Prim"), ValueError, "For 'Prim', the 'argn' should be in valn: [1, 2], but got 3."),
    ("check_string", (3, ["b", "c"], "arg"), ValueError, "The 'arg' must be str and must be in '['b', 'c']', but got '3'."),
    ("check_value_type", ("arg", "s", [int, float], "P"), TypeError, "For 'P', the type of 'arg' should be one of '['int', 'float']', but got type 'str'."),
    ("check_value_type", ("arg", True, [int], "P"), TypeError, "For 'P', the type of 'arg' should be 'int', but got type 'bool'."),
    ("check_type_name", ("arg", jumar.int32, jumar.float32, "P"), TypeError, "For 'P', the 'arg' should be Float32, but got 'mindspore.int32'."),
    ("check_positive_int_sequence", ([1, 0], "arg", "P"), ValueError, "For 'P', the 'arg[1]' must be int and must > 0, but got '0' with type 'int'."),
    ("check_axis_valid", ((0, 5), 3), ValueError, "The 'axis' must be in the range of [-3, 3), but got 5."),
    ("check_pad_value_by_mode", ("same", 1, "P"), ValueError, "For 'P', padding must be zero when pad_mode is 'same', but got 1."),
    ("check_hook_fn", (3,), TypeError, "Expected a callable hook function, but got int."),
]  # fmt: skip


@pytest.mark.parametrize("name, args, expected", GOOD, ids=lambda v: v if isinstance(v, str) else "")
def test_what_passes_is_given_back(name: str, args: tuple[Any, ...], expected: Any) -> None:
    assert expected == getattr(check, name)(*args)


@pytest.mark.parametrize("name, args, kind, text", BAD, ids=lambda v: v if isinstance(v, str) and v.startswith("check") else "")
def test_what_fails_says_what_mindspore_says(name: str, args: tuple[Any, ...], kind: type[Exception], text: str) -> None:
    with pytest.raises(kind) as caught:
        getattr(check, name)(*args)
    assert text == str(caught.value)


def test_element_types_are_checked_by_their_kind() -> None:
    check.check_subclass("arg", jumar.float32, jumar.number, "P")
    with pytest.raises(TypeError, match="For 'P', the element of 'arg' must be Int, but got Float32"):
        check.check_subclass("arg", jumar.float32, [jumar.int_], "P")
    with pytest.raises(TypeError, match="the type of 'y' should be same as 'x'"):
        check.check_types_same_and_valid({"x": jumar.float32, "y": jumar.float16}, [jumar.float32, jumar.float16], "P")


def test_arguments_of_a_function_are_checked_by_a_decorator() -> None:
    double = check.args_type_check(x=int, y=(int, float))(lambda x, y=1: x + y)
    assert double(1, 2) == 3
    with pytest.raises(TypeError, match="The parameter 'x' must be <class 'int'>, but got <class 'str'>"):
        double("a")


def test_older_packages_find_the_checks_in_validator() -> None:
    assert check.Validator.check_positive_int(3) == 3
    assert check.Rel.INC_LEFT == check.INC_LEFT
