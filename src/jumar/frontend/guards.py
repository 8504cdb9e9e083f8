"""Guards: what a captured function has read besides its arguments, and whether it is still the same.

In: the frames that were entered while a function was captured (by Python's profile hook), and the objects that they can reach by name.  Out: a list of
records `(how, box, key, expected, label)` that is checked before a captured function is run without Python; and the effects that forbid to do so.
A record is about a global, a closure cell, an attribute or an element.  Objects are followed as far as the names in the entered code reach.
"""

from __future__ import annotations

import builtins
import io
import os
import pickle
import sys
import sysconfig
import types as pytypes
import weakref
from collections import deque
from collections.abc import Callable
from contextvars import ContextVar
from enum import Enum
from functools import partial
from threading import get_ident
from typing import Any

import numpy as np

from jumar.base import DType, TensorType
from jumar.frontend.dtype import Type
from jumar.frontend.tensor import Tensor
from jumar.frontend.user import is_ours

EPOCH = [0]  # how many changes of attributes of cells there have been

IS, EQUAL, LENGTH, CONTENT, ABSENT = range(5)
Record = tuple[int, Any, Any, Any, str]
_MISSING = object()
_PLAIN = (
    bool,
    int,
    float,
    complex,
    str,
    bytes,
    type(None),
    Type,
    DType,
    TensorType,
    Enum,
    slice,
    range,
    np.generic,
    np.dtype,
    type(Ellipsis),
)
_MAX_ITEMS = 4096
_MAX_NBYTES = 1 << 16
_STDLIB = tuple({sysconfig.get_paths()[k] for k in ("stdlib", "platstdlib")})
_LIBRARIES = ("numpy", "scipy", "ml_dtypes", "llvmlite", "onnx", "torch")
_KINDS: dict[Any, str] = {}
_ASKING = frozenset({"getattr", "hasattr", "globals", "AttributeError"})
_EFFECTS = {builtins.print, builtins.input, builtins.open}
_EFFECT_OWNERS = ("random", "numpy.random", "_random", "_socket", "socket", "subprocess", "time", "posix", "nt")
_EFFECT_NAMES = {"now", "today", "utcnow", "urandom"}  # of classes in C, such as datetime
_ENVIRON: Any = type(os.environ)
_READS_ENVIRONMENT = {
    f.__code__ for f in (os.getenv, _ENVIRON.__getitem__, _ENVIRON.__contains__, _ENVIRON.__iter__) if hasattr(f, "__code__")
}


def kind_of(code: Any) -> str:
    """Whose code it is: `ours`, `library` or `user`."""
    found = _KINDS.get(code)
    if found is None:
        name = code.co_filename
        if name.startswith("<frozen"):
            found = "library"
        elif is_ours(code):
            found = "ours"
        elif "site-packages" in name or "dist-packages" in name:
            found = "library" if any(f"-packages/{lib}/" in name for lib in _LIBRARIES) else "user"
        else:
            found = "library" if name.startswith(_STDLIB) else "user"
        _KINDS[code] = found
    return found


class Box:
    """A closure cell or a slot, read like a dict."""

    __slots__ = ("read",)

    def __init__(self, read: Callable[[], Any]) -> None:
        self.read = read

    def __getitem__(self, key: Any) -> Any:
        return self.read()


