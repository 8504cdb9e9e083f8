"""The stages under the names of MindSpore's `dataset.engine.datasets`."""

from jumar.dataset.batching import BatchDataset, BucketBatchByLengthDataset, PaddedBatchDataset
from jumar.dataset.dataset import Dataset
from jumar.dataset.mapping import MapDataset
from jumar.dataset.stages import (
    ConcatDataset,
    FilterDataset,
    ProjectDataset,
    RenameDataset,
    RepeatDataset,
    ShuffleDataset,
    SkipDataset,
    TakeDataset,
    ZipDataset,
)

__all__ = [
    "BatchDataset", "BucketBatchByLengthDataset", "ConcatDataset", "Dataset", "FilterDataset", "MapDataset", "PaddedBatchDataset", "ProjectDataset",
    "RenameDataset", "RepeatDataset", "ShuffleDataset", "SkipDataset", "TakeDataset", "ZipDataset",
]  # fmt: skip
