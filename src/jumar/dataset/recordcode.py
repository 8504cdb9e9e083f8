"""The encodings inside a MindRecord file: MessagePack for numbers and texts of a row, packed arrays for the rest.

In: bytes of a page.  Out: values, and the way back (mindrecord.py).  Integers of arrays are stored with 1, 2, 4 or 8 bytes each; two bits
say which, four of them to a byte, ahead of the values.
"""

from __future__ import annotations

import struct
from typing import Any

import numpy as np

from jumar.dataset.errors import DataFault

Array = np.ndarray[Any, np.dtype[Any]]
_NUMBERS = {
    0xCA: ">f", 0xCB: ">d", 0xCC: ">B", 0xCD: ">H", 0xCE: ">I", 0xCF: ">Q", 0xD0: ">b", 0xD1: ">h", 0xD2: ">i", 0xD3: ">q",
}  # fmt: skip


def unpack(data: bytes) -> Any:
    """One MessagePack value: dicts, lists, texts, bytes, numbers, bools and None."""
    try:
        return _unpack(data, 0)[0]
    except (IndexError, struct.error, UnicodeDecodeError) as error:
        raise DataFault(f"MindRecord: a row must be MessagePack, got {error}") from error


def _unpack(data: bytes, at: int) -> tuple[Any, int]:
    head = data[at]
    at += 1
    if head < 0x80:
        return head, at
    if head >= 0xE0:
        return head - 256, at
    if head in _NUMBERS:
        form = _NUMBERS[head]
        return struct.unpack_from(form, data, at)[0], at + struct.calcsize(form)
    if head in (0xC0, 0xC2, 0xC3):
        return {0xC0: None, 0xC2: False, 0xC3: True}[head], at
    if 0xA0 <= head < 0xC0 or 0xD9 <= head <= 0xDB or 0xC4 <= head <= 0xC6:
        if head < 0xC0:
            size = head & 31
        else:
            form = {0xD9: ">B", 0xDA: ">H", 0xDB: ">I", 0xC4: ">B", 0xC5: ">H", 0xC6: ">I"}[head]
            size = struct.unpack_from(form, data, at)[0]
            at += struct.calcsize(form)
        raw = bytes(data[at : at + size])
        if len(raw) < size:
            raise IndexError("the end of the data")
        return (raw if 0xC4 <= head <= 0xC6 else raw.decode("utf-8")), at + size
    if head < 0x90 or head in (0xDE, 0xDF):
        size, at = _size(data, at, head, 0x90, 0xDE)
        table = {}
        for _ in range(size):
            key, at = _unpack(data, at)
            table[key], at = _unpack(data, at)
        return table, at
    if head < 0xA0 or head in (0xDC, 0xDD):
        size, at = _size(data, at, head, 0xA0, 0xDC)
        items = []
        for _ in range(size):
            item, at = _unpack(data, at)
            items.append(item)
        return items, at
    raise DataFault(f"MindRecord: a row must be MessagePack without extensions, got byte {head:#x}")


def _size(data: bytes, at: int, head: int, small: int, wide: int) -> tuple[int, int]:
    if head < small:
        return head & 15, at
    form = ">H" if head == wide else ">I"
    return struct.unpack_from(form, data, at)[0], at + struct.calcsize(form)


