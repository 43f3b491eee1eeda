"""Lists of tokens as the C interface has them."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterable
from typing import Any

from . import _c
from ._errors import InvalidError, check, new_error


def array_of(tokens: Iterable[int]) -> Any:
    """A ctypes array of int32 of the tokens' number. Errors: InvalidError: no ids."""
    ids = tokens if isinstance(tokens, (list, tuple)) else list(tokens)
    try:
        return (ctypes.c_int32 * len(ids))(*ids)
    except TypeError as error:
        raise InvalidError(f"tokens: expected whole numbers, found others: {error}") from None


def list_from(address: int | None, count: int) -> list[int]:
    if not address or count == 0:
        return []
    return list((ctypes.c_int32 * count).from_address(address))


# What writes items to a buffer of a capacity, and to a place how many there are.
_Writer = Callable[[Any, int, Any, Any], int]


def collect_tokens(call: _Writer, guess: int) -> list[int]:
    """All tokens of a function that writes up to a capacity and says how many there are."""
    out, count = _collect(ctypes.c_int32, call, guess)
    return list(out[:count])


def collect_bytes(call: _Writer, guess: int) -> bytes:
    """The same for bytes."""
    out, count = _collect(ctypes.c_char, call, guess)
    return bytes(out[:count])


def _collect(item: Any, call: _Writer, guess: int) -> tuple[Any, int]:
    """The buffer, and how many items it has. Asks again where the guess was too small."""
    error, count, capacity = new_error(), ctypes.c_size_t(), guess
    while True:
        out = (item * capacity)()
        status = call(out, capacity, ctypes.byref(count), ctypes.byref(error))
        if status != _c.E_NO_ROOM or count.value <= capacity:
            check(status, error)
            return out, count.value
        capacity = count.value
