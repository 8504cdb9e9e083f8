"""The CPU: available, and one."""

from __future__ import annotations

from typing import NoReturn


def is_available() -> bool:
    """True."""
    return True


def device_count() -> int:
    """1: all cores are one device."""
    return 1


class _Tuning:
    """Switches of MindSpore's CPU kernels, which are not here."""

    @staticmethod
    def threads_num(num: int) -> NoReturn:
        """Raises: the setting is JUMAR_THREADS."""
        raise NotImplementedError(
            "op_tuning.threads_num: threads of the CPU are set by set_context(runtime_num_threads=...) or JUMAR_THREADS"
        )


op_tuning = _Tuning()
