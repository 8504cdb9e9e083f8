"""Resizing and warping of arrays, with OpenCV's fixed-point formulas so that pixels come out as MindSpore's.

In: [height, width, channels] of uint8 or float.  Out: the same type (geometry.py).
uint8 weights have 11 bits in a resize and 15 in a warp; positions of a warp have 5 bits after the point.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

from jumar.dataset.enums import Inter
from jumar.dataset.errors import DataTypeFault

Array = np.ndarray[Any, np.dtype[Any]]


def resize(image: Array, height: int, width: int, inter: Inter) -> Array:
    """`image` [h, w] or [h, w, c] as [height, width(, c)]."""
    if image.dtype not in (np.uint8, np.float32, np.float64, np.int16, np.uint16):
        raise DataTypeFault(f"Resize: image must be uint8, uint16, int16, float32 or float64, got {image.dtype}")
    h, w = image.shape[:2]
    if (h, w) == (height, width):
        return np.asarray(image.copy())
    if inter is Inter.NEAREST:
        rows = np.minimum((np.arange(height) * (h / height)).astype(np.int64), h - 1)
        columns = np.minimum((np.arange(width) * (w / width)).astype(np.int64), w - 1)
        return np.asarray(image[rows[:, None], columns])
    flat = image.reshape(h, w, -1)
    if inter is Inter.BILINEAR and image.dtype == np.uint8 and flat.shape[2] in (1, 3) and (opencv := fast()) is not None:
        return np.asarray(opencv.resize(image, (width, height), interpolation=opencv.INTER_LINEAR)).reshape(height, width, *image.shape[2:])
    return exact(image, height, width, inter)


@lru_cache(maxsize=1)
def fast() -> Any:
    """OpenCV, where it is installed and its bilinear resize gives exactly the pixels of the formulas here; else None."""
    try:
        import cv2  # noqa: PLC0415  optional: the same pixels, sooner
    except ImportError:
        return None
    for channels in (1, 3):
        image = np.random.default_rng(0).integers(0, 256, (37, 53, channels), np.uint8)
        for h, w in ((20, 30), (50, 80), (18, 26), (74, 106), (9, 100)):
            if not np.array_equal(
                cv2.resize(image, (w, h), interpolation=cv2.INTER_LINEAR).reshape(h, w, channels), exact(image, h, w, Inter.BILINEAR)
            ):
                return None
    return cv2


def exact(image: Array, height: int, width: int, inter: Inter) -> Array:
    """`resize` by the formulas of this file."""
    h, w = image.shape[:2]
    flat = image.reshape(h, w, -1)
    if inter is Inter.BILINEAR and h == 2 * height and w == 2 * width:
        inter = Inter.AREA  # OpenCV does so
    if inter is Inter.AREA and height <= h and width <= w:
        out = _area(flat, height, width)
    else:
        out = _interpolated(flat, height, width, inter)
    return out.reshape(height, width, *image.shape[2:])


def _taps(size: int, out: int, inter: Inter, *, rows: bool) -> tuple[Array, Array]:
    """(places [out, taps], weights [out, taps]) along one dimension.   rows: beyond the edge both taps are the edge, each with its weight."""
    scale = size / out
    x = (np.arange(out) + 0.5) * scale - 0.5
    if inter is Inter.AREA:  # enlarging by area: the neighbour shows only near the edge of a pixel
        first = np.floor(np.arange(out) * scale).astype(np.int64)
        part = ((np.arange(out) + 1) - (first + 1) / scale).astype(np.float32)
        part = np.where(part <= 0, 0, part - np.floor(part)).astype(np.float32)
    else:
        x = x.astype(np.float32)
        first = np.floor(x).astype(np.int64)
        part = (x - first).astype(np.float32)
    if inter is Inter.BICUBIC:
        a = np.float32(-0.75)
        p = part
        w0 = ((a * (p + 1) - 5 * a) * (p + 1) + 8 * a) * (p + 1) - 4 * a
        w1 = ((a + 2) * p - (a + 3)) * p * p + 1
        q = 1 - p
        w2 = ((a + 2) * q - (a + 3)) * q * q + 1
        weights = np.stack([w0, w1, w2, 1 - w0 - w1 - w2], 1)
        places = first[:, None] + np.arange(-1, 3)
        return np.clip(places, 0, size - 1), weights
    if not rows:
        part = np.where((first < 0) | (first >= size - 1), 0, part).astype(np.float32)
        first = np.clip(first, 0, size - 1)
    return np.clip(np.stack([first, first + 1], 1), 0, size - 1), np.stack([1 - part, part], 1)


def _interpolated(image: Array, height: int, width: int, inter: Inter) -> Array:
    places_y, weights_y = _taps(image.shape[0], height, inter, rows=True)
    places_x, weights_x = _taps(image.shape[1], width, inter, rows=False)
    needed = np.unique(places_y)  # rows that nothing looks at are not widened
    back = np.searchsorted(needed, places_y)
    channels = image.shape[2]
    source = image[needed].reshape(len(needed), -1)  # a row's channels side by side: long loops instead of loops over three
    columns = (places_x[..., None] * channels + np.arange(channels)).transpose(1, 0, 2).reshape(places_x.shape[1], -1)
    if image.dtype != np.uint8:
        kind = np.dtype(np.float64 if image.dtype == np.float64 else np.float32)
        wide = _weighted(source, columns, np.repeat(weights_x.astype(kind), channels, 0), kind)
        made = wide[back[:, 0]] * weights_y[:, 0, None].astype(kind)
        for t in range(1, back.shape[1]):
            made += wide[back[:, t]] * weights_y[:, t, None].astype(kind)
        return _rounded(made, image.dtype).reshape(height, width, channels)
    fixed_x = np.repeat(np.rint(weights_x * 2048).astype(np.int32), channels, 0)
    fixed_y = np.rint(weights_y * 2048).astype(np.int32)
    rows = _weighted(source, columns, fixed_x, np.dtype(np.int32))
    if fixed_y.shape[1] == 2:
        rows >>= 4
        low = rows[back[:, 0]]
        low *= fixed_y[:, 0, None]
        low >>= 16
        high = rows[back[:, 1]]
        high *= fixed_y[:, 1, None]
        high >>= 16
        low += high
        low += 2
        low >>= 2
        return low.astype(np.uint8).reshape(height, width, channels)
    total = rows[back[:, 0]] * fixed_y[:, 0, None]
    for t in range(1, 4):
        total += rows[back[:, t]] * fixed_y[:, t, None]
    return np.asarray(np.clip((total + (1 << 21)) >> 22, 0, 255).astype(np.uint8).reshape(height, width, channels))


def _weighted(source: Array, columns: Array, weights: Array, kind: np.dtype[Any]) -> Array:
    """Sum over taps of source[:, columns[tap]] * weights[:, tap]."""
    total = np.take(source, columns[0], 1).astype(kind)
    total *= weights[:, 0]
    for t in range(1, len(columns)):
        part = np.take(source, columns[t], 1).astype(kind)
        part *= weights[:, t]
        total += part
    return np.asarray(total)


def _area_taps(size: int, out: int) -> tuple[Array, Array]:
    """Places and float32 weights [out, taps] of the pixels that a shrunk pixel covers."""
    scale = size / out
    taps = int(np.ceil(scale)) + 2
    places = np.zeros((out, taps), np.int64)
    weights = np.zeros((out, taps), np.float32)
    for i in range(out):
        start, end = i * scale, i * scale + scale
        cell = min(scale, size - start)
        first, last = int(np.ceil(start)), min(int(np.floor(end)), size - 1)
        first = min(first, last)
        at = 0
        if first - start > 1e-3:
            places[i, at], weights[i, at] = first - 1, (first - start) / cell
            at += 1
        for p in range(first, last):
            places[i, at], weights[i, at] = p, 1.0 / cell
            at += 1
        if end - last > 1e-3:
            places[i, at], weights[i, at] = last, min(end - last, 1.0, cell) / cell
            at += 1
    return places, weights


def _area(image: Array, height: int, width: int) -> Array:
    h, w = image.shape[:2]
    if h % height == 0 and w % width == 0:
        by_y, by_x = h // height, w // width
        blocks = image.reshape(height, by_y, width, by_x, -1)
        if image.dtype == np.uint8:
            total = blocks.sum((1, 3), dtype=np.int64)
            if (by_y, by_x) == (2, 2):
                return np.asarray(((total + 2) >> 2).astype(np.uint8))
            return np.asarray(np.rint(total * np.float32(1 / (by_y * by_x))).astype(np.uint8))
        return _rounded(blocks.mean((1, 3)), image.dtype)
    places_y, weights_y = _area_taps(h, height)
    places_x, weights_x = _area_taps(w, width)
    source = image.astype(np.float32)
    wide: Any = sum(source[:, places_x[:, t]] * weights_x[:, t, None] for t in range(places_x.shape[1]))
    made = sum(wide[places_y[:, t]] * weights_y[:, t, None, None] for t in range(places_y.shape[1]))
    return _rounded(np.asarray(made), image.dtype)


def _rounded(values: Array, kind: np.dtype[Any]) -> Array:
    if kind.kind == "f":
        return values.astype(kind)
    info = np.iinfo(kind)
    return np.clip(np.rint(values), info.min, info.max).astype(kind)


def warp(image: Array, inverse: Array, height: int, width: int, inter: Inter, fill: Any) -> Array:
    """Pixel (x, y) of the result is the pixel `inverse @ (x, y, 1)` of the image; outside lies `fill`.   inverse: [2, 3] or [3, 3]"""
    flat = image.reshape(*image.shape[:2], -1)
    x, y = np.arange(width), np.arange(height)
    if inverse.shape == (2, 3):  # OpenCV's steps: 10 bits after the point while adding, 5 of them kept
        bits = 10
        half = 1 << (bits - 1) if inter is Inter.NEAREST else 1 << (bits - 6)
        dx, dy = (np.rint(inverse[i, 0] * x * 1024).astype(np.int64) for i in (0, 1))
        x0, y0 = (np.rint((inverse[i, 1] * y + inverse[i, 2]) * 1024).astype(np.int64) + half for i in (0, 1))
        shift = bits if inter is Inter.NEAREST else bits - 5
        px, py = (dx[None] + x0[:, None]) >> shift, (dy[None] + y0[:, None]) >> shift
    else:
        grid = inverse @ np.stack([np.tile(x, height), np.repeat(y, width), np.ones(height * width)])
        with np.errstate(divide="ignore", invalid="ignore"):
            scale = np.where(grid[2] != 0, (1.0 if inter is Inter.NEAREST else 32.0) / grid[2], 0)
        px, py = (np.rint(np.clip(grid[i] * scale, -(2**31), 2**31 - 1)).astype(np.int64).reshape(height, width) for i in (0, 1))
    value = np.zeros(flat.shape[2])
    value[:] = fill if np.size(fill) in (1, flat.shape[2]) else np.resize(np.asarray(fill), flat.shape[2])
    if inter is Inter.NEAREST:
        out = _at(flat, px, py, value)
    elif inter in (Inter.BILINEAR, Inter.AREA, Inter.BICUBIC):
        out = _blended(flat, px, py, value, cubic=inter is Inter.BICUBIC)
    else:
        raise DataTypeFault(f"warp: interpolation must be NEAREST, BILINEAR, AREA or BICUBIC, got {inter.name}")
    return out.astype(image.dtype).reshape(height, width, *image.shape[2:])


def _at(image: Array, px: Array, py: Array, fill: Array) -> Array:
    inside = (px >= 0) & (px < image.shape[1]) & (py >= 0) & (py < image.shape[0])
    found = image[np.where(inside, py, 0), np.where(inside, px, 0)].astype(np.float64 if image.dtype.kind == "f" else np.int64)
    found[~inside] = fill
    return found


def _blended(image: Array, px: Array, py: Array, fill: Array, *, cubic: bool) -> Array:
    x, y = px >> 5, py >> 5
    fx, fy = (px & 31) / 32.0, (py & 31) / 32.0
    wx, wy = (_cubic(fx), _cubic(fy)) if cubic else ([1 - fx, fx], [1 - fy, fy])
    first = -1 if cubic else 0
    fixed = image.dtype == np.uint8
    total: Any = 0
    for i, a in enumerate(wy):
        for j, b in enumerate(wx):
            weight = np.rint(a * b * 32768).astype(np.int64) if fixed else a * b
            total = total + _at(image, x + j + first, y + i + first, fill) * weight[..., None]
    return np.asarray(np.clip((total + (1 << 14)) >> 15, 0, 255) if fixed else total)


def _cubic(p: Array) -> list[Array]:
    a, q = -0.75, 1 - p
    w0 = ((a * (p + 1) - 5 * a) * (p + 1) + 8 * a) * (p + 1) - 4 * a
    w1 = ((a + 2) * p - (a + 3)) * p * p + 1
    w2 = ((a + 2) * q - (a + 3)) * q * q + 1
    return [w0, w1, w2, 1 - w0 - w1 - w2]
