"""Checkpoints: parameters to files and back.

In: cells, lists and dicts of parameters; `.ckpt` (ckpt.py) and `.safetensors` files.  Out: files that are whole or absent; dicts of Parameters by name.
No file is believed: a damaged or hostile one is refused, and nothing in it is ever run.
"""

from __future__ import annotations

import logging
import os
import re
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import numpy as np

from jumar.base import Array
from jumar.frontend import Parameter, Tensor, wrap
from jumar.frontend.random import Generator
from jumar.train import ckpt, safetensors
from jumar.train.entries import read_array
from jumar.train.errors import ArgumentFault, FileFault, KindFault, UnsupportedError, check_kind
from jumar.train.files import replacing
from jumar.train.loading import _load_dismatch_prefix_params, _update_param, load_param_into_net
from jumar.train.network import Network, parameters_of

Values = list[tuple[str, "Array | str"]]
_FORMATS = ("ckpt", "safetensors")
_THREAD = "asyn_save_ckpt"
log = logging.getLogger("jumar.train")

__all__ = [
    "_load_dismatch_prefix_params", "_update_param", "async_ckpt_thread_status", "ckpt_to_safetensors", "load_checkpoint", "load_checkpoint_async",
    "load_param_into_net", "safetensors_to_ckpt", "save_checkpoint",
]  # fmt: skip


# ------------------------------------------------------------------ saving
def save_checkpoint(
    save_obj: Any, ckpt_file_name: str, integrated_save: bool = True, async_save: bool | str = False, append_dict: dict[str, Any] | None = None,
    enc_key: bytes | None = None, enc_mode: str = "AES-GCM", choice_func: Callable[[str], bool] | None = None, crc_check: bool = False,
    format: str = "ckpt", **kwargs: Any,
) -> None:  # fmt: skip
    """Saves parameters to a file, which is written whole or not at all.

    save_obj: a Cell; a list of Parameters or of {"name", "data"}; a dict by name.   append_dict: further numbers, texts and tensors.
    choice_func: which names.   async_save: True or "thread", "process": in the background, from a copy made now; another save waits for it.
    integrated_save: of a network that is spread over devices; no difference on one.
    """
    where = "save_checkpoint"
    unknown = set(kwargs) - {"incremental", "global_step_num", "remove_redundancy"}
    if unknown:
        raise KindFault(f"{where}: options must be known, got {', '.join(sorted(unknown))}", code="train-argument")
    if kwargs.get("incremental") or kwargs.get("remove_redundancy"):
        raise UnsupportedError(
            f"{where}: incremental and remove_redundancy are for many devices; Jumar trains on one", code="train-unsupported"
        )
    _check_format(where, format)
    check_kind(where, "ckpt_file_name", ckpt_file_name, str)
    check_kind(where, "integrated_save", integrated_save, bool)
    check_kind(where, "crc_check", crc_check, bool)
    if enc_key is not None:
        raise UnsupportedError(
            f"{where}: enc_key must be None: Jumar does not encrypt", hint="encrypt the file, or its disk", code="checkpoint-encrypted"
        )
    if async_save not in (False, True, "thread", "process"):
        raise ArgumentFault(f"{where}: async_save must be a bool, 'thread' or 'process', got {async_save!r}", code="train-argument")
    path = os.path.realpath(ckpt_file_name)
    if os.path.isdir(path):
        raise IsADirectoryError(f"{where}: ckpt_file_name must be a file, got the folder {path}")
    if not path.endswith(format):
        path += f".{format}"
    values = _values(save_obj, choice_func, append_dict)
    SAVER.wait()
    if async_save:
        copies = [(n, v if isinstance(v, str) else v.copy()) for n, v in values]
        SAVER.start(lambda: _write(path, copies, format, crc_check))
    else:
        _write(path, values, format, crc_check)


