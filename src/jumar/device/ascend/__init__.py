"""An Ascend host as its own files and tools describe it: versions, cards, networks, error codes; texts in, typed values out.

In: texts that npu-smi, hccn_tool, the packages' version files and logs hold.  Out: values that know what they mean and precise complaints.
Nothing is started, nothing is sent.  Each name is imported when it is first asked for, so that a deployed model does not wait for tables.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from jumar.device.ascend.cann import Cann, find_cann

if TYPE_CHECKING:
    from jumar.device.ascend.pending import Code, Mention, codes_in, pairings
    from jumar.device.ascend.stated import STATES_A_VERSION, Stated, component_versions, versions_stated
    from jumar.device.ascend.versions import Version, parse_version, read_version

_FACES: dict[str, str] = {  # where each name lives: file -> its names
    "pending": "Code Mention codes_in pairings",
    "stated": "STATES_A_VERSION Stated component_versions versions_stated",
    "versions": "Version parse_version read_version",
}
_PLACES = {name: file for file, names in _FACES.items() for name in names.split()}

__all__ = [
    "STATES_A_VERSION",
    "Cann",
    "Code",
    "Mention",
    "Stated",
    "Version",
    "codes_in",
    "component_versions",
    "find_cann",
    "pairings",
    "parse_version",
    "read_version",
    "versions_stated",
]


def __getattr__(name: str) -> Any:
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(f"{__name__}.{_PLACES[name]}"), name)
    globals()[name] = value
    return value
