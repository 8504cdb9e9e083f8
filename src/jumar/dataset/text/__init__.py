"""`dataset.text`: operations on texts, under MindSpore's names."""

from jumar.dataset.enums import NormalizeForm
from jumar.dataset.text.tokenizers import (
    BasicTokenizer,
    BertTokenizer,
    JiebaTokenizer,
    PythonTokenizer,
    RegexTokenizer,
    SentencePieceTokenizer,
    UnicodeCharTokenizer,
    UnicodeScriptTokenizer,
    WhitespaceTokenizer,
    WordpieceTokenizer,
)
from jumar.dataset.text.transforms import (
    AddToken,
    CaseFold,
    FilterWikipediaXML,
    Ngram,
    NormalizeUTF8,
    RegexReplace,
    SlidingWindow,
    ToNumber,
    Truncate,
    TruncateSequencePair,
    to_bytes,
    to_str,
)
from jumar.dataset.text.vocab import CharNGram, FastText, GloVe, Lookup, ToVectors, Vectors, Vocab

__all__ = [
    "AddToken", "BasicTokenizer", "BertTokenizer", "CaseFold", "CharNGram", "FastText", "FilterWikipediaXML", "GloVe", "JiebaTokenizer", "Lookup",
    "Ngram", "NormalizeForm", "NormalizeUTF8", "PythonTokenizer", "RegexReplace", "RegexTokenizer", "SentencePieceTokenizer", "SlidingWindow",
    "ToNumber", "ToVectors", "Truncate", "TruncateSequencePair", "UnicodeCharTokenizer", "UnicodeScriptTokenizer", "Vectors", "Vocab",
    "WhitespaceTokenizer", "WordpieceTokenizer", "to_bytes", "to_str",
]  # fmt: skip
