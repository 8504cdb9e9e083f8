"""Application enablement: what users call, and the importers that bring foreign models in."""

from jumar.frontend.importers.onnx.port import Port
from jumar.frontend.model import Model, Piece, load

__all__ = ["Model", "Piece", "Port", "load"]
