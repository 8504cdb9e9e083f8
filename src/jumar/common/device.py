"""`DeviceCtx`: a block in which tensors are made on a device.   There is one: the CPU."""

from __future__ import annotations

from typing import Any

from jumar.context import _target


class DeviceCtx:
    """`with DeviceCtx("CPU"):`; another device is an error that says why, as in `set_context`."""

    def __init__(self, name: str, device_id: int | None = None) -> None:
        target = name.split(":", maxsplit=1)[0]
        self.name, self.device_id = (
            _target("device_target", {"cpu": "CPU", "npu": "Ascend", "gpu": "GPU"}.get(target.lower(), target)),
            device_id,
        )

    def __enter__(self) -> DeviceCtx:
        return self

    def __exit__(self, *_: Any) -> None:
        return None

    def __call__(self, function: Any) -> Any:
        return function
