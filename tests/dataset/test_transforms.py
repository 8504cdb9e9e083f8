"""Operations on any values and on texts: what MindSpore 2.10 gave for the same calls stands here."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import jumar.dataset as ds
from jumar.dataset import text, transforms
from jumar.dataset.transforms import c_transforms, py_transforms
from jumar.dataset.vision import c_transforms as old_vision

T = transforms
VOCAB = text.Vocab.from_list(
    ["play", "##ing", "un", "##able", "[UNK]", "hello", ",", "cat", "##s"], special_tokens=["<pad>"], special_first=True
)


def plain(result: Any) -> Any:
    return tuple(plain(r) for r in result) if isinstance(result, tuple) else result.tolist()


@pytest.mark.parametrize(
    "made, expected",
    [
        (lambda: T.OneHot(3)(np.array(1)), [0, 1, 0]),
        (lambda: T.OneHot(3)(np.array([1])), [0, 1, 0]),
        (lambda: T.OneHot(3)(np.array([1, 2])), [[0, 1, 0], [0, 0, 1]]),
        (lambda: T.TypeCast("float32")(np.array([1, 2])), [1.0, 2.0]),
        (lambda: T.Slice(slice(1, 3))(np.arange(5)), [1, 2]),
        (lambda: T.Slice([0, 2])(np.arange(5)), [0, 2]),
        (lambda: T.Slice(..., [0])(np.arange(6).reshape(2, 3)), [[0], [3]]),
        (lambda: T.Slice(1)(np.arange(6).reshape(2, 3)), [[3, 4, 5]]),
        (lambda: T.Mask(T.Relational.EQ, 3)(np.array([3, 4])), [True, False]),
        (lambda: T.PadEnd([4], 9)(np.array([1, 2])), [1, 2, 9, 9]),
        (lambda: T.PadEnd([None, 3])(np.ones((2, 2))), [[1, 1, 0], [1, 1, 0]]),
        (lambda: T.PadEnd([3], "x")(np.array(["ab"])), ["ab", "x", "x"]),
        (lambda: T.Fill(5)(np.zeros(3)), [5, 5, 5]),
        (lambda: T.Duplicate()(np.array([1])), ([1], [1])),
        (lambda: T.Concatenate(0, np.array([1]), np.array([9]))(np.array([4, 5])), [1, 4, 5, 9]),
        (lambda: T.Unique()(np.array([3, 1, 3, 2])), ([3, 1, 2], [0, 1, 0, 2], [2, 1, 1])),
        (lambda: T.Compose([lambda x: x + 1, lambda x: (x, x * 2)])(np.array(1)), (2, 4)),
        (lambda: text.WhitespaceTokenizer()("a b  c"), ["a", "b", "c"]),
        (lambda: text.WhitespaceTokenizer(True)("hé b"), (["hé", "b"], [0, 4], [3, 5])),
        (lambda: text.UnicodeCharTokenizer(True)("hé"), (["h", "é"], [0, 1], [1, 3])),
        (lambda: text.BasicTokenizer()("Hello, wörld! 中文 [CLS] x"), ["Hello", ",", "wörld", "!", "中", "文", "[CLS]", "x"]),
        (lambda: text.BasicTokenizer(True)("Hello, Wörld! 中文"), ["hello", ",", "world", "!", "中", "文"]),
        (lambda: text.BasicTokenizer(False, True)("a  b,c"), ["a", "  ", "b", ",", "c"]),
        (lambda: text.BasicTokenizer(with_offsets=True)("ab, [CLS] é"), (["ab", ",", "[CLS]", "é"], [0, 2, 4, 10], [2, 3, 9, 12])),
        (lambda: text.RegexTokenizer("[,. ]")("a,b. c"), ["a", "b", "c"]),
        (lambda: text.RegexTokenizer("[,. ]", "[,.]", True)("a,b. c"), (["a", ",", "b", ".", "c"], [0, 1, 2, 3, 5], [1, 2, 3, 4, 6])),
        (lambda: text.ToNumber("int32")(["1", "2"]), [1, 2]),
        (lambda: text.ToNumber("float32")(["1.5"]), [1.5]),
        (lambda: text.TruncateSequencePair(5)(np.array([1, 2, 3, 4]), np.array([5, 6, 7])), ([1, 2, 3], [5, 6])),
        (lambda: text.TruncateSequencePair(2)(np.array([1, 2, 3, 4]), np.array([5, 6, 7])), ([1], [5])),
        (lambda: text.NormalizeUTF8()("ﬁé①"), "fié1"),
        (lambda: text.CaseFold()("ẞABC"), "ssabc"),
        (lambda: text.UnicodeScriptTokenizer()("ab中文 12,x"), ["ab", "中文", "12,", "x"]),
        (lambda: text.UnicodeScriptTokenizer(True, True)("ab中 1"), (["ab", "中", " ", "1"], [0, 2, 5, 6], [2, 5, 6, 7])),
        (lambda: text.Ngram([1, 2])(["a", "b", "c"]), ["a", "b", "c", "a b", "b c"]),
        (lambda: text.Ngram(3, ("_", 2), ("_", 2), "-")(["a", "b"]), ["_-_-a", "_-a-b", "a-b-_", "b-_-_"]),
        (lambda: text.SlidingWindow(2)(np.arange(4)), [[0, 1], [1, 2], [2, 3]]),
        (lambda: text.Truncate(2)(["a", "b", "c"]), ["a", "b"]),
        (lambda: text.AddToken("T")(["a"]), ["T", "a"]),
        (lambda: text.AddToken("T", False)(["a"]), ["a", "T"]),
        (lambda: text.RegexReplace("[0-9]+", "#")("a12b3"), "a#b#"),
        (lambda: text.RegexReplace("[0-9]+", "#", False)("a12b3"), "a#b3"),
        (lambda: text.FilterWikipediaXML()("Welcome to the <text> {{nowiki}} big World! 12"), "welcome to the nowiki big world one two"),
        (lambda: text.PythonTokenizer(str.split)(np.array("a b")), ["a", "b"]),
        (lambda: text.to_str(np.array([b"a"])), ["a"]),
        (lambda: text.to_bytes(np.array(["a"])), [b"a"]),
        (lambda: text.Lookup(VOCAB, "[UNK]")(["play", "zz"]), [1, 5]),
        (lambda: text.Lookup(VOCAB)("play"), 1),
        (
            lambda: text.WordpieceTokenizer(VOCAB)(["playing", "unable", "zzz", "cats"]),
            ["play", "##ing", "un", "##able", "[UNK]", "cat", "##s"],
        ),
        (
            lambda: text.WordpieceTokenizer(VOCAB, with_offsets=True)(["playing", "unable"]),
            (["play", "##ing", "un", "##able"], [0, 4, 0, 2], [4, 7, 2, 6]),
        ),
        (lambda: text.WordpieceTokenizer(VOCAB, unknown_token="")(["zzz", "playz"]), ["zzz", "playz"]),
        (
            lambda: text.BertTokenizer(VOCAB)("playing, unable zzz [UNK] cats"),
            ["play", "##ing", ",", "un", "##able", "[UNK]", "[UNK]", "cat", "##s"],
        ),
        (
            lambda: text.BertTokenizer(VOCAB, with_offsets=True)("playing, unable"),
            (["play", "##ing", ",", "un", "##able"], [0, 4, 7, 9, 11], [4, 7, 8, 11, 15]),
        ),
        (lambda: text.BertTokenizer(VOCAB, lower_case=True)("Héllo PLAYING"), ["hello", "play", "##ing"]),
    ],
)
def test_results_are_those_of_mindspore(made, expected):
    assert plain(made()) == expected


def test_one_hot_smooths():
    made = T.OneHot(3, 0.3)(np.array(1))
    np.testing.assert_allclose(made, [0.1, 0.8, 0.1], rtol=1e-12)
    assert made.dtype == np.float64


def test_random_choices_follow_from_the_row():
    ops = [lambda x: x + 1, lambda x: x + 10, lambda x: x + 100]
    for op in (T.RandomChoice(ops), T.RandomApply(ops, 0.5), T.RandomOrder([lambda x: x + 1, lambda x: x * 2])):

        def values(workers: int, op: Any = op) -> list[int]:
            ds.config.set_seed(2)
            data = ds.NumpySlicesDataset([0] * 32, ["x"]).map(op, "x", num_parallel_workers=workers)
            return [int(r[0]) for r in data.create_tuple_iterator(num_epochs=1, output_numpy=True)]

        try:
            assert values(1) == values(3)
            assert len(set(values(1))) > 1
        finally:
            ds.config.set_seed(ds.config.DEFAULT_SEED)


def test_old_names_are_there():
    assert c_transforms.OneHot is py_transforms.OneHot is transforms.OneHot
    assert old_vision.Resize is ds.vision.Resize


def test_vocabularies(tmp_path):
    assert VOCAB.tokens_to_ids(["play", "zz"]) == [1, -1]
    assert VOCAB.ids_to_tokens([0, 3]) == ["<pad>", "un"]
    path = tmp_path / "words.txt"
    path.write_text("b,2\na,1\n")
    assert text.Vocab.from_file(str(path), ",", special_tokens=["<s>"], special_first=False).vocab() == {"b": 0, "a": 1, "<s>": 2}
    data = ds.GeneratorDataset(["b a", "b c", "b a d"], ["t"], shuffle=False).map(text.WhitespaceTokenizer(), "t")
    assert text.Vocab.from_dataset(data, "t", top_k=3).vocab() == {"b": 0, "a": 1, "c": 2}
    assert text.Vocab.from_dataset(data, freq_range=(2, None)).vocab() == {"b": 0, "a": 1}
    with pytest.raises(ds.DataFault, match="got 'zz'"):
        text.Lookup(VOCAB)(["zz"])


def test_vectors(tmp_path):
    path = tmp_path / "glove.txt"
    path.write_text("ok 1 2\nno 3 4\n")
    vectors = text.GloVe.from_file(str(path))
    assert text.ToVectors(vectors)(["no", "none"]).tolist() == [[3, 4], [0, 0]]
    assert text.ToVectors(vectors, [9, 9], True)("OK").tolist() == [1, 2]
    path.write_text("2gram-ok 1 2\n2gram-k#END# 3 4\n")
    assert text.ToVectors(text.CharNGram.from_file(str(path)))("ok").tolist() == [2, 3]


@pytest.mark.parametrize(
    "make, words",
    [
        (lambda: T.OneHot(3)(np.array(5)), r"within \[0, 3\), got 5"),
        (lambda: T.OneHot(0), "num_classes"),
        (lambda: T.TypeCast("float32")(np.array("a")), "must be numbers"),
        (lambda: T.PadEnd([3])(np.ones((2, 2))), "2 dimensions"),
        (lambda: T.Slice(9)(np.arange(3)), "inside of shape"),
        (lambda: T.Compose([]), "list of functions"),
        (lambda: text.ToNumber("int8")(["300"]), "must fit int8"),
        (lambda: text.ToNumber("int8")(["x"]), "must be a number"),
        (lambda: text.WhitespaceTokenizer()(np.array([1])), "must be one text"),
        (lambda: text.JiebaTokenizer("a", "b"), "not supported"),
        (lambda: text.Vocab.from_list(["a"], ["a"]), "words too"),
    ],
)
def test_what_is_wrong_is_said(make, words):
    with pytest.raises(ds.DataFault, match=words):
        make()
