"""What a request is about, for whoever chooses where it is computed: its prompt as a chain of keys,
one for each message and each block of a long one, without a tokenizer. Pure."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

# Bytes of a message after which its prefix has a key of its own.
BLOCK_BYTES = 1024
_KEY_BYTES = 8
# Members that come before the messages in what a model reads.
_FIRST_MEMBERS = ("tools", "functions", "system", "instructions")
# Members with messages or texts, of which a request has one.
_TEXT_MEMBERS = ("messages", "input", "prompt", "content")
# Paths of things that one server alone has: their name is the last group.
_OWNED_PATH = re.compile(r"/v1/(?:sessions|responses|receipts)/([^/]+)")
_REPLY_ID = re.compile(rb'"id"\s*:\s*"([A-Za-z0-9._-]{1,128})"')


@dataclass(frozen=True)
class Prompt:
    """A prompt's prefixes, the shortest first, each with its length in bytes."""

    keys: tuple[bytes, ...]
    ends: tuple[int, ...]
    affinity: bytes  # The same for all requests of a conversation.
    owned: str | None = None  # What it needs lies where this was made: a session's or reply's name.

    @property
    def size(self) -> int:
        return self.ends[-1] if self.ends else 0


def _digest(*parts: bytes) -> bytes:
    hashed = hashlib.blake2b(digest_size=_KEY_BYTES)
    for part in parts:
        hashed.update(len(part).to_bytes(8, "little"))
        hashed.update(part)
    return hashed.digest()


def _text(value: object) -> bytes:
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return text.encode(errors="replace")


def _pieces(body: Mapping[str, Any]) -> tuple[list[bytes], int]:
    """The parts of a prompt in the order in which they are read, and how many of them begin every
    turn of a conversation."""
    pieces = [_text(body[name]) for name in _FIRST_MEMBERS if body.get(name)]
    for name in _TEXT_MEMBERS:
        told = body.get(name)
        if isinstance(told, str):
            pieces.append(told.encode(errors="replace"))
            return pieces, len(pieces)
        if isinstance(told, Sequence):
            first = next(
                (
                    index
                    for index, item in enumerate(told)
                    if not isinstance(item, Mapping) or item.get("role") == "user"
                ),
                len(told) - 1,
            )
            pieces.extend(_text(item) for item in told)
            return pieces, len(pieces) - len(told) + first + 1
    return pieces, len(pieces)


def _object(body: bytes) -> Mapping[str, Any]:
    try:
        told = json.loads(body)
    except (ValueError, RecursionError):
        return {}
    return told if isinstance(told, dict) else {}


def prompt_of(path: str, headers: Mapping[str, str], body: bytes) -> Prompt:
    """`headers` by names in small letters. What is no JSON is a prompt without prefixes."""
    told = _object(body)
    model = told.get("model")
    key = _digest(
        headers.get("authorization", headers.get("x-api-key", "")).encode(),
        model.encode() if isinstance(model, str) else b"",
    )
    pieces, begin_count = _pieces(told)
    keys: list[bytes] = []
    ends: list[int] = []
    affinity, size = key, 0
    for index, piece in enumerate(pieces):
        for begin in range(0, len(piece), BLOCK_BYTES):
            block = piece[begin : begin + BLOCK_BYTES]
            key = _digest(key, block)
            size += len(block)
            keys.append(key)
            ends.append(size)
        key = _digest(key)  # "ab" and "c" are no "a" and "bc".
        if keys:
            keys[-1] = key
        if index + 1 == begin_count:
            affinity = key
    for name in ("x-cairn-affinity", "x-session-id"):
        if headers.get(name):
            affinity = _digest(headers[name].encode())
            break
    else:
        if isinstance(told.get("prompt_cache_key"), str):
            affinity = _digest(told["prompt_cache_key"].encode())
    return Prompt(tuple(keys), tuple(ends), affinity, _owned(path, told))


def _owned(path: str, told: Mapping[str, Any]) -> str | None:
    found = _OWNED_PATH.search(path)
    if found:
        return found[1]
    if path.endswith("/v1/sessions") and isinstance(told.get("id"), str):
        return str(told["id"])
    previous = told.get("previous_response_id")
    return previous if isinstance(previous, str) else None


def makes_owned(path: str, body: bytes) -> bool:
    """Whether the reply's id names something that lies where the reply was made."""
    ends = ("/v1/responses", "/responses", "/v1/sessions", "/fork")
    return path.endswith(ends) or b'"receipt"' in body


def id_of(reply: bytes) -> str | None:
    """The first id in the beginning of a reply or of a stream."""
    found = _REPLY_ID.search(reply)
    return found[1].decode() if found else None
