"""The known failure whose words are nearest to a text, for texts in which no rule's pattern is found.

In: rules, lines of a text.  Out: the nearest rule, how near (the cosine of word weights, 0 to 1), and the line that speaks for it.  It is a hint where
to look, never a proof: alone it names the right layer of 4 out of 5 reports, and it also finds something near in texts where nothing is wrong.  So it is
asked only of a text that complains: lines of progress, information and warnings are no complaint, and their words are not compared.
"""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from jumar.tools.knowledge.complaint import complains, is_quiet
from jumar.tools.knowledge.kept import kept
from jumar.tools.knowledge.rule import FACT, LANGUAGES, Rule

NEAR = 0.15  # below, words have too little in common
NEAR_UNSIGNED = 0.3  # in a text without a word of an Ascend machine: any program can be refused a connection
_SIGNED = re.compile(
    r"ascend|atlas|npu|\bcann\b|hcc[lpn]|hcom|mind(?:spore|ie|x|speed|record|formers|data)|davinci|\bacl|ai ?core|ai ?cpu|vector ?core|devmm|dcmi|msprof|msrun"
    r"|\b(?:atc|tbe|plog|hbm|dvpp|aipp|gert|soc|rank|device|torch|vllm|kernel|graph|operator|tensor|loss|profiler)\b|\.om\b|\bE[A-Z]\d{4}\b|[\u4e00-\u9fff]",
    re.IGNORECASE,
)
_CHINESE = re.compile(r"[\u4e00-\u9fff]")
_WORD = re.compile(r"[A-Za-z_]+|[\u4e00-\u9fff]+|\b\d{6}\b")
_PART = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|\d+")
_SYNTAX = re.compile(r"\(\?P<\w+>|\(\?[:i]|\\[bswdSWBD]|[\\().?*+|{}\[\]^$]")


@dataclass(frozen=True)
class Like:
    """The nearest rule.   near: 0 to 1; line: the number of the line with most of its words."""

    rule: Rule
    near: float
    line: int


class Likeness:
    """Rules by their words.   Mutable: the index is built when it is first asked for, which takes a third of a second, and kept on disk."""

    def __init__(self, rules: Iterable[Rule]) -> None:
        self.rules = [r for r in rules if r.tier != "hint" and not all(p.startswith(FACT) for p in r.match)]
        self.weights: dict[str, float] = {}
        self.places: dict[str, list[tuple[int, float]]] = {}

    def nearest(self, lines: list[str]) -> Like | None:
        """The rule whose words are nearest to those of the lines, None where none is near or no line complains."""
        said = [line for line in lines if not is_quiet(line)] if len(lines) > 1 else lines
        if not any(complains(line) or _CHINESE.search(line) for line in said):
            return None
        if not self.places:
            self._build()
        asked = self._vector(Counter(word for line in said for word in words(line)))
        near: defaultdict[int, float] = defaultdict(float)
        for word, weight in asked.items():
            for which, other in self.places.get(word, ()):
                near[which] += weight * other
        if not near:
            return None
        best = max(near, key=lambda which: (near[which], -which))
        if near[best] < (NEAR if any(_SIGNED.search(line) for line in lines) else NEAR_UNSIGNED):
            return None
        own = {word: weight for word in asked for which, weight in self.places.get(word, ()) if which == best}
        telling = frozenset(said)
        shares = [sum(own.get(word, 0.0) for word in set(words(line))) if line in telling else 0.0 for line in lines]
        return Like(self.rules[best], near[best], shares.index(max(shares)))

    def _build(self) -> None:
        made_of = [Path(__file__).read_bytes(), *("\0".join(_told(rule)).encode() for rule in self.rules)]
        self.weights, self.places = kept("likeness", made_of, self._index)

    def _index(self) -> tuple[dict[str, float], dict[str, list[tuple[int, float]]]]:
        counts = [Counter(_words_of(rule)) for rule in self.rules]
        holders = Counter(word for count in counts for word in count)
        self.weights = {word: math.log(1 + len(counts) / number) for word, number in holders.items()}
        places: defaultdict[str, list[tuple[int, float]]] = defaultdict(list)
        for which, count in enumerate(counts):
            for word, weight in self._vector(count).items():
                places[word].append((which, weight))
        return self.weights, dict(places)

    def _vector(self, count: Counter[str]) -> dict[str, float]:
        """Weights of words, of length one; words that no rule has are left out."""
        found = {word: (1 + math.log(number)) * self.weights[word] for word, number in count.items() if word in self.weights}
        length = math.sqrt(sum(weight * weight for weight in found.values())) or 1.0
        return {word: weight / length for word, weight in found.items()}


def words(text: str) -> list[str]:
    """The words of a text: names also by their parts, Chinese by pairs of characters.

    >>> words("aclrtSetDevice failed 507018"), words("内存不足")
    (['aclrt', 'set', 'device', 'aclrtsetdevice', 'failed', '507018'], ['内存', '存不', '不足'])
    """
    found: list[str] = []
    for word in _WORD.findall(text):
        if "\u4e00" <= word[0] <= "\u9fff":
            found += [word[i : i + 2] for i in range(len(word) - 1)]
            continue
        parts = _PART.findall(word)
        found += [part.lower() for part in parts if len(part) > 2]
        if len(parts) > 1:
            found.append(word.lower())
    return found


def _words_of(rule: Rule) -> list[str]:
    """What a rule says: its patterns without their syntax, its examples twice, its texts."""
    patterns, examples, told = _told(rule)
    return words(_SYNTAX.sub(" ", patterns)) + 2 * words(examples) + words(told)


def _told(rule: Rule) -> tuple[str, str, str]:
    texts = [rule.texts[lang] for lang in LANGUAGES]
    return " ".join(rule.match), " ".join(rule.examples), " ".join((rule.cause.replace("_", " "), *(t.what for t in texts), *texts[0].fix))
