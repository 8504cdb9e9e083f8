"""Concats and splits that move nothing."""

from __future__ import annotations

import pytest
from tests.compiler.npu import conv, image

from jumar.base import TensorType, f16
from jumar.compiler.passes.formats import assign_formats
from jumar.compiler.passes.fuse_npu import fuse_npu
from jumar.compiler.passes.select import select
from jumar.compiler.passes.switches import ALL_ON, parse_switches
from jumar.device.npu import find_chip
from jumar.ir import Graph, param
from jumar.operators import Concat, Neg, Relu, Slice, Softmax


def rules(chip: str, *outputs, switches: str = ""):
    """The rules by which nodes launch nothing."""
    params = [n for n in Graph("g", (), outputs).nodes if n.op.name == "param"]
    soc, on = find_chip(chip), parse_switches(switches) if switches else ALL_ON
    selection = select(Graph("net", tuple(params), outputs), soc)
    return sorted(fuse_npu(selection, assign_formats(selection, soc, switches=on), soc, on).in_place.values())


def matrix(*shape: int):
    return param("x", TensorType(shape, f16))


def test_pieces_one_behind_the_other_are_no_copy_whatever_is_switched_off() -> None:
    x = matrix(8, 32)
    y = Softmax()(Concat(0)(Relu()(x), Neg()(x)))
    assert rules("910B4", y) == ["ConcatNotaskPass"]
    assert rules("910B4", y, switches='{"Switch": {"GraphFusion": {"ALL": "off"}, "UBFusion": {"ALL": "off"}}}') == ["ConcatNotaskPass"]
    assert rules("910B4", Softmax()(Concat(1)(Relu()(x), Neg()(x)))) == []


@pytest.mark.parametrize("columns", [32, 33])
def test_pieces_must_end_at_32_bytes(columns) -> None:
    x = matrix(1, columns)
    assert rules("910B4", Softmax()(Concat(0)(Relu()(x), Neg()(x)))) == ["ConcatNotaskPass"] * (columns == 32)


def test_piece_that_is_an_output_or_comes_twice_is_copied() -> None:
    x = Relu()(matrix(8, 32))
    assert rules("910B4", Softmax()(Concat(0)(x, x))) == []
    assert rules("910B4", Softmax()(Concat(0)(x, Neg()(x))), x) == []


def test_convolutions_write_channels_of_whole_blocks_in_place() -> None:
    x = image(16, n=2)

    def joined(c: int):
        return conv(Concat(1)(conv(x, c, name="a"), conv(x, 32, name="b")), 16)

    assert rules("310P3", joined(16)) == ["ConvConcatFusionPass"]
    assert rules("310P3", joined(16), switches="ConvConcatFusionPass:off") == []
    assert rules("310P3", joined(24)) == []


def test_parts_of_a_split_are_read_where_they_lie() -> None:
    x = Relu()(matrix(8, 32))
    parts = [Softmax()(Slice((4 * i, 0), (4 * i + 4, 32), (1, 1))(x)) for i in range(2)]
    assert rules("910B4", *parts) == ["FusionVirtualOpSetSwitch"] * 2
    assert rules("910B4", *parts, switches="FusionVirtualOpSetSwitch:off") == []
