"""The registry by which third-party code hangs functions on Tensor: `tensor_operator_registry.register(name, function)`.

In: names and functions.  Out: `get(name)`, which falls back on the function of `jumar.ops` of that name.
"""

from __future__ import annotations

from typing import Any


class Registry(dict[str, Any]):
    """Functions by name."""

    def register(self, name: str, function: Any) -> None:
        """Keeps a function under a name."""
        self[name] = function

    def get(self, name: str, default: Any = None) -> Any:
        """The function of that name: a registered one, else `ops`' own."""
        if name in self:
            return self[name]
        import jumar.ops  # noqa: PLC0415  (`ops` is made of this room)

        found = getattr(jumar.ops, name, default)
        if found is None:
            raise AttributeError(f"tensor_operator_registry has no function {name!r}, and jumar.ops has none either")
        return found


tensor_operator_registry = Registry()
