"""When and by whom a line was written: the time stamps and rank marks of every log that people paste.

In: one line of text, or a file's name.  Out: seconds, ranks.  Times are seconds since 1970 as the log's own clock shows them; dmesg's seconds since
boot are not comparable with them and give no time.
"""

from __future__ import annotations

import calendar
import re
from time import gmtime

_DATE = r"(?P<y>20\d\d)[-/](?P<mo>\d\d)[-/](?P<d>\d\d)"
_CLOCK = r"(?P<h>\d\d):(?P<mi>\d\d):(?P<s>\d\d)(?:[.,:](?P<f>\d{1,9}(?:\.\d{3}){0,2}))?"
_TIMES = tuple(
    re.compile(form)
    for form in (
        rf"{_DATE}[-T _]{_CLOCK}",  # plog and MindSpore 2025-03-26-17:01:02.816.428; ISO; logging 2025-03-26 17:01:02,816
        rf"\b[IWEF](?P<mo>\d\d?)(?P<d>\d\d)\s+{_CLOCK}",  # glog E0419 16:59:47.826516, torch [E419 16:59:47.826516123
        rf"\b(?P<mo>\d\d)-(?P<d>\d\d)\s+{_CLOCK}",  # vLLM 08-05 11:23:25
        rf"\b(?P<mon>Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)\s+(?P<d>\d\d?)\s+{_CLOCK}(?:\s+(?P<y>20\d\d))?",  # syslog, ctime
        rf"^\W*{_CLOCK}\s",  # 11:05:31.652
    )
)
_MONTHS = {m: i for i, m in enumerate(("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"), 1)}
_RANK = re.compile(
    r"\[rank[ :=]?(?P<a>\d{1,5})\]|\bRankID:(?P<b>\d{1,5})\b|\brank[ _]?id[=: \[]+(?P<c>\d{1,5})\b|\bWorker_TP(?P<d>\d{1,5})\b"
    r"|\[(?:\d+,)?(?P<e>\d{1,5})\]<std(?:err|out)>|worker rank=(?P<f>\d{1,5})\b|^\s*\[default(?P<g>\d{1,5})\]:|^\W{0,3}rank (?P<h>\d{1,5})\b ?:",
    re.IGNORECASE,
)
_FILE_RANK = re.compile(r"(?:worker|rank|device|local_rank)[_-]?(\d{1,4})(?!\d)", re.IGNORECASE)


def seconds_of(line: str, near: float = 0.0) -> float | None:
    """The time that a line states, in seconds.   near: a time of the same log; year and date that the line leaves out are taken from it.

    >>> seconds_of("EZ9999: [PID: 775] 2025-02-16-12:18:25.500.000 Cannot find") - seconds_of("2025-02-16 12:18:24")
    1.5
    """
    then = gmtime(near)
    for form in _TIMES:
        if found := form.search(line):
            part = found.groupdict()
            month = _MONTHS[part["mon"]] if part.get("mon") else int(part.get("mo") or then.tm_mon)
            year, day = int(part.get("y") or then.tm_year), int(part.get("d") or then.tm_mday)
            hour, minute, second = int(part["h"]), int(part["mi"]), int(part["s"])
            if not (1 <= month <= 12 and 1 <= day <= 31 and hour < 24 and minute < 60 and second < 61):
                continue
            fraction = (part.get("f") or "0").replace(".", "")
            return calendar.timegm((year, month, day, hour, minute, second)) + float(f"0.{fraction}")
    return None


def rank_of(line: str) -> int:
    """The rank that a line states, -1 where it states none.

    >>> rank_of("[rank3]:[ERROR] 2025-07-17-11:24:32 (PID:2000, Device:3) ERR01100"), rank_of("step 3")
    (3, -1)
    """
    found = _RANK.search(line)
    return int(next(g for g in found.groups() if g is not None)) if found else -1


def rank_of_file(name: str) -> int:
    """The rank that a file's name states, or the folder nearest to it: worker_3.log, rank_3/, device-3/.

    >>> rank_of_file("logs/worker_3.log"), rank_of_file("rank_table_8/rank1/run.log"), rank_of_file("run.log")
    (3, 1, -1)
    """
    found = _FILE_RANK.findall(name)
    return int(found[-1]) if found else -1
