"""Handles of the C interface, each closed once: by hand, by a `with` block, or with its object."""

from __future__ import annotations

import atexit
import os
import weakref
from collections import deque
from collections.abc import Callable
from types import TracebackType
from typing import TypeVar

from ._callbacks import end_thread, is_inside
from ._errors import InvalidError

_Self = TypeVar("_Self", bound="Handle")
# Given up within a function that the library has called, where it would close nothing.
_waiting: deque[tuple[Callable[[int], None], int]] = deque()


def _close_here(close: Callable[[int], None], handle: int, process: int) -> None:
    # The handles of a process that has forked are its own.
    if os.getpid() != process:
        return
    if is_inside():
        _waiting.append((close, handle))
    else:
        close(handle)


@atexit.register
def close_waiting() -> None:
    """Closes what could not be closed when it was given up."""
    while _waiting and not is_inside():
        try:
            close, handle = _waiting.popleft()
        except IndexError:  # Another thread was faster.
            return
        close(handle)


class Handle:
    """What owns a handle. Closing twice does nothing; an object that nobody has any more closes
    its handle too."""

    _WHAT = "handle"

    def __init__(self, handle: int, close: Callable[[int], None]) -> None:
        self._handle: int | None = handle
        self._process = os.getpid()
        self._finalizer = weakref.finalize(self, _close_here, close, handle, self._process)

    def close(self) -> None:
        """Gives back what it holds. What stands on it stays open until it is closed itself."""
        self._handle = None
        self._finalizer()

    @property
    def closed(self) -> bool:
        return self._handle is None

    def _open_handle(self) -> int:
        if _waiting:
            close_waiting()
        if self._handle is None:
            end_thread()
            raise InvalidError(f"{self._WHAT}: expected an open one, found one that was closed")
        return self._handle

    def __enter__(self: _Self) -> _Self:
        self._open_handle()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def __reduce__(self) -> str | tuple[object, ...]:
        raise TypeError(f"a {self._WHAT} belongs to its process: it cannot be pickled or copied")
