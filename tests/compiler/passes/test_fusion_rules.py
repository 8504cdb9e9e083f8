"""The tables of the fusion rules: names that CANN has, chips that have them, heads that are meant."""

from __future__ import annotations

import pytest
from tests.compiler.npu import conv, image, weights

from jumar.base import TensorType, f16
from jumar.compiler.passes.fusion_rules import BATCH, CONV, DECONV, DEPTHWISE, EPILOGUES, LONGEST, MATMUL, NAMED, POOL, described, head_of
from jumar.compiler.passes.switches import rule_names
from jumar.ir import param
from jumar.operators import ConvTranspose, MatMul, MaxPool, Relu


def test_every_rule_is_described_once() -> None:
    names = [name for name, _, _ in described()]
    assert len(names) == len(set(names)) and set(names) <= set(rule_names())
    assert all(what for _, _, what in described())
    assert {row.rule for row in EPILOGUES} | {row.rule for row in NAMED} | set(LONGEST) <= set(names)


def test_every_kind_of_product_is_told_from_the_others() -> None:
    x, m = image(16), param("m", TensorType((2, 16, 32), f16))
    batch = MatMul()(m, param("b", TensorType((2, 32, 8), f16)))
    pool = MaxPool((2, 2), (2, 2), (0, 0), (0, 0), (1, 1))(x)
    assert [head_of(n) for n in (conv(x, 32), conv(x, 16, groups=16), conv(x, 32, groups=2))] == [CONV, DEPTHWISE, CONV]
    assert [head_of(n) for n in (MatMul()(m, weights(32, 8)), batch, pool, Relu()(x))] == [MATMUL, BATCH, POOL, ""]
    assert head_of(ConvTranspose((1, 1), (0, 0), (0, 0), (0, 0), (1, 1))(x, weights(16, 8, 3, 3))) == DECONV


@pytest.mark.parametrize("family", ["910b", "310p"])
def test_what_follows_a_convolution_depends_on_how_the_units_are_joined(family) -> None:
    rules = rule_names()
    on_fixpipe = rules["TbeConvFixPipeFusionPass"].on(family)
    assert on_fixpipe is not rules["TbeConvCommonRules0FusionPass"].on(family)
    assert on_fixpipe is (family == "910b")
