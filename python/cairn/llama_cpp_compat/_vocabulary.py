"""What a file says of itself: its metadata, its special tokens, and how its layers remember."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from .._model import Model
from ._gguf import read_metadata

# Texts of tokens that end an answer, whatever the file calls them. They are those of the engine
# (src/tokenize/vocabulary.cpp).
_END_TEXTS = frozenset(
    """<|eot_id|> <|im_end|> <|end|> <|return|> <|call|> <|calls|> <|flush|> <end_of_turn>
    <|endoftext|> <|end_of_text|> <|eom_id|> </s> <eos> <EOT> _<EOT> [EOT] [EOS]
    <end_of_utterance> <turn|> <|tool_response> [e~[""".split()
) | {"<\uff5cend\u2581of\u2581sentence\uff5c>"}

_RECURRENT = frozenset({"mamba", "mamba2", "rwkv7"})
_HYBRID = frozenset(
    """falcon-h1 granitehybrid jamba kimi-linear lfm2 lfm2moe nemotron_h nemotron_h_moe plamo2
    qwen35 qwen35moe qwen3next""".split()
)


class Vocabulary:
    """A model's file without its weights. Tokens that the file has not are -1."""

    def __init__(self, model: Model) -> None:
        self.model = model
        self.metadata, self.texts = read_metadata(model.path)
        architecture = model.info.architecture
        self.is_recurrent = architecture in _RECURRENT
        self.is_hybrid = architecture in _HYBRID
        self.ends = self._find_ends()

    def _find_ends(self) -> frozenset[int]:
        found = {text: id for id, text in enumerate(self.texts) if text in _END_TEXTS}
        has_call = "<|call|>" in found or "<|calls|>" in found
        # There <|end|> ends a message of several.
        is_inner = has_call and ("<|return|>" in found or "<|flush|>" in found)
        inner = {found.get("<|end|>")} if is_inner else set()
        ends = set(found.values())
        if "<|tool_response>" in found:
            # There </s> is a tag of HTML.
            ends.discard(found.get("</s>", -1))
        named = {self.special(name) for name in ("eos", "eot", "eom")}
        return frozenset((ends | named) - inner - {-1})

    def number(self, key: str, otherwise: int = 0) -> int:
        """Of a key behind the architecture's name, such as "embedding_length"."""
        text = self.metadata.get(f"{self.model.info.architecture}.{key}", "")
        return int(text) if text.isdigit() else otherwise

    def special(self, *names: str) -> int:
        """The token of the first of these names that the file has, such as "eot"."""
        for name in names:
            text = self.metadata.get(f"tokenizer.ggml.{name}_token_id", "")
            if text.isdigit():
                return int(text)
        return -1

    def token_bos(self) -> int:
        bos = self.model.info.bos
        return -1 if bos is None else bos

    def token_eos(self) -> int:
        eos = self.model.info.eos
        return -1 if eos is None else eos

    def token_nl(self) -> int:
        found = self.model.tokenize("\n")
        return found[-1] if found else -1

    def token_get_text(self, token: int) -> str:
        return self.texts[token] if 0 <= token < len(self.texts) else ""

    def tokenize(self, text: str | bytes, add_bos: bool = True, special: bool = False) -> list[int]:
        return self.model.tokenize(text, bos=add_bos, special=special)

    def detokenize(
        self, tokens: Iterable[int], special: bool = False, whole: bool = True
    ) -> bytes:
        ids = list(tokens)
        return self.model.detokenize_bytes(ids, whole=whole, special=special)

    def __getstate__(self) -> Any:
        raise TypeError("a vocabulary belongs to its model: it cannot be pickled")
