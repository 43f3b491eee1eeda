"""What can go wrong, as exceptions: one class for each status of the C interface."""

from __future__ import annotations

import ctypes
from typing import NoReturn

from . import _c
from ._callbacks import end_thread


class CairnError(Exception):
    """Something that cairn was asked for could not be done; the text says what and why."""


class InvalidError(CairnError, ValueError):
    """What was given makes no sense."""


class BusyError(CairnError):
    """Another call uses the session, or an answer is being made in the background."""


class NoRoomError(CairnError, MemoryError):
    """The context or the memory budget is full."""


class StorageError(CairnError, OSError):
    """The operating system said no."""


class FormatError(CairnError, ValueError):
    """A file or a text breaks its format."""


class UnsupportedError(CairnError, NotImplementedError):
    """Well-formed, but this library, model or engine cannot do it."""


class MismatchError(CairnError, ValueError):
    """Of another engine or another model."""


class InternalError(CairnError):
    """A defect of the library."""


class Cancelled(CairnError):
    """`Session.cancel()` ended the call: all is as it was before."""


_BY_STATUS: dict[int, type[CairnError]] = {
    _c.CANCELLED: Cancelled,
    -1: InvalidError,
    -2: BusyError,
    _c.E_NO_ROOM: NoRoomError,
    -4: StorageError,
    -5: FormatError,
    -6: UnsupportedError,
    -7: MismatchError,
    -8: InternalError,
}


def new_error() -> _c.Error:
    """For one call of the C interface, or many one after the other."""
    return _c.Error(struct_size=ctypes.sizeof(_c.Error))


def fail(status: int, error: _c.Error) -> NoReturn:
    end_thread()
    message = error.message.decode("utf-8", "replace")
    raise _BY_STATUS.get(status, InternalError)(message or f"status {status}")


def check(status: int, error: _c.Error) -> None:
    """Raises what a status says, unless it is CAIRN_OK."""
    if status != _c.OK:
        fail(status, error)


def in_range(name: str, value: int, least: int, most: int) -> int:
    """The value. Errors: InvalidError: the C interface has no such number."""
    if not least <= value <= most:
        raise InvalidError(f"{name}: expected a number from {least} to {most}, found {value}")
    return value
