"""`FileWriter`: rows into MindRecord files, page by page.

In: a schema and rows as dicts.  Out: `<name>` (or `<name>0`, `<name>1` ... for several shards) with `.db`, as MindSpore reads them too.
"""

from __future__ import annotations

import json
import os
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from jumar.dataset.errors import DataFault, DataTypeFault, DataValueFault, check_int, names
from jumar.dataset.recordcode import join_blob, pack, pack_integers

TYPES = ("int32", "int64", "float32", "float64", "string", "bytes")
SQL = {"int32": "INTEGER", "int64": "INTEGER", "float32": "REAL", "float64": "REAL", "string": "TEXT"}


class _Page:
    """A page that is being filled."""

    def __init__(self, number: int, kind: str, kind_number: int, first_row: int) -> None:
        self.number, self.kind, self.kind_number, self.first_row = number, kind, kind_number, first_row
        self.data = bytearray()
        self.groups: list[tuple[int, int]] = []
        self.end_row = first_row

    def header(self, shard: int) -> dict[str, Any]:
        return {
            "end_row_id": self.end_row if self.kind == "BLOB_DATA" else 0,
            "page_id": self.number,
            "page_size": len(self.data),
            "page_type": self.kind,
            "page_type_id": self.kind_number,
            "row_group_ids": [{"id": g, "offset": at} for g, at in self.groups],
            "shard_id": shard,
            "start_row_id": self.first_row if self.kind == "BLOB_DATA" else 0,
        }


class _ShardWriter:
    """One file of the set."""

    def __init__(self, path: str, number: int, header_size: int, page_size: int) -> None:
        self.path, self.number, self.header_size, self.page_size = path, number, header_size, page_size
        self.file: BinaryIO = open(path + ".part", "wb")  # noqa: SIM115  closed by finish
        self.pages: list[dict[str, Any]] = []
        self.count = 0
        self.raw: _Page | None = None
        self.blob: _Page | None = None
        self.opened = {"RAW_DATA": 0, "BLOB_DATA": 0}
        self.index: list[tuple[int, ...]] = []
        self.fields: list[tuple[Any, ...]] = []

    def _fits(self, page: _Page | None, kind: str, nbytes: int) -> _Page:
        if nbytes > self.page_size:
            raise DataFault(
                f"FileWriter: a row must fit a page of {self.page_size} bytes, got {nbytes}", hint="call set_page_size before writing"
            )
        if page is not None and len(page.data) + nbytes <= self.page_size:
            return page
        if page is not None:
            self._flush(page)
        new = _Page(sum(self.opened.values()), kind, self.opened[kind], self.count)
        self.opened[kind] += 1
        return new

    def _flush(self, page: _Page) -> None:
        self.file.seek(self.header_size + page.number * self.page_size)
        self.file.write(page.data)
        self.pages.append(page.header(self.number))

    def add(self, raw: bytes, blob: bytes, indexed: tuple[Any, ...]) -> None:
        before = self.blob
        self.blob = self._fits(self.blob, "BLOB_DATA", len(blob))
        group = self.blob.kind_number
        raw_before = self.raw
        self.raw = self._fits(self.raw, "RAW_DATA", len(raw))
        if self.blob is not before:
            self.blob.groups = [(0, 0)]
        if self.blob is not before or self.raw is not raw_before:
            self.raw.groups.append((group, len(self.raw.data)))
        at_raw, at_blob = len(self.raw.data), len(self.blob.data)
        self.raw.data += raw
        self.blob.data += blob
        self.count += 1
        self.blob.end_row = self.count
        self.index.append((self.raw.number, at_raw, at_raw + len(raw), group, self.blob.number, at_blob, at_blob + len(blob)))
        self.fields.append(indexed)

    def finish(self, header: dict[str, Any], index_fields: list[str], schema: dict[str, Any]) -> None:
        for page in (self.blob, self.raw):
            if page is not None:
                self._flush(page)
        header = {**header, "page": sorted(self.pages, key=lambda p: p["page_id"]), "shard_id": self.number}
        text = json.dumps(header, separators=(",", ":")).encode()
        if len(text) + 8 > self.header_size:
            raise DataFault(
                f"FileWriter: the header must fit {self.header_size} bytes, got {len(text)}", hint="call set_header_size before writing"
            )
        self.file.seek(0)
        self.file.write(len(text).to_bytes(8, "little") + text)
        self.file.truncate(max(self.header_size, os.fstat(self.file.fileno()).st_size))
        self.file.close()
        self._write_index(index_fields, schema)
        os.replace(self.path + ".part", self.path)

    def _write_index(self, index_fields: list[str], schema: dict[str, Any]) -> None:
        Path(self.path + ".db").unlink(missing_ok=True)
        whole = [
            "ROW_ID", "PAGE_ID_RAW", "PAGE_OFFSET_RAW", "PAGE_OFFSET_RAW_END", "ROW_GROUP_ID",
            "PAGE_ID_BLOB", "PAGE_OFFSET_BLOB", "PAGE_OFFSET_BLOB_END",
        ]  # fmt: skip
        columns = [f"{c} INT NOT NULL" for c in whole]
        for i, name in enumerate(index_fields):
            columns += [f"INC_{i} INT", f'"{name}_0" {SQL[schema[name]["type"]]}']
        key = ", ".join(["ROW_ID", *(f"INC_{i}" for i in range(len(index_fields)))])
        with closing(sqlite3.connect(self.path + ".db")) as database, database:
            database.execute(f"CREATE TABLE INDEXES({', '.join(columns)}, PRIMARY KEY({key}))")
            database.execute("CREATE TABLE SHARD_NAME(NAME TEXT NOT NULL)")
            database.execute("INSERT INTO SHARD_NAME VALUES (?)", (Path(self.path).name,))
            marks = ", ".join("?" * (len(whole) + 2 * len(index_fields)))
            rows = ((i, *place, *(v for f in found for v in (0, f))) for i, (place, found) in enumerate(zip(self.index, self.fields)))
            database.executemany(f"INSERT INTO INDEXES VALUES ({marks})", rows)

    def abandon(self) -> None:
        self.file.close()
        Path(self.path + ".part").unlink(missing_ok=True)


