"""Operations that change colours: brightness, contrast, saturation, hue, sharpness, equalize, posterize, blur and so on.

In: RGB pictures (channels last).  Out: pictures of the same size and type.  Arrays are worked on here, PIL images by Pillow.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from jumar.dataset.enums import ConvertMode
from jumar.dataset.errors import DataTypeFault, DataValueFault, check_bool, check_int, check_number
from jumar.dataset.vision.base import Array, ImageOp, clipped, grey, need_rgb
from jumar.dataset.vision.coding import pil


def _pillow(name: str) -> Any:
    """A module of Pillow beside `Image`."""
    pil()
    from PIL import ImageEnhance, ImageFilter, ImageOps  # noqa: PLC0415  optional

    return {"enhance": ImageEnhance, "filter": ImageFilter, "ops": ImageOps}[name]


class AdjustBrightness(ImageOp):
    """Times a factor."""

    def __init__(self, brightness_factor: float) -> None:
        self.factor = check_number("AdjustBrightness", "brightness_factor", brightness_factor, 0.0)

    def on_array(self, image: Array) -> Array:
        return clipped(need_rgb("AdjustBrightness", image).astype(np.float32) * np.float32(self.factor), image.dtype)

    def on_pil(self, image: Any) -> Any:
        return _pillow("enhance").Brightness(image).enhance(self.factor)


class AdjustContrast(ImageOp):
    """Towards its mean grey (0), or away from it."""

    def __init__(self, contrast_factor: float) -> None:
        self.factor = check_number("AdjustContrast", "contrast_factor", contrast_factor, 0.0)

    def on_array(self, image: Array) -> Array:
        level = float(np.floor(grey(need_rgb("AdjustContrast", image)).mean() + (0.5 if image.dtype == np.uint8 else 0)))
        if image.dtype.kind == "f":
            level = float(grey(image).mean())
        return clipped(image.astype(np.float32) * np.float32(self.factor) + np.float32(level * (1 - self.factor)), image.dtype)

    def on_pil(self, image: Any) -> Any:
        return _pillow("enhance").Contrast(image).enhance(self.factor)


class AdjustSaturation(ImageOp):
    """Towards its greys (0), or away from them."""

    def __init__(self, saturation_factor: float) -> None:
        self.factor = check_number("AdjustSaturation", "saturation_factor", saturation_factor, 0.0)

    def on_array(self, image: Array) -> Array:
        level = grey(need_rgb("AdjustSaturation", image)).astype(np.float32)[..., None]
        return clipped(image.astype(np.float32) * np.float32(self.factor) + level * np.float32(1 - self.factor), image.dtype)

    def on_pil(self, image: Any) -> Any:
        return _pillow("enhance").Color(image).enhance(self.factor)


def rgb_to_hsv(image: Array) -> Array:
    """Hue 0 .. 1, saturation 0 .. 1, value as it is; channels last."""
    rgb = image.astype(np.float64)
    most, least = rgb.max(-1), rgb.min(-1)
    span = most - least
    safe = np.where(span == 0, 1, span)
    r, g, b = ((most - rgb[..., i]) / safe for i in range(3))
    hue = np.where(rgb[..., 0] == most, b - g, np.where(rgb[..., 1] == most, 2 + r - b, 4 + g - r))
    hue = np.where(span == 0, 0, (hue / 6) % 1.0)
    return np.stack([hue, np.where(most == 0, 0, span / np.where(most == 0, 1, most)), most], -1)


def hsv_to_rgb(image: Array) -> Array:
    """The way back from `rgb_to_hsv`."""
    h, s, v = (image[..., i].astype(np.float64) for i in range(3))
    sector = np.floor(h * 6)
    f = h * 6 - sector
    p, q, t = v * (1 - s), v * (1 - s * f), v * (1 - s * (1 - f))
    which = (sector.astype(np.int64) % 6)[..., None]
    table = [(v, t, p), (q, v, p), (p, v, t), (p, q, v), (t, p, v), (v, p, q)]
    return np.select([which == i for i in range(6)], [np.stack(c, -1) for c in table])


def _divisions(top: int, parts: float) -> Array:
    """(top << 12) / (parts * i) for i of 0 .. 255: OpenCV's division by table."""
    return np.concatenate([[0], np.rint((top << 12) / (parts * np.arange(1, 256)))]).astype(np.int64)


