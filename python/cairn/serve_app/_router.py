"""Ray's request router by what each replica has read. One for each handle; they do not talk to each
other. Thread rule: the handle's event loop."""

from __future__ import annotations

from typing import Any

from ray.serve.request_router import RequestRouter  # pyright: ignore[reportMissingImports]

from cairn.serve_app._choice import Chooser, paces
from cairn.serve_app._prompt import Prompt


class PrefixRouter(RequestRouter):  # type: ignore[misc]
    """Sends a request where its answer begins soonest: `(prompt not read yet) x pace + queue`.

    What it is to route has, as the first argument of the call, a `prompt` and an `owner`.
    """

    def initialize_state(self, **_: Any) -> None:
        self._chooser = Chooser()

    async def choose_replicas(
        self, candidate_replicas: list[Any], pending_request: Any = None
    ) -> list[list[Any]]:
        by_name = {replica.replica_id.unique_id: replica for replica in candidate_replicas}
        self._chooser.keep(by_name)
        asked = pending_request.args[0] if pending_request and pending_request.args else None
        if asked and len(asked.avoid) < len(by_name):
            by_name = {name: by_name[name] for name in by_name if name not in asked.avoid}
        prompt = asked.prompt if asked else Prompt((), (), b"")
        told = {name: replica.routing_stats for name, replica in by_name.items()}
        ranked = self._chooser.ranked(prompt, paces(told), asked.owner if asked else None)
        return [[by_name[name]] for name in ranked]

    def on_request_routed(self, pending_request: Any, replica_id: Any, result: Any) -> None:
        asked = pending_request.args[0] if pending_request.args else None
        if asked:
            self._chooser.routed(asked.prompt, replica_id.unique_id)

    def on_request_completed(self, replica_id: Any, internal_request_id: str) -> None:
        self._chooser.ended(replica_id.unique_id)
