"""The switch file of ATC: both forms, `ALL`, names that do not exist, contradictions."""

from __future__ import annotations

import pytest

from jumar.base import CompileError
from jumar.compiler.passes.switches import Switches, parse_switches, read_switches, rule_names

JSON = """{
  "Switch": {
    "GraphFusion": {"ALL": "off", "MatMulBiasAddFusionPass": "on"},
    "UBFusion": {"TbeEltwiseFusionPass": "off"}
  }
}"""


def test_all_rules_are_on_by_default() -> None:
    assert all(Switches().enabled(name) for name in rule_names())


def test_json_closes_a_group_but_for_what_it_names() -> None:
    switches = parse_switches(JSON)
    assert not switches.enabled("ConvCastFusionPass")
    assert switches.enabled("MatMulBiasAddFusionPass")
    assert not switches.enabled("TbeEltwiseFusionPass")
    assert switches.enabled("AutomaticUbFusion")


def test_all_leaves_on_what_models_need() -> None:
    switches = parse_switches('{"Switch": {"UBFusion": {"ALL": "off"}}}')
    assert switches.enabled("TbeConvCommonRules0FusionPass")
    assert not parse_switches("TbeConvCommonRules0FusionPass:off").enabled("TbeConvCommonRules0FusionPass")


def test_lines_switch_single_rules() -> None:
    switches = parse_switches("TbeEltwiseFusionPass:off\n\n# why\nAutomaticUbFusion : on\n")
    assert (switches.off, switches.on) == ({"TbeEltwiseFusionPass"}, {"AutomaticUbFusion"})


def test_what_cannot_be_switched_off_stays_on_and_is_said() -> None:
    switches = parse_switches("FIXPIPEFUSIONPASS:off")
    assert switches.enabled("FIXPIPEFUSIONPASS")
    assert "cannot be switched off" in switches.notes[0]


def test_unknown_rule_names_the_nearest_and_the_line() -> None:
    with pytest.raises(CompileError, match="got 'TbeEltwiseFusion'") as caught:
        parse_switches("AutomaticUbFusion:off\nTbeEltwiseFusion:off", "fusion_switch.cfg")
    assert "TbeEltwiseFusionPass" in caught.value.hint
    assert str(caught.value.loc).startswith("fusion_switch.cfg:2")
    assert caught.value.code == "fusion-switch"


@pytest.mark.parametrize(
    "text, message",
    [
        ("AutomaticUbFusion:off\nAutomaticUbFusion:on", "AutomaticUbFusion must be on or off, got both"),
        ('{"Switch": {"UBFusion": {"ALL": "off", "ALL": "on"}}}', "ALL must be on or off, got both"),
        ("AutomaticUbFusion:maybe", "must be on or off, got 'maybe'"),
        ("AutomaticUbFusion", "must be on or off, got ''"),
        ('{"Switch": {"GraphFusion": {"AutomaticUbFusion": "off"}}}', "must stand under UBFusion, got GraphFusion"),
        ('{"Switch": {"VectorFusion": {"ALL": "off"}}}', "group must be GraphFusion or UBFusion"),
        ('{"Switches": {}}', 'must hold "Switch"'),
        ('{"Switch": {"UBFusion": ["ALL"]}}', "UBFusion must be an object"),
        ('{"Switch": {"UBFusion": {"ALL": true}}}', "must be on or off, got 'True'"),
        ('{"Switch": ', "must be JSON or lines"),
    ],
)
def test_contradictions_and_slips_are_named(text, message) -> None:
    with pytest.raises(CompileError, match=message):
        parse_switches(text)


def test_file_that_is_not_there_is_named(tmp_path) -> None:
    with pytest.raises(CompileError, match=r"absent\.cfg: fusion switch file must be readable"):
        read_switches(tmp_path / "absent.cfg")
    (tmp_path / "fusion_switch.cfg").write_text(JSON)
    assert read_switches(tmp_path / "fusion_switch.cfg").closed == {"GraphFusion"}
