"""What every rival trains: weights from names, batches from seeds, both by NumPy, so that all begin alike.

In: the name of a row.  Out: `Task` (how it is trained) with `batches()`; `value(name, shape)`, the first value of a parameter under PyTorch's name.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass

import numpy as np

Batch = tuple[np.ndarray, np.ndarray]


@dataclass(frozen=True)
class Task:
    """One row of bench/train.py."""

    name: str
    model: str  # mlp lenet lstm resnet50 gpt bert
    batch: int
    optimizer: str  # adam momentum adamw
    rate: float
    classes: int
    size: int = 0  # of the image, or length of the sequence
    title: str = ""

    def batches(self, count: int = 4) -> list[Batch]:
        """Inputs and labels of `count` steps; the steps go round them."""
        rng = np.random.RandomState(zlib.crc32(self.name.encode()) & 0x7FFFFFFF)
        return [self._batch(rng) for _ in range(count)]

    def _batch(self, rng: np.random.RandomState) -> Batch:
        labels = rng.randint(0, self.classes, self.batch).astype(np.int32)
        match self.model:
            case "mlp":
                return rng.standard_normal((self.batch, 784)).astype(np.float32), labels
            case "lenet":
                return rng.standard_normal((self.batch, 1, 32, 32)).astype(np.float32), labels
            case "resnet50":
                return rng.standard_normal((self.batch, 3, self.size, self.size)).astype(np.float32), labels
            case "lstm":
                return rng.randint(0, VOCABULARY["lstm"], (self.batch, self.size)).astype(np.int32), labels
            case "gpt":
                tokens = rng.randint(0, VOCABULARY["gpt"], (self.batch, self.size + 1)).astype(np.int32)
                return np.ascontiguousarray(tokens[:, :-1]), np.ascontiguousarray(tokens[:, 1:])
            case "bert":
                return rng.randint(0, VOCABULARY["bert"], (self.batch, self.size)).astype(np.int32), labels
        raise KeyError(self.model)


@dataclass(frozen=True)
class Transformer:
    """Sizes of a transformer."""

    layers: int
    width: int
    heads: int
    length: int
    vocabulary: int


VOCABULARY = {"lstm": 10000, "gpt": 65, "bert": 30522}
TRANSFORMERS = {
    "gpt": Transformer(6, 384, 6, 256, VOCABULARY["gpt"]),
    "bert": Transformer(12, 768, 12, 512, VOCABULARY["bert"]),
    "gpt-tiny": Transformer(2, 32, 2, 16, VOCABULARY["gpt"]),
    "bert-tiny": Transformer(2, 32, 2, 16, VOCABULARY["bert"]),
}
LSTM_WIDTH, LSTM_HIDDEN = 128, 256
TASKS = {
    task.name: task
    for task in (
        Task("mlp", "mlp", 64, "adam", 1e-3, 10, title="MLP 784-512-512-10 b64, Adam"),
        Task("lenet", "lenet", 32, "momentum", 0.01, 10, title="LeNet b32, momentum"),
        Task("lstm", "lstm", 32, "adam", 1e-3, 2, size=64, title="LSTM classifier 128-256, 64 steps, b32, Adam"),
        Task("resnet50-32-b32", "resnet50", 32, "momentum", 0.01, 10, size=32, title="ResNet-50 32x32 b32, momentum"),
        Task("resnet50-32-b64", "resnet50", 64, "momentum", 0.01, 10, size=32, title="ResNet-50 32x32 b64, momentum"),
        Task("resnet50-224-b8", "resnet50", 8, "momentum", 0.01, 1000, size=224, title="ResNet-50 224x224 b8, momentum"),
        Task("gpt", "gpt", 8, "adamw", 3e-4, 65, size=256, title="GPT 6 layers x 384, seq 256, b8, AdamW"),
        Task("bert", "bert", 4, "adamw", 2e-5, 2, size=128, title="BERT-base b4 seq 128, AdamW"),
        # for checks of the bench itself
        Task("resnet50-tiny", "resnet50", 16, "momentum", 0.01, 10, size=32, title="ResNet-50 32x32 b16, momentum"),
        Task("gpt-tiny", "gpt", 2, "adamw", 3e-4, 65, size=16, title="GPT 2 layers x 32, seq 16, b2, AdamW"),
        Task("bert-tiny", "bert", 2, "adamw", 3e-4, 2, size=16, title="BERT 2 layers x 32, seq 16, b2, AdamW"),
    )
}
ROWS = tuple(name for name in TASKS if not name.endswith("-tiny"))


def transformer(task: Task) -> Transformer:
    return TRANSFORMERS[task.name if task.name.endswith("-tiny") else task.model]


def value(name: str, shape: tuple[int, ...]) -> np.ndarray:
    """The first value of a parameter; it depends on its name (as PyTorch has it) and its shape."""
    last = name.rsplit(".", 1)[-1]
    if last in ("bias", "running_mean"):
        return np.zeros(shape, np.float32)
    if name.endswith("bn3.weight"):  # the last of a branch of ResNet-50: with 1, rounding alone grows to percents within a few steps
        return np.full(shape, 0.2, np.float32)
    if last == "running_var" or (last == "weight" and len(shape) == 1):
        return np.ones(shape, np.float32)
    rng = np.random.RandomState(zlib.crc32(name.encode()) & 0x7FFFFFFF)
    if "embedding" in name:
        return (0.02 * rng.standard_normal(shape)).astype(np.float32)
    gain = 1.4 if len(shape) == 4 else 1.0  # through ReLU
    if len(shape) == 1:
        return (0.02 * rng.standard_normal(shape)).astype(np.float32)
    return (gain * rng.standard_normal(shape) / np.sqrt(np.prod(shape[1:]))).astype(np.float32)
