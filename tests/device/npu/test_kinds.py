"""Operator types by name: suffixes, second names, and names that no table has."""

from __future__ import annotations

import pytest

from jumar.device.npu.kinds import kind_of, table


@pytest.mark.parametrize(
    ("name", "kind", "family"),
    [
        ("MatMulV3", "MatMul", "matmul"),
        ("QuantBatchMatmulV3", "QuantMatmul", "matmul"),
        ("SoftmaxV2", "Softmax", "softmax"),
        ("ConcatD", "Concat", "slice"),
        ("ReduceSumD", "ReduceSum", "reduce"),
        ("aclnnGelu", "Gelu", "elementwise"),
        ("RealDiv", "Div", "elementwise"),
        ("InplaceMul", "Mul", "elementwise"),
        ("RandomNormal", "RandomNormal", "random"),
        ("FooNormGrad", "FooNormGrad", "norm"),
        ("ForeachFrob", "ForeachFrob", "foreach"),
        ("UnheardOfAttention", "UnheardOfAttention", "attention"),
        ("FlashAttentionScoreGrad", "FlashAttentionScoreGrad", "attention"),
        ("Frobnicate", "Frobnicate", ""),
    ],
)
def test_a_name_leads_to_its_kind(name: str, kind: str, family: str) -> None:
    assert (kind_of(name).name, kind_of(name).family) == (kind, family)


def test_the_second_name_counts_where_the_first_says_nothing() -> None:
    assert kind_of("RINGMLAPrefillBF16Kernel", "RingMLAPrefill").name == "RingMLAPrefill"


def test_the_table_is_broad() -> None:
    assert len(table()) > 700
