"""The parameters of llama-cpp-python as those of the engine."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Union

from .._sampling import Sampling
from ._processors import LogitBias, LogitsProcessor, LogitsProcessorList
from .llama_grammar import LlamaGrammar

_CHAIN = "penalties;top_k;typ_p;top_p;min_p;temperature"
Processors = Union[LogitsProcessorList, "list[LogitsProcessor]", None]


@dataclass
class Choice:
    """How tokens are chosen, by the names that callers use."""

    top_k: int = 40
    top_p: float = 0.95
    min_p: float = 0.05
    typical_p: float = 1.0
    temp: float = 0.8
    repeat_penalty: float = 1.0
    frequency_penalty: float = 0.0
    presence_penalty: float = 0.0
    mirostat_mode: int = 0
    mirostat_eta: float = 0.1
    mirostat_tau: float = 5.0
    logits_processor: Processors = None
    grammar: LlamaGrammar | None = None

    @property
    def processors(self) -> list[LogitsProcessor]:
        """Those that are called; biases alone are left to the engine."""
        found = list(self.logits_processor or ())
        return [] if all(isinstance(each, LogitBias) for each in found) else found

    @property
    def has_memory(self) -> bool:
        """A grammar and Mirostat depend on what was chosen before."""
        return self.grammar is not None or (self.mirostat_mode != 0 and self.temp > 0)

    def to_sampling(self, seed: int, last_count: int) -> Sampling:
        """A temperature below 0 means the distribution as it is, without filters."""
        values: dict[str, Any] = {
            "temperature": 1.0 if self.temp < 0 or self.mirostat_mode else self.temp,
            "samplers": "penalties;temperature" if self.temp < 0 else _CHAIN,
            "mirostat": self.mirostat_mode if self.temp > 0 else 0,
        }
        if self.temp == 0:
            values["temperature"] = 0.0
        return Sampling(
            **values,
            top_k=self.top_k,
            top_p=self.top_p,
            min_p=self.min_p,
            typical_p=self.typical_p,
            top_n_sigma=-1.0,
            xtc_probability=0.0,
            dry_multiplier=0.0,
            dynatemp_range=0.0,
            repeat_penalty=self.repeat_penalty,
            frequency_penalty=self.frequency_penalty,
            presence_penalty=self.presence_penalty,
            repeat_last_count=last_count,
            mirostat_eta=self.mirostat_eta,
            mirostat_tau=self.mirostat_tau,
            max_tokens=-1,
            seed=seed,
            grammar=None if self.grammar is None else self.grammar.gbnf,
            json_schema=None if self.grammar is None else self.grammar.json_schema,
            logit_bias=self._biases(),
        )

    def _biases(self) -> dict[int | str, float | bool] | None:
        if self.processors:
            return None
        total: dict[int, float] = {}
        for each in self.logits_processor or ():
            if isinstance(each, LogitBias):
                for token, bias in each.biases.items():
                    total[token] = total.get(token, 0.0) + bias
        # Infinity is no JSON: the engine has a word of its own for "never".
        return {
            token: False if bias == float("-inf") else bias for token, bias in total.items()
        } or None
