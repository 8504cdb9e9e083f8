"""`parameter_broadcast`: hands a network's parameters to other processes: there are none."""

from __future__ import annotations

from typing import Any


def parameter_broadcast(net: Any, layout: Any, cur_rank: int = 0, initial_rank: int = 0) -> None:
    """Nothing: the only process has the parameters."""
    if cur_rank != 0 or initial_rank != 0:
        raise ValueError(f"parameter_broadcast: ranks must be 0 in a job of one process, got {cur_rank} and {initial_rank}")
