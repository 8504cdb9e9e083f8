"""A rule: patterns that find one kind of failure, the layer at fault, and what to tell the user, in English and Chinese.

In: rules/*.toml, layers.toml, and the user's own folder (JUMAR_RULES).  Out: `Rule`, `Layer`, read by apply.py, by the docs and by the tests.
A rule is data: adding one touches no code.  The format is told in docs/field/rules.md and checked here, with the file and the rule named.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any

import re2

from jumar.base import Said, ToolError, config, nearest, read_toml, reason, toml_of
from jumar.tools.knowledge.kept import kept

HERE = Path(__file__).parent
TIERS = ("cause", "symptom", "hint")
STACK = ("os", "host_env", "driver", "firmware", "hardware", "container", "kubernetes", "cann", "framework", "application")
FACT = "fact:"
CODE = "code:"  # an error code in any spelling: code:507018, with its family code:drv:87, or by how it begins code:EI*, code:507*
NO_FAILURE_OF_OURS = ("fact:other-software", "fact:went-well")  # a text of another software; a run without a complaint
LANGUAGES = ("en", "zh")
_PLACE = re.compile(r"\{([a-z][a-z0-9_]*):([^{}]*)\}")
_OPENING, _CLOSING = ("(", "[", "（"), (")", "]", "）")


@dataclass(frozen=True)
class Layer:
    """A layer of the machine.   title, next: by language; next: what to look at when the cause is not known."""

    name: str
    title: Mapping[str, str]
    next: Mapping[str, str]


@dataclass(frozen=True)
class Text:
    """What is told in one language.   what: what failed and why; fix: what to do, in order; next: where to look if that does not help."""

    what: str
    fix: tuple[str, ...]
    next: str = ""

    def filled(self, values: Mapping[str, str]) -> Text:
        return Text(fill(self.what, values), tuple(fill(step, values) for step in self.fix), fill(self.next, values))


@dataclass(frozen=True)
class Rule:
    """One kind of failure.   match: any of these finds it; also: each must be found too; without: none may be found.  Each is a regex,
    an error code in any spelling (code:507018, code:drv:87), or a fact (fact:NAME).

    layer: at fault, empty where none of the machine is.
    tier: `cause` where the text names or proves the cause, `symptom` where the cause is probable, `hint` where it only points at a layer.
    rank: higher goes first within a tier; explains: findings (names, globs) that merely follow from this one.
    examples, others: texts that must, and must not, have this verdict; seen: field cases that were in view when the rule was written.
    """

    name: str
    layer: str
    stack: str
    cause: str
    tier: str
    match: tuple[str, ...]
    texts: Mapping[str, Text]
    source: str
    also: tuple[str, ...] = ()
    without: tuple[str, ...] = ()
    explains: tuple[str, ...] = ()
    run: tuple[str, ...] = ()
    rank: int = 0
    examples: tuple[str, ...] = ()
    others: tuple[str, ...] = ()
    seen: tuple[str, ...] = ()
    file: str = field(default="", compare=False)

    def patterns(self) -> tuple[str, ...]:
        """Every regex of the rule."""
        return tuple(p for p in (*self.match, *self.also, *self.without) if not p.startswith((FACT, CODE)))


def fill(text: str, values: Mapping[str, str]) -> str:
    """A text with its placeholders filled: what was caught, else what stands after the colon.

    >>> fill("port {port:of HCCL} is taken, {name:x}", {"port": "60000"})
    'port 60000 is taken, x'
    >>> fill("more than the card has{size:}. Rank {rank:}: see ({file:}).", {"size": "8 GiB."})
    'more than the card has 8 GiB. Rank: see.'
    """
    return "".join(piece for piece, _ in pieces(text, values))


def pieces(text: str, values: Mapping[str, str]) -> tuple[tuple[str, bool], ...]:
    """A text in pieces, and whether each was filled in: joined so that words keep one blank between them and nothing empty stays in brackets."""
    found: list[tuple[str, bool]] = []
    at = 0
    ahead = ""  # what is left out in front of the next piece
    for place in _PLACE.finditer(text):
        before = text[at : place.start()].removeprefix(ahead)
        after = text[place.end() :]
        value = (values.get(place[1]) or place[2]).strip()
        at, ahead = place.end(), ""
        if value and value[-1] in ".,;:" and not value.endswith("...") and after[:1] in (".", ",", ";", ":", "，", "。", "；", "："):
            value = value.rstrip(".,;:")
        if not value and before.endswith(_OPENING) and after.startswith(_CLOSING):
            before, ahead = before[:-1].rstrip(" "), after[0]
        elif not value and before.endswith(" ") and re.match(r"[\s.,;:!?)\]，。；：）]|$", after):
            before = before.removesuffix(" ")
        elif value and not place[2].strip() and re.search(r"[A-Za-z]$", before) and re.match(r"[\w(<>=\[]", value):
            before += " "
        found += [(before.replace("  ", " "), False), (value, True)]
    return (*found, (text[at:].removeprefix(ahead), False))


def compiled(pattern: str) -> Any:
    """The regex of a rule: linear-time, case-insensitive, within one line, over UTF-8 bytes."""
    return re2.compile(as_written(pattern), regex_options())


def as_written(pattern: str) -> bytes:
    """A rule's pattern as the engine takes it: ^ and $ mean the ends of a line."""
    return b"(?m)" + pattern.encode()