def _write(path: str, values: Values, format: str, crc_check: bool) -> None:
    if format == "safetensors":
        texts = [n for n, v in values if isinstance(v, str)]
        if texts:
            raise UnsupportedError(
                f"save_checkpoint: values of a safetensors file must be tensors, got texts: {', '.join(texts)[:200]}",
                code="checkpoint-kind",
            )
        with replacing(path) as file:
            safetensors.write_safetensors(file, dict(values), {"format": "ms"}, crc_check=crc_check)  # type: ignore[arg-type]
    else:
        with replacing(path) as file:
            ckpt.write_ckpt(file, values, crc_check=crc_check)


def _values(save_obj: Any, choice: Callable[[str], bool] | None, more: dict[str, Any] | None) -> Values:
    """What is to be saved, by name."""
    if isinstance(save_obj, Network):
        pairs: list[tuple[Any, Any]] = [(p.name, p) for p in parameters_of(save_obj)]
    elif isinstance(save_obj, Mapping):
        pairs = list(save_obj.items())
    elif isinstance(save_obj, list | tuple):
        pairs = [_pair(p) for p in save_obj]
    else:
        raise KindFault(f"save_checkpoint: save_obj must be a Cell, a list or a dict, got {type(save_obj).__name__}", code="train-argument")
    found: dict[str, Array | str] = {}
    for name, value in pairs:
        if not isinstance(name, str):
            raise KindFault(f"save_checkpoint: names must be texts, got {type(name).__name__}", code="train-argument")
        if choice is None or choice(name):
            found[name] = _value(name, value)
    check_kind("save_checkpoint", "append_dict", more, (dict, type(None)))
    for name, value in (more or {}).items():
        if not isinstance(name, str) or not isinstance(value, int | float | str | Tensor | Generator):
            what = f"{type(name).__name__}: {type(value).__name__}"
            raise KindFault(f"save_checkpoint: append_dict must hold numbers, texts and tensors by name, got {what}", code="train-argument")
        found[name] = _value(name, value)
    return list(found.items())


def _pair(item: Any) -> tuple[str, Any]:
    if isinstance(item, Parameter):
        return item.name, item
    if isinstance(item, Mapping) and {"name", "data"} <= item.keys() and isinstance(item["data"], Tensor):
        return item["name"], item["data"]
    raise KindFault(
        f"save_checkpoint: a list must hold Parameters or dicts of name and data (a tensor), got {type(item).__name__}",
        code="train-argument",
    )


def _value(name: str, value: Any) -> Array | str:
    if isinstance(value, Generator):
        value = value.get_state()
    if isinstance(value, Tensor):
        return value.array
    if isinstance(value, str | np.ndarray):
        return value
    if isinstance(value, bool | int | float):
        return Tensor(value).array
    raise KindFault(
        f"save_checkpoint: {name!r:.120} must be a Parameter, a Tensor or a text, got {type(value).__name__}", code="train-argument"
    )


class _Saver:
    """The one save that may be under way in the background."""

    def __init__(self) -> None:
        self.thread: threading.Thread | None = None
        self.error: BaseException | None = None

    def start(self, work: Callable[[], None]) -> None:
        def run() -> None:
            try:
                work()
            except BaseException as error:
                self.error = error
                log.error("save_checkpoint: the save in the background failed: %s", error)

        self.thread = threading.Thread(target=run, name=_THREAD)  # no daemon: the process ends after the file is whole
        self.thread.start()

    def wait(self) -> None:
        """Until the save is done; its error, if it failed, is raised here."""
        thread, self.thread = self.thread, None
        if thread is not None:
            thread.join()
        error, self.error = self.error, None
        if error is not None:
            raise error


SAVER = _Saver()


def async_ckpt_thread_status() -> bool:
    """Whether a save is under way in the background."""
    return any(t.name == _THREAD for t in threading.enumerate())


