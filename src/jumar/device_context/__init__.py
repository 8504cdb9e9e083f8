"""`mindspore.device_context`: one module for each kind of device, with its switches.   Only the CPU's is of use here; the others say so."""

from __future__ import annotations

from jumar.device_context import ascend, cpu, gpu

__all__ = ["ascend", "cpu", "gpu"]
