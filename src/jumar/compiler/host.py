"""What a host step of a Program names: the reference of an operator.

In: the text of an operator in a `HostStep`.  Out: the NumPy function for `runtime.Instance`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np

from jumar.base import Array
from jumar.ir import parse_op


@lru_cache(maxsize=4096)
def host_function(text: str) -> Callable[..., Any]:
    """The function that computes an operator, from its text.

    >>> host_function("add")(np.float32(1), np.float32(2))
    np.float32(3.0)
    """
    op = parse_op(text)

    def run(*arrays: Array) -> Any:
        with np.errstate(all="ignore"):
            return op.reference(*arrays)

    return run
