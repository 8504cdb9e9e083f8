"""The audio operations of MindSpore by name: a script may import them and ask `isinstance`; making one is an error that says so.

In: a name.  Out: a class whose construction raises `DataFault` (utils.py `refusal`).
"""

from __future__ import annotations

from jumar.dataset.audio.utils import refusal

NAMES = (
    "AllpassBiquad", "AmplitudeToDB", "Angle", "BandBiquad", "BandpassBiquad", "BandrejectBiquad", "BassBiquad", "Biquad", "ComplexNorm",
    "ComputeDeltas", "Contrast", "DBToAmplitude", "DCShift", "DeemphBiquad", "DetectPitchFrequency", "Dither", "EqualizerBiquad", "Fade",
    "Filtfilt", "Flanger", "FrequencyMasking", "Gain", "GriffinLim", "HighpassBiquad", "InverseMelScale", "InverseSpectrogram", "LFCC",
    "LFilter", "LowpassBiquad", "MFCC", "Magphase", "MaskAlongAxis", "MaskAlongAxisIID", "MelScale", "MelSpectrogram", "MuLawDecoding",
    "MuLawEncoding", "Overdrive", "PhaseVocoder", "Phaser", "PitchShift", "Resample", "RiaaBiquad", "SlidingWindowCmn",
    "SpectralCentroid", "Spectrogram", "TimeMasking", "TimeStretch", "TrebleBiquad", "Vad", "Vol",
)  # fmt: skip


class AudioTensorOperation:
    """The base of all audio operations; none can be made."""

    def __init__(self, *args: object, **kwargs: object) -> None:
        raise refusal(type(self).__name__)


_CLASSES = {name: type(name, (AudioTensorOperation,), {"__doc__": "Is not supported; making one says so."}) for name in NAMES}


def __getattr__(name: str) -> type:
    if name not in _CLASSES:
        raise AttributeError(f"module 'jumar.dataset.audio' has no attribute {name!r}")
    return _CLASSES[name]


__all__ = ["AudioTensorOperation", *NAMES]  # noqa: PLE0604  (the names of the table)
