"""Sources of pictures: folders of classes, CIFAR, MNIST and its relatives.

In: folders in the forms in which these sets are distributed.  Out: rows (image, label); images of folders are bytes until `Decode`.
"""

from __future__ import annotations

import gzip
from collections.abc import Iterable, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from jumar.dataset.cache import DatasetCache
from jumar.dataset.enums import Shuffle
from jumar.dataset.errors import DataFault, DataTypeFault, DataValueFault
from jumar.dataset.pipeline import Row
from jumar.dataset.samplers import Sampler
from jumar.dataset.sources import SourceDataset
from jumar.dataset.vision.coding import decode

EXTENSIONS = (".jpg", ".jpeg", ".png", ".bmp", ".gif", ".tif", ".tiff", ".webp")
Array = np.ndarray[Any, np.dtype[Any]]


def folder(who: str, path: Any) -> Path:
    """`path` as a folder that is there."""
    if not isinstance(path, (str, Path)):
        raise DataTypeFault(f"{who}: dataset_dir must be a path, got {type(path).__name__}")
    found = Path(path)
    if not found.is_dir():
        raise DataValueFault(f"{who}: dataset_dir must be a folder, got {str(path)!r}")
    return found


def usage_of(who: str, usage: str | None, known: Sequence[str]) -> str:
    found = "all" if usage is None else usage
    if found not in known:
        raise DataValueFault(f"{who}: usage must be one of {list(known)}, got {usage!r}")
    return found


class ImageFolderDataset(SourceDataset):
    """One folder for each class; labels count the folders in the order of their names, or follow `class_indexing`."""

    def __init__(
        self,
        dataset_dir: str,
        num_samples: int | None = None,
        num_parallel_workers: int | None = None,
        shuffle: bool | Shuffle | None = None,
        sampler: Sampler | Iterable[int] | None = None,
        extensions: list[str] | None = None,
        class_indexing: dict[str, int] | None = None,
        decode: bool = False,
        num_shards: int | None = None,
        shard_id: int | None = None,
        cache: DatasetCache | None = None,
        decrypt: Any = None,
    ) -> None:
        super().__init__(num_samples, num_parallel_workers, shuffle, sampler, num_shards, shard_id, cache)
        self.folder = folder("ImageFolderDataset", dataset_dir)
        self.decode, self.decrypt = decode, decrypt
        if class_indexing is not None and not isinstance(class_indexing, dict):
            raise DataTypeFault(
                f"ImageFolderDataset: class_indexing must be a dict of names to labels, got {type(class_indexing).__name__}"
            )
        self.class_indexing = class_indexing
        self.extensions = None if extensions is None else tuple(e.lower() for e in extensions)

    def columns(self) -> list[str]:
        return ["image", "label"]

    @cached_property
    def files(self) -> list[tuple[str, int]]:
        found: list[tuple[str, int]] = []
        for name, label in self.get_class_indexing().items():
            inside = sorted(p for p in (self.folder / name).rglob("*") if p.is_file())
            found += [(str(p), label) for p in inside if p.suffix.lower() in (self.extensions or EXTENSIONS)]
        if not found:
            raise DataFault(f"ImageFolderDataset: {self.folder} must have pictures in folders of classes, got none")
        return found

    def get_class_indexing(self) -> dict[str, Any]:
        inside = sorted(p.name for p in self.folder.iterdir() if p.is_dir())
        if self.class_indexing is None:
            return {name: i for i, name in enumerate(inside)}
        for name in self.class_indexing:
            if name not in inside:
                raise DataFault(f"ImageFolderDataset: class_indexing must name folders of {self.folder}, got {name!r}")
        return dict(self.class_indexing)

    def num_classes(self) -> int:
        return len(self.get_class_indexing())

    def labels(self) -> list[int]:
        return [label for _, label in self.files]

    def count(self) -> int:
        return len(self.files)

    def read(self, place: int) -> Row:
        path, label = self.files[place]
        data = self.decrypt(path, "") if self.decrypt else Path(path).read_bytes()
        image = np.frombuffer(data, np.uint8)
        return (decode(image, path) if self.decode else image.copy(), np.array(label, np.int32))


