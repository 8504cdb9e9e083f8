"""The state of a training run: everything that the next step depends on, so that a run that was killed goes on with the same bits.

In: a network, its optimiser, a loss scaler, a dataset, generators.  Out: one file, whole or absent; the same objects put back where they were.
What is kept: parameters and buffers (of the optimiser, too), random generators (ours, NumPy's, Python's), the place in the data, numbers and tensors of
scalers and callbacks, and the numbers that the loop gives.  It is a `.ckpt` file with a checksum: `load_checkpoint` reads its tensors.
"""

from __future__ import annotations

import json
import logging
import os
import random
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from jumar.base import Array, event, nearest
from jumar.dataset.pipeline import Position
from jumar.frontend import Tensor, wrap
from jumar.frontend.random import DEFAULT, Generator
from jumar.train.callback import Callback
from jumar.train.errors import FileFault, KindFault, MismatchError, check_count, check_kind
from jumar.train.files import sweep
from jumar.train.network import Network
from jumar.train.serialization import SAVER, _write, read_values

_FACTS = "jumar.train_state"
_VERSION = 1
_FILE = re.compile(r"state-(\d+)\.ckpt")
_DEPTH = 4  # of plain objects in plain objects
Values = dict[str, "Array | str"]
log = logging.getLogger("jumar.train")


@dataclass(frozen=True)
class TrainState:
    """What belongs to a run.   `TrainState(net=net, optimizer=optimizer, dataset=dataset).save(path, epoch=3)`, later `.load(path)["epoch"]`.

    net, optimizer: cells (an optimiser inside the network needs no mention).   scaler: a loss scaler or manager, or None.   dataset: one that is or will be
    iterated, or None.   others: callbacks and other objects, by name.
    """

    net: Any
    optimizer: Any = None
    scaler: Any = None
    dataset: Any = None
    others: Mapping[str, Any] = field(default_factory=dict)

    def save(self, path: str, *, background: bool = False, **numbers: int | float | str) -> None:
        """Writes the file.   background: from a copy, while training goes on.   numbers: come back from `load`."""
        values = self._collect(numbers)
        SAVER.wait()
        if background:
            SAVER.start(lambda: _write(path, list(values.items()), "ckpt", True))
        else:
            _write(path, list(values.items()), "ckpt", True)

    def load(self, path: str) -> dict[str, Any]:
        """Puts everything back; all of it fits or nothing is touched.   -> the numbers"""
        values = read_values(path, crc_check=True)
        sweep(os.path.dirname(os.path.abspath(path)))
        facts = _facts(path, values)
        slots = dict(self._slots())
        tensors = {n: v for n, v in values.items() if n != _FACTS and not isinstance(v, str)}
        problems = [f"{n} is missing {nearest(n, list(tensors))}".strip() for n in slots if n not in tensors]
        problems += [f"{n} has no place {nearest(n, list(slots))}".strip() for n in tensors if n not in slots]
        problems += [
            f"{n} must be {slots[n].dtype}{list(slots[n].shape)}, got {v.dtype}{list(v.shape)}"
            for n, v in tensors.items()
            if n in slots and (v.shape != slots[n].shape or v.dtype != slots[n].dtype)
        ]
        if problems:
            text = "\n".join(f"    {p}" for p in problems[:20])
            raise MismatchError(f"{path}: state must be of this run, got {len(problems)} differences\n{text}", code="checkpoint-mismatch")
        for name, value in tensors.items():
            slots[name].put(value)
        known = self._plain()
        for name, found in facts["plain"].items():
            if name in known and isinstance(found, bool | int | float | str | None):
                self._put_plain(name, found)
            else:  # a file sets nothing but what this run would save
                log.warning("state: %.120r has no place in this run", name)
        if self.dataset is not None and facts["data"]:
            self.dataset.restore(Position.from_json(facts["data"]))
        numbers: dict[str, Any] = facts["numbers"]
        return numbers

    # ------------------------------------------------------------------ what there is
    def _roots(self) -> dict[str, Any]:
        found = {"net": self.net, "optimizer": self.optimizer, "scaler": self.scaler, **self.others}
        return {n: v for n, v in found.items() if v is not None}

    def _slots(self) -> Iterator[tuple[str, _Slot]]:
        """Places of tensors and generators, by name."""
        seen: set[int] = set()
        for root, thing in self._roots().items():
            for path, value in _walk(thing, root):
                if isinstance(value, Tensor | Generator) and id(value) not in seen:
                    seen.add(id(value))
                    yield path, _slot(value)
        if id(DEFAULT) not in seen:
            yield "random.default", _slot(DEFAULT)
        yield "random.numpy", _NumpyRandom()
        yield "random.python", _PythonRandom()

    def _plain(self) -> dict[str, Any]:
        """Numbers and texts, by name."""
        found: dict[str, Any] = {}
        for root, thing in self._roots().items():
            found |= {path: value for path, value in _walk(thing, root) if not isinstance(value, Tensor | Generator)}
        return found

    def _collect(self, numbers: Mapping[str, Any]) -> Values:
        values: Values = {name: slot.get().copy() for name, slot in self._slots()}
        plain = self._plain()
        data = self.dataset.position().to_json() if self.dataset is not None else ""
        facts = {"version": _VERSION, "numbers": dict(numbers), "plain": plain, "data": data}
        values[_FACTS] = json.dumps(facts)
        return values

    def _put_plain(self, name: str, value: Any) -> None:
        *path, last = name.split("/")
        thing = self._roots()[path[0]]
        for part in path[1:]:
            thing = getattr(thing, part)
        setattr(thing, last, value)


