"""Sources of text: lines of files, and rows of CSV files.

In: files.  Out: rows of texts and numbers.  Files are indexed once (where each record starts), then read at places, so that sampling,
sharding and resuming cost nothing; files follow one another in the order of their names.
"""

from __future__ import annotations

import csv
import glob
import threading
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from jumar.dataset.cache import DatasetCache
from jumar.dataset.enums import Shuffle
from jumar.dataset.errors import DataFault, DataTypeFault, DataValueFault, names
from jumar.dataset.pipeline import Row
from jumar.dataset.sources import SourceDataset


def find_files(who: str, patterns: str | list[str]) -> list[str]:
    """The files that paths or patterns name, sorted."""
    asked = [patterns] if isinstance(patterns, (str, Path)) else list(patterns)
    if not asked or not all(isinstance(p, (str, Path)) for p in asked):
        raise DataTypeFault(f"{who}: dataset_files must be a path or a list of paths, got {patterns!r}")
    found: list[str] = []
    for pattern in asked:
        one = [str(pattern)] if Path(pattern).is_file() else sorted(glob.glob(str(pattern)))
        if not one:
            raise DataValueFault(f"{who}: dataset_files must be there, got {str(pattern)!r}")
        found += one
    return sorted(found)


def line_records(lines: Iterator[bytes]) -> Iterator[tuple[int, int]]:
    """(start, length) of each line that is not empty."""
    at = 0
    for line in lines:
        if line.rstrip(b"\n"):
            yield at, len(line)
        at += len(line)


def csv_records(lines: Iterator[bytes]) -> Iterator[tuple[int, int]]:
    """(start, length) of each record: a line, or several where a quoted field holds line ends."""
    at = start = quotes = 0
    for line in lines:
        quotes += line.count(b'"')
        at += len(line)
        if quotes % 2 == 0:
            if at - start > 2 or line.strip():
                yield start, at - start
            start = at
    if start < at:
        yield start, at - start


class _FileRows(SourceDataset):
    """Records of files, found by an index."""

    def __init__(
        self,
        dataset_files: str | list[str],
        num_samples: int | None,
        num_parallel_workers: int | None,
        shuffle: bool | Shuffle | None,
        num_shards: int | None,
        shard_id: int | None,
        cache: DatasetCache | None,
    ) -> None:
        super().__init__(num_samples, num_parallel_workers, shuffle, None, num_shards, shard_id, cache)
        self.files = find_files(type(self).__name__, dataset_files)
        self._local = _Open()

    @staticmethod
    def records(lines: Iterator[bytes]) -> Iterator[tuple[int, int]]:
        return line_records(lines)

    def first_record(self) -> int:
        return 0

    def workers(self) -> int:
        return 1  # a seek and a read: less than a worker costs

    @cached_property
    def index(self) -> list[np.ndarray[Any, np.dtype[np.int64]]]:
        found = []
        for path in self.files:
            with open(path, "rb") as file:
                records = np.array(list(self.records(iter(file))), np.int64).reshape(-1, 2)
            found.append(records[self.first_record() :])
        return found

    def count(self) -> int:
        return sum(len(i) for i in self.index)

    def record(self, place: int) -> tuple[str, str]:
        """(text of the record, where it is)."""
        for path, index in zip(self.files, self.index):
            if place < len(index):
                start, length = index[place].tolist()
                data = self._local.read(path, start, length)
                try:
                    return data.decode("utf-8"), f"{path}, byte {start}"
                except UnicodeDecodeError as error:
                    raise DataFault(f"{path}: text must be UTF-8, got {error} at byte {start}") from error
            place -= len(index)
        raise IndexError(place)


class _Open(threading.local):
    """Open files of a thread."""

    def __init__(self) -> None:
        self.files: dict[str, Any] = {}

    def read(self, path: str, start: int, length: int) -> bytes:
        if path not in self.files:
            while len(self.files) >= 16:
                self.files.pop(next(iter(self.files))).close()
            self.files[path] = open(path, "rb")  # noqa: SIM115  kept for the next rows
        file = self.files[path]
        file.seek(start)
        return file.read(length)  # type: ignore[no-any-return]

    def __reduce__(self) -> Any:
        return _Open, ()


