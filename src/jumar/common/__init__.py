"""`mindspore.common`: tensors, parameters, element types, seeds, and the functions that capture.

In: the core of the front end (`jumar.frontend`).  Out: the names under which scripts look for them.
Submodules come first: functions of the same names (`seed`, `mutable`) hide them.
"""

from __future__ import annotations

from typing import Any

import jumar.common.lazy_inline
import jumar.common.mutable
import jumar.common.no_inline
import jumar.common.recompute
import jumar.common.seed
from jumar.common import _stub_tensor, _utils, api, dtype, generator, hook_handle, jit_config, symbol
from jumar.common._grad_function import _Function as _Function
from jumar.common.api import (
    JitConfig,
    Symbol,
    enable_dynamic,
    flops_collection,
    jit,
    jit_class,
    lazy_inline,
    ms_memory_recycle,
    mutable,
    no_inline,
    register_saved_tensors_hooks,
    saved_tensors_hooks,
    set_recursion_limit,
)
from jumar.common.api import _no_grad as _no_grad
from jumar.common.device import DeviceCtx
from jumar.common.dtype import *  # noqa: F403  (the names of element types are names of this room, too)
from jumar.common.dump import set_dump
from jumar.common.file_system import mindio_preload, set_mindio_server_info
from jumar.common.generator import Generator, default_generator, get_rng_state, initial_seed, manual_seed, seed, set_rng_state
from jumar.common.parameter import Parameter, ParameterTuple
from jumar.common.recompute import recompute
from jumar.common.seed import get_seed, set_seed
from jumar.common.sparse_tensor import COOTensor, CSRTensor, RowTensor, RowTensorInner, SparseTensor
from jumar.common.storage import UntypedStorage
from jumar.common.tensor import Tensor, from_numpy, swap_tensors, tensor


def __getattr__(name: str) -> Any:
    if name == "is_tensor":  # `ops` is made of this room
        import jumar.ops  # noqa: PLC0415

        return jumar.ops.is_tensor
    if name in ("load_mindir", "save_mindir"):
        import jumar.train  # noqa: PLC0415

        return getattr(jumar.train, name)
    if name == "initializer":
        import importlib  # noqa: PLC0415

        return importlib.import_module("jumar.common.initializer")
    raise AttributeError(f"module 'jumar.common' has no attribute {name!r}")


import jumar.ops  # noqa: E402  (hangs its functions on Tensor as methods)

__all__ = [name for name in sorted(globals()) if not name.startswith("__") and name not in ("annotations", "Any", "jumar")]
