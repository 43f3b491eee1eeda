"""Completions become chat completions: text, or calls of tools that are read from it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from typing import Any

_CALL_TAG = re.compile(r"<tool_call>\s*(.*?)\s*(?:</tool_call>|$)", re.DOTALL)
_OPENING = "<tool_call>"


def chat_logprobs(logprobs: dict[str, Any] | None) -> dict[str, Any] | None:
    """Those of a completion in the form of chat completions."""
    if logprobs is None:
        return None
    return {
        "content": [
            {
                "token": token,
                "logprob": logprob,
                "bytes": list(token.encode("utf-8")),
                "top_logprobs": [
                    {"token": text, "logprob": value, "bytes": list(text.encode("utf-8"))}
                    for text, value in (top or {}).items()
                ],
            }
            for token, logprob, top in zip(
                logprobs["tokens"], logprobs["token_logprobs"], logprobs["top_logprobs"]
            )
        ],
        "refusal": None,
    }


def _call(value: Any, names: Sequence[str]) -> tuple[str, str] | None:
    """A call's name and its arguments as text, where a JSON value is one."""
    if not isinstance(value, dict):
        return None
    inner = value.get("function")
    if isinstance(inner, dict):
        value = inner
    name = value.get("name")
    arguments = value.get("arguments", value.get("parameters", {}))
    if not isinstance(name, str) or name not in names:
        return None
    return name, arguments if isinstance(arguments, str) else json.dumps(arguments)


def read_calls(text: str, names: Sequence[str]) -> list[tuple[str, str]]:
    """Calls in a text: in <tool_call> tags, or a text that is one call or a list of them.

    Returns:
        Names and arguments; nothing where any part is no call of these tools.
    """
    if not names:
        return []
    parts = _CALL_TAG.findall(text) or [text.strip()]
    found: list[tuple[str, str]] = []
    for part in parts:
        try:
            value = json.loads(part)
        except ValueError:
            return []
        for each in value if isinstance(value, list) else [value]:
            call = _call(each, names)
            if call is None:
                return []
            found.append(call)
    return found


def _tool_calls(calls: Sequence[tuple[str, str]], completion_id: str) -> list[dict[str, Any]]:
    return [
        {
            "id": f"call_{index}_{name}_{completion_id}",
            "type": "function",
            "function": {"name": name, "arguments": arguments},
        }
        for index, (name, arguments) in enumerate(calls)
    ]


def calls_message(calls: Sequence[tuple[str, str]], completion_id: str) -> dict[str, Any]:
    """A message that calls tools; with the older form where it is one call."""
    message: dict[str, Any] = {
        "role": "assistant",
        "content": None,
        "tool_calls": _tool_calls(calls, completion_id),
    }
    if len(calls) == 1:
        message["function_call"] = {"name": calls[0][0], "arguments": calls[0][1]}
    return message


def reply(
    completion: dict[str, Any], message: dict[str, Any], finish_reason: str | None
) -> dict[str, Any]:
    """A chat completion with a message."""
    made = {
        "id": "chat" + completion["id"],
        "object": "chat.completion",
        "created": completion["created"],
        "model": completion["model"],
        "choices": [
            {
                "index": 0,
                "message": message,
                "logprobs": chat_logprobs(completion["choices"][0]["logprobs"]),
                "finish_reason": finish_reason,
            }
        ],
        "usage": completion["usage"],
    }
    if "memory" in completion:
        made["memory"] = completion["memory"]
    return made


def text_reply(completion: dict[str, Any], names: Sequence[str] = ()) -> dict[str, Any]:
    """A completion as a reply: calls of tools where its text is nothing else."""
    choice = completion["choices"][0]
    calls = read_calls(choice["text"], names)
    if calls:
        return reply(completion, calls_message(calls, completion["id"]), "tool_calls")
    message = {"role": "assistant", "content": choice["text"]}
    return reply(completion, message, choice["finish_reason"])


def call_reply(name: str, completion: dict[str, Any]) -> dict[str, Any]:
    """A completion whose text is the arguments of a tool."""
    calls = [(name, completion["choices"][0]["text"])]
    return reply(completion, calls_message(calls, completion["id"]), "tool_calls")


def chunk(
    piece: dict[str, Any],
    delta: dict[str, Any],
    finish_reason: str | None = None,
    logprobs: dict[str, Any] | None = None,
) -> dict[str, Any]:
    """One piece of a streamed reply."""
    return {
        "id": "chat" + piece["id"],
        "object": "chat.completion.chunk",
        "created": piece["created"],
        "model": piece["model"],
        "choices": [
            {
                "index": 0,
                "delta": delta,
                "logprobs": chat_logprobs(logprobs),
                "finish_reason": finish_reason,
            }
        ],
    }


def _may_be_calls(text: str) -> bool:
    begin = text.lstrip()
    if not begin or begin[0] in "{[":
        return True
    return _OPENING.startswith(begin) or begin.startswith(_OPENING)


def text_chunks(
    pieces: Iterator[dict[str, Any]], names: Sequence[str] = ()
) -> Iterator[dict[str, Any]]:
    """A streamed completion as a streamed reply. With tools, text that may be a call is held back
    until that is known."""
    held: list[dict[str, Any]] = []
    holds = bool(names)
    is_first = True
    for piece in pieces:
        if is_first:
            yield chunk(piece, {"role": "assistant"})
            is_first = False
        choice = piece["choices"][0]
        held.append(piece)
        finish_reason = choice["finish_reason"]
        text = "".join(each["choices"][0]["text"] for each in held)
        if holds and finish_reason is None and _may_be_calls(text):
            continue
        calls = read_calls(text, names) if holds else []
        holds = False
        if calls:
            yield from _calls_of(piece, calls)
            return
        for each in held:
            content, logprobs = each["choices"][0]["text"], each["choices"][0]["logprobs"]
            if content or logprobs:
                yield chunk(each, {"content": content}, None, logprobs)
        held = []
        if finish_reason is not None:
            yield chunk(piece, {}, finish_reason)


def all_call_chunks(
    completion: dict[str, Any], calls: Sequence[tuple[str, str]]
) -> Iterator[dict[str, Any]]:
    """Calls that are known, as a streamed reply."""
    yield chunk(completion, {"role": "assistant", "content": None})
    yield from _calls_of(completion, calls)


def _calls_of(
    piece: dict[str, Any], calls: Sequence[tuple[str, str]]
) -> Iterator[dict[str, Any]]:
    for index, call in enumerate(_tool_calls(calls, piece["id"])):
        yield chunk(piece, {"tool_calls": [{"index": index, **call}]})
    yield chunk(piece, {}, "tool_calls")


def call_chunks(name: str, pieces: Iterator[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """A streamed completion whose text is the arguments of a tool."""
    is_first = True
    for piece in pieces:
        choice = piece["choices"][0]
        if is_first:
            yield chunk(piece, {"role": "assistant", "content": None})
            (call,) = _tool_calls([(name, "")], piece["id"])
            yield chunk(piece, {"tool_calls": [{"index": 0, **call}]})
            is_first = False
        if choice["text"]:
            delta = {"index": 0, "function": {"arguments": choice["text"]}}
            yield chunk(piece, {"tool_calls": [delta]}, None, choice["logprobs"])
        if choice["finish_reason"] is not None:
            yield chunk(piece, {}, "tool_calls")
