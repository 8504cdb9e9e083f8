"""`Switches`: which of the device's fusion rules are on, as ATC's `--fusion_switch_file` says.

In: a file in either of its forms, `{"Switch": {"GraphFusion": {"RULE": "off", "ALL": "off"}, "UBFusion": {...}}}` or lines `RULE:off`; the rules by
name (fusion_rules.csv).  Out: `Switches`, asked by formats.py and fuse_npu.py before they apply a rule.
What fusion_rules.csv holds are facts of CANN's documentation and of its fusion engine: names, chips, and what `"ALL": "off"` leaves on.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from jumar.base import CompileError, Loc, nearest

GRAPH, UB = GROUPS = ("GraphFusion", "UBFusion")
ALL = "ALL"
FREE, BY_NAME, NEVER = "free", "by name", "never"


@dataclass(frozen=True)
class RuleName:
    """A fusion rule that CANN has.   group: one of GROUPS; families: chips it is documented for, all where that is left open.

    switched_off: `free`, `by name` (`ALL` leaves it on, since models may stop to work without) or `never`.
    """

    name: str
    group: str
    families: frozenset[str]
    switched_off: str

    def on(self, family: str) -> bool:
        """Whether chips of that family have it; those of a 950 have no UB fusion."""
        if self.families:
            return family in self.families
        return self.group == GRAPH or family != "950"


@cache
def rule_names() -> Mapping[str, RuleName]:
    """All rules whose names a switch file may hold.

    >>> rule_names()["TbeEltwiseFusionPass"].group
    'UBFusion'
    """
    with (Path(__file__).parent / "fusion_rules.csv").open(encoding="utf-8", newline="") as file:
        rows = [RuleName(r["rule"], r["group"], frozenset(r["families"].split()), r["switched_off"]) for r in csv.DictReader(file)]
    return {row.name: row for row in rows}


@dataclass(frozen=True)
class Switches:
    """off, on: rules named so; closed: groups that are off but for what is named.   source: the file; notes: what a file asks for and cannot have.

    >>> Switches(closed=frozenset({"UBFusion"}), on=frozenset({"TbeEltwiseFusionPass"})).enabled("AutomaticUbFusion")
    False
    """

    off: frozenset[str] = frozenset()
    on: frozenset[str] = frozenset()
    closed: frozenset[str] = frozenset()
    source: str = ""
    notes: tuple[str, ...] = field(default=(), compare=False)

    def enabled(self, name: str) -> bool:
        """Whether a rule applies."""
        known = rule_names()[name]
        if known.switched_off == NEVER or name in self.on:
            return True
        return name not in self.off and not (known.group in self.closed and known.switched_off == FREE)


ALL_ON = Switches()


def read_switches(path: str | Path) -> Switches:
    """The switches of a file."""
    file = Path(path)
    try:
        text = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise CompileError(f"{file.name}: fusion switch file must be readable text, got {error}", code="fusion-switch") from error
    return parse_switches(text, str(path))


def parse_switches(text: str, source: str = "") -> Switches:
    """The switches that a text says.   source: the file's name, for errors.

    >>> sorted(parse_switches("TbeEltwiseFusionPass:off").off)
    ['TbeEltwiseFusionPass']
    """
    said = _of_json(text, source) if text.lstrip().startswith("{") else _of_lines(text, source)
    off: set[str] = set()
    on: set[str] = set()
    closed: set[str] = set()
    notes: list[str] = []
    values: dict[str, tuple[str, Loc]] = {}
    for group, name, value, place in said:
        _check(group, name, value, place)
        key = f"{group}.{ALL}" if name == ALL else name
        if key in values and values[key][0] != value:
            what = f"fusion switch: {name} must be on or off, got both"
            raise CompileError(what, loc=place, hint=f"the other is at {values[key][1]}", code="fusion-switch")
        values[key] = value, place
        if name == ALL:
            if value == "off":
                closed.update([group] if group else GROUPS)
            else:
                notes.append('"ALL": "on" changes nothing: rules are on unless they are switched off')
        elif value == "on":
            on.add(name)
        else:
            off.add(name)
            if rule_names()[name].switched_off == NEVER:
                notes.append(f"{name} cannot be switched off: CANN leaves it on, and so does this")
    return Switches(frozenset(off), frozenset(on), frozenset(closed), source, tuple(notes))


Said = tuple[str, str, str, Loc]  # group, rule, on or off, where


def _check(group: str, name: str, value: str, place: Loc) -> None:
    known = rule_names()
    if name != ALL and name not in known:
        hint = nearest(name, list(known)) or "docs/twin/formats-and-fusion.md lists all rules"
        raise CompileError(f"fusion switch: rule must be one that CANN has, got {name!r}", loc=place, hint=hint, code="fusion-switch")
    if value not in ("on", "off"):
        raise CompileError(f"fusion switch: {name} must be on or off, got {value!r}", loc=place, code="fusion-switch")
    if group and name != ALL and known[name].group != group:
        what = f"fusion switch: {name} must stand under {known[name].group}, got {group}"
        raise CompileError(what, loc=place, hint="move it there", code="fusion-switch")


def _of_lines(text: str, source: str) -> Iterable[Said]:
    for number, line in enumerate(text.splitlines(), 1):
        bare = line.partition("#")[0].strip()
        if bare:
            name, _, value = bare.partition(":")
            yield "", name.strip(), value.strip(), Loc(source, number, text=bare)


def _of_json(text: str, source: str) -> Iterable[Said]:
    try:
        pairs = json.loads(text, object_pairs_hook=_Pairs)  # pairs, not a dict: a rule that is said twice must be seen
    except json.JSONDecodeError as error:
        place = Loc(source, error.lineno, text=(text.splitlines() or [""])[error.lineno - 1].strip())
        raise CompileError(
            f"fusion switch: file must be JSON or lines `RULE:off`, got {error.msg}", loc=place, code="fusion-switch"
        ) from error
    for key, groups in _items(pairs, "file", source):
        if key != "Switch":
            raise CompileError(f'fusion switch: file must hold "Switch", got {key!r}', loc=Loc(source), code="fusion-switch")
        for group, rules in _items(groups, key, source):
            if group not in GROUPS:
                what = f"fusion switch: group must be {' or '.join(GROUPS)}, got {group!r}"
                raise CompileError(what, loc=Loc(source), hint=nearest(group, GROUPS), code="fusion-switch")
            for name, value in _items(rules, group, source):
                yield group, name, value if isinstance(value, str) else repr(value), Loc(source, name=f"{group}.{name}")


class _Pairs(list[tuple[str, Any]]):
    """A JSON object with every key that was written."""


def _items(value: Any, name: str, source: str) -> _Pairs:
    if not isinstance(value, _Pairs):
        raise CompileError(f"fusion switch: {name} must be an object, got {value!r}", loc=Loc(source), code="fusion-switch")
    return value