class _Packed(SourceDataset):
    """Pictures that lie in a few files: they are mapped, or read once where they are compressed."""

    def __init__(
        self,
        dataset_dir: str,
        usage: str | None = None,
        num_samples: int | None = None,
        num_parallel_workers: int | None = None,
        shuffle: bool | Shuffle | None = None,
        sampler: Sampler | Iterable[int] | None = None,
        num_shards: int | None = None,
        shard_id: int | None = None,
        cache: DatasetCache | None = None,
    ) -> None:
        super().__init__(num_samples, num_parallel_workers, shuffle, sampler, num_shards, shard_id, cache)
        self.folder = folder(type(self).__name__, dataset_dir)
        self.usage = usage_of(type(self).__name__, usage, self.usages)

    usages: ClassVar[tuple[str, ...]] = ("train", "test", "all")

    def columns(self) -> list[str]:
        return ["image", "label"]

    def workers(self) -> int:
        return 1  # a row is a copy out of memory


class Cifar10Dataset(_Packed):
    """`data_batch_1.bin` ... `test_batch.bin`: a label and 3 x 32 x 32 bytes each."""

    heads = 1
    files: ClassVar[dict[str, tuple[str, ...]]] = {
        "train": tuple(f"data_batch_{i}.bin" for i in range(1, 6)),
        "test": ("test_batch.bin",),
    }

    @cached_property
    def parts(self) -> list[Array]:
        chosen = [n for use, group in self.files.items() if self.usage in (use, "all") for n in group]
        found = [self.folder / n for n in chosen if (self.folder / n).is_file()]
        if not found:
            raise DataFault(
                f"{type(self).__name__}: {self.folder} must have {chosen[0]}, got no such file", hint="the binary version is read"
            )
        size = self.heads + 3072
        for path in found:
            if path.stat().st_size % size or not path.stat().st_size:
                raise DataFault(f"{type(self).__name__}: {path} must have records of {size} bytes, got {path.stat().st_size} bytes")
        return [np.memmap(p, np.uint8, "r").reshape(-1, size) for p in found]

    def count(self) -> int:
        return sum(len(p) for p in self.parts)

    def _record(self, place: int) -> Array:
        for part in self.parts:
            if place < len(part):
                return np.asarray(part[place])
            place -= len(part)
        raise IndexError(place)

    def read(self, place: int) -> Row:
        record = self._record(place)
        image = np.ascontiguousarray(record[self.heads :].reshape(3, 32, 32).transpose(1, 2, 0))
        return (image, *(np.array(record[i], np.uint32) for i in range(self.heads)))

    def labels(self) -> list[int]:
        return np.concatenate([p[:, self.heads - 1] for p in self.parts]).tolist()  # type: ignore[no-any-return]


class Cifar100Dataset(Cifar10Dataset):
    """`train.bin`, `test.bin`: coarse label, fine label, 3 x 32 x 32 bytes."""

    heads = 2
    files: ClassVar[dict[str, tuple[str, ...]]] = {"train": ("train.bin",), "test": ("test.bin",)}

    def columns(self) -> list[str]:
        return ["image", "coarse_label", "fine_label"]


def read_idx(path: Path, magic: int, dims: int) -> Array:
    """The array of an idx file (gzip or plain)."""
    if path.is_file():
        data: Any = np.memmap(path, np.uint8, "r")
    elif path.with_name(path.name + ".gz").is_file():
        data = np.frombuffer(gzip.decompress(path.with_name(path.name + ".gz").read_bytes()), np.uint8)
    else:
        raise DataFault(f"{path}: must be an idx file, got no such file")
    head = np.frombuffer(data[: 4 * (1 + dims)].tobytes(), ">i4")
    if len(head) < 1 + dims or head[0] != magic:
        raise DataFault(f"{path}: must be an idx file with magic number {magic}, got {head[:1].tolist()}")
    shape = tuple(int(n) for n in head[1:])
    body = data[4 * (1 + dims) :]
    if len(body) < int(np.prod(shape)):
        raise DataFault(f"{path}: must have {int(np.prod(shape))} bytes of data, got {len(body)}")
    return np.asarray(body[: int(np.prod(shape))]).reshape(shape)


