"""`no_init_parameters`: networks whose parameters will be loaded anyway.

In: a `with` block.  Out: parameters of zeros in it, which cost no random numbers.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from jumar.common.initializer import only_zeros

__all__ = ["no_init_parameters"]


@contextmanager
def no_init_parameters() -> Iterator[None]:
    """Within it initialisers leave zeros."""
    with only_zeros():
        yield
