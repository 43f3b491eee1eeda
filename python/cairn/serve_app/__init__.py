"""cairn on a cluster of Ray: `serve run cairn.serve_app:application model=MODEL.gguf replicas=4`.

A replica holds an engine, one on each machine or NUMA node; the interface is that of `cairn serve`.
A request goes to the replica where its answer begins soonest. Needs `pip install "cairn[ray]"`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ._app import Options, QueueTimePolicy, application, build

__all__ = ["Options", "QueueTimePolicy", "application", "build"]


def __getattr__(name: str) -> Any:
    # Whoever chooses by prefixes without Ray does not need it.
    if name in __all__:
        from . import _app

        return getattr(_app, name)
    raise AttributeError(f"module 'cairn.serve_app' has no attribute {name!r}")
