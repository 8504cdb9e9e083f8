"""Tokenizers: by spaces, characters, scripts and patterns; BERT's.

In: a text.  Out: an array of tokens, with offsets where asked.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterator
from typing import Any, Literal

import numpy as np

from jumar.dataset.enums import NormalizeForm
from jumar.dataset.errors import DataFault, DataTypeFault, DataValueFault, check_bool, check_int
from jumar.dataset.text.base import Token, Tokenizer, one_text, texts, width
from jumar.dataset.text.vocab import Vocab
from jumar.dataset.transforms.base import Transform

UNUSED = re.compile(r"\[CLS\]|\[SEP\]|\[UNK\]|\[PAD\]|\[MASK\]|\[unused\d+\]")


def pieces(text: str, kind_of: Callable[[str], Any], *, alone: Callable[[Any], bool] = lambda kind: False) -> Iterator[tuple[Any, Token]]:
    """Stretches of characters of one kind, with the kind; characters of kinds that stand `alone` one by one."""
    at, start, kept, kind = 0, 0, "", None
    for char in text:
        mine = kind_of(char)
        if kept and (mine != kind or alone(mine)):
            yield kind, Token(kept, start, at)
            kept, start = "", at
        kind, kept = mine, kept + char
        at += width(char)
    if kept:
        yield kind, Token(kept, start, at)


class WhitespaceTokenizer(Tokenizer):
    """Words between spaces."""

    def tokens(self, text: str) -> list[Token]:
        return [t for space, t in pieces(text, str.isspace) if not space]


class UnicodeCharTokenizer(Tokenizer):
    """Characters."""

    def tokens(self, text: str) -> list[Token]:
        return [t for _, t in pieces(text, lambda char: char, alone=lambda kind: True)]


def script(char: str) -> str:
    """The script of a letter by its Unicode name; digits, signs and spaces have none."""
    if char.isspace():
        return " "
    if not unicodedata.category(char).startswith("L"):
        return "common"
    return unicodedata.name(char, "common").split(" ")[0]


class UnicodeScriptTokenizer(Tokenizer):
    """Stretches of one script."""

    def __init__(self, keep_whitespace: bool = False, with_offsets: bool = False) -> None:
        super().__init__(with_offsets)
        self.keep_whitespace = check_bool("UnicodeScriptTokenizer", "keep_whitespace", keep_whitespace)

    def tokens(self, text: str) -> list[Token]:
        return [t for kind, t in pieces(text, script) if kind != " " or self.keep_whitespace]


class RegexTokenizer(Tokenizer):
    """Pieces between matches of a pattern; matches that `keep_delim_pattern` matches too are kept."""

    def __init__(self, delim_pattern: str, keep_delim_pattern: str = "", with_offsets: bool = False) -> None:
        super().__init__(with_offsets)
        try:
            self.pattern = re.compile(delim_pattern)
            self.keep = re.compile(keep_delim_pattern) if keep_delim_pattern else None
        except re.error as error:
            raise DataValueFault(f"RegexTokenizer: delim_pattern must be a pattern, got {delim_pattern!r}: {error}") from error

    def tokens(self, text: str) -> list[Token]:
        found: list[Token] = []
        at = 0

        def add(start: int, end: int) -> None:
            if end > start:
                found.append(Token(text[start:end], width(text[:start]), width(text[:end])))

        for match in self.pattern.finditer(text):
            if match.end() == match.start():
                continue
            add(at, match.start())
            if self.keep is not None and self.keep.fullmatch(match.group()):
                add(match.start(), match.end())
            at = match.end()
        add(at, len(text))
        return found


FORMS: dict[NormalizeForm, Literal["NFC", "NFKC", "NFD", "NFKD"]] = {
    NormalizeForm.NFC: "NFC",
    NormalizeForm.NFKC: "NFKC",
    NormalizeForm.NFD: "NFD",
    NormalizeForm.NFKD: "NFKD",
}


def is_punctuation(char: str) -> bool:
    """Whether BERT splits at a character: all ASCII signs, and what Unicode calls punctuation."""
    return (char.isascii() and char.isprintable() and not char.isalnum() and char != " ") or unicodedata.category(char).startswith("P")


def is_chinese(char: str) -> bool:
    code = ord(char)
    blocks = ((0x4E00, 0x9FFF), (0x3400, 0x4DBF), (0x20000, 0x2CEAF), (0xF900, 0xFAFF), (0x2F800, 0x2FA1F))
    return any(low <= code <= high for low, high in blocks)


class BasicTokenizer(Tokenizer):
    """BERT's first step: words, signs and Chinese characters by themselves; tokens like [CLS] stay whole."""

    def __init__(
        self,
        lower_case: bool = False,
        keep_whitespace: bool = False,
        normalization_form: NormalizeForm = NormalizeForm.NONE,
        preserve_unused_token: bool = True,
        with_offsets: bool = False,
    ) -> None:
        super().__init__(with_offsets)
        who = type(self).__name__
        if not isinstance(normalization_form, NormalizeForm):
            raise DataTypeFault(f"{who}: normalization_form must be a NormalizeForm, got {normalization_form!r}")
        self.lower_case, self.keep_whitespace = (
            check_bool(who, "lower_case", lower_case),
            check_bool(who, "keep_whitespace", keep_whitespace),
        )
        self.form, self.preserve = normalization_form, check_bool(who, "preserve_unused_token", preserve_unused_token)

    def _normal(self, text: str) -> str:
        if self.lower_case:
            flat = unicodedata.normalize("NFD", text.casefold())
            return "".join(c for c in flat if unicodedata.category(c) != "Mn")
        text = unicodedata.normalize(FORMS[self.form], text) if self.form is not NormalizeForm.NONE else text
        return "".join(c for c in text if unicodedata.category(c) != "Cc" or c.isspace())

    def _kind(self, char: str) -> str:
        if char.isspace():
            return "space"
        return "alone" if is_punctuation(char) or is_chinese(char) else "word"

    def tokens(self, text: str) -> list[Token]:
        found: list[Token] = []
        at = offset = 0
        kept = [m.span() for m in UNUSED.finditer(text)] if self.preserve else []
        for start, end in [*kept, (len(text), len(text))]:
            normal = self._normal(text[at:start])
            for kind, t in pieces(normal, self._kind, alone=lambda k: k == "alone"):
                if kind != "space" or self.keep_whitespace:
                    found.append(Token(t.text, offset + t.start, offset + t.end))
            offset += width(normal)
            if end > start:
                found.append(Token(text[start:end], offset, offset + width(text[start:end])))
                offset += width(text[start:end])
            at = end
        return found


