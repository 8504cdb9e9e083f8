"""MindSpore's `.ckpt` files: a protobuf message `Checkpoint`, read and written by hand.

In: names with arrays or texts; a file.  Out: the file; its entries.
    Checkpoint { repeated Value value = 1; }   Value { string tag = 1; TensorProto tensor = 2; MapTensorProto maptensor = 3; }
    TensorProto { repeated int64 dims = 1; string tensor_type = 2; bytes tensor_content = 3; }
Large values stand in slices: Values of the same tag, one after the other, each with the dims of the whole.  A CRC-32 of all bytes may follow: the
letters `crc_num` and ten bytes, big end first.  Reading believes nothing: each length is checked against what holds it before it is used.
"""

from __future__ import annotations

import os
import zlib
from collections.abc import Callable, Iterable
from typing import BinaryIO

import numpy as np

from jumar.base import Array
from jumar.frontend import dtype as types
from jumar.frontend.dtype import Type
from jumar.train.entries import Entry, check_size, damaged, read_bytes
from jumar.train.errors import FileFault, UnsupportedError

SLICE_NBYTES = 512 << 20
_CRC_MARK, _CRC_NBYTES = b"crc_num", 17
_MAX_HEADER = 1 << 20  # names and dims of one value; contents are not read here
TYPES: dict[str, Type] = {str(t): t for t in types.NAMES.values() if t.dtype is not None and t not in (types.string, types.qint4x2)}
_CIPHER_MAGIC = tuple(bytes.fromhex(m) for m in ("d85e3a7f", "d95e3a7f", "da5e3a7f"))  # AES-GCM, AES-CBC, SM4-CBC


# ------------------------------------------------------------------ reading
def read_entries(path: str, file: BinaryIO, *, crc_check: bool = False) -> dict[str, Entry]:
    """The entries of a `.ckpt` file by name, in order."""
    size = os.fstat(file.fileno()).st_size
    _refuse_cipher(path, file)
    end = _check_crc(path, file, size, crc_check)
    found: dict[str, Entry] = {}
    last = ""
    reader = _Reader(path, file, 0, end)
    while not reader.done:
        field, wire = reader.key()
        if (field, wire) != (1, 2):
            raise damaged(path, f"file must be a MindSpore checkpoint (.ckpt), got field {field} of kind {wire} at byte {reader.at}")
        entry = _value(reader.inner())
        before = found.get(entry.name)
        if before is not None:
            if last != entry.name or (before.type, before.dims) != (entry.type, entry.dims):
                raise damaged(path, f"{entry.name!r:.120} must stand once, or in slices of one type, got it twice")
            entry = Entry(entry.name, entry.type, entry.dims, before.pieces + entry.pieces)
        found[entry.name] = entry
        last = entry.name
    for entry in found.values():
        check_size(path, entry)
    return found


def read_text(path: str, file: BinaryIO, entry: Entry) -> str:
    """A text: UTF-32, as NumPy stores it."""
    raw = read_bytes(path, file, entry)
    try:
        return raw.decode("utf-32-le").rstrip("\0")
    except UnicodeDecodeError as error:
        raise damaged(path, f"text {entry.name!r:.120} must be UTF-32, got bytes that are not") from error


