"""The inputs that a model is compiled for and tried on: from files, from shapes, or made up.

In: the model's declared inputs, `--input NAME=FILE.npy|SHAPE` and `--dim NAME=NUMBER` as typed.
Out: arrays, and the choice that was made for each free dimension, with its reason.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from jumar.base import Array, DType, TensorType, ToolError, nearest, type_of
from jumar.device import memory_nbytes
from jumar.tools.enable.facts import DimFact, InputFact
from jumar.tools.enable.units import nbytes_text

# a free dimension's usual size, by a word in its name; checked in this order
_USUAL = (
    (("past", "cache"), 16, "a short past"),
    (("batch", "n_batch", "bs"), 1, "one at a time"),
    (("seq", "token", "length", "time", "steps", "frames"), 32, "a short sequence"),
    (("height", "width", "h", "w", "size", "image"), 320, "a small image, a multiple of 32"),
    (("channel", "channels"), 3, "colours"),
    (("num", "count", "boxes"), 8, "a few"),
)
LARGEST_INDEX = 2  # made-up integers stay within what any table holds


@dataclass(frozen=True)
class Wanted:
    """What the user asked for one input: a file or a shape.   text: as typed, which is the value of an input without dimensions."""

    name: str
    file: Path | None = None
    shape: tuple[int, ...] | None = None
    text: str = ""


@dataclass(frozen=True)
class Chosen:
    """Arrays by input name, and how they came about."""

    arrays: dict[str, Array]
    inputs: tuple[InputFact, ...]
    dims: tuple[DimFact, ...]


def parse_input(text: str) -> Wanted:
    """`NAME=FILE.npy` or `NAME=1,3,224,224` (also `1x3x224x224`).

    >>> parse_input("x=1,3,224,224").shape
    (1, 3, 224, 224)
    """
    name, equals, value = text.rpartition("=")
    if not equals or not name or not value:
        raise ToolError(
            f"--input: must be NAME=FILE.npy or NAME=SHAPE, got {text!r}", hint="for example --input x=1,3,224,224", code="input-option"
        )
    pieces = value.strip("[]() ").replace("x", ",").split(",")
    if all(p.strip().isdigit() for p in pieces):
        return Wanted(name, shape=tuple(int(p) for p in pieces), text=value)
    if value in ("()", "[]", "scalar"):
        return Wanted(name, shape=(), text=value)
    return Wanted(name, file=Path(value), text=value)


def parse_dim(text: str) -> tuple[str, int]:
    """`NAME=NUMBER`.

    >>> parse_dim("batch=4")
    ('batch', 4)
    """
    name, _, value = text.rpartition("=")
    if not name or not value.isdigit() or int(value) < 1:
        raise ToolError(
            f"--dim: must be NAME=NUMBER with a number of at least 1, got {text!r}", hint="for example --dim batch=1", code="dim-option"
        )
    return name, int(value)


def once(option: str, given: Sequence[str]) -> tuple[str, ...]:
    """The options, each name once; two values for one name are an error that names both.

    >>> once("--dim", ["batch=2", "batch=2"])
    ('batch=2',)
    """
    first: dict[str, str] = {}
    for text in given:
        name = text.rpartition("=")[0]
        if first.setdefault(name, text) != text:
            raise ToolError(f"{option}: {name} must be given once, got {first[name]!r} and {text!r}", code="dims-contradict")
    return tuple(first.values())


def choose(
    declared: Mapping[str, TensorType], wanted: Sequence[Wanted], dims: Mapping[str, int], *, seed: int = 0, values: bool = True
) -> Chosen:
    """Arrays for every input.   declared: the model's inputs; a dim that is a name is free.   values: else only types count, and nothing is drawn."""
    for w in wanted:
        if w.name not in declared:
            names = ", ".join(declared)
            hint = nearest(w.name, list(declared))
            raise ToolError(f"--input: name must be one of {names}, got {w.name!r}", hint=hint, code="input-name")
    given = {w.name: w for w in wanted}
    numbers = {w.name: a for w in wanted if (a := _number(w, declared[w.name])) is not None}
    wanted = [w for w in wanted if w.name not in numbers]
    arrays = numbers | {w.name: _read(w, declared[w.name].dtype) for w in wanted if w.file}
    shapes = {name: tuple(a.shape) for name, a in arrays.items()} | {w.name: w.shape for w in wanted if w.shape is not None}
    solved = _solve(declared, shapes, dims)
    _check_sizes({n: shapes.get(n) or _settled(t, solved) for n, t in declared.items()}, declared, memory_nbytes() if values else 0)
    rng = np.random.default_rng(seed)
    inputs = []
    for name, type_ in declared.items():
        if name not in arrays:
            shape = shapes.get(name) or _settled(type_, solved)
            made = TensorType(shape, type_.dtype)
            arrays[name] = _random(rng, name, made) if values else np.broadcast_to(np.zeros((), type_.dtype.numpy), made.dims)
        drawn = f"random, seed {seed}" if values else "its type alone is asked for"
        source = f"{given[name].text}, given by --input" if name in numbers else drawn
        if name not in numbers and name in given and given[name].file:
            source = str(given[name].file)
        inputs.append(InputFact(name, str(type_), str(type_of(arrays[name])), source))
    facts = tuple(DimFact(name, value, why) for name, (value, why) in solved.items())
    return Chosen({name: arrays[name] for name in declared}, tuple(inputs), facts)