class FileWriter:
    """Writes rows: `add_schema`, `write_raw_data` as often as needed, `commit`.   Until `commit` no file has its name."""

    def __init__(self, file_name: str, shard_num: int = 1, overwrite: bool = False) -> None:
        if not isinstance(file_name, str) or not file_name:
            raise DataTypeFault(f"FileWriter: file_name must be a path, got {file_name!r}")
        check_int("FileWriter", "shard_num", shard_num, 1, 1000)
        width = len(str(shard_num - 1))
        self._paths = [file_name] if shard_num == 1 else [f"{file_name}{i:0{width}d}" for i in range(shard_num)]
        for path in self._paths:
            if not overwrite and (Path(path).exists() or Path(path + ".db").exists()):
                raise DataFault(f"FileWriter: {path} must not exist, got a file", hint="overwrite=True replaces it")
        self._header_size, self._page_size = 1 << 24, 1 << 25
        self._schema: dict[str, dict[str, Any]] | None = None
        self._desc = ""
        self._saved = 0  # bytes that packing integers has saved
        self._index: list[str] | None = None
        self._shards: list[_ShardWriter] | None = None

    @classmethod
    def open_for_append(cls, file_name: str) -> FileWriter:
        raise DataFault("FileWriter.open_for_append: is not supported", hint="write a second set and read both: MindDataset([a, b])")

    def set_header_size(self, header_size: int) -> None:
        self._header_size = self._power("header_size", header_size, 1 << 14, 1 << 27)

    def set_page_size(self, page_size: int) -> None:
        self._page_size = self._power("page_size", page_size, 1 << 15, 1 << 28)

    def _power(self, name: str, value: int, low: int, high: int) -> int:
        check_int("FileWriter", name, value, low, high)
        if value & (value - 1) or self._shards is not None:
            raise DataValueFault(f"FileWriter: {name} must be a power of two and set before writing, got {value}")
        return value

    def add_schema(self, content: dict[str, dict[str, Any]], desc: str | None = None) -> int:
        """Names, types and (for arrays) shapes of the columns; returns 0, the id of the schema."""
        if self._schema is not None:
            raise DataFault("FileWriter.add_schema: a file must have one schema, got a second")
        if not isinstance(content, dict) or not content:
            raise DataTypeFault(f"FileWriter.add_schema: content must be a dict of columns, got {content!r}")
        for name, spec in content.items():
            if not isinstance(spec, dict) or spec.get("type") not in TYPES or set(spec) - {"type", "shape"}:
                raise DataValueFault(
                    f"FileWriter.add_schema: column {name!r} must have a type among {list(TYPES)} and maybe a shape, got {spec}"
                )
            if "shape" in spec and (spec["type"] in ("string", "bytes") or not isinstance(spec["shape"], list)):
                raise DataValueFault(f"FileWriter.add_schema: column {name!r} must be numbers with a list as shape, got {spec}")
            if not name.isidentifier():
                raise DataValueFault(f"FileWriter.add_schema: a column must be named by letters, digits and _, got {name!r}")
        self._schema, self._desc = dict(sorted(content.items())), desc or ""
        return 0

    def add_index(self, index_fields: list[str]) -> None:
        """Columns by which rows may be looked up; all that are single numbers or texts where this is not called."""
        schema = self._need_schema()
        found = names("FileWriter.add_index", "index_fields", index_fields)
        for name in found:
            if name not in schema or name in self._blobs():
                raise DataValueFault(f"FileWriter.add_index: a field must be a single number or text, got {name!r}")
        self._index = found

    def _need_schema(self) -> dict[str, dict[str, Any]]:
        if self._schema is None:
            raise DataFault("FileWriter: add_schema must be called first, got no schema")
        return self._schema

    def _blobs(self) -> list[str]:
        return [n for n, s in self._need_schema().items() if s["type"] == "bytes" or "shape" in s]

    def write_raw_data(self, raw_data: list[dict[str, Any]], parallel_writer: bool = False) -> None:
        """Adds rows; they are spread over the shards in stretches."""
        schema, blobs = self._need_schema(), self._blobs()
        if not isinstance(raw_data, list):
            raise DataTypeFault(f"FileWriter.write_raw_data: raw_data must be a list of dicts, got {type(raw_data).__name__}")
        if self._shards is None:
            self._shards = [_ShardWriter(p, i, self._header_size, self._page_size) for i, p in enumerate(self._paths)]
            if self._index is None:
                self._index = [n for n in schema if n not in blobs]
        total = sum(s.count for s in self._shards)
        for i, row in enumerate(raw_data):
            missing = [n for n in schema if n not in row]
            if missing:
                raise DataFault(f"FileWriter.write_raw_data: row {total + i} must have the columns {list(schema)}, got none for {missing}")
            raw = {n: _scalar(row[n], schema[n]["type"], n) for n in schema if n not in blobs}
            body = pack(raw)
            parts = [_array(row[n], schema[n], n) for n in blobs]
            self._saved += sum(np.asarray(row[n]).nbytes - len(p) for n, p in zip(blobs, parts) if schema[n]["type"] in ("int32", "int64"))
            blob = join_blob(parts)
            # a call with many rows fills the shards in stretches, calls with single rows deal them out
            owner = i * len(self._shards) // len(raw_data) if len(raw_data) >= len(self._shards) else (total + i) % len(self._shards)
            self._shards[owner].add(len(body).to_bytes(8, "little") + body, blob, tuple(raw[n] for n in self._index or []))

    def commit(self) -> None:
        """Writes headers and indexes and gives the files their names."""
        schema = self._need_schema()
        if self._shards is None:
            raise DataFault("FileWriter.commit: a row must be written first, got none")
        header = {
            "header_size": self._header_size,
            "index_fields": [{"index_field": n, "schema_id": 0} for n in self._index or []],
            "page_size": self._page_size,
            "compression_size": max(0, self._saved),
            "schema": [{"blob_fields": self._blobs(), "desc": self._desc, "schema": schema}],
            "shard_addresses": [Path(p).name for p in self._paths],
            "statistics": None,
            "version": "3.0",
        }
        for shard in self._shards:
            shard.finish(header, self._index or [], schema)
        self._shards = None

    def __del__(self) -> None:
        for shard in getattr(self, "_shards", None) or []:
            shard.abandon()