@cache
def regex_options() -> Any:
    options = re2.Options()
    options.case_sensitive = False
    options.never_nl = True
    options.log_errors = False
    options.max_mem = 1 << 20  # of each regex: thousands share the memory that a long log may take
    return options


@cache
def layers() -> Mapping[str, Layer]:
    """The layers by name, in the order of layers.toml."""
    rows = read_toml(HERE / "layers.toml")["layer"]
    return {
        row["name"]: Layer(row["name"], {lang: row[lang]["title"] for lang in LANGUAGES}, {lang: row[lang]["next"] for lang in LANGUAGES})
        for row in rows
    }


def load_rules(folders: Iterable[Path] | None = None) -> tuple[Rule, ...]:
    """Every rule, ours and those of JUMAR_RULES, in the order of their files; raises ToolError where one breaks the format."""
    if folders is None:
        own = config("rules")
        folders = (HERE / "rules", *((Path(own),) if own else ()))
    files: list[tuple[str, bytes, bool]] = []  # name, content, whether its patterns were tried
    for folder in folders:
        if not folder.is_dir():
            raise ToolError(
                Said(f"rules: folder must exist, got {folder}", f"rules：目录不存在：{folder}"),
                hint=Said("JUMAR_RULES names a folder of *.toml files", "JUMAR_RULES 应指向放 *.toml 文件的目录"),
                code="rule-format",
            )
        files += [(file.name, _content(file), folder == HERE / "rules") for file in sorted(folder.glob("*.toml"))]  # ours: by the tests
    made_of = [Path(__file__).read_bytes(), (HERE / "layers.toml").read_bytes()]
    made_of += [part for name, content, tried in files for part in (name.encode(), content, bytes([tried]))]
    return tuple(_unpacked(row) for row in kept("rules", made_of, lambda: [_packed(rule) for rule in _read_all(files)]))


