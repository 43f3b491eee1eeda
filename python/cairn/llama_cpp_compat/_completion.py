"""Completions: a prompt's answer as dictionaries in OpenAI's form, whole or in pieces."""

from __future__ import annotations

import random
import time
import uuid
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Union

from ._logprobs import Likelihood, RowRecorder, as_lists, likelihood_of, of_prompt
from ._processors import LogitBias, LogitsProcessorList, StoppingCriteriaList
from ._sampling import Processors
from ._text import TextReader
from .llama_grammar import LlamaGrammar

if TYPE_CHECKING:
    from ._llama import Llama


def create_completion(
    self: Llama,
    prompt: Union[str, list[int]],
    suffix: str | None = None,
    max_tokens: int | None = 16,
    temperature: float = 0.8,
    top_p: float = 0.95,
    min_p: float = 0.05,
    typical_p: float = 1.0,
    logprobs: int | None = None,
    echo: bool = False,
    stop: str | Sequence[str] | None = None,
    frequency_penalty: float = 0.0,
    presence_penalty: float = 0.0,
    repeat_penalty: float = 1.0,
    top_k: int = 40,
    stream: bool = False,
    seed: int | None = None,
    tfs_z: float = 1.0,
    mirostat_mode: int = 0,
    mirostat_tau: float = 5.0,
    mirostat_eta: float = 0.1,
    model: str | None = None,
    stopping_criteria: StoppingCriteriaList | None = None,
    logits_processor: Processors = None,
    grammar: LlamaGrammar | None = None,
    logit_bias: Mapping[int, float] | None = None,
) -> Union[dict[str, Any], Iterator[dict[str, Any]]]:
    """The answer to a prompt, as a dictionary; with `stream`, an iterator of its pieces.

    Args:
        suffix: What comes behind the answer: of models for filling in, part of the prompt; else
            it is put behind the text.
        max_tokens: Of the answer; None, 0 or less: as many as n_ctx has room for.
        logprobs: The likeliest tokens at each place; logits_all is not needed.
        echo: The text begins with the prompt.
        stop: Texts that end the answer, and are no part of it.
        logit_bias: By token: what is added to its logit.
        tfs_z: Does nothing.

    Raises:
        ValueError: the prompt is longer than n_ctx, or an argument makes no sense. A text without
            characters is none of these where the model has a first token; a list without tokens is.
    """
    processors = LogitsProcessorList(logits_processor or ())
    if logit_bias:
        processors.append(LogitBias(logit_bias))
    options = {
        "temp": temperature,
        "top_p": top_p,
        "min_p": min_p,
        "typical_p": typical_p,
        "top_k": top_k,
        "repeat_penalty": repeat_penalty,
        "frequency_penalty": frequency_penalty,
        "presence_penalty": presence_penalty,
        "tfs_z": tfs_z,
        "mirostat_mode": mirostat_mode,
        "mirostat_tau": mirostat_tau,
        "mirostat_eta": mirostat_eta,
        "logits_processor": processors or None,
        "grammar": grammar,
    }
    stops = [stop] if isinstance(stop, str) else list(stop or ())
    made = _Completion(self, prompt, suffix, max_tokens, logprobs, stops, model)
    pieces = made.pieces(options, stopping_criteria, seed)
    if stream:
        return made.stream(pieces, echo)
    with self._lock:
        return made.whole(pieces, echo)


