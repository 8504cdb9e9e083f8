"""`mindspore.multiprocessing`: Python's own module of that name; tensors travel by pickle."""

from __future__ import annotations

import multiprocessing as _python
from multiprocessing import *  # noqa: F403

__all__ = [name for name in _python.__all__]  # noqa: C416
