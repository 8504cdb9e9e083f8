"""Every rule, ours and the user's own, parsed once and then kept.

In: rules/*.toml, and what JUMAR_RULES names: folders and files.  Out: the `Rule`s, in the order of their files.  Which files there are is looked at
each time; what they hold is parsed again where a byte of it, or of this code, changed.  What is wrong is raised, and never kept.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from jumar.base import Said, ToolError, config, reason
from jumar.tools.knowledge import facts_known, format, rule
from jumar.tools.knowledge.facts_known import known_facts
from jumar.tools.knowledge.format import check_patterns, rules_of
from jumar.tools.knowledge.kept import kept
from jumar.tools.knowledge.rule import FACT, HERE, NO_FAILURE_OF_OURS, Rule, Text, layers

OURS = HERE / "rules"
_CODE = tuple(Path(module.__file__ or "") for module in (rule, format, facts_known)) + (Path(__file__), HERE / "layers.toml")


@dataclass(frozen=True)
class _File:
    """A file of rules.   name: as errors name it; ours: its patterns were tried by the tests."""

    name: str
    content: bytes
    ours: bool


def load_rules(places: Iterable[Path] | None = None) -> tuple[Rule, ...]:
    """Every rule, ours and those of JUMAR_RULES, or of these folders and files; raises ToolError where one breaks the format."""
    found = (
        [file for place in (OURS, *own_places()) if place for file in _files(place)]
        if places is None
        else [f for p in places for f in _files(p)]
    )
    paths = list({path.resolve(): path for path in found}.values())  # a file and its folder may both be named
    same = Counter(path.name for path in paths)
    files = [_File(path.name if same[path.name] == 1 else str(path), _content(path), path.parent == OURS) for path in paths]
    ours = [file.content for file in files if file.ours] or [_content(path) for path in _files(OURS)]
    made_of = [path.read_bytes() for path in _CODE]
    made_of += [part for file in files for part in (file.name.encode("utf-8", "surrogateescape"), file.content, bytes([file.ours]))]
    made_of += ours  # they say which facts there are
    return tuple(_unpacked(row) for row in kept("rules", made_of, lambda: [_packed(one) for one in _read_all(files, ours)]))


def own_places() -> tuple[Path, ...]:
    """The folders and files that JUMAR_RULES names, separated as in PATH."""
    return tuple(Path(part).expanduser() for part in config("rules").split(os.pathsep) if part)


def _files(place: Path) -> list[Path]:
    hint = Said(
        f"JUMAR_RULES names folders of *.toml files, or such files, with {os.pathsep!r} between them",
        f"JUMAR_RULES 应为放 *.toml 文件的目录或此类文件，多个之间用 {os.pathsep!r} 分隔",
    )
    if place.is_dir():
        try:
            found = sorted(file for file in place.iterdir() if file.suffix == ".toml")
        except OSError as error:
            why = reason(error)
            raise ToolError(
                Said(f"rules: folder must be readable, got {place}: {why}", f"rules：目录无法读取：{place}：{why.zh}"), code="rule-format"
            ) from error
        if not found:
            raise ToolError(
                Said(f"rules: folder must hold *.toml files, got none in {place}", f"rules：目录中没有 *.toml 文件：{place}"),
                hint=hint,
                code="rule-format",
            )
        return found
    if not place.exists():
        raise ToolError(
            Said(f"rules: folder or file must exist, got {place}", f"rules：目录或文件不存在：{place}"), hint=hint, code="rule-format"
        )
    if place.suffix != ".toml":
        raise ToolError(
            Said(f"rules: file must end in .toml, got {place}", f"rules：文件名必须以 .toml 结尾：{place}"), hint=hint, code="rule-format"
        )
    return [place]


def _content(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError as error:
        why = reason(error)
        raise ToolError(
            Said(f"{file.name}: must be readable, got {why}", f"{file.name}：无法读取：{why.zh}"), code="rule-format"
        ) from error


def _read_all(files: Iterable[_File], ours: Iterable[bytes]) -> Iterable[Rule]:
    found: dict[str, Rule] = {}
    known, facts = frozenset(layers()), known_facts(ours)
    for file in files:
        rules = rules_of(file.name, file.content, known)
        if file.ours:
            rules = [_of_ascend(one) for one in rules]
        else:
            check_patterns(rules, facts)
        for one in rules:
            if other := found.get(one.name):
                raise ToolError(
                    Said(
                        f"{file.name}: rule {one.name!r}: name must be unique, got that of a rule in {other.file}",
                        f"{file.name}：规则 {one.name!r}：name 不能与 {other.file} 中的规则重复",
                    ),
                    code="rule-format",
                )
            found[one.name] = one
    return found.values()


def _of_ascend(one: Rule) -> Rule:
    """One of our rules: it speaks of failures of Ascend machines, so it is not found in a text that has none, unless it asks for facts."""
    asks = any(pattern.startswith(FACT) for pattern in one.match)
    return one if asks else replace(one, without=(*one.without, *NO_FAILURE_OF_OURS))


_Packed = dict[str, Any]


def _packed(one: Rule) -> _Packed:
    """A rule in values that `kept` takes."""
    return {**vars(one), "texts": {lang: tuple(vars(text).values()) for lang, text in one.texts.items()}}


def _unpacked(row: Mapping[str, Any]) -> Rule:
    return Rule(**{**row, "texts": {lang: Text(*text) for lang, text in row["texts"].items()}})
