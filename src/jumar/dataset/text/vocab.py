"""`Vocab`, tables of word vectors, and the operations that look words up in them.

In: lists, dicts, files or columns of words.  Out: ids and vectors.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from jumar.dataset.dataset import Dataset
from jumar.dataset.errors import DataFault, DataTypeFault, DataValueFault, check_bool, check_int, names
from jumar.dataset.text.base import Array, texts
from jumar.dataset.transforms.base import Transform
from jumar.dataset.values import numpy_type

V = TypeVar("V", bound="Vectors")


class Vocab:
    """Words and their ids.   Made by from_list, from_dict, from_file or from_dataset."""

    def __init__(self) -> None:
        self._ids: dict[str, int] = {}
        self._words: dict[int, str] = {}

    @classmethod
    def from_dict(cls, word_dict: dict[str, int]) -> Vocab:
        """From words to ids."""
        new = cls()
        for word, number in word_dict.items():
            if not isinstance(word, str):
                raise DataTypeFault(f"Vocab: a word must be a text, got {word!r}")
            new._ids[word] = check_int("Vocab", "id", number, 0)
        new._words = {number: word for word, number in new._ids.items()}
        return new

    @classmethod
    def from_list(cls, word_list: list[str], special_tokens: list[str] | None = None, special_first: bool = True) -> Vocab:
        """Ids in the order of the list; special tokens before or after.

        >>> Vocab.from_list(["a", "b"], ["<pad>"]).vocab()
        {'<pad>': 0, 'a': 1, 'b': 2}
        """
        special = names("Vocab", "special_tokens", special_tokens)
        words = names("Vocab.from_list", "word_list", word_list)
        both = set(words) & set(special)
        if both:
            raise DataValueFault(f"Vocab: special_tokens must not be words too, got {sorted(both)[0]!r}")
        ordered = special + words if check_bool("Vocab", "special_first", special_first) else words + special
        return cls.from_dict({word: i for i, word in enumerate(ordered)})

    @classmethod
    def from_file(
        cls,
        file_path: str,
        delimiter: str = "",
        vocab_size: int | None = None,
        special_tokens: list[str] | None = None,
        special_first: bool = True,
    ) -> Vocab:
        """One word per line, or what stands before `delimiter`."""
        try:
            lines = Path(file_path).read_text(encoding="utf-8").splitlines()
        except (OSError, UnicodeDecodeError) as error:
            raise DataFault(f"Vocab.from_file: {file_path} must be a text file, got {error}") from error
        words = [line.split(delimiter)[0] if delimiter else line.strip() for line in lines]
        words = [w for w in words if w]
        if vocab_size is not None:
            words = words[: check_int("Vocab.from_file", "vocab_size", vocab_size, 1)]
        return cls.from_list(words, special_tokens, special_first)

    @classmethod
    def from_dataset(
        cls,
        dataset: Dataset,
        columns: str | list[str] | None = None,
        freq_range: tuple[int | None, int | None] | None = None,
        top_k: int | None = None,
        special_tokens: list[str] | None = None,
        special_first: bool = True,
    ) -> Vocab:
        """The words of a dataset, most frequent first, then in the order of the alphabet."""
        counts: Counter[str] = Counter()
        chosen = names("Vocab.from_dataset", "columns", columns) or dataset.get_col_names()
        for row in dataset.create_dict_iterator(num_epochs=1, output_numpy=True):
            for column in chosen:
                counts.update(texts(row[column], "Vocab.from_dataset").reshape(-1).tolist())
        low, high = freq_range or (None, None)
        kept = [(w, n) for w, n in counts.items() if (low is None or n >= low) and (high is None or n <= high)]
        words = [w for w, _ in sorted(kept, key=lambda one: (-one[1], one[0]))]
        return cls.from_list(words if top_k is None else words[: check_int("Vocab", "top_k", top_k, 1)], special_tokens, special_first)

    def vocab(self) -> dict[str, int]:
        return dict(self._ids)

    def tokens_to_ids(self, tokens: Any) -> Any:
        """Ids of words; -1 for those that are not known."""
        if isinstance(tokens, str):
            return self._ids.get(tokens, -1)
        return [self._ids.get(str(t), -1) for t in tokens]

    def ids_to_tokens(self, ids: Any) -> Any:
        """Words of ids; "" for those that are not known."""
        if isinstance(ids, (int, np.integer)):
            return self._words.get(int(ids), "")
        return [self._words.get(int(i), "") for i in ids]

    def __contains__(self, word: object) -> bool:
        return word in self._ids

    def __len__(self) -> int:
        return len(self._ids)


class Lookup(Transform):
    """Words as ids; `unknown_token` stands for words that the vocabulary lacks."""

    def __init__(self, vocab: Vocab, unknown_token: str | None = None, data_type: Any = "int32") -> None:
        if not isinstance(vocab, Vocab):
            raise DataTypeFault(f"Lookup: vocab must be a Vocab, got {type(vocab).__name__}")
        if unknown_token is not None and unknown_token not in vocab:
            raise DataFault(f"Lookup: unknown_token must be in the vocabulary, got {unknown_token!r}")
        self.table, self.unknown = vocab.vocab(), None if unknown_token is None else vocab.tokens_to_ids(unknown_token)
        self.data_type = numpy_type(data_type)

    def apply(self, value: Any) -> Array:
        words = texts(value, "Lookup")
        found = [self.table.get(w, self.unknown) for w in words.reshape(-1).tolist()]
        if None in found:
            word = words.reshape(-1)[found.index(None)]
            raise DataFault(f"Lookup: a word must be in the vocabulary, got {str(word)!r}", hint="unknown_token stands for such words")
        return np.asarray(np.array(found, self.data_type).reshape(words.shape))


class Vectors:
    """Words and their vectors, from a text file: a word and its numbers on each line."""

    header = False

    def __init__(self, table: dict[str, Array]) -> None:
        self.table = table
        self.dim = len(next(iter(table.values())))

    @classmethod
    def from_file(cls: type[V], file_path: str, max_vectors: int | None = None) -> V:
        table: dict[str, Array] = {}
        try:
            with open(file_path, encoding="utf-8") as file:
                for number, line in enumerate(file):
                    parts = line.rstrip().split(" ")
                    if number == 0 and len(parts) == 2:
                        continue  # a header: how many words, how many numbers
                    if max_vectors is not None and len(table) >= max_vectors:
                        break
                    if len(parts) < 2:
                        raise DataFault(f"{cls.__name__}: line {number + 1} of {file_path} must be a word and numbers, got {line[:40]!r}")
                    table.setdefault(parts[0], np.array(parts[1:], np.float32))
        except (OSError, UnicodeDecodeError, ValueError) as error:
            raise DataFault(f"{cls.__name__}: {file_path} must be a file of word vectors, got {error}") from error
        if not table or len({len(v) for v in table.values()}) != 1:
            raise DataFault(f"{cls.__name__}: {file_path} must have vectors of one length, got others")
        return cls(table)


class GloVe(Vectors):
    """Vectors in GloVe's files."""


