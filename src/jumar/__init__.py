"""Jumar: neural networks from ONNX to machine code of our own, every layer explained.

In: a model file.  Out: a Python function from arrays to arrays.

    import jumar
    m = jumar.load("model.onnx")
    y = m(x)
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from jumar.frontend import Model, load

__version__ = "0.1.0"
__all__ = ["Model", "__version__", "load"]


def __getattr__(name: str) -> Any:
    """The front end is imported when it is first asked for: a deployed package runs without it."""
    if name in ("Model", "load"):
        import jumar.frontend  # noqa: PLC0415  (see above)

        return getattr(jumar.frontend, name)
    raise AttributeError(f"module 'jumar' has no attribute {name!r}")
