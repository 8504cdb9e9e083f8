"""What the kernel lets a container's processes do: the device cgroup's list, seccomp, privileges, user namespaces.

In: devices.list of cgroup v1, /proc/PID/status, /proc/PID/uid_map.  Out: `DeviceRule`s and whether they allow a node, `Confinement`.
Of cgroup v2 there is no list: it is an eBPF program, which no file shows; there only opening a node tells.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

SECCOMP = {"0": "off", "1": "strict", "2": "filter"}
ALL_IDS = 4294967295  # length of the one row of uid_map outside user namespaces
_RULE = re.compile(r"\s*([abc])\s+(\*|\d{1,5}):(\*|\d{1,8})\s+([rwm]{1,3})\s*$")
_ROW = re.compile(r"\s*(\d{1,10})\s+(\d{1,10})\s+(\d{1,10})\s*$")


@dataclass(frozen=True)
class DeviceRule:
    """A row of devices.list.   kind: a all, b blocks, c characters; major, minor: None for any; access: of r, w, m."""

    kind: str
    major: int | None
    minor: int | None
    access: str

    def allows(self, major: int, minor: int, access: str) -> bool:
        return self.kind in "ac" and self.major in (None, major) and self.minor in (None, minor) and set(access) <= set(self.access)


def parse_device_rules(text: str) -> tuple[DeviceRule, ...]:
    """The rows of devices.list: what is allowed; all else is not.

    >>> rules = parse_device_rules("c 1:3 rwm\\nc 136:* rwm")
    >>> device_allowed(rules, 136, 7), device_allowed(rules, 236, 0), device_allowed(parse_device_rules("a *:* rwm"), 236, 0)
    (True, False, True)
    """
    rows = (row for line in text.splitlines() if (row := _RULE.match(line)))
    return tuple(DeviceRule(row[1], _number(row[2]), _number(row[3]), row[4]) for row in rows)


def _number(text: str) -> int | None:
    return None if text == "*" else int(text)


def device_allowed(rules: Iterable[DeviceRule], major: int, minor: int, access: str = "rw") -> bool:
    """Whether some row allows to open that character device so."""
    return any(rule.allows(major, minor, access) for rule in rules)


@dataclass(frozen=True)
class Confinement:
    """seccomp: off, strict, filter, empty where it is not told; capabilities: effective ones as bits."""

    seccomp: str = ""
    no_new_privileges: bool | None = None
    capabilities: int | None = None


def parse_confinement(text: str) -> Confinement:
    """What /proc/PID/status tells.

    >>> parse_confinement("CapEff:\\t00000000a80425fb\\nNoNewPrivs:\\t1\\nSeccomp:\\t2\\n")
    Confinement(seccomp='filter', no_new_privileges=True, capabilities=2818844155)
    """
    found = dict(re.findall(r"(?m)^(CapEff|NoNewPrivs|Seccomp):[ \t]+([0-9a-fA-F]{1,16})[ \t]*$", text))
    return Confinement(
        SECCOMP.get(found.get("Seccomp", ""), ""),
        found["NoNewPrivs"] == "1" if "NoNewPrivs" in found else None,
        int(found["CapEff"], 16) if "CapEff" in found else None,
    )


def root_outside(text: str) -> int | None:
    """The user that root of this namespace is outside of it, by uid_map; None where the text is none, or root is not mapped.

    >>> root_outside("         0          0 4294967295"), root_outside("0 100000 65536"), root_outside("0 1000 1\\n1 100000 65536")
    (0, 100000, 1000)
    """
    for line in text.splitlines():
        row = _ROW.match(line)
        if row and int(row[1]) == 0:
            return int(row[2])
    return None


def in_user_namespace(text: str) -> bool:
    """Whether uid_map is that of a user namespace: it does not map all ids to themselves."""
    rows = [tuple(map(int, row.groups())) for line in text.splitlines() if (row := _ROW.match(line))]
    return bool(rows) and rows != [(0, 0, ALL_IDS)]
