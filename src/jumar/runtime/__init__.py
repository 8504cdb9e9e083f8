"""The runtime: Programs, and what runs them.   Needs base and device only, so that a deployed model is small.

MindSpore has a room of this name, too: scripts that ask it for streams or figures of memory are handed to `jumar.hal`.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from jumar.runtime.buffer import ALIGN, Recycler, aligned, allocate, view
from jumar.runtime.executor import Bound, Instance, StepTime, measure
from jumar.runtime.link import Code, link
from jumar.runtime.native import pool_object, ship
from jumar.runtime.program import (
    Arg,
    HostStep,
    KernelRef,
    Port,
    Program,
    Ref,
    Step,
    View,
    bits,
    check,
    dump,
    fault_number,
    load,
    load_program,
    pieces,
    save_program,
)

if TYPE_CHECKING:
    from jumar.runtime.package import Package, load_package, run_package, save_package

_PACKAGE = ("Package", "load_package", "run_package", "save_package")  # imported when asked for: a model from the cache is none

__all__ = [
    "ALIGN", "Arg", "Bound", "Code", "HostStep", "Instance", "KernelRef", "Package", "Port", "Program", "Ref", "Step", "StepTime", "View",
    "Recycler", "aligned", "allocate", "bits", "check", "dump", "fault_number", "link", "load", "load_package", "load_program", "measure", "pieces",
    "pool_object", "run_package", "save_package", "save_program", "ship", "view",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    """What packages need; else a name of `mindspore.runtime`."""
    if name in _PACKAGE:
        return getattr(importlib.import_module("jumar.runtime.package"), name)
    hal = importlib.import_module("jumar.hal") if not name.startswith("_") else None
    if hal is None or name not in hal.RUNTIME:
        raise AttributeError(f"module 'jumar.runtime' has no attribute {name!r}")
    return getattr(hal, name)
