"""A machine as it was seen: files, listings, outputs of commands, environment, packages; each with the place where it stood.

In: gather.py (this machine) and foreign.py (files copied off another one).  Out: `Machine`, read by checks/ and layout.py.
Nothing is looked up here: a value is a value, whichever way it came.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path

from jumar.base import Said, reason
from jumar.tools.knowledge.facts import Evidence

WIDEST = 300  # characters of a line that is quoted
LONGEST = 2000  # characters of a line that patterns look at
NOWHERE = Evidence("", 0, "")


@dataclass(frozen=True)
class Text:
    """A text and where it was read.   first_line: of the file, where the text is a part of one."""

    source: str
    text: str
    first_line: int = 1

    def at(self, offset: int) -> Evidence:
        """The line around `offset`, as a quotable place."""
        start = self.text.rfind("\n", 0, offset) + 1
        end = self.text.find("\n", offset)
        line = self.text[start : end if end >= 0 else len(self.text)]
        return Evidence(self.source, self.first_line + self.text.count("\n", 0, offset), line.strip()[:WIDEST])

    def find(self, pattern: str) -> Evidence | None:
        """The first line that the pattern finds."""
        look = re.compile(pattern, re.IGNORECASE)
        return next((place for line, place in self.lines() if look.search(line)), None)

    def lines(self, most: int = LONGEST) -> Iterator[tuple[str, Evidence]]:
        """Each line with its place; of a line at most so many characters, so that no pattern takes long on a file that is one line."""
        for number, line in enumerate(self.text.split("\n"), self.first_line):
            yield line[:most], Evidence(self.source, number, line[: 2 * WIDEST].strip()[:WIDEST])

    def keys(self) -> dict[str, Seen]:
        """`name=value` and `name : value` lines, the first of each name; quotes are taken off.

        >>> Text("f", 'Version=7.7\\nrequired="a, b"').keys()["required"].value
        'a, b'
        """
        found: dict[str, Seen] = {}
        for line, place in self.lines():
            pair = re.match(r"\s{0,80}([A-Za-z_][\w .()%/-]{0,80}?) {0,80}[=:](.*)$", line)
            if pair:
                found.setdefault(pair[1].strip(), Seen(pair[2].strip().strip("\"'"), place))
        return found


@dataclass(frozen=True)
class Seen:
    """A value and the line that states it."""

    value: str
    evidence: Evidence


@dataclass(frozen=True)
class Entry:
    """One name of a folder.   mode: as ls prints it (`crw-rw----`), empty where it was not told; device: major and minor number of a node."""

    name: str
    mode: str = ""
    owner: str = ""
    group: str = ""
    target: str = ""
    evidence: Evidence = NOWHERE
    device: tuple[int, int] | None = None


@dataclass(frozen=True)
class Listing:
    """What a folder holds.   asked: patterns of the names that were listed; a name that fits one and is not here is missing."""

    source: str
    entries: tuple[Entry, ...]
    asked: tuple[str, ...] = ("*",)
    evidence: Evidence = NOWHERE  # the line that says that nothing was found, or the heading

    def names(self) -> tuple[str, ...]:
        return tuple(e.name for e in self.entries)

    def entry(self, name: str) -> Entry | None:
        return next((e for e in self.entries if e.name == name), None)

    def lacks(self, name: str) -> bool:
        """The name was looked for and is not there."""
        return name not in self.names() and any(fnmatchcase(name, pattern) for pattern in self.asked)

    def joined(self, other: Listing) -> Listing:
        """Both lists as one: of two entries of a name the one that tells more."""
        both = {e.name: e for e in self.entries}
        both.update({e.name: e for e in other.entries if e.mode or e.name not in both})
        place = self.evidence if self.evidence.text else other.evidence
        return Listing(self.source, tuple(both.values()), tuple(dict.fromkeys(self.asked + other.asked)), place)


@dataclass(frozen=True)
class Output:
    """What a command printed.   code: its exit status, None where it was not told."""

    command: str
    text: Text
    code: int | None = None


@dataclass(frozen=True)
class Identity:
    """Whose machine it is, as far as it was told."""

    os: Seen | None = None  # "Ubuntu 22.04"
    kernel: Seen | None = None  # "5.10.0-60.18.0.50"
    arch: Seen | None = None  # "aarch64"
    glibc: Seen | None = None
    glibcxx: Seen | None = None  # the newest GLIBCXX_ of libstdc++.so
    python: Seen | None = None
    user: Seen | None = None
    groups: Seen | None = None  # names, with blanks between
    container: Seen | None = None  # what shows that this is one ("docker", "kubernetes", ...); "no" where it was shown not to be one


UNKNOWN = Identity()


@dataclass(frozen=True)
class Machine:
    """What was seen of a machine.

    files: absolute path on that machine -> text.  listings: folder -> names.  whole: what is not here is not there
    either (this machine, or a collection of `jumar doctor --collect`); otherwise absence says nothing.
    logs: texts that none of the forms fits; the diagnosis reads them.  notes: what could not be read, and why.
    """

    files: Mapping[str, Text] = field(default_factory=dict)
    listings: Mapping[str, Listing] = field(default_factory=dict)
    outputs: tuple[Output, ...] = ()
    environment: Mapping[str, Seen] = field(default_factory=dict)
    packages: Mapping[str, Seen] = field(default_factory=dict)
    identity: Identity = UNKNOWN
    logs: tuple[Text, ...] = ()
    whole: bool = False
    here: bool = False
    notes: tuple[str, ...] = ()

    def glob(self, pattern: str) -> tuple[tuple[str, Text], ...]:
        """Files whose absolute path fits a shell pattern, in order of the paths.   `*` crosses slashes."""
        return tuple((path, text) for path, text in sorted(self.files.items()) if fnmatchcase(path, pattern))

    def file(self, path: str) -> Text | None:
        return self.files.get(path)

    def output(self, *starts: str) -> tuple[Output, ...]:
        """Outputs of commands that start with one of these."""
        return tuple(o for o in self.outputs if o.command.startswith(starts))

    def variable(self, name: str) -> str:
        found = self.environment.get(name)
        return found.value if found else ""

    def package(self, name: str) -> Seen | None:
        return self.packages.get(normal(name))

    def has(self, path: str) -> bool | None:
        """Whether there is such a file or folder; None where nothing tells."""
        folder, _, name = path.rpartition("/")
        listing = self.listings.get(folder or "/")
        if path in self.files or path in self.listings or (listing and name in listing.names()):
            return True
        if any(known.startswith(path + "/") for known in (*self.files, *self.listings)):
            return True
        return False if self.whole or (listing and listing.lacks(name)) else None

    @property
    def in_container(self) -> bool:
        return bool(self.identity.container and self.identity.container.value != "no")

    @property
    def empty(self) -> bool:
        return not (self.files or self.listings or self.outputs or self.environment or self.packages or self.logs)


def not_read(path: Path | str, error: OSError) -> Said:
    """The note on what the system refused."""
    why = reason(error)
    return Said(f"{path}: {why}", f"{path}：{why.zh}")


def normal(name: str) -> str:
    """A package's name in one spelling.

    >>> normal("Torch.NPU")
    'torch-npu'
    """
    return re.sub(r"[-_.]+", "-", name).lower()
