"""Takes apart what a user pasted: prompts with commands, the output of each, tables of npu-smi between other text.

In: a text.  Out: `Section`s (command, output, exit code, first line) for foreign.py.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_USER = r"[\w.-]{1,64}@[\w.-]{1,64}"
_PROMPT = re.compile(
    r"^\s{0,8}(?:\([\w.+-]{1,64}\)\s{0,4})?"  # (conda environment)
    rf"(?:(?P<sure>\$|(?P<user>{_USER}(?::|\s)?[^\s$#>]{{0,200}}\s?[$#]|\[{_USER} [^\]\n]{{1,200}}\]\s?[$#]))|(?P<perhaps>[#>%]|\+))\s{{0,8}}"
    r"(?P<command>(?:sudo\s+)?(?P<word>[\w./-]+)(?:\s.*|$))"
)
_WORDS = """needs-glibcxx access npu-smi hccn_tool ls ll cat env printenv export set pip pip3 python python3 conda lsmod dmesg uname docker nerdctl crictl
kubectl ldd df free ifconfig ip ulimit strings id groups lspci ss netstat head tail which echo mount
grep egrep zgrep whoami rpm dpkg lscpu hostname date sysctl getconf gcc"""
LONGEST = 2000  # a longer line is no prompt
LARGEST = 4 << 20  # characters: a longer text is a log, nobody pastes that much
KNOWN = frozenset(_WORDS.split())
_INTO = re.compile(r"^(?:docker|nerdctl|kubectl)\s+exec\s+(?:-\S+\s+){0,6}[\w./-]{1,200}\s+(?:(?:-\S+\s+){0,6}--\s+)?")
_EXIT = re.compile(r"^\[exit (-?\d{1,6})\]$")


@dataclass(frozen=True)
class Section:
    """A command with what it printed; command is empty for text that stands before the first prompt."""

    command: str
    text: str
    first_line: int
    code: int | None = None


def sections(text: str) -> tuple[Section, ...]:
    """The text cut at its prompts.

    >>> [(s.command, s.text) for s in sections("$ uname -r\\n5.10.0\\n[exit 0]\\n[root@n1 ~]# id\\nuid=0(root)")]
    [('uname -r', '5.10.0'), ('id', 'uid=0(root)')]
    """
    if len(text) > LARGEST:
        return (Section("", text, 1),)
    found: list[Section] = []
    command, start, kept = "", 1, list[str]()
    code: int | None = None

    def close() -> None:
        body = "\n".join(kept).strip("\n") if command else "\n".join(kept)
        if command or body.strip():
            skipped = len(kept) - len("\n".join(kept).lstrip("\n").split("\n")) if command else 0
            found.append(Section(command, body, start + skipped, code))

    for number, line in enumerate(text.split("\n"), 1):
        begun = _command(line)
        if begun:
            close()
            command, start, kept, code = begun, number + 1, [], None
        elif command and (ended := _EXIT.match(line)):
            code = int(ended[1])
        else:
            kept.append(line)
    close()
    return tuple(found)


def _command(line: str) -> str:
    prompt = _PROMPT.match(line) if len(line) < LONGEST else None
    if not prompt:
        return ""
    command = _INTO.sub("", prompt["command"].removeprefix("sudo ").strip())
    first, *rest = command.split(maxsplit=1) or [""]
    word = first.rsplit("/", 1)[-1]
    command = " ".join([word, *rest])
    if word not in KNOWN:  # after user@host it is a command all the same: what stands above ended there
        return command if prompt["user"] and re.match(r"[a-z./_]", word) else ""
    if prompt["perhaps"] and not re.match(r"(npu-smi|hccn_tool|ls|cat|pip3?|uname|docker|lsmod|dmesg|env)\b", command):
        return ""
    return command


_TABLE = re.compile(r"^\+-{10,}.*\+\s*\n\|\s*npu-smi\s+\S+\s+Version:.*\n(?:[+|].*\n?)+", re.MULTILINE)


def tables(section: Section) -> tuple[Section, ...]:
    """A text without a command as the npu-smi tables in it and the rest between."""
    parts: list[Section] = []
    end = 0

    def add(command: str, text: str, offset: int) -> None:
        if text.strip():
            parts.append(Section(command, text, section.first_line + section.text.count("\n", 0, offset)))

    for table in _TABLE.finditer(section.text):
        add("", section.text[end : table.start()], end)
        add("npu-smi info", table[0], table.start())
        end = table.end()
    add("", section.text[end:], end)
    return tuple(parts)
