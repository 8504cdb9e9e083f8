"""The format of rules: what a file must hold, and what must be in it, told with the file, the rule and the key where it is not so.

In: the bytes of a file of rules (load.py).  Out: its `Rule`s; `check_patterns` asks more of rules that no test has tried: that each pattern, code, fact
and placeholder can be found.  The format is told in docs/field/rules.md.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import re2

from jumar.base import UNSAID, Said, ToolError, nearest, toml_of
from jumar.device.ascend import FAMILIES, find_code
from jumar.tools.knowledge.blanks import COMMON
from jumar.tools.knowledge.facts_known import is_known
from jumar.tools.knowledge.rule import CODE, FACT, LANGUAGES, PLACE, STACK, TIERS, Rule, Text, compiled

_TEXTS = ("name", "layer", "stack", "cause", "tier", "source")
_LISTS = ("match", "with", "without", "explains", "run", "example", "not", "seen")
_KEYS = (*_TEXTS, *_LISTS, "rank", *LANGUAGES)
_NAME = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")
_OPEN = re.compile(r"\{([A-Za-z]\w*)")
_UNLIKE = (b"a", b"7", b"-")  # what finds each of these finds every line


@dataclass(frozen=True)
class _Where:
    """A rule, as its errors name it."""

    file: str
    rule: str

    def wrong(self, what: Said, hint: Said = UNSAID) -> ToolError:
        return ToolError(
            Said(f"{self.file}: rule {self.rule}: {what}", f"{self.file}：规则 {self.rule}：{what.zh}"), hint=hint, code="rule-format"
        )


def rules_of(file: str, content: bytes, known_layers: frozenset[str]) -> list[Rule]:
    """The rules of a file.   file: as errors name it."""
    try:
        table = toml_of(content.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        raise ToolError(
            Said(f"{file}: must be UTF-8, got byte {content[error.start]:#04x} at {error.start}", f"{file}：必须是 UTF-8 编码：{error}"),
            code="rule-format",
        ) from error
    except ValueError as error:
        raise ToolError(Said(f"{file}: must be TOML, got {error}", f"{file}：不是正确的 TOML：{error}"), code="rule-format") from error
    hint = Said("each rule starts with a line [[rule]]", "每条规则以 [[rule]] 一行开头")
    if other := next((key for key in table if key != "rule"), None):
        raise ToolError(
            Said(f"{file}: must hold rules only, got the key {other!r}", f"{file}：只能有规则，不能有 {other!r} 这个键"),
            hint=hint,
            code="rule-format",
        )
    rows = table.get("rule", [])
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        kind = Said("a table", "一张表") if isinstance(rows, dict) else Said(repr(rows), repr(rows))
        raise ToolError(
            Said(f"{file}: rule must be a list of tables, got {kind}", f"{file}：rule 必须是表的列表，不能是{kind.zh}"),
            hint=hint,
            code="rule-format",
        )
    return [_rule(row, file, place, known_layers) for place, row in enumerate(rows, 1)]


def _rule(row: Mapping[str, Any], file: str, place: int, known_layers: frozenset[str]) -> Rule:
    name = row.get("name")
    where = _Where(file, repr(name) if isinstance(name, str) and name else str(place))

    def text(key: str) -> str:
        value = row.get(key)
        if not isinstance(value, str) or not value.strip():
            raise where.wrong(Said(f"{key} must be a text, got {_shown(value)}", f"{key} 必须是非空字符串，不能是 {_shown(value)}"))
        return value

    def one_of(key: str, known: Iterable[str]) -> str:
        value = text(key)
        if value not in known:
            raise where.wrong(
                Said(
                    f"{key} must be one of {', '.join(sorted(known))}, got {value!r}",
                    f"{key} 必须是 {'、'.join(sorted(known))} 之一，不能是 {value!r}",
                ),
                nearest(value, list(known)),
            )
        return value

    if unknown := sorted(set(row) - set(_KEYS)):
        raise where.wrong(Said(f"keys must be known, got {unknown[0]!r}", f"没有 {unknown[0]!r} 这个键"), nearest(unknown[0], list(_KEYS)))
    if not _NAME.fullmatch(text("name")):
        raise where.wrong(Said("name must be lower case words joined by -", "name 必须是用 - 连接的小写单词"))
    cause, source, rank = text("cause"), text("source"), row.get("rank", 0)
    if type(rank) is not int:  # true is one to isinstance
        raise where.wrong(Said(f"rank must be a whole number, got {_shown(rank)}", f"rank 必须是整数，不能是 {_shown(rank)}"))
    lists = {key: _texts(row.get(key, []), key, where) for key in _LISTS}
    if not lists["match"]:
        raise where.wrong(Said("match must hold at least one pattern", "match 至少要有一个模式"))
    return Rule(
        name=text("name"),
        layer="" if row.get("layer") == "" else one_of("layer", known_layers),
        stack=one_of("stack", STACK),
        cause=cause,
        tier=one_of("tier", TIERS),
        match=lists["match"],
        texts={lang: _text(row.get(lang), lang, where) for lang in LANGUAGES},
        source=source,
        also=lists["with"],
        without=lists["without"],
        explains=lists["explains"],
        run=lists["run"],
        rank=rank,
        examples=lists["example"],
        others=lists["not"],
        seen=lists["seen"],
        file=file,
    )


def _shown(value: object) -> str:
    return "nothing" if value is None else repr(value)


def _texts(value: object, key: str, where: _Where) -> tuple[str, ...]:
    if not isinstance(value, list):
        raise where.wrong(Said(f"{key} must be a list of texts, got {_shown(value)}", f"{key} 必须是字符串列表，不能是 {_shown(value)}"))
    for item in value:
        if not isinstance(item, str) or not item.strip():
            raise where.wrong(Said(f"{key} must hold texts, got {item!r}", f"{key} 中必须是非空字符串，不能有 {item!r}"))
    return tuple(value)


def _text(row: object, lang: str, where: _Where) -> Text:
    if not isinstance(row, dict):
        raise where.wrong(
            Said(f"{lang} must hold what and fix, got {_shown(row)}", f"{lang} 必须有 what 和 fix，不能是 {_shown(row)}"),
            Said(f'{lang}.what = "...", {lang}.fix = ["..."]', f'写法：{lang}.what = "..."，{lang}.fix = ["..."]'),
        )
    if unknown := sorted(set(row) - {"what", "fix", "next"}):
        raise where.wrong(
            Said(f"{lang} must hold what, fix, next, got {unknown[0]!r}", f"{lang} 只能有 what、fix、next，不能有 {unknown[0]!r}"),
            nearest(unknown[0], ["what", "fix", "next"]),
        )
    for key, value in (("what", row.get("what")), ("next", row.get("next", "-"))):
        if not isinstance(value, str) or not value.strip():
            raise where.wrong(
                Said(f"{lang}.{key} must be a text, got {_shown(value)}", f"{lang}.{key} 必须是非空字符串，不能是 {_shown(value)}")
            )
    fix = _texts(row.get("fix"), f"{lang}.fix", where)
    if not fix:
        raise where.wrong(Said(f"{lang}.fix must hold at least one step", f"{lang}.fix 至少要有一步"))
    return Text(row["what"], fix, row.get("next", ""))


def check_patterns(rules: Iterable[Rule], facts: frozenset[str]) -> None:
    """Raises ToolError for the first pattern that the engine does not take, or that finds every line; for a code or fact that there is not; for a
    placeholder that nothing fills.   facts: those that there are (`known_facts`)."""
    for rule in rules:
        where = _Where(rule.file, repr(rule.name))
        for key, patterns in (("match", rule.match), ("with", rule.also), ("without", rule.without)):
            for pattern in patterns:
                if pattern.startswith(FACT):
                    _check_fact(pattern, key, where, facts)
                elif pattern.startswith(CODE):
                    _check_code(pattern, key, where)
                else:
                    _check_regex(pattern, key, where)
        _check_places(rule, where)


def _check_fact(pattern: str, key: str, where: _Where, facts: frozenset[str]) -> None:
    name = pattern.removeprefix(FACT)
    if not is_known(name, facts):
        raise where.wrong(
            Said(f"{key} must ask for a fact that there is, got {pattern!r}", f"{key} 中没有这种事实：{pattern!r}"),
            nearest(name, sorted(facts)) or Said("jumar explain rule-format tells what there is", "见 jumar explain rule-format"),
        )


def _check_code(pattern: str, key: str, where: _Where) -> None:
    """code:NUMBER and code:FAMILY:NUMBER as a table spells them, code:EI* by the first two or three characters."""
    *family, number = pattern.removeprefix(CODE).split(":")
    if number.endswith("*") and not family:
        if not re.fullmatch(r"[A-Z0-9]{2,3}\*", number):
            raise where.wrong(
                Said(
                    f"{key} must name a code's beginning by two or three capitals or digits, got {pattern!r}",
                    f"{key} 中按开头找错误码时须写两到三个大写字母或数字，不能是 {pattern!r}",
                ),
                Said("code:EI*, code:507*", "例如 code:EI*、code:507*"),
            )
        return
    if len(family) > 1 or (family and family[0] not in FAMILIES):
        raise where.wrong(
            Said(f"{key} must name a family that there is, got {pattern!r}", f"{key} 中没有这个错误码类别：{pattern!r}"),
            nearest(family[0], list(FAMILIES)) or Said("jumar explain lists the families", "jumar explain 列出所有类别"),
        )
    found = [code.number for code in find_code(number, *family)]
    if number not in found:
        hint = (
            Said(f"write {CODE}{':'.join((*family, found[0]))}", f"应写作 {CODE}{':'.join((*family, found[0]))}")
            if found
            else Said("code:507018, code:drv:87 or code:EI*", "例如 code:507018、code:drv:87、code:EI*")
        )
        raise where.wrong(Said(f"{key} must name a code as the table does, got {pattern!r}", f"{key} 中没有这个错误码：{pattern!r}"), hint)


def _check_regex(pattern: str, key: str, where: _Where) -> None:
    try:
        regex = compiled(pattern)
    except re2.error as error:
        why = error.args[0].decode() if error.args and isinstance(error.args[0], bytes) else str(error)
        raise where.wrong(
            Said(
                f"{key} must be RE2 syntax (no lookaround, no backreference), got {pattern!r}: {why}",
                f"{key} 必须符合 RE2 语法（不能用环视和反向引用）：{pattern!r}：{why}",
            )
        ) from error
    if regex.search(b"") or all(regex.search(line) for line in _UNLIKE):
        raise where.wrong(
            Said(f"{key} must not find every line, got {pattern!r}", f"{key} 不能匹配所有行：{pattern!r}"),
            Said("write the fixed words of the message", "请写报错信息中固定不变的词"),
        )


def _check_places(rule: Rule, where: _Where) -> None:
    """Each {name:fallback} is closed, and something fills it: a group of a pattern, a value of a fact, or what every rule may use."""
    groups = {name for pattern in rule.patterns() for name in re.findall(r"\(\?P<(\w+)>", pattern)}
    named = (*groups, *COMMON)
    by_fact = any(pattern.startswith(FACT) for pattern in (*rule.match, *rule.also))
    keyed = [(f"{lang}.{key}", text) for lang, of in rule.texts.items() for key, text in (("what", of.what), ("next", of.next))]
    keyed += [(f"{lang}.fix", step) for lang, of in rule.texts.items() for step in of.fix]
    keyed += [("run", command) for command in rule.run]
    for key, text in keyed:
        left = PLACE.sub("", text)
        if left.count("{") != left.count("}"):
            raise where.wrong(
                Said(f"{key} must close its braces, got {text!r}", f"{key} 中花括号不配对：{text!r}"),
                Said("a placeholder is written {name:fallback}", "占位符写作 {名称:缺省文字}"),
            )
        if open_ := next((name for name in _OPEN.findall(left) if name in named), None):
            raise where.wrong(
                Said(
                    f"{key} must give {{{open_}}} a fallback in lower case, got {text!r}",
                    f"{key} 中 {{{open_}}} 须为小写并写明缺省文字：{text!r}",
                ),
                Said(f"write {{{open_.lower()}:fallback}}", f"写作 {{{open_.lower()}:缺省文字}}"),
            )
        for name, _ in PLACE.findall(text):
            if not by_fact and name not in named:
                raise where.wrong(
                    Said(f"{key} must use groups of its patterns, got {{{name}:...}}", f"{key} 中的 {{{name}:...}} 没有任何模式提供"),
                    nearest(name, list(named)) or Said(f"write (?P<{name}>...) in match or with", f"在 match 或 with 中写 (?P<{name}>...)"),
                )
