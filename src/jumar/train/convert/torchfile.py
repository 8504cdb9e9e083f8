"""PyTorch's `.pt` and `.pth` files, without PyTorch, and without running anything that is in them.

In: a file of `torch.save` (the zip form, since PyTorch 1.6).  Out: names with tensors that are read when they are wanted.
Such a file is a pickle beside raw storages.  The pickle is read by an unpickler that knows nine names and refuses every other: none of them does more than
note what a tensor is.  Sizes are checked against the storages before anything is allocated.
"""

from __future__ import annotations

import io
import math
import pickle
import zipfile
from collections import OrderedDict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from jumar.base import Array
from jumar.frontend import dtype as types
from jumar.frontend.dtype import Type
from jumar.train.entries import damaged
from jumar.train.errors import FileFault, UnsupportedError

_MAX_PICKLE = 256 << 20
_STORAGES: dict[str, Type | None] = {
    "FloatStorage": types.float32, "DoubleStorage": types.float64, "HalfStorage": types.float16, "BFloat16Storage": types.bfloat16,
    "LongStorage": types.int64, "IntStorage": types.int32, "ShortStorage": types.int16, "CharStorage": types.int8, "ByteStorage": types.uint8,
    "BoolStorage": types.bool_, "ComplexFloatStorage": types.complex64, "ComplexDoubleStorage": types.complex128, "UntypedStorage": None,
}  # fmt: skip
_DTYPES = {
    "float32": types.float32, "float64": types.float64, "float16": types.float16, "bfloat16": types.bfloat16, "int64": types.int64,
    "int32": types.int32, "int16": types.int16, "int8": types.int8, "uint8": types.uint8, "bool": types.bool_, "complex64": types.complex64,
}  # fmt: skip
_INSIDE = ("state_dict", "model_state_dict", "model", "ema", "state_dict_ema", "params", "net")  # where trainers put the weights


@dataclass(frozen=True, slots=True)
class Storage:
    """Raw elements in the file.   type: None for bytes."""

    key: str
    type: Type | None
    count: int


@dataclass(frozen=True, slots=True)
class Stored:
    """A tensor that is in the file."""

    file: TorchFile
    storage: Storage
    type: Type
    offset: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]

    def read(self) -> Array:
        """Its value."""
        flat = self.file.elements(self.storage, self.type)
        if 0 in self.shape:
            return np.zeros(self.shape, self.type.numpy)
        steps = tuple(s * flat.itemsize for s in self.strides)
        found: Array = np.lib.stride_tricks.as_strided(flat[self.offset :], self.shape, steps).copy()
        return found


class TorchFile:
    """An open file.   tensors: by name."""

    def __init__(self, path: str) -> None:
        self.path = path
        with open(path, "rb") as file:
            head = file.read(4)
        if head != b"PK\x03\x04":
            hint = "torch.save(torch.load(path, weights_only=True), path) with PyTorch 1.6 or later writes the zip form"
            raise FileFault(f"{path}: file must be of torch.save in the zip form, got another", hint=hint, code="torch-file")
        try:
            self._zip = zipfile.ZipFile(path)
            names = self._zip.namelist()
        except (zipfile.BadZipFile, ValueError, NotImplementedError, OSError) as error:
            raise damaged(path, f"file must be a whole zip archive, got {str(error)[:120]}") from error
        roots = [n[: -len("data.pkl")] for n in names if n.endswith("/data.pkl") and n.count("/") == 1]
        if len(roots) != 1:
            raise FileFault(
                f"{path}: file must hold one data.pkl, got {len(roots)}",
                hint="TorchScript and export archives are not read",
                code="torch-file",
            )
        self._root = roots[0]
        if any(n.startswith(f"{self._root}code/") for n in names):
            raise FileFault(
                f"{path}: file must hold a state dict, got TorchScript", hint="torch.save(model.state_dict(), path)", code="torch-file"
            )
        if f"{self._root}byteorder" in names and self._member("byteorder", 16) != b"little":
            raise UnsupportedError(f"{path}: byte order must be little, got another", code="torch-file")
        self._kept: tuple[Storage, Array] | None = None
        self.tensors = self._find(self._unpickle())

    def close(self) -> None:
        """Closes the file."""
        self._zip.close()

    def _member(self, name: str, most: int) -> bytes:
        try:
            info = self._zip.getinfo(self._root + name)
            if info.compress_type != zipfile.ZIP_STORED or info.file_size > most or info.file_size != info.compress_size:
                raise damaged(self.path, f"{name!r:.80} must be stored as it is, with at most {most} bytes, got {info.file_size}")
            return self._zip.read(info)
        except (KeyError, zipfile.BadZipFile, ValueError, NotImplementedError, EOFError, OSError) as error:
            if isinstance(error, FileFault):
                raise
            raise damaged(self.path, f"{name!r:.80} must be whole in the archive, got {str(error)[:120]}") from error

    def elements(self, storage: Storage, dtype: Type) -> Array:
        """All elements of a storage; the last one is kept, since neighbours share it."""
        if self._kept is None or self._kept[0].key != storage.key:
            size = storage.count * (storage.type.itemsize if storage.type is not None else 1)
            raw = self._member(f"data/{storage.key}", size)
            if len(raw) != size:
                raise damaged(self.path, f"storage {storage.key!r:.60} must have {size} bytes, got {len(raw)}")
            self._kept = (storage, np.frombuffer(raw, np.uint8))
        return self._kept[1].view(dtype.numpy)

    def _unpickle(self) -> Any:
        reader = _Reader(io.BytesIO(self._member("data.pkl", _MAX_PICKLE)), self)
        try:
            return reader.load()
        except FileFault:
            raise
        except Exception as error:  # a hostile pickle makes the unpickler fail in any way
            raise damaged(self.path, f"data.pkl must be a pickle of tensors, got {type(error).__name__}: {str(error)[:120]}") from error

    def _find(self, found: Any) -> dict[str, Stored]:
        """The dict of tensors: the whole, or what trainers call `state_dict` in it."""
        if isinstance(found, Mapping):
            for inner in (found, *(found[k] for k in _INSIDE if isinstance(found.get(k), Mapping))):
                tensors = dict(_flat(inner))
                if tensors and any(isinstance(v, Stored) for v in inner.values()):
                    total = sum(math.prod(t.shape) * t.type.itemsize for t in tensors.values())
                    if total > 8 * sum(i.file_size for i in self._zip.infolist()):
                        raise damaged(self.path, f"tensors must not be many times larger than the file, got {total} bytes")
                    return tensors
        kind = ", ".join(map(str, list(found)[:8])) if isinstance(found, Mapping) else type(found).__name__
        raise FileFault(
            f"{self.path}: file must hold a state dict, got {kind:.200}", hint="torch.save(model.state_dict(), path)", code="torch-file"
        )


