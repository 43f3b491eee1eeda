"""How likely tokens are, in the form of OpenAI's completions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ._processors import Ids, Scores

if TYPE_CHECKING:
    from ._llama import Llama


class Likelihood(NamedTuple):
    """Of one token."""

    text: str
    offset: int
    """Of the text, in characters."""
    logprob: float | None
    """The natural logarithm of its probability; None: nothing stands before it."""
    top: dict[str, float] | None


class RowRecorder:
    """A stopping criterion that never stops: it keeps the logits of the last choice."""

    def __init__(self) -> None:
        self.row: Scores | None = None

    def __call__(self, input_ids: Ids, logits: Scores) -> bool:
        self.row = logits
        return False


def likelihood_of(
    llama: Llama, row: Scores | None, token: int, text: str, offset: int, count: int
) -> Likelihood:
    """Of a token that was chosen from a row [vocabulary], with the likeliest `count` others."""
    if row is None:
        return Likelihood(text, offset, None, None)
    logprobs = llama.logits_to_logprobs(row)
    top: dict[str, float] = {}
    if count > 0:
        # Of equal ones the lower id comes first, as in the engine's own choice.
        likeliest = np.argsort(-logprobs, kind="stable")[:count]
        for each in likeliest.tolist():
            top.setdefault(text_of(llama, each), float(logprobs[each]))
    own = float(logprobs[token])
    top[text] = own
    return Likelihood(text, offset, own, top)


def text_of(llama: Llama, token: int) -> str:
    """A token's text inside of another text."""
    return llama.detokenize([token], prev_tokens=[token]).decode("utf-8", "ignore")


def of_prompt(llama: Llama, prompt: list[int], count: int) -> list[Likelihood]:
    """Of a prompt's tokens behind its beginning. Reads the prompt in a session of its own, one
    token at a time."""
    found: list[Likelihood] = []
    offset = 0
    row: Scores | None = None
    with llama.session() as session:
        for place, token in enumerate(prompt):
            is_beginning = place == 0 and token == llama.token_bos()
            if not is_beginning:
                text = llama.detokenize([token], prev_tokens=prompt[:place]).decode(
                    "utf-8", "ignore"
                )
                before = None if not found else row
                found.append(likelihood_of(llama, before, token, text, offset, count))
                offset += len(text)
            session.append([token])
            row = np.asarray(session.logits())
    return found


def as_lists(likelihoods: list[Likelihood]) -> dict[str, Any]:
    return {
        "tokens": [each.text for each in likelihoods],
        "text_offset": [each.offset for each in likelihoods],
        "token_logprobs": [each.logprob for each in likelihoods],
        "top_logprobs": [each.top for each in likelihoods],
    }
