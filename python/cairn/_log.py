"""The library's messages, which are dropped unless somebody asks for them."""

from __future__ import annotations

import atexit
import ctypes
import logging
import os
import threading
from typing import Any

from . import _c
from ._callbacks import inside, is_inside
from ._errors import InvalidError

_LEVELS = (logging.DEBUG, logging.INFO, logging.WARNING, logging.ERROR)
_NOBODY = _c.LogFunction(0)
_changing = threading.Lock()
# What the library calls has to stay for as long as it may be called; and whose process it is.
_kept: list[Any] = [_NOBODY, 0]


def set_log(logger: logging.Logger | None, level: int = logging.WARNING) -> None:
    """Hands the library's messages of a level and above to a logger; None: they are dropped.

    Raises:
        InvalidError: within a handler of such a message, or a function for progress.
    """
    if is_inside():
        raise InvalidError("set_log: expected no call within what the library calls, found one")
    with _changing:
        if logger is None:
            _c.lib.cairn_set_log(_NOBODY, None, 0)
            _kept[:] = _NOBODY, 0
            return
        function = _c.LogFunction(_writer(logger))
        least = sum(each < level for each in _LEVELS)
        _c.lib.cairn_set_log(function, None, min(least, 3))
        _kept[:] = function, os.getpid()


def _writer(logger: logging.Logger) -> Any:
    def write(_user: int | None, found: int, text: int | None, count: int) -> None:
        with inside():
            message = ctypes.string_at(text, count).decode("utf-8", "replace") if text else ""
            logger.log(_LEVELS[min(max(found, 0), 3)], "%s", message)

    return write


@atexit.register
def _end() -> None:
    # In a process that was forked, a thread that is not there may be in the middle of a message.
    if _kept[1] == os.getpid():
        set_log(None)
