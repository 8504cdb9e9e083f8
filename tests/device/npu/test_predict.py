"""The table of kernels: read with its quirks, refused with the place, written as it is scored."""

from __future__ import annotations

import csv
import gzip
import os
import subprocess
import sys
from pathlib import Path

import pytest

from jumar.base import DeviceError
from jumar.device.npu.predict import main, read_row, read_table

SHARED = Path(os.environ.get("SHARED", Path(__file__).resolve().parents[4] / "shared"))
ROW = {
    "row_id": "r1", "soc": "910B4", "op": "Add", "kernel_type": "Add", "in_shapes": "[[8, 16], []]", "in_dtypes": '["fp32", "fp32"]',
    "in_formats": '["ND", "ND"]', "out_shapes": "[[8, 16]]", "out_dtypes": '["fp32"]', "out_formats": "", "attrs": "",
}  # fmt: skip


def write(path: Path, *rows: dict[str, str]) -> Path:
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    return path


def test_a_row_becomes_a_task_and_a_chip() -> None:
    task, chip = read_row(ROW)
    assert (task.kind, chip.name, task.inputs[0].shape, task.inputs[1].size, str(task.outputs[0].dtype)) == (
        "Add",
        "Ascend910B4",
        (8, 16),
        1,
        "f32",
    )


def test_types_of_absent_tensors_may_be_left_out() -> None:
    task, _ = read_row({**ROW, "in_shapes": "[[8, 16], [], [4]]", "in_dtypes": '["bf16", "int32"]'})
    assert [str(o.dtype) for o in task.inputs] == ["bf16", "None", "i32"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"in_shapes": "[[8"}, "in_shapes must be JSON, got"),
        ({"in_shapes": "[8]"}, "in_shapes must be a list of shapes, got [8]"),
        ({"in_dtypes": '["fp13", "fp32"]'}, "element type must be one of"),
        ({"attrs": "[1]"}, "attrs must be a JSON object, got [1]"),
        ({"soc": "910Z"}, "got '910Z'"),
    ],
)
def test_a_bad_field_is_refused(change: dict[str, str], message: str) -> None:
    with pytest.raises(DeviceError) as caught:
        read_row({**ROW, **change})
    assert message in caught.value.what and caught.value.code in ("ops-table", "soc-unknown")


def test_bad_rows_are_named_and_the_others_predicted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table = write(tmp_path / "ops.csv", ROW, {**ROW, "row_id": "r2", "in_shapes": "?"}, {**ROW, "row_id": "r3"})
    out = tmp_path / "pred.csv"
    assert main([str(table), "--out", str(out)]) == 1
    rows = list(csv.DictReader(out.open()))
    assert [r["row_id"] for r in rows] == ["r1", "r3"]
    assert list(rows[0]) == ["row_id", "pred_us", "low_us", "high_us", "bottleneck"]
    said = capsys.readouterr().err
    assert f"{table}:3" in said and "2 kernels predicted, 1 refused" in said


def test_a_missing_column_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table = write(tmp_path / "ops.csv", {k: v for k, v in ROW.items() if k != "out_shapes"})
    assert main([str(table), "--out", str(tmp_path / "pred.csv")]) == 2
    assert "got none named out_shapes" in capsys.readouterr().err


def test_what_was_measured_is_not_read(tmp_path: Path) -> None:
    table = write(tmp_path / "ops.csv", {**ROW, "measured_us": "1", "block_dim": "40", "tilesim_us": "2"})
    assert set(next(read_table(table))[1]) == set(ROW)


def test_an_element_type_that_the_chip_lacks_is_refused() -> None:
    with pytest.raises(DeviceError, match="got bf16, which it lacks"):
        read_row(ROW | {"soc": "310P3", "in_dtypes": '["bf16", "bf16"]'})


def test_a_place_that_cannot_be_written_is_an_error_and_what_stands_there_stays(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    ops = write(tmp_path / "ops.csv", ROW)
    assert main([str(ops), "--out", str(tmp_path / "nowhere" / "pred.csv")]) == 2
    assert "must be a file that can be written" in capsys.readouterr().err
    assert main([str(ops), "--out", str(tmp_path / "pred.csv")]) == 0
    assert "calibrated" in capsys.readouterr().err
    assert sorted(p.name for p in tmp_path.iterdir()) == ["ops.csv", "pred.csv"]


def test_the_face_keeps_its_function() -> None:
    from jumar.device.npu import find_chip, predict

    task, chip = read_row(ROW)
    assert predict(task, chip).time_us > 0 and chip is find_chip("910B4")


def test_it_runs_as_a_module(tmp_path: Path) -> None:
    table = tmp_path / "ops.csv.gz"
    table.write_bytes(gzip.compress(write(tmp_path / "ops.csv", ROW).read_bytes()))
    subprocess.run(
        [sys.executable, "-m", "jumar.device.npu.predict", str(table), "--out", str(tmp_path / "p.csv")], check=True, capture_output=True
    )
    assert len((tmp_path / "p.csv").read_text().splitlines()) == 2


def test_every_row_of_the_measured_table_is_predicted(tmp_path: Path) -> None:
    path = SHARED / "data" / "op_times" / "op_times.csv.gz"
    if not path.exists():
        pytest.skip("the measured kernels are not on this machine")
    assert main([str(path), "--out", str(tmp_path / "p.csv")]) == 0
    assert len((tmp_path / "p.csv").read_text().splitlines()) == 569