def _settled(type_: TensorType, values: Mapping[str, tuple[int, str]]) -> tuple[int, ...]:
    return tuple(values[d][0] if isinstance(d, str) else d for d in type_.shape)


def _number(wanted: Wanted, type_: TensorType) -> Array | None:
    """The value of an input without dimensions, where a number (or true, false) was typed for it."""
    if type_.rank or type_.dtype.kind not in "fiub":
        return None
    text = {"true": "1", "false": "0"}.get(wanted.text.lower(), wanted.text)
    try:
        value: float = int(text) if text.lstrip("+-").isdigit() else float(text)  # an integer keeps all its digits
        made = np.asarray(value).astype(type_.dtype.numpy)
    except (ValueError, OverflowError):
        return None
    if not type_.dtype.is_float and made != value:
        raise ToolError(f"--input: {wanted.name} must be a number that {type_.dtype} holds, got {wanted.text}", code="input-option")
    return made


def _check_sizes(shapes: Mapping[str, tuple[int, ...]], declared: Mapping[str, TensorType], free: int) -> None:
    """Refuses before anything is allocated what no memory holds.   free: bytes of this machine's, 0 where nothing will be allocated."""
    total = 0
    for name, shape in shapes.items():
        nbytes = math.prod(shape) * max(declared[name].dtype.numpy.itemsize, 1)
        if nbytes >= 1 << 62:
            raise ToolError(
                f"--input: {name} must be of a size that a machine can hold, got {declared[name].dtype}{list(shape)}", code="shape-absurd"
            )
        total += nbytes
        if free and total > free:
            raise ToolError(
                f"--input: inputs must fit into {nbytes_text(free)} of memory, got {nbytes_text(total)} with {name}: "
                f"{declared[name].dtype}{list(shape)}",
                hint="take smaller sizes with --dim or --input, where dimensions are free",
                code="memory",
            )


def _read(wanted: Wanted, dtype: DType) -> Array:
    path = wanted.file
    assert path is not None, "a file was asked for"
    try:
        found = np.load(path, allow_pickle=False)
    except (OSError, ValueError, EOFError) as error:
        hint = "save text as text: numpy.save(path, array.astype(str))" if "allow_pickle" in str(error) else ""
        got = "an array of Python objects, which is not loaded, since it may hold code" if hint and "Object arrays" in str(error) else error
        raise ToolError(f"--input: {path} must be a NumPy file (.npy) that can be read, got {got}", hint=hint, code="input-file") from error
    if not isinstance(found, np.ndarray):
        raise ToolError(f"--input: {path} must hold one array (.npy), got an archive", code="input-file")
    array: Array = found.astype(object) if dtype.kind == "s" and found.dtype.kind == "U" else found
    if array.dtype != dtype.numpy:
        raise ToolError(
            f"--input: {wanted.name} must be {dtype}, got {type_of(array)} from {path}",
            hint=f"convert it: numpy.save(path, array.astype({dtype.numpy.name!r}))",
            code="input-dtype",
        )
    return array


