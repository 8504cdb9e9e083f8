"""Which processes failed by themselves, and which only waited for another until their timeout.

In: hits of the patterns below.  Out: `Processes`: `echo(hit)` for apply_rules, and a fact for the exception or the early end of a rank that
its peers waited for.  Clocks of machines differ by seconds and time zones by hours, so who waited counts before who was first: a process without
a single line of waiting, whose peers all wait, is the one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from jumar.tools.knowledge import Fact, Hit
from jumar.tools.knowledge.severity import WARNING, severity_of

RAISED = (
    r"\b(?P<error>KeyError|IndexError|TypeError|ValueError|AttributeError|NameError|UnboundLocalError|FileNotFoundError|ModuleNotFoundError"
    r"|ImportError|AssertionError|ZeroDivisionError|PermissionError|NotADirectoryError|EOFError|UnicodeDecodeError|\w*JSONDecodeError"
    r"|UnpicklingError|RecursionError|StopIteration|SyntaxError|IndentationError|SafetensorError|HFValidationError|pickle\.\w+Error)\b ?:? ?(?P<why>.{0,160})"
)
ENDED = (
    r"\b(training|train|fit|all epochs?|job|run) (is |has )?(done|finished|completed?|ended)\b|\b(exit(ing|ed)?) (normally|(with )?(code |status )?0\b)"
    r"|训练(已)?(完成|结束)"
)
WAITED = (
    r"\bEI000[26]\b|Getting socket times out|Notify register|\[TaskExecStage\]\[Timeout\]|HCCL_E_TIMEOUT|HCCL error in|hccl\w*.{0,60}error code is \d"
    r"|connect(ed|ion)? to (all )?(the )?peers?.{0,40}time|wait socket establish timeout|Watchdog caught|\bEI0015\b|hcom\w*.{0,40}fail|HCCL function error"
    r"|taskType\[Notify ?Wait\]|closed by (the )?peer|lost heartbeat|heartbeat.{0,30}\blost\b|remote socket is closed|\bERR02\d{3}\b|\bEI0013\b"
)
PATTERNS = (RAISED, ENDED, WAITED)
_APART = 5.0  # seconds before its first line of waiting that make a failure its own: what a timeout brings is written within them
Process = tuple[str, int]  # the source, where its lines state no rank; else "" and the rank


class Processes:
    """The processes of some logs and what they waited for."""

    def __init__(self, hits: Mapping[str, tuple[Hit, ...]]) -> None:
        self.hits = hits
        self.ranked = {hit.evidence.source for found in hits.values() for hit in found if hit.rank >= 0}
        self.several = len({hit.evidence.source for found in hits.values() for hit in found}) > 1
        self.waits: dict[Process, Hit] = {}  # the first line of waiting of each process
        for hit in sorted(hits.get(WAITED, ()), key=lambda h: h.moment):
            if process := self.of(hit):
                self.waits.setdefault(process, hit)

    def of(self, hit: Hit) -> Process | None:
        """Whose line it is; None where that is not known."""
        if hit.rank >= 0:
            return "", hit.rank
        source = hit.evidence.source
        return (source, -1) if self.several and source and source not in self.ranked else None

    def echo(self, hit: Hit) -> bool | None:
        """Whether a line was written by a process that only waited (True), or that failed by itself (False); None: not known."""
        process = self.of(hit)
        if process is None or not self.waits:
            return None
        wait = self.waits.get(process)
        if wait is None:
            return None if severity_of(hit.evidence.text) == WARNING else False
        early = 0 < hit.moment.seconds < wait.moment.seconds - _APART
        return not early

    def facts(self) -> list[Fact]:
        """What ended the process that the others waited for: an exception, or its normal end."""
        waited = self.hits.get(WAITED)
        if not waited:
            return []
        if found := self._first(self.hits.get(RAISED, ()), waited):
            return [_fact("raised-before-peers-waited", found)]
        ended = [hit for hit in self.hits.get(ENDED, ()) if (process := self.of(hit)) and process not in self.waits]
        alone = len({self.of(hit) for hit in ended}) == 1
        return [_fact("ended-before-peers-waited", ended[0])] if alone and len(self.waits) > 1 else []

    def _first(self, failures: Iterable[Hit], waited: tuple[Hit, ...]) -> Hit | None:
        """The first failure of a process that did not wait; where processes are not known, one before the first line of waiting."""
        ordered = sorted((hit for hit in failures if severity_of(hit.evidence.text) != WARNING), key=lambda h: h.moment)
        own = next((hit for hit in ordered if self.echo(hit) is False), None)
        if own is not None or not ordered:
            return own
        first, wait = ordered[0], min(waited, key=lambda h: h.moment)
        earlier = first.moment < wait.moment and not (first.rank == wait.rank and first.rank >= 0)
        return first if earlier and self.echo(first) is None else None


def _fact(name: str, hit: Hit) -> Fact:
    return Fact(name, {**hit.groups, "rank": f"rank {hit.rank}" if hit.rank >= 0 else ""}, (hit.evidence,), hit.moment, hit.rank)
