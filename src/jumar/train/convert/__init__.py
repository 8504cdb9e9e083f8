"""Weights of other frameworks: PyTorch's files, and MindSpore's names for what is in them."""

from jumar.train.convert.names import Line, Source, matched, renamed, values
from jumar.train.convert.torchfile import TorchFile
from jumar.train.serialization import read_values

__all__ = ["Line", "Source", "TorchFile", "matched", "read_values", "renamed", "values"]
