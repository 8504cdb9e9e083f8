"""`set_device`, `get_current_device` and `set_deterministic`: short ways to keys of the context.

In: a device's name.  Out: the context; a device that this process cannot use is an error, as in `set_context`.
"""

from __future__ import annotations

from typing import NamedTuple

from jumar.context import get_context, set_context


class DeviceInfo(NamedTuple):
    """Which device runs."""

    device_target: str
    device_id: int


def set_device(device_target: str, device_id: int | None = None) -> None:
    """Chooses the device: "CPU", or "Ascend" for the twin of an NPU."""
    set_context(device_target=device_target)
    if device_id is not None:
        set_context(device_id=device_id)


def get_current_device() -> DeviceInfo:
    """The device that runs."""
    return DeviceInfo(get_context("device_target"), get_context("device_id"))


def set_deterministic(deterministic: bool) -> None:
    """Asks for equal results at every run; Jumar's are so in any case."""
    if not isinstance(deterministic, bool):
        raise TypeError(f"The parameter 'deterministic' must be {bool}, but got {type(deterministic)}")
    set_context(deterministic="ON" if deterministic else "OFF")
