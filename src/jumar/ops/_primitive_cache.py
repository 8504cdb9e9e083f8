"""Primitives that are made once: `_get_cache_prim(ops.Add)()`.

In: the class of a primitive, then its arguments.  Out: an instance; the same one for the same arguments where they can be hashed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

_MADE: dict[Any, Any] = {}


def _is_need_compile(func: Any) -> bool:
    """Whether the function waits for a compiler: none does."""
    return False


def _get_cache_prim(cls: Callable[..., Any]) -> Callable[..., Any]:
    """The maker of cached instances of a class."""

    def make(*args: Any, **kwargs: Any) -> Any:
        try:
            key = (cls, args, tuple(sorted(kwargs.items())), *map(type, args), *map(type, kwargs.values()))
            found = _MADE.get(key)
        except TypeError:  # an argument that cannot be hashed
            return cls(*args, **kwargs)
        if found is None:
            found = _MADE[key] = cls(*args, **kwargs)
        return found

    return make
