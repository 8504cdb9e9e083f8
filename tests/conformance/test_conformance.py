"""The ONNX project's own suite passes but for what unsupported.txt names, on the oracle and as machine code."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.conformance.cases import all_names, reasons
from tests.conformance.run import run, summary

FLOOR = 2000  # of 2,024; ONNX Runtime 1.32 passes 1,688
# results of the suite whose rounding only another order of operations gives; by target
ROUNDING = {
    "interpreter": {"node/test_attention_4d_causal_fp16_expanded"},  # two of 192 values differ by one unit of f16
    # zeros of a spectrum: 5e-15 from us, 1.9e-7 recorded, and the suite asks for 1e-7
    "cpu": {"node/test_dft_inverse", "node/test_dft_inverse_opset19"},
}


@pytest.mark.parametrize("target", ["interpreter", pytest.param("cpu", marks=pytest.mark.slow)])
def test_the_suite_passes(target: str) -> None:
    results = run(all_names(), target, 2)
    counts = Counter(r["status"] for r in results)
    unexpected = {r["name"]: r["why"] for r in results if r["status"] == "failed" and r["name"] not in ROUNDING[target]}
    assert unexpected == {}, summary(results)
    listed = {r["name"] for r in results if r["status"] == "unsupported"}
    assert listed == set(reasons()), "unsupported.txt must name what is not supported, and nothing else"
    assert counts["passed"] >= FLOOR, summary(results)