class TextFileDataset(_FileRows):
    """The lines of text files, without empty ones, as column `text`."""

    def __init__(
        self,
        dataset_files: str | list[str],
        num_samples: int | None = None,
        num_parallel_workers: int | None = None,
        shuffle: bool | Shuffle | None = Shuffle.GLOBAL,
        num_shards: int | None = None,
        shard_id: int | None = None,
        cache: DatasetCache | None = None,
    ) -> None:
        super().__init__(dataset_files, num_samples, num_parallel_workers, shuffle, num_shards, shard_id, cache)

    def columns(self) -> list[str]:
        return ["text"]

    def read(self, place: int) -> Row:
        return (np.array(self.record(place)[0].removesuffix("\n")),)


class CSVDataset(_FileRows):
    """Rows of CSV files.   Without `column_names` the first line of each file names them; `column_defaults` says types and what empty fields are."""

    def __init__(
        self,
        dataset_files: str | list[str],
        field_delim: str = ",",
        column_defaults: list[Any] | None = None,
        column_names: list[str] | None = None,
        num_samples: int | None = None,
        num_parallel_workers: int | None = None,
        shuffle: bool | Shuffle | None = Shuffle.GLOBAL,
        num_shards: int | None = None,
        shard_id: int | None = None,
        cache: DatasetCache | None = None,
    ) -> None:
        super().__init__(dataset_files, num_samples, num_parallel_workers, shuffle, num_shards, shard_id, cache)
        if not isinstance(field_delim, str) or len(field_delim) != 1 or field_delim in '"\r\n':
            raise DataValueFault(f"CSVDataset: field_delim must be one character, got {field_delim!r}")
        self.field_delim = field_delim
        self.given = names("CSVDataset", "column_names", column_names)
        for value in column_defaults or []:
            if not isinstance(value, (int, float, str)):
                raise DataTypeFault(f"CSVDataset: column_defaults must be numbers or texts, got {value!r}")
        self.defaults = column_defaults

    @staticmethod
    def records(lines: Iterator[bytes]) -> Iterator[tuple[int, int]]:
        return csv_records(lines)

    def first_record(self) -> int:
        return 0 if self.given else 1

    def _fields(self, text: str) -> list[str]:
        return next(
            csv.reader([text.rstrip("\r\n")] if "\n" not in text.rstrip("\r\n") else text.splitlines(True), delimiter=self.field_delim)
        )

    @cached_property
    def header(self) -> list[str]:
        heads = []
        for path in self.files:
            with open(path, encoding="utf-8-sig", newline="") as file:
                heads.append(self._fields(file.readline()))
        for path, head in zip(self.files, heads):
            if head != heads[0]:
                raise DataFault(f"CSVDataset: {path} must have the columns {heads[0]}, got {head}")
        return names("CSVDataset", "column_names", heads[0])

    def columns(self) -> list[str]:
        return self.given or self.header

    def read(self, place: int) -> Row:
        text, where = self.record(place)
        fields = self._fields(text)
        columns = self.columns()
        if len(fields) != len(columns):
            raise DataFault(f"CSVDataset: a row must have {len(columns)} fields for {columns}, got {len(fields)} at {where}")
        defaults = self.defaults or [""] * len(columns)
        if len(defaults) != len(columns):
            raise DataValueFault(f"CSVDataset: column_defaults must be {len(columns)}, got {len(defaults)}")
        return tuple(_field(f, d, c, where) for f, d, c in zip(fields, defaults, columns))


def _field(text: str, default: Any, column: str, where: str) -> Any:
    """A field with the type of its default: int32, float32 or text."""
    if isinstance(default, str):
        return np.array(text or default)
    kind = np.int32 if isinstance(default, int) else np.float32
    try:
        return np.array(kind(text) if text.strip() else default, kind)
    except (ValueError, OverflowError) as error:
        raise DataFault(f"CSVDataset: column {column!r} must be {kind.__name__}, got {text!r} at {where}") from error
