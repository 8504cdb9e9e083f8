"""Device nodes as `ls` lists them, with who may use them, and the ids that the variables of visible devices name.

In: the text of `ls -l /dev/davinci*` or of a bare `ls`.  Out: `DeviceListing`.  Facts: hicann/driver (names and rights of the nodes).
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from jumar.device.ascend.complaint import plain_lines


@dataclass(frozen=True)
class DeviceNode:
    """A row of `ls -l /dev/...`.   mode: its nine letters, or empty where only names were listed; major, minor: its numbers."""

    path: str
    mode: str = ""
    owner: str = ""
    group: str = ""
    major: int | None = None
    minor: int | None = None
    line: int = 0

    @property
    def device_id(self) -> int | None:
        """The id of a chip's node, None for other nodes."""
        found = re.fullmatch(r".*/davinci([0-9]{1,3})", self.path)
        return int(found[1]) if found else None

    def open_to(self, user: str, groups: tuple[str, ...] = ()) -> bool | None:
        """Whether that user may read and write it; None where the listing does not tell."""
        if len(self.mode) != 9:
            return None
        if user == "root":
            return True
        start = 0 if user == self.owner else 3 if self.group in groups else 6
        return self.mode[start : start + 2] == "rw"


@dataclass(frozen=True)
class DeviceListing:
    """All nodes of a listing.   absent: patterns that `ls` found nothing for; refused: paths that it may not read."""

    nodes: tuple[DeviceNode, ...] = ()
    absent: tuple[str, ...] = ()
    refused: tuple[str, ...] = ()

    @property
    def device_ids(self) -> tuple[int, ...]:
        return tuple(sorted({one.device_id for one in self.nodes if one.device_id is not None}))


_NODE = re.compile(
    r"[cb]([rwxsStT-]{9})[.+@]?\s{1,10}[0-9]{1,6}\s{1,10}(\S{1,60})\s{1,10}(\S{1,60})\s{1,10}([0-9]{1,8}),\s{0,10}([0-9]{1,8})\s.{1,60}?(/dev/\S{1,80}|\S{1,80})$"
)
_ABSENT = re.compile(
    r"ls:.{0,40}?(?:access|访问)\s*['‘\"]?([^'’\":]{1,120})['’\"]?\s*[:：]\s*(No such file|没有那个文件|Permission denied|权限不够|Operation not permitted)"
)
_PATH = re.compile(r"/dev/(?:davinci|devmm|asdrv|hisi_hdc|dvpp|upgrade|ts_aisle|svm)\w{0,40}")
_NAME = re.compile(r"(?:davinci(?:[0-9]{1,3}|_manager\w{0,20})|devmm_svm\w{0,10}|asdrv_svm|hisi_hdc|dvpp_cmdlist)")


def parse_devices(text: str) -> DeviceListing:
    """The nodes of `ls /dev/davinci*`, with their rights where -l was given.

    >>> listing = parse_devices("crw-rw---- 1 HwHiAiUser HwHiAiUser 236, 0 Nov 20 10:00 /dev/davinci0\\nls: cannot access '/dev/hisi_hdc': No such file")
    >>> listing.device_ids, listing.nodes[0].open_to("me"), listing.nodes[0].open_to("me", ("HwHiAiUser",)), listing.absent
    ((0,), False, True, ('/dev/hisi_hdc',))
    """
    nodes: dict[str, DeviceNode] = {}
    absent: list[str] = []
    refused: list[str] = []
    for at, line in enumerate(plain_lines(text), 1):
        missing = _ABSENT.search(line) if "ls:" in line else None
        if missing:
            (absent if missing[2].startswith(("No", "没")) else refused).append(missing[1].strip())
            continue
        row = _NODE.search(line)
        if row:
            path = row[6] if row[6].startswith("/") else f"/dev/{row[6]}"
            nodes[path] = DeviceNode(path, row[1], row[2], row[3], int(row[4]), int(row[5]), at)
            continue
        words = line.split()
        if "ls" in words or len(words) > 200:
            continue
        for word in words if all(_PATH.fullmatch(word) or _NAME.fullmatch(word) for word in words) else ():
            path = word if word.startswith("/") else f"/dev/{word}"
            nodes.setdefault(path, DeviceNode(path, line=at))
    return DeviceListing(tuple(nodes.values()), tuple(absent), tuple(refused))


def visible_ids(text: str) -> tuple[int, ...] | None:
    """The ids that ASCEND_VISIBLE_DEVICES or ASCEND_RT_VISIBLE_DEVICES names, None where the text is no list of ids.

    >>> visible_ids("0-2,5"), visible_ids("Ascend910-3"), visible_ids(""), visible_ids("all")
    ((0, 1, 2, 5), (3,), (), None)
    """
    found: list[int] = []
    for part in filter(None, (word.strip() for word in text.split(","))):
        one = re.fullmatch(r"(?:[A-Za-z]{1,12}[0-9A-Za-z]{0,8}-)?([0-9]{1,3})", part)
        span = re.fullmatch(r"([0-9]{1,3})-([0-9]{1,3})", part)
        if span and int(span[1]) <= int(span[2]):
            found += range(int(span[1]), int(span[2]) + 1)
        elif one:
            found.append(int(one[1]))
        else:
            return None
    return tuple(found)
