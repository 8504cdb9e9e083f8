"""Jumar: neural networks from ONNX to machine code of our own, every layer explained."""

from jumar.frontend.model import Model, load

__version__ = "0.1.0"
__all__ = ["Model", "__version__", "load"]
