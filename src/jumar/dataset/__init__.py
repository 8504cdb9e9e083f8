"""Data pipelines under MindSpore's names: real files in, batches out, the same numbers for any number of workers, resumable at any step.

In: files, arrays, Python objects.  Out: Tensors or arrays, row by row.  `dataset.py` has the stages' common part, `pipeline.py` the walk.
"""

from jumar.dataset import audio, config, text, transforms, vision
from jumar.dataset.batching import BatchInfo
from jumar.dataset.cache import DatasetCache
from jumar.dataset.callback import CBRunParam, DSCallback, WaitedDSCallback
from jumar.dataset.config import ErrorSamplesMode
from jumar.dataset.dataset import Dataset
from jumar.dataset.enums import Shuffle
from jumar.dataset.errors import DataFault, DataTypeFault, DataValueFault, ExtraMissing, RowFault, WorkerLost
from jumar.dataset.images import (
    Cifar10Dataset,
    Cifar100Dataset,
    EMnistDataset,
    FakeImageDataset,
    FashionMnistDataset,
    ImageFolderDataset,
    KMnistDataset,
    MnistDataset,
)
from jumar.dataset.mindrecord import MindDataset
from jumar.dataset.order import row_generator
from jumar.dataset.pipeline import Iterator, Position
from jumar.dataset.report import Report
from jumar.dataset.samplers import (
    BuiltinSampler,
    DistributedSampler,
    IterSampler,
    PKSampler,
    RandomSampler,
    Sampler,
    SequentialSampler,
    SubsetRandomSampler,
    SubsetSampler,
    WeightedRandomSampler,
)
from jumar.dataset.schema import Schema
from jumar.dataset.sources import GeneratorDataset, NumpySlicesDataset, PaddedDataset, RandomDataset
from jumar.dataset.stages import zip_datasets as zip
from jumar.dataset.texts import CSVDataset, TextFileDataset

_MISSING = frozenset({
    "AGNewsDataset", "AmazonReviewDataset", "CLUEDataset", "CMUArcticDataset", "Caltech101Dataset", "Caltech256Dataset", "CelebADataset",
    "CityscapesDataset", "CoNLL2000Dataset", "CocoDataset", "DBpediaDataset", "DIV2KDataset", "EnWik9Dataset", "FlickrDataset",
    "Flowers102Dataset", "Food101Dataset", "GTZANDataset", "IMDBDataset", "IWSLT2016Dataset", "IWSLT2017Dataset", "KITTIDataset",
    "LFWDataset", "LJSpeechDataset", "LSUNDataset", "LibriTTSDataset", "ManifestDataset", "Multi30kDataset", "OBSMindDataset",
    "OmniglotDataset", "PennTreebankDataset", "PhotoTourDataset", "Places365Dataset", "QMnistDataset", "RenderedSST2Dataset", "SBDataset",
    "SBUDataset", "SQuADDataset", "SST2Dataset", "STL10Dataset", "SUN397Dataset", "SVHNDataset", "SemeionDataset", "SogouNewsDataset",
    "SpeechCommandsDataset", "TFRecordDataset", "TedliumDataset", "UDPOSDataset", "USPSDataset", "VOCDataset", "WIDERFaceDataset",
    "WikiTextDataset", "YahooAnswersDataset", "YelpReviewDataset", "YesNoDataset",
})  # fmt: skip


def __getattr__(name: str) -> type:
    """Sources that MindSpore has and this room has not: a script may import them; making one is the error."""
    if name not in _MISSING:
        raise AttributeError(f"module 'jumar.dataset' has no attribute {name!r}")

    def refuse(self: object, *args: object, **kwargs: object) -> None:
        raise DataFault(
            f"{name}: is not supported", hint="GeneratorDataset takes any object with __getitem__ and __len__ that reads the files"
        )

    return type(name, (Dataset,), {"__init__": refuse})


__all__ = [
    "BatchInfo", "BuiltinSampler", "CBRunParam", "CSVDataset", "Cifar100Dataset", "Cifar10Dataset", "DSCallback", "DataFault", "DataTypeFault",
    "DataValueFault", "Dataset", "DatasetCache", "DistributedSampler", "EMnistDataset", "ErrorSamplesMode", "ExtraMissing", "FakeImageDataset",
    "FashionMnistDataset", "GeneratorDataset", "ImageFolderDataset", "IterSampler", "Iterator", "KMnistDataset", "MindDataset", "MnistDataset",
    "NumpySlicesDataset", "PKSampler", "PaddedDataset", "Position", "RandomDataset", "RandomSampler", "Report", "RowFault", "Sampler", "Schema",
    "SequentialSampler", "Shuffle", "SubsetRandomSampler", "SubsetSampler", "TextFileDataset", "WaitedDSCallback", "WeightedRandomSampler",
    "WorkerLost", "audio", "config", "row_generator", "text", "transforms", "vision", "zip",
]  # fmt: skip
