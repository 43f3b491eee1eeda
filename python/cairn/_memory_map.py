"""What an engine's memory holds, drawn for notebooks: one bar for the budget, and a line for each
session with its snapshots."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from html import escape
from typing import TYPE_CHECKING

from ._errors import BusyError, InvalidError
from ._figures import Memory, text_of_bytes

if TYPE_CHECKING:
    from ._session import Session

_WIDTH, _LEFT, _ROW = 640, 90, 22
_KINDS = (
    ("pages", "keys and values", "#4878a8"),
    ("states", "recurrent states", "#c8703c"),
    ("hidden", "hidden rows", "#6a9a58"),
    ("logs", "logs", "#8f6aa8"),
    ("warm", "free, kept ready", "#a8a8a8"),
)


def memory_map(memory: Memory, sessions: Sequence[Session]) -> str:
    """An SVG document. Lengths of the bar are bytes of the budget, those of lines are tokens."""
    parts = [_budget_bar(memory)]
    top = 62
    positions = _positions(sessions)
    longest = max(positions.values(), default=0)
    for session, position in positions.items():
        parts.append(_session_line(session, position, longest, top))
        top += _ROW
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_WIDTH}" height="{top + 6}" '
        f'viewBox="0 0 {_WIDTH} {top + 6}" font-family="sans-serif" font-size="12" '
        f'fill="currentColor" role="img" aria-label="{escape(str(memory), quote=True)}">'
        + "".join(parts)
        + "</svg>"
    )


def _positions(sessions: Sequence[Session]) -> dict[Session, int]:
    """Without sessions that are closed, or that another call uses at the moment."""
    found = {}
    for session in sessions:
        with contextlib.suppress(BusyError, InvalidError):
            found[session] = session.position
    return found


def _budget_bar(memory: Memory) -> str:
    room = _WIDTH - _LEFT - 10
    scale = room / max(memory.budget, memory.used, 1)
    parts = [
        '<text x="4" y="20">budget</text>',
        f'<rect x="{_LEFT}" y="6" width="{room}" height="18" fill="none" stroke="currentColor" '
        'stroke-opacity="0.4"/>',
    ]
    left, label = float(_LEFT), float(_LEFT)
    for name, title, colour in _KINDS:
        count = getattr(memory, name)
        if not count:
            continue
        width = count * scale
        text = f"{title} {text_of_bytes(count)}"
        parts.append(
            f'<rect x="{left:.2f}" y="6" width="{width:.2f}" height="18" fill="{colour}">'
            f"<title>{text}</title></rect>"
            f'<rect x="{label:.0f}" y="36" width="9" height="9" fill="{colour}"/>'
            f'<text x="{label + 13:.0f}" y="45">{text}</text>'
        )
        left += width
        label += 22 + 6.2 * len(text)
    return "".join(parts)


def _session_line(session: Session, position: int, longest: int, top: int) -> str:
    scale = (_WIDTH - _LEFT - 90) / max(longest, 1)
    end = _LEFT + position * scale
    parts = [
        f'<text x="4" y="{top + 10}">session {session.number}</text>',
        f'<line x1="{_LEFT}" y1="{top + 6}" x2="{end:.2f}" y2="{top + 6}" stroke="#4878a8" '
        'stroke-width="6"/>',
        f'<text x="{end + 6:.0f}" y="{top + 10}">{position} tokens</text>',
    ]
    for mark in session.snapshot_positions():
        at = _LEFT + min(mark, longest) * scale
        parts.append(
            f'<circle cx="{at:.2f}" cy="{top + 6}" r="5" fill="#c8703c">'
            f"<title>snapshot at {mark}</title></circle>"
        )
    return "".join(parts)