class Watch:
    """Follows one call.   `records` and `cell_records` when it is over; `effects` says what must happen at each call."""

    def __init__(self, effect: Callable[[str], None]) -> None:
        self.effect = effect
        self.names: set[str] = {"construct"}
        self.entered: set[tuple[Any, int]] = set()
        self.found: list[tuple[Record, str]] = []  # with the attribute name that must be read for it to matter, or ""
        self.of_cells: list[tuple[Record, str]] = []
        self.seen: dict[int, Any] = {}
        self.tensors: dict[int, Tensor] = {}
        self.modules: dict[int, pytypes.ModuleType] = {}
        self.classes: dict[int, type] = {}
        self.generators: list[tuple[Any, bytes, str]] = [(np.random, _state_of(np.random), "the state of np.random")]
        # attributes of objects, and those that there were: their class, or a default, answers for the others
        self.objects: list[tuple[dict[str, Any], frozenset[str], type, str, Any]] = []
        self.asked: set[str] = set()  # names that getattr and hasattr may be called with
        self.collecting = 0  # the thread that the garbage collector runs in, or 0

    # ------------------------------------------------------------------ following frames
    def hook(self, frame: pytypes.FrameType, event: str, arg: Any) -> None:
        """Python's profile hook."""
        if self.collecting and self.collecting == get_ident():
            return  # what the collector calls, such as finalisers of others, is no part of the function
        if event == "call":
            code = frame.f_code
            kind = kind_of(code)
            if kind == "user":
                if (code, id(frame.f_globals)) not in self.entered and not _importing(frame):
                    self.enter(code, frame.f_globals)
            elif code in _READS_ENVIRONMENT and _for_user(frame):
                self.effect("reads an environment variable")
        elif event == "c_call" and kind_of(frame.f_code) != "ours":
            self.call(arg, frame)

    def collection_starts(self, phase: str, info: dict[str, int]) -> None:
        """The first of `gc.callbacks`."""
        if phase == "start":
            self.collecting = get_ident()

    def collection_ends(self, phase: str, info: dict[str, int]) -> None:
        """The last of `gc.callbacks`."""
        if phase == "stop":
            self.collecting = 0

    def enter(self, code: Any, names: dict[str, Any]) -> None:
        """A function's code begins for the first time: the globals that it names."""
        self.entered.add((code, id(names)))
        self.names.update(code.co_names)
        if not _ASKING.isdisjoint(code.co_names):
            asked = {c for c in code.co_consts if isinstance(c, str) and c.isidentifier()}
            if "AttributeError" in code.co_names:
                asked.update(code.co_names)
            self.asked |= asked
            if "globals" in code.co_names:
                for name in asked:
                    self.one_global(names, name)
        for name in code.co_names:
            if name in names or hasattr(builtins, name):
                self.one_global(names, name)

    def one_global(self, names: dict[str, Any], name: str) -> None:
        """A global that the code names, there or not."""
        if name in names:
            self.read(names, name, names[name], f"global {name}")
        else:
            self.found.append(((ABSENT, names, name, None, f"global {name}"), ""))

    def call(self, function: Any, frame: pytypes.FrameType) -> None:
        """A function in C is called: is it one that only computes?"""
        what = self.effect_of(function)
        if what and _for_user(frame):
            self.effect(what)

    @staticmethod
    def effect_of(function: Any) -> str:
        """What a function in C does besides computing; empty for most."""
        try:
            if function in _EFFECTS:
                return f"calls {function.__name__}"
        except TypeError:  # not hashable
            return ""
        owner = getattr(function, "__self__", None)
        module = getattr(function, "__module__", None) or ""
        if owner is not None and not isinstance(owner, pytypes.ModuleType):
            if isinstance(owner, io.IOBase):
                files = function.__name__ in ("write", "read", "readline", "readlines", "writelines", "seek")
                return "reads or writes a file" if files else ""
            module = type(owner).__module__ or ""
        if isinstance(owner, type) and function.__name__ in _EFFECT_NAMES:
            return f"calls {owner.__name__}.{function.__name__}"
        if module.startswith(_EFFECT_OWNERS):
            return f"draws Python random numbers ({function.__name__})" if "random" in module else f"calls {module}.{function.__name__}"
        return ""

    # ------------------------------------------------------------------ following objects
    def read(self, box: Any, key: Any, value: Any, label: str, name: str = "", depth: int = 0, into: Any = None) -> None:
        """`box[key]` was `value`.   name: the attribute that must occur in the code for this to matter."""
        into = self.found if into is None else into
        if isinstance(value, _PLAIN):
            into.append(((EQUAL, box, key, value, label), name))
            return
        into.append(((IS, box, key, value, label), name))
        self.follow(value, label, name, depth)

    def follow(self, value: Any, label: str, name: str, depth: int) -> None:
        """What hangs on an object."""
        if id(value) in self.seen or depth > 12:
            return
        self.seen[id(value)] = value
        if isinstance(value, Tensor):
            self.tensors[id(value)] = value
        elif isinstance(value, pytypes.FunctionType):
            self.function(value, label, depth)
        elif isinstance(value, staticmethod | classmethod):
            self.follow(value.__func__, label, name, depth + 1)
        elif isinstance(value, property):
            self.follow(value.fget, label, name, depth + 1)
        elif isinstance(value, pytypes.MethodType):
            self.follow(value.__func__, label, name, depth + 1)
            self.follow(value.__self__, label, name, depth + 1)
        elif isinstance(value, partial):
            for part in (value.func, *value.args, *value.keywords.values()):
                self.follow(part, label, name, depth + 1)
        elif isinstance(value, pytypes.ModuleType):
            self.modules[id(value)] = value
            if not _is_library(value.__name__, getattr(value, "__file__", None)):
                self.plain(vars(value), label)
        elif isinstance(value, type):
            self.classes[id(value)] = value
            for base in user_bases(value):
                if id(base) not in self.seen or base is value:
                    self.seen[id(base)] = base
                    self.plain(vars(base), base.__name__)
                    for v in list(vars(base).values()):
                        if isinstance(v, pytypes.FunctionType | staticmethod | classmethod | property):
                            self.follow(v, base.__name__, "", depth + 1)
        elif isinstance(value, list | tuple | deque):
            self.elements(value, label, name, depth)
        elif isinstance(value, dict):
            self.found.append(((LENGTH, value, None, len(value), label), name))
            for k, v in list(value.items())[:_MAX_ITEMS]:
                self.read(value, k, v, f"{label}[{k!r}]", name, depth + 1)
        elif isinstance(value, weakref.ref):
            self.read(Box(value), None, value(), f"what {label} refers to", name, depth + 1)
        elif isinstance(value, ContextVar):
            self.read(Box(partial(value.get, None)), None, value.get(None), label, name, depth + 1)
        elif isinstance(value, bytearray):
            self.found.append(((CONTENT, value, None, bytes(value), label), name))
        elif isinstance(value, set | frozenset):
            self.found.append(((CONTENT, value, None, frozenset(value), label), name))
        elif isinstance(value, np.ndarray):
            if value.nbytes > _MAX_NBYTES:
                self.effect(f"reads the large array {label}, which may change")
            self.found.append(((CONTENT, value, None, value.copy(), label), name))
        elif type(value).__module__.startswith("numpy.random"):
            self.generators.append((value, _state_of(value), label))
        elif is_cell(value):
            self.cell(value, label, depth)
        elif hasattr(value, "__next__"):
            self.found.append(((CONTENT, value, None, _MISSING, f"{label}, an iterator"), name))
        else:
            self.instance(value, label, depth)

    def plain(self, namespace: Any, label: str) -> None:
        """Plain values of a class or module, as they are before the call."""
        for k, v in list(namespace.items()):
            if isinstance(v, _PLAIN) and not (k.startswith("__") and k.endswith("__")):
                self.found.append(((EQUAL, namespace, k, v, f"{label}.{k}"), k))

    def function(self, value: pytypes.FunctionType, label: str, depth: int) -> None:
        library = kind_of(value.__code__) == "library"
        if not library:
            for attribute in ("__code__", "__defaults__"):
                self.found.append(
                    ((IS, Box(partial(getattr, value, attribute)), None, getattr(value, attribute), f"{label}.{attribute}"), "")
                )
            for k, v in list(value.__dict__.items()):
                if k != "__wrapped__":
                    self.read(value.__dict__, k, v, f"{label}.{k}", k, depth + 1)
        for free, cell in zip(value.__code__.co_freevars, value.__closure__ or (), strict=False):
            try:
                content = cell.cell_contents
            except ValueError:  # not filled yet
                continue
            if library and not isinstance(content, pytypes.FunctionType | pytypes.MethodType | partial):
                continue  # what a wrapper of a library keeps for itself
            self.read(Box(partial(getattr, cell, "cell_contents")), None, content, f"{free} in {label}", "", depth + 1)
        for i, default in enumerate(() if library else value.__defaults__ or ()):
            if not isinstance(default, _PLAIN):
                self.follow(default, f"default {i} of {label}", "", depth + 1)
        if (wrapped := value.__dict__.get("__wrapped__")) is not None:
            self.follow(wrapped, label, "", depth + 1)

    def elements(self, value: Any, label: str, name: str, depth: int) -> None:
        self.found.append(((LENGTH, value, None, len(value), label), name))
        if len(value) > _MAX_ITEMS:
            self.effect(f"reads the long list {label}, which may change")
        for i, v in enumerate(list(value)[:_MAX_ITEMS]):
            self.read(value, i, v, f"{label}[{i}]", name, depth + 1)

    def cell(self, value: Any, label: str, depth: int) -> None:
        """A cell: its attributes; its parameters and children by identity.   Checked only when some cell has changed."""
        internal = cell_internals(type(value))
        ours = (type(value).__module__ or "").startswith("jumar.")
        for k, v in list(vars(value).items()):
            if k in internal and not isinstance(v, _PLAIN):
                if isinstance(v, dict):
                    self.of_cells.append(((LENGTH, v, None, len(v), f"{label}.{k}"), ""))
                    for n, inner in list(v.items()):
                        self.read(v, n, inner, f"{label}.{n}", "", depth + 1, self.of_cells)
                continue
            self.read(vars(value), k, v, f"{label}.{k}", "" if ours or k in internal else k, depth + 1, self.of_cells)
        self.classes[id(type(value))] = type(value)
        self.objects.append((vars(value), frozenset(vars(value)), type(value), label, self.of_cells))

    def instance(self, value: Any, label: str, depth: int) -> None:
        attributes = getattr(value, "__dict__", None)
        if isinstance(attributes, dict):
            for k, v in list(attributes.items()):
                self.read(attributes, k, v, f"{label}.{k}", k, depth + 1)
            self.objects.append((attributes, frozenset(attributes), type(value), label, self.found))
        for k in getattr(type(value), "__slots__", ()):
            if isinstance(k, str) and k not in ("__dict__", "__weakref__") and hasattr(value, k):
                self.read(Box(partial(getattr, value, k)), None, getattr(value, k), f"{label}.{k}", k, depth + 1)
        self.classes[id(type(value))] = type(value)

    # ------------------------------------------------------------------ the end
    def finish(self) -> tuple[list[Record], list[Record], str]:
        """The records that matter: those always checked, those checked when cells have changed; and what differs already."""
        done: set[int] = set()
        while True:  # classes and modules lead to more objects, those to more classes
            news = [(i, o) for i, o in [*self.modules.items(), *self.classes.items()] if i not in done]
            if not news:
                break
            for i, found in news:
                done.add(i)
                self.namespace(found)
        for attributes, before, kind, label, into in self.objects:
            for name in (self.names | self.asked) - before:
                if name in self.asked or hasattr(kind, name):
                    into.append(((ABSENT, attributes, name, None, f"{label}.{name}"), ""))
        read = self.names | self.asked
        # what a tuple holds cannot change: that it is the same one is looked at where it hangs
        mine = [r for r, name in self.found if (not name or name in read) and not _is_tuple(r[1])]
        cells = [r for r, name in self.of_cells if not name or name in read]
        cells += [(EQUAL, Box(context_values), None, context_values(), "the context")]
        drawn = next((label for g, state, label in self.generators if _state_of(g) != state), "")
        return mine, cells, drawn or failing(mine) or failing(cells)

    def namespace(self, found: Any) -> None:
        """Plain values of a module or class that are named in the code."""
        if isinstance(found, pytypes.ModuleType):
            if _is_library(found.__name__, getattr(found, "__file__", None)):
                return
            for name in self.names & vars(found).keys():
                self.read(vars(found), name, vars(found)[name], f"{found.__name__}.{name}")
            return
        for name in self.names | self.asked:
            if not hasattr(found, name):
                continue
            for base in user_bases(found):  # the first that has it answers; those before it must not have it later either
                value = _attribute(base, name)
                box = Box(partial(_attribute, base, name))
                if value is not _MISSING:
                    self.read(box, None, value, f"{base.__name__}.{name}")
                    break
                self.found.append(((IS, box, None, _MISSING, f"{base.__name__}.{name}"), ""))


