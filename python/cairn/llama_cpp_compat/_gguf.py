"""The metadata of a GGUF file: what its keys say, and the texts of its tokens.

`Model` has read the file by then and trusts nothing in it; this reader checks its own steps all the
same. It knows nothing of tensors.
"""

from __future__ import annotations

import mmap
import os
import struct
from typing import Any

from .._errors import FormatError

_SCALARS = {
    0: "<B",
    1: "<b",
    2: "<H",
    3: "<h",
    4: "<I",
    5: "<i",
    6: "<f",
    7: "<?",
    10: "<Q",
    11: "<q",
    12: "<d",
}
_FLOAT, _STRING, _ARRAY = 6, 8, 9
_KEYS_MAX = 1 << 16
_TOKENS = "tokenizer.ggml.tokens"


class _Reader:
    def __init__(self, data: mmap.mmap) -> None:
        self.data, self.at = data, 0

    def take(self, layout: str) -> Any:
        size = struct.calcsize(layout)
        self.need(size)
        (value,) = struct.unpack_from(layout, self.data, self.at)
        self.at += size
        return value

    def need(self, size: int) -> None:
        if size > len(self.data) - self.at:
            raise FormatError(
                f"metadata: expected {size} bytes at {self.at}, "
                f"found the end of the file at {len(self.data)}"
            )

    def text(self) -> bytes:
        size = self.take("<Q")
        self.need(size)
        self.at += size
        return self.data[self.at - size : self.at]

    def value(self, kind: int) -> str:
        if kind == _STRING:
            return self.text().decode("utf-8", "replace")
        layout = _SCALARS.get(kind)
        if layout is None:
            raise FormatError(f"metadata: expected a type up to 12, found {kind}")
        value = self.take(layout)
        if isinstance(value, bool):
            return "true" if value else "false"
        return f"{value:.7g}" if kind == _FLOAT else str(value)

    def array(self, keep: bool) -> list[bytes]:
        """The texts of an array of texts where they are wanted; else nothing."""
        kind, count = self.take("<I"), self.take("<Q")
        if kind in _SCALARS:
            size = count * struct.calcsize(_SCALARS[kind])
            self.need(size)
            self.at += size
            return []
        if kind != _STRING:
            raise FormatError(f"metadata: expected an array of texts or numbers, found type {kind}")
        self.need(8 * count)
        found = []
        for _ in range(count):
            text = self.text()
            if keep:
                found.append(text)
        return found


def read_metadata(path: str | os.PathLike[str]) -> tuple[dict[str, str], list[str]]:
    """All keys of a file with one value each, as text, and the texts of its tokens.

    Lists are left out. Numbers have their shortest form of 7 digits: "1e-05".

    Raises:
        FormatError: the file is no GGUF, or is cut short.
        OSError.
    """
    with open(path, "rb") as file:
        if os.fstat(file.fileno()).st_size < 24:
            raise FormatError(f"{os.fspath(path)}: expected a GGUF file, found less than a header")
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            reader = _Reader(data)
            magic, version = reader.take("<I"), reader.take("<I")
            if magic != 0x46554747 or version not in (2, 3):
                raise FormatError(
                    f"{os.fspath(path)}: expected GGUF version 2 or 3, "
                    f"found magic {magic:#010x} and version {version}"
                )
            reader.take("<Q")  # Tensors.
            return _read_keys(reader)


def _read_keys(reader: _Reader) -> tuple[dict[str, str], list[str]]:
    count = reader.take("<Q")
    if count > _KEYS_MAX:
        raise FormatError(f"metadata: expected at most {_KEYS_MAX} keys, found {count}")
    found: dict[str, str] = {}
    tokens: list[bytes] = []
    for _ in range(count):
        key = reader.text().decode("utf-8", "replace")
        kind = reader.take("<I")
        if kind == _ARRAY:
            texts = reader.array(keep=key == _TOKENS)
            tokens = texts or tokens
        else:
            found[key] = reader.value(kind)
    return found, [token.decode("utf-8", "replace") for token in tokens]
