"""Sessions: one sequence of tokens that grows, goes back and forks."""

from __future__ import annotations

import contextlib
import ctypes
import itertools
import json
import os
import threading
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn, TypeVar, Union

from . import _c
from ._async_answer import AsyncAnswer
from ._callbacks import is_inside
from ._engine import Engine
from ._errors import BusyError, InvalidError, check, fail, in_range, new_error
from ._figures import Plan, new_plan, plan_from
from ._handles import Handle
from ._model import Message, Text
from ._sampling import Sampling
from ._tokens import array_of, collect_bytes, list_from, zero_ended

if TYPE_CHECKING:
    import numpy
    from numpy.typing import NDArray

Prompt = Union[Text, Sequence[int]]
_Made = TypeVar("_Made")
_numbers = itertools.count(1)


class Event(NamedTuple):
    """What has come of an answer: usually one token and its text."""

    text: str
    """Whole characters: what a token leaves unfinished comes later."""
    tokens: list[int]
    """Of the token that ends an answer there is none."""
    logprobs: list[float] | None
    """One for each token, where Sampling.logprobs asks for them."""
    position: int
    """Of the session, behind these tokens."""
    finish: str
    """"none", or why the answer has ended: "stop", "length", "context" or "memory"."""
    drafted: int = 0
    """At the end of an answer: its tokens that were drafted and checked, Sampling.draft."""
    accepted: int = 0
    """Those of them that were right."""


class Logits(Handle):
    """One row of logits, which stays as it is. `numpy.asarray(row)` is a view without a copy.

    Views of it stay when it is closed: memory is given back with the last of them.
    """

    _WHAT = "row of logits"

    def __init__(self, handle: int) -> None:
        # What releases the row is an object of its own, which views hold too.
        self._handle = handle
        self._owner: Handle | None = Handle(handle, _c.lib.cairn_logits_release)
        # Views may be looked at until the very end, which gives all memory back.
        self._owner._finalizer.atexit = False
        count = ctypes.c_size_t()
        address = _c.lib.cairn_logits_data(handle, ctypes.byref(count))
        assert address is not None
        self._address, self._count = address, count.value

    def __len__(self) -> int:
        return self._count

    def close(self) -> None:
        """Takes no more calls. Views stay."""
        self._handle = self._owner = None

    def _held(self) -> Handle:
        """What has to live for as long as somebody looks at the row."""
        owner = self._owner
        self._open_handle()
        assert owner is not None
        return owner

    def view(self) -> memoryview[float]:
        """The floats, which may be read only, for as long as the view lives."""
        row = _row_type(self._count).from_address(self._address)
        row.owner = self._held()
        floats: Any = memoryview(row).cast("B").cast("f").toreadonly()
        return floats  # type: ignore[no-any-return]

    def numpy(self) -> NDArray[numpy.float32]:
        """[vocabulary], without a copy; may be read only."""
        import numpy

        return numpy.frombuffer(self.view().cast("B"), numpy.float32)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        import numpy

        row = self.numpy()
        wanted = row.dtype if dtype is None else numpy.dtype(dtype)
        if copy is False and wanted != row.dtype:
            raise ValueError(f"row of logits: expected {row.dtype}, without a copy, found {wanted}")
        return row.astype(wanted) if copy or wanted != row.dtype else row


_row_types: dict[int, Any] = {}


def _row_type(count: int) -> Any:
    """An array of floats that holds what its memory belongs to."""
    if count not in _row_types:
        _row_types[count] = type("Row", (ctypes.c_float * count,), {})
    return _row_types[count]


class Snapshot(Handle):
    """A session as it was: references to memory, no copy. Constant; outlives its session.

    Leaving a `with` block of it gives it back.
    """

    _WHAT = "snapshot"

    def __init__(self, handle: int) -> None:
        super().__init__(handle, _c.lib.cairn_snapshot_release)
        self.position: int = _c.lib.cairn_snapshot_position(handle)
        """Its number of tokens."""

    def __repr__(self) -> str:
        return f"Snapshot(position={self.position})"


