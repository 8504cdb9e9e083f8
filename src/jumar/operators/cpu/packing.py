"""Packing: weights in the order in which the micro-kernel reads them.

In: constant arrays, NumPy.  Out: arrays for `Packed`.  A panel is a tile's width of columns: [panels, taps, depth, columns], the last
panel filled up with zeros.
"""

from __future__ import annotations

import numpy as np

from jumar.base import Array
from jumar.operators.cpu.microkernel import Tile


def pack_panels(w: Array, tile: Tile) -> Array:
    """w: [..., k, n] -> [..., panels, k, columns], in the tile's type.

    >>> from jumar.base import f32
    >>> pack_panels(np.ones((3, 5), np.float32), Tile(6, 2, 2, f32)).shape
    (2, 3, 4)
    """
    *batch, k, n = w.shape
    columns = tile.columns
    panels = -(-n // columns)
    packed = np.zeros((*batch, panels, k, columns), tile.dtype.numpy)
    whole = n // columns
    if whole:
        packed[..., :whole, :, :] = np.moveaxis(w[..., : whole * columns].reshape(*batch, k, whole, columns), -3, -2)
    if n % columns:
        packed[..., whole, :, : n % columns] = w[..., whole * columns :]
    return packed
