"""A model class for EleutherAI's lm-evaluation-harness (the PyPI package lm_eval).

Importing this module registers the model "cairn"::

    import cairn.lm_eval
    import lm_eval
    lm_eval.simple_evaluate(model="cairn", model_args="path=model.gguf", tasks=["hellaswag"])

Log-likelihoods are those that `cairn perplexity` sums: the softmax of the model's logits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from lm_eval.api.model import TemplateLM  # pyright: ignore[reportMissingImports]
from lm_eval.api.registry import register_model  # pyright: ignore[reportMissingImports]
from lm_eval.utils import (  # pyright: ignore[reportMissingImports]
    get_rolling_token_windows,
    make_disjoint_window,
)

from ._engine import Engine
from ._errors import InvalidError
from ._model import Model
from ._sampling import Sampling

_Item = TypeVar("_Item")
_Made = TypeVar("_Made")


@register_model("cairn")
class CairnLM(TemplateLM):  # type: ignore[misc]
    """A GGUF file as the harness has models.

    Args:
        path: Of the file.
        max_length: Tokens that are read at once; None: the engine's context.
        max_gen_toks: Of answers for which a task says nothing.
        parallel: Texts that are computed at a time: they share the reading of the weights.
        engine_options: Those of cairn.Engine.
    """

    def __init__(
        self,
        path: str,
        max_length: int | None = None,
        max_gen_toks: int = 256,
        parallel: int = 8,
        **engine_options: Any,
    ) -> None:
        super().__init__()
        # What the harness gives to every model, and what has no meaning here.
        for name in ("batch_size", "max_batch_size", "device"):
            engine_options.pop(name, None)
        self.model = Model(path)
        self.engine = Engine(self.model, parallel=parallel, **engine_options)
        context = self.engine.facts.context_tokens
        self.max_length = context if max_length is None else min(int(max_length), context)
        self.max_gen_toks = int(max_gen_toks)
        self.parallel = int(parallel)

    @property
    def eot_token_id(self) -> int:
        eos = self.model.info.eos
        if eos is None:
            raise InvalidError("model: expected a token that ends texts, found none")
        return eos

    @property
    def prefix_token_id(self) -> int:
        bos = self.model.info.bos
        return self.eot_token_id if bos is None else bos

    @property
    def tokenizer_name(self) -> str:
        return self.model.info.identity

    def apply_chat_template(
        self, chat_history: list[dict[str, str]], add_generation_prompt: bool = True
    ) -> str:
        tokens = self.model.render(chat_history, add_generation_prompt=add_generation_prompt)
        return self.model.detokenize(tokens, special=True)

    def tok_encode(
        self, string: str, add_special_tokens: bool | None = None, **_: Any
    ) -> list[int]:
        tokens = self.model.tokenize(string, bos=add_special_tokens is not False, special=True)
        bos = self.model.info.bos
        # A chat template has written it already.
        return tokens[1:] if len(tokens) > 1 and tokens[0] == tokens[1] == bos else tokens

    def _loglikelihood_tokens(
        self, requests: Sequence[tuple[Any, list[int], list[int]]], **_: Any
    ) -> list[tuple[float, bool]]:
        def score(request: tuple[Any, list[int], list[int]]) -> tuple[float, bool]:
            _, context, continuation = request
            text = (context + continuation)[-self.max_length :]
            count = min(len(continuation), len(text) - 1)
            if count < len(continuation):
                raise InvalidError(
                    f"continuation: expected less than {self.max_length} tokens, "
                    f"found {len(continuation)}"
                )
            logprobs, likeliest = self.engine.score(text)
            begin = len(logprobs) - count
            return sum(logprobs[begin:]), likeliest[begin:] == text[len(text) - count :]

        return self._each(score, requests)

    def loglikelihood_rolling(
        self, requests: Sequence[Any], disable_tqdm: bool = False
    ) -> list[float]:
        def score(request: Any) -> float:
            (text,) = request.args
            windows = map(
                make_disjoint_window,
                get_rolling_token_windows(
                    token_list=self.tok_encode(text, add_special_tokens=False),
                    prefix_token=self.prefix_token_id,
                    max_seq_len=self.max_length - 1,
                    context_len=1,
                ),
            )
            parts = [("", context, continuation) for context, continuation in windows]
            return sum(total for total, _ in self._loglikelihood_tokens(parts))

        return [score(request) for request in requests]

    def generate_until(self, requests: Sequence[Any], disable_tqdm: bool = False) -> list[str]:
        def answer(request: Any) -> str:
            context, options = request.args
            until = options.get("until") or []
            samples = options.get("do_sample", options.get("temperature", 0) != 0)
            sampling = Sampling(
                temperature=options.get("temperature") if samples else 0,
                top_p=options.get("top_p"),
                top_k=options.get("top_k"),
                max_tokens=int(options.get("max_gen_toks", self.max_gen_toks)),
                stop=[until] if isinstance(until, str) else until,
            )
            room = max(self.max_length - (sampling.max_tokens or 0), 1)
            with self.engine.session(sampling=sampling) as session:
                session.append(self.tok_encode(context)[-room:])
                return session.answer()

        return self._each(answer, requests)

    def _each(self, function: Callable[[_Item], _Made], items: Iterable[_Item]) -> list[_Made]:
        with ThreadPoolExecutor(self.parallel) as pool:
            return list(pool.map(function, items))
