"""Where a prompt is computed soonest: which replica has read how much of it, how fast each one
reads, and who else waits there. Knows nothing of Ray. One thread."""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from ._prompt import Prompt

# Of a token of text, about: replicas measure tokens, prompts are told in bytes.
_BYTES_PER_TOKEN = 4.0
# What is taken for what was not measured yet.
_FIRST_MS_PER_TOKEN = 2.0
_FIRST_PROMPT_MS = 200.0
# Costs that differ by so little are the same: then who has read more, then the hash decides.
_SAME_FACTOR = 1.25
_SAME_MS = 20.0


@dataclass(frozen=True)
class Pace:
    """What a replica says of itself."""

    ms_per_token: float = _FIRST_MS_PER_TOKEN
    prompt_ms: float = _FIRST_PROMPT_MS  # That a prompt takes on average, with what was reused.
    busy: float = 0  # Requests that it answers or that wait there, whoever has sent them.


def paces(told: Mapping[str, Mapping[str, float]]) -> dict[str, Pace]:
    """Of what replicas say. One that has measured nothing yet is taken for one like the others."""

    def mean(figure: str, otherwise: float) -> float:
        values = [stats[figure] for stats in told.values() if figure in stats]
        return sum(values) / len(values) if values else otherwise

    ms_per_token = mean("ms_per_token", _FIRST_MS_PER_TOKEN)
    prompt_ms = mean("prompt_ms", _FIRST_PROMPT_MS)
    return {
        name: Pace(
            stats.get("ms_per_token", ms_per_token),
            stats.get("prompt_ms", prompt_ms),
            stats.get("busy", 0),
        )
        for name, stats in told.items()
    }


class PrefixTable:
    """Who has read which prefix; the least used are forgotten."""

    HOLDERS_MAX = 4

    def __init__(self, entries_max: int = 1 << 18) -> None:
        self._entries_max = entries_max
        self._holders: OrderedDict[bytes, tuple[str, ...]] = OrderedDict()

    def add(self, prompt: Prompt, replica: str) -> None:
        for key in prompt.keys:
            others = [name for name in self._holders.get(key, ()) if name != replica]
            self._holders[key] = (replica, *others[: self.HOLDERS_MAX - 1])
            self._holders.move_to_end(key)
        while len(self._holders) > self._entries_max:
            self._holders.popitem(last=False)

    def known(self, prompt: Prompt) -> dict[str, int]:
        """Bytes of the longest prefix that each has."""
        known: dict[str, int] = {}
        for key, end in zip(prompt.keys, prompt.ends):
            holders = self._holders.get(key)
            if holders is None:
                break
            for replica in holders:
                known[replica] = end
        return known


class Chooser:
    """Chooses among replicas by their names, and remembers what it was told."""

    def __init__(self) -> None:
        self._table = PrefixTable()
        self._outstanding: dict[str, int] = {}

    def ranked(
        self, prompt: Prompt, replicas: Mapping[str, Pace], owner: str | None = None
    ) -> list[str]:
        """All replicas, the best first. The one that alone has what is asked for stands alone."""
        if owner is not None and owner in replicas:
            return [owner]
        if prompt.owned is not None:
            # It was made before this table, or it is to be made: the name alone says where.
            return _by_hash(prompt.owned.encode(), replicas)[:1]
        known = self._table.known(prompt)
        order = _by_hash(prompt.affinity, replicas)

        def cost(replica: str) -> float:
            pace = replicas[replica]
            busy = max(pace.busy, self._outstanding.get(replica, 0))
            missed = (prompt.size - known.get(replica, 0)) / _BYTES_PER_TOKEN
            return missed * pace.ms_per_token + busy * pace.prompt_ms

        costs = {replica: cost(replica) for replica in order}
        limit = min(costs.values(), default=0) * _SAME_FACTOR + _SAME_MS

        def place(replica: str) -> tuple[float, int]:
            return max(costs[replica], limit), -known.get(replica, 0)

        return sorted(order, key=place)  # Stable: what is equal stays in the order of the hash.

    def routed(self, prompt: Prompt, replica: str) -> None:
        self._table.add(prompt, replica)
        self._outstanding[replica] = self._outstanding.get(replica, 0) + 1

    def ended(self, replica: str) -> None:
        count = self._outstanding.get(replica, 0) - 1
        if count > 0:
            self._outstanding[replica] = count
        else:
            self._outstanding.pop(replica, None)

    def keep(self, replicas: Iterable[str]) -> None:
        """Those that there are; what others were counted for is over."""
        there = set(replicas)
        self._outstanding = {k: v for k, v in self._outstanding.items() if k in there}


def _by_hash(key: bytes, replicas: Iterable[str]) -> list[str]:
    """Each key has an order of its own, which stays as it is when others come and go."""

    def weight(replica: str) -> bytes:
        return hashlib.blake2b(replica.encode(), key=key[:64], digest_size=8).digest()

    return sorted(replicas, key=weight)
