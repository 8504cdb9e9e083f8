"""Rules over what was seen: hits and facts in, findings in order out: the cause first, what merely followed apart.

In: `Rule`s, the hits of each pattern, facts (diagnose, doctor).  Out: `Finding`s, read by `Verdict`.
The order: what a process that failed by itself tells before what those tell that waited for it; `cause` before `symptom` before `hint`; a higher rank
first; an error before a warning; then the earliest.  What a finding explains, and what is vaguer than the first, has followed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase

from jumar.tools.knowledge.blanks import known_values, left_blank, values_of_lines
from jumar.tools.knowledge.facts import Evidence, Fact, Hit, Moment
from jumar.tools.knowledge.rule import FACT, TIERS, Rule, Text, fill
from jumar.tools.knowledge.severity import ERROR, WARNING, severity_of

_GLOB = frozenset("*?[")
SHOWN = 3  # lines of evidence that a finding keeps


@dataclass(frozen=True)
class Finding:
    """A rule that applies.

    values: for its texts; evidence: its first lines; count: of all (of a long log: at least); follows: the rule that explains it; severity: of its
    most serious line; echo: only processes that waited for another tell it (True), one that failed by itself does (False), or who is not known.
    """

    rule: Rule
    values: Mapping[str, str]
    evidence: tuple[Evidence, ...]
    count: int
    moment: Moment
    follows: str = ""
    severity: int = ERROR
    echo: bool | None = None

    def text(self, lang: str) -> Text:
        return self.rule.texts[lang].filled(self.values)

    def what(self, lang: str) -> str:
        return self.text(lang).what

    def fix(self, lang: str) -> tuple[str, ...]:
        return self.text(lang).fix

    def blanks(self, lang: str) -> tuple[tuple[str, str], ...]:
        """What the texts leave blank, `<id>`, and how the user finds it."""
        text = self.text(lang)
        return left_blank((text.what, *text.fix, text.next), lang)

    def run(self) -> tuple[str, ...]:
        """Commands to look or mend, for the user to run: Jumar never does."""
        return tuple(fill(command, self.values) for command in self.rule.run)


@dataclass(frozen=True)
class Findings:
    """ordered: causes that stand for themselves, the first is the verdict; followed: what came of them."""

    ordered: tuple[Finding, ...]
    followed: tuple[Finding, ...]


def apply_rules(
    rules: Iterable[Rule],
    hits: Mapping[str, tuple[Hit, ...]],
    facts: Iterable[Fact] = (),
    echo: Callable[[Hit], bool | None] = lambda _: None,
) -> Findings:
    """Which rules apply, and in what order.

    hits: by pattern as the rule spells it; echo: whether a line is of a process that only waited for another (True), of one that failed by
    itself (False), or of whom is not known.  Where some process failed by itself, what only others tell comes after it.
    """
    known: dict[str, list[Fact]] = {}
    for fact in facts:
        known.setdefault(fact.name, []).append(fact)
    common = known_values(fact for named in known.values() for fact in named)
    chips = frozenset(name for name in known if name.startswith("soc-"))
    found = [f for rule in rules if (f := _apply(rule, hits, known, echo))]
    found = [replace(f, values={**common, **values_of_lines(f.evidence, chips), **f.values}) for f in found]
    alone = any(f.echo is False and f.rule.tier != TIERS[-1] for f in found)
    found.sort(key=lambda f: (alone and f.echo is True, *_order(f)))
    return _split(found)


def _order(finding: Finding) -> tuple[int, int, int, Moment]:
    tier = TIERS.index(finding.rule.tier)
    if finding.severity == WARNING:  # a cause that only a warning names is on healthy machines, too: it proves no more than a symptom
        tier = max(tier, 1)
    return tier, -finding.rule.rank, finding.severity, finding.moment


def _apply(
    rule: Rule, hits: Mapping[str, tuple[Hit, ...]], facts: Mapping[str, list[Fact]], echo: Callable[[Hit], bool | None]
) -> Finding | None:
    def seen(pattern: str) -> list[Hit]:
        if pattern.startswith(FACT):
            return [hit for name in facts if _named(name, pattern[len(FACT) :]) for fact in facts[name] for hit in _as_hits(fact)]
        return list(hits.get(pattern, ()))

    if any(seen(pattern) for pattern in rule.without):
        return None
    also = [seen(pattern) for pattern in rule.also]
    if not all(also):
        return None
    own = sorted((hit for pattern in rule.match for hit in seen(pattern)), key=lambda hit: hit.moment)
    if not own:
        return None
    values: dict[str, str] = {}
    for hit in (*own, *(hit for found in also for hit in found)):
        for name, value in hit.groups.items():
            values.setdefault(name, value)
    proof = (*own[:SHOWN], *(found[0] for found in also), *own[SHOWN : 2 * SHOWN])
    lines = {hit.evidence: hit.moment for hit in proof if hit.evidence.text.strip()}
    shown = sorted(list(lines)[:SHOWN], key=lambda line: lines[line])
    count = len({hit.evidence for hit in own})
    severity = min(severity_of(hit.evidence.text) for hit in own)
    return Finding(rule, values, tuple(shown), count, own[0].moment, severity=severity, echo=_echo(own, echo))


def _named(name: str, glob: str) -> bool:
    return name == glob or (not _GLOB.isdisjoint(glob) and fnmatchcase(name, glob))  # most are names: compiling a glob takes 0.1 ms


def _echo(own: list[Hit], echo: Callable[[Hit], bool | None]) -> bool | None:
    """Of all lines of a finding: False where one is of a process that failed by itself, True where all are of such that waited."""
    said = {echo(hit) for hit in own}
    return False if False in said else None if None in said else True


def _as_hits(fact: Fact) -> list[Hit]:
    """A hit for each line that shows a fact, one without a line where none does."""
    return [Hit(line, fact.moment, fact.values, fact.rank) for line in fact.evidence or (Evidence("", 0, ""),)]


def _split(found: list[Finding]) -> Findings:
    """Those that stand for themselves, and those that another explains; a circle of two explains neither."""
    explained: dict[str, str] = {}
    for finding in found:
        for other in found:
            if other is finding or finding.rule.name in explained:
                continue
            if any(_named(other.rule.name, glob) for glob in finding.rule.explains):
                explained.setdefault(other.rule.name, finding.rule.name)
    ordered = [f for f in found if f.rule.name not in explained]
    if ordered:  # what is vaguer than the verdict adds nothing to it
        first = ordered[0]
        for finding in ordered[1:]:
            if finding.rule.tier != first.rule.tier:
                explained[finding.rule.name] = first.rule.name
    return Findings(
        tuple(f for f in ordered if f.rule.name not in explained),
        tuple(replace(f, follows=explained[f.rule.name]) for f in found if f.rule.name in explained),
    )
