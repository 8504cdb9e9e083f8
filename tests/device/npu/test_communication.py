"""Collectives: more bytes and more ranks take longer, a mesh beats what is between servers, and what cannot be is refused."""

import pytest

from jumar.base import DeviceError
from jumar.device.npu import collective, find_chip
from jumar.device.npu.communication import KINDS

CHIP = find_chip("Ascend910B4")


def test_large_all_reduces_take_what_was_measured_on_pairs_of_910b4():
    p = collective("all_reduce", 622_329_856, 2, CHIP)  # measured: 34.6 ms
    assert 30e3 < p.time_us < 39e3 and p.low_us < 34.6e3 < p.high_us


def test_a_small_one_takes_what_any_takes():
    p = collective("hcom_allReduce_", 8, 2, CHIP)  # measured: 15.9 to 18.1 us
    assert 15 < p.time_us < 18 and p.evidence == "calibrated"


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("soc", ["Ascend910A", "Ascend910B2", "Ascend910_9391", "Ascend950DT_9591", "Ascend310P3"])
def test_more_bytes_take_longer_on_every_chip(kind, soc):
    chip = find_chip(soc)
    times = [collective(kind, nbytes, 4, chip).time_us for nbytes in (1 << 10, 1 << 20, 1 << 28)]
    assert times == sorted(times) and times[0] < times[2]
    for nbytes in (1, 1 << 28):
        p = collective(kind, nbytes, 4, chip)
        assert p.low_us < p.time_us < p.high_us


def test_ranks_of_several_servers_pay_for_the_network():
    inside, across = collective("all_reduce", 1 << 28, 8, CHIP), collective("all_reduce", 1 << 28, 16, CHIP)
    assert across.time_us > inside.time_us and "not measured" in across.evidence


def test_one_rank_sends_nothing():
    assert collective("all_gather", 1 << 20, 1, CHIP).time_us == 0.0


def test_what_cannot_be_is_refused():
    with pytest.raises(DeviceError, match=r"kind must be one of all_reduce, .*got 'all_reduces'") as error:
        collective("all_reduces", 1, 2, CHIP)
    assert error.value.hint.startswith("did you mean all_reduce")
    with pytest.raises(DeviceError, match="ranks must be 1 or more"):
        collective("all_reduce", 1, 0, CHIP)