class FastText(Vectors):
    """Vectors in fastText's `.vec` files."""


class CharNGram(Vectors):
    """Vectors of pieces of words; a word's vector is the mean of those of its pieces."""


class ToVectors(Transform):
    """Words as vectors; `unk_init` (default zeros) stands for words without one."""

    def __init__(self, vectors: Vectors, unk_init: Iterable[float] | None = None, lower_case_backup: bool = False) -> None:
        if not isinstance(vectors, Vectors):
            raise DataTypeFault(f"ToVectors: vectors must be Vectors, got {type(vectors).__name__}")
        self.vectors = vectors
        self.unknown = np.zeros(vectors.dim, np.float32) if unk_init is None else np.array(list(unk_init), np.float32)
        if len(self.unknown) != vectors.dim:
            raise DataValueFault(f"ToVectors: unk_init must have {vectors.dim} numbers, got {len(self.unknown)}")
        self.lower = check_bool("ToVectors", "lower_case_backup", lower_case_backup)

    def _vector(self, word: str) -> Array:
        table = self.vectors.table
        if isinstance(self.vectors, CharNGram):
            chars = ["#BEGIN#", *(word.lower() if self.lower else word), "#END#"]
            pieces = [f"{n}gram-{''.join(chars[i : i + n])}" for n in (2, 3, 4) for i in range(len(chars) - n + 1)]
            found = [table[p] for p in pieces if p in table]
            return np.asarray(np.mean(found, 0, dtype=np.float32)) if found else self.unknown
        return table.get(word, table.get(word.lower(), self.unknown) if self.lower else self.unknown)

    def apply(self, value: Any) -> Array:
        words = texts(value, "ToVectors")
        found = np.stack([self._vector(w) for w in words.reshape(-1).tolist()])
        return found[0] if words.ndim == 0 else found
