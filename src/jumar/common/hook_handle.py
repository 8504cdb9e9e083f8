"""`HookHandle`: what registering a hook returns; `remove()` takes the hook away."""

from __future__ import annotations

from typing import Any


class HookHandle:
    """hooks: where the hook is kept; key: under which key."""

    def __init__(self, hook_dict: dict[Any, Any] | None = None, key: Any = None) -> None:
        self._hooks, self._key = hook_dict, key

    def remove(self) -> None:
        """Takes the hook away; a second time does nothing."""
        if self._hooks is not None:
            self._hooks.pop(self._key, None)
            self._hooks = None
