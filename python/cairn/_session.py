"""Sessions: one sequence of tokens that grows, goes back and forks."""

from __future__ import annotations

import asyncio
import ctypes
import itertools
import json
import threading
import weakref
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple, Union

from . import _c
from ._engine import Engine
from ._errors import BusyError, InvalidError, check, fail, new_error
from ._figures import Plan, new_plan, plan_from
from ._handles import Handle
from ._model import Message, Text
from ._sampling import Sampling
from ._tokens import array_of, collect_bytes, list_from

if TYPE_CHECKING:
    import numpy
    from numpy.typing import NDArray

Prompt = Union[Text, Sequence[int]]
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


class _Right:
    """The right to call the library for a session and to copy what it shows, until the next call,
    to one thread at a time."""

    def __init__(self) -> None:
        self._lock = threading.Lock()

    def __enter__(self) -> None:
        if not self._lock.acquire(blocking=False):
            raise BusyError("session: expected no other call, found one on another thread")

    def __exit__(self, *_: object) -> None:
        self._lock.release()

    def awaited(self) -> threading.Lock:
        """The same for a `with` block that waits for the other call's end."""
        return self._lock


class Logits(Handle):
    """One row of logits, which stays as it is. `numpy.asarray(row)` is a view without a copy."""

    _WHAT = "row of logits"

    def __init__(self, handle: int) -> None:
        super().__init__(handle, _c.lib.cairn_logits_release)
        count = ctypes.c_size_t()
        address = _c.lib.cairn_logits_data(handle, ctypes.byref(count))
        assert address is not None
        self._address, self._count = address, count.value

    def __len__(self) -> int:
        return self._count

    def view(self) -> memoryview[float]:
        """The floats, which may be read only, for as long as the view lives."""
        self._open_handle()
        row = _row_type(self._count).from_address(self._address)
        row.owner = self
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
        self._right = _Right()
        self._sampling = Sampling()
        self._snapshots: weakref.WeakSet[Snapshot] = weakref.WeakSet()
        engine._sessions.add(self)
        if sampling is not None:
            self.sampling = sampling

    def __repr__(self) -> str:
        return f"<cairn.Session {self.number}>"

    def close(self) -> None:
        """Gives back what it holds. A call that computes for it on another thread is cancelled."""
        if self._handle is None:
            return
        _c.lib.cairn_cancel(self._handle)
        with self._right.awaited():
            super().close()

    # --- What it has ---------------------------------------------------------------------------

    @property
    def tokens(self) -> list[int]:
        """A copy of its tokens."""
        count = ctypes.c_size_t()
        with self._right:
            address = _c.lib.cairn_tokens(self._open_handle(), ctypes.byref(count))
            return list_from(address, count.value)

    @property
    def position(self) -> int:
        """Its number of tokens."""
        count = ctypes.c_size_t()
        _c.lib.cairn_tokens(self._open_handle(), ctypes.byref(count))
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
        params = sampling.to_c(self.engine.model)
        self._call(_c.lib.cairn_set_sampling, ctypes.byref(params))
        self._sampling = sampling

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
        with self._right:
            check(function(self._open_handle(), *arguments, self._error_at), self._error)

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
        with self._right:
            status = _c.lib.cairn_next(self._open_handle(), self._event_at, self._error_at)
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

        Leaving the loop leaves the answer where it stands; calling this again begins another.

        Args:
            prompt: append()ed before.
            max_tokens: Of this answer.
        """
        self._prepare(prompt, max_tokens)
        while True:
            event = self.next()
            yield event
            if event.finish != "none":
                return

    def answer(self, prompt: Prompt | None = None, *, max_tokens: int | None = None) -> str:
        """The text of an answer, which is made in one go, with drafts. Arguments and errors:
        generate()."""
        self._prepare(prompt, max_tokens)
        self.start()
        texts = []
        while True:
            event = self.next()
            texts.append(event.text)
            if event.finish != "none":
                return "".join(texts)

    async def agenerate(
        self, prompt: Prompt | None = None, *, max_tokens: int | None = None
    ) -> AsyncIterator[Event]:
        """The same for asyncio: the event loop is never held up. Cancelling the task, or leaving
        the loop, cancels what is computed."""
        loop = asyncio.get_running_loop()
        await loop.run_in_executor(None, self._prepare, prompt, max_tokens)
        self.start()
        descriptor = _c.lib.cairn_wait_fd(self._open_handle())
        ready = asyncio.Event()
        loop.add_reader(descriptor, ready.set)
        is_done = False
        try:
            while True:
                event = self._poll()
                if event is None:
                    ready.clear()
                    await ready.wait()
                    continue
                is_done = event.finish != "none"
                yield event
                if is_done:
                    return
        finally:
            loop.remove_reader(descriptor)
            if not is_done and not self.closed:
                self._stop_background()

    def _poll(self) -> Event | None:
        with self._right:
            status = _c.lib.cairn_poll(self._open_handle(), self._event_at, self._error_at)
            if status == _c.AGAIN:
                return None
            if status < 0 or status == _c.CANCELLED:
                fail(status, self._error)
            return self._take_event()

    def _stop_background(self) -> None:
        with self._right:
            handle = self._open_handle()
            _c.lib.cairn_cancel(handle)
            while _c.lib.cairn_next(handle, self._event_at, self._error_at) == _c.OK:
                pass

    def _prepare(self, prompt: Prompt | None, max_tokens: int | None) -> None:
        if prompt is not None:
            self.append(prompt)
        if max_tokens is not None and max_tokens != self._sampling.max_tokens:
            self.sampling = replace(self._sampling, max_tokens=max_tokens)

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
        next one that computes does. On any thread, and in signal handlers too."""
        _c.lib.cairn_cancel(self._open_handle())

    def receipt(self) -> dict[str, Any]:
        """The receipt of the last answer that has ended and was begun with Sampling.receipt: what
        it was asked with, its tokens, and a digest of the logits that they were chosen from.
        `cairn replay` computes it again and says whether the bits are the same."""
        handle = self._open_handle()
        with self._right:
            data = collect_bytes(
                lambda out, capacity, count, error: _c.lib.cairn_receipt(
                    handle, out, capacity, count, error
                ),
                4096,
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
        made._sampling = self._sampling
        return made

    def save(self, name: str) -> None:
        """Keeps the session in the engine's store under a name (letters, digits, ".", "_", "-"),
        in place of what had it: it is on the disk when this returns.

        Raises:
            UnsupportedError: the engine has no store.
            InvalidError: the session is empty, or the name none.
            StorageError.
        """
        self._call(_c.lib.cairn_save, _name(name))

    def load(self, name: str) -> Plan:
        """Becomes what was saved, by this engine or an earlier one on the same model.

        Raises:
            StorageError: nothing of that name.
            FormatError: it is damaged.
            MismatchError: of another model.
        """
        return self._read(_c.lib.cairn_restore, _name(name))


def _position(value: int) -> int:
    if not 0 <= value < 1 << 32:
        raise InvalidError(f"position: expected 0 or more tokens, found {value}")
    return value


def _name(name: str) -> bytes:
    if "\0" in name:
        raise InvalidError("name: expected text without zero bytes")
    return name.encode("utf-8")


def _floats(logits: Any) -> tuple[Any, int, Any]:
    """Their address, their number, and what must live as long as these are used."""
    if logits is None:
        return None, 0, None
    if isinstance(logits, Logits):
        return logits._address, len(logits), logits
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
