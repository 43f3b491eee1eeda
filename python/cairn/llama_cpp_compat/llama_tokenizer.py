"""Tokenizers: the model's own, and those of transformers."""

from __future__ import annotations

import abc
import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ._llama import Llama


class BaseLlamaTokenizer(abc.ABC):
    """Texts, as UTF-8 bytes, and tokens."""

    @abc.abstractmethod
    def tokenize(self, text: bytes, add_bos: bool = True, special: bool = True) -> list[int]:
        """Tokens of a text.

        Args:
            add_bos: Adds what the model wants around a whole text.
            special: Reads special tokens by their names.
        """

    @abc.abstractmethod
    def detokenize(
        self, tokens: list[int], prev_tokens: list[int] | None = None, special: bool = False
    ) -> bytes:
        """Bytes of tokens.

        Args:
            prev_tokens: Those before these, where these do not begin a text.
            special: Writes special tokens by their names.
        """


class LlamaTokenizer(BaseLlamaTokenizer):
    """The tokenizer of a model's file."""

    def __init__(self, llama: Llama) -> None:
        self._model = llama._model

    def tokenize(self, text: bytes, add_bos: bool = True, special: bool = True) -> list[int]:
        return self._model.tokenize(text, add_bos, special)

    def detokenize(
        self, tokens: list[int], prev_tokens: list[int] | None = None, special: bool = False
    ) -> bytes:
        # What begins with the model's first token is a whole text; anything else is a part of one.
        is_whole = not prev_tokens and tokens[:1] == [self._model.token_bos()]
        return self._model.detokenize(tokens, special, whole=is_whole)

    def encode(self, text: str, add_bos: bool = True, special: bool = True) -> list[int]:
        return self.tokenize(text.encode("utf-8", "ignore"), add_bos, special)

    def decode(self, tokens: list[int]) -> str:
        return self.detokenize(tokens).decode("utf-8", "ignore")

    @classmethod
    def from_ggml_file(cls, path: str) -> LlamaTokenizer:
        from ._llama import Llama

        return cls(Llama(path, vocab_only=True))


class LlamaHFTokenizer(BaseLlamaTokenizer):
    """A tokenizer of transformers."""

    def __init__(self, hf_tokenizer: Any) -> None:
        self.hf_tokenizer = hf_tokenizer

    def tokenize(self, text: bytes, add_bos: bool = True, special: bool = True) -> list[int]:
        return list(
            self.hf_tokenizer.encode(text.decode("utf-8", "ignore"), add_special_tokens=special)
        )

    def detokenize(
        self, tokens: list[int], prev_tokens: list[int] | None = None, special: bool = False
    ) -> bytes:
        before = self._bytes(prev_tokens, special) if prev_tokens else b""
        return self._bytes([*(prev_tokens or ()), *tokens], special)[len(before) :]

    def _bytes(self, tokens: list[int], special: bool) -> bytes:
        text: str = self.hf_tokenizer.decode(tokens, skip_special_tokens=not special)
        return text.encode("utf-8", "ignore")

    @classmethod
    def from_pretrained(cls, pretrained_model_name_or_path: str) -> LlamaHFTokenizer:
        try:
            transformers = importlib.import_module("transformers")
        except ImportError as error:
            raise ImportError("LlamaHFTokenizer: expected the package transformers") from error
        return cls(transformers.AutoTokenizer.from_pretrained(pretrained_model_name_or_path))
