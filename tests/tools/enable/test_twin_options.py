"""The options of the twin: names of chips, what contradicts what, completions."""

from __future__ import annotations

import click
import pytest

from jumar.base import DeviceError, ToolError
from jumar.tools.enable.command import command
from jumar.tools.enable.twin import TwinRequest
from jumar.tools.enable.twin_options import complete_socs, parse_training, parse_twin
from jumar.tools.soc import complete_soc

NOTHING = {
    "compare": "",
    "precision": None,
    "mixlist": None,
    "mode": None,
    "strict": False,
    "fusion_switch": None,
    "numerics": False,
    "twin_only": False,
}


def parsed(*socs: str, **options) -> TwinRequest | None:
    return parse_twin(socs, **(NOTHING | options))


def test_chips_are_those_of_soc_and_compare_each_once() -> None:
    found = parsed("910B4", compare="310P3,Ascend910B4, 910B2")
    assert found is not None
    assert [c.name for c in found.chips] == ["Ascend910B4", "Ascend310P3", "Ascend910B2"]
    assert not found.only
    assert parsed() is None


def test_an_unknown_chip_is_named_with_what_is_near() -> None:
    with pytest.raises(DeviceError, match="910B9") as caught:
        parsed("910B9")
    assert caught.value.code == "soc-unknown"
    assert "did you mean" in caught.value.hint
    with pytest.raises(DeviceError, match="nonsense"):
        parsed("910B4", compare="nonsense")


@pytest.mark.parametrize(
    ("name", "value", "shown"),
    [
        ("precision", "force_fp16", "--precision force_fp16"),
        ("twin_only", True, "--twin-only"),
        ("compare", "310P3", "--compare 310P3"),
        ("numerics", True, "--numerics"),
    ],
)
def test_options_of_the_twin_need_a_chip(name: str, value: object, shown: str) -> None:
    with pytest.raises(ToolError, match=f"{shown} must come with --soc"):
        parsed(**{name: value})


def test_a_training_is_said_in_one_word_or_more() -> None:
    found = parse_training("momentum,O2,accumulate=4,cheap")
    assert (found.optimizer, found.amp, found.accumulate, found.cheap) == ("momentum", "O2", 4, True)
    with pytest.raises(ToolError, match="got 'fast'"):
        parse_training("adamw,fast")


def test_names_of_chips_are_completed() -> None:
    context, option = click.Context(command), next(p for p in command.params if p.name == "socs")
    assert "Ascend910B4" in [i.value for i in complete_soc(context, option, "ascend910b")]
    assert "310P3" in [i.value for i in complete_soc(context, option, "310")]
    assert "910B4,310P3" in [i.value for i in complete_socs(context, option, "910B4,310")]
