"""Answers for asyncio: the event loop waits for the library's descriptor."""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING

from ._errors import CairnError, Cancelled

if TYPE_CHECKING:
    from ._session import Event, Prompt, Session


class AsyncAnswer(AsyncIterator["Event"]):
    """The events of an answer that is made in the background, as `Session.agenerate()` has them.

    One that is closed, or that nobody has any more, stops what is computed.
    """

    def __init__(self, session: Session, prompt: Prompt | None, max_tokens: int | None) -> None:
        self._session, self._prompt, self._max_tokens = session, prompt, max_tokens
        # A copy of the session's, which stays what it is when the session is closed.
        self._descriptor: int | None = None
        self._is_made = self._has_ended = False

    async def __anext__(self) -> Event:
        if self._has_ended:
            raise StopAsyncIteration
        try:
            if not self._is_made:
                await self._begin()
            while (event := self._session._poll()) is None:
                await self._wait()
        except GeneratorExit:  # The task is dropped, and cannot wait.
            self._stop()
            raise
        except BaseException:
            await self.aclose()
            raise
        if event.finish != "none":
            self._end()
            self._session._limit_answers(None)
        return event

    async def aclose(self) -> None:
        """Stops what is computed and waits for that; then the session is free again."""
        session = self._session
        try:
            if self._is_made and session._drain():
                session.cancel()
                while session._drain(is_cancelled=True):
                    await self._wait()
        except CairnError:  # It was closed, or another call stops it.
            pass
        finally:
            self._stop()

    def __del__(self) -> None:
        self._stop()

    def _stop(self) -> None:
        """The same, but the thread waits for the step that is being computed."""
        if self._is_made:
            with contextlib.suppress(CairnError):
                self._session._stop_background()
        self._end()

    def _end(self) -> None:
        self._is_made, self._has_ended = False, True
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    async def _begin(self) -> None:
        session = self._session
        await self._prepare()
        self._descriptor = os.dup(session._wait_descriptor())
        session.start()
        self._is_made = True

    async def _prepare(self) -> None:
        """Reads the prompt on another thread; where the task is cancelled, so is the reading."""
        session = self._session
        reading = asyncio.get_running_loop().run_in_executor(
            None, session._prepare, self._prompt, self._max_tokens
        )
        try:
            await asyncio.shield(reading)
        except asyncio.CancelledError:
            if not reading.done():
                with contextlib.suppress(CairnError):
                    session.cancel()
                    await asyncio.wait([reading])
                    if not isinstance(reading.exception(), Cancelled):
                        session._take_cancellation()
            raise

    async def _wait(self) -> None:
        """Until there may be an event, or the session is closed."""
        assert self._descriptor is not None
        session, loop, ready = self._session, asyncio.get_running_loop(), asyncio.Event()
        session._wake = lambda: loop.call_soon_threadsafe(ready.set)
        loop.add_reader(self._descriptor, ready.set)
        try:
            if not session.closed:
                await ready.wait()
        finally:
            session._wake = None
            loop.remove_reader(self._descriptor)
