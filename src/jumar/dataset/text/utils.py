"""`Vocab`, vectors and enumerations of `text` under the name of MindSpore's file."""

from jumar.dataset.enums import NormalizeForm
from jumar.dataset.text.transforms import to_bytes, to_str
from jumar.dataset.text.vocab import CharNGram, FastText, GloVe, Vectors, Vocab

__all__ = ["CharNGram", "FastText", "GloVe", "NormalizeForm", "Vectors", "Vocab", "to_bytes", "to_str"]
