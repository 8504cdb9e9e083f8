"""`SummaryRecord`: numbers of a run, step by step, in an event file that TensorBoard shows (`tensorboard --logdir DIR`).

In: names with scalars.  Out: records of length, check, protobuf message, check, appended to `events.out.tfevents.*`.
MindSpore's viewer, MindInsight, has ended; its graphs, images and histograms are not written, and the log says so once.
    Event { double wall_time = 1; int64 step = 2; string file_version = 3; Summary summary = 5; }   Summary { repeated Value value = 1; }
    Value { string tag = 1; float simple_value = 2; }
"""

from __future__ import annotations

import logging
import os
import struct
import time
from typing import Any

import numpy as np

from jumar.frontend import Tensor
from jumar.train.errors import ArgumentFault, KindFault, check_kind

_PLUGINS = (
    "scalar",
    "tensor",
    "image",
    "histogram",
    "train_lineage",
    "eval_lineage",
    "dataset_graph",
    "custom_lineage_data",
    "graph",
    "landscape",
)
log = logging.getLogger("jumar.train")


class SummaryRecord:
    """`add_value("scalar", "loss", loss)`, then `record(step)`; close it, or use `with`.   The other arguments have no effect."""

    def __init__(
        self, log_dir: str, file_prefix: str = "events", file_suffix: str = "_MS", network: Any = None, max_file_size: int | None = None,
        raise_exception: bool = False, export_options: dict[str, Any] | None = None,
    ) -> None:  # fmt: skip
        check_kind("SummaryRecord", "log_dir", log_dir, str)
        check_kind("SummaryRecord", "file_prefix", file_prefix, str)
        check_kind("SummaryRecord", "file_suffix", file_suffix, str)
        os.makedirs(log_dir, exist_ok=True)
        self.log_dir = os.path.realpath(log_dir)
        path = os.path.join(self.log_dir, f"{file_prefix}.out.tfevents.{time.time_ns() // 1_000_000}.{os.getpid()}{file_suffix}")
        self._file = open(path, "ab")  # noqa: SIM115  (closed by close)
        self._values: list[tuple[str, float]] = []
        self._said: set[str] = set()
        self._mode = "train"
        self._put(_text(3, "brain.Event:2"), 0)

    def __enter__(self) -> SummaryRecord:
        return self

    def __exit__(self, *error: Any) -> None:
        self.close()

    def set_mode(self, mode: str) -> None:
        """ "train" or "eval"."""
        if mode not in ("train", "eval"):
            raise ArgumentFault(f"SummaryRecord: mode must be 'train' or 'eval', got {mode!r}", code="train-argument")
        self._mode = mode

    def add_value(self, plugin: str, name: str, value: Any) -> None:
        """Notes a value for the next `record`.   plugin: "scalar"; the others of MindSpore are not kept."""
        if plugin not in _PLUGINS:
            raise ArgumentFault(f"SummaryRecord: plugin must be one of {', '.join(_PLUGINS)}, got {plugin!r}", code="train-argument")
        if plugin != "scalar":
            if plugin not in self._said:
                self._said.add(plugin)
                log.warning("SummaryRecord: values of %s are not written; scalars are", plugin)
            return
        check_kind("SummaryRecord", "name", name, str)
        array = value.asnumpy() if isinstance(value, Tensor) else np.asarray(value)
        if array.size != 1 or (array.dtype.kind not in "fiub" and "float" not in array.dtype.name):
            raise KindFault(
                f"SummaryRecord: scalar {name!r:.80} must be one number, got {array.dtype}{list(array.shape)}", code="train-argument"
            )
        self._values.append((name, float(array.reshape(()))))

    def record(self, step: int, train_network: Any = None, plugin_filter: Any = None) -> bool:
        """Writes what was noted, for a step."""
        check_kind("SummaryRecord", "step", step, int)
        values, self._values = self._values, []
        if values:
            summary = b"".join(_bytes(1, _text(1, name) + b"\x15" + struct.pack("<f", value)) for name, value in values)
            self._put(_bytes(5, summary), step)
        return True

    def flush(self) -> None:
        """What was recorded is in the file."""
        self._file.flush()

    def close(self) -> None:
        """Closes the file."""
        self._file.close()

    def _put(self, message: bytes, step: int) -> None:
        event = b"\x09" + struct.pack("<d", time.time()) + b"\x10" + _varint(step) + message
        length = struct.pack("<Q", len(event))
        self._file.write(length + _check(length) + event + _check(event))


def _varint(value: int) -> bytes:
    value &= 0xFFFFFFFFFFFFFFFF
    found = bytearray()
    while value > 0x7F:
        found.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*found, value])


def _bytes(field: int, data: bytes) -> bytes:
    return _varint(field << 3 | 2) + _varint(len(data)) + data


def _text(field: int, text: str) -> bytes:
    return _bytes(field, text.encode("utf-8"))


def _table() -> list[int]:
    found = []
    for i in range(256):
        for _ in range(8):
            i = i >> 1 ^ (0x82F63B78 if i & 1 else 0)
        found.append(i)
    return found


_CRC = _table()


def _crc(data: bytes) -> int:
    """CRC-32C.

    >>> hex(_crc(b"123456789"))
    '0xe3069283'
    """
    crc = 0xFFFFFFFF
    for byte in data:
        crc = crc >> 8 ^ _CRC[(crc ^ byte) & 0xFF]
    return crc ^ 0xFFFFFFFF


def _check(data: bytes) -> bytes:
    """The CRC as TensorFlow's record files carry it: turned and moved, so that a CRC of CRCs means something."""
    crc = _crc(data)
    return struct.pack("<I", ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF)
