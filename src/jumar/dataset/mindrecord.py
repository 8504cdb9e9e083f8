"""MindRecord: MindSpore's files of rows, written and read.

In: `<name>` with a JSON header and pages, and `<name>.db`, an SQLite table that says where each row is.  Out: `MindDataset`, `FileReader`, `FileWriter`.
A page k lies at header_size + k * page_size.  A row is a MessagePack dict in a raw page and, for bytes and arrays, a part of a blob page.
"""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from jumar.dataset.cache import DatasetCache
from jumar.dataset.dataset import Dataset
from jumar.dataset.enums import Shuffle
from jumar.dataset.errors import DataFault, DataTypeFault, DataValueFault, check_int, names
from jumar.dataset.pipeline import Row, Run
from jumar.dataset.recordcode import split_blob, unpack, unpack_integers
from jumar.dataset.samplers import PKSampler, Sampler
from jumar.dataset.sources import SourceDataset
from jumar.dataset.values import to_value
from jumar.dataset.workers import Hole

PLACES = "PAGE_ID_RAW, PAGE_OFFSET_RAW, PAGE_OFFSET_RAW_END, PAGE_ID_BLOB, PAGE_OFFSET_BLOB, PAGE_OFFSET_BLOB_END"
Array = np.ndarray[Any, np.dtype[Any]]


@dataclass
class Shard:
    """One file and its index."""

    path: str
    header: dict[str, Any]
    places: Array  # [rows, 6], the columns of PLACES
    files: dict[int, int] = field(default_factory=dict)  # process -> descriptor

    def bytes_at(self, page: int, start: int, end: int) -> bytes:
        process = os.getpid()
        if process not in self.files:
            self.files[process] = os.open(self.path, os.O_RDONLY)
        offset = self.header["header_size"] + page * self.header["page_size"] + start
        data = os.pread(self.files[process], end - start, offset)
        if len(data) < end - start:
            raise DataFault(f"{self.path}: a row must have {end - start} bytes at {offset}, got {len(data)}", hint="the file is cut short")
        return data

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "files": {}}

    def __del__(self) -> None:
        descriptor = self.files.pop(os.getpid(), None)
        if descriptor is not None:
            os.close(descriptor)


def open_shard(path: str) -> Shard:
    """Header and index of a file; damage is told by name."""
    for needed in (path, path + ".db"):
        if not Path(needed).is_file():
            raise DataFault(f"MindRecord: {needed} must be there, got no such file", hint="a file and its .db belong together")
    with open(path, "rb") as file:
        size = int.from_bytes(file.read(8), "little")
        text = file.read(size) if 0 < size < 1 << 30 else b""
    try:
        header = json.loads(text)
        header_size, page_size, _ = header["header_size"], header["page_size"], header["schema"][0]["schema"]
    except (ValueError, KeyError, IndexError, TypeError) as error:
        raise DataFault(
            f"MindRecord: {path} must start with a header, got {type(error).__name__}: {error}", hint="encrypted files are not read"
        ) from error
    check_int(path, "header_size", header_size, 1)
    check_int(path, "page_size", page_size, 1)
    try:
        with closing(sqlite3.connect(f"{Path(path + '.db').resolve().as_uri()}?mode=ro", uri=True)) as database:
            rows = database.execute(f"SELECT {PLACES} FROM INDEXES ORDER BY ROW_ID").fetchall()
    except sqlite3.Error as error:
        raise DataFault(f"MindRecord: {path}.db must be an index, got {error}") from error
    return Shard(path, header, np.array(rows, np.int64).reshape(-1, 6))


