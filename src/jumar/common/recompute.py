"""`recompute(block, *args)`: in MindSpore a block whose inner values are computed again in the backward pass, to save memory.

In: a block and its arguments.  Out: its result (frontend/recompute.py).
"""

from __future__ import annotations

from typing import Any

from jumar.frontend.recompute import recomputed


def recompute(
    block: Any, *args: Any, use_reentrant: bool = True, output_recompute: bool = False, early_stop: bool = True, context_fn: Any = None,
    **kwargs: Any,
) -> Any:  # fmt: skip
    """The block's result."""
    if not callable(block):
        raise TypeError(f"recompute: block must be a cell or a function, got {type(block).__name__}")
    parameters = list(block.get_parameters()) if hasattr(block, "get_parameters") else []
    return recomputed(block, args, kwargs, parameters)
