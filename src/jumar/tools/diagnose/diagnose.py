"""Logs to a verdict: every line that a rule or a code speaks of, in the order of time over files and ranks; the first error; what followed.

In: `Source`s.  Out: `Verdict`.  Before: sources.py, scan.py, derive.py.  After: jumar.tools.verdict.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cache
from time import gmtime, strftime

from jumar.base import Said, config
from jumar.device.ascend import Mention, codes_in
from jumar.tools.diagnose import derive, ranks
from jumar.tools.diagnose.harmless import HARMLESS
from jumar.tools.diagnose.outcome import UNLESS, WENT_WELL
from jumar.tools.diagnose.raised import with_exceptions
from jumar.tools.diagnose.ranks import Processes
from jumar.tools.diagnose.scan import Patterns, Scanned, scan
from jumar.tools.diagnose.sources import Source, source_of_text
from jumar.tools.knowledge import CODE as CODE_PREFIX
from jumar.tools.knowledge import TIERS, Evidence, Fact, Finding, Findings, Hit, Likeness, Moment, Rule, apply_rules, load_rules
from jumar.tools.knowledge.severity import ERROR as ERROR_LINE
from jumar.tools.knowledge.severity import PLAIN, WARNING, severity_of
from jumar.tools.verdict import CONFIDENCE, Decoded, Verdict

ERROR = (
    r"\b(error|errors|critical|fatal|exception|failed|fail|failure|abort(ed)?|killed|denied|refused|timed? ?out|cannot|can't|unable|invalid|mismatch"
    r"|no such file|not found|not supported|unsupported|undefined|segmentation|core dumped|out of memory|overflow|corrupt\w*)\b"
    r"|(Error|Exception|Warning|Fault)\b|\b(E[A-Z]?\d{4,5}|ERR\d{5})\b|错误|失败|异常|报错|超时|不支持|溢出"
)
CODE = (  # lines in which codes_in looks: more than it takes
    r"\b[EW][A-Z0-9]\d{4}\b|\bERR\d{5}\b|_E(RR|RROR)?_[A-Z]|\B-80\d\d\b|\b0x0?7[01][0-9a-f]{5,6}\b|错误码|返回码|返回值|报错|故障码"
    r"|(ret|code|errno|err|error|result|status|return|failed|event id|exception id|exception_id)\w*\b.{0,24}?\d"
    r"|(event|fault|alarm)[ _]?(id|code)?\b.{0,12}?\b(0x)?[89a][0-9a-f]{7}\b"
)
QUIET = (  # lines that speak of no error though they hold the word
    r"\[(INFO|DEBUG|EVENT)\]|\b(INFO|DEBUG) \d\d-\d\d|\b(errors?|failed|failures?|exceptions?)\s*[=:]\s*0\b"
    r"|\berrors? 0\b|(^|[,;(=]) ?0 (errors?|failed|failures)\b"
    r"|\b(no|without|any) (an )?(errors?|failures?|exceptions?)\b|error[_ ]rate|\w+_error\b\W{0,3}\d|\berror \d+\.\d"
)
KEPT_CODES = 12
KEPT = 60  # hits that are kept of a rule's pattern in a source
KEPT_CONTEXT = 8  # of one that only must, or must not, be there
KEPT_OF_ALL = 400  # of the patterns of errors, codes, versions
_OF_FILES = re.compile(r"/|\\\.[A-Za-z(]")  # in a pattern that looks for the names of files
NOT_KNOWN = "not_known"  # the cause of hints that only name a layer
_GAP = 6 * 3600  # seconds between errors of one run at most: HCCL waits for less than five hours
_DATED = 1e8  # seconds from which on a time has a date
_NAMED = 3  # files in a note
_ASKED = 100  # lines of errors that are compared with known failures


@dataclass(frozen=True)
class Diagnosis:
    """Rules made ready for many texts.   patterns: all that is looked for; likeness: for texts where nothing is found."""

    rules: tuple[Rule, ...]
    patterns: Patterns
    likeness: Likeness

    def of(self, sources: Iterable[Source], facts: Iterable[Fact] = ()) -> Verdict:
        """The verdict on sources.   facts: what else is known."""
        scanned = scan(self.patterns, sources)
        cut = _last_run(scanned.hits.get(ERROR, ()))
        old = _of_earlier_runs(scanned.hits.get(ERROR, ()), cut)
        if old:
            scanned.hits = {pattern: tuple(h for h in hits if h.evidence not in old) for pattern, hits in scanned.hits.items()}
        derived = derive.derive(scanned.hits)
        well = next((fact for fact in derived if fact.name == WENT_WELL), None)
        if well:
            scanned.hits = {pattern: hits for pattern, hits in scanned.hits.items() if pattern not in (ERROR, CODE)}
        mentions = _mentions(scanned)
        processes = Processes(scanned.hits)
        known = (*facts, *derived, *processes.facts())
        found = apply_rules(self.rules, {**scanned.hits, **_by_code(mentions)}, known, processes.echo)
        errors = _errors(scanned)
        if found.ordered and found.ordered[0].echo is False:  # whoever waited has an earlier clock
            errors.sort(key=lambda hit: processes.echo(hit) is True)
        codes = _decoded(mentions, [e for f in found.ordered[:1] for e in f.evidence])
        like = self._like(scanned, errors) if (errors or codes or found.ordered) and not _firm(found) else None
        if like:
            layer, confidence = like.rule.layer, "low"
        elif found.ordered:
            layer, confidence = found.ordered[0].rule.layer, _confidence(found.ordered[0], errors)
        else:
            layer, confidence = next((c.layer for d in codes for c in d.codes[:1] if c.layer), ""), "low" if codes else "none"
        return Verdict(
            findings=with_exceptions(found.ordered, (hit.evidence for hit in errors)),
            followed=found.followed,
            like=like,
            codes=codes,
            layer=layer,
            confidence=confidence,
            first_error=errors[0].evidence if errors else None,
            first_rank=errors[0].rank if errors else -1,
            sources=tuple(scanned.sources),
            lines=scanned.lines,
            notes=tuple(_notes(scanned, cut, old, well)),
        )

    def _like(self, scanned: Scanned, errors: list[Hit]) -> Finding | None:
        """The known failure that the text is most like, as a finding whose evidence is the line with most of its words."""
        lines = list(dict.fromkeys((*scanned.short, *(hit.evidence for hit in errors[:_ASKED]))))
        like = self.likeness.nearest([line.text for line in lines])
        if like is None:
            return None
        return Finding(like.rule, {}, (lines[like.line],), 1, Moment(), severity=PLAIN)


def _last_run(errors: tuple[Hit, ...]) -> float:
    """When the last run of programs began, by a gap of hours between errors that have a date; 0 where there is one run only.

    A date in what a command printed, or of a warning, begins no run.
    """
    times = sorted({hit.moment.seconds for hit in errors if hit.moment.seconds > _DATED and severity_of(hit.evidence.text) == ERROR_LINE})
    return next((later for earlier, later in zip(reversed(times[:-1]), reversed(times[1:])) if later - earlier > _GAP), 0.0)


def _of_earlier_runs(errors: tuple[Hit, ...], cut: float) -> frozenset[Evidence]:
    """Lines of errors before the last run began; not those of a rank with a file of its own without later ones: its clock may be of another time zone."""
    later = [hit for hit in errors if hit.moment.seconds >= cut]
    known = {hit.rank for hit in later} | {-1}
    files = {hit.evidence.source for hit in later}
    return frozenset(h.evidence for h in errors if _DATED < h.moment.seconds < cut and (h.rank in known or h.evidence.source in files))


def _notes(scanned: Scanned, cut: float, old: frozenset[Evidence], well: Fact | None) -> Iterator[Said]:
    """What was not read, or left aside, and why."""
    if well:
        yield Said(
            f"the run went well ({well.evidence[0]}); what only warns was left aside",
            f"运行正常（{well.evidence[0]}）；仅为警告的内容未计入",
        )
    if scanned.left:
        yield Said(
            f"{scanned.left:,} lines of many kinds that speak of no failure were not looked at",
            f"另有 {scanned.left:,} 行种类繁多、未提到故障，没有逐行查看",
        )
    if old:
        hours, last = _GAP // 3600, strftime("%Y-%m-%d %H:%M", gmtime(cut))
        yield Said(
            f"errors more than {hours} hours before {last} belong to earlier runs and were left aside: {_places(old)}",
            f"比 {last} 早 {hours} 小时以上的错误属于之前的运行，未计入：{_places(old)}",
        )


def _places(lines: Iterable[Evidence]) -> str:
    """The first lines, by file, that a note is about."""
    first: dict[str, Evidence] = {}
    for line in sorted(lines, key=lambda e: (e.source, e.line)):
        first.setdefault(line.source, line)
    named = [str(line) for line in list(first.values())[:_NAMED]]
    return ", ".join(named) + (f" and {len(first) - _NAMED} more files" if len(first) > _NAMED else "")


def _firm(found: Findings) -> bool:
    """Does any finding know more than a layer?"""
    return any(f.rule.cause != NOT_KNOWN for f in found.ordered)


def _confidence(first: Finding, errors: list[Hit]) -> str:
    """How sure a finding is by its tier; less so where it stands in warnings only and there are errors."""
    tier = TIERS.index(first.rule.tier)
    doubt = first.severity == WARNING and any(severity_of(hit.evidence.text) == ERROR_LINE for hit in errors)
    return CONFIDENCE[TIERS[min(tier + doubt, len(TIERS) - 1)]]


def ready() -> Diagnosis:
    """Our rules and those of JUMAR_RULES, made ready once."""
    return _ready(config("rules"))


@cache
def _ready(_folder: str) -> Diagnosis:
    return with_rules(load_rules())


def with_rules(rules: tuple[Rule, ...]) -> Diagnosis:
    """Rules made ready: what is looked for, in which lines."""
    kept = dict.fromkeys((p for rule in rules for p in rule.patterns()), KEPT_CONTEXT)
    own = [p for rule in rules for p in rule.match if p in kept]
    kept |= dict.fromkeys(own, KEPT) | dict.fromkeys((ERROR, CODE, *derive.PATTERNS, *ranks.PATTERNS), KEPT_OF_ALL)
    unless = dict.fromkeys(own, HARMLESS) | {ERROR: f"{QUIET}|{HARMLESS}", CODE: QUIET, ranks.RAISED: HARMLESS} | UNLESS
    context = {p for rule in rules for p in (*rule.also, *rule.without)}
    spoken = {p for p in own if p not in context and not _OF_FILES.search(p)}
    return Diagnosis(rules, Patterns(kept, ERROR, unless, spoken), Likeness(rules))


def diagnose(sources: Iterable[Source]) -> Verdict:
    """The verdict on logs."""
    return ready().of(sources)


def diagnose_text(text: str, environment: str = "", rules: Diagnosis | None = None) -> Verdict:
    """The verdict on a pasted text.   environment: what else is known of the machine, as people write it; rules: others than ours."""
    sources = [source_of_text("input", text)]
    if environment.strip():
        sources.append(source_of_text("environment", environment))
    return (rules or ready()).of(sources)


def _errors(scanned: Scanned) -> list[Hit]:
    """Lines that look like an error, the earliest first."""
    return sorted(scanned.hits.get(ERROR, ()), key=lambda h: h.moment)


def _mentions(scanned: Scanned) -> list[tuple[Hit, Mention]]:
    """Every code that a line states, with its line, in the order of time."""
    hits = sorted(scanned.hits.get(CODE, ()), key=lambda h: h.moment)
    return [(hit, mention) for hit in hits for mention in codes_in(hit.evidence.text)]


def _by_code(mentions: list[tuple[Hit, Mention]]) -> dict[str, tuple[Hit, ...]]:
    """The lines of each code, as rules ask for it: by number, by family and number, and by how it begins."""
    found: dict[str, dict[Evidence, Hit]] = {}
    for hit, mention in mentions:
        number = mention.code.number
        for name in (number, f"{mention.code.family}:{number}", f"{number[:2]}*", f"{number[:3]}*"):
            found.setdefault(f"{CODE_PREFIX}{name}", {}).setdefault(hit.evidence, hit)
    return {name: tuple(hits.values()) for name, hits in found.items()}


def _decoded(mentions: list[tuple[Hit, Mention]], first: list[Evidence]) -> tuple[Decoded, ...]:
    """Each code once: those of the verdict's own lines first, then in the order of time."""
    found: dict[str, Decoded] = {}
    for hit, mention in sorted(mentions, key=lambda pair: pair[0].evidence not in first):
        old = found.get(mention.text)
        if old is None:
            found[mention.text] = Decoded(mention.text, (mention.code,), hit.evidence)
        elif mention.code not in old.codes:
            found[mention.text] = replace(old, codes=(*old.codes, mention.code))
    return tuple(found.values())[:KEPT_CODES]