def pack(value: Any) -> bytes:
    """A dict of texts to numbers and texts as MessagePack.

    >>> unpack(pack({"a": -5, "b": "x", "c": 0.5}))
    {'a': -5, 'b': 'x', 'c': 0.5}
    """
    match value:
        case bool():
            return b"\xc3" if value else b"\xc2"
        case int():
            if -32 <= value < 128:
                return struct.pack(">b", value) if value < 0 else bytes([value])
            forms = (
                ((0xCC, ">B"), (0xCD, ">H"), (0xCE, ">I"), (0xCF, ">Q"))
                if value >= 0
                else ((0xD0, ">b"), (0xD1, ">h"), (0xD2, ">i"), (0xD3, ">q"))
            )
            for code, form in forms:
                try:
                    return bytes([code]) + struct.pack(form, value)
                except struct.error:
                    continue
            raise DataFault(f"MindRecord: an integer must fit 64 bits, got {value}")
        case float():
            return b"\xcb" + struct.pack(">d", value)
        case str():
            raw = value.encode("utf-8")
            if len(raw) < 32:
                return bytes([0xA0 | len(raw)]) + raw
            code, form = next(
                (c, f) for c, f, top in ((0xD9, ">B", 1 << 8), (0xDA, ">H", 1 << 16), (0xDB, ">I", 1 << 32)) if len(raw) < top
            )
            return bytes([code]) + struct.pack(form, len(raw)) + raw
        case dict():
            head = bytes([0x80 | len(value)]) if len(value) < 16 else b"\xde" + struct.pack(">H", len(value))
            return head + b"".join(pack(k) + pack(v) for k, v in value.items())
    raise DataFault(f"MindRecord: a value must be a number or a text, got {type(value).__name__}")


def pack_integers(values: Array) -> bytes:
    """Integers with as many bytes each as they need."""
    flat = values.reshape(-1).astype("<i8")
    kinds = np.select([(flat >= -(1 << b)) & (flat < 1 << b) for b in (7, 15, 31)], [0, 1, 2], 3)
    padded = np.zeros(-(-len(flat) // 4) * 4, np.uint8)
    padded[: len(flat)] = kinds
    control = (padded.reshape(-1, 4) << np.array([6, 4, 2, 0], np.uint8)).sum(1).astype(np.uint8)
    body = b"".join(int(v).to_bytes(1 << k, "little", signed=True) for v, k in zip(flat.tolist(), kinds.tolist()))
    if len(set(kinds.tolist())) == 1:
        body = flat.astype(f"<i{1 << int(kinds[0])}").tobytes()
    packed: bytes = struct.pack(">I", len(flat)) + control.tobytes() + bytes(body)
    return packed


def unpack_integers(data: bytes, kind: str) -> Array:
    """The integers of `pack_integers`.

    >>> unpack_integers(pack_integers(np.array([1, 300, 70000, -1, 1 << 40])), "int64").tolist()
    [1, 300, 70000, -1, 1099511627776]
    """
    count = struct.unpack_from(">I", data)[0]
    control = np.frombuffer(data, np.uint8, -(-count // 4), 4)
    kinds = ((control[:, None] >> np.array([6, 4, 2, 0], np.uint8)) & 3).reshape(-1)[:count].astype(np.int64)
    body = np.frombuffer(data, np.uint8, offset=4 + len(control))
    widths = 1 << kinds
    if int(widths.sum()) > len(body):
        raise DataFault(f"MindRecord: an array of {count} integers must have {int(widths.sum())} bytes, got {len(body)}")
    starts = np.cumsum(widths) - widths
    out = np.zeros(count, np.dtype(kind))
    for k in range(4):
        mine = np.flatnonzero(kinds == k)
        if len(mine):
            raw = np.ascontiguousarray(body[starts[mine][:, None] + np.arange(1 << k)])
            out[mine] = raw.view(f"<i{1 << k}").reshape(-1)
    return out


def split_blob(data: bytes, fields: list[str]) -> dict[str, bytes]:
    """The parts of a row's blob: a length and then, where there are several, each with its own length ahead."""
    total = int.from_bytes(data[:8], "little")
    body = data[8 : 8 + total]
    if len(body) < total:
        raise DataFault(f"MindRecord: a blob must have {total} bytes, got {len(body)}")
    if len(fields) == 1:
        return {fields[0]: body}
    found, at = {}, 0
    for name in fields:
        size = int.from_bytes(body[at : at + 8], "big")
        found[name] = body[at + 8 : at + 8 + size]
        at += 8 + size
    return found


def join_blob(parts: list[bytes]) -> bytes:
    """The way back from `split_blob`."""
    body = parts[0] if len(parts) == 1 else b"".join(len(p).to_bytes(8, "big") + p for p in parts)
    if not parts:
        body = bytes(4)
    return len(body).to_bytes(8, "little") + body
