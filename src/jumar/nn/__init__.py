"""Networks: cells, layers, losses, optimisers and what wraps them for training."""

from jumar.nn.cell import Cell
from jumar.nn.layer.container import CellDict, CellList, SequentialCell

__all__ = ["Cell", "CellDict", "CellList", "SequentialCell"]
