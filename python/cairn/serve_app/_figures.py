"""What two looks at a server's metrics say of the time between them. Pure."""

from __future__ import annotations

from collections.abc import Mapping


class Watch:
    """Figures of a replica, each time since the time before."""

    def __init__(self) -> None:
        self._before: dict[str, float] = {}
        self._told: dict[str, float] = {}
        self._waiting_since: float | None = None

    def look(self, metrics: Mapping[str, float], now: float) -> dict[str, float]:
        """`queue_seconds`: how long prompts waited until they were begun, or what they have waited
        for so far; `busy`, `prompt_ms`, `ms_per_token` as Pace has them."""
        if not metrics:
            return dict(self._told)

        def grown(name: str) -> float:
            return max(metrics.get(name, 0) - self._before.get(name, 0), 0)

        waiting = metrics.get("cairn_num_requests_waiting", 0)
        told = {**self._told, "busy": waiting + metrics.get("cairn_num_requests_running", 0)}
        begun = grown("cairn_request_queue_time_seconds_count")
        if not waiting:
            self._waiting_since = None
        elif self._waiting_since is None or begun:
            self._waiting_since = now
        waited = now - self._waiting_since if self._waiting_since is not None else 0.0
        mean = grown("cairn_request_queue_time_seconds_sum") / begun if begun else 0.0
        told["queue_seconds"] = max(mean, waited)
        read = grown("cairn_request_prefill_time_seconds_count")
        seconds = grown("cairn_request_prefill_time_seconds_sum")
        if read:
            told["prompt_ms"] = 1e3 * seconds / read
        queries, hits = (
            grown(f"cairn_prefix_cache_{what}_total") for what in ("queries", "hits")
        )
        if read and queries > hits:
            told["ms_per_token"] = 1e3 * seconds / (queries - hits)
        self._before = dict(metrics)
        self._told = told
        return dict(told)
