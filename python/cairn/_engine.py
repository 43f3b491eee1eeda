"""Engines: weights, threads that compute, and one memory budget for all sessions."""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import weakref
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Callable, Optional, Union

from . import _c
from ._callbacks import awaited, inside, is_ending
from ._errors import InvalidError, check, in_range, new_error
from ._figures import Memory, Plan, bytes_of, new_plan, plan_from
from ._handles import Handle
from ._model import Model, Text
from ._sampling import Sampling
from ._tokens import array_of, collect_floats, zero_ended

if TYPE_CHECKING:
    from ._session import Session

_Path = Union[str, "os.PathLike[str]"]
_Progress = Callable[[float], Optional[bool]]


@dataclass(frozen=True)
class Facts:
    """What an engine can do."""

    capabilities: frozenset[str]
    """Of "text", "logits", "rewind", "snapshot" (forks too), "save" and "embed"."""
    exactness: str
    """"bitwise": what memory reuses, however cut and rewound, has the bits of a fresh run;
    "replay": of one that reads the same tokens by the same calls; "none"."""
    context_tokens: int
    vocabulary_count: int
    """Floats of a row of logits."""
    vector_floats: int
    """Of an embedding; 0: none."""
    backend: str
    numerics: str
    native_capabilities: frozenset[str]
    """Of the capabilities, those that the backend has itself; the rest is read again for it."""


@dataclass(frozen=True)
class Backend:
    """What can compute models: "cairn", the library's own engine, or another program's."""

    name: str
    available: bool
    rank: int
    """Who has the highest is chosen, of those that are available and can compute a model."""
    capabilities: frozenset[str]
    """What it can do itself, of "rewind" and "snapshot"."""
    exactness: str
    """As Facts has it, at most."""
    numerics: str
    why_not: str
    """Why it is not available; empty: it is."""


def backends() -> list[Backend]:
    """What there is for `Engine(backend=…)`, the best first.

    >>> [each.name for each in backends()][:1]
    ['cairn']
    """
    found = json.loads(_c.lib.cairn_backends_json())
    return [
        Backend(**{**each, "capabilities": frozenset(each["capabilities"])}) for each in found
    ]


def _capabilities_of(bits: int) -> frozenset[str]:
    return frozenset(name for name, bit in _c.CAPABILITIES.items() if bits & bit)


