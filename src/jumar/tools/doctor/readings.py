"""Reads the listings that every system prints: ls, env, pip, conda, df, ip, ifconfig.

In: a `Text`.  Out: entries, variables, packages, each with its line.  Lines that do not fit are passed over.
"""

from __future__ import annotations

import re

from jumar.tools.doctor.machine import Entry, Listing, Seen, Text, normal
from jumar.tools.knowledge.facts import Evidence

_LONG = re.compile(
    r"^\s*(?P<mode>[bcdlps-][rwxsStT-]{9})[.+@]?\s+\d+\s+(?P<owner>\S+)\s+(?P<group>\S+)\s+(?:(?P<major>\d+),\s*(?P<minor>\d+)|[\d.]+[KMGT]?)\s+"
    r"(?:\w{3}\s+\d+\s+[\d:]+|\d{4}-\d\d-\d\d \d\d:\d\d\S*(?: [+-]\d{4})?|\d+月\s+\d+\s+[\d:]+)\s+(?P<name>.+?)(?: -> (?P<target>.+?))?\s*$"
)
_ABSENT = re.compile(r"ls: (?:cannot access|无法访问) ?['‘\"]?(?P<path>/[^'’\":\s]+)['’\"]?\s*[:：]\s*(?:No such file|没有那个文件)")


def listings(text: Text, command: str = "") -> dict[str, Listing]:
    """Folders that `ls` listed.   command: with the paths that were asked for; without it, the headings and full paths tell."""
    whole = not re.search(r"[|&;]", command)  # `ls /dev | grep davinci` says nothing of other names
    asked = [word for word in re.split(r"[|&;>]", command)[0].split()[1:] if not word.startswith("-")]
    folders = [word.rstrip("/") for word in asked if word.startswith("/") and "*" not in word]
    heading = folders[0] if len(folders) == 1 else ""
    found: dict[str, list[Entry]] = {}
    patterns: dict[str, list[str]] = {}
    places: dict[str, Evidence] = {}
    full = False
    for line, place in text.lines():
        absent = _ABSENT.search(line)
        if absent:
            folder, _, name = absent["path"].rstrip("/").rpartition("/")
            found.setdefault(folder, [])
            patterns.setdefault(folder, []).append(name)
            places.setdefault(folder, place)
            continue
        title = re.match(r"^(/[^\s:]*):$", line)
        if title:
            heading, full = title[1].rstrip("/"), True
            found.setdefault(heading, [])
            patterns.setdefault(heading, []).append("*")
            continue
        for entry in _entries(line, place, bool(command)):
            name, folder = entry.name, heading
            if name.startswith("/"):
                folder, _, name = name.rstrip("/").rpartition("/")
            if folder and name not in (".", ".."):
                found.setdefault(folder, []).append(Entry(name, entry.mode, entry.owner, entry.group, entry.target, place, entry.device))
    for folder in folders if whole else ():
        if folder in found or (len(folders) == 1 and not full and not found):
            found.setdefault(folder, [])
            patterns.setdefault(folder, []).append("*")
    for word in asked:
        if whole and "*" in word and word.startswith("/"):
            folder, _, name = word.rpartition("/")
            patterns.setdefault(folder, []).append(name)
            found.setdefault(folder, [])
    return {
        folder: Listing(text.source, tuple(entries), tuple(patterns.get(folder, ())), places.get(folder, Evidence("", 0, "")))
        for folder, entries in found.items()
    }


def _entries(line: str, place: Evidence, plain: bool) -> list[Entry]:
    long = _LONG.match(line)
    if long:
        device = (int(long["major"][:9]), int(long["minor"][:9])) if long["major"] else None
        return [Entry(long["name"], long["mode"], long["owner"], long["group"], long["target"] or "", place, device)]
    if re.match(r"^\s*(total \d+|总用量|ls:|$)", line):
        return []
    words = line.split()
    if plain or (words and all(w.startswith("/") for w in words)):
        return [Entry(word.rstrip("*@"), evidence=place) for word in words]
    return []


def environment(text: Text) -> dict[str, Seen]:
    """`NAME=value`, `export NAME=value`, `declare -x NAME="value"`; the last of a name wins.

    >>> environment(Text("env", 'declare -x A="1"\\nB=2'))["A"].value
    '1'
    """
    found: dict[str, Seen] = {}
    for line, place in text.lines(32_768):
        pair = re.match(r"^\s{0,8}(?:export\s{1,4}|declare\s{1,4}-\w{1,4}\s{1,4})?([A-Za-z_]\w{0,120})=(.*)$", line)
        if pair:
            value = pair[2].strip()
            quoted = len(value) > 1 and value[0] == value[-1] and value[0] in "'\""
            found[pair[1]] = Seen(value[1:-1] if quoted else value, place)
    return found