class _Reader:
    """A message: bytes of a file from `at` to `end`."""

    __slots__ = ("at", "end", "file", "path")

    def __init__(self, path: str, file: BinaryIO, at: int, end: int) -> None:
        self.path, self.file, self.at, self.end = path, file, at, end
        file.seek(at)

    @property
    def done(self) -> bool:
        return self.at >= self.end

    def varint(self) -> int:
        value = 0
        for i in range(10):
            if self.at >= self.end:
                raise self.truncated()
            byte = self.file.read(1)
            if not byte:
                raise self.truncated()
            self.at += 1
            value |= (byte[0] & 0x7F) << (7 * i)
            if byte[0] < 0x80:
                return value & 0xFFFFFFFFFFFFFFFF
        raise damaged(self.path, f"number at byte {self.at} must have at most ten bytes")

    def key(self) -> tuple[int, int]:
        """Field number and kind of what comes."""
        number = self.varint()
        field = number >> 3
        if not 0 < field < 1 << 29:
            raise damaged(self.path, f"field number at byte {self.at} must be from 1 to 2^29 - 1, got {field}")
        return field, number & 7

    def extent(self) -> tuple[int, int]:
        """Place and length of bytes, which are skipped."""
        nbytes = self.varint()
        if nbytes > self.end - self.at:
            raise self.truncated(nbytes)
        place = self.at
        self.at += nbytes
        self.file.seek(self.at)
        return place, nbytes

    def inner(self) -> _Reader:
        """A message inside this one; this one goes on behind it."""
        place, nbytes = self.extent()
        return _Reader(self.path, self.file, place, place + nbytes)

    def short(self, what: str) -> bytes:
        """Few bytes: a name."""
        place, nbytes = self.extent()
        if nbytes > _MAX_HEADER:
            raise damaged(self.path, f"{what} at byte {place} must have at most {_MAX_HEADER} bytes, got {nbytes}")
        self.file.seek(place)
        return self.file.read(nbytes)

    def text(self, what: str) -> str:
        raw = self.short(what)
        try:
            return raw.decode("utf-8")
        except UnicodeDecodeError as error:
            raise damaged(self.path, f"{what} before byte {self.at} must be UTF-8") from error

    def skip(self, wire: int) -> None:
        """An unknown field."""
        match wire:
            case 0:
                self.varint()
            case 1 | 5:
                nbytes = 8 if wire == 1 else 4
                if nbytes > self.end - self.at:
                    raise self.truncated(nbytes)
                self.at += nbytes
                self.file.seek(self.at)
            case 2:
                self.extent()
            case _:
                raise damaged(self.path, f"field at byte {self.at} must be a number or bytes, got kind {wire}")

    def back(self) -> None:
        """Goes on reading here, after a message inside was read."""
        self.file.seek(self.at)

    def truncated(self, nbytes: int = 1) -> FileFault:
        return damaged(self.path, f"file must be complete, got {self.end - self.at} bytes at {self.at} where a field needs {nbytes}")


def _value(reader: _Reader) -> Entry:
    tag: str | None = None
    tensor: tuple[Type | None, tuple[int, ...], tuple[int, int]] | None = None
    start = reader.at
    while not reader.done:
        match reader.key():
            case 1, 2:
                tag = reader.text("name")
            case 2, 2:
                tensor = _tensor(reader.inner())
                reader.back()
            case 3, 2:
                raise UnsupportedError(f"{reader.path}: values must be tensors or texts, got a map parameter", code="checkpoint-kind")
            case _, wire:
                reader.skip(wire)
    if tag is None or tensor is None:
        raise damaged(reader.path, f"value at byte {start} must have a name and a tensor")
    return Entry(tag, tensor[0], tensor[1], (tensor[2],))


def _tensor(reader: _Reader) -> tuple[Type | None, tuple[int, ...], tuple[int, int]]:
    dims: list[int] = []
    name: str | None = None
    content: tuple[int, int] | None = None
    start = reader.at
    while not reader.done:
        match reader.key():
            case 1, 0:
                dims.append(_signed(reader.varint()))
            case 1, 2:
                inner = reader.inner()
                if inner.end - inner.at > _MAX_HEADER:
                    raise damaged(reader.path, f"dimensions at byte {inner.at} must be few")
                inner.back()
                while not inner.done:
                    dims.append(_signed(inner.varint()))
                reader.back()
            case 2, 2:
                name = reader.text("type name")
            case 3, 2:
                content = reader.extent()
            case _, wire:
                reader.skip(wire)
    if name is None or content is None:
        raise damaged(reader.path, f"tensor at byte {start} must have a type and a content")
    if name == "str":
        return None, tuple(dims), content
    if name not in TYPES:
        known = name in ("Int4", "QInt4x2")
        what = f"{reader.path}: element type must be one of {', '.join(TYPES)} or str, got {name!r:.60}"
        raise UnsupportedError(what, code="checkpoint-kind") if known else damaged(reader.path, what.split(": ", 1)[1])
    return TYPES[name], tuple(dims), content