def _content(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError as error:
        why = reason(error)
        raise ToolError(
            Said(f"{file.name}: must be readable, got {why}", f"{file.name}：无法读取：{why.zh}"), code="rule-format"
        ) from error


def _read_all(files: Iterable[tuple[str, bytes, bool]]) -> Iterable[Rule]:
    found: dict[str, Rule] = {}
    known = frozenset(layers())
    for name, content, tried in files:
        rules = _read(name, content, known)
        if tried:
            rules = [_of_ascend(rule) for rule in rules]
        else:
            check_patterns(rules)
        for rule in rules:
            if rule.name in found:
                raise ToolError(
                    Said(f"{name}: rule names must be unique, got {rule.name!r} again", f"{name}：规则名不能重复：{rule.name!r}"),
                    code="rule-format",
                )
            found[rule.name] = rule
    return found.values()


_Packed = dict[str, Any]


def _packed(rule: Rule) -> _Packed:
    """A rule in values that `kept` takes."""
    return {**vars(rule), "texts": {lang: tuple(vars(text).values()) for lang, text in rule.texts.items()}}


def _unpacked(row: _Packed) -> Rule:
    return Rule(**{**row, "texts": {lang: Text(*text) for lang, text in row["texts"].items()}})


def _read(name: str, content: bytes, known_layers: frozenset[str]) -> list[Rule]:
    try:
        table = toml_of(content.decode())
    except ValueError as error:
        raise ToolError(Said(f"{name}: must be TOML, got {error}", f"{name}：不是正确的 TOML：{error}"), code="rule-format") from error
    return [_rule(row, name, known_layers) for row in table.get("rule", ())]


def _of_ascend(rule: Rule) -> Rule:
    """One of our rules: it speaks of failures of Ascend machines, so it is not found in a text that has none, unless it asks for facts."""
    asks = any(pattern.startswith(FACT) for pattern in rule.match)
    return rule if asks else replace(rule, without=(*rule.without, *NO_FAILURE_OF_OURS))


_KEYS = frozenset(
    (
        "name",
        "layer",
        "stack",
        "cause",
        "tier",
        "match",
        "with",
        "without",
        "explains",
        "run",
        "rank",
        "source",
        "en",
        "zh",
        "example",
        "not",
        "seen",
    )
)


def _rule(row: Mapping[str, Any], file: str, known_layers: frozenset[str]) -> Rule:
    name = str(row.get("name", "?"))

    def wrong(what: Said, hint: Said | None = None) -> ToolError:
        return ToolError(Said(f"{file}: rule {name!r}: {what}", f"{file}：规则 {name!r}：{what.zh}"), hint=hint or "", code="rule-format")

    def words(key: str) -> tuple[str, ...]:
        value = row.get(key, [])
        if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
            raise wrong(Said(f"{key} must be a list of texts, got {value!r}", f"{key} 必须是字符串列表，不能是 {value!r}"))
        return tuple(value)

    def one_of(key: str, known: Iterable[str]) -> str:
        value = str(row.get(key, ""))
        if value not in known:
            raise wrong(
                Said(
                    f"{key} must be one of {', '.join(sorted(known))}, got {value!r}",
                    f"{key} 必须是 {'、'.join(sorted(known))} 之一，不能是 {value!r}",
                ),
                nearest(value, list(known)),
            )
        return value

    if unknown := sorted(set(row) - _KEYS):
        raise wrong(Said(f"keys must be known, got {unknown[0]!r}", f"没有 {unknown[0]!r} 这个键"), nearest(unknown[0], list(_KEYS)))
    if not re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", name):
        raise wrong(Said("name must be lower case words joined by -", "name 必须是用 - 连接的小写单词"))
    for key in ("cause", "source"):
        if not isinstance(row.get(key), str) or not row[key]:
            raise wrong(Said(f"{key} must be a text, got {row.get(key)!r}", f"{key} 必须是非空字符串，不能是 {row.get(key)!r}"))
    rule = Rule(
        name=name,
        layer="" if row.get("layer") == "" else one_of("layer", known_layers),
        stack=one_of("stack", STACK),
        cause=row["cause"],
        tier=one_of("tier", TIERS),
        match=words("match"),
        texts={lang: _text(row.get(lang), lang, wrong) for lang in LANGUAGES},
        source=row["source"],
        also=words("with"),
        without=words("without"),
        explains=words("explains"),
        run=words("run"),
        rank=int(row.get("rank", 0)),
        examples=words("example"),
        others=words("not"),
        seen=words("seen"),
        file=file,
    )
    if not rule.match:
        raise wrong(Said("match must hold at least one pattern", "match 至少要有一个模式"))
    return rule


def check_patterns(rules: Iterable[Rule]) -> None:
    """Raises ToolError for the first pattern that the engine does not take; who puts patterns into a set of many need not ask before it fails."""
    for rule in rules:
        for pattern in rule.patterns():
            try:
                compiled(pattern)
            except re2.error as error:
                raise ToolError(
                    Said(
                        f"{rule.file}: rule {rule.name!r}: pattern must be RE2 syntax (no lookaround, no backreference), got {pattern!r}: {error}",
                        f"{rule.file}：规则 {rule.name!r}：模式必须符合 RE2 语法（不能用环视和反向引用）：{pattern!r}：{error}",
                    ),
                    code="rule-format",
                ) from error


def _text(row: Any, lang: str, wrong: Callable[[Said], ToolError]) -> Text:
    if not isinstance(row, dict) or not isinstance(row.get("what"), str) or not isinstance(row.get("fix"), list):
        raise wrong(
            Said(f"{lang}.what must be a text and {lang}.fix a list of texts", f"{lang}.what 必须是字符串，{lang}.fix 必须是字符串列表")
        )
    if unknown := set(row) - {"what", "fix", "next"}:
        raise wrong(
            Said(
                f"{lang} must hold what, fix, next, got {sorted(unknown)}",
                f"{lang} 只能有 what、fix、next，不能有 {'、'.join(sorted(unknown))}",
            )
        )
    return Text(row["what"], tuple(row["fix"]), row.get("next", ""))
