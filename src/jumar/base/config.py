"""Every setting exists once: default, environment name, meaning, and whether it changes generated code.

In: environment variables, read at each access so that tests and notebooks may change them.
Out: `config("threads")`; the settings page of the docs is generated from `SETTINGS`.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jumar.base.errors import StackError, nearest


@dataclass(frozen=True)
class Setting:
    """One setting.   `changes_code`: part of the key of the compile cache."""

    name: str
    default: Any
    meaning: str
    parse: Callable[[str], Any] = str
    changes_code: bool = False
    also: str = ""  # MindSpore's name for the same thing, where there is one

    @property
    def environment(self) -> str:
        return f"JUMAR_{self.name.upper()}"


def _flag(text: str) -> bool:
    return text.strip().lower() not in ("", "0", "false", "no", "off")


def _default_cache() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "jumar"


def _default_snapshots() -> Path:
    return Path(os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share") / "jumar" / "snapshots"


_DEFAULTS: dict[str, Callable[[], Path]] = {"cache_dir": _default_cache, "snapshot_dir": _default_snapshots}  # that the environment makes

SETTINGS: dict[str, Setting] = {
    s.name: s
    for s in (
        Setting("threads", 0, "threads of the CPU target; 0 means the cores that this process may use", int),
        Setting("pin", False, "bind each worker thread to a core of its own; read when the first program runs", _flag),
        Setting("cache_dir", None, "folder of the compile cache; default $XDG_CACHE_HOME/jumar or ~/.cache/jumar", Path),
        Setting("cache", True, "use the compile cache on disk", _flag),
        Setting("cache_gb", 8.0, "size at which the least recently used entries of the cache are removed", float),
        Setting("save_graphs", "", "folder into which every stage of a compile is written", str, also="MS_DEV_SAVE_GRAPHS"),
        Setting("cpu", "", "name of the CPU to generate code for; default the one that this is", str, changes_code=True),
        Setting("cpu_features", "", "LLVM feature string, e.g. -avx512f; default those found", str, changes_code=True),
        Setting(
            "winograd", True,
            "use Winograd for 3 x 3 convolutions (fp32 error up to 1e-4 of the scale; an infinity makes NaN of its neighbours, too); 0 forbids it",
            _flag, changes_code=True,
        ),
        Setting("tuned", True, "take the plans that `jumar tune` measured on this machine, where there are any", _flag),
        Setting("progress", True, "show a bar while Model trains, if stderr is a terminal", _flag),
        Setting("momentum_nesterov", False, "nn.Momentum does what use_nesterov is documented to do; MindSpore 2.10 ignores it on the CPU", _flag),
        Setting("soc", "Ascend910B4", "the Ascend chip whose twin stands in where a script asks for device_target='Ascend'; `jumar soc list` names them"),
        Setting("rules", "", "your own rules, beside ours in `jumar diagnose` and `doctor`: folders of *.toml files, or such files, separated as in PATH", str),
        Setting("snapshot_dir", None, "folder of `jumar snapshot`; default $XDG_DATA_HOME/jumar/snapshots or ~/.local/share/jumar/snapshots", Path),
        Setting("skip_passes", "", "comma-separated names of passes to leave out", str, changes_code=True),
    )
}  # fmt: skip


def config(name: str) -> Any:
    """The value of a setting: its environment variable where set, else the default."""
    if name not in SETTINGS:
        raise StackError(f"config: setting must be known, got {name!r}", hint=nearest(name, list(SETTINGS)), code="setting-unknown")
    setting = SETTINGS[name]
    text = os.environ.get(setting.environment)
    if name == "save_graphs" and text is None:
        return _mindspore_save_graphs()
    if text is None:
        return _DEFAULTS[name]() if name in _DEFAULTS else setting.default
    try:
        return setting.parse(text)
    except ValueError as error:
        raise StackError(f"config: {setting.environment} must be {setting.parse.__name__}, got {text!r}", code="setting-value") from error


def _mindspore_save_graphs() -> str:
    """MindSpore's pair: MS_DEV_SAVE_GRAPHS turns saving on, MS_DEV_SAVE_GRAPHS_PATH says where (default here)."""
    if not _flag(os.environ.get("MS_DEV_SAVE_GRAPHS", "")):
        return ""
    return os.environ.get("MS_DEV_SAVE_GRAPHS_PATH", ".")


def code_settings() -> tuple[tuple[str, Any], ...]:
    """The settings that change generated code, for the key of the compile cache."""
    return tuple((s.name, config(s.name)) for s in SETTINGS.values() if s.changes_code)
