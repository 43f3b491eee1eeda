"""What memory costs: plans, and what an engine holds."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass

from . import _c
from ._errors import InvalidError, in_range

_UNITS = {"": 1, "b": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}


def bytes_of(size: int | str | None) -> int:
    """Bytes of a size such as ``2 << 30`` or ``"2GiB"``; units are powers of 1,024; None: 0.

    >>> bytes_of("1.5 MiB")
    1572864
    """
    if size is None:
        return 0
    if isinstance(size, int):
        return in_range("size", size, 0, (1 << 64) - 1)
    text = size.strip().lower()
    number = text.rstrip("bikmgt ")
    unit = text[len(number) :].strip()
    for ending in ("ib", "b"):
        if len(unit) > 1 and unit.endswith(ending):
            unit = unit[: -len(ending)]
            break
    try:
        count = int(float(number) * _UNITS[unit])
    except (ValueError, KeyError, OverflowError):
        raise InvalidError(
            f"size: expected a number with a unit such as 512MiB or 2GiB, found {size!r}"
        ) from None
    return in_range("size", count, 0, (1 << 64) - 1)


def text_of_bytes(count: int) -> str:
    value = float(count)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if value < 1024 or unit == "GiB":
            return f"{value:.0f} {unit}" if unit == "B" else f"{value:.1f} {unit}"
        value /= 1024
    return ""


@dataclass(frozen=True)
class Plan:
    """What it costs, or has cost, to stand at a position."""

    target: int
    """The position, in tokens from the beginning."""
    resume: int
    """Up to here memory has it."""
    forward_tokens: int
    """Tokens that go through the model: target - resume."""
    recurrent_steps: int
    """Replayed before these; they read no weights."""
    copy_bytes: int
    """At most."""
    new_bytes: int
    """At most, with the copies."""
    limited_by: str
    """Why not all of what memory holds can be gone on from: "none", "window" (of sliding windows
    only the newest positions are kept), "chunked", "recurrent" (states cannot be taken back),
    "hidden" (the last token is read again for its logits) or "other"."""
    logits_ready: bool
    """Nothing has to be computed."""
    replayed_by_cairn: bool = False
    """The backend cannot go back, so that tokens that it had are read again."""

    def __str__(self) -> str:
        text = f"{self.resume} of {self.target} tokens are in memory, {self.forward_tokens} " + (
            "is read" if self.forward_tokens == 1 else "are read"
        )
        if self.limited_by != "none":
            text += f" (limited by: {self.limited_by})"
        if self.replayed_by_cairn:
            text += " (again: the backend cannot go back)"
        return text


def plan_from(figures: _c.PlanFigures) -> Plan:
    limits = _c.LIMITS
    limit = figures.limited_by
    return Plan(
        target=figures.target,
        resume=figures.resume,
        forward_tokens=figures.forward_tokens,
        recurrent_steps=figures.recurrent_steps,
        copy_bytes=figures.copy_bytes,
        new_bytes=figures.new_bytes,
        limited_by=limits[limit] if 0 <= limit < len(limits) else "other",
        logits_ready=bool(figures.logits_ready),
        replayed_by_cairn=bool(figures.replayed_by_cairn),
    )


def new_plan() -> _c.PlanFigures:
    return _c.PlanFigures(struct_size=ctypes.sizeof(_c.PlanFigures))


@dataclass(frozen=True)
class Memory:
    """What an engine holds, in bytes."""

    budget: int
    """Of pages, states, hidden rows, logs and warm blocks."""
    pages: int
    """Keys and values."""
    states: int
    """Of recurrent layers."""
    hidden: int
    """Rows from which logits are made again."""
    logs: int
    """From which states are made again."""
    warm: int
    """Free, and kept ready."""
    weights: int
    """Beside the budget: packed weights, beside those of the file."""
    scratch: int
    """Beside the budget: what steps need."""
    snapshots: int
    """Their number."""

    @property
    def used(self) -> int:
        """Of the budget."""
        return self.pages + self.states + self.hidden + self.logs + self.warm

    def __str__(self) -> str:
        kinds = ", ".join(
            f"{name} {text_of_bytes(getattr(self, name))}"
            for name in ("pages", "states", "hidden", "logs", "warm")
            if getattr(self, name)
        )
        return f"{text_of_bytes(self.used)} of {text_of_bytes(self.budget)}" + (
            f": {kinds}" if kinds else ""
        )
