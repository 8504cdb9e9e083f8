"""The findings of a chip's arithmetic as text."""

from __future__ import annotations

import numpy as np

from jumar.base import Loc
from jumar.compiler import Findings, run_precision
from jumar.compiler.passes.precision import parse_precision
from jumar.device.npu import find_chip
from jumar.ir import Graph, f32t, located, param
from jumar.operators import ReduceSum, div, exp
from jumar.tools.enable.npu_numerics import numerics_lines


def findings(soc: str, largest: float) -> Findings:
    x = param("x", f32t(2, 4))
    with located(Loc("m.onnx", 0, "attention/Exp")):
        e = exp(x)
    with located(Loc("m.onnx", 0, "attention/Sum")):
        total = ReduceSum((1,), keepdims=True)(e)
    with located(Loc("m.onnx", 0, "attention/Div")):
        y = div(e, total)
    data = np.array([[0, 1, largest, 2], [0.5, 0.25, 0.1, 0.3]], np.float32)
    return run_precision(Graph("g", (x,), (y,), ("weights",)), [data], find_chip(soc), parse_precision("force_fp16"))


def test_the_first_line_names_the_node_that_overflows() -> None:
    lines = numerics_lines(findings("910B4", 14))
    assert "Ascend910B4" in lines[0] and "attention/Exp overflows first, with 1.2e+06: f16 ends at 65504" in lines[0]
    assert "output weights: off by" in lines[1] and "1 elements are not finite" in lines[1]
    table = next(line for line in lines if line.startswith("attention/Exp"))
    assert "1 of 8 elements overflow" in table
    keep = next(line for line in lines if line.startswith("in fp32:"))
    assert "not finite -> " in keep and "keep=attention/Exp,keep=attention/Sum,keep=attention/Div" in keep
    assert any(line.startswith("- attention/Exp: subtract the row's largest value") for line in lines)


def test_a_chip_that_saturates_says_so() -> None:
    lines = numerics_lines(findings("910A", 14))
    assert "saturates" in lines[0] and any("no inf or nan shows it" in line for line in lines)


def test_a_model_that_fits_has_a_short_verdict() -> None:
    lines = numerics_lines(findings("910B4", 3))
    assert "nothing overflows; outputs are off by 0.0" in lines[0]
    assert not any(line.startswith("in fp32:") for line in lines)
    assert "the largest of a row stays as good in 100.0% of the rows" in lines[1]


def test_a_row_that_is_not_a_number_keeps_no_decision() -> None:
    assert "as good in 50.0% of the rows" in numerics_lines(findings("910B4", 14))[1]


def test_where_all_overflows_nothing_is_said_of_how_near_it_is() -> None:
    x = param("x", f32t(2, 4))
    found = run_precision(
        Graph("g", (x,), (exp(x),), ("y",)), [np.full((2, 4), 20, np.float32)], find_chip("910B4"), parse_precision("force_fp16")
    )
    assert numerics_lines(found)[1] == "output y: not one of its 8 elements is finite"
