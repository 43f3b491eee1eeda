"""`Llama`: a model with one text that grows, by the names of llama-cpp-python.

It stands on Model, Engine and Session. What it adds is state by their rules: `n_tokens` and
`input_ids` say what the instance stands on, and the session follows before something is computed.
"""

from __future__ import annotations

import os
import random
import threading
from collections import deque
from collections.abc import Generator, Iterator, Sequence
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Callable, Optional, Union

import numpy as np
from numpy.typing import NDArray

from .._engine import Engine
from .._errors import MismatchError, NoRoomError
from .._figures import Plan
from .._model import Model
from .._session import Session
from . import _completion, _embedding, _pretrained
from ._arguments import check_arguments, kv_type_of, pooling_of
from ._generation import generate
from ._processors import Ids, Scores, StoppingCriteriaList
from ._sampling import Choice, Processors
from ._state import LlamaState
from ._vocabulary import Vocabulary
from .llama_grammar import LlamaGrammar
from .llama_tokenizer import BaseLlamaTokenizer, LlamaTokenizer

if TYPE_CHECKING:
    from .llama_cache import BaseLlamaCache
    from .llama_speculative import LlamaDraftModel

LLAMA_DEFAULT_SEED = 0xFFFFFFFF
Prompt = Union[str, "list[int]"]


