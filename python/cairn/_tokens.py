"""Lists of tokens, and texts, as the C interface has them."""

from __future__ import annotations

import ctypes
from array import array
from collections.abc import Callable, Iterable
from typing import Any

from . import _c
from ._errors import InvalidError, check, new_error


def array_of(tokens: Iterable[int]) -> Any:
    """A ctypes array of int32 of the tokens' number. Errors: InvalidError: no ids."""
    try:
        ids = array("i", iter(tokens))
    except TypeError as error:
        raise InvalidError(f"tokens: expected whole numbers, found others: {error}") from None
    except OverflowError as error:
        raise InvalidError(f"tokens: expected ids of the vocabulary: {error}") from None
    return (ctypes.c_int32 * len(ids)).from_buffer(ids)


def zero_ended(name: str, text: str | bytes) -> bytes:
    """A text that C takes to end at its first zero byte. Errors: InvalidError: it has one."""
    data = text if isinstance(text, bytes) else text.encode("utf-8")
    if b"\0" in data:
        raise InvalidError(f"{name}: expected text without zero bytes")
    return data


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


def collect_floats(call: _Writer, guess: int) -> list[float]:
    """The same for floats."""
    out, count = _collect(ctypes.c_float, call, guess)
    return list(out[:count])


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