class WordpieceTokenizer(Tokenizer):
    """Words as the longest pieces that a vocabulary has."""

    def __init__(
        self,
        vocab: Vocab,
        suffix_indicator: str = "##",
        max_bytes_per_token: int = 100,
        unknown_token: str = "[UNK]",
        with_offsets: bool = False,
    ) -> None:
        super().__init__(with_offsets)
        if not isinstance(vocab, Vocab):
            raise DataTypeFault(f"{type(self).__name__}: vocab must be a Vocab, got {type(vocab).__name__}")
        self.words = vocab.vocab()
        self.suffix, self.unknown = suffix_indicator, unknown_token
        self.max_bytes = check_int("WordpieceTokenizer", "max_bytes_per_token", max_bytes_per_token, 0)

    def split(self, word: str, offset: int) -> list[Token]:
        whole = [Token(self.unknown or word, offset, offset + width(word))]
        if width(word) > self.max_bytes:
            return whole
        found: list[Token] = []
        start = 0
        while start < len(word):
            for end in range(len(word), start, -1):
                piece = (self.suffix if start else "") + word[start:end]
                if piece in self.words:
                    found.append(Token(piece, offset + width(word[:start]), offset + width(word[:end])))
                    start = end
                    break
            else:
                return whole
        return found

    def __call__(self, *values: Any) -> Any:
        if len(values) != 1:
            raise DataTypeFault(f"WordpieceTokenizer: must be called with words, got {len(values)} values")
        words = texts(values[0], "WordpieceTokenizer").reshape(-1).tolist()
        return self.result([t for w in words for t in self.split(w, 0)])


class BertTokenizer(Tokenizer):
    """`BasicTokenizer`, then `WordpieceTokenizer`."""

    def __init__(
        self,
        vocab: Vocab,
        suffix_indicator: str = "##",
        max_bytes_per_token: int = 100,
        unknown_token: str = "[UNK]",
        lower_case: bool = False,
        keep_whitespace: bool = False,
        normalization_form: NormalizeForm = NormalizeForm.NONE,
        preserve_unused_token: bool = True,
        with_offsets: bool = False,
    ) -> None:
        super().__init__(with_offsets)
        self.basic = BasicTokenizer(lower_case, keep_whitespace, normalization_form, preserve_unused_token)
        self.wordpiece = WordpieceTokenizer(vocab, suffix_indicator, max_bytes_per_token, unknown_token)

    def tokens(self, text: str) -> list[Token]:
        return [piece for t in self.basic.tokens(text) for piece in self.wordpiece.split(t.text, t.start)]


class PythonTokenizer(Transform):
    """A function of the user's from a text to a list of tokens."""

    def __init__(self, tokenizer: Callable[[str], list[str]]) -> None:
        if not callable(tokenizer):
            raise DataTypeFault(f"PythonTokenizer: tokenizer must be a function, got {type(tokenizer).__name__}")
        self.tokenizer = tokenizer

    def apply(self, value: Any) -> Any:
        return np.array(self.tokenizer(one_text(value, "PythonTokenizer")))


class JiebaTokenizer(Tokenizer):
    """Chinese words, by MindSpore's dictionaries."""

    def __init__(self, hmm_path: str, mp_path: str, mode: Any = None, with_offsets: bool = False) -> None:
        super().__init__(with_offsets)
        raise DataFault("JiebaTokenizer: is not supported", hint="pip install jieba; PythonTokenizer(jieba.lcut) does the same")


class SentencePieceTokenizer(Transform):
    """Pieces by a SentencePiece model."""

    def __init__(self, mode: Any, out_type: Any) -> None:
        raise DataFault("SentencePieceTokenizer: is not supported", hint="pip install sentencepiece; PythonTokenizer takes its encode")
