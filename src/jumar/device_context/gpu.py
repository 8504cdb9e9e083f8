"""GPU: not available, since Jumar has no code generator for it.   Its switches raise."""

from __future__ import annotations

from typing import NoReturn

from jumar.device_context._absent import Switches


def is_available() -> bool:
    """False."""
    return False


def device_count() -> NoReturn:
    """Raises, as MindSpore does without the device."""
    raise RuntimeError("Device GPU not exist.")


op_precision = Switches("gpu", "op_precision", ("matmul_allow_tf32", "conv_allow_tf32"))
op_tuning = Switches("gpu", "op_tuning", ("conv_fprop_algo", "conv_wgrad_algo", "conv_dgrad_algo"))
