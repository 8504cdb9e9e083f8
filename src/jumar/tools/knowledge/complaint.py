"""Does a line complain?  Words of a failure do not make a complaint where the line only informs, warns, or tells of progress in numbers.

In: a line.  Out: `complains`, `is_quiet`; `COMPLAINT`, `QUIET`, `BAD_NUMBERS`, which RE2 and re take alike, for those that look through a long log.
likeness.py compares only texts that complain; diagnose/outcome.py asks whether a run whose end is good had anything to complain of.
"""

from __future__ import annotations

import re

COMPLAINT = (
    r"\b(?:errors?|critical|fatal|exception|fail\w*|abort\w*|killed|denied|refused|time[ds]? ?out|timeout|can ?not|can't|couldn't|unable|invalid|mismatch\w*"
    r"|no such|no module|not (?:found|supported|enough|installed|match|work)\w*|missing|unsupported|undefined|segmentation|core dumped|out of memory|oom"
    r"|corrupt\w*|wrong|hangs?|hung|stuck|slow\w*|crash\w*|nan|inf|lost|illegal|bad|unexpected|disappear\w*|broken|drops?|worse|differ\w*|zeros?)\b"
    r"|(?-i:Error|Exception|Fault)\b|\bE[A-Z]?\d{4,5}\b|\bERR\d{5}\b|\bexit\w*\W{1,9}[1-9-]|\boverflow\b(?:\W*$|[.,;!?]| [abd-z])"  # not "overflow cond: False"
    r"|失败|错误|异常|报错|出错|超时|溢出|中断|卡|慢|不|没|无|为什么|怎么|问题|丢|崩|挂|死|低"
    # somebody asks, compares, or tells what should be otherwise
    r"|[?？]\s*$|\b(?:why|how (?:do|can|to|come)|what should|any ideas?|please help|is (?:that|this|it) (?:expected|normal)|nonsense|garbage|gibberish"
    r"|instead of|only \d|lower|idle|stays? at|keeps? (?:growing|rising|increasing)|leak\w*|should (?:be|have)|than (?:on|with|in|the|a|an|before)"
    r"|(?:on|with) (?:an? |the )?(?:GPU|V100|A100|H100|A800|H800|CPU|Nvidia)\b.{0,20}\b(?:it|is|was|gives?|works?|runs?))\b"
    r"|求助|请问|吗\s*$|如何|怎样|只有|仅有|对\S上|涨|泄漏|乱码|偏差|更差|很差"
)
QUIET = (  # what a line says it is; a step in numbers; counters; a step skipped while the scale is looked for
    r"(?-i:\[(?:W|WARN|WARNING|INFO|DEBUG|EVENT)\b|\[W\d{3,4} |\b(?:WARN|WARNING|INFO|DEBUG|EVENT)\b|Warning: |\bwarnings\.warn\()"
    r"|\b(?i:step|iter|iteration|epoch|batch)\w*\W{0,12}(?:\[ *)?\d+.*\b(?i:loss|time|lr|acc\w*|speed|throughput|ms|grad\w*)\b(?: is)?\W{0,12}\d"
    r"|\b(?i:0 errors?|0 failures?|no errors?|without errors?|0 failed|(?:errors?|failures?|failed|timeouts?|nan count|inf count|oom count|memory events): 0)\b"
    r"|(?i:overflow.{0,60}\bscale\D{1,24}\d{4,})"
)
BAD_NUMBERS = (  # in a line of progress; above six digits the loss scale is still being looked for
    r"(?:[:=\[,]|\bis)\s*-?(?:nan|inf)\b|overflow(?: cond)?\W{1,3}True.{0,12}scale\W{1,4}[01]?\d{1,3}\b|number of nan iterations: +[1-9]"
    r"|loss scale: \d{1,5}\.\d.*number of skipped iterations: +[1-9]"
)
_COMPLAINT = re.compile(COMPLAINT, re.IGNORECASE)
_QUIET = re.compile(QUIET)
_BAD_NUMBERS = re.compile(BAD_NUMBERS, re.IGNORECASE)


def complains(line: str) -> bool:
    """Is a line, or what a user says in it, a complaint?

    >>> complains("RuntimeError: out of memory"), complains("[W npu.cpp:1] Warning: not supported"), complains("step 5: loss 2.1, oom 0")
    (True, False, False)
    >>> complains("step 5: loss: nan, time 3 ms"), complains("训练到第 100 步卡死")
    (True, True)
    """
    return bool(_BAD_NUMBERS.search(line) or (_COMPLAINT.search(line) and not _QUIET.search(line)))


def is_quiet(line: str) -> bool:
    """Does a line only inform, warn, or tell of progress in numbers?"""
    return bool(_QUIET.search(line)) and not _BAD_NUMBERS.search(line)