def _hsv_bytes(image: Array) -> Array:
    """Hue, saturation and value of uint8 pixels, each 0 .. 255."""
    r, g, b = (image[..., i].astype(np.int64) for i in range(3))
    most, least = np.maximum(np.maximum(r, g), b), np.minimum(np.minimum(r, g), b)
    span = most - least
    sat = (span * _divisions(255, 1.0)[most] + 2048) >> 12
    hue = np.where(most == r, g - b, np.where(most == g, b - r + 2 * span, r - g + 4 * span))
    hue = (hue * _divisions(256, 6.0)[span] + 2048) >> 12
    return np.stack([hue + np.where(hue < 0, 256, 0), sat, most], -1)


def _rgb_bytes(hsv: Array) -> Array:
    """The way back from `_hsv_bytes`, in float32 as OpenCV does it."""
    h = hsv[..., 0].astype(np.float32) * np.float32(6 / 255.0)
    s, v = (hsv[..., i].astype(np.float32) * np.float32(1 / 255.0) for i in (1, 2))
    sector = np.floor(h).astype(np.int64)
    f = h - sector.astype(np.float32)
    p, q, t = v * (1 - s), v * (1 - s * f), v * (1 - s * (1 - f))
    table = [(v, t, p), (q, v, p), (p, v, t), (p, q, v), (t, p, v), (v, p, q)]
    rgb = np.select([(sector % 6 == i)[..., None] for i in range(6)], [np.stack(c, -1) for c in table])
    return np.asarray(np.clip(np.rint(rgb * np.float32(255)), 0, 255).astype(np.uint8))


class AdjustHue(ImageOp):
    """Hues turned by a part of the circle, -0.5 .. 0.5."""

    def __init__(self, hue_factor: float) -> None:
        self.factor = check_number("AdjustHue", "hue_factor", hue_factor, -0.5, 0.5)

    def on_array(self, image: Array) -> Array:
        need_rgb("AdjustHue", image)
        if image.dtype == np.uint8:
            hsv = _hsv_bytes(image)
            hsv[..., 0] = (hsv[..., 0] + int(self.factor * 255)) % 256
            return _rgb_bytes(hsv)
        top = 255.0 if image.dtype.kind in "ui" else 1.0
        hsv = rgb_to_hsv(image / top)
        hsv[..., 0] = (hsv[..., 0] + self.factor) % 1.0
        return clipped(hsv_to_rgb(hsv) * top, image.dtype)

    def on_pil(self, image: Any) -> Any:
        if image.mode in ("L", "1", "I", "F"):
            return image
        h, s, v = image.convert("HSV").split()
        turned = np.asarray(h) + np.array(int(self.factor * 255) % 256, np.uint8)
        return pil().merge("HSV", (pil().fromarray(turned.astype(np.uint8), "L"), s, v)).convert(image.mode)


class AdjustSharpness(ImageOp):
    """Towards its smoothed form (0), or away from it; the edge pixels stay."""

    arrays_only = True

    def __init__(self, sharpness_factor: float) -> None:
        self.factor = check_number("AdjustSharpness", "sharpness_factor", sharpness_factor, 0.0)

    def on_array(self, image: Array) -> Array:
        source = image.astype(np.float32)
        smooth = source.copy()
        if image.shape[0] > 2 and image.shape[1] > 2:
            total = sum(source[1 + i : source.shape[0] - 1 + i, 1 + j : source.shape[1] - 1 + j] for i in (-1, 0, 1) for j in (-1, 0, 1))
            smooth[1:-1, 1:-1] = (total + 4 * source[1:-1, 1:-1]) / np.float32(13)
        if image.dtype.kind in "ui":
            smooth = np.rint(smooth)
        return clipped(source * np.float32(self.factor) + smooth * np.float32(1 - self.factor), image.dtype)

    def on_pil(self, image: Any) -> Any:
        return _pillow("enhance").Sharpness(image).enhance(self.factor)


