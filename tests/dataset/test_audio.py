"""The audio names: importing is free, use is an error that names the operation."""

import pytest

import jumar.dataset as ds
from jumar.dataset import audio


def test_every_audio_operation_refuses_when_it_is_made():
    for name in audio.transforms.NAMES:
        with pytest.raises(ds.DataFault, match=rf"audio\.{name}: is not supported"):
            getattr(audio, name)(1)


def test_a_filter_bank_refuses_when_it_is_called():
    with pytest.raises(ds.DataFault, match=r"audio\.melscale_fbanks: is not supported"):
        audio.melscale_fbanks(1, 2, 3, 4, 5)


def test_audio_words_have_the_values_of_their_strings():
    assert audio.WindowType.HANN == "hann"
    assert audio.NormType.NONE.value == "none"


def test_an_unknown_audio_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="Spectrogramm"):
        _ = audio.Spectrogramm
