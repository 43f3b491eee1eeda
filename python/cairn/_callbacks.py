"""Functions of the program that the library calls, and how both end together.

The library refuses what such a function calls of it, and cannot say so where it returns nothing:
`is_inside` tells. A thread of the library's must not call Python when the interpreter has ended,
which would end that thread in the middle: the program's end waits for those that may.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import threading
import weakref
from collections.abc import Iterator

# A function of the program that never returns does not hold up its end for longer.
_END_SECONDS_MAX = 10.0

_here = threading.local()
_changed = threading.Condition()
_awaited_count = 0
_is_ending = False


@contextlib.contextmanager
def inside() -> Iterator[None]:
    """Around a function of the program that the library has called on this thread."""
    _here.is_inside = True
    try:
        yield
    finally:
        _here.is_inside = False


def is_inside() -> bool:
    return getattr(_here, "is_inside", False)


@contextlib.contextmanager
def awaited() -> Iterator[None]:
    """Around what may call a function of the program: the program's end waits for it."""
    global _awaited_count
    with _changed:
        end_thread()
        _awaited_count += 1
    try:
        yield
    finally:
        with _changed:
            _awaited_count -= 1
            _changed.notify_all()


def is_ending() -> bool:
    """The program ends: nothing long should be begun, or go on."""
    return _is_ending


def end_thread() -> None:
    """Where the program ends and has closed what this thread uses, the thread ends, silently."""
    if _is_ending and threading.current_thread() is not threading.main_thread():
        raise SystemExit


def _end() -> None:
    global _is_ending
    _is_ending = True
    with _changed:
        _changed.wait_for(lambda: _awaited_count == 0, _END_SECONDS_MAX)


def _begin_in_child() -> None:
    # The other threads of the process that has forked are not here.
    global _awaited_count, _changed
    _awaited_count, _changed = 0, threading.Condition()


# Those that close handles at exit have registered theirs by then, and later ones go first.
weakref.finalize(_end, lambda: None)
atexit.register(_end)
os.register_at_fork(after_in_child=_begin_in_child)
