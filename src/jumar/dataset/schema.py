"""`Schema`: names, types and shapes of columns, written down or read from a JSON file.

In: `add_column` calls, or a file of MindSpore's form.  Out: lists for sources (sources.py).
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from jumar.dataset.errors import DataFault, DataTypeFault, check_int
from jumar.dataset.values import numpy_type


class Schema:
    """Columns of a source."""

    def __init__(self, schema_file: str | None = None) -> None:
        self.columns: list[dict[str, Any]] = []
        self.dataset_type = ""
        self.num_rows = 0
        if schema_file is not None:
            try:
                self.from_json(json.loads(Path(schema_file).read_text(encoding="utf-8")))
            except (OSError, ValueError) as error:
                raise DataFault(f"Schema: {schema_file} must be a JSON file, got {error}") from error

    def add_column(self, name: str, de_type: Any, shape: list[int] | None = None) -> None:
        if not isinstance(name, str) or not name:
            raise DataTypeFault(f"Schema.add_column: name must be a text, got {name!r}")
        if any(c["name"] == name for c in self.columns):
            raise DataFault(f"Schema.add_column: a column must be added once, got {name!r} twice")
        kind = numpy_type(de_type)
        column: dict[str, Any] = {"name": name, "type": "string" if kind is not None and kind.kind == "U" else str(kind)}
        if shape is not None:
            column["shape"] = [check_int("Schema.add_column", "shape", n, -1) for n in shape]
        self.columns.append(column)

    def from_json(self, json_obj: dict[str, Any]) -> None:
        found = json_obj.get("columns")
        if not found:
            raise DataFault("Schema: columns must be there, got none")
        pairs = found.items() if isinstance(found, dict) else ((c.get("name"), c) for c in found)
        for name, spec in pairs:
            self.add_column(name, spec.get("type"), spec.get("shape"))
        self.num_rows, self.dataset_type = int(json_obj.get("numRows", 0)), str(json_obj.get("datasetType", ""))

    def parse_columns(self, columns: Any) -> None:
        self.from_json({"columns": columns})

    def to_json(self) -> str:
        return json.dumps({"columns": self.columns, **({"numRows": self.num_rows} if self.num_rows else {})}, indent=2)

    def names(self) -> list[str]:
        return [c["name"] for c in self.columns]

    def types(self) -> list[Any]:
        return [numpy_type(c["type"]) for c in self.columns]

    def shapes(self) -> list[list[int] | None]:
        return [c.get("shape") for c in self.columns]