_ROWS = (  # of `pip list`, `pip freeze`, `conda list`, `pip list -v`
    re.compile(r"^(?P<name>[A-Za-z][\w.-]*)==(?P<version>[\w.+!-]+)\s*(?:;.*)?$"),
    re.compile(r"^(?P<name>[A-Za-z][\w.-]*) @ \S*?-(?P<version>\d[\w.+]*)-\S+\.whl(?:#\S*)?$"),
    re.compile(r"^\s*(?P<name>[A-Za-z][\w.-]*)\s+(?P<version>\d[\w.+!-]*)(?:\s+\S.*)?$"),
    re.compile(r"^\|?\s*(?P<name>[A-Za-z][\w.-]*)\s*\|\s*(?P<version>\d[\w.+!-]*)\s*\|?$"),
    re.compile(r"^\s*- (?P<name>[A-Za-z][\w.-]*)={1,2}(?P<version>\d[\w.+!-]*)(?:=\S+)?\s*$"),
    re.compile(r"^\[(?:pip3?|conda)\] (?P<name>[A-Za-z][\w.-]*)(?:==|\s+)(?P<version>\d[\w.+!-]*)"),
)


def packages(text: Text) -> dict[str, Seen]:
    """Packages with versions as pip and conda list them.

    >>> packages(Text("pip", "Package   Version\\n--------- -------\\ntorch_npu 2.5.1"))["torch-npu"].value
    '2.5.1'
    """
    found: dict[str, Seen] = {}
    for line, place in text.lines():
        row = next((r for r in (pattern.match(line) for pattern in _ROWS) if r), None)
        if row:
            found.setdefault(normal(row["name"]), Seen(row["version"], place))
    return found


def rooms(text: Text) -> list[tuple[str, int, int, Evidence]]:
    """Rows of `df`: mount point, bytes in all, bytes that are free."""
    found = []
    for line, place in text.lines():
        row = re.match(
            r"^\S+\s+(\d+(?:\.\d+)?[KMGTP]?i?)\s+(\d+(?:\.\d+)?[KMGTP]?i?)\s+(-?\d+(?:\.\d+)?[KMGTP]?i?)\s+(\d+)%\s+(/\S*)$", line.strip()
        )
        if row:
            found.append((row[5], nbytes(row[1]), nbytes(row[3]), place))
    return found


def nbytes(text: str) -> int:
    """A size as `df` and `free` print it: plain numbers are KiB.

    >>> nbytes("64M"), nbytes("2")
    (67108864, 2048)
    """
    number = re.match(r"(-?\d{1,18}(?:\.\d{1,6})?)([KMGTP]?)", text)
    return int(float(number[1]) * 1024 ** ("KMGTP".index(number[2]) + 1 if number[2] else 1)) if number else 0


def cards(text: Text) -> dict[str, tuple[int, str, Evidence]]:
    """Network cards of `ip a` or `ifconfig`: name -> MTU, state (UP, DOWN or empty)."""
    found: dict[str, tuple[int, str, Evidence]] = {}
    for line, place in text.lines():
        ip = re.match(r"^\d+:\s+([^:@\s]+)(?:@\S+)?:\s+<([^>]*)>.*?\bmtu\s+(\d+)(?:.*?\bstate\s+(\w+))?", line)
        old = re.match(r"^([\w.@-]+):\s+flags=\d+<([^>]*)>\s+mtu\s+(\d+)", line)
        if ip:
            found[ip[1]] = (int(ip[3]), ip[4] or ("UP" if "UP" in ip[2].split(",") else ""), place)
        elif old:
            found[old[1]] = (int(old[3]), "UP" if "UP" in old[2].split(",") else "DOWN", place)
    return found


def addresses(text: Text) -> dict[str, str]:
    """IPv4 addresses of `ip a`, `ip -o addr` or `ifconfig`, each with its network card.

    >>> addresses(Text("ip", "2: eth0    inet 10.1.1.8/24 scope global eth0\\n3: ib0: <UP> mtu 4092\\n    inet 10.2.1.8/16 scope global ib0"))
    {'10.1.1.8': 'eth0', '10.2.1.8': 'ib0'}
    """
    found: dict[str, str] = {}
    card = ""
    for line, _ in text.lines():
        begun = re.match(r"^(?:\d+:\s+([^:@\s]+)|([\w.-]+(?::\d+)?): flags=)", line)
        if begun:
            card = begun[1] or begun[2].partition(":")[0]
        address = re.search(r"\binet (?:addr:)?(\d+(?:\.\d+){3})", line)
        if address and card:
            found.setdefault(address[1], card)
    return found