def _walk(thing: Any, name: str, depth: int = _DEPTH) -> Iterator[tuple[str, Any]]:
    """Tensors, generators and, of plain objects, numbers and texts, by path."""
    if isinstance(thing, Tensor | Generator):
        yield name, thing
    elif isinstance(thing, Network):
        yield from _walk_cell(thing, name)
    elif isinstance(thing, Callback):
        names: tuple[str, ...] = getattr(thing, "resumable", ())
        for attribute in names:
            yield from _walk_value(getattr(thing, attribute), f"{name}/{attribute}", depth)
    elif depth and type(thing).__module__ not in ("builtins", "types"):
        for attribute, value in sorted(vars(thing).items()):
            yield from _walk_value(value, f"{name}/{attribute}", depth)


def _walk_value(value: Any, name: str, depth: int) -> Iterator[tuple[str, Any]]:
    if value is None or isinstance(value, bool | int | float | str):
        yield name, value
    elif isinstance(value, np.generic):
        yield name, value.item()
    elif isinstance(value, list) and all(isinstance(v, Tensor) for v in value):
        yield from ((f"{name}/{i}", v) for i, v in enumerate(value))
    elif not callable(value) or isinstance(value, Tensor | Network):
        yield from _walk(value, name, depth - 1)


def _walk_cell(cell: Any, name: str) -> Iterator[tuple[str, Any]]:
    for path, param in cell.parameters_and_names():
        yield f"{name}:{path}", param
    for path, part in cell.cells_and_names() if hasattr(cell, "cells_and_names") else ():
        for attribute, value in vars(part).items():
            if isinstance(value, Generator):
                yield f"{name}:{path}@{attribute}", value
    for path, buffer in cell.named_buffers() if hasattr(cell, "named_buffers") else ():
        yield f"{name}:{path}", buffer


# ------------------------------------------------------------------ places
class _Slot:
    """A place whose value is an array."""

    def get(self) -> Array:
        raise NotImplementedError

    def put(self, value: Array) -> None:
        raise NotImplementedError

    @property
    def shape(self) -> tuple[int, ...]:
        return self.get().shape

    @property
    def dtype(self) -> Any:
        return self.get().dtype


class _Of(_Slot):
    def __init__(self, tensor: Tensor) -> None:
        self.tensor = tensor

    def get(self) -> Array:
        return self.tensor.array

    def put(self, value: Array) -> None:
        self.tensor._write(wrap(value))


class _Drawing(_Slot):
    def __init__(self, generator: Generator) -> None:
        self.generator = generator

    def get(self) -> Array:
        return np.asarray(self.generator.get_state().asnumpy())

    def put(self, value: Array) -> None:
        self.generator.set_state(value)


class _NumpyRandom(_Slot):
    """NumPy's global stream: 624 words, a place, and the normal number that is left."""

    def get(self) -> Array:
        _, words, place, has, left = np.random.get_state()
        tail = np.array([float(left)]).view(np.uint32)
        return np.concatenate([np.asarray(words, np.uint32), np.array([place, has], np.uint32), tail])

    def put(self, value: Array) -> None:
        np.random.set_state(("MT19937", value[:624], int(value[624]), int(value[625]), float(value[626:].view(np.float64)[0])))


