"""`mindspore.multiprocessing`: Python's own module of that name; tensors travel by pickle."""

from __future__ import annotations

import multiprocessing as _multiprocessing
from multiprocessing import *  # noqa: F403
from multiprocessing import Process as Process
from multiprocessing.pool import Pool as Pool

__all__ = [*_multiprocessing.__all__]  # type: ignore[attr-defined]