class _Completion:
    def __init__(
        self,
        llama: Llama,
        prompt: Union[str, list[int]],
        suffix: str | None,
        max_tokens: int | None,
        logprobs: int | None,
        stops: Sequence[str],
        model: str | None,
    ) -> None:
        self.llama, self.logprobs = llama, logprobs
        self.id, self.created = f"cmpl-{uuid.uuid4()}", int(time.time())
        self.model = model or llama.model_path
        self.prompt_text = prompt if isinstance(prompt, str) else None
        self.prompt = _prompt_tokens(llama, prompt, suffix)
        self.suffix = suffix if suffix is not None and not _fills_in(llama) else ""
        room = llama.n_ctx() - len(self.prompt)
        if room <= 0:
            raise ValueError(
                f"Requested tokens ({len(self.prompt)}) exceed context window of {llama.n_ctx()}"
            )
        wanted = room if max_tokens is None or max_tokens <= 0 else max_tokens
        self.max_tokens = min(wanted, room)
        self.reader = TextReader(stops)
        self.tokens: list[int] = []
        self.finish_reason = "length"
        self.plan: dict[str, Any] | None = None

    def pieces(
        self,
        options: dict[str, Any],
        criteria: StoppingCriteriaList | None,
        seed: int | None,
    ) -> Iterator[tuple[str, list[Likelihood]]]:
        """The answer's text, as it becomes sure; then the finish reason is known."""
        llama = self.llama
        self._seek_in_cache()
        # Answers without a seed differ from each other, and follow from the instance's own.
        llama.set_seed(seed if seed is not None else random.Random(llama._seed).randrange(1 << 32))
        recorder = RowRecorder()
        asked = StoppingCriteriaList(criteria or ())
        if self.logprobs is not None:
            asked.append(recorder)
        tokens = llama.generate(
            self.prompt, stopping_criteria=asked or None, max_tokens=self.max_tokens, **options
        )
        waiting: list[Likelihood] = []
        for token in tokens:
            if self.plan is None and llama._prompt_plan is not None:
                self.plan = asdict(llama._prompt_plan)
            if token in llama._model.ends:
                self.finish_reason = "stop"
                break
            data = self._bytes_of(token)
            self.tokens.append(token)
            if self.logprobs is not None:
                waiting.append(
                    likelihood_of(
                        llama,
                        recorder.row,
                        token,
                        data.decode("utf-8", "ignore"),
                        self.reader.decoded_length,
                        self.logprobs,
                    )
                )
            text = self.reader.add(data)
            if text:
                yield text, waiting
                waiting = []
            if self.reader.has_stopped:
                self.finish_reason = "stop"
                break
            if len(self.tokens) >= self.max_tokens:
                break
        else:
            self.finish_reason = "stop" if criteria else "length"
        tokens.close()
        rest = self.reader.rest()
        if rest or (waiting and not self.reader.has_stopped):
            yield rest, waiting
        self._keep_in_cache()

    def _bytes_of(self, token: int) -> bytes:
        bos = self.llama.token_bos()
        if self.prompt_text == "" and not self.tokens and bos >= 0:
            # Of a text without a prompt this is the beginning.
            return self.llama.detokenize([bos, token])
        # A detokenizer only has to know that something stands before: a few tokens are enough.
        return self.llama.detokenize([token], prev_tokens=(self.prompt + self.tokens)[-8:])

    def _seek_in_cache(self) -> None:
        llama = self.llama
        if llama.cache is None:
            return
        try:
            state = llama.cache[self.prompt]
        except KeyError:
            return
        known = llama.longest_token_prefix(state.input_ids.tolist(), self.prompt)
        if known > llama.longest_token_prefix(llama._input_ids.tolist(), self.prompt):
            llama.load_state(state)

    def _keep_in_cache(self) -> None:
        llama, text = self.llama, self.prompt + self.tokens
        with llama._lock:
            # Another thread may have gone elsewhere meanwhile.
            known = llama.longest_token_prefix(llama._input_ids.tolist(), text)
            if llama.cache is not None and llama.n_tokens == known:
                llama.cache[text] = llama.save_state()

    def whole(
        self, pieces: Iterator[tuple[str, list[Likelihood]]], echo: bool
    ) -> dict[str, Any]:
        text, likelihoods = self._echo(echo)
        begin = len(text)
        for piece, found in pieces:
            text += piece
            likelihoods += [each._replace(offset=each.offset + begin) for each in found]
        made = self._chunk(text + self.suffix, likelihoods, self.finish_reason)
        made["usage"] = {
            "prompt_tokens": len(self.prompt),
            "completion_tokens": len(self.tokens),
            "total_tokens": len(self.prompt) + len(self.tokens),
        }
        made["memory"] = self.plan
        return made

    def stream(
        self, pieces: Iterator[tuple[str, list[Likelihood]]], echo: bool
    ) -> Iterator[dict[str, Any]]:
        text, likelihoods = self._echo(echo)
        begin = len(text)
        if text:
            yield self._chunk(text, likelihoods, None)
        for piece, found in pieces:
            moved = [each._replace(offset=each.offset + begin) for each in found]
            yield self._chunk(piece, moved, None)
        if self.suffix:
            yield self._chunk(self.suffix, [], None)
        yield self._chunk("", [], self.finish_reason)

    def _echo(self, echo: bool) -> tuple[str, list[Likelihood]]:
        """The text of the prompt, and how likely its tokens are."""
        if not echo:
            return "", []
        text = self.prompt_text
        if text is None:
            text = self.llama.detokenize(self.prompt).decode("utf-8", "ignore")
        wanted = self.logprobs
        return text, [] if wanted is None else of_prompt(self.llama, self.prompt, wanted)

    def _chunk(
        self, text: str, likelihoods: list[Likelihood], finish_reason: str | None
    ) -> dict[str, Any]:
        has_lists = self.logprobs is not None and (likelihoods or finish_reason is None)
        return {
            "id": self.id,
            "object": "text_completion",
            "created": self.created,
            "model": self.model,
            "choices": [
                {
                    "text": text,
                    "index": 0,
                    "logprobs": as_lists(likelihoods) if has_lists else None,
                    "finish_reason": finish_reason,
                }
            ],
        }


def _fills_in(llama: Llama) -> bool:
    return min(_fill_tokens(llama)) >= 0


def _fill_tokens(llama: Llama) -> tuple[int, int, int]:
    """What stands before a prefix, a suffix and what is to be filled in; -1: no such token."""
    special = llama._model.special
    return (
        special("fim_pre", "prefix"),
        special("fim_suf", "suffix"),
        special("fim_mid", "middle"),
    )


def _prompt_tokens(
    llama: Llama, prompt: Union[str, list[int]], suffix: str | None
) -> list[int]:
    if suffix is not None and _fills_in(llama):
        before, after, middle = _fill_tokens(llama)
        if isinstance(prompt, str):
            head = llama.tokenize(prompt, add_bos=False) if prompt else []
        else:
            head = prompt
        first = [before, *head]
        second = [after, *(llama.tokenize(suffix, add_bos=False) if suffix else [])]
        bos = llama.tokenize("", add_bos=True)
        parts = second + first if llama.spm_infill else first + second
        return bos + parts + [middle]
    if not isinstance(prompt, str):
        found = [int(token) for token in prompt]
    else:
        found = llama.tokenize(prompt, add_bos=True, special=True)
        if not found and llama.token_bos() >= 0:
            found = [llama.token_bos()]
    if not found:
        raise ValueError("prompt: expected at least one token, found none")
    if len(found) > 1 and found[0] == found[1] == llama.token_bos():
        warnings.warn(
            "the prompt begins with the model's first token, which is put there anyway",
            RuntimeWarning,
            stacklevel=4,
        )
    return found
