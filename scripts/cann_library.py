"""Writes src/jumar/device/npu/library/*.csv from tables of facts on CANN's operators.   python scripts/cann_library.py [--facts ../shared/facts/ascend]

In: aclnn_ops.csv, ge_ops.csv, ms_to_cann.csv (from the headers, prototypes and definitions of CANN's open repositories).
Out: the columns that the twin reads.  Signatures, attributes and rows that come from a copy of a proprietary toolkit stay out.
"""

from __future__ import annotations

import argparse
import csv
import re
from collections.abc import Iterator
from pathlib import Path

FOLDER = Path(__file__).parent.parent / "src/jumar/device/npu/library"
FAMILIES = {"910_93(A3)": "910_93", "910b(A2)": "910b"}
KNOWN = ("310", "310b", "310p", "910", "910b", "910_93", "950")
SHORT = {
    "FLOAT": "f32", "FLOAT32": "f32", "FLOAT16": "f16", "BFLOAT16": "bf16", "BF16": "bf16", "DOUBLE": "f64", "BOOL": "bool",
    "COMPLEX64": "c64", "COMPLEX128": "c128", "STRING": "str", "FLOAT8_E5M2": "f8e5m2", "FLOAT8_E4M3FN": "f8e4m3fn",
    "FLOAT8_E8M0": "f8e8m0", "FLOAT4_E2M1": "f4e2m1",
}  # fmt: skip


def dtype(name: str) -> str:
    """Our name of an element type; a name that we have no type for stays, in lower case."""
    name = name.strip().removeprefix("DT_")
    return (
        SHORT.get(name) or re.sub(r"^UINT(\d+)$", r"u\1", re.sub(r"^INT(\d+)$", r"i\1", name)) if name.isupper() or name in SHORT else name
    )


def tensors(text: str, separator: str = ":") -> str:
    """`self:f32 f16; out:f32`: the parameters whose element types are given."""
    found = []
    for part in text.split(";"):
        name, _, types = part.strip().partition(separator)
        if types and '"' not in types:
            found.append(f"{name}:{' '.join(dict.fromkeys(dtype(t) for t in types.split('|')))}")
    return ";".join(found)


def families(text: str) -> str:
    return " ".join(f for f in KNOWN if f in {FAMILIES.get(t, t) for t in text.split("|")})


def aclnn(rows: Iterator[dict[str, str]]) -> Iterator[tuple[str, ...]]:
    yield "aclnn", "kinds", "on", "off", "dtypes", "source"
    for r in rows:
        if "third-party" in r["source"] or "experimental" in r["category"]:
            continue
        yield (
            r["aclnn_op"], r["ge_ops"].replace("|", " "), families(r["soc_supported"]), families(r["soc_unsupported"]),
            tensors(r["dtypes_per_param"]), r["source"],
        )  # fmt: skip


def ge(rows: Iterator[dict[str, str]]) -> Iterator[tuple[str, ...]]:
    yield "kind", "dtypes", "on", "source"
    for r in rows:
        if "third-party" not in r["source"]:
            yield r["ge_op"], tensors(r["inputs"]), families(r["aicore_socs_open_repo_op_def"]), r["source"]


def primitives(rows: Iterator[dict[str, str]]) -> Iterator[tuple[str, ...]]:
    yield "primitive", "kinds", "aclnn", "evidence", "source"
    for r in rows:
        kinds, name = r["ge_op(train|infer)"].replace("|", " "), r["aclnn"]
        if not kinds and not name:
            continue
        said = r["aclnn_evidence"]
        evidence = "" if not name else "conflict" if "CONFLICT" in said else "inferred" if "name rule" in said else "documented"
        yield r["ms_primitive"], kinds, name, evidence, r["source"].split(":")[0]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--facts", type=Path, default=Path(__file__).parent.parent.parent / "shared/facts/ascend")
    facts = parser.parse_args().facts
    for name, source, convert in (("aclnn", "aclnn_ops", aclnn), ("ge", "ge_ops", ge), ("primitives", "ms_to_cann", primitives)):
        with (facts / f"{source}.csv").open(newline="") as file, (FOLDER / f"{name}.csv").open("w", newline="") as out:
            csv.writer(out, lineterminator="\n").writerows(convert(csv.DictReader(file)))


if __name__ == "__main__":
    main()
