"""Did a run go well?  It reached its end, or went on for long, and no line complains but those that only warn.

In: hits of `PATTERNS`.  Out: the fact `went-well`.  Warnings that every healthy run prints mean something only where something failed, so none of our
rules is found in such a text but those that ask for facts of the machine.
"""

from __future__ import annotations

from collections.abc import Mapping

from jumar.tools.diagnose.harmless import HARMLESS
from jumar.tools.knowledge import Fact, Hit, compiled
from jumar.tools.knowledge.complaint import COMPLAINT, complains

WENT_WELL = "went-well"
WELL = (
    r"\b(training|train|finetun\w*|pre-?train\w*|inference|evaluation|eval|job|run|task|test|conversion|export|build|profiling|all steps)\w* (job |loop |run )?"
    r"(is |was |has |have )?(been )?(done|finished|completed?|ended|succeeded|success\w*)\b|\btrain_runtime\b"
    r"|\b(finished|completed|exited|ended|stopped) (successfully|normally)\b|\b(exit|exits) normally\b|\bexit(ed|ing)?( with)?( code| status)?\W{1,3}0\b"
    r"|\b(checkpoint|model|weights?|ckpt|adapter)s? (is |was |were |has been |have been )?(successfully )?saved\b|\bsuccessfully saved\b"
    r"|\b(saved?|saving) (the )?(final )?(checkpoint|model|ckpt|weights)|\bHTTP/[12](\.\d)?\W{1,2}2\d\d\b|Application startup complete"
    r"|Daemon start success|\bATC run success|\bregister\w* .{0,40}\bsuccess|check result: success|\b\d+ passed\b|\bPASSED\b.{0,20}100%"
    r"|训练(结束|完成|成功)|保存(成功|完成)|已保存|运行(成功|结束)|转换成功"
)
PROGRESS = r"\b(step|iter|iteration|epoch|batch)\w*\W{0,12}(\[ *)?\d+.*\bloss\b( is)?\W{0,12}\d"
PATTERNS = (WELL, PROGRESS, COMPLAINT)
_LONG = 10  # lines of progress that tell that a run went on
_MANY = 400  # complaints of which the last ones may not have been kept
_SKIPPED = compiled(
    r"overflow( cond)?\W{1,3}True|overflow.{0,30}skip|skip.{0,30}overflow|skipped iterations: +[1-9]"
)  # now and then is well
_AT_EXIT = compiled(
    r"main process disappeared|\bTBE Subprocess\[|Exception ignored in|resource_tracker|leaked \w+ objects"
)  # said by what the run leaves behind
_HARMLESS = compiled(HARMLESS)


def went_well(hits: Mapping[str, tuple[Hit, ...]]) -> list[Fact]:
    """The fact that a run went well, with the line that says so."""
    good, on = hits.get(WELL, ()), hits.get(PROGRESS, ())
    if not good and len(on) < _LONG:
        return []
    said = [hit.evidence.text for hit in hits.get(COMPLAINT, ())]
    skipped = sum(bool(_SKIPPED.search(text.encode("utf-8", "replace"))) for text in said)
    if len(said) >= _MANY or skipped > max(3, len(on) // 10) or any(_complains(text) for text in said):
        return []
    last = max(good or on, key=lambda hit: hit.moment)
    return [Fact(WENT_WELL, {}, (last.evidence,), last.moment)]


def _complains(text: str) -> bool:
    line = text.encode("utf-8", "replace")
    return complains(text) and not _HARMLESS.search(line) and not _AT_EXIT.search(line)
