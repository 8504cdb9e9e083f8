"""`jumar ops --soc`: the operator list of a chip."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner

from jumar.base import DeviceError
from jumar.compiler.passes import coverage
from jumar.device.npu import find_chip
from jumar.tools.ops import command


def out_of(*arguments: str) -> str:
    done = CliRunner().invoke(command, list(arguments), catch_exceptions=False)
    assert done.exit_code == 0
    return done.output


def test_a_chip_s_list_says_unit_operator_and_evidence() -> None:
    lines = out_of("--soc", "910B4").splitlines()
    softmax = next(line for line in lines if line.startswith("softmax "))
    assert softmax.split() == ["softmax", "f32", "f16", "AI_VECTOR_CORE", "SoftmaxV2", "aclnn", "documented"]
    exp = next(line for line in lines if line.startswith("exp ") and "AI_CPU" in line)
    assert exp.endswith("Exp on the AI Core of Ascend910B4 takes bf16, f16, f32")
    assert lines[-1].startswith("Ascend910B4: ")


def test_the_list_as_json_is_for_programs() -> None:
    rows = json.loads(out_of("--soc", "310P3", "--json"))
    by_name = {(r["op"], r["dtype"]): r for r in rows}
    assert by_name["matmul", "f16"]["unit"] == "AI_CORE"
    assert by_name["matmul", "f32"]["how"] == "composite"
    assert "Cast" in by_name["matmul", "f32"]["parts"]
    assert by_name["exp", "bf16"]["how"] == "none"
    assert all(r["why"] for r in rows if r["how"] not in ("aclnn", "ge"))


def test_what_depends_on_data_is_in_the_list() -> None:
    rows = {r.op: r for r in coverage(find_chip("910B4"))}
    assert rows["non_zero"].kind == "NonZero"
    assert rows["unique"].unit == "AI_CPU"
    assert rows["image_decode"].unit == "DVPP"


def test_an_unknown_chip_names_those_like_it() -> None:
    with pytest.raises(DeviceError, match="910B4"):
        CliRunner().invoke(command, ["--soc", "910B44"], catch_exceptions=False)
