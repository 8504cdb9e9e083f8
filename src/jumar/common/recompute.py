"""`recompute(block, *args)`: the block's inner values are computed again in the backward pass instead of being kept.

In: a cell or a function and its arguments.  Out: its result, by `jumar.frontend.recompute`.
"""

from __future__ import annotations

from typing import Any

from jumar.frontend.recompute import recomputed


def recompute(
    block: Any, *args: Any, use_reentrant: bool = True, output_recompute: bool = False, early_stop: bool = True, context_fn: Any = None,
    **kwargs: Any,
) -> Any:  # fmt: skip
    """The block's result.   context_fn: not supported; the other switches choose nothing, as there is one way to recompute."""
    if not callable(block):
        raise TypeError(f"recompute: block must be a cell or a function, got {type(block).__name__}")
    if context_fn is not None:
        raise NotImplementedError("recompute: context_fn must be None; blocks around the two runs are not supported")
    parameters = getattr(block, "get_parameters", None) or getattr(getattr(block, "__self__", None), "get_parameters", None)
    return recomputed(block, args, kwargs, list(parameters()) if callable(parameters) else [])