def _flat(values: Mapping[Any, Any]) -> Iterator[tuple[str, Stored]]:
    for name, value in values.items():
        if isinstance(name, str) and isinstance(value, Stored):
            yield name, value


# what no state dict needs: classes by other ways, buffers, and sizes that are allocated before they are read
_REFUSED = (pickle.INST, pickle.OBJ, pickle.NEWOBJ, pickle.NEWOBJ_EX, pickle.EXT1, pickle.EXT2, pickle.EXT4, pickle.BYTEARRAY8, pickle.NEXT_BUFFER,
            pickle.READONLY_BUFFER)  # fmt: skip


class _Reader(pickle._Unpickler):  # in Python: C's one allocates whatever place in its memo a file names
    """An unpickler that makes tensors' descriptions and nothing else."""

    dispatch = {k: v for k, v in pickle._Unpickler.dispatch.items() if k not in {code[0] for code in _REFUSED}}

    def __init__(self, file: io.BytesIO, owner: TorchFile) -> None:
        super().__init__(file, encoding="utf-8")
        self._owner = owner

    def find_class(self, module: str, name: str) -> Any:
        match module, name:
            case "collections", "OrderedDict":
                return _ordered
            case "torch._utils", "_rebuild_tensor_v2":
                return self._tensor
            case "torch._utils", "_rebuild_parameter":
                return _parameter
            case "torch", "Size":
                return tuple
            case (("torch" | "torch.storage"), storage) if storage in _STORAGES:
                return _Kind(storage)
            case "torch", dtype if dtype in _DTYPES:
                return _DTYPES[dtype]
        raise FileFault(
            f"{self._owner.path}: pickle must name tensors only, got {module}.{name}",
            hint="torch.save(model.state_dict(), path) writes weights alone; what else a file holds is not run", code="torch-unsafe",
        )  # fmt: skip

    def load_build(self) -> None:
        """Attributes of an object: state dicts have versions of modules there, which nobody needs."""
        self.stack.pop()  # type: ignore[attr-defined]
        if not isinstance(self.stack[-1], OrderedDict):  # type: ignore[attr-defined]
            raise damaged(self._owner.path, "objects with attributes must be dicts, got another")

    dispatch[pickle.BUILD[0]] = load_build  # type: ignore[assignment]

    def persistent_load(self, pid: Any) -> Storage:
        match pid:
            case ("storage", _Kind(name=name), str(key), str(), int(count)) if (
                type(count) is int and 0 <= count < 1 << 50 and "/" not in key
            ):
                return Storage(key, _STORAGES[name], count)
        raise damaged(self._owner.path, f"storage must have a type, a name and a size, got {pid!r:.120}")

    def _tensor(self, storage: Any, offset: Any, size: Any, stride: Any, *_: Any) -> Stored:
        good = isinstance(storage, Storage) and isinstance(size, tuple) and isinstance(stride, tuple) and len(size) == len(stride) <= 32
        if not good or any(type(n) is not int or n < 0 for n in (offset, *size, *stride)):
            raise damaged(self._owner.path, "tensor must have a storage, an offset, a size and strides")
        if storage.type is None:
            raise UnsupportedError(f"{self._owner.path}: storages must have an element type, got bytes", code="torch-file")
        count = math.prod(size)
        if math.prod(max(d, 1) for d in size) >= 1 << 60:
            raise damaged(self._owner.path, f"tensor must have a size that can be, got {list(size)!r:.120}")
        last = offset + sum((d - 1) * s for d, s in zip(size, stride, strict=True))
        if count and (last >= storage.count or count > storage.count):
            raise damaged(
                self._owner.path, f"tensor {list(size)} must lie in its storage of {storage.count} elements, got one up to {last}"
            )
        return Stored(self._owner, storage, storage.type, offset, size, stride)


@dataclass(frozen=True, slots=True)
class _Kind:
    """A storage class's name."""

    name: str


def _ordered(*items: Any) -> Any:
    return OrderedDict(*items)


def _parameter(data: Any, *_: Any) -> Any:
    return data
