"""Layouts, strategies and questions about parallel training, on one device."""

from __future__ import annotations

import pytest

import jumar
from jumar.parallel import Layout, _utils, get_algo_parameters, reshard, set_algo_parameters, shard, transform_checkpoints


def test_a_layout_says_how_axes_lie_on_devices() -> None:
    layout = Layout((2, 2), ("dp", "mp"))("dp", "None")
    assert layout.to_dict() == {
        "device_matrix": (2, 2), "tensor_map": (1, -1), "interleaved_parallel": False, "alias_name": ("dp", "mp"), "rank_list": [0, 1, 2, 3],
    }  # fmt: skip
    with pytest.raises(ValueError, match="device_matrix length should be equal to alias_name length"):
        Layout((2,), ("a", "b"))
    with pytest.raises(TypeError, match="device_matrix must be tuple type"):
        Layout(3, ("a",))


def test_on_one_device_nothing_is_split() -> None:
    assert shard(abs, ((1, 1),)) is abs
    x = jumar.Tensor([1.0])
    assert reshard(x, Layout((1,), ("dp",))("dp")) is x


def test_questions_are_answered_from_the_context() -> None:
    assert (_utils._get_parallel_mode(), _utils._get_device_num(), _utils._is_sharding_propagation()) == ("stand_alone", 1, False)
    with pytest.raises(ValueError, match="If parallel_mode is stand_alone, device_number must be 1"):
        _utils._device_number_check("stand_alone", 2)
    x = jumar.Tensor([1.0])
    whole, sens = _utils._to_full_tensor(x, 1, 0, 0.5)
    assert whole is x
    assert sens.asnumpy() == 0.5


def test_parameters_of_the_search_are_checked_and_kept() -> None:
    set_algo_parameters(fully_use_devices=True)
    assert get_algo_parameters("fully_use_devices") is True
    set_algo_parameters(fully_use_devices=False)
    with pytest.raises(ValueError, match="Set context keyword x is not recognized!"):
        set_algo_parameters(x=1)


def test_checkpoints_of_several_devices_are_refused() -> None:
    with pytest.raises(NotImplementedError, match="checkpoints of several devices are not supported"):
        transform_checkpoints("a", "b", "c")
