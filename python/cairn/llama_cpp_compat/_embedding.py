"""Vectors of texts, by an instance with embedding=True."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ._llama import Llama


def embed(
    self: Llama,
    input: str | Sequence[str],
    normalize: bool = False,
    truncate: bool = True,
    return_count: bool = False,
) -> Any:
    """The vector of a text, or a list of the vectors of texts, each of length 1.

    Args:
        normalize: Does nothing: vectors always have length 1.
        truncate: Of longer texts the first tokens are taken, as many as n_batch and n_ctx allow;
            else they are an error.
        return_count: Returns the number of tokens too: (vectors, tokens).

    Raises:
        RuntimeError: the instance was made without embedding=True.
        ValueError: a text is longer than that, with truncate=False.
    """
    if not self._arguments["embedding"]:
        raise RuntimeError("Llama model must be created with embedding=True to call this method")
    most = min(self.n_batch, self.n_ctx())
    vectors: list[list[float]] = []
    total = 0
    with self._lock:
        engine = self._open()
        for text in [input] if isinstance(input, str) else input:
            tokens = self.tokenize(text)
            if truncate:
                tokens = tokens[:most]
            if len(tokens) > most:
                raise ValueError(f"Requested tokens ({len(tokens)}) exceed batch size of {most}")
            total += len(tokens)
            vectors.append(engine.embed(tokens))
    found = vectors[0] if isinstance(input, str) else vectors
    return (found, total) if return_count else found


def create_embedding(
    self: Llama, input: str | Sequence[str], model: str | None = None
) -> dict[str, Any]:
    """The same as a dictionary in OpenAI's form."""
    texts = [input] if isinstance(input, str) else list(input)
    vectors, total = self.embed(texts, return_count=True)
    return {
        "object": "list",
        "data": [
            {"object": "embedding", "embedding": vector, "index": index}
            for index, vector in enumerate(vectors)
        ],
        "model": model or self.model_path,
        "usage": {"prompt_tokens": total, "total_tokens": total},
    }
