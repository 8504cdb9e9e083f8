"""Parameters: names, values, copies."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import numpy as np
import pytest

from jumar.frontend import Parameter, ParameterTuple, Tensor
from jumar.frontend import dtype as types


def make(name: str | None = "a") -> Parameter:
    return Parameter(Tensor(np.ones(2, np.float32)), name=name)


def test_one_without_a_name_has_a_unique_one_until_it_is_named() -> None:
    p, q = make(None), make(None)
    assert p.is_unnamed
    assert p.name.startswith("Parameter#")
    assert p.name == p.name != q.name
    p.name = " w "
    assert p.name == "w"


@pytest.mark.parametrize("name", [3, 2.5, ["a"]])
def test_a_name_is_a_string(name: Any) -> None:
    with pytest.raises(ValueError, match="should be 'string' or 'None'"):
        make(name)


def test_requires_grad_is_a_bool() -> None:
    with pytest.raises(TypeError, match="The argument `requires_grad` must be bool type"):
        make().requires_grad = 3  # type: ignore[assignment]


def test_set_data_keeps_the_type_and_writes_in_place() -> None:
    p = make()
    memory = p.array
    p.set_data(Tensor(np.zeros(2, np.float64)))
    assert (p.dtype, memory.tolist()) == (types.float32, [0.0, 0.0])
    p.set_data(Tensor(np.zeros(3, np.float32)))
    assert p.shape == (3,)
    with pytest.raises(TypeError, match="data must be a Tensor, an int or a float, got ndarray"):
        p.set_data(np.zeros(2, np.float32))


def test_clone_copies_or_initialises() -> None:
    p = make()
    assert (p.clone().name, p.clone("zeros", name="b").name, p.clone("zeros").asnumpy().tolist()) == ("a", "b", [0.0, 0.0])


def test_copies_and_pickles_share_nothing() -> None:
    p = make("q")
    p.requires_grad = False
    for other in (copy.deepcopy(p), pickle.loads(pickle.dumps(p))):
        assert (other.name, other.requires_grad, other.array is p.array) == ("q", False, False)


def test_booleans_and_strings_are_no_parameters() -> None:
    with pytest.raises(ValueError, match="can not be `bool`"):
        Parameter(True)
    with pytest.raises(TypeError, match="got str"):
        Parameter("a")


def test_names_in_a_tuple_differ() -> None:
    assert [p.name for p in ParameterTuple([make(None), make("x"), make(None)])] == ["Parameter$1", "x", "Parameter$2"]
    with pytest.raises(ValueError, match="its name 'a' already exists"):
        ParameterTuple([make(), make()])
    assert [p.name for p in ParameterTuple([make()]).clone("m", init="zeros")] == ["m.a"]


def test_set_dtype_changes_the_value() -> None:
    p = make()
    assert p.set_dtype(types.float16) is types.float16
    assert p.dtype is types.float16


def test_what_others_ask_for_has_defaults() -> None:
    p = make()
    assert (p.comm_fusion, p.key, p.sliced, p.layerwise_parallel, p.cache_enable) == (1, -1, False, False, False)
    with pytest.raises(AttributeError, match="no attribute 'foo'"):
        _ = p.foo
