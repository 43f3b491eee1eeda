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


def collect_tokens(
    call: Callable[[Any, int, Any, Any], int], guess: int
) -> list[int]:
    """Tokens of a function that writes up to a capacity and says how many there are."""
    error = new_error()
    count = ctypes.c_size_t()
    capacity = guess
    while True:
        out = (ctypes.c_int32 * capacity)()
        status = call(out, capacity, ctypes.byref(count), ctypes.byref(error))
        if status != _c.E_NO_ROOM or count.value <= capacity:
            check(status, error)
            return out[: count.value]
        capacity = count.value


def collect_bytes(call: Callable[[Any, int, Any, Any], int], guess: int) -> bytes:
    """The same for bytes."""
    error = new_error()
    count = ctypes.c_size_t()
    capacity = guess
    while True:
        out = ctypes.create_string_buffer(max(capacity, 1))
        status = call(out, capacity, ctypes.byref(count), ctypes.byref(error))
        if status != _c.E_NO_ROOM or count.value <= capacity:
            check(status, error)
            return out.raw[: count.value]
        capacity = count.value


