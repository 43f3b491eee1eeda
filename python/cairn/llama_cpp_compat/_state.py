"""States of a `Llama`: what it takes to stand there again."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


class LlamaState:
    """Tokens and numbers, which any instance of the same model can load; may be pickled.

    Keys and values are not part of it: loading reads what the engine's memory lacks, and the bits
    are the same. So a state is small, and costs no more than its prompt in another process.

    Args:
        input_ids: [n_tokens] the tokens.
        scores: [n_tokens, vocabulary] their logits with logits_all, else [0, vocabulary].
        llama_state: The model's identity, in bytes.
        llama_state_size: What the state takes, in bytes.
        seed: Of the next answer.
    """

    def __init__(
        self,
        input_ids: NDArray[np.intc],
        scores: NDArray[np.single],
        n_tokens: int,
        llama_state: bytes,
        llama_state_size: int,
        seed: int,
    ) -> None:
        self.input_ids, self.scores, self.n_tokens = input_ids, scores, n_tokens
        self.llama_state, self.llama_state_size = llama_state, llama_state_size
        self.seed = seed
