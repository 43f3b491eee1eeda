"""Models: a GGUF file with its vocabulary and its chat template."""

from __future__ import annotations

import ctypes
import json
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Union

from . import _c
from ._errors import check, new_error
from ._handles import Handle
from ._tokens import array_of, collect_bytes, collect_tokens, zero_ended

Message = Mapping[str, Any]
Text = Union[str, bytes]


@dataclass(frozen=True)
class ModelInfo:
    """What a model's file says of itself."""

    architecture: str
    name: str
    file_bytes: int
    vocabulary_count: int
    """Tokens; 0: the file has no vocabulary."""
    has_chat_template: bool
    bos: int | None
    """The token that begins texts."""
    eos: int | None
    """The token that ends texts."""
    identity: str
    """Copies of a file have one identity."""


def encoded(text: Text) -> bytes:
    return text.encode("utf-8") if isinstance(text, str) else bytes(text)


class Model(Handle):
    """A GGUF file with its vocabulary and its chat template; weights are read by engines.

    Constant: may be used on any thread.

    Raises:
        StorageError, FormatError, UnsupportedError: with what was expected and found.

    >>> with Model(NANO) as model:
    ...     model.tokenize("Hello")
    ...     model.detokenize(model.tokenize("Hello"))
    [428]
    'Hello'
    """

    _WHAT = "model"

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = os.fspath(path)
        error = new_error()
        handle = ctypes.c_void_p()
        status = _c.lib.cairn_model_open(
            zero_ended("path", os.fsencode(self.path)), ctypes.byref(handle), ctypes.byref(error)
        )
        check(status, error)
        assert handle.value is not None
        super().__init__(handle.value, _c.lib.cairn_model_close)
        found = json.loads(_c.lib.cairn_model_info_json(handle))
        self.info = ModelInfo(**{key: found.get(key) for key in ModelInfo.__dataclass_fields__})

    def __repr__(self) -> str:
        return f"<cairn.Model {self.info.architecture} {self.path!r}>"

    def tokenize(self, text: Text, *, bos: bool = False, special: bool = False) -> list[int]:
        """Tokens of a text.

        Args:
            text: UTF-8 where it is bytes.
            bos: Adds the tokens that the model wants around a whole text.
            special: Reads special tokens by their names; else these are text like any other.
        """
        data = encoded(text)
        flags = (_c.TEXT_BOS if bos else 0) | (_c.TEXT_SPECIAL if special else 0)
        handle = self._open_handle()
        return collect_tokens(
            lambda out, capacity, count, error: _c.lib.cairn_tokenize(
                handle, data, len(data), flags, out, capacity, count, error
            ),
            len(data) + 8,
        )

    def detokenize(
        self, tokens: Iterable[int], *, whole: bool = True, special: bool = False
    ) -> str:
        """The text of tokens; what is not UTF-8 becomes U+FFFD. Arguments: detokenize_bytes()."""
        return self.detokenize_bytes(tokens, whole=whole, special=special).decode(
            "utf-8", "replace"
        )

    def detokenize_bytes(
        self, tokens: Iterable[int], *, whole: bool = True, special: bool = False
    ) -> bytes:
        """The bytes of tokens, which may begin or end within a character.

        Args:
            whole: The tokens are a whole text, else the rest of one: some models put a space
                before a whole text, which is left out.
            special: Writes special tokens by their names; else they are left out.
        """
        ids = array_of(tokens)
        flags = (_c.TEXT_BOS if whole else 0) | (_c.TEXT_SPECIAL if special else 0)
        handle = self._open_handle()
        return collect_bytes(
            lambda out, capacity, count, error: _c.lib.cairn_detokenize(
                handle, ids, len(ids), flags, out, capacity, count, error
            ),
            8 * len(ids) + 16,
        )

    def render(
        self,
        messages: Sequence[Message],
        *,
        tools: Sequence[Mapping[str, Any]] | None = None,
        documents: Sequence[Mapping[str, Any]] | None = None,
        add_generation_prompt: bool = True,
        **variables: Any,
    ) -> list[int]:
        """Tokens of a conversation in the form that the model was trained on.

        Special tokens come from the model's chat template alone, never from what messages say.

        Args:
            messages: ``[{"role": "user", "content": "Hello"}]``.
            variables: Of the template, such as ``enable_thinking=False``.

        Raises:
            UnsupportedError: the model has no chat template, or it does not take these messages.
        """
        request: dict[str, Any] = {
            **variables,
            "messages": list(messages),
            "add_generation_prompt": add_generation_prompt,
        }
        if tools is not None:
            request["tools"] = list(tools)
        if documents is not None:
            request["documents"] = list(documents)
        data = json.dumps(request).encode("utf-8")
        handle = self._open_handle()
        return collect_tokens(
            lambda out, capacity, count, error: _c.lib.cairn_chat_render(
                handle, data, len(data), out, capacity, count, error
            ),
            len(data) + 64,
        )
