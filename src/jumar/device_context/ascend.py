"""Ascend: not available, since its driver and run time (CANN) were not found.   Its switches raise."""

from __future__ import annotations

from typing import NoReturn

from jumar.device_context._absent import Switches


def is_available() -> bool:
    """False."""
    return False


def device_count() -> NoReturn:
    """Raises, as MindSpore does without the device."""
    raise RuntimeError("Device Ascend not exist.")


op_precision = Switches("ascend", "op_precision", ("precision_mode", "op_precision_mode", "matmul_allow_hf32", "conv_allow_hf32"))
op_debug = Switches("ascend", "op_debug", ("execute_timeout", "debug_option", "aclinit_config"))
op_tuning = Switches("ascend", "op_tuning", ("aoe_tune_mode", "aoe_job_type", "op_compile", "aclnn_cache"))