class _PythonRandom(_Slot):
    """Python's global stream."""

    def get(self) -> Array:
        _, words, left = random.getstate()
        tail = np.array([np.nan if left is None else left]).view(np.uint32)
        return np.concatenate([np.array(words, np.uint32), tail])

    def put(self, value: Array) -> None:
        left = float(value[625:].view(np.float64)[0])
        random.setstate((3, tuple(int(w) for w in value[:625]), None if np.isnan(left) else left))


def _slot(value: Tensor | Generator) -> _Slot:
    return _Drawing(value) if isinstance(value, Generator) else _Of(value)


def _facts(path: str, values: Values) -> dict[str, Any]:
    text = values.get(_FACTS)
    if not isinstance(text, str):
        raise FileFault(
            f"{path}: file must be a training state, got a checkpoint without one", hint="load_checkpoint reads it", code="state-kind"
        )
    try:
        facts = json.loads(text)
    except ValueError as error:
        raise FileFault(f"{path}: facts of the state must be JSON, got {text[:60]!r}", code="checkpoint-damaged") from error
    match facts:
        case {"version": 1, "numbers": dict(), "plain": dict(), "data": str()}:
            return dict(facts)
        case _:
            raise FileFault(f"{path}: state must be of version {_VERSION}, got {str(facts)[:80]}", code="state-kind")


# ------------------------------------------------------------------ in the training loop
class Resume(Callback):
    """Saves the state every `save_steps` steps and at the end; a run that begins with the same folder goes on where the last one was.

    directory: one for each run.   keep: states that are kept.   background: write while training goes on.
    `Model.train(..., resume=directory)` is the same with the defaults.
    """

    def __init__(self, directory: str, save_steps: int = 100, keep: int = 2, background: bool = True) -> None:
        check_kind("Resume", "directory", directory, str)
        check_kind("Resume", "background", background, bool)
        self.directory = os.path.abspath(directory)
        self.save_steps, self.keep = check_count("Resume", "save_steps", save_steps), check_count("Resume", "keep", keep)
        self.background = background
        self._state: TrainState | None = None
        self._saved = 0

    def on_train_begin(self, run_context: Any) -> None:
        """Takes up the newest whole state.   The loop calls it after all other callbacks, whose own begin is over then."""
        params = run_context.original_args()
        others = {f"{i}.{type(c).__name__}": c for i, c in enumerate(params.list_callback) if c is not self}
        self._state = TrainState(params.train_network, None, params.loss_scale_mananger, params.train_dataset, others)
        self._saved = 0
        os.makedirs(self.directory, exist_ok=True)
        sweep(self.directory)
        for path in reversed(states(self.directory)):
            try:
                numbers = self._state.load(path)
            except FileFault as error:
                log.warning("Resume: going back to the state before, since %s", error)
                continue
            self._saved = params.cur_step_num = int(numbers["step"])
            params.resume_epoch = int(numbers["epoch"]) - (0 if numbers["done"] else 1)
            event("resume", file=path, epoch=numbers["epoch"], step=numbers["step"])
            return

    def on_train_step_end(self, run_context: Any) -> None:
        params = run_context.original_args()
        due = params.cur_step_num - self._saved >= self.save_steps
        if run_context.get_stop_requested() or (due and params.cur_step_num % params.batch_num):
            self._save(params, done=False)

    def on_train_epoch_end(self, run_context: Any) -> None:
        """The state after an epoch's last step waits for the other callbacks' end of epoch, which may change the learning rate."""
        params = run_context.original_args()
        if params.cur_step_num - self._saved >= self.save_steps:
            self._save(params, done=True)

    def on_train_end(self, run_context: Any) -> None:
        params = run_context.original_args()
        if self._saved != params.cur_step_num:
            self._save(params, done=True)
        SAVER.wait()

    def _save(self, params: Any, *, done: bool) -> None:
        if self._state is None:
            raise KindFault("Resume: callback must be used in Model.train or Model.fit, got another loop", code="train-argument")
        step = params.cur_step_num
        path = os.path.join(self.directory, f"state-{step:010d}.ckpt")
        self._state.save(path, background=self.background, epoch=params.cur_epoch_num, step=step, done=int(done))
        self._saved = step
        for old in states(self.directory)[: -self.keep]:
            if old != path:
                os.remove(old)


def states(directory: str) -> list[str]:
    """The states in a folder, oldest first."""
    found = sorted(n for n in os.listdir(directory) if _FILE.fullmatch(n))
    return [os.path.join(directory, n) for n in found]
