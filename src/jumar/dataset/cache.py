"""`DatasetCache`: rows of a source kept in the memory of this process, so that later epochs do not read them again.

In: the place of a row and how to read it.  Out: the row (sources.py).
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import numpy as np

from jumar.dataset.errors import DataFault, check_int


class DatasetCache:
    """Rows up to `size` MiB (0: no limit); what does not fit is read each time.   `session_id` is kept as a name; there is no server."""

    def __init__(
        self,
        session_id: int,
        size: int = 0,
        spilling: bool = False,
        hostname: str | None = None,
        port: int | None = None,
        num_connections: int | None = None,
        prefetch_size: int | None = None,
    ) -> None:
        self.session_id = check_int("DatasetCache", "session_id", session_id, 0, 2**32 - 1)
        self.size = check_int("DatasetCache", "size", size, 0)
        if spilling:
            raise DataFault("DatasetCache: spilling must be False, got True", hint="rows that do not fit are read again")
        if hostname is not None or port is not None:
            raise DataFault("DatasetCache: hostname and port must be None, got a server", hint="the cache is in this process")
        self._rows: dict[int, Any] = {}
        self._nbytes = 0
        self._lock = threading.Lock()
        self.hits = 0

    def row(self, place: int, read: Callable[[int], Any]) -> Any:
        """The row at a place: kept, or read now."""
        with self._lock:
            if place in self._rows:
                self.hits += 1
                return self._rows[place]
        row = read(place)
        nbytes = sum(v.nbytes for v in row if isinstance(v, np.ndarray))
        with self._lock:
            if place not in self._rows and (not self.size or self._nbytes + nbytes <= self.size << 20):
                for v in row:
                    if isinstance(v, np.ndarray):
                        v.setflags(write=False)  # an operation that writes into its input would change the next epoch
                self._rows[place] = row
                self._nbytes += nbytes
        return row

    def get_stat(self) -> dict[str, int]:
        return {"num_mem_cached": len(self._rows), "avg_cache_sz": self._nbytes // max(1, len(self._rows)), "num_disk_cached": 0}
