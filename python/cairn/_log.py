"""The library's messages, which are dropped unless somebody asks for them."""

from __future__ import annotations

import ctypes
import logging
from typing import Any

from . import _c

_LEVELS = (logging.DEBUG, logging.INFO, logging.WARNING, logging.ERROR)
# What the library calls has to stay for as long as it may be called.
_kept: list[Any] = [_c.LogFunction(0)]


def set_log(logger: logging.Logger | None, level: int = logging.WARNING) -> None:
    """Hands the library's messages of a level and above to a logger; None: they are dropped."""
    if logger is None:
        _c.lib.cairn_set_log(_c.LogFunction(0), None, 0)
        _kept[0] = _c.LogFunction(0)
        return

    def write(_user: int | None, found: int, text: int | None, count: int) -> None:
        message = ctypes.string_at(text, count).decode("utf-8", "replace") if text else ""
        logger.log(_LEVELS[min(max(found, 0), 3)], "%s", message)

    least = sum(each < level for each in _LEVELS)
    function = _c.LogFunction(write)
    _c.lib.cairn_set_log(function, None, min(least, 3))
    _kept[0] = function
