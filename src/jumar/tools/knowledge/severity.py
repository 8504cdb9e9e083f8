"""How serious a line takes itself: an error, a warning or less, or neither; rules on the same tier are ordered by it.

In: a line.  Out: `severity_of`.  A known cause that only a warning speaks of is often there on healthy machines, too, while the error is another's.
"""

from __future__ import annotations

import re

ERROR, PLAIN, WARNING = range(3)  # the most serious first
_ERROR = re.compile(
    r"\[(ERROR|CRITICAL|FATAL|E)\b|\b(ERROR|CRITICAL|FATAL)\b|\b\w*(Error|Exception)\b\s*[:(\[]"
    r"|^\W*(\[rank\d+\]:?\s*)?E[A-Z0-9]\d{4}:|^E\d{4} \d\d:|\b[Ss]egmentation fault|\bcore dumped|\bKilled\b|error code is|Fatal Python"
    # exceptions of other names (BackendCompilerFailed, ReadTimeout; not the setting ReadTimeout: 30), and those without a message
    r"|\b[A-Z][a-z]\w*(Failed|Timeout|Expired|Interrupt|Refused|Unsupported)\b: *(?! *\d+(\.\d+)? ?m?s?$)|\b(exc|exceptions)\.[A-Z]\w+:"
    r"|^(\W*\[rank\d+\]:?)?\s*([A-Za-z_]\w*\.)*[A-Z]\w*(Error|Exception|Failed|Interrupt)\s*$"
)
_WARNING = re.compile(r"\[W(ARN|ARNING|arn)?\b|\bWARN(ING)?\b|Warning:|\[(INFO|DEBUG|EVENT)\b|\b(INFO|DEBUG)\b")


def severity_of(line: str) -> int:
    """ERROR, PLAIN or WARNING (which stands for information, too).   A warning may quote an error: it stays a warning.

    >>> severity_of("RuntimeError: out of memory"), severity_of("NPU out of memory"), severity_of("[W npu.cpp] Warning: error code is 507018")
    (0, 1, 2)
    """
    if _WARNING.search(line):
        return WARNING
    return ERROR if _ERROR.search(line) else PLAIN
