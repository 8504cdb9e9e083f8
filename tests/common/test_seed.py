"""Seeds and generators."""

from __future__ import annotations

import numpy as np
import pytest

import jumar


def test_a_seed_begins_all_streams_anew() -> None:
    jumar.set_seed(4)
    first = np.random.rand()
    assert (jumar.get_seed(), jumar.initial_seed()) == (4, 4)
    jumar.set_seed(4)
    assert np.random.rand() == first


def test_a_state_can_be_put_back() -> None:
    jumar.manual_seed(3)
    state = jumar.get_rng_state()
    jumar.default_generator.offset += 5
    jumar.set_rng_state(state)
    assert (jumar.initial_seed(), jumar.default_generator.offset) == (3, 0)
    assert isinstance(jumar.seed(), int)


def test_wrong_seeds_say_what_mindspore_says() -> None:
    with pytest.raises(ValueError, match=r"For 'global_seed', the 'seed' must be int and must >= 0, but got '-1' with type 'int'."):
        jumar.set_seed(-1)
    with pytest.raises(TypeError, match=r"The argument 'seed' must be type of int, but got <class 'str'>."):
        jumar.set_seed("a")
    with pytest.raises(TypeError, match=r"Seed must be an integer."):
        jumar.manual_seed(1.5)
