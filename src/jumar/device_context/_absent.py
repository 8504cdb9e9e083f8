"""What the modules of absent devices are made of: switches that raise when they are used."""

from __future__ import annotations

from collections.abc import Callable
from typing import NoReturn

from jumar.context import TargetError


class Switches:
    """A group of switches: any name in it is a function that raises."""

    def __init__(self, device: str, group: str, names: tuple[str, ...]) -> None:
        self._device, self._group, self._names = device, group, names

    def __getattr__(self, name: str) -> Callable[..., NoReturn]:
        if name not in self._names:
            raise AttributeError(f"device_context.{self._device}.{self._group} has no switch {name!r}; it has {', '.join(self._names)}")

        def refuse(*args: object, **kwargs: object) -> NoReturn:
            raise TargetError(
                f"device_context.{self._device}.{self._group}.{name}: a device must be there, got none: {self._device} cannot run here",
                hint="guard it by device_context.is_available()",
                code="device-target",
            )

        return refuse

    def __dir__(self) -> list[str]:
        return list(self._names)
