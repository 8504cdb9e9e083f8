"""`mindspore.experimental`: `optim`, optimisers in the style of PyTorch; the parameters for embeddings without bounds are not here."""

from __future__ import annotations

from typing import Any


def __getattr__(name: str) -> Any:
    if name == "MapParameter":
        raise AttributeError(
            "module 'jumar.experimental' has no attribute 'MapParameter': tables of embeddings without bounds are not supported yet"
        )
    raise AttributeError(f"module 'jumar.experimental' has no attribute {name!r}")
