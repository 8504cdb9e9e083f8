"""The global seed: `set_seed` makes NumPy's random numbers, the initialisers and the default generator repeatable.

In: a seed.  Out: seeded generators; `get_seed`.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from jumar.frontend.random import DEFAULT

_GLOBAL_SEED: list[int | None] = [None]
DEFAULT_GRAPH_SEED = 87654321


def set_seed(seed: int) -> None:
    """Begins every stream of random numbers anew: NumPy's, the default generator's, and those derived for initialisers."""
    if not isinstance(seed, int) or isinstance(seed, bool):
        raise TypeError(f"The argument 'seed' must be type of int, but got {type(seed)}.")
    if seed < 0:
        raise ValueError(f"For 'global_seed', the 'seed' must be int and must >= 0, but got '{seed}' with type 'int'.")
    np.random.seed(seed)
    _reset_op_seed()
    DEFAULT.manual_seed(seed)
    _GLOBAL_SEED[0] = seed
    pipelines = sys.modules.get("jumar.dataset.config")  # one that is loaded later asks for the seed itself
    if pipelines is not None:
        pipelines.set_seed(seed % 2**32)


def get_seed() -> int | None:
    """The seed that was set, or None."""
    return _GLOBAL_SEED[0]


_DRAWN: dict[Any, int] = {}


def _reset_op_seed() -> None:
    """Operators that take their seed from the global one begin anew."""
    _DRAWN.clear()


def _get_graph_seed(op_seed: int, kernel_name: str) -> tuple[int, int]:
    """The pair of seeds of an operator: the global one, and its own or, without one, how many of its kind came before."""
    if get_seed() is None:
        return (DEFAULT_GRAPH_SEED, op_seed) if op_seed else (0, 0)
    if op_seed:
        return int(get_seed() or 0), op_seed
    _DRAWN[kernel_name] = _DRAWN.get(kernel_name, 0) + 1
    return int(get_seed() or 0), _DRAWN[kernel_name]