def _signed(value: int) -> int:
    return value - (1 << 64) if value >= 1 << 63 else value


def _check_crc(path: str, file: BinaryIO, size: int, wanted: bool) -> int:
    """Where the message ends; the checksum behind it is checked if wanted."""
    file.seek(max(0, size - _CRC_NBYTES))
    tail = file.read(_CRC_NBYTES)
    if size < _CRC_NBYTES or not tail.startswith(_CRC_MARK):
        if wanted:
            raise FileFault(
                f"{path}: file must hold a checksum to be checked, got none",
                hint="save with crc_check=True, or load without",
                code="checkpoint-checksum",
            )
        return size
    end = size - _CRC_NBYTES
    if wanted:
        stated, found, left = int.from_bytes(tail[len(_CRC_MARK) :], "big"), 0, end
        file.seek(0)
        while left:
            block = file.read(min(left, 1 << 22))
            if not block:
                break
            found = zlib.crc32(block, found)
            left -= len(block)
        if stated != found:
            raise damaged(path, f"checksum of the bytes must be {stated:#010x}, got {found:#010x}")
    return end


def _refuse_cipher(path: str, file: BinaryIO) -> None:
    file.seek(0)
    if file.read(4) in _CIPHER_MAGIC:
        hint = "load it with MindSpore and the key, and save it again without enc_key"
        raise UnsupportedError(f"{path}: checkpoint must not be encrypted, got one that is", hint=hint, code="checkpoint-encrypted")


# ------------------------------------------------------------------ writing
def write_ckpt(
    file: BinaryIO, values: Iterable[tuple[str, Array | str]], *, crc_check: bool = False, slice_nbytes: int = SLICE_NBYTES
) -> None:
    """Writes values under their names."""
    crc = 0

    def put(data: bytes | memoryview) -> None:
        nonlocal crc
        if crc_check:
            crc = zlib.crc32(data, crc)
        file.write(data)

    for name, value in values:
        _put_value(put, name, value, slice_nbytes)
    if crc_check:
        file.write(_CRC_MARK + crc.to_bytes(_CRC_NBYTES - len(_CRC_MARK), "big"))


def _put_value(put: Callable[[bytes | memoryview], None], name: str, value: Array | str, slice_nbytes: int) -> None:
    if isinstance(value, str):
        raw, dims, type_name = memoryview(value.encode("utf-32-le") or b"\0\0\0\0"), [0], "str"
    else:
        raw = np.ascontiguousarray(value).reshape(-1).view(np.uint8).data
        dims, type_name = list(value.shape), str(types.of_numpy(value.dtype))
    if type_name not in TYPES and type_name != "str":
        raise UnsupportedError(
            f"save_checkpoint: element type of {name!r:.120} must be one of {', '.join(TYPES)}, got {type_name}", code="checkpoint-kind"
        )
    tag = _field(1, name.encode("utf-8"))
    head = b"".join(b"\x08" + _varint(d) for d in dims) + _field(2, type_name.encode())
    for at in range(0, max(raw.nbytes, 1), slice_nbytes):
        piece = raw[at : at + slice_nbytes]
        content = b"\x1a" + _varint(piece.nbytes)
        tensor = b"\x12" + _varint(len(head) + len(content) + piece.nbytes)
        put(b"\x0a" + _varint(len(tag) + len(tensor) + len(head) + len(content) + piece.nbytes) + tag + tensor + head + content)
        put(piece)


def _field(number: int, data: bytes) -> bytes:
    return bytes((number << 3 | 2,)) + _varint(len(data)) + data


def _varint(value: int) -> bytes:
    found = bytearray()
    while value > 0x7F:
        found.append(value & 0x7F | 0x80)
        value >>= 7
    found.append(value)
    return bytes(found)