# ------------------------------------------------------------------ loading
def load_checkpoint(
    ckpt_file_name: str, net: Network | None = None, strict_load: bool = False, filter_prefix: str | Sequence[str] | None = None,
    dec_key: bytes | None = None, dec_mode: str = "AES-GCM", specify_prefix: str | Sequence[str] | None = None,
    choice_func: Callable[[str], bool] | None = None, crc_check: bool = False, remove_redundancy: bool = False, format: str = "ckpt",
) -> dict[str, Any]:  # fmt: skip
    """The parameters of a file by name; texts that were appended are texts.   net: gets the values at once, too.

    specify_prefix, filter_prefix: names that begin so are the only ones, or none; choice_func: which names.   format: "ckpt", "safetensors"; a file that
    ends with `.safetensors` is read as one in any case.
    """
    where = "load_checkpoint"
    _check_format(where, format)
    check_kind(where, "ckpt_file_name", ckpt_file_name, str)
    check_kind(where, "crc_check", crc_check, bool)
    if dec_key is not None:
        hint = "load it with MindSpore and the key, and save it again without enc_key"
        raise UnsupportedError(f"{where}: dec_key must be None: Jumar does not decrypt", hint=hint, code="checkpoint-encrypted")
    if remove_redundancy:
        raise UnsupportedError(f"{where}: remove_redundancy is for many devices; Jumar trains on one", code="train-unsupported")
    only, never = _prefixes("specify_prefix", specify_prefix), _prefixes("filter_prefix", filter_prefix)

    def wanted(name: str) -> bool:
        if only or never:
            return (not only or name.startswith(only)) and not (never and name.startswith(never))
        return choice_func is None or choice_func(name)

    found = read_values(ckpt_file_name, wanted, crc_check=crc_check, format=format)
    if not found:
        raise FileFault(f"{ckpt_file_name}: file must hold a value that is wanted, got none", code="checkpoint-empty")
    result: dict[str, Any] = {n: v if isinstance(v, str) else _parameter(n, v) for n, v in found.items()}
    if net is not None:
        load_param_into_net(net, result, strict_load)
    return result


def read_values(
    path: str, wanted: Callable[[str], bool] = lambda name: True, *, crc_check: bool = False, format: str = "ckpt"
) -> dict[str, Array | str]:
    """Arrays and texts of a checkpoint file by name."""
    if os.path.isdir(path) or not os.path.exists(path):
        what = "a folder" if os.path.isdir(path) else "no file"
        raise FileFault(f"{path}: file must exist, got {what}", hint=_neighbours(path), code="checkpoint-missing")
    if path.endswith(".safetensors"):
        format = "safetensors"
    with open(path, "rb") as file:
        if format == "safetensors":
            entries, _ = safetensors.read_entries(path, file, crc_check=crc_check)
        else:
            entries = ckpt.read_entries(path, file, crc_check=crc_check)
        return {
            n: read_array(path, file, e) if e.type is not None else ckpt.read_text(path, file, e) for n, e in entries.items() if wanted(n)
        }


def _parameter(name: str, value: Array) -> Parameter:
    made = Parameter(np.empty((0,), value.dtype), name=name)
    made._value = value  # shared: the array was read for this
    return made


def _neighbours(path: str) -> str:
    folder = os.path.dirname(path) or "."
    if not os.path.isdir(folder):
        return f"there is no folder {folder}"
    found = sorted(n for n in os.listdir(folder) if n.endswith((".ckpt", ".safetensors")))
    return f"there are {', '.join(found[:5])}" if found else f"{folder} holds no checkpoint"


def _prefixes(name: str, given: str | Sequence[str] | None) -> tuple[str, ...]:
    if given is None:
        return ()
    found = (given,) if isinstance(given, str) else tuple(given)
    if not found or not all(isinstance(p, str) and p for p in found):
        raise ArgumentFault(
            f"load_checkpoint: {name} must be a text or texts, none of them empty, got {given!r:.100}", code="train-argument"
        )
    return found


