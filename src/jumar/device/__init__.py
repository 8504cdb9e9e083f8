"""Machines as data, and what this machine is: the CPU target and the search for an Ascend NPU."""

from jumar.device.ascend.cann import Cann, find_cann
from jumar.device.cpu import FEATURES, can_execute_here, free_nbytes, host, memory_nbytes, missing_features, named, pin, usable_cores
from jumar.device.target import Target

__all__ = [
    "FEATURES",
    "Cann",
    "Target",
    "can_execute_here",
    "find_cann",
    "free_nbytes",
    "host",
    "memory_nbytes",
    "missing_features",
    "named",
    "pin",
    "usable_cores",
]
