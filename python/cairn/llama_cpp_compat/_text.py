"""Tokens become text: whole characters, cut at stop texts."""

from __future__ import annotations

import codecs
from collections.abc import Sequence


class TextReader:
    """Hands out text once it is sure that no stop text begins in it.

    Bytes that are no UTF-8 are left out, and so is a character that never becomes whole.
    """

    def __init__(self, stops: Sequence[str]) -> None:
        self._stops = [stop for stop in stops if stop]
        self._decoder = codecs.getincrementaldecoder("utf-8")("ignore")
        self._pending = ""
        self.decoded_length = 0
        """Characters so far, with those that are held back."""
        self.has_stopped = False

    def add(self, data: bytes) -> str:
        """The text that is sure by now."""
        text = self._decoder.decode(data)
        self.decoded_length += len(text)
        self._pending += text
        places = [at for at in map(self._pending.find, self._stops) if at >= 0]
        if places:
            self.has_stopped = True
            return self._take(min(places), keep=False)
        held = max((self._begun(stop) for stop in self._stops), default=0)
        return self._take(len(self._pending) - held, keep=True)

    def rest(self) -> str:
        """What was held back and turned out to be no stop text."""
        return "" if self.has_stopped else self._take(len(self._pending), keep=False)

    def _begun(self, stop: str) -> int:
        """Characters at the end that a stop text could begin with."""
        for count in range(min(len(stop) - 1, len(self._pending)), 0, -1):
            if self._pending.endswith(stop[:count]):
                return count
        return 0

    def _take(self, count: int, keep: bool) -> str:
        text, self._pending = self._pending[:count], self._pending[count:]
        if not keep:
            self._pending = ""
        return text
