"""`.safetensors` files: eight bytes of length, a JSON table of contents, raw values.

In: names with arrays; a file.  Out: the file; its entries.  The table is believed only where it agrees with the file: ranges within it, without overlap, and as
long as their shapes say.
"""

from __future__ import annotations

import json
import os
import zlib
from collections.abc import Mapping
from typing import Any, BinaryIO

import numpy as np

from jumar.base import Array
from jumar.frontend import dtype as types
from jumar.frontend.dtype import Type
from jumar.train.entries import Entry, check_size, damaged, read_bytes
from jumar.train.errors import FileFault, UnsupportedError

_MAX_HEADER = 100_000_000
TYPES: dict[str, Type] = {
    "BOOL": types.bool_, "U8": types.uint8, "I8": types.int8, "U16": types.uint16, "I16": types.int16, "U32": types.uint32, "I32": types.int32,
    "U64": types.uint64, "I64": types.int64, "F16": types.float16, "BF16": types.bfloat16, "F32": types.float32, "F64": types.float64,
    "C64": types.complex64, "F8_E4M3": types.float8_e4m3fn, "F8_E5M2": types.float8_e5m2,
}  # fmt: skip
_NAMES = {t: name for name, t in TYPES.items()}


def read_entries(path: str, file: BinaryIO, *, crc_check: bool = False) -> tuple[dict[str, Entry], dict[str, str]]:
    """Entries by name, in the order of the values, and the file's metadata."""
    size = os.fstat(file.fileno()).st_size
    file.seek(0)
    length = int.from_bytes(file.read(8), "little") if size >= 8 else -1
    if not 2 <= length <= min(size - 8, _MAX_HEADER):
        raise damaged(path, f"table of contents must fit into the file of {size} bytes, got a length of {length}")
    table = _table(path, file.read(length))
    metadata = table.pop("__metadata__", {})
    if not isinstance(metadata, dict) or not all(isinstance(v, str) for v in metadata.values()):
        raise damaged(path, "metadata must be texts by name")
    found = [_entry(path, name, about, 8 + length, size) for name, about in table.items()]
    found.sort(key=lambda e: e.pieces[0])
    end = 8 + length
    for entry in found:
        if entry.pieces[0][0] != end:
            raise damaged(path, f"values must follow one another, got {entry.name!r:.120} at byte {entry.pieces[0][0]} instead of {end}")
        end += entry.nbytes
    if end != size:
        raise damaged(path, f"file must end with its last value, at byte {end}, got {size} bytes")
    entries = {e.name: e for e in found}
    if crc_check:
        _check_crc(path, file, entries, metadata)
    return entries, metadata


def write_safetensors(file: BinaryIO, values: Mapping[str, Array], metadata: Mapping[str, str], *, crc_check: bool = False) -> None:
    """Writes arrays under their names, the widest elements first, so that each lies at a multiple of its width."""
    names = sorted(values, key=lambda n: (-values[n].dtype.itemsize, n))
    about = dict(metadata)
    if crc_check:
        about["crc_num"] = str(_crc((n, _raw(values[n])) for n in sorted(names)))
    table: dict[str, Any] = {"__metadata__": about} if about else {}
    at = 0
    for name in names:
        array = values[name]
        dtype = types.of_numpy(array.dtype)
        if dtype not in _NAMES or name == "__metadata__":
            what = f"save_checkpoint: {name!r:.120} must have an element type of safetensors ({', '.join(_NAMES.values())}), got {dtype}"
            raise UnsupportedError(what, code="checkpoint-kind")
        table[name] = {"dtype": _NAMES[dtype], "shape": list(array.shape), "data_offsets": [at, at + array.nbytes]}
        at += array.nbytes
    header = json.dumps(table, separators=(",", ":"), ensure_ascii=False).encode("utf-8")
    header += b" " * (-len(header) % 8)  # values begin at a multiple of eight bytes
    file.write(len(header).to_bytes(8, "little") + header)
    for name in names:
        file.write(_raw(values[name]))


def _raw(array: Array) -> memoryview:
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8).data


def _table(path: str, raw: bytes) -> dict[str, Any]:
    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) != len(pairs):
            raise ValueError("a name stands twice")
        return found

    try:
        table = json.loads(raw.decode("utf-8"), object_pairs_hook=once)
    except (ValueError, RecursionError) as error:
        raise damaged(path, f"table of contents must be JSON, got {str(error)[:120] or 'nesting without end'}") from error
    if not isinstance(table, dict):
        raise damaged(path, f"table of contents must be a JSON object, got {type(table).__name__}")
    return table


def _entry(path: str, name: str, about: Any, start: int, size: int) -> Entry:
    match about:
        case {"dtype": str(kind), "shape": [*dims], "data_offsets": [int(begin), int(end)]} if all(type(d) is int for d in dims):
            pass
        case _:
            raise damaged(path, f"{name!r:.120} must have dtype, shape and data_offsets, got {about!r:.120}")
    if type(begin) is bool or type(end) is bool or not 0 <= begin <= end <= size - start:
        raise damaged(path, f"{name!r:.120} must lie in the file of {size} bytes, got bytes {begin} to {end} behind {start}")
    if kind not in TYPES:
        raise UnsupportedError(
            f"{path}: element type of {name!r:.120} must be one of {', '.join(TYPES)}, got {kind!r:.60}", code="checkpoint-kind"
        )
    entry = Entry(name, TYPES[kind], tuple(dims), ((start + begin, end - begin),))
    check_size(path, entry)
    return entry


def _check_crc(path: str, file: BinaryIO, entries: Mapping[str, Entry], metadata: Mapping[str, str]) -> None:
    stated = metadata.get("crc_num")
    if stated is None:
        raise FileFault(
            f"{path}: file must hold a checksum to be checked, got none",
            hint="save with crc_check=True, or load without",
            code="checkpoint-checksum",
        )
    found = _crc((n, read_bytes(path, file, entries[n])) for n in sorted(entries))
    if stated != str(found):
        raise damaged(path, f"checksum of the values must be {stated:.40}, got {found}")


def _crc(values: Any) -> int:
    found = 0
    for name, raw in values:
        found = zlib.crc32(raw, zlib.crc32(name.encode("utf-8"), found))
    return found
