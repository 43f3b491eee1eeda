"""How tokens are chosen."""

from __future__ import annotations

import ctypes
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, Union

from . import _c
from ._errors import in_range
from ._model import Model
from ._tokens import zero_ended

# What a token's logit is moved by; False: the token is never chosen.
Bias = Union[float, bool]


@dataclass(frozen=True)
class Sampling:
    """How tokens are chosen; None: what the model's file suggests, over what is usual.

    docs/sampling.md says what each does. Of its samplers' parameters the C interface has no
    adaptive_target, adaptive_decay, min_keep and dry_sequence_breakers; repeat_last_n is
    repeat_last_count here, dry_penalty_last_n is dry_last_count, ignore_eos ignore_end, and n_probs
    is logprobs, of chosen tokens alone.

    >>> Sampling(temperature=0, max_tokens=8).temperature
    0
    """

    temperature: float | None = None
    """0: always the likeliest token."""
    top_p: float | None = None
    min_p: float | None = None
    typical_p: float | None = None
    top_n_sigma: float | None = None
    xtc_probability: float | None = None
    xtc_threshold: float | None = None
    repeat_penalty: float | None = None
    presence_penalty: float | None = None
    frequency_penalty: float | None = None
    dry_multiplier: float | None = None
    dry_base: float | None = None
    dynatemp_range: float | None = None
    dynatemp_exponent: float | None = None
    mirostat_tau: float | None = None
    mirostat_eta: float | None = None
    top_k: int | None = None
    repeat_last_count: int | None = None
    dry_allowed_length: int | None = None
    dry_last_count: int | None = None
    mirostat: int | None = None
    max_tokens: int | None = None
    """Of an answer; -1: as many as the model likes."""
    seed: int | None = None
    """From 0 to 2**64 - 1: equal seeds choose equal tokens at equal positions of equal texts. None
    and -1: a new one."""
    grammar: str | None = None
    """GBNF that answers fit."""
    json_schema: str | Mapping[str, Any] | None = None
    """The same, as a JSON schema. One of these two at most."""
    stop: Sequence[str] | str = ()
    """Texts that end an answer."""
    logit_bias: Mapping[int | str, Bias] | None = None
    """By token or text: what is added to the logit, or False."""
    samplers: str | None = None
    """The chain, such as "top_k;temperature"."""
    draft: str | None = None
    """Who drafts tokens of answers in the background (answer(), agenerate(), start()), which
    changes none of them: "auto", "off", or kinds with commas between them (docs/speculation.md).
    None: as the engine was opened."""
    ignore_end: bool = False
    """Tokens that end an answer are not chosen."""
    logprobs: bool = False
    """Events have logarithms of probabilities."""
    receipt: bool = False
    """What tokens are chosen from is digested for Session.receipt()."""

    def to_c(self, model: Model) -> _c.SamplingParams:
        """The struct, with what the model suggests where nothing is said."""
        params = _c.SamplingParams()
        size = ctypes.sizeof(params)
        _c.lib.cairn_sampling_init(model._open_handle(), ctypes.byref(params), size)
        params.struct_size = size
        for name in _NUMBERS:
            value = getattr(self, name)
            if value is not None:
                setattr(params, name, in_range(name, value, *_INT32) if name in _WHOLE else value)
        params.flags = (
            (_c.SAMPLING_IGNORE_END if self.ignore_end else 0)
            | (_c.SAMPLING_LOGPROBS if self.logprobs else 0)
            | (_c.SAMPLING_RECEIPT if self.receipt else 0)
        )
        if self.seed is not None and self.seed != -1:
            params.seed = in_range("seed", self.seed, -1, (1 << 64) - 1)
            params.flags |= _c.SAMPLING_SEED
        self._texts_to_c(params)
        return params

    def _texts_to_c(self, params: _c.SamplingParams) -> None:
        schema = self.json_schema
        if schema is not None and not isinstance(schema, str):
            schema = json.dumps(schema)
        texts = {
            "grammar": self.grammar,
            "json_schema": schema,
            "samplers": self.samplers,
            "draft": self.draft,
        }
        for name, text in texts.items():
            if text is not None:
                setattr(params, name, zero_ended(name, text))
        stop = [self.stop] if isinstance(self.stop, str) else list(self.stop)
        if stop:
            params.stop_json = json.dumps(stop).encode("utf-8")
        if self.logit_bias:
            params.logit_bias_json = json.dumps(list(self.logit_bias.items())).encode("utf-8")


_INT32 = (-(1 << 31), (1 << 31) - 1)
_C_MEMBERS = {name: kind for name, kind, *_ in _c.SamplingParams._fields_}
_WHOLE = {name for name, kind in _C_MEMBERS.items() if kind is ctypes.c_int32}
_NUMBERS = [
    field.name
    for field in fields(Sampling)
    if field.name in _C_MEMBERS
    and field.name not in ("seed", "grammar", "json_schema", "samplers", "draft")
]
