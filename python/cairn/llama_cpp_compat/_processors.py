"""What callers may do with logits between the model and the choice of a token."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Callable

import numpy as np
from numpy.typing import NDArray

Ids = NDArray[np.intc]
Scores = NDArray[np.single]

LogitsProcessor = Callable[[Ids, Scores], Scores]
StoppingCriteria = Callable[[Ids, Scores], bool]


class LogitsProcessorList(list[LogitsProcessor]):
    """Processors, each of which gets what the one before has made."""

    def __call__(self, input_ids: Ids, scores: Scores) -> Scores:
        for processor in self:
            scores = processor(input_ids, scores)
        return scores


class StoppingCriteriaList(list[StoppingCriteria]):
    """An answer ends where one of these says so."""

    def __call__(self, input_ids: Ids, logits: Scores) -> bool:
        # All are asked each time: one may count.
        answers = [bool(criterion(input_ids, logits)) for criterion in self]
        return any(answers)


class MinTokensLogitsProcessor:
    """Keeps the end of an answer away until it has so many tokens.

    Args:
        min_tokens: Of the answer.
        token_eos: The token that ends it.
    """

    def __init__(self, min_tokens: int, token_eos: int) -> None:
        self.min_tokens, self.token_eos = min_tokens, token_eos
        self.prompt_tokens: int | None = None

    def __call__(self, input_ids: Ids, scores: Scores) -> Scores:
        if self.prompt_tokens is None:
            self.prompt_tokens = len(input_ids)
        if len(input_ids) - self.prompt_tokens < self.min_tokens:
            scores[self.token_eos] = -np.inf
        return scores


class LogitBias:
    """Adds to logits of some tokens; the engine does it itself where nothing else is asked for."""

    def __init__(self, biases: Mapping[int, float]) -> None:
        self.biases = {int(token): float(bias) for token, bias in biases.items()}

    def __call__(self, input_ids: Ids, scores: Scores) -> Scores:
        made = scores.copy()
        for token, bias in self.biases.items():
            made[token] += bias
        return made