def user_bases(kind: type) -> list[type]:
    """The class and its bases, without those of libraries and ours."""
    return [b for b in kind.__mro__ if not _is_library(b.__module__, None) and not b.__module__.startswith("jumar.")]


def context_values() -> tuple[tuple[str, str], ...]:
    """What `set_context` has set; a change of it counts in EPOCH."""
    found = sys.modules.get("jumar.context")
    return () if found is None else tuple(sorted((k, repr(v)) for k, v in vars(found)["_VALUES"].items()))


def _state_of(generator: Any) -> bytes:
    """The state of a NumPy generator: its functions are not seen by the profile hook."""
    if isinstance(generator, np.random.Generator):
        return pickle.dumps(generator.bit_generator.state)
    return pickle.dumps(generator.get_state()) if hasattr(generator, "get_state") else b""


def _attribute(owner: type, name: str) -> Any:
    """An attribute of a class as it stands there."""
    return vars(owner).get(name, _MISSING)


def _is_library(name: str, file: str | None) -> bool:
    root = (name or "").partition(".")[0]
    if root in sys.stdlib_module_names or root in _LIBRARIES or root in ("jumar", "builtins"):
        return True
    return bool(file and file.startswith(_STDLIB) and "-packages" not in file)


def _for_user(frame: pytypes.FrameType | None) -> bool:
    """Whether a frame of a library was called by the user's code, not by ours, and not while a module is imported."""
    while frame is not None:
        kind = kind_of(frame.f_code)
        if kind != "library":
            return kind == "user" and not _importing(frame)
        frame = frame.f_back
    return False


