"""Pictures in and out: files' bytes to arrays, arrays to bytes, arrays to PIL images and back.

In: JPEG, PNG, BMP, GIF, TIFF, WebP bytes.  Out: uint8 arrays [height, width, channels], RGB (sources, `Decode`, `read_image`).
Pillow does the decoding; it comes with the extra `vision`.
"""

from __future__ import annotations

import io
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from jumar.dataset.enums import ImageReadMode
from jumar.dataset.errors import DataFault, DataTypeFault, check_int, need

Array = np.ndarray[Any, np.dtype[Any]]


def pil() -> ModuleType:
    """Pillow's `Image`, or an error that names the extra."""
    try:
        from PIL import Image  # noqa: PLC0415  optional
    except ImportError as error:
        raise need("pillow") from error
    found: ModuleType = Image
    return found


def is_pil(value: Any) -> bool:
    """Whether `value` is a PIL image; asks without importing Pillow."""
    module = sys.modules.get("PIL.Image")
    return module is not None and isinstance(value, module.Image)


def raw_bytes(data: Any, who: str) -> bytes:
    """The bytes of an encoded picture: a uint8 vector, or bytes as MindRecord gives them."""
    if isinstance(data, (bytes, bytearray)):
        return bytes(data)
    if isinstance(data, np.ndarray) and ((data.dtype.kind == "S" and data.size == 1) or (data.dtype == np.uint8 and data.ndim == 1)):
        return data.tobytes()
    shape = f"{data.dtype} of shape {data.shape}" if isinstance(data, np.ndarray) else type(data).__name__
    raise DataTypeFault(f"{who}: input must be the bytes of a picture (uint8, one dimension), got {shape}")


def open_image(data: bytes, where: str) -> Any:
    """A loaded PIL image."""
    image_of = pil()
    try:
        image = image_of.open(io.BytesIO(data))
        image.load()
    except (OSError, ValueError, SyntaxError) as error:
        raise DataFault(f"Decode: {where} must be a picture, got {error}") from error
    return image


def decode(data: Any, where: str = "input", *, to_pil: bool = False) -> Any:
    """RGB pixels of an encoded picture; grey and transparent ones become RGB."""
    image = open_image(raw_bytes(data, "Decode"), where)
    if image.mode in ("RGBA", "LA", "PA") or "transparency" in image.info:
        image = image.convert("RGBA").convert("RGB")
    elif image.mode != "RGB":
        image = image.convert("RGB")
    return image if to_pil else np.array(image)


def to_pil(image: Any, who: str) -> Any:
    """An array as a PIL image."""
    if is_pil(image):
        return image
    array = np.asarray(image)
    if array.ndim == 3 and array.shape[2] == 1:
        array = array[..., 0]
    if array.ndim not in (2, 3) or array.dtype != np.uint8 or (array.ndim == 3 and array.shape[2] not in (3, 4)):
        raise DataTypeFault(
            f"{who}: image must be uint8 [height, width] or [height, width, 1, 3 or 4], got {array.dtype} {list(array.shape)}"
        )
    return pil().fromarray(array)


def get_image_size(image: Any) -> list[int]:
    """[height, width] of a picture."""
    if is_pil(image):
        return [image.height, image.width]
    array = np.asarray(image)
    if array.ndim < 2:
        raise DataTypeFault(f"get_image_size: image must have two dimensions or more, got {array.ndim}")
    return list(array.shape[-3:-1]) if array.ndim > 2 else list(array.shape)


def get_image_num_channels(image: Any) -> int:
    if is_pil(image):
        return len(image.getbands())
    array = np.asarray(image)
    if array.ndim < 2:
        raise DataTypeFault(f"get_image_num_channels: image must have two dimensions or more, got {array.ndim}")
    return 1 if array.ndim == 2 else int(array.shape[-1])


def read_file(filename: str) -> Array:
    """The bytes of a file as a uint8 vector."""
    try:
        return np.frombuffer(Path(filename).read_bytes(), np.uint8)
    except OSError as error:
        raise DataFault(f"read_file: {filename} must be a file that can be read, got {error.strerror}") from error


def read_image(filename: str, mode: ImageReadMode = ImageReadMode.UNCHANGED) -> Array:
    """Pixels of a picture file, [height, width, channels]."""
    image = open_image(read_file(filename).tobytes(), filename)
    if mode is ImageReadMode.COLOR:
        image = image.convert("RGB")
    elif mode is ImageReadMode.GRAYSCALE:
        image = image.convert("L")
    elif image.mode not in ("L", "RGB", "RGBA"):
        image = image.convert("RGBA" if "transparency" in image.info else "RGB")
    array = np.array(image)
    return array[..., None] if array.ndim == 2 else array


def write_file(filename: str, data: Any) -> None:
    """Writes a uint8 vector."""
    Path(filename).write_bytes(raw_bytes(np.asarray(data), "write_file"))


def encode_jpeg(image: Any, quality: int = 75) -> Array:
    return _encode(image, "JPEG", quality=check_int("encode_jpeg", "quality", quality, 1, 100))


def encode_png(image: Any, compression_level: int = 6) -> Array:
    return _encode(image, "PNG", compress_level=check_int("encode_png", "compression_level", compression_level, 0, 9))


def _encode(image: Any, form: str, **options: Any) -> Array:
    out = io.BytesIO()
    to_pil(image, f"encode_{form.lower()}").save(out, form, **options)
    return np.frombuffer(out.getvalue(), np.uint8)


def write_jpeg(filename: str, image: Any, quality: int = 75) -> None:
    write_file(filename, encode_jpeg(image, quality))


def write_png(filename: str, image: Any, compression_level: int = 6) -> None:
    write_file(filename, encode_png(image, compression_level))