class Llama:
    """A model, by the interface of llama-cpp-python's class of this name.

    docs/python-llama.md says what differs. Threads may share an instance: calls wait for each
    other, and answers that are streamed take turns.

    Args:
        model_path: A GGUF file; of one in several parts, the first.
        n_ctx: Tokens of a text; 0: as many as the model was made for.
        n_threads: None: one for each physical core.
        logits_all: Keeps the logits behind every token in `scores`: slower.
        embedding: Makes vectors instead of text.
        type_k, type_v: How keys and values are stored: a number of ggml's types, or a name.
        lora_path: A LoRA adapter, weighted by lora_scale.

    Raises:
        ValueError: there is no such file, or an argument would change what is computed.
        CairnError: the file cannot be read.
    """

    def __init__(
        self,
        model_path: str | os.PathLike[str],
        *,
        n_gpu_layers: int = 0,
        split_mode: int = 1,
        main_gpu: int = 0,
        tensor_split: list[float] | None = None,
        vocab_only: bool = False,
        use_mmap: bool = True,
        use_mlock: bool = False,
        kv_overrides: dict[str, bool | int | float | str] | None = None,
        seed: int = LLAMA_DEFAULT_SEED,
        n_ctx: int = 512,
        n_batch: int = 512,
        n_ubatch: int = 512,
        n_threads: int | None = None,
        n_threads_batch: int | None = None,
        rope_scaling_type: int | None = -1,
        pooling_type: int = -1,
        attention_type: int = -1,
        rope_freq_base: float = 0.0,
        rope_freq_scale: float = 0.0,
        yarn_ext_factor: float = -1.0,
        yarn_attn_factor: float = 1.0,
        yarn_beta_fast: float = 32.0,
        yarn_beta_slow: float = 1.0,
        yarn_orig_ctx: int = 0,
        logits_all: bool = False,
        embedding: bool = False,
        offload_kqv: bool = True,
        flash_attn: bool = False,
        op_offload: bool | None = None,
        swa_full: bool | None = None,
        no_perf: bool = False,
        last_n_tokens_size: int = 64,
        lora_base: str | None = None,
        lora_scale: float = 1.0,
        lora_path: str | None = None,
        numa: bool | int = False,
        chat_format: str | None = None,
        chat_handler: Callable[..., Any] | None = None,
        draft_model: LlamaDraftModel | None = None,
        tokenizer: BaseLlamaTokenizer | None = None,
        type_k: int | str | None = None,
        type_v: int | str | None = None,
        spm_infill: bool = False,
        verbose: bool = True,
        **kwargs: Any,
    ) -> None:
        self._arguments = {
            name: value
            for name, value in locals().items()
            if name not in ("self", "kwargs", "__class__")
        }
        self._arguments.update(kwargs)
        check_arguments(self._arguments)
        self.model_path = os.fspath(model_path)
        if not os.path.exists(self.model_path):
            raise ValueError(f"Model path does not exist: {self.model_path}")
        self._lock = threading.RLock()
        self._file = Model(self.model_path)
        self._model = Vocabulary(self._file)
        self.metadata = dict(self._model.metadata)
        self._is_recurrent, self._is_hybrid = self._model.is_recurrent, self._model.is_hybrid
        self.verbose, self.n_batch, self.spm_infill = verbose, n_batch, spm_infill
        self.last_n_tokens_size, self.draft_model = last_n_tokens_size, draft_model
        self.cache: BaseLlamaCache | None = None
        self._ctx = SimpleNamespace(ctx=object())
        self.model_params = SimpleNamespace(**self._arguments)
        self.context_params = SimpleNamespace(**self._arguments, embeddings=embedding)
        self.set_seed(seed)
        self._n_ctx = self._context_tokens(n_ctx)
        self._engine: Engine | None = None
        self._session: Session | None = None
        # The tokens of the session, as far as they are known here.
        self._held: Ids = np.empty(0, np.intc)
        self._last_plan: Plan | None = None
        self._prompt_plan: Plan | None = None
        self._owner: object = None
        self.n_tokens = 0
        self.input_ids: Ids = np.zeros(self._n_ctx, np.intc)
        # With logits_all: one row for each token, of which those of these tokens are filled.
        self._rows: Scores | None = None
        self._row_ids: Ids = np.empty(0, np.intc)
        if not vocab_only:
            self._open()
        if logits_all:
            self._rows = np.zeros((self._n_ctx, self.n_vocab()), np.single)
        self.tokenizer_ = tokenizer or LlamaTokenizer(self)
        from ._own_template import own_handlers

        self.chat_handler = chat_handler
        self._chat_handlers = own_handlers(self)
        usual = "chat_template.default" if self._file.info.has_chat_template else "llama-2"
        self.chat_format = chat_format or usual

    def _context_tokens(self, wanted: int) -> int:
        made_for = self._model.number("context_length", wanted or 512)
        if wanted <= 0:
            return made_for
        return min(wanted, made_for) if made_for > 0 else wanted

    def _open(self) -> Engine:
        """The engine, which is opened where that was not done yet."""
        if self._engine is None:
            arguments = self._arguments
            lora = arguments["lora_path"]
            pooling = None
            if arguments["embedding"]:
                of_the_model = self._model.number("pooling_type", -1)
                pooling = pooling_of(arguments["pooling_type"], of_the_model)
            self._engine = Engine(
                self._file,
                parallel=1,
                threads=arguments["n_threads"],
                context=self._n_ctx,
                type_k=kv_type_of("type_k", arguments["type_k"]),
                type_v=kv_type_of("type_v", arguments["type_v"]),
                adapters=[] if lora is None else [(lora, arguments["lora_scale"])],
                pooling=pooling,
            )
        return self._engine

    # --- What it stands on ---------------------------------------------------------------------

    @property
    def ctx(self) -> Any:
        return self._ctx.ctx

    @property
    def model(self) -> Vocabulary:
        return self._model

    @property
    def _input_ids(self) -> Ids:
        return self.input_ids[: self.n_tokens]

    @property
    def eval_tokens(self) -> deque[int]:
        return deque(self._input_ids.tolist(), maxlen=self._n_ctx)

    @property
    def scores(self) -> Scores:
        """[n_ctx, vocabulary] logits behind each token, with logits_all; else every row is the
        one behind the last token, and may be read only."""
        if self._rows is not None:
            return self._rows
        with self._lock:
            row = self._row() if self.n_tokens else np.zeros(self.n_vocab(), np.single)
        return np.broadcast_to(row, (self._n_ctx, len(row)))

    @property
    def _scores(self) -> Scores:
        return self.scores[: self.n_tokens]

    @property
    def eval_logits(self) -> deque[list[float]]:
        if self._rows is not None:
            return deque(self._scores.tolist(), maxlen=self._n_ctx)
        return deque(self._scores[-1:].tolist(), maxlen=1)

    def session(self, **options: Any) -> Session:
        """A session of its own on the same engine. Options: `Engine.session`."""
        return self._open().session(**options)

    def _stand(self) -> Session:
        """The session, with exactly the tokens that the instance stands on."""
        if self._session is None:
            self._session = self._open().session()
        self._become(self._session, self._input_ids)
        return self._session

    def _become(self, session: Session, target: Ids) -> None:
        if self._rows is not None:
            return self._become_with_rows(session, self._rows, target)
        count = len(self._held)
        if len(target) == 0:
            if count:
                session.reset()
        elif count < len(target) == count + 1 and np.array_equal(self._held, target[:count]):
            self._last_plan = session.append(target[count:].tolist())
        elif not np.array_equal(self._held, target):
            self._last_plan = session.become(target.tolist())
        self._held = target.copy()

    def _become_with_rows(self, session: Session, rows: Scores, target: Ids) -> None:
        """The same, one token at a time where rows are missing: their bits are those of one go."""
        done = self.longest_token_prefix(self._row_ids.tolist(), target.tolist())
        if len(target) and done == len(target) and not np.array_equal(self._held, target):
            self._last_plan = session.become(target.tolist())
        elif len(target) == 0 and len(self._held):
            session.reset()
        for count in range(done + 1, len(target) + 1):
            self._last_plan = session.become(target[:count].tolist())
            rows[count - 1] = np.asarray(session.logits())
            self._row_ids = target[:count].copy()
            self._held = self._row_ids
        self._held = target.copy()

    def _row(self) -> Scores:
        """[vocabulary] the logits behind the last token; may be read only."""
        row: Scores = np.asarray(self._stand().logits())
        return row

    def reset(self) -> None:
        """Stands on no tokens. What was computed stays in memory, and is exact if it is reused."""
        with self._lock:
            self.n_tokens = 0
            if self._session is not None:
                self._stand()

    def eval(self, tokens: Sequence[int]) -> None:
        """Reads tokens behind those that the instance stands on.

        Raises:
            NoRoomError: n_ctx is too small; nothing has changed.
        """
        with self._lock:
            before, after = self.n_tokens, self.n_tokens + len(tokens)
            if after > self._n_ctx:
                raise NoRoomError(
                    f"context: expected at most {self._n_ctx} tokens, found {after}"
                )
            replaced = self.input_ids[before:after].copy()
            self.input_ids[before:after] = list(tokens)
            self.n_tokens = after
            try:
                self._stand()
            except BaseException:
                self.input_ids[before:after] = replaced
                self.n_tokens = before
                raise

    # --- Choosing ------------------------------------------------------------------------------

    def set_seed(self, seed: int) -> None:
        """Equal seeds choose equal tokens behind equal texts; -1 and LLAMA_DEFAULT_SEED: a new
        one."""
        if seed in (-1, LLAMA_DEFAULT_SEED):
            seed = random.randrange(1 << 32)
        self._seed = int(seed) & 0xFFFFFFFFFFFFFFFF

    def set_cache(self, cache: BaseLlamaCache | None) -> None:
        """Where completions look for states, and keep them."""
        self.cache = cache

    def sample(
        self,
        top_k: int = 40,
        top_p: float = 0.95,
        min_p: float = 0.05,
        typical_p: float = 1.0,
        temp: float = 0.80,
        repeat_penalty: float = 1.0,
        frequency_penalty: float = 0.0,
        presence_penalty: float = 0.0,
        tfs_z: float = 1.0,
        mirostat_mode: int = 0,
        mirostat_eta: float = 0.1,
        mirostat_tau: float = 5.0,
        penalize_nl: bool = True,
        logits_processor: Processors = None,
        grammar: LlamaGrammar | None = None,
        idx: int | None = None,
    ) -> int:
        """Chooses the token behind the last one, or behind the one at idx.

        Args:
            tfs_z, penalize_nl: do nothing, as in llama-cpp-python.
            idx: Other than the last: stands there first, which recomputes nothing that memory has.
        """
        from ._generation import Chooser

        choice = Choice(
            top_k, top_p, min_p, typical_p, temp, repeat_penalty, frequency_penalty,
            presence_penalty, mirostat_mode, mirostat_eta, mirostat_tau, logits_processor, grammar,
        )  # fmt: skip
        with self._lock:
            count = self.n_tokens
            assert count > 0, "sample: expected tokens that were read, found none"
            place = count if idx is None else (idx + 1 if idx >= 0 else count + idx + 1)
            if not 0 < place <= count:
                raise ValueError(f"idx: expected a token of {count}, found {idx}")
            sampling = choice.to_sampling(self._seed, self.last_n_tokens_size)
            chooser = Chooser(self, choice, sampling, wants_rows=False)
            self.n_tokens = place
            try:
                token = chooser.choose()
            finally:
                self.n_tokens = count
                chooser.forget()
            if token is None:
                raise NoRoomError(f"context: {count} tokens leave no room for another")
            return token

    def generate(
        self,
        tokens: Sequence[int],
        top_k: int = 40,
        top_p: float = 0.95,
        min_p: float = 0.05,
        typical_p: float = 1.0,
        temp: float = 0.80,
        repeat_penalty: float = 1.0,
        reset: bool = True,
        frequency_penalty: float = 0.0,
        presence_penalty: float = 0.0,
        tfs_z: float = 1.0,
        mirostat_mode: int = 0,
        mirostat_tau: float = 5.0,
        mirostat_eta: float = 0.1,
        penalize_nl: bool = True,
        logits_processor: Processors = None,
        stopping_criteria: StoppingCriteriaList | None = None,
        grammar: LlamaGrammar | None = None,
        max_tokens: int | None = None,
    ) -> Generator[int, Optional[Sequence[int]], None]:
        """Tokens behind a prompt, without end; `send` puts tokens of the caller's behind one.

        A token is read when the next one is asked for. Where a grammar is complete, the model's
        end token comes, and then the end.

        Args:
            reset: The prompt is a whole text, of which only what differs is read; else it goes
                behind what the instance stands on.
            stopping_criteria: Gets the tokens so far and their logits; the generator ends where it
                says so, and the token chosen from these logits is dropped.
            max_tokens: So many are asked for at most; with a draft model, more than are asked for
                by then are computed beside.
        """
        choice = Choice(
            top_k, top_p, min_p, typical_p, temp, repeat_penalty, frequency_penalty,
            presence_penalty, mirostat_mode, mirostat_eta, mirostat_tau, logits_processor, grammar,
        )  # fmt: skip
        return generate(self, list(tokens), choice, reset, stopping_criteria, max_tokens)

    # --- Texts ---------------------------------------------------------------------------------

    def tokenize(self, text: str | bytes, add_bos: bool = True, special: bool = False) -> list[int]:
        """Tokens of a text (UTF-8 where it is bytes)."""
        data = text.encode("utf-8") if isinstance(text, str) else text
        return self.tokenizer_.tokenize(data, add_bos, special)

    def detokenize(
        self, tokens: list[int], prev_tokens: list[int] | None = None, special: bool = False
    ) -> bytes:
        """The bytes of tokens; prev_tokens are those before them, where they begin no text."""
        return self.tokenizer_.detokenize(tokens, prev_tokens=prev_tokens, special=special)

    def tokenizer(self) -> LlamaTokenizer:
        return LlamaTokenizer(self)

    create_completion = _completion.create_completion
    __call__ = _completion.create_completion
    create_embedding = _embedding.create_embedding
    embed = _embedding.embed
    from_pretrained = classmethod(_pretrained.from_pretrained)

    def create_chat_completion(
        self, messages: list[Any], **options: Any
    ) -> Union[dict[str, Any], Iterator[dict[str, Any]]]:
        """An answer in a conversation, by the chat handler, else the chat format.

        Options: tools, tool_choice, functions, function_call, stream, stop, response_format,
        grammar, logprobs, top_logprobs, and those of create_completion() about sampling. Others
        are variables of the chat template, which a misspelt one is too: it does nothing.
        """
        from .llama_chat_format import get_chat_completion_handler

        handler = self.chat_handler or self._chat_handlers.get(self.chat_format)
        if handler is None:
            handler = get_chat_completion_handler(self.chat_format)
        found: Union[dict[str, Any], Iterator[dict[str, Any]]] = handler(
            llama=self, messages=messages, **{"repeat_penalty": 1.0, **options}
        )
        return found

    def create_chat_completion_openai_v1(self, *args: Any, **kwargs: Any) -> Any:
        """The same as objects of the package openai."""
        try:
            from openai.types.chat import ChatCompletion, ChatCompletionChunk
        except ImportError as error:
            raise ImportError(
                "create_chat_completion_openai_v1: expected the package openai"
            ) from error
        found: Any = self.create_chat_completion(*args, **kwargs)
        if kwargs.get("stream"):
            return (ChatCompletionChunk.model_validate(chunk) for chunk in found)
        return ChatCompletion.model_validate(found)

    # --- States --------------------------------------------------------------------------------

    def save_state(self) -> LlamaState:
        """What `load_state` needs to stand here again, in this instance or another one."""
        with self._lock:
            ids = self._input_ids.copy()
            if self._rows is None:
                scores = np.empty((0, self.n_vocab()), np.single)
            else:
                self._stand()
                scores = self._scores.copy()
            identity = (self._file.info.identity or "").encode()
            size = ids.nbytes + scores.nbytes + len(identity)
            return LlamaState(ids, scores, self.n_tokens, identity, size, self._seed)

    def load_state(self, state: LlamaState) -> None:
        """Stands where a state was saved: reads the tokens that the engine's memory lacks.

        Raises:
            MismatchError: of another model.
            NoRoomError: n_ctx is too small.
        """
        with self._lock:
            own = (self._file.info.identity or "").encode()
            if state.llama_state != own:
                raise MismatchError("state: expected one of this model, found another's")
            count = state.n_tokens
            if count > self._n_ctx:
                raise NoRoomError(f"context: expected at most {self._n_ctx} tokens, found {count}")
            if self._rows is not None and len(state.scores) == count:
                self._rows[:count] = state.scores
                self._row_ids = state.input_ids[:count].astype(np.intc)
            self.input_ids[:count] = state.input_ids[:count]
            self.n_tokens = count
            self._seed = state.seed
            self._stand()

    def __getstate__(self) -> dict[str, Any]:
        return {**self._arguments, "seed": self._seed, "chat_format": self.chat_format}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(**state)  # type: ignore[misc]

    # --- Figures -------------------------------------------------------------------------------

    def n_ctx(self) -> int:
        """Tokens of a text."""
        return self._n_ctx

    def n_embd(self) -> int:
        """Floats of a token's vector."""
        return self._model.number("embedding_length")

    def n_vocab(self) -> int:
        """Tokens of the vocabulary, which is floats of a row of logits."""
        count = 0 if self._engine is None else self._engine.facts.vocabulary_count
        return count or self._file.info.vocabulary_count

    def token_eos(self) -> int:
        """The token that ends texts; -1: none."""
        return self._model.token_eos()

    def token_bos(self) -> int:
        """The token that begins texts; -1: none."""
        return self._model.token_bos()

    def token_nl(self) -> int:
        """The token of a line's end."""
        return self._model.token_nl()

    def pooling_type(self) -> int:
        """0: none, 1: mean, 2: cls, 3: last."""
        found = int(self._arguments["pooling_type"])
        return found if found >= 0 else self._model.number("pooling_type", 0)

    def close(self) -> None:
        """Gives back weights and memory; closing twice does nothing."""
        for each in (self._session, self._engine, self._file):
            if each is not None:
                each.close()

    @staticmethod
    def logits_to_logprobs(logits: Any, axis: int = -1) -> NDArray[np.single]:
        """Logarithms of probabilities along an axis."""
        values = np.asarray(logits, np.single)
        highest = np.max(values, axis=axis, keepdims=True)
        shifted = values - np.where(np.isfinite(highest), highest, 0)
        with np.errstate(divide="ignore"):
            total = np.log(np.sum(np.exp(shifted), axis=axis, keepdims=True))
        return np.asarray(shifted - total, np.single)

    @staticmethod
    def longest_token_prefix(a: Sequence[int], b: Sequence[int]) -> int:
        """How many tokens two lists have in common from their beginnings on."""
        count = min(len(a), len(b))
        differing = np.flatnonzero(np.asarray(a[:count]) != np.asarray(b[:count]))
        return int(differing[0]) if differing.size else count
