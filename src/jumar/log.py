"""Log messages: `mindspore.log.warning(...)` and its kin, filtered by GLOG_v.

In: messages of scripts and third-party packages.  Out: lines on stderr, `[WARNING] file.py:12 text`.  GLOG_v is read at each message: 0 DEBUG, 1 INFO,
2 WARNING (default), 3 ERROR, 4 CRITICAL.
"""

from __future__ import annotations

import functools
import logging
import os
import sys
from typing import Any

_LEVELS = {"0": logging.DEBUG, "1": logging.INFO, "2": logging.WARNING, "3": logging.ERROR, "4": logging.CRITICAL}
_LEVEL, _VLOG, _TO_STDERR = "GLOG_v", "VLOG_v", "GLOG_logtostderr"  # MindSpore's variables
_LOGGER: list[logging.Logger] = []


class _Stderr(logging.StreamHandler[Any]):
    """Writes to whatever sys.stderr is at the moment."""

    def __init__(self) -> None:
        logging.Handler.__init__(self)

    @property
    def stream(self) -> Any:
        return sys.stderr

    @stream.setter
    def stream(self, value: Any) -> None:
        """Nothing: see the class."""


def _get_logger() -> logging.Logger:
    """The logger, at the level that GLOG_v says."""
    if not _LOGGER:
        made = logging.getLogger("jumar")
        handler = _Stderr()
        handler.setFormatter(logging.Formatter("[%(levelname)s] %(filename)s:%(lineno)d %(message)s"))
        made.addHandler(handler)
        made.propagate = False
        _LOGGER.append(made)
    _LOGGER[0].setLevel(_LEVELS.get(os.environ.get(_LEVEL, "2"), logging.WARNING))
    return _LOGGER[0]


def debug(msg: Any, *args: Any, **kwargs: Any) -> None:
    """A message for those who look for an error."""
    _get_logger().debug(msg, *args, stacklevel=2, **kwargs)


def info(msg: Any, *args: Any, **kwargs: Any) -> None:
    """A message about what goes on."""
    _get_logger().info(msg, *args, stacklevel=2, **kwargs)


def warning(msg: Any, *args: Any, **kwargs: Any) -> None:
    """A message about what may be wrong."""
    _get_logger().warning(msg, *args, stacklevel=2, **kwargs)


def error(msg: Any, *args: Any, **kwargs: Any) -> None:
    """A message about what is wrong."""
    _get_logger().error(msg, *args, stacklevel=2, **kwargs)


def critical(msg: Any, *args: Any, **kwargs: Any) -> None:
    """A message about what cannot go on."""
    _get_logger().critical(msg, *args, stacklevel=2, **kwargs)


def exception(msg: Any, *args: Any, **kwargs: Any) -> None:
    """A message about the exception that is being handled."""
    _get_logger().error(msg, *args, exc_info=True, stacklevel=2, **kwargs)


def vlog_print(level: Any, module: str, file: str, line: int, msg: str) -> None:
    """A message of a numbered level: shown where VLOG_v is that level."""
    if os.environ.get(_VLOG) == str(level):
        _get_logger().warning("%s %s:%s %s", module, file, line, msg)


def get_level() -> str:
    """The level as GLOG_v has it.

    >>> get_level() in ("0", "1", "2", "3", "4")
    True
    """
    return os.environ.get(_LEVEL, "2")


def get_log_config() -> dict[str, str]:
    """The variables that steer messages."""
    return {_LEVEL: get_level(), _TO_STDERR: os.environ.get(_TO_STDERR, "1")}


class _LogActionOnce:
    """Decorator: a warning the first time that the function is called.   key: messages with one key are shown once in all."""

    is_logged: dict[str, bool] = {}

    def __init__(self, logger: Any, key: str, no_warning: bool = False) -> None:
        self.logger, self.key, self.no_warning = logger, key, no_warning

    def __call__(self, func: Any) -> Any:

        @functools.wraps(func)
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            if self.no_warning or self.is_logged.get(self.key):
                return func(*args, **kwargs)
            self.is_logged[self.key] = True
            self.logger.warning(f"{func.__qualname__}: {self.key}")
            return func(*args, **kwargs)

        return wrapper