def _importing(frame: pytypes.FrameType | None) -> bool:
    """Whether a frame runs for an import: that happens once, so nothing in it happens at each call (hooks of imports run Python, too)."""
    while frame is not None:
        if frame.f_code.co_filename == "<frozen importlib._bootstrap>":
            return True
        frame = frame.f_back
    return False


def is_cell(value: Any) -> bool:
    """Whether an object is an `nn.Cell`; without importing it."""
    return any(c.__name__ == "Cell" and c.__module__.startswith("jumar.nn") for c in type(value).__mro__)


_INTERNALS: dict[type, frozenset[str]] = {}


def cell_internals(kind: type) -> frozenset[str]:
    """Names of the attributes that every cell has, or may have, by itself."""
    base = next(c for c in kind.__mro__ if c.__name__ == "Cell" and c.__module__.startswith("jumar.nn"))
    if base not in _INTERNALS:
        _INTERNALS[base] = frozenset(vars(base())) | {"_captured"}  # what was captured of the cell before
    return _INTERNALS[base]


def _is_tuple(box: Any) -> bool:
    """Whether an object gives its items and its length as tuples do."""
    kind = type(box)
    return isinstance(box, tuple) and kind.__getitem__ is tuple.__getitem__ and kind.__len__ is tuple.__len__


def failing(records: list[Record]) -> str:
    """The label of the first record that no longer holds; empty where all do."""
    for how, box, key, want, label in records:
        if how <= EQUAL:
            try:
                now = box[key]
            except (KeyError, IndexError, ValueError, AttributeError):
                return label
            if now is want:
                continue
            if how == EQUAL and type(now) is type(want) and bool(now == want):
                continue
            return label
        if how == ABSENT:
            if key in box:
                return label
        elif how == LENGTH:
            if len(box) != want:
                return label
        elif not _same_content(box, want):
            return label
    return ""


def _same_content(box: Any, want: Any) -> bool:
    if want is _MISSING:
        return False
    if isinstance(box, np.ndarray):
        return box.shape == want.shape and box.dtype == want.dtype and bool((box == want).all())
    return bool(box == want)
