"""`Registry`: the parameters, children or buffers of a cell, in order; every change is counted, so that captured functions look again.

In: names and what they stand for.  Out: a dict; `guards.EPOCH` counts up when it changes.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

from jumar.frontend.guards import EPOCH


class Registry(OrderedDict[str, Any]):
    """An ordered dict whose changes count as changes of cells."""

    def __setitem__(self, name: str, value: Any) -> None:
        EPOCH[0] += 1
        super().__setitem__(name, value)

    def __delitem__(self, name: str) -> None:
        EPOCH[0] += 1
        super().__delitem__(name)

    def clear(self) -> None:
        EPOCH[0] += 1
        super().clear()

    def pop(self, *args: Any, **kwargs: Any) -> Any:
        EPOCH[0] += 1
        return super().pop(*args, **kwargs)

    def popitem(self, last: bool = True) -> tuple[str, Any]:
        EPOCH[0] += 1
        return super().popitem(last)

    def move_to_end(self, key: str, last: bool = True) -> None:
        EPOCH[0] += 1
        super().move_to_end(key, last)
