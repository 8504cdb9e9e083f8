"""A checkpoint into a network: leftovers as MindSpore names them, one table where it does not fit, nothing half-loaded."""

from __future__ import annotations

import numpy as np
import pytest
from tests.train.nets import Names

from jumar.frontend import Parameter
from jumar.train import load_param_into_net
from jumar.train.errors import MismatchError


def params(**values: object) -> dict[str, Parameter]:
    return {n.replace("__", "."): Parameter(np.asarray(v), name=n.replace("__", ".")) for n, v in values.items()}


def test_leftovers_on_both_sides_are_named() -> None:
    net = Names(fc__weight=(2, 2), fc__bias=(2,))
    found = load_param_into_net(net, params(fc__weight=np.ones((2, 2), np.float32), head=np.ones(1, np.float32)))  # type: ignore[arg-type]
    assert found == (["fc.bias"], ["head"])
    assert net.params[0].asnumpy().tolist() == [[1, 1], [1, 1]]


def test_a_prefix_of_all_names_is_passed_over_unless_strict() -> None:
    values = params(net__fc__weight=np.ones((2, 2), np.float32), net__fc__bias=np.ones(2, np.float32))
    net = Names(fc__weight=(2, 2), fc__bias=(2,))
    assert load_param_into_net(net, values, strict_load=True) == (["fc.weight", "fc.bias"], ["net.fc.weight", "net.fc.bias"])  # type: ignore[arg-type]
    assert load_param_into_net(net, values) == ([], ["net.fc.weight", "net.fc.bias"])  # type: ignore[arg-type]  # as MindSpore has it
    assert net.params[1].asnumpy().tolist() == [1, 1]


def test_element_types_of_one_kind_are_converted_unless_strict() -> None:
    net = Names(w=(2,))
    load_param_into_net(net, params(w=np.ones(2, np.float16)))  # type: ignore[arg-type]
    assert str(net.params[0].dtype) == "Float32" and net.params[0].asnumpy().tolist() == [1, 1]
    with pytest.raises(RuntimeError, match="Float16"):
        load_param_into_net(net, params(w=np.ones(2, np.float16)), strict_load=True)  # type: ignore[arg-type]
    with pytest.raises(RuntimeError, match="Int64"):
        load_param_into_net(net, params(w=np.ones(2, np.int64)))  # type: ignore[arg-type]


def test_trailing_ones_of_a_shape_are_dropped() -> None:
    net = Names(w=(2, 3))
    load_param_into_net(net, params(w=np.ones((2, 3, 1, 1), np.float32)))  # type: ignore[arg-type]
    assert net.params[0].shape == (2, 3) and net.params[0].asnumpy().sum() == 6


def test_a_checkpoint_of_another_network_loads_nothing_and_lists_everything() -> None:
    net = Names(conv__weight=(4, 3), classifier__weight=(10, 4), norm__gamma=(4,))
    given = params(
        conv__weight=np.ones((4, 3), np.float32), classifier__weight=np.ones((5, 4), np.float32), norm__gama=np.ones(4, np.float32)
    )
    with pytest.raises(MismatchError) as caught:
        load_param_into_net(net, given)  # type: ignore[arg-type]
    lines = [" ".join(line.split()) for line in str(caught.value).splitlines()]
    assert "classifier.weight Float32[10, 4] Float32[5, 4]" in lines
    assert "norm.gamma wants it missing norm.gama" in lines
    assert "norm.gama unexpected Float32[4] norm.gamma" in lines
    assert all(not p.asnumpy().any() for p in net.params)


def test_arguments_are_checked() -> None:
    with pytest.raises(TypeError, match="net must be a Cell, got int"):
        load_param_into_net(3, {})  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="parameter_dict must be dict, got list"):
        load_param_into_net(Names(w=(1,)), [])  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="got str and int"):
        load_param_into_net(Names(w=(1,)), {"w": 3})  # type: ignore[arg-type]
