"""Where texts name users and hosts, and which names are words of the field, too.

In: the rules, for their words.  Out: `PLACES`, read by neutralise.py.
"""

from __future__ import annotations

import re
from functools import cache
from typing import Any

import re2

from jumar.tools.knowledge import load_rules

_ACCOUNTS = """root HwHiAiUser HwDmUser HwBaseUser ma-user mindx hwMindX nobody daemon bin sys sudo video render users localhost localhost.localdomain
git shared public none null unknown self"""
KEPT = frozenset(_ACCOUNTS.split())  # accounts that every machine of the kind has, and names of no machine
_WORDS = "ubuntu debian centos euler openeuler kylin user admin test work data model server worker master npu gpu ai dev lab"
_NAME = r"[A-Za-z_][A-Za-z0-9_.-]{0,63}"
_HOST = r"[A-Za-z0-9][A-Za-z0-9_.-]{0,127}"
PLACES: tuple[tuple[str, Any], ...] = tuple(  # where a name of a kind stands: group 1, and 2 where the second kind is named
    (kind, re2.compile(pattern))
    for kind, pattern in (
        ("user host", rf"({_NAME})@({_HOST})(?::\s?|\s)[^\s\]#$]{{0,200}}\]?\s?[#$](?:\s|$)"),
        ("user", r"(?:/home|/Users|\\Users\\|[A-Z]:/Users)[/\\]*([^\s/\\:;,\"'<>|*()\[\]{}=]+)"),
        ("user", rf"\buid=\d+\(({_NAME})\)"),
        ("user", rf"\b(?:USER|LOGNAME|USERNAME|SUDO_USER|NB_USER)[\"']?\s*[=:]\s*[\"']?({_NAME})"),
        ("user", rf"(?i)\b(?:logged in as|login name|user ?name)[\"']?\s*[=:]\s*[\"']?({_NAME})"),
        ("user", rf"(?m)^\s*[bcdlps-][rwxsStT-]{{9}}[.+@]?\s+\d+\s+({_NAME})\s"),
        ("host", rf"(?m)^Linux ({_HOST}) \d+\.\d+\.\d"),
        ("host", rf"\b(?:HOSTNAME|HOST|NODE_NAME|MY_NODE_NAME|SLURMD_NODENAME|NODENAME)[\"']?\s*[=:]\s*[\"']?({_HOST})"),
        ("host", rf"(?i)\b(?:host_?name|node_?name)[\"']?\s*(?:[=:]|is)\s*[\"']?({_HOST})"),
        ("host", rf"(?m)^(?:[A-Z][a-z]{{2}}\s+\d{{1,2}}|\d{{4}}-\d\d-\d\d)[ T]\d\d:\d\d:\d\d\S*\s+({_HOST})\s+(?:kernel|systemd|dockerd|kubelet)\b"),
        ("host", rf"(?m)^\s*(?:\d{{1,3}}\.){{3}}\d{{1,3}}[ \t]+({_HOST})[ \t]*$"),
        ("host", rf"(?m)^({_HOST})[ \t]+slots=\d"),
        ("host", rf"(?m)^({_HOST}):/\S* /\S* (?:nfs|ceph|lustre|cifs|fuse)"),
        ("host", rf"\b({_HOST}\.(?:corp|internal|intranet|lan|local))[:/]\d*"),
        ("host", r"\b(ip-\d{1,3}-\d{1,3}-\d{1,3}-\d{1,3})\b"),
    )
)  # fmt: skip
SHELL_COMMANDS = re2.compile(r"(?m)^\$ hostname(?: -f)?\n(\S+)$")


@cache
def _vocabulary() -> frozenset[str]:
    """Words of the field: a user called `data` must not change every line that speaks of data."""
    words: set[str] = set(_WORDS.split())
    for rule in load_rules():
        for text in (*rule.match, *rule.also, *rule.without, *rule.examples, *(t.what for t in rule.texts.values())):
            words.update(re.findall(r"[a-z0-9]{2,}", text.lower()))
    return frozenset(words)


def common(name: str) -> bool:
    """Is a name also a word of the field?  Then it is replaced only where it stands as a name."""
    return len(name) < 3 or name.lower() in _vocabulary()