def _scalar(value: Any, kind: str, name: str) -> Any:
    if kind == "string":
        if not isinstance(value, str):
            raise DataTypeFault(f"FileWriter: column {name!r} must be a text, got {type(value).__name__}")
        return value
    if isinstance(value, bool) or not isinstance(value, (int, float, np.number)):
        raise DataTypeFault(f"FileWriter: column {name!r} must be a number, got {type(value).__name__}")
    if kind.startswith("int"):
        info = np.iinfo(kind)
        if int(value) != value or not info.min <= int(value) <= info.max:
            raise DataValueFault(f"FileWriter: column {name!r} must be {kind}, got {value}")
        return int(value)
    return float(np.dtype(kind).type(value))


def _array(value: Any, spec: dict[str, Any], name: str) -> bytes:
    if spec["type"] == "bytes":
        if not isinstance(value, (bytes, bytearray)):
            raise DataTypeFault(f"FileWriter: column {name!r} must be bytes, got {type(value).__name__}")
        return bytes(value)
    array = np.asarray(value)
    if array.dtype.name != spec["type"]:
        raise DataTypeFault(f"FileWriter: column {name!r} must be an array of {spec['type']}, got {array.dtype}")
    known = int(np.prod([n for n in spec["shape"] if n > 0]))
    if (-1 not in spec["shape"] and known != array.size) or array.size % max(known, 1):
        raise DataFault(f"FileWriter: column {name!r} must have shape {spec['shape']}, got {list(array.shape)}")
    return pack_integers(array) if spec["type"] in ("int32", "int64") else array.astype(f"<{array.dtype.str[1:]}").tobytes()
