"""A version of any part of an Ascend host: read from its spelling, compared, printed.

In: what packages, tools and people write (`8.0.RC3.alpha001`, `24.1.0.3`, `2.1.0.post12`, `V100R001C21SPC001B238`).
Out: `Version`, ordered and hashable, and `Range`; the release behind a package's inner number.
stated.py finds versions in texts, version_files.py and compat.py reason with them.
The order is that of releases: dev < a < b < RC < CANN's alpha001 and beta1 < the release < its builds and posts; a stage of a stage comes before it
(`8.0.RC3.alpha001` < `8.0.RC3` < `8.0.0.alpha001` < `8.0.0`).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import total_ordering

from jumar.base import DeviceError, Said

# ranks of what may follow the numbers; the end of a version stands between its trials and its posts
_RANKS: Mapping[str, int] = {"t": -7, "dev": -6, "a": -5, "b": -4, "rc": -3, "alpha": -2, "beta": -1, "build": 1, "post": 2}
_END = (0, ())

_PLACES = r"\d{1,14}(?:\.\d{1,6}){0,3}"
# `.B150` is a build and `.T2.0` a test; a letter that is attached is PEP 440's alpha or beta; `-a3` is neither, but the chip in an image's tag
_STAGE = rf"(?:[.\-_]?(?:rc|alpha|beta|dev|post)\.?(?:{_PLACES})?|[ab]\d{{1,3}}|[.\-]b\d{{2,4}}|\.t{_PLACES})"
# the text of a version, without anchors, for searches; every repetition is bounded and none can match in two ways
_LOCAL = (
    r"\+(?!py|torch|mind|cann|vllm|driver)[a-z0-9]{1,40}(?:[._](?!dist|whl|egg|run)[a-z0-9]{1,20}){0,4}"  # +cpu; not torch2.1+torch_npu
)
VERSION = rf"v?\d{{1,4}}(?:\.\d{{1,8}}){{0,5}}(?:{_STAGE}){{0,4}}(?:{_LOCAL})?"

_WHOLE = re.compile(rf"{VERSION}\Z", re.IGNORECASE)
_NUMBERS = re.compile(r"v?(\d+(?:\.\d+)*)", re.IGNORECASE)
_STAGES = re.compile(r"([.\-_]?)(rc|alpha|beta|dev|post|[abt])\.?(\d*(?:\.\d+)*)", re.IGNORECASE)
_BRANCH = re.compile(r"V(\d{3})R(\d{3})C(\d{2})(?:(?:SPC|CP)(\d{3,4}))?(?:B(\d{3}))?\Z", re.IGNORECASE)

_Key = tuple[int, tuple[int, ...], tuple[tuple[int, tuple[int, ...]], ...], str]


@total_ordering
@dataclass(frozen=True, eq=False)
class Version:
    """One version.   text: as it was written; release: its numbers; stages: what follows, as (name, numbers); branch: C21 of V100R001C21...

    >>> parse_version("8.0.RC3.alpha001") < parse_version("8.0.RC3") < parse_version("8.0.0") == parse_version("v8.0")
    True
    >>> str(parse_version("V100R001C21SPC001B238").branch)
    'C21'
    """

    text: str
    release: tuple[int, ...]
    stages: tuple[tuple[str, tuple[int, ...]], ...] = ()
    local: str = ""
    branch: str = ""
    key: _Key = field(repr=False, default=(0, (), (), ""))

    def __str__(self) -> str:
        return self.text

    def __eq__(self, other: object) -> bool:
        return self.key == other.key if isinstance(other, Version) else NotImplemented

    def __lt__(self, other: Version) -> bool:
        return self.key < other.key

    def __hash__(self) -> int:
        return hash(self.key)

    @property
    def major(self) -> int:
        return self.release[0]

    @property
    def minor(self) -> int:
        return self.release[1] if len(self.release) > 1 else 0

    @property
    def public(self) -> Version:
        """Without what names a build only: `+cpu`, `.B150`, and the `.beta1` by which CANN's community packages are marked.

        >>> str(parse_version("8.1.RC1.beta1").public), str(parse_version("2.5.1+cpu").public), str(parse_version("8.5.0.alpha001").public)
        ('8.1.RC1', '2.5.1', '8.5.0.alpha001')
        """
        if self.branch:
            return self
        text = re.sub(r"(?i)(?:\+.*|[.\-]b\d{2,}\b|[.\-]?beta[.\-]?\d*)", "", self.text)
        return parse_version(text) if text != self.text else self

    @property
    def trial(self) -> bool:
        """An alpha, a beta, an RC, a dev or a test build."""
        return any(_RANKS[name] < 0 for name, _ in self.stages)


def parse_version(text: str) -> Version:
    """The version that `text` writes; fails where it is none.

    >>> parse_version("24.1.rc2.2").stages
    (('rc', (2, 2)),)
    """
    found = read_version(text)
    if found is None:
        raise DeviceError(
            Said(f"version: text must be a version, got {text[:60]!r}", f"version：{text[:60]!r} 不是版本号"),
            hint=Said(
                "such as 8.1.RC1, 24.1.0.3, 2.5.1.post1 or V100R001C21SPC001B238",
                "例如 8.1.RC1、24.1.0.3、2.5.1.post1 或 V100R001C21SPC001B238",
            ),
            code="version-text",
        )
    return found


def read_version(text: str) -> Version | None:
    """As `parse_version`, but None where `text` is no version."""
    text = text.strip().strip("\"'`")
    if len(text) > 120:
        return None
    if fields := _BRANCH.match(text):
        numbers = tuple(int(n or 0) for n in fields.groups())
        return Version(text, numbers, branch=f"C{fields[3]}", key=(1, numbers, (), ""))
    if not _WHOLE.match(text):
        return None
    body, _, local = text.partition("+")
    head = _NUMBERS.match(body)
    assert head is not None, "what matches _WHOLE starts with numbers"
    release = tuple(int(n) for n in head[1].split("."))
    stages = tuple(_stage(m) for m in _STAGES.finditer(body, head.end()))
    ranks = tuple((_RANKS[name], numbers) for name, numbers in stages)
    significant = release
    while len(significant) > 1 and significant[-1] == 0:
        significant = significant[:-1]
    text = text[1:] if text[0] in "vV" else text
    return Version(text, release, stages, local.lower(), key=(0, significant, (*ranks, _END), local.lower()))


def _stage(found: re.Match[str]) -> tuple[str, tuple[int, ...]]:
    name = found[2].lower()
    numbers = tuple(int(n) for n in found[3].split(".") if n)
    match name:
        case "b" if found[1]:
            name = "build"
        case "alpha" | "beta" if not numbers:
            name = name[0]  # MindSpore's 2.0.0-alpha came before its rc1; CANN's 8.0.0.alpha001 came after 8.0.RC3
    return name, numbers


def within(version: Version, low: Version, high: Version) -> bool:
    """`low` <= `version` <= `high`, where the bounds are prefixes: 7.7.0.1.238 is within 7.6 and 7.7, as the packages' ranges mean it.

    >>> v = parse_version
    >>> within(v("7.7.0.1.238"), v("7.6"), v("7.7")), within(v("7.8.0"), v("7.6"), v("7.7"))
    (True, False)
    """
    width = len(high.release)
    padded = version.release + (0,) * width
    return version >= low and padded[:width] <= high.release


# ------------------------------------------------------------------------------ ranges

_LEAST = parse_version("0.0")
_BOUND = re.compile(r"(>=|<=|==|=|>|<)?\s*([\w.\-]{1,60})\Z")


@dataclass(frozen=True)
class Range:
    """Versions from `low` to `high`, both prefixes; None leaves a side open.   family: `[24.1,24.1.]`, all that start with 24.1

    >>> parse_range(">=7.6, <=7.7").holds(read_version("7.7.0.1.238"))
    True
    """

    text: str
    low: Version | None = None
    high: Version | None = None
    family: str = ""
    open_low: bool = False
    open_high: bool = False

    def holds(self, version: Version | None) -> bool:
        if version is None:
            return False
        if self.family:
            text = version.text.lower()
            return text == self.family or text.startswith((self.family + ".", self.family + "-"))
        if self.low is not None and (version < self.low or (self.open_low and within(version, self.low, self.low))):
            return False
        if self.high is None:
            return True
        return not within(version, self.high, self.high) and version < self.high if self.open_high else within(version, _LEAST, self.high)

    def __str__(self) -> str:
        return self.text


def parse_range(text: str) -> Range | None:
    """`>=7.6, <=7.7`, `7.7`, `<8`: as the packages write what they require; None where it is no range."""
    low = high = None
    open_low = open_high = False
    for piece in filter(None, (p.strip() for p in text.strip().strip("\"'").split(","))):
        bound = _BOUND.match(piece)
        at = read_version(bound[2]) if bound else None
        if bound is None or at is None:
            return None
        sign = bound[1] or "=="
        if sign in (">=", ">", "==", "="):
            low, open_low = at, sign == ">"
        if sign in ("<=", "<", "==", "="):
            high, open_high = at, sign == "<"
    return Range(text.strip().strip("\"'"), low, high, open_low=open_low, open_high=open_high) if low or high else None


# ------------------------------------------------------------------------------ inner numbers

_INNER = {  # first two inner numbers -> the release; from 8.2 on both are the same (versions table of the CANN packages and MindSpore's check)
    (1, 83): "6.0.RC1", (1, 84): "6.0.1", (6, 3): "6.3.RC1", (6, 4): "6.3.RC2", (7, 1): "7.0.0", (7, 2): "8.0.RC1", (7, 3): "8.0.RC2", (7, 5): "8.0.RC3",
    (7, 6): "8.0.0", (7, 7): "8.1.RC1", (7, 8): "8.2.RC1",
}  # fmt: skip


def market_of_inner(inner: Version) -> Version | None:
    """The release of CANN that an inner number belongs to.

    >>> str(market_of_inner(read_version("7.7.0.1.238"))), str(market_of_inner(read_version("8.5.0.2.220")))
    ('8.1.RC1', '8.5.0')
    """
    if inner.branch:
        return None
    if known := _INNER.get((inner.major, inner.minor)):
        return read_version(known)
    return read_version(".".join(str(n) for n in inner.release[:3])) if (inner.major, inner.minor) >= (8, 0) else None


def inner_of_market(cann: Version) -> Version | None:
    """The first two numbers of the packages of a release of CANN: what MindSpore compares.

    >>> str(inner_of_market(read_version("8.1.RC1"))), str(inner_of_market(read_version("8.5.0")))
    ('7.7', '8.5')
    """
    if cann.text.lower().startswith("8.0.rc2.alpha"):
        return read_version("7.2")
    plain = read_version(re.sub(r"(?i)\.(?:alpha|beta)\d+\Z|[.\-]b\d+\Z", "", cann.text))
    for numbers, release in _INNER.items():
        if plain == read_version(release):
            return read_version(f"{numbers[0]}.{numbers[1]}")
    if (cann.major, cann.minor) == (8, 2):
        return read_version("7.8")
    return read_version(f"{cann.major}.{cann.minor}") if (cann.major, cann.minor) >= (8, 3) else None
