"""How tokens are chosen."""

from __future__ import annotations

import ctypes
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, Union

from . import _c
from ._model import Model

# What a token's logit is moved by; False: the token is never chosen.
Bias = Union[float, bool]


@dataclass(frozen=True)
class Sampling:
    """How tokens are chosen; None: what the model's file suggests, over what is usual.

    docs/sampling.md says what each does.

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
    """Equal seeds choose equal tokens at equal positions of equal texts. None: a new one."""
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
                setattr(params, name, value)
        params.flags = (
            (_c.SAMPLING_IGNORE_END if self.ignore_end else 0)
            | (_c.SAMPLING_LOGPROBS if self.logprobs else 0)
            | (_c.SAMPLING_RECEIPT if self.receipt else 0)
        )
        if self.seed is not None:
            params.seed = self.seed & 0xFFFFFFFFFFFFFFFF
            params.flags |= _c.SAMPLING_SEED
        if self.grammar is not None:
            params.grammar = self.grammar.encode("utf-8")
        if self.json_schema is not None:
            schema = self.json_schema
            text = schema if isinstance(schema, str) else json.dumps(schema)
            params.json_schema = text.encode("utf-8")
        stop = [self.stop] if isinstance(self.stop, str) else list(self.stop)
        if stop:
            params.stop_json = json.dumps(stop).encode("utf-8")
        if self.logit_bias:
            params.logit_bias_json = json.dumps(list(self.logit_bias.items())).encode("utf-8")
        if self.samplers is not None:
            params.samplers = self.samplers.encode("utf-8")
        if self.draft is not None:
            params.draft = self.draft.encode("utf-8")
        return params


_C_MEMBERS = {name for name, *_ in _c.SamplingParams._fields_}
_NUMBERS = [
    field.name
    for field in fields(Sampling)
    if field.name in _C_MEMBERS
    and field.name not in ("seed", "grammar", "json_schema", "samplers", "draft")
]
