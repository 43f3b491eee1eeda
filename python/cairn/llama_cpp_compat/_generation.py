"""Tokens of an answer, one after the other, for `Llama.generate`.

A generation takes the instance's lock for each step alone. Another one may come between two steps:
each has its own tokens, and stands on them again before its next step, which costs little and
changes no bit.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Generator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Optional

import numpy as np

from .._sampling import Sampling
from .._session import Session
from ._processors import Ids, Scores, StoppingCriteria
from ._sampling import Choice

if TYPE_CHECKING:
    from ._llama import Llama

Tokens = Generator[int, Optional[Sequence[int]], None]


class Chooser:
    """Chooses the tokens of one answer.

    What depends on earlier choices (a grammar, Mirostat) is kept by a fork of the session, which
    nobody else uses; else the session itself says which token it would take. Where the instance
    has a draft model and nobody looks at logits, the fork makes the answer in the background, with
    the engine's own drafts: several tokens a step, the same ones.
    """

    def __init__(
        self, llama: Llama, choice: Choice, sampling: Sampling, wants_rows: bool
    ) -> None:
        self._llama, self._sampling = llama, sampling
        self._processors, self._has_memory = choice.processors, choice.has_memory
        self._wants_rows = wants_rows or bool(self._processors)
        self._is_drafted = llama.draft_model is not None and not self._wants_rows
        self._ahead: deque[int] = deque()
        self._fork: Session | None = None
        self.row: Scores | None = None
        """[vocabulary] the model's own logits of the last choice, where they are wanted."""

    @property
    def reads_alone(self) -> bool:
        """The fork goes on by itself: the session has nothing to read."""
        return self._fork is not None

    def choose(self) -> int | None:
        """The next token; None: there is no room for one."""
        if self._has_memory or self._is_drafted:
            return self._choose_in_fork()
        llama = self._llama
        session = llama._stand()
        self.row = np.asarray(session.logits()) if self._wants_rows else None
        if session.sampling != self._sampling:
            session.sampling = self._sampling
        return session.sample(self._processed())

    def _choose_in_fork(self) -> int | None:
        if self._fork is None:
            self._fork = self._llama._stand().fork()
            self._fork.sampling = self._sampling
            if self._is_drafted:
                self._fork.start()
        fork = self._fork
        if self._ahead:
            return self._ahead.popleft()
        if self._wants_rows:
            self.row = np.asarray(fork.logits())
            processed = self._processed()
            if processed is not None:
                fork.set_logits(processed)
        event = fork.next()
        if event.tokens:
            self._ahead.extend(event.tokens[1:])
            return event.tokens[0]
        end = self._llama.token_eos()
        return end if event.finish == "stop" and end >= 0 else None

    def _processed(self) -> Scores | None:
        if not self._processors:
            return None
        assert self.row is not None
        scores: Scores = self.row.copy()
        for processor in self._processors:
            scores = processor(self._llama._input_ids, scores)
        return np.ascontiguousarray(scores, np.single)

    def forget(self) -> None:
        """The next choice begins anew behind what the session has by then."""
        if self._fork is not None:
            self._fork.close()
            self._fork = None
        self._ahead.clear()


def begin(llama: Llama, tokens: list[int], reset: bool) -> None:
    """Reads a prompt; of what the instance stands on, the common beginning is kept."""
    common = llama.longest_token_prefix(llama._input_ids.tolist(), tokens) if reset else 0
    if not reset:
        llama.eval(tokens)
    elif common == 0:
        llama.reset()
        llama.eval(tokens)
    else:
        llama.n_tokens = common
        llama.eval(tokens[common:])
    llama._prompt_plan = llama._last_plan


def generate(
    llama: Llama,
    tokens: list[int],
    choice: Choice,
    reset: bool,
    criteria: StoppingCriteria | None,
    max_tokens: int | None,
) -> Tokens:
    """The generator behind `Llama.generate`."""
    me = object()
    with llama._lock:
        llama._owner = me
        begin(llama, tokens, reset)
        sampling = choice.to_sampling(llama._seed, llama.last_n_tokens_size)
        if max_tokens is not None:
            sampling = replace(sampling, max_tokens=max_tokens)
        own = llama._input_ids.copy()
    chooser = Chooser(llama, choice, sampling, criteria is not None)
    try:
        fresh: list[int] = []
        while True:
            with llama._lock:
                if llama._owner is not me:
                    _return_to(llama, own)
                    llama._owner = me
                _advance(llama, chooser, fresh)
                token = chooser.choose()
                if token is None:
                    return
                if criteria is not None and chooser.row is not None:
                    if criteria(llama._input_ids, chooser.row):
                        return
                own = llama._input_ids.copy()
            sent = yield token
            fresh = [token, *(sent or ())]
    finally:
        with llama._lock:
            chooser.forget()


def _advance(llama: Llama, chooser: Chooser, fresh: list[int]) -> None:
    if len(fresh) == 1 and chooser.reads_alone and llama.n_tokens < llama.n_ctx():
        llama.input_ids[llama.n_tokens] = fresh[0]
        llama.n_tokens += 1
    elif fresh:
        # Tokens that were sent have no place in a grammar: it begins anew behind them.
        chooser.forget()
        llama.eval(fresh)


def _return_to(llama: Llama, own: Ids) -> None:
    llama.input_ids[: len(own)] = own
    llama.n_tokens = len(own)
