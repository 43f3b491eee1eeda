"""Guesses of what comes next. A `Llama` with a draft model has cairn's own drafts: see the docs."""

from __future__ import annotations

import abc
from typing import Any

import numpy as np
from numpy.typing import NDArray


class LlamaDraftModel(abc.ABC):
    """Guesses the tokens behind others."""

    @abc.abstractmethod
    def __call__(self, input_ids: NDArray[np.intc], /, **kwargs: Any) -> NDArray[np.intc]:
        """[tokens] in, [guesses] out."""


class LlamaPromptLookupDecoding(LlamaDraftModel):
    """Guesses that what followed the last few tokens before follows them again.

    Args:
        max_ngram_size: So many last tokens are looked for, then fewer.
        num_pred_tokens: Guesses at most.
    """

    def __init__(self, max_ngram_size: int = 2, num_pred_tokens: int = 10) -> None:
        self.max_ngram_size, self.num_pred_tokens = max_ngram_size, num_pred_tokens

    @staticmethod
    def find_candidate_pred_tokens(
        input_ids: NDArray[Any], max_ngram_size: int, num_pred_tokens: int
    ) -> NDArray[Any]:
        """What follows the earliest place of the longest ending that occurs twice; or nothing."""
        count = len(input_ids)
        for size in range(min(max_ngram_size, count - 1), 0, -1):
            ending = input_ids[count - size :]
            # The ending itself is the last window, which nothing follows.
            windows = np.lib.stride_tricks.sliding_window_view(input_ids[:-1], size)
            places = np.flatnonzero((windows == ending).all(axis=1))
            if places.size:
                begin = int(places[0]) + size
                found: NDArray[Any] = input_ids[begin : begin + num_pred_tokens]
                return found
        return np.empty(0, np.intc)

    def __call__(self, input_ids: NDArray[np.intc], /, **kwargs: Any) -> NDArray[np.intc]:
        return self.find_candidate_pred_tokens(
            input_ids, self.max_ngram_size, self.num_pred_tokens
        )