class Engine(Handle):
    """The weights of a model, the threads that compute, and a memory budget for all sessions.

    May be used on any thread; the GIL is not held while something is computed, and sessions that
    compute at the same time share each reading of the weights.

    Args:
        model: May be closed afterwards; then sessions take and give tokens alone: texts, messages
            and sampling need it.
        memory: The budget of all sessions, such as ``"2GiB"``; None: half of what weights leave.
        threads: None: one for each physical core.
        parallel: Sessions that compute at a time; the others wait. None: 64.
        context: Tokens of a session; None: the model's, at most 131,072.
        type_k, type_v: How keys and values are stored: "f32", "f16" (None), "bf16", "q8_0" or
            "q4_0".
        store: A folder for Session.save(), made where it is missing.
        adapters: LoRA adapters of all that is computed: paths, or pairs of path and scale.
        pooling: "none", "mean", "cls", "last" or "rank": the engine makes vectors instead of text.
        backend: Which of backends() computes. None: the environment's CAIRN_BACKEND, else the best
            that can. One that is named is never replaced by another.
        draft: Who drafts tokens of answers that are made in the background or in one go:
            "auto" (None), "off", or kinds with commas between them (docs/speculation.md).
        draft_model: The file of a small model, best one with the same vocabulary, which drafts too.
        progress: Called while weights are prepared, on another thread, with 0 to 1; False gives up.
        options: Others of cairn_engine_params' options_json, by name: ``numerics="fast-1"``.

    Raises:
        StorageError, FormatError, UnsupportedError: for the file, and for a backend that is not
            available or cannot do what is asked for.
        MismatchError: the file has changed since the model was opened.
        NoRoomError, InvalidError, Cancelled.

    >>> with Model(NANO) as model, Engine(model, memory="64MiB", threads=1) as engine:
    ...     engine.facts.exactness
    'bitwise'
    """

    _WHAT = "engine"

    def __init__(
        self,
        model: Model,
        *,
        memory: int | str | None = None,
        threads: int | None = None,
        parallel: int | None = None,
        context: int | None = None,
        type_k: str | None = None,
        type_v: str | None = None,
        store: str | os.PathLike[str] | None = None,
        adapters: Sequence[_Path | tuple[_Path, float]] = (),
        pooling: str | None = None,
        backend: str | None = None,
        draft: str | None = None,
        draft_model: str | os.PathLike[str] | None = None,
        progress: _Progress | None = None,
        **options: Any,
    ) -> None:
        params = _c.EngineParams()
        size = ctypes.sizeof(params)
        _c.lib.cairn_engine_params_init(ctypes.byref(params), size)
        params.thread_count = _count("threads", threads)
        params.parallel = _count("parallel", parallel)
        params.context_tokens = _count("context", context)
        params.memory_budget_bytes = bytes_of(memory)
        params.type_k, params.type_v = _kv_type("type_k", type_k), _kv_type("type_v", type_v)
        if store is not None:
            params.store_path = zero_ended("store", os.fsencode(store))
        if pooling is not None:
            options["pooling"] = pooling
        if backend is not None:
            options["backend"] = backend
        if draft is not None:
            options["draft"] = draft
        if draft_model is not None:
            options["draft_model"] = os.fspath(draft_model)
        if adapters:
            options["adapters"] = [_adapter(each) for each in adapters]
        if options:
            params.options_json = json.dumps(options).encode("utf-8")
        super().__init__(_open(model, params, progress), _c.lib.cairn_engine_close)
        self.model = model
        self.facts = self._get_facts()
        self._sessions: weakref.WeakSet[Session] = weakref.WeakSet()

    def __repr__(self) -> str:
        return f"<cairn.Engine of {self.model.path!r}>"

    def _call(self, function: Callable[..., int], *arguments: Any) -> None:
        error = new_error()
        check(function(self._open_handle(), *arguments, ctypes.byref(error)), error)

    def _get_facts(self) -> Facts:
        facts = _c.EngineFacts(struct_size=ctypes.sizeof(_c.EngineFacts))
        self._call(_c.lib.cairn_engine_get_facts, ctypes.byref(facts))
        return Facts(
            capabilities=_capabilities_of(facts.capabilities),
            exactness=_c.EXACTNESS[facts.exactness],
            context_tokens=facts.context_tokens,
            vocabulary_count=facts.vocabulary_count,
            vector_floats=facts.vector_floats,
            backend=facts.backend.decode(),
            numerics=facts.numerics.decode(),
            native_capabilities=_capabilities_of(facts.native_capabilities),
        )

    def memory(self) -> Memory:
        """What the engine holds now."""
        figures = _c.MemoryFigures(struct_size=ctypes.sizeof(_c.MemoryFigures))
        self._call(_c.lib.cairn_engine_get_memory, ctypes.byref(figures))
        return Memory(**{name: getattr(figures, name) for name in Memory.__dataclass_fields__})

    def plan(self, tokens: Iterable[int]) -> Plan:
        """What reading these tokens in a new session would cost now. Computes nothing."""
        ids = array_of(tokens)
        figures = new_plan()
        self._call(_c.lib.cairn_plan_prompt, ids, len(ids), ctypes.byref(figures))
        return plan_from(figures)

    def embed(self, text: Text | Sequence[int]) -> list[float]:
        """The vector of a text, by an engine with `pooling`.

        Its length is 1 with "mean", "cls" and "last"; "none" has the vectors of all tokens, one
        behind the other, and "rank" the score of a question and a text that are one list of tokens.

        Raises:
            UnsupportedError: the engine makes text.
        """
        tokens = (
            self.model.tokenize(text, bos=True) if isinstance(text, (str, bytes)) else list(text)
        )
        ids = array_of(tokens)
        handle = self._open_handle()
        return collect_floats(
            lambda out, capacity, count, error: _c.lib.cairn_embed(
                handle, ids, len(ids), out, capacity, count, error
            ),
            self.facts.vector_floats,
        )

    def score(self, tokens: Iterable[int]) -> tuple[list[float], list[int]]:
        """How likely a text is, token by token. The whole text is read, and nothing of it kept.

        Returns:
            For each token but the first, by those before it: the natural logarithm of its
            probability, and the token that was likeliest there.
        """
        ids = array_of(tokens)
        count = max(len(ids) - 1, 0)
        logprobs, likeliest = (ctypes.c_float * count)(), (ctypes.c_int32 * count)()
        self._call(_c.lib.cairn_score, ids, len(ids), logprobs, likeliest, count)
        return logprobs[:], likeliest[:]

    def session(self, *, sampling: Sampling | Mapping[str, Any] | None = None) -> Session:
        """A new session, which is empty."""
        from ._session import Session

        return Session(self, sampling=sampling)

    def _repr_svg_(self) -> str:
        from ._memory_map import memory_map

        return memory_map(self.memory(), sorted(self._sessions, key=lambda each: each.number))


def _count(name: str, value: int | None) -> int:
    return 0 if value is None else in_range(name, value, 0, (1 << 32) - 1)


def _adapter(given: _Path | tuple[_Path, float]) -> str | dict[str, Any]:
    if isinstance(given, (str, os.PathLike)):
        return os.fspath(given)
    return {"path": os.fspath(given[0]), "scale": given[1]}


def _kv_type(name: str, value: str | None) -> int:
    found = _c.KV_TYPES.get(value)
    if found is None:
        known = ", ".join(each for each in _c.KV_TYPES if each)
        raise InvalidError(f"{name}: expected one of {known}, found {value!r}")
    return found


def _open(model: Model, params: _c.EngineParams, progress: _Progress | None) -> int:
    error, handle, failures = new_error(), ctypes.c_void_p(), list[BaseException]()
    if progress is not None:
        params.progress = _progress_function(progress, failures)
    with contextlib.nullcontext() if progress is None else awaited():
        status = _c.lib.cairn_engine_open(
            model._open_handle(), ctypes.byref(params), ctypes.byref(handle), ctypes.byref(error)
        )
    if failures:
        raise failures[0]
    check(status, error)
    assert handle.value is not None
    return handle.value


def _progress_function(progress: _Progress, failures: list[BaseException]) -> Any:
    # What the function raises ends the opening, and is raised by it.
    def call(_user: int | None, done: float) -> bool:
        try:
            with inside():
                return not is_ending() and progress(done) is not False
        except BaseException as error:
            failures.append(error)
            return False

    return _c.ProgressFunction(call)
