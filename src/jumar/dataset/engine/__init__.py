"""The stages and samplers under the names of MindSpore's `dataset.engine`."""

from jumar.dataset.engine.datasets import (
    BatchDataset,
    ConcatDataset,
    Dataset,
    FilterDataset,
    MapDataset,
    ProjectDataset,
    RenameDataset,
    RepeatDataset,
    ShuffleDataset,
    SkipDataset,
    TakeDataset,
    ZipDataset,
)
from jumar.dataset.pipeline import Iterator
from jumar.dataset.samplers import BuiltinSampler, Sampler

__all__ = [
    "BatchDataset", "BuiltinSampler", "ConcatDataset", "Dataset", "FilterDataset", "Iterator", "MapDataset", "ProjectDataset", "RenameDataset",
    "RepeatDataset", "Sampler", "ShuffleDataset", "SkipDataset", "TakeDataset", "ZipDataset",
]  # fmt: skip
