"""`import mindspore` gives Jumar: an import hook, and the answer to who asks for the installed version.

In: `as_mindspore()`, called before anything imports mindspore.  Out: `mindspore` and `mindspore.a.b` are the modules `jumar` and `jumar.a.b` themselves,
so that an object has one class whichever name it was reached by.  `jumar run` and `%load_ext jumar` call it.
"""

from __future__ import annotations

import importlib
import importlib.abc
import importlib.machinery
import importlib.metadata
import importlib.util
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

from jumar.base import ToolError, nearest
from jumar.version import MINDSPORE_VERSION, VERSION

NAME = "mindspore"
_HOME = Path(__file__).parents[1]


class _Loader(importlib.abc.Loader):
    """Gives the module of ours instead of a new one."""

    def __init__(self, real: str) -> None:
        self.real = real
        self.own: Any = None

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType:
        module = importlib.import_module(self.real)
        self.own = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        module.__spec__ = self.own  # importlib has put the alias's there, and submodules are looked for by it


class Versions(importlib.abc.MetaPathFinder):
    """Answers `importlib.metadata.version("mindspore")`, by which packages look whether it is installed."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        return None

    @staticmethod
    def find_distributions(context: Any = None) -> Iterator[importlib.metadata.Distribution]:
        """The distribution, where that name or any is asked for."""
        name = getattr(context, "name", None)
        if name is None or str(name).lower() == NAME:
            yield _Distribution()

    @staticmethod
    def invalidate_caches() -> None:
        """Nothing is kept."""


class Finder(Versions):
    """Finds mindspore's modules among ours."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if fullname != NAME and not fullname.startswith(f"{NAME}."):
            return None
        real = "jumar" + fullname.removeprefix(NAME)
        try:
            found = importlib.util.find_spec(real)
        except ModuleNotFoundError:  # its parent is a module without submodules
            return None
        if found is None:
            return None
        spec = importlib.machinery.ModuleSpec(fullname, _Loader(real), origin=found.origin)
        if found.submodule_search_locations is not None:
            spec.submodule_search_locations = list(found.submodule_search_locations)
        return spec


class _Distribution(importlib.metadata.Distribution):
    """An installed mindspore, as far as its version."""

    def read_text(self, filename: str) -> str | None:
        if filename != "METADATA":
            return None
        return f"Metadata-Version: 2.1\nName: {NAME}\nVersion: {MINDSPORE_VERSION}\nSummary: its API, by Jumar {VERSION}\n"

    def locate_file(self, path: Any) -> Any:
        return _HOME / path


def is_on() -> bool:
    """Whether `import mindspore` gives Jumar."""
    return any(isinstance(f, Finder) for f in sys.meta_path)


def as_mindspore() -> None:
    """From now on `import mindspore` gives Jumar; a second time does nothing."""
    if is_on():
        return
    there = sys.modules.get(NAME)
    if there is not None and there is not sys.modules["jumar"]:
        raise ToolError(
            f"as_mindspore: mindspore must not be imported yet, got {getattr(there, '__file__', there)}",
            hint="call it before the first import of mindspore, or start the script with `jumar run`",
            code="alias-late",
        )
    sys.meta_path.insert(0, Finder())


def answer_versions() -> None:
    """For an alias that is not ours (`sys.modules["mindspore"] = jumar`): the installed version can be asked for."""
    if not any(isinstance(f, Versions) for f in sys.meta_path):
        sys.meta_path.append(Versions())


_EXTRAS = {"sklearn": "examples", "cv2": "vision", "PIL": "vision", "rapidocr_onnxruntime": "examples"}  # module: extra


def missing(error: ModuleNotFoundError) -> str:
    """A hint for a module of mindspore's that is not here, or one that an extra of ours brings; empty for any other."""
    name = error.name or ""
    if extra := _EXTRAS.get(name.partition(".")[0]):
        return f"pip install 'jumar[{extra}]' brings it"
    if name != NAME and not name.startswith(f"{NAME}."):
        return ""
    known: frozenset[str] = sys.modules["jumar"].ROOMS
    first = name.split(".")[1] if "." in name else ""
    hint = "" if first in known else nearest(first, list(known))
    return f"Jumar {VERSION} has no such module yet{f'; {hint}' if hint else ''} (docs/names.md lists what there is)"
