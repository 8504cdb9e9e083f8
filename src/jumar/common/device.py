"""`DeviceCtx`: a block in which tensors are made on a device: the CPU, or the twin of an Ascend NPU."""

from __future__ import annotations

from typing import Any

from jumar.context import _target, get_context, set_context


class DeviceCtx:
    """`with DeviceCtx("CPU"):`; another device is an error that says why, as in `set_context`."""

    def __init__(self, name: str, device_id: int | None = None) -> None:
        target = name.split(":", maxsplit=1)[0]
        self.name, self.device_id = (
            _target("device_target", {"cpu": "CPU", "npu": "Ascend", "gpu": "GPU"}.get(target.lower(), target)),
            device_id,
        )

    def __enter__(self) -> DeviceCtx:
        self._before = get_context("device_target")
        set_context(device_target=self.name)
        return self

    def __exit__(self, *_: Any) -> None:
        set_context(device_target=self._before)

    def __call__(self, function: Any) -> Any:
        return function
