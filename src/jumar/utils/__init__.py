"""`mindspore.utils`: exchange by DLPack, and a check that all is well."""

from __future__ import annotations

from jumar.utils.dlpack import from_dlpack, to_dlpack
from jumar.utils.run_check import run_check

__all__ = ["from_dlpack", "run_check", "to_dlpack"]
