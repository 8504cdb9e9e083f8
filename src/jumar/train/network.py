"""What the training room asks of a network: its parameters by name.

In: cells.  Out: the part of a cell that checkpoints need, as a protocol, so that anything with named parameters can be saved and loaded.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol, runtime_checkable

from jumar.frontend import Parameter


@runtime_checkable
class Network(Protocol):
    """Anything with named parameters: a Cell."""

    def parameters_and_names(self) -> Iterable[tuple[str, Parameter]]: ...


def parameters_of(net: Network) -> list[Parameter]:
    """The parameters of a network, each once, in order."""
    return list({id(p): p for _, p in net.parameters_and_names()}.values())
