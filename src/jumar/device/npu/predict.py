"""Times of a table of kernels: `python -m jumar.device.npu.predict OPS.csv[.gz] --out PRED.csv`.

In: a CSV table with a kernel a row: soc, op, kernel_type, in_shapes, in_dtypes, in_formats, out_shapes, out_dtypes, out_formats, attrs (JSON in
each), row_id where there is one.  Out: row_id, pred_us, low_us, high_us, bottleneck.  Columns with what was measured are not read.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import io
import json
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

from jumar.base import DTYPES, DeviceError, DType, Loc, StackError, bf16
from jumar.device.npu.chip import Chip, find_chip
from jumar.device.npu.task import Operand, Task
from jumar.device.npu.time import predict

NEEDED = ("soc", "op", "in_shapes", "in_dtypes", "out_shapes", "out_dtypes")
READ = (*NEEDED, "row_id", "kernel_type", "in_formats", "out_formats", "attrs")
# element types as profiles of Ascend spell them
_DTYPES = {
    "float": "f32", "float32": "f32", "fp32": "f32", "dt_float": "f32", "float16": "f16", "fp16": "f16", "half": "f16", "dt_float16": "f16",
    "bfloat16": "bf16", "bf16": "bf16", "dt_bf16": "bf16", "double": "f64", "float64": "f64", "fp64": "f64", "int8": "i8", "int16": "i16",
    "int32": "i32", "int64": "i64", "int4": "i4", "uint8": "u8", "uint16": "u16", "uint32": "u32", "uint64": "u64", "bool": "bool",
    "complex64": "c64", "complex128": "c128", "float8_e4m3fn": "f8e4m3fn", "float8_e5m2": "f8e5m2", "hifloat8": "f8e5m2", "float8_e8m0": "f8e8m0",
    "fp8": "f8e4m3fn", "fp8_e4m3": "f8e4m3fn", "fp8_e4m3fn": "f8e4m3fn", "fp8_e5m2": "f8e5m2", "float4_e2m1": "f4e2m1", "fp4_e2m1": "f4e2m1",
    "uint1": "bool", "qint8": "i8", "quint8": "u8", "dt_int8": "i8", "dt_int32": "i32", "dt_int64": "i64", "dt_bool": "bool", "string": "str",
}  # fmt: skip
_ABSENT = frozenset({"", "undef", "undefined", "dt_undefined", "null", "none"})


def read_row(row: Mapping[str, str], loc: Loc | None = None) -> tuple[Task, Chip]:
    """The task and the chip of one row of a table."""
    missing = [c for c in NEEDED if row.get(c) is None]
    if missing:
        raise _wrong(f"columns must hold {', '.join(NEEDED)}, got none named {', '.join(missing)}", loc)
    attrs = _json(row, "attrs", loc) or {}
    if not isinstance(attrs, dict):
        raise _wrong(f"attrs must be a JSON object, got {row['attrs'][:60]}", loc)
    kind = row.get("kernel_type") or row["op"]
    if not kind:
        raise _wrong("op must name an operator, got an empty field", loc)
    chip = find_chip(row["soc"])
    task = Task(kind, _operands(row, "in", loc), _operands(row, "out", loc), attrs={**attrs, "op": row["op"]})
    if bf16.name not in chip.dtypes and any(o.dtype == bf16 for o in (*task.inputs, *task.outputs)):
        raise _wrong(f"element types must be ones of {chip.name}, got bf16, which it lacks", loc)
    return task, chip


def _operands(row: Mapping[str, str], side: str, loc: Loc | None) -> tuple[Operand, ...]:
    shapes, dtypes, formats = (_json(row, f"{side}_{what}", loc) or [] for what in ("shapes", "dtypes", "formats"))
    if not isinstance(shapes, list) or not all(isinstance(s, list) and all(isinstance(d, int) and d >= 0 for d in s) for s in shapes):
        raise _wrong(f"{side}_shapes must be a list of shapes, got {row[f'{side}_shapes'][:60]}", loc)
    if not isinstance(dtypes, list) or not isinstance(formats, list):
        raise _wrong(f"{side}_dtypes and {side}_formats must be lists, got {row[f'{side}_dtypes'][:60]}", loc)
    if len(dtypes) < len(shapes):
        # sources that leave out absent tensors name no type for them: types go to the shapes that are there, in order
        given = iter(dtypes)
        dtypes = [next(given, "undef") if shape or len(shapes) == 1 else "undef" for shape in shapes]
    formats = [*formats, *[""] * (len(shapes) - len(formats))]
    return tuple(Operand(tuple(s), _dtype(d, loc), str(f).split(":")[0]) for s, d, f in zip(shapes, dtypes, formats))


def _dtype(name: Any, loc: Loc | None) -> DType | None:
    key = str(name).lower()
    if key in _ABSENT:
        return None
    found = DTYPES.get(_DTYPES.get(key, key))
    if found is None:
        raise _wrong(f"element type must be one of {', '.join(sorted(_DTYPES))}, got {name}", loc)
    return found


def _json(row: Mapping[str, str], column: str, loc: Loc | None) -> Any:
    try:
        return json.loads(row.get(column) or "null")
    except json.JSONDecodeError as error:
        raise _wrong(f"{column} must be JSON, got {row[column][:60]!r}", loc) from error


def _wrong(what: str, loc: Loc | None) -> DeviceError:
    return DeviceError(f"predict: {what}", loc=loc, hint="the columns are described in docs/twin/time.md", code="ops-table")


def read_table(path: Path) -> Iterator[tuple[int, dict[str, str]]]:
    """Line and row of a CSV table, plain or gzipped.   Only the columns of READ are handed on."""
    try:
        raw = path.read_bytes()
        text = (gzip.decompress(raw) if raw[:2] == b"\x1f\x8b" else raw).decode("utf-8")
    except (OSError, EOFError, UnicodeDecodeError) as error:
        raise _wrong(f"table must be a CSV file, UTF-8, plain or gzipped, got {path}: {error}", None) from error
    csv.field_size_limit(1 << 26)
    reader = csv.DictReader(io.StringIO(text))
    missing = [c for c in NEEDED if c not in (reader.fieldnames or ())]
    if missing:
        raise _wrong(f"columns must hold {', '.join(NEEDED)}, got none named {', '.join(missing)}", Loc(str(path), 1))
    for row in reader:
        yield reader.line_num, {c: row[c] or "" for c in READ if c in row}


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m jumar.device.npu.predict", description="Predict the device time of each kernel of a table."
    )
    parser.add_argument("ops", type=Path, help="CSV table of kernels, plain or .gz")
    parser.add_argument("--out", type=Path, required=True, help="CSV table to write: row_id, pred_us, low_us, high_us, bottleneck")
    options = parser.parse_args(arguments)
    try:
        rows = list(read_table(options.ops))
        failed, evidence = _write(rows, options.ops, options.out)
    except StackError as error:
        sys.stderr.write(f"{error}\n")
        return 2
    sys.stderr.write(f"{len(rows) - failed} kernels predicted, {failed} refused\n")
    for why, count in evidence.most_common():
        sys.stderr.write(f"  {count:6}  {why}\n")
    return 1 if failed else 0


def _write(rows: Sequence[tuple[int, dict[str, str]]], source: Path, out: Path) -> tuple[int, Counter[str]]:
    """Writes the predictions, all or none.   How many rows were refused, and what the others stand on."""
    failed, evidence = 0, Counter[str]()
    part = out.with_name(f".{out.name}.part")
    try:
        with part.open("w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file)
            writer.writerow(("row_id", "pred_us", "low_us", "high_us", "bottleneck"))
            for line, row in rows:
                try:
                    task, chip = read_row(row, Loc(str(source), line))
                    p = predict(task, chip)
                except StackError as error:
                    failed += 1
                    sys.stderr.write(f"{error}\n")
                    continue
                evidence[p.evidence] += 1
                writer.writerow((row.get("row_id") or line, f"{p.time_us:.4f}", f"{p.low_us:.4f}", f"{p.high_us:.4f}", p.bottleneck))
        part.replace(out)
    except OSError as error:
        raise _wrong(f"--out must be a file that can be written, got {out}: {error.strerror}", None) from error
    finally:
        part.unlink(missing_ok=True)
    return failed, evidence


class _CallableModule(ModuleType):
    """This file must have this name, and the package's face a function `predict`: whoever imports the file rebinds that name to it, so it answers calls."""

    __call__ = staticmethod(predict)


if __name__ == "__main__":
    sys.exit(main())
sys.modules[__name__].__class__ = _CallableModule
