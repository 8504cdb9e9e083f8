"""Schedules are read when a target is first lowered to, not when operators are imported."""

from __future__ import annotations

import subprocess
import sys

from jumar.operators import Conv, Elementwise, MatMul, find_schedule, schedules

AFTER_IMPORT = """
import sys
import jumar.nn
names = [n for n in sys.modules if n.startswith(("jumar", "llvmlite", "onnx"))]
print(len(names), *(n for n in names if n.startswith(("jumar.operators.cpu", "jumar.compiler", "llvmlite", "onnx"))))
"""


def test_importing_layers_reads_no_schedules_no_compiler_and_few_files() -> None:
    done = subprocess.run([sys.executable, "-c", AFTER_IMPORT], capture_output=True, text=True, check=True)
    count, *heavy = done.stdout.split()
    assert [] == heavy
    assert int(count) <= 125  # 110 when this was written, 160 with schedules


def test_schedules_of_a_target_are_found_by_operator_and_by_family() -> None:
    assert find_schedule("cpu", MatMul()) is schedules("cpu")[MatMul] is schedules("cpu")[Conv]
    assert Elementwise in schedules("cpu")


def test_a_target_without_schedules_has_none() -> None:
    assert {} == schedules("npu")
    assert find_schedule("npu", MatMul()) is None
