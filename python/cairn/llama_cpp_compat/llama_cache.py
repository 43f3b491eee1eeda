"""Caches of states: in memory, or in files that outlive the process."""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
import threading
from abc import ABC, abstractmethod
from collections import OrderedDict
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np

from ._state import LlamaState

_MAGIC = b"cairn llama state 1\n"
_ENDING = ".state"


def _common(a: Sequence[int], b: Sequence[int]) -> int:
    count = 0
    for left, right in zip(a, b):
        if left != right:
            break
        count += 1
    return count


class BaseLlamaCache(ABC):
    """States by their tokens; looking up finds the one with the longest common beginning.

    Args:
        capacity_bytes: Of all states; what was used longest ago goes first.
    """

    def __init__(self, capacity_bytes: int = 2 << 30) -> None:
        self.capacity_bytes = capacity_bytes
        self._guard = threading.RLock()

    @property
    @abstractmethod
    def cache_size(self) -> int:
        """Bytes of all states."""

    @abstractmethod
    def _keys(self) -> Iterable[tuple[int, ...]]:
        """Of all states."""

    @abstractmethod
    def __getitem__(self, key: Sequence[int]) -> LlamaState:
        """Raises: KeyError: no state begins like this."""

    @abstractmethod
    def __setitem__(self, key: Sequence[int], value: LlamaState) -> None: ...

    def __contains__(self, key: Sequence[int]) -> bool:
        with self._guard:
            return self._find_longest_prefix_key(tuple(key)) is not None

    def _find_longest_prefix_key(self, key: tuple[int, ...]) -> tuple[int, ...] | None:
        longest, found = 0, None
        for each in self._keys():
            count = _common(each, key)
            if count > longest:
                longest, found = count, each
        return found


class LlamaRAMCache(BaseLlamaCache):
    """States in memory."""

    def __init__(self, capacity_bytes: int = 2 << 30) -> None:
        super().__init__(capacity_bytes)
        self.cache_state: OrderedDict[tuple[int, ...], LlamaState] = OrderedDict()

    @property
    def cache_size(self) -> int:
        return sum(state.llama_state_size for state in self.cache_state.values())

    def _keys(self) -> Iterable[tuple[int, ...]]:
        return self.cache_state.keys()

    def __getitem__(self, key: Sequence[int]) -> LlamaState:
        with self._guard:
            found = self._find_longest_prefix_key(tuple(key))
            if found is None:
                raise KeyError(f"no state begins like these {len(key)} tokens")
            self.cache_state.move_to_end(found)
            return self.cache_state[found]

    def __setitem__(self, key: Sequence[int], value: LlamaState) -> None:
        with self._guard:
            self.cache_state.pop(tuple(key), None)
            self.cache_state[tuple(key)] = value
            while self.cache_state and self.cache_size > self.capacity_bytes:
                self.cache_state.popitem(last=False)


LlamaCache = LlamaRAMCache


class LlamaDiskCache(BaseLlamaCache):
    """States in files of a folder, one each, which processes may share.

    A file is written aside and renamed, so that nobody reads half of one. One that is damaged
    counts as none.
    """

    def __init__(
        self,
        cache_dir: str | os.PathLike[str] = ".cache/llama_cache",
        capacity_bytes: int = 2 << 30,
    ) -> None:
        super().__init__(capacity_bytes)
        self.cache_dir = Path(cache_dir)
        self.cache_dir.mkdir(parents=True, exist_ok=True)

    @property
    def cache_size(self) -> int:
        return sum(size for _, size, _ in self._files())

    def _files(self) -> list[tuple[int, int, Path]]:
        """When each was used, its bytes and its path; what was used longest ago first."""
        found = []
        for path in self.cache_dir.glob("*" + _ENDING):
            try:
                about = path.stat()
            except FileNotFoundError:  # Another process has removed it.
                continue
            found.append((about.st_mtime_ns, about.st_size, path))
        return sorted(found)

    def _keys(self) -> Iterable[tuple[int, ...]]:
        for _, _, path in reversed(self._files()):
            header = _read_header(path)
            if header is not None:
                yield tuple(header["key"])

    def _path(self, key: Sequence[int]) -> Path:
        digest = hashlib.sha256(np.asarray(key, np.int64).tobytes()).hexdigest()
        return self.cache_dir / (digest + _ENDING)

    def __getitem__(self, key: Sequence[int]) -> LlamaState:
        with self._guard:
            found = self._find_longest_prefix_key(tuple(key))
            state = None if found is None else _read_state(self._path(found))
            if found is None or state is None:
                raise KeyError(f"no state begins like these {len(key)} tokens")
            os.utime(self._path(found))
            return state

    def __setitem__(self, key: Sequence[int], value: LlamaState) -> None:
        with self._guard:
            _write_state(self._path(key), [int(token) for token in key], value)
            files = self._files()
            total = sum(size for _, size, _ in files)
            for _, size, path in files:
                if total <= self.capacity_bytes:
                    break
                path.unlink(missing_ok=True)
                total -= size


def _write_state(path: Path, key: list[int], state: LlamaState) -> None:
    ids = np.ascontiguousarray(state.input_ids[: state.n_tokens], "<i4")
    scores = np.ascontiguousarray(state.scores, "<f4")
    header = {
        "key": key,
        "n_tokens": state.n_tokens,
        "rows": scores.shape[0],
        "floats": scores.shape[1],
        "llama_state": state.llama_state.decode("latin-1"),
        "llama_state_size": state.llama_state_size,
        "seed": state.seed,
    }
    body = ids.tobytes() + scores.tobytes()
    header["digest"] = hashlib.sha256(body).hexdigest()
    descriptor, aside = tempfile.mkstemp(dir=path.parent, suffix=".aside")
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(_MAGIC + json.dumps(header).encode() + b"\n" + body)
        os.replace(aside, path)
    except BaseException:
        Path(aside).unlink(missing_ok=True)
        raise


def _read_header(path: Path) -> dict[str, list[int]] | None:
    try:
        with path.open("rb") as file:
            if file.readline(len(_MAGIC)) != _MAGIC:
                return None
            header = json.loads(file.readline())
    except (OSError, ValueError):
        return None
    return header if isinstance(header, dict) and isinstance(header.get("key"), list) else None


def _read_state(path: Path) -> LlamaState | None:
    try:
        data = path.read_bytes()
        line = data.index(b"\n", len(_MAGIC))
        header = json.loads(data[len(_MAGIC) : line])
        body = data[line + 1 :]
        if hashlib.sha256(body).hexdigest() != header["digest"]:
            return None
        count = header["n_tokens"]
        ids = np.frombuffer(body, "<i4", count)
        scores = np.frombuffer(body, "<f4", offset=ids.nbytes)
        return LlamaState(
            ids.astype(np.intc),
            scores.reshape(header["rows"], header["floats"]).astype(np.single),
            count,
            header["llama_state"].encode("latin-1"),
            header["llama_state_size"],
            header["seed"],
        )
    except (OSError, ValueError, KeyError, TypeError):
        return None
