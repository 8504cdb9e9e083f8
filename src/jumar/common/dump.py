"""`set_dump`: marks cells whose values MindSpore's dump would write.   Jumar writes none, and says so."""

from __future__ import annotations

from typing import Any, NoReturn


def set_dump(target: Any, enabled: bool = True) -> NoReturn:
    """Raises: what a cell computes is seen with a forward hook."""
    raise NotImplementedError("set_dump: values are not dumped here; register_forward_hook on the cell shows them")
