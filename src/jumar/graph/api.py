"""The names of `mindspore.graph.api`: those of `jumar.common.api`."""

from __future__ import annotations

from jumar.common.api import (
    JitConfig,
    _cell_graph_executor,
    _function_forbid_reuse,
    _no_grad,
    _pynative_executor,
    flops_collection,
    jit,
    jit_class,
    ms_memory_recycle,
    mutable,
    register_saved_tensors_hooks,
    saved_tensors_hooks,
    set_recursion_limit,
)

__all__ = [
    "JitConfig", "_cell_graph_executor", "_function_forbid_reuse", "_no_grad", "_pynative_executor", "flops_collection", "jit", "jit_class",
    "ms_memory_recycle", "mutable", "register_saved_tensors_hooks", "saved_tensors_hooks", "set_recursion_limit",
]  # fmt: skip
