"""Optimisers and learning-rate schedulers in PyTorch's manner."""

from jumar.experimental.optim import lr_scheduler
from jumar.experimental.optim.adam import Adam, Adamax, AdamW, NAdam, RAdam
from jumar.experimental.optim.optimizer import Optimizer
from jumar.experimental.optim.others import ASGD, SGD, Adadelta, Adagrad, RMSprop, Rprop

__all__ = [
    "ASGD", "Adadelta", "Adagrad", "Adam", "AdamW", "Adamax", "NAdam", "Optimizer", "RAdam", "RMSprop", "Rprop", "SGD", "lr_scheduler",
]  # fmt: skip