class Records:
    """All rows of a set of files, as dicts of values."""

    def __init__(self, paths: list[str]) -> None:
        self.shards = [open_shard(p) for p in paths]
        self.schema: dict[str, dict[str, Any]] = self.shards[0].header["schema"][0]["schema"]
        self.blobs: list[str] = self.shards[0].header["schema"][0]["blob_fields"]
        for shard in self.shards:
            if shard.header["schema"][0]["schema"] != self.schema:
                raise DataFault(f"MindRecord: {shard.path} must have the schema of {self.shards[0].path}, got another")
        self.ends = np.cumsum([len(s.places) for s in self.shards])

    def __len__(self) -> int:
        return int(self.ends[-1])

    def row(self, place: int, columns: list[str]) -> Row:
        owner = int(np.searchsorted(self.ends, place, side="right"))
        shard = self.shards[owner]
        page, start, end, blob_page, blob_start, blob_end = shard.places[place - (int(self.ends[owner - 1]) if owner else 0)].tolist()
        raw: dict[str, Any] = {}
        if any(c not in self.blobs for c in columns):
            data = shard.bytes_at(page, start, end)
            raw = unpack(data[8 : 8 + int.from_bytes(data[:8], "little")])
        parts = split_blob(shard.bytes_at(blob_page, blob_start, blob_end), self.blobs) if any(c in self.blobs for c in columns) else {}
        return tuple(self._value(c, parts[c] if c in parts else raw.get(c), c in parts) for c in columns)

    def _value(self, column: str, value: Any, blob: bool) -> Any:
        kind = self.schema[column]["type"]
        if not blob:
            return np.array(value if value is not None else ("" if kind == "string" else 0), "U" if kind == "string" else kind)
        if kind == "bytes":
            return np.frombuffer(value, f"S{max(1, len(value))}") if value else np.array([b""])
        array = unpack_integers(value, kind) if kind in ("int32", "int64") else np.frombuffer(value, kind).copy()
        shape = self.schema[column].get("shape", [-1])
        known = int(np.prod([n for n in shape if n > 0]))
        if shape.count(-1) > 1 or (shape.count(-1) == 0 and known != array.size) or (known and array.size % known):
            raise DataFault(f"MindRecord: column {column!r} must have shape {shape}, got {array.size} values")
        return array.reshape([n if n >= 0 else (array.size // known if known else 0) for n in shape])


def shard_paths(who: str, dataset_files: str | list[str]) -> list[str]:
    """The files of a set: those that are listed, or all that the header of one names."""
    if isinstance(dataset_files, (list, tuple)):
        if not dataset_files:
            raise DataValueFault(f"{who}: dataset_files must name a file, got none")
        return [str(f) for f in dataset_files]
    path = Path(str(dataset_files))
    shard = open_shard(str(path))
    return [str(path.parent / Path(name).name) for name in shard.header.get("shard_addresses", [path.name])]


class MindDataset(SourceDataset):
    """Rows of MindRecord files: `dataset_files` is one file of a set, or a list of files; columns come in the order of their names."""

    def __init__(
        self,
        dataset_files: str | list[str],
        columns_list: list[str] | None = None,
        num_parallel_workers: int | None = None,
        shuffle: bool | Shuffle | None = None,
        num_shards: int | None = None,
        shard_id: int | None = None,
        sampler: Sampler | Iterable[int] | None = None,
        padded_sample: dict[str, Any] | None = None,
        num_padded: int | None = None,
        num_samples: int | None = None,
        cache: DatasetCache | None = None,
    ) -> None:
        super().__init__(num_samples, num_parallel_workers, shuffle, sampler, num_shards, shard_id, cache)
        self.records = Records(shard_paths("MindDataset", dataset_files))
        self.names = names("MindDataset", "columns_list", columns_list) or sorted(self.records.schema)
        for name in self.names:
            if name not in self.records.schema:
                raise DataFault(f"MindDataset: columns_list must be among {sorted(self.records.schema)}, got {name!r}")
        if (padded_sample is None) != (num_padded is None):
            raise DataFault("MindDataset: padded_sample and num_padded must be given together, got one of them")
        self.num_padded = 0 if num_padded is None else check_int("MindDataset", "num_padded", num_padded, 0)
        self.padded = None
        if padded_sample is not None:
            missing = [n for n in self.names if n not in padded_sample]
            if missing:
                raise DataFault(f"MindDataset: padded_sample must have the columns {self.names}, got none for {missing}")
            self.padded = tuple(self._padding(n, padded_sample[n]) for n in self.names)

    def _padding(self, name: str, value: Any) -> Any:
        kind = self.records.schema[name]["type"]
        return np.array([value]) if kind == "bytes" else to_value(value, "MindDataset").astype("U" if kind == "string" else kind)

    def columns(self) -> list[str]:
        return list(self.names)

    def count(self) -> int:
        return len(self.records) + self.num_padded

    def read(self, place: int) -> Row:
        if place >= len(self.records) and self.padded is not None:
            return self.padded
        return self.records.row(place, self.names)

    def labels(self) -> list[int] | None:
        column = self.sampler.class_column if isinstance(self.sampler, PKSampler) else "label"
        if column not in self.records.schema:
            return None
        return [int(np.asarray(self.records.row(i, [column])[0])) for i in range(len(self.records))]


class FileReader:
    """Rows of MindRecord files one after the other, as dicts."""

    def __init__(self, file_name: str | list[str], num_consumer: int = 4, columns: list[str] | None = None, operator: Any = None) -> None:
        if operator is not None:
            raise DataFault("FileReader: operator must be None, got a filter", hint="dataset.filter filters rows")
        check_int("FileReader", "num_consumer", num_consumer, 1, 1024)
        self._records = Records(shard_paths("FileReader", file_name))
        self._columns = names("FileReader", "columns", columns) or sorted(self._records.schema)
        for name in self._columns:
            if name not in self._records.schema:
                raise DataFault(f"FileReader: columns must be among {sorted(self._records.schema)}, got {name!r}")

    def get_next(self) -> Iterator[dict[str, Any]]:
        for place in range(len(self._records)):
            row = self._records.row(place, self._columns)
            yield {c: _plain(v, self._records.schema[c]["type"]) for c, v in zip(self._columns, row)}

    def schema(self) -> dict[str, Any]:
        return self._records.schema

    def len(self) -> int:
        return len(self._records)

    def close(self) -> None:
        self._records = Records.__new__(Records)


def _plain(value: Array, kind: str) -> Any:
    if kind == "bytes":
        return value.tobytes()
    return value.item() if value.ndim == 0 else value


def save_rows(dataset: Dataset, file_name: str, num_files: int) -> None:
    """Writes one epoch of a dataset; the schema follows from the first row."""
    types = {"int32": "int32", "int64": "int64", "float32": "float32", "float64": "float64", "U": "string", "S": "bytes"}
    small = {  # what has no type of its own takes the next larger one
        "int8": "int32",
        "int16": "int32",
        "uint8": "int32",
        "uint16": "int32",
        "uint32": "int64",
        "uint64": "int64",
        "float16": "float32",
        "bool": "int32",
    }
    columns = dataset.columns()
    schema: dict[str, Any] = {}
    for name, value in zip(columns, dataset.first_row()):
        if not isinstance(value, np.ndarray):
            raise DataTypeFault(f"save: column {name!r} must hold arrays, got {type(value).__name__}")
        kind = value.dtype.kind if value.dtype.kind in "US" else value.dtype.name
        if kind not in types and kind not in small:
            raise DataTypeFault(f"save: column {name!r} must have a type that MindRecord has, got {value.dtype}")
        schema[name] = {"type": types.get(kind) or small[kind]}
        if kind in "US" and value.size != 1:
            raise DataTypeFault(f"save: column {name!r} must hold one text per row, got shape {value.shape}")
        if value.ndim and kind not in "US":
            schema[name]["shape"] = [-1, *value.shape[1:]]
    writer = FileWriter(file_name, num_files)
    writer.add_schema(schema, "")
    run = Run(dataset.start_position().seed).enter(dataset)
    try:
        for row in run.rows(dataset, 0):
            if not isinstance(row, Hole):
                writer.write_raw_data([{n: _stored(v, schema[n]) for n, v in zip(columns, row)}])
    finally:
        run.close()
    writer.commit()


def _stored(value: Array, spec: dict[str, Any]) -> Any:
    if spec["type"] == "string":
        return str(value.reshape(-1)[0])
    if spec["type"] == "bytes":
        return value.tobytes()
    return value.astype(spec["type"]) if "shape" in spec else value.astype(spec["type"]).item()


from jumar.dataset.recordwriter import FileWriter  # noqa: E402  the writer names this file's errors and the way back from `save`
