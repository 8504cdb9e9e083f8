"""`vision` under its other name of MindSpore 1, with the names that were only there."""

from jumar.dataset.transforms import Compose, RandomApply, RandomChoice, RandomOrder
from jumar.dataset.vision import *  # noqa: F403
from jumar.dataset.vision import CutOut as Cutout
from jumar.dataset.vision import Grayscale as Grayscale
from jumar.dataset.vision import HWC2CHW as HWC2CHW
