"""`recompute(block, *args)`: in MindSpore a block whose inner values are computed again in the backward pass, to save memory.

In: a block and its arguments.  Out: its result.  The numbers are the same; what the backward pass keeps is the compiler's choice here.
"""

from __future__ import annotations

from typing import Any

from jumar.base import event


def recompute(
    block: Any, *args: Any, use_reentrant: bool = True, output_recompute: bool = False, early_stop: bool = True, context_fn: Any = None,
    **kwargs: Any,
) -> Any:  # fmt: skip
    """The block's result."""
    if not callable(block):
        raise TypeError(f"recompute: block must be a cell or a function, got {type(block).__name__}")
    event("recompute", block=type(block).__name__, effect="values are kept, not computed again")
    return block(*args, **kwargs)