class AdjustGamma(ImageOp):
    """gain * image ** gamma, on values of 0 .. 1."""

    def __init__(self, gamma: float, gain: float = 1) -> None:
        self.gamma, self.gain = check_number("AdjustGamma", "gamma", gamma, 0.0), check_number("AdjustGamma", "gain", gain)

    def on_array(self, image: Array) -> Array:
        if image.dtype.kind == "f":
            return np.asarray(
                np.clip(np.power(image.astype(np.float32), np.float32(self.gamma)) * np.float32(self.gain), 0, 1).astype(image.dtype)
            )
        table = np.floor(np.clip((np.arange(256) / 255.0) ** self.gamma * self.gain * 255.999, 0, 255))
        return table.astype(np.uint8)[image]

    def on_pil(self, image: Any) -> Any:
        table = [int((255 + 1 - 1e-3) * self.gain * pow(i / 255.0, self.gamma)) for i in range(256)]
        return image.point([min(255, t) for t in table] * len(image.getbands()))


def _channels(image: Array, table_of: Callable[[Array], Array]) -> Array:
    """Each channel through its own table of 256 values."""
    if image.dtype != np.uint8:
        raise DataTypeFault(f"vision: image must be uint8, got {image.dtype}")
    flat = image.reshape(*image.shape[:2], -1)
    out = np.stack([table_of(flat[..., c])[flat[..., c]] for c in range(flat.shape[2])], -1)
    return np.asarray(out.reshape(image.shape).astype(np.uint8))