class Session(Handle):
    """One sequence of tokens, on an engine.

    Takes one call at a time and raises BusyError at a second one; cancel() and close() are allowed
    on any thread meanwhile. What memory has of a text is never computed again, and has the bits of
    a fresh run.

    >>> with Model(NANO) as model, Engine(model, memory="64MiB", threads=1) as engine:
    ...     session = engine.session(sampling=Sampling(temperature=0, max_tokens=4))
    ...     plan = session.append("Hello")
    ...     with session.snapshot() as mark:
    ...         first = "".join(event.text for event in session.generate())
    ...         session.rewind(mark).forward_tokens
    ...     first == "".join(event.text for event in session.generate())
    0
    True
    """

    _WHAT = "session"

    def __init__(
        self,
        engine: Engine,
        *,
        sampling: Sampling | Mapping[str, Any] | None = None,
        _handle: int | None = None,
    ) -> None:
        error = new_error()
        if _handle is None:
            out = ctypes.c_void_p()
            status = _c.lib.cairn_conversation_open(
                engine._open_handle(), ctypes.byref(out), ctypes.byref(error)
            )
            check(status, error)
            assert out.value is not None
            _handle = out.value
        super().__init__(_handle, _c.lib.cairn_conversation_close)
        self.engine, self.number = engine, next(_numbers)
        self.last_plan: Plan | None = None
        """What the last call that read or rewound has cost."""
        self._error = error
        self._event = _c.EventView(struct_size=ctypes.sizeof(_c.EventView))
        # These are made once: an event costs no more than its call.
        self._event_at, self._error_at = ctypes.byref(self._event), ctypes.byref(self._error)
        # Held by the call that uses the library and copies what it shows until the next one.
        self._lock = threading.Lock()
        self._user = 0
        # Tells an asyncio task that waits for an event.
        self._wake: Callable[[], object] | None = None
        self._sampling = Sampling()
        # That of the answers to come: generate() may be given another one for its own.
        self._max_tokens: int | None = None
        self._snapshots: weakref.WeakSet[Snapshot] = weakref.WeakSet()
        engine._sessions.add(self)
        if sampling is not None:
            self.sampling = sampling

    def __repr__(self) -> str:
        return f"<cairn.Session {self.number}>"

    def close(self) -> None:
        """Gives back what it holds. A call that computes for it on another thread is cancelled."""
        handle, self._handle = self._handle, None
        if handle is None:
            return
        if os.getpid() != self._process:  # Whose calls are not here, and nothing is to be closed.
            self._finalizer.detach()
            return
        _c.lib.cairn_cancel(handle)
        wake = self._wake
        if wake is not None:
            with contextlib.suppress(RuntimeError):  # The event loop is closed, too.
                wake()
        # A signal handler has interrupted the other call, which goes on afterwards; and one that
        # logs may wait for the handler of its message. Whoever uses the session closes it then.
        if self._lock.locked() and (self._user == threading.get_ident() or is_inside()):
            return
        self._finish_close()

    def _finish_close(self) -> None:
        with self._lock:
            self._finalizer()

    def _use(self, work: Callable[[int], _Made]) -> _Made:
        """Calls the library for the session, and copies what it shows, on one thread at a time."""
        if self._lock.locked():
            self._refuse()
        me = threading.get_ident()
        try:
            # Unlike functions in Python, the lock's own cannot be interrupted half-way.
            with self._lock:
                self._user = me
                return work(self._open_handle())
        finally:
            if self._handle is None:
                self._finish_close()

    def _refuse(self) -> NoReturn:
        if os.getpid() != self._process:
            raise InvalidError("session: expected one of this process, found another one's")
        self._open_handle()  # One that is being closed is told so.
        raise BusyError("session: expected no other call, found one on another thread")

    # --- What it has ---------------------------------------------------------------------------

    @property
    def tokens(self) -> list[int]:
        """A copy of its tokens."""
        count = ctypes.c_size_t()
        return self._use(
            lambda handle: list_from(
                _c.lib.cairn_tokens(handle, ctypes.byref(count)), count.value
            )
        )

    @property
    def position(self) -> int:
        """Its number of tokens."""
        count = ctypes.c_size_t()
        self._use(lambda handle: _c.lib.cairn_tokens(handle, ctypes.byref(count)))
        return count.value

    @property
    def text(self) -> str:
        """Its tokens as text, without special tokens."""
        return self.engine.model.detokenize(self.tokens)

    @property
    def sampling(self) -> Sampling:
        """How tokens are chosen; setting it counts for all answers that begin from then on."""
        return self._sampling

    @sampling.setter
    def sampling(self, value: Sampling | Mapping[str, Any]) -> None:
        sampling = value if isinstance(value, Sampling) else Sampling(**value)
        self._set_sampling(sampling)
        self._sampling, self._max_tokens = sampling, sampling.max_tokens

    def _set_sampling(self, sampling: Sampling) -> None:
        params = sampling.to_c(self.engine.model)
        self._call(_c.lib.cairn_set_sampling, ctypes.byref(params))

    def _limit_answers(self, max_tokens: int | None) -> None:
        """Of the next answer; None: as `sampling` has it."""
        wanted = self._sampling.max_tokens if max_tokens is None else max_tokens
        if wanted != self._max_tokens:
            self._set_sampling(replace(self._sampling, max_tokens=wanted))
            self._max_tokens = wanted

    # --- Reading -------------------------------------------------------------------------------

    def append(self, text: Prompt, *, special: bool = False) -> Plan:
        """Adds a text or tokens and reads them; at the beginning with what the model wants there.

        Where this fails or is cancelled, the session is as it was. That holds for all that reads.

        Args:
            text: UTF-8 where it is bytes; a list of tokens is taken as it stands.
            special: Reads special tokens of a text by their names.

        Raises:
            NoRoomError: of the context or of memory.
            InvalidError: ids outside the vocabulary.
        """
        if isinstance(text, (str, bytes)):
            is_first = self.position == 0
            text = self.engine.model.tokenize(text, bos=is_first, special=special)
        ids = array_of(text)
        return self._read(_c.lib.cairn_prefill, ids, len(ids))

    def become(self, tokens: Iterable[int]) -> Plan:
        """Makes these its tokens: what memory has of them is not computed again."""
        ids = array_of(tokens)
        return self._read(_c.lib.cairn_sync, ids, len(ids))

    def chat(self, messages: Sequence[Message], **options: Any) -> Plan:
        """Becomes this conversation, ready for the model's answer. Options: Model.render()."""
        return self.become(self.engine.model.render(messages, **options))

    def rewind(self, to: int | Snapshot) -> Plan:
        """Goes back to the first `to` tokens, or to a snapshot of any session of the engine."""
        if isinstance(to, Snapshot):
            return self._read(_c.lib.cairn_rewind_to, to._open_handle())
        return self._read(_c.lib.cairn_rewind, _position(to))

    def plan_rewind(self, to: int) -> Plan:
        """What rewind() to a position would cost. Computes nothing."""
        figures = new_plan()
        self._call(_c.lib.cairn_plan_rewind, _position(to), ctypes.byref(figures))
        return plan_from(figures)

    def reset(self) -> None:
        """Forgets all tokens. What was computed stays in memory while there is room."""
        self._call(_c.lib.cairn_reset)

    def explain(self) -> str:
        """What the last call that read or rewound found in memory, as a sentence."""
        return "nothing was read yet" if self.last_plan is None else str(self.last_plan)

    def _call(self, function: Callable[..., int], *arguments: Any) -> None:
        self._use(
            lambda handle: check(function(handle, *arguments, self._error_at), self._error)
        )

    def _read(self, function: Callable[..., int], *arguments: Any) -> Plan:
        figures = new_plan()
        self._call(function, *arguments, ctypes.byref(figures))
        self.last_plan = plan_from(figures)
        return self.last_plan

    # --- Answers -------------------------------------------------------------------------------

    def next(self) -> Event:
        """The next token of an answer, or its end.

        Raises:
            InvalidError: nothing was read yet.
            NoRoomError.
            Cancelled: going on is possible, and chooses the same tokens.
        """
        return self._use(self._next)

    def _next(self, handle: int) -> Event:
        status = _c.lib.cairn_next(handle, self._event_at, self._error_at)
        if status < 0 or status == _c.CANCELLED:
            fail(status, self._error)
        return self._take_event()

    def start(self) -> None:
        """Has an answer made in the background, with drafts: next() then waits for its events,
        and most other calls are refused until its end was taken."""
        self._call(_c.lib.cairn_start)

    def generate(
        self, prompt: Prompt | None = None, *, max_tokens: int | None = None
    ) -> Iterator[Event]:
        """An answer, token by token; the last event has no token, but what made the end.

        Leaving the loop leaves the answer where it stands. Calling this again goes on with it,
        or begins another where the session has read, gone back or got other sampling meanwhile.

        Args:
            prompt: append()ed before.
            max_tokens: Of this answer, in place of Sampling.max_tokens.
        """
        self._prepare(prompt, max_tokens)
        while True:
            event = self.next()
            if event.finish != "none":
                self._limit_answers(None)
            yield event
            if event.finish != "none":
                return

    def answer(self, prompt: Prompt | None = None, *, max_tokens: int | None = None) -> str:
        """The text of an answer, which is made in one go, with drafts. Arguments and errors:
        generate()."""
        self._prepare(prompt, max_tokens)
        texts = []
        try:
            self.start()
            while True:
                event = self.next()
                texts.append(event.text)
                if event.finish != "none":
                    break
        except BaseException as error:
            if not isinstance(error, BusyError):  # The answer would be another call's.
                self._stop_background()
            raise
        self._limit_answers(None)
        return "".join(texts)

    def agenerate(
        self, prompt: Prompt | None = None, *, max_tokens: int | None = None
    ) -> AsyncAnswer:
        """generate() for asyncio, made in the background, with drafts.

        Cancelling the task cancels what is computed, the reading of the prompt too. So does leaving
        the loop, which waits for the step that is being computed; `aclose()` of what this returns
        lets the event loop go on meanwhile.
        """
        return AsyncAnswer(self, prompt, max_tokens)

    def _wait_descriptor(self) -> int:
        found: int = _c.lib.cairn_wait_fd(self._open_handle())
        return found

    def _poll(self) -> Event | None:
        return self._use(self._poll_here)

    def _poll_here(self, handle: int) -> Event | None:
        status = _c.lib.cairn_poll(handle, self._event_at, self._error_at)
        if status == _c.AGAIN:
            return None
        if status < 0 or status == _c.CANCELLED:
            fail(status, self._error)
        return self._take_event()

    def _stop_background(self) -> None:
        """Ends an answer in the background where it stands, if there is one."""
        with contextlib.suppress(InvalidError):  # Closed meanwhile.
            if self._drain():
                self.cancel()
                self._drain(_c.lib.cairn_next, is_cancelled=True)

    def _drain(
        self, take: Callable[..., int] = _c.lib.cairn_poll, *, is_cancelled: bool = False
    ) -> bool:
        """Drops what has come of an answer in the background; whether more is to come."""

        def work(handle: int) -> int:
            status = _c.OK
            while status == _c.OK:
                status = take(handle, self._event_at, self._error_at)
            return status

        status = self._use(work)
        if is_cancelled and status not in (_c.AGAIN, _c.CANCELLED):
            self._take_cancellation()
        return status == _c.AGAIN

    def _take_cancellation(self) -> None:
        """One that came too late, so that it does not end the next call."""
        self._use(lambda handle: _c.lib.cairn_start(handle, self._error_at))

    def _prepare(self, prompt: Prompt | None, max_tokens: int | None) -> None:
        if prompt is not None:
            self.append(prompt)
        self._limit_answers(max_tokens)

    def _take_event(self) -> Event:
        view = self._event
        count = view.token_count
        text = ctypes.string_at(view.text, view.text_bytes).decode("utf-8", "replace")
        return Event(
            text,
            view.tokens[:count] if count else [],
            view.logprobs[:count] if count and view.logprobs else None,
            view.position,
            _c.FINISHES[view.finish],
            view.drafted,
            view.accepted,
        )

    def cancel(self) -> None:
        """The call that computes for the session ends soon, with Cancelled; if there is none, the
        next one that computes does. On any thread; a signal handler in Python runs when the call
        that computes on the main thread has returned, and then cancels the one after it."""
        _c.lib.cairn_cancel(self._open_handle())

    def receipt(self) -> dict[str, Any]:
        """The receipt of the last answer that has ended and was begun with Sampling.receipt: what
        it was asked with, its tokens, and a digest of the logits that they were chosen from.
        `cairn replay` computes it again and says whether the bits are the same."""
        data = self._use(
            lambda handle: collect_bytes(
                lambda out, capacity, count, error: _c.lib.cairn_receipt(
                    handle, out, capacity, count, error
                ),
                4096,
            )
        )
        found: dict[str, Any] = json.loads(data)
        return found

    # --- Logits --------------------------------------------------------------------------------

    def logits(self) -> Logits:
        """Those of the next token."""
        out = ctypes.c_void_p()
        self._call(_c.lib.cairn_logits_acquire, ctypes.byref(out))
        assert out.value is not None
        return Logits(out.value)

    def sample(self, logits: Any = None) -> int:
        """Chooses the next token without adding it.

        Args:
            logits: [vocabulary] floats, or None: the session's own. Grammar and stop texts have no
                part in it.
        """
        out = ctypes.c_int32()
        address, count, owner = _floats(logits)
        self._call(_c.lib.cairn_sample, address, count, ctypes.byref(out))
        del owner
        return out.value

    def set_logits(self, logits: Any) -> None:
        """Has the next token of an answer chosen from these [vocabulary] floats in place of the
        session's own, with grammar and all; until then, or until the tokens change."""
        address, count, owner = _floats(logits)
        self._call(_c.lib.cairn_set_logits, address, count)
        del owner

    # --- Snapshots, forks and the store --------------------------------------------------------

    def snapshot(self) -> Snapshot:
        """The session as it stands. An answer that is being made is not part of it."""
        out = ctypes.c_void_p()
        self._call(_c.lib.cairn_snapshot_take, ctypes.byref(out))
        assert out.value is not None
        made = Snapshot(out.value)
        self._snapshots.add(made)
        return made

    def snapshot_positions(self) -> list[int]:
        """Of its snapshots that are open, ascending."""
        return sorted(each.position for each in self._snapshots if not each.closed)

    def fork(self, at: Snapshot | None = None) -> Session:
        """A second session with the same tokens, memory and sampling: as this one stands, or with
        the tokens of a snapshot. Computes nothing."""
        out = ctypes.c_void_p()
        self._call(
            _c.lib.cairn_fork, None if at is None else at._open_handle(), ctypes.byref(out)
        )
        made = Session(self.engine, _handle=out.value)
        made._sampling, made._max_tokens = self._sampling, self._max_tokens
        return made

    def save(self, name: str) -> None:
        """Keeps the session in the engine's store under a name (letters, digits, ".", "_", "-"),
        in place of what had it: it is on the disk when this returns.

        Raises:
            UnsupportedError: the engine has no store.
            InvalidError: the session is empty, or the name none.
            StorageError.
        """
        self._call(_c.lib.cairn_save, zero_ended("name", name))

    def load(self, name: str) -> Plan:
        """Becomes what was saved, by this engine or an earlier one on the same model.

        Raises:
            StorageError: nothing of that name.
            FormatError: it is damaged.
            MismatchError: of another model.
        """
        return self._read(_c.lib.cairn_restore, zero_ended("name", name))


def _position(value: int) -> int:
    return in_range("position", value, 0, (1 << 32) - 1)


def _floats(logits: Any) -> tuple[Any, int, Any]:
    """Their address, their number, and what must live as long as these are used."""
    if logits is None:
        return None, 0, None
    if isinstance(logits, Logits):
        return logits._address, len(logits), logits._held()
    try:
        view = memoryview(logits)
    except TypeError:
        view = None
    if view is not None and view.format == "f" and view.c_contiguous and not view.readonly:
        count = view.nbytes // 4
        if count:
            return (ctypes.c_float * count).from_buffer(view.cast("B")), count, view
    copy = (ctypes.c_float * len(logits))(*logits)
    return copy, len(copy), copy
