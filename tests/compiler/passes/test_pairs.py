"""Heads of attention: which reshapes and transposes are one kernel in fractals, and which are none."""

from __future__ import annotations

import pytest

from jumar.base import TensorType, f16, f32
from jumar.compiler.passes.pairs import LEFT_OUT, RESHAPE_FIRST, TRANSPOSE_FIRST, find_pairs, on_edges, pad_to, swaps, up
from jumar.compiler.passes.switches import ALL_ON, Switches
from jumar.ir import Graph, param
from jumar.operators import MatMul, Reshape, Transpose


def pair_of(family: str, flat, parts, perm=(0, 2, 1, 3), dtype=f16, switches=ALL_ON, product=False):
    x = param("x", TensorType(flat, dtype))
    reshape = Reshape(parts)(x)
    last = Transpose(perm)(reshape)
    outputs, params = (last,), (x,)
    if product:
        other = param("y", TensorType((*last.shape[:-2], last.shape[-1], 16), dtype))
        outputs, params = (MatMul()(last, other),), (x, other)
    found = find_pairs(Graph("net", params, outputs), family, switches, lambda n: True, lambda n: True)
    assert found[reshape] is found[last]
    return found[last]


def test_heads_need_no_kernel_on_a_310p_and_one_on_a_910() -> None:
    assert pair_of("310p", (1, 128, 768), (1, 128, 12, 64)).rule == LEFT_OUT
    assert pair_of("310p", (1, 197, 768), (1, 197, 12, 64)).left_out
    assert pair_of("910", (1, 128, 768), (1, 128, 12, 64)).rule == RESHAPE_FIRST
    assert pair_of("310p", (1, 128, 768), (1, 128, 12, 64), dtype=f32).rule == RESHAPE_FIRST
    off = Switches(off=frozenset({LEFT_OUT}))
    assert pair_of("310p", (1, 128, 768), (1, 128, 12, 64), switches=off).rule == RESHAPE_FIRST


def test_what_has_no_kernel_says_why_and_what_to_pad() -> None:
    pair = pair_of("910", (1, 197, 768), (1, 197, 12, 64))
    assert (pair.rule, pair.avoid) == ("", "pad to multiples of 16: 197 -> 208")
    assert "none of heads" in pair_of("910", (1, 128, 768), (1, 128, 12, 64), perm=(2, 0, 1, 3)).why
    assert pair_of("910", (1, 128, 768), (1, 128, 12, 64), switches=Switches(off=frozenset({RESHAPE_FIRST}))).why.endswith(
        "is switched off"
    )


def test_heads_may_be_turned_where_products_alone_read_them() -> None:
    assert pair_of("310p", (1, 128, 768), (1, 128, 12, 64), perm=(0, 2, 3, 1), product=True).turned
    assert pair_of("310p", (1, 128, 768), (1, 128, 12, 64), perm=(0, 2, 3, 1)).rule == ""


def test_heads_are_put_together_by_their_own_rule() -> None:
    x = param("x", TensorType((1, 12, 128, 64), f16))
    last = Reshape((1, 128, 768))(Transpose((0, 2, 1, 3))(x))
    found = find_pairs(Graph("net", (x,), (last,)), "910", ALL_ON, lambda n: True, lambda n: True)
    assert found[last].rule == TRANSPOSE_FIRST


@pytest.mark.parametrize(("family", "count"), [("310p", 1), ("910", 0)])
def test_heads_of_one_row_are_a_reshape_alone(family, count) -> None:
    x = param("x", TensorType((1, 1, 768), f16))
    last = Reshape((1, 12, 1, 64))(x)
    assert len(find_pairs(Graph("net", (x,), (last,)), family, ALL_ON, lambda n: True, lambda n: True)) == count


def test_small_print() -> None:
    assert swaps((0, 2, 1)) and not swaps((1, 0, 2)) and not swaps((0,))
    assert on_edges((3, 32, 48)) and not on_edges((3, 30, 48)) and not on_edges((48,))
    assert (up(197), up(208), up(1, 32)) == (208, 208, 32)
    assert pad_to((3, 30, 48)) == "pad to multiples of 16: 30 -> 32" and pad_to((32, 48)) == ""