def _solve(
    declared: Mapping[str, TensorType], shapes: Mapping[str, tuple[int, ...]], dims: Mapping[str, int]
) -> dict[str, tuple[int, str]]:
    """Every free dimension's number and why; a contradiction names both sides."""
    values: dict[str, tuple[int, str]] = {}
    free = dict.fromkeys(d for t in declared.values() for d in t.free)
    for name, value in dims.items():
        if name not in free:
            hint = nearest(name, list(free)) or ("the model has no free dimension" if not free else "")
            raise ToolError(f"--dim: name must be one of {', '.join(free) or 'none'}, got {name!r}", hint=hint, code="dim-name")
        values[name] = (value, "given by --dim")
    for name, shape in shapes.items():
        type_ = declared[name]
        if len(shape) != type_.rank:
            raise ToolError(
                f"--input: {name} must be {type_}, got shape {list(shape)}",
                hint="numbers are a shape here; values come from a file, NAME=FILE.npy" if len(shape) == 1 else "",
                code="input-shape",
            )
        for axis, (dim, size) in enumerate(zip(type_.shape, shape, strict=True)):
            if isinstance(dim, int):
                if dim != size:
                    raise ToolError(f"--input: {name} must be {type_}, got {size} for dimension {axis}", code="input-shape")
            elif dim in values and values[dim][0] != size:
                before, why = values[dim]
                raise ToolError(
                    f"--input: dimension {dim} must be one number, got {size} from {name} and {before} ({why})", code="dims-contradict"
                )
            else:
                values.setdefault(dim, (size, f"from input {name}"))
    for name in free:
        values.setdefault(name, _usual(name, declared))
    return {name: values[name] for name in free}


def _usual(name: str, declared: Mapping[str, TensorType]) -> tuple[int, str]:
    """A sensible size for a free dimension: by its name, else by where it stands."""
    words = name.lower().replace("-", "_").replace(".", "_").split("_")
    for known, value, why in _USUAL:
        if any(word == k or (len(k) > 2 and k in word) for word in words for k in known):
            return value, f"not given: {why}"
    for t in declared.values():
        for axis, dim in enumerate(t.shape):
            if dim != name:
                continue
            if axis == 0:
                return 1, "not given: the first dimension, taken as the batch"
            if t.rank == 4 and t.dtype.is_float and axis >= 2:
                return 320, "not given: an image's side, a multiple of 32"
            if t.dtype.is_integer:
                return 32, "not given: a short sequence"
    return 16, "not given: a small number"


def _random(rng: np.random.Generator, name: str, type_: TensorType) -> Array:
    """Values by type: normal floats, small integers (ones for masks), coin flips."""
    dtype = type_.dtype
    if dtype.kind == "b":
        return rng.integers(0, 2, type_.dims).astype(np.bool_)
    if dtype.is_integer:
        if "mask" in name.lower():
            return np.ones(type_.dims, dtype.numpy)
        return rng.integers(0, LARGEST_INDEX, type_.dims).astype(dtype.numpy)
    if dtype.kind == "s":
        raise ToolError(
            f"--input: {name} holds text and must be given as a file, got nothing",
            hint=f"numpy.save('{name}.npy', numpy.full({type_.dims}, 'some text')), then --input {name}={name}.npy",
            code="input-file",
        )
    return np.asarray(rng.standard_normal(type_.dims)).astype(dtype.numpy)