class AutoContrast(ImageOp):
    """Each channel stretched to 0 .. 255, without the `cutoff` percent of its darkest and brightest pixels and the `ignore` values."""

    def __init__(self, cutoff: float = 0.0, ignore: Any = None) -> None:
        self.cutoff = check_number("AutoContrast", "cutoff", cutoff, 0.0, 50.0)
        self.ignore = [] if ignore is None else [check_int("AutoContrast", "ignore", i, 0, 255) for i in np.atleast_1d(ignore).tolist()]

    def _table(self, channel: Array) -> Array:
        counts = np.bincount(channel.reshape(-1), minlength=256)
        counts[self.ignore] = 0
        total = int(counts.sum())
        same = np.arange(256)
        if not total:
            return same
        if self.cutoff:
            for order in (range(256), range(255, -1, -1)):
                cut = int(total * self.cutoff // 100)
                for i in order:
                    gone = min(cut, int(counts[i]))
                    counts[i] -= gone
                    cut -= gone
                    if not cut:
                        break
        used = np.flatnonzero(counts)
        if not len(used) or used[-1] <= used[0]:
            return same
        scale = np.float32(255.0) / np.float32(used[-1] - used[0])
        return np.asarray(np.clip(np.trunc(same.astype(np.float32) * scale + np.float32(-used[0]) * scale), 0, 255).astype(np.int64))

    def on_array(self, image: Array) -> Array:
        return _channels(image, self._table)

    def on_pil(self, image: Any) -> Any:
        return _pillow("ops").autocontrast(image, self.cutoff, self.ignore or None)


class Equalize(ImageOp):
    """Each channel with its values spread evenly."""

    def _table(self, channel: Array) -> Array:
        counts = np.bincount(channel.reshape(-1), minlength=256)
        lowest = int(np.flatnonzero(counts)[0])
        if counts[lowest] == channel.size:
            return np.arange(256)
        scale = np.float32(255) / np.float32(channel.size - counts[lowest])
        sums = np.cumsum(np.where(np.arange(256) > lowest, counts, 0)).astype(np.float32)
        return np.asarray(np.clip(np.rint(sums * scale), 0, 255))

    def on_array(self, image: Array) -> Array:
        return _channels(image, self._table)

    def on_pil(self, image: Any) -> Any:
        return _pillow("ops").equalize(image)


class Invert(ImageOp):
    """255 - image."""

    def on_array(self, image: Array) -> Array:
        return (255 - image).astype(image.dtype)

    def on_pil(self, image: Any) -> Any:
        return _pillow("ops").invert(image)


class Posterize(ImageOp):
    """Only the first `bits` bits of each value."""

    arrays_only = True

    def __init__(self, bits: int) -> None:
        self.bits = check_int("Posterize", "bits", bits, 0, 8)

    def on_array(self, image: Array) -> Array:
        if image.dtype != np.uint8:
            raise DataTypeFault(f"Posterize: image must be uint8, got {image.dtype}")
        return np.asarray(image & np.uint8(256 - (1 << (8 - self.bits)) & 255))

    def on_pil(self, image: Any) -> Any:
        return _pillow("ops").posterize(image, self.bits) if self.bits else image.point([0] * 256 * len(image.getbands()))


class Solarize(ImageOp):
    """Values within a range inverted; a number stands for (number, 255)."""

    arrays_only = True

    def __init__(self, threshold: Any) -> None:
        both = (threshold, 255) if isinstance(threshold, (int, float)) else threshold
        if not isinstance(both, (tuple, list)) or len(both) != 2 or both[0] > both[1]:
            raise DataTypeFault(f"Solarize: threshold must be a number or (least, most), got {threshold!r}")
        self.low, self.high = (check_number("Solarize", "threshold", t, 0, 255) for t in both)
        if self.low == self.high:
            self.high = 255.0  # MindSpore: a range of one value is a lower limit

    def on_array(self, image: Array) -> Array:
        return np.where((image >= self.low) & (image <= self.high), 255 - image, image).astype(image.dtype)

    def on_pil(self, image: Any) -> Any:
        table = [255 - i if self.low <= i <= self.high else i for i in range(256)]
        return image.point(table * len(image.getbands()))


class Grayscale(ImageOp):
    """Grey, as one channel or as three that are alike."""

    def __init__(self, num_output_channels: int = 1) -> None:
        if num_output_channels not in (1, 3):
            raise DataValueFault(f"Grayscale: num_output_channels must be 1 or 3, got {num_output_channels!r}")
        self.channels = num_output_channels

    def on_array(self, image: Array) -> Array:
        one = grey(need_rgb("Grayscale", image))
        return one if self.channels == 1 else np.repeat(one[..., None], 3, -1)

    def on_pil(self, image: Any) -> Any:
        one = image.convert("L")
        return one if self.channels == 1 else pil().merge("RGB", (one, one, one))


def gauss_kernel(size: int, sigma: float) -> Array:
    """Weights of a Gaussian; the small ones with default sigma are OpenCV's fixed tables."""
    tables = {
        1: [1.0],
        3: [0.25, 0.5, 0.25],
        5: [0.0625, 0.25, 0.375, 0.25, 0.0625],
        7: [0.03125, 0.109375, 0.21875, 0.28125, 0.21875, 0.109375, 0.03125],
    }
    if sigma <= 0 and size in tables:
        return np.array(tables[size])
    sigma = sigma if sigma > 0 else 0.3 * ((size - 1) * 0.5 - 1) + 0.8
    x = np.arange(size) - (size - 1) * 0.5
    w = np.exp(-0.5 / sigma**2 * x * x)
    return np.asarray(w / w.sum())


class GaussianBlur(ImageOp):
    """Smoothed by a Gaussian of odd size (x, y); the border mirrors the picture."""

    arrays_only = True

    def __init__(self, kernel_size: Any, sigma: Any = None) -> None:
        kernels = [kernel_size] * 2 if isinstance(kernel_size, int) else list(kernel_size)
        self.kernel = [check_int("GaussianBlur", "kernel_size", k, 1) for k in (kernels * 2 if len(kernels) == 1 else kernels)]
        if any(k % 2 == 0 for k in self.kernel):
            raise DataValueFault(f"GaussianBlur: kernel_size must be odd, got {kernel_size!r}")
        if sigma is None:
            # the sigma that goes with the width, for both directions as in MindSpore
            self.sigma = [self.kernel[0] * 0.15 + 0.35] * 2
        else:
            sigmas = [sigma] * 2 if isinstance(sigma, (int, float)) else list(sigma)
            self.sigma = [check_number("GaussianBlur", "sigma", s, 0.0) for s in (sigmas * 2 if len(sigmas) == 1 else sigmas)]

    def on_array(self, image: Array) -> Array:
        kx, ky = (gauss_kernel(k, s) for k, s in zip(self.kernel, self.sigma))
        if image.dtype == np.uint8:  # 8 bits after the point, whose errors are carried to the middle
            kx, ky = (_fixed(k) for k in (kx, ky))
        x = _along(_along(image.astype(np.float64), kx, 1), ky, 0)
        return np.clip(np.floor(x + 0.5), 0, 255).astype(np.uint8) if image.dtype == np.uint8 else clipped(x, image.dtype)

    def on_pil(self, image: Any) -> Any:
        return pil().fromarray(self.on_array(np.asarray(image)))


def _fixed(kernel: Array) -> Array:
    """Weights in steps of 1/256 that add up to one: rounding errors are carried from the ends inwards."""
    out = np.zeros_like(kernel)
    carried, half = 0.0, len(kernel) // 2
    for i in range(half):
        wanted = kernel[i] * 256 + carried
        out[i] = out[-1 - i] = np.rint(wanted)
        carried = wanted - out[i]
    out[half] = 256 - 2 * out[:half].sum()
    return np.asarray(out / 256)


def _along(x: Array, kernel: Array, axis: int) -> Array:
    half = len(kernel) // 2
    widths = [(0, 0)] * x.ndim
    widths[axis] = (half, half)
    wide = np.pad(x, widths, "reflect") if x.shape[axis] > half else np.pad(x, widths, "symmetric")
    return np.asarray(sum(np.take(wide, range(i, i + x.shape[axis]), axis) * w for i, w in enumerate(kernel)))


class ConvertColor(ImageOp):
    """Another order of channels, with or without transparency, or grey."""

    def __init__(self, convert_mode: ConvertMode) -> None:
        if not isinstance(convert_mode, ConvertMode):
            raise DataTypeFault(f"ConvertColor: convert_mode must be a ConvertMode, got {convert_mode!r}")
        self.mode = convert_mode

    def on_array(self, image: Array) -> Array:
        m = ConvertMode
        match self.mode:
            case m.COLOR_BGR2BGRA | m.COLOR_BGR2RGBA | m.COLOR_BGRA2BGR | m.COLOR_RGBA2BGR | m.COLOR_BGR2RGB | m.COLOR_BGRA2RGBA:
                back = self.mode in (m.COLOR_BGR2RGBA, m.COLOR_RGBA2BGR, m.COLOR_BGR2RGB, m.COLOR_BGRA2RGBA)
                wanted = 4 if self.mode in (m.COLOR_BGRA2BGR, m.COLOR_RGBA2BGR, m.COLOR_BGRA2RGBA) else 3
                if image.ndim != 3 or image.shape[2] != wanted:
                    raise DataTypeFault(
                        f"ConvertColor: image must have {wanted} channels for {self.mode.name}, got shape {list(image.shape)}"
                    )
                color = image[..., 2::-1] if back else image[..., :3]
                if self.mode in (m.COLOR_BGR2BGRA, m.COLOR_BGR2RGBA):
                    return np.concatenate([color, np.full_like(image[..., :1], 255 if image.dtype == np.uint8 else 1)], -1)
                if self.mode is m.COLOR_BGRA2RGBA:
                    return np.concatenate([color, image[..., 3:]], -1)
                return np.ascontiguousarray(color)
            case m.COLOR_GRAY2BGR | m.COLOR_GRAY2BGRA:
                flat = image[..., 0] if image.ndim == 3 else image
                out = np.repeat(flat[..., None], 3, -1)
                return out if self.mode is m.COLOR_GRAY2BGR else np.concatenate([out, np.full_like(out[..., :1], 255)], -1)
            case _:
                color = image[..., 2::-1] if self.mode in (m.COLOR_BGR2GRAY, m.COLOR_BGRA2GRAY) else image[..., :3]
                return grey(color)


class RgbToHsv(ImageOp):
    """RGB as hue, saturation, value; channels first unless `is_hwc`."""

    def __init__(self, is_hwc: bool = False) -> None:
        self.is_hwc = check_bool(type(self).__name__, "is_hwc", is_hwc)

    def _change(self, image: Array) -> Array:
        return rgb_to_hsv(image)

    def on_array(self, image: Array) -> Array:
        if image.ndim not in (3, 4) or image.shape[-1 if self.is_hwc else -3] != 3:
            raise DataTypeFault(f"{type(self).__name__}: image must have three channels, got shape {list(image.shape)}")
        last = image if self.is_hwc else np.moveaxis(image, -3, -1)
        out = self._change(last)
        return out if self.is_hwc else np.ascontiguousarray(np.moveaxis(out, -1, -3))


class HsvToRgb(RgbToHsv):
    """Hue, saturation, value as RGB."""

    def _change(self, image: Array) -> Array:
        return hsv_to_rgb(image)
