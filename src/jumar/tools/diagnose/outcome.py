"""Did a run go well?  It reached its end, or went on for long, and no line complains but those that only warn.

In: hits of `PATTERNS`.  Out: the fact `went-well`.  Warnings that every healthy run prints mean something only where something failed, so none of our
rules is found in such a text but those that ask for facts of the machine.
"""

from __future__ import annotations

from collections.abc import Mapping

from jumar.tools.diagnose.harmless import HARMLESS
from jumar.tools.knowledge import Fact, Hit
from jumar.tools.knowledge.complaint import BAD_NUMBERS, COMPLAINT, QUIET

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
SKIPPED = r"overflow( cond)?\W{1,3}True|overflow.{0,30}skip|skip.{0,30}overflow|skipped iterations: +[1-9]"  # now and then is well
AT_EXIT = r"main process disappeared|\bTBE Subprocess\[|Exception ignored in|resource_tracker|leaked \w+ objects"  # said by what a run leaves behind
PATTERNS = (WELL, PROGRESS, COMPLAINT, BAD_NUMBERS, SKIPPED)
UNLESS = {COMPLAINT: f"{QUIET}|{HARMLESS}|{AT_EXIT}"}  # lines with words of a complaint that are none
_LONG = 10  # lines of progress that tell that a run went on


def went_well(hits: Mapping[str, tuple[Hit, ...]]) -> list[Fact]:
    """The fact that a run went well, with the line that says so.   hits: of PATTERNS, but for lines that UNLESS finds."""
    good, on = hits.get(WELL, ()), hits.get(PROGRESS, ())
    if hits.get(COMPLAINT) or hits.get(BAD_NUMBERS) or len(hits.get(SKIPPED, ())) > max(3, len(on) // 10):
        return []
    if not good and len(on) < _LONG:
        return []
    last = max(good or on, key=lambda hit: hit.moment)
    return [Fact(WENT_WELL, {}, (last.evidence,), last.moment)]