def _check_format(where: str, format: str) -> None:
    if format not in _FORMATS:
        raise ArgumentFault(f"{where}: format must be 'ckpt' or 'safetensors', got {format!r}", code="train-argument")


class ParamDictFuture:
    """A dict of parameters that is being loaded."""

    def __init__(self, executor: ThreadPoolExecutor, future: Future[dict[str, Any]]) -> None:
        self._executor, self._future = executor, future

    def result(self) -> dict[str, Any]:
        """The dict; waits for it."""
        found = self._future.result()
        self._executor.shutdown()
        return found


def load_checkpoint_async(
    ckpt_file_name: str, net: Network | None = None, strict_load: bool = False, filter_prefix: str | Sequence[str] | None = None,
    dec_key: bytes | None = None, dec_mode: str = "AES-GCM", specify_prefix: str | Sequence[str] | None = None,
    choice_func: Callable[[str], bool] | None = None,
) -> ParamDictFuture:  # fmt: skip
    """`load_checkpoint` in the background: `.result()` waits for the dict."""
    executor = ThreadPoolExecutor(max_workers=1)
    future = executor.submit(
        load_checkpoint, ckpt_file_name, net, strict_load, filter_prefix, dec_key, dec_mode, specify_prefix, choice_func
    )
    return ParamDictFuture(executor, future)


# ------------------------------------------------------------------ one format to the other
def ckpt_to_safetensors(
    file_path: str,
    save_path: str | None = None,
    name_map: dict[str, str] | None = None,
    file_name_regex: str | None = None,
    processes_num: int = 1,
) -> None:
    """Converts a `.ckpt` file, or all in the `rank*` folders of a folder, to `.safetensors`."""
    _convert("ckpt_to_safetensors", "ckpt", "safetensors", file_path, save_path, name_map, file_name_regex)


def safetensors_to_ckpt(
    file_path: str,
    save_path: str | None = None,
    name_map: dict[str, str] | None = None,
    file_name_regex: str | None = None,
    processes_num: int = 1,
) -> None:
    """Converts a `.safetensors` file, or all in the `rank*` folders of a folder, to `.ckpt`."""
    _convert("safetensors_to_ckpt", "safetensors", "ckpt", file_path, save_path, name_map, file_name_regex)


def _convert(where: str, source: str, target: str, path: str, out: str | None, names: dict[str, str] | None, pattern: str | None) -> None:
    check_kind(where, "name_map", names, (dict, type(None)))
    if out and os.path.splitext(out)[1]:
        raise ArgumentFault(f"{where}: save_path must be a folder, got {out!r}", code="train-argument")
    if os.path.isdir(path):
        ranks = [d for d in sorted(os.listdir(path)) if d.startswith("rank") and os.path.isdir(os.path.join(path, d))]
        if not ranks:
            raise ArgumentFault(f"{where}: folder must hold folders whose names begin with rank, got none in {path}", code="train-argument")
        jobs = [
            (os.path.join(path, d, f), os.path.join(out or path, d))
            for d in ranks
            for f in sorted(os.listdir(os.path.join(path, d)))
            if f.endswith("." + source) and (pattern is None or re.search(pattern, f))
        ]
    elif os.path.isfile(path):
        if not path.endswith("." + source) or (pattern is not None and not re.search(pattern, path)):
            raise ArgumentFault(f"{where}: file must end with .{source} and match file_name_regex, got {path}", code="train-argument")
        jobs = [(path, out or os.path.dirname(path))]
    else:
        raise ArgumentFault(f"{where}: file_path must exist, got {path}", code="train-argument")
    for file, folder in jobs:
        values = {(names or {}).get(n, n): v for n, v in read_values(file, format=source).items()}
        if folder:
            os.makedirs(folder, exist_ok=True)
        stem = os.path.basename(file).removesuffix("." + source)
        save_checkpoint(
            {n: v if isinstance(v, str) else wrap(v) for n, v in values.items()}, os.path.join(folder, f"{stem}.{target}"), format=target
        )
