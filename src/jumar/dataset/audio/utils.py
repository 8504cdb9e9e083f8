"""The words of the audio API: enumerations with MindSpore's names and values, and its functions that make filter banks, which are refused.

In: nothing.  Out: values that scripts pass on; asking for a filter bank is an error that says so.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum

from jumar.dataset.errors import DataFault


def refusal(name: str) -> DataFault:
    """The error for a use of an audio operation."""
    return DataFault(
        f"audio.{name}: is not supported",
        hint="compute it with numpy or scipy.signal in a Python function; map takes any function of arrays",
    )


class BorderType(str, Enum):
    """What stands beyond the ends."""

    CONSTANT = "constant"
    EDGE = "edge"
    REFLECT = "reflect"
    SYMMETRIC = "symmetric"


class DensityFunction(str, Enum):
    """The density of dither noise."""

    TPDF = "TPDF"
    RPDF = "RPDF"
    GPDF = "GPDF"


class FadeShape(str, Enum):
    """The curve of a fade."""

    QUARTER_SINE = "quarter_sine"
    HALF_SINE = "half_sine"
    LINEAR = "linear"
    LOGARITHMIC = "logarithmic"
    EXPONENTIAL = "exponential"


class GainType(str, Enum):
    """What a gain multiplies."""

    AMPLITUDE = "amplitude"
    POWER = "power"
    DB = "db"


class Interpolation(str, Enum):
    """How samples between samples are found."""

    LINEAR = "linear"
    QUADRATIC = "quadratic"


class MelType(str, Enum):
    """The formula of the mel scale."""

    HTK = "htk"
    SLANEY = "slaney"


class Modulation(str, Enum):
    """The shape of a modulating wave."""

    SINUSOIDAL = "sinusoidal"
    TRIANGULAR = "triangular"


class NormMode(str, Enum):
    """How a cosine transform is scaled."""

    ORTHO = "ortho"
    NONE = "none"


class NormType(str, Enum):
    """How mel filters are scaled."""

    SLANEY = "slaney"
    NONE = "none"


class ResampleMethod(str, Enum):
    """The filter of a change of rate."""

    SINC_INTERPOLATION = "sinc_interpolation"
    KAISER_WINDOW = "kaiser_window"


class ScaleType(str, Enum):
    """What a spectrogram holds."""

    POWER = "power"
    MAGNITUDE = "magnitude"


class WindowType(str, Enum):
    """The window of a Fourier transform."""

    BARTLETT = "bartlett"
    BLACKMAN = "blackman"
    HAMMING = "hamming"
    HANN = "hann"
    KAISER = "kaiser"


def _refused(name: str) -> Callable[..., object]:
    def call(*args: object, **kwargs: object) -> object:
        raise refusal(name)

    call.__name__ = name
    call.__doc__ = "Is not supported; a call says so."
    return call


create_dct = _refused("create_dct")
linear_fbanks = _refused("linear_fbanks")
melscale_fbanks = _refused("melscale_fbanks")

__all__ = [
    "BorderType", "DensityFunction", "FadeShape", "GainType", "Interpolation", "MelType", "Modulation", "NormMode", "NormType", "ResampleMethod",
    "ScaleType", "WindowType", "create_dct", "linear_fbanks", "melscale_fbanks",
]  # fmt: skip
