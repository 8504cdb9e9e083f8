"""What was made of the rules' files, kept in the compile cache, so that a short log is not kept waiting for it.

In: what it is made of, and how.  Out: the same values, from disk where they were made of the same before.  Where the cache is off, full, damaged
or not writable they are made anew, and nothing is said.
"""

from __future__ import annotations

import hashlib
import marshal
import sys
import zlib
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, TypeVar

from jumar.base import Store, config
from jumar.version import VERSION

FOLDER = "knowledge"  # in the compile cache
_CAP_GB = 0.03  # some thirty entries: who edits rules makes a new one each time
_Value = TypeVar("_Value")


def kept(kind: str, made_of: Iterable[bytes], make: Callable[[], _Value]) -> _Value:
    """The value that `make` makes.   made_of: all that it depends on, its code included; the value: of numbers, texts, tuples, lists and dicts only."""
    if not config("cache"):
        return make()
    digest = hashlib.sha256(f"{kind} {VERSION} {sys.version}".encode())  # marshal's format is that of this Python
    for part in made_of:
        digest.update(len(part).to_bytes(8, "little"))
        digest.update(part)
    store, key = Store(Path(config("cache_dir")) / FOLDER, cap_gb=_CAP_GB), digest.hexdigest()
    packed = store.get(key)
    if packed is not None:
        try:
            found: _Value = marshal.loads(zlib.decompress(packed))
        except (zlib.error, ValueError, EOFError, TypeError):  # whole, but not ours: made anew below
            pass
        else:
            return found
    value: Any = make()
    store.put(key, zlib.compress(marshal.dumps(value), 1))
    made: _Value = value
    return made