class MnistDataset(_Packed):
    """idx files: images 28 x 28 x 1 uint8, labels uint32."""

    def _pairs(self) -> list[tuple[str, str]]:
        names = {"train": "train", "test": "t10k"}
        uses = ["test", "train"] if self.usage == "all" else [self.usage]
        return [(f"{names[u]}-images-idx3-ubyte", f"{names[u]}-labels-idx1-ubyte") for u in uses]

    def _prepare(self, images: Array) -> Array:
        return images

    @cached_property
    def parts(self) -> tuple[list[Array], Array]:
        images, labels = [], []
        for image_name, label_name in self._pairs():
            image, label = read_idx(self.folder / image_name, 2051, 3), read_idx(self.folder / label_name, 2049, 1)
            if len(image) != len(label):
                raise DataFault(f"{type(self).__name__}: {label_name} must have {len(image)} labels, got {len(label)}")
            images.append(image)
            labels.append(label)
        return images, np.concatenate(labels)

    def count(self) -> int:
        return len(self.parts[1])

    def read(self, place: int) -> Row:
        label = np.array(self.parts[1][place], np.uint32)
        for images in self.parts[0]:
            if place < len(images):
                return np.array(self._prepare(images[place]))[..., None], label
            place -= len(images)
        raise IndexError(place)

    def labels(self) -> list[int]:
        return self.parts[1].tolist()  # type: ignore[no-any-return]


class FashionMnistDataset(MnistDataset):
    """MNIST's form with clothes."""


class KMnistDataset(MnistDataset):
    """MNIST's form with Japanese characters."""


class EMnistDataset(MnistDataset):
    """`emnist-<name>-train-images-idx3-ubyte` and so on."""

    def __init__(
        self,
        dataset_dir: str,
        name: str,
        usage: str | None = None,
        num_samples: int | None = None,
        num_parallel_workers: int | None = None,
        shuffle: bool | Shuffle | None = None,
        sampler: Sampler | Iterable[int] | None = None,
        num_shards: int | None = None,
        shard_id: int | None = None,
        cache: DatasetCache | None = None,
    ) -> None:
        known = ("byclass", "bymerge", "balanced", "letters", "digits", "mnist")
        if name not in known:
            raise DataValueFault(f"EMnistDataset: name must be one of {list(known)}, got {name!r}")
        super().__init__(dataset_dir, usage, num_samples, num_parallel_workers, shuffle, sampler, num_shards, shard_id, cache)
        self.set_name = name

    def _pairs(self) -> list[tuple[str, str]]:
        uses = ["test", "train"] if self.usage == "all" else [self.usage]
        return [(f"emnist-{self.set_name}-{u}-images-idx3-ubyte", f"emnist-{self.set_name}-{u}-labels-idx1-ubyte") for u in uses]


class FakeImageDataset(SourceDataset):
    """Random pictures that follow from `base_seed`: for trying pipelines."""

    def __init__(
        self,
        num_images: int = 1000,
        image_size: tuple[int, ...] = (224, 224, 3),
        num_classes: int = 10,
        base_seed: int = 0,
        num_samples: int | None = None,
        num_parallel_workers: int | None = None,
        shuffle: bool | Shuffle | None = None,
        sampler: Sampler | Iterable[int] | None = None,
        num_shards: int | None = None,
        shard_id: int | None = None,
        cache: DatasetCache | None = None,
    ) -> None:
        super().__init__(num_samples, num_parallel_workers, shuffle, sampler, num_shards, shard_id, cache)
        self.images, self.image_size, self.classes, self.base_seed = num_images, tuple(image_size), num_classes, base_seed

    def columns(self) -> list[str]:
        return ["image", "label"]

    def count(self) -> int:
        return self.images

    def read(self, place: int) -> Row:
        draws = np.random.default_rng([self.base_seed, place])
        return draws.integers(0, 256, self.image_size, np.uint8), np.array(draws.integers(self.classes), np.uint32)
