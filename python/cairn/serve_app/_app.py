"""The application of Ray Serve: replicas that hold an engine, behind an ingress that speaks
HTTP. Thread rule: Ray's event loops, but for what is said to be of a thread."""

from __future__ import annotations

import asyncio
import logging
import math
import shlex
import threading
import time
from collections import OrderedDict
from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import aiohttp  # pyright: ignore[reportMissingImports]
from ray import serve  # pyright: ignore[reportMissingImports]
from ray.serve.config import (  # pyright: ignore[reportMissingImports]
    AutoscalingConfig,
    AutoscalingPolicy,
    RequestRouterConfig,
)
from starlette.requests import ClientDisconnect, Request  # pyright: ignore[reportMissingImports]
from starlette.responses import (  # pyright: ignore[reportMissingImports]
    JSONResponse,
    Response,
    StreamingResponse,
)

from ._figures import Watch
from ._prompt import Prompt, id_of, makes_owned, prompt_of
from ._server import NumaNode, Server

_log = logging.getLogger("ray.serve")

BODY_BYTES_MAX = 32 << 20
_OWNERS_MAX = 1 << 16
_LOOK_SECONDS = 1.0
_TRIES_MAX = 3  # Of replicas for a request that none has taken.
# What is about a connection, not about a message; and what whoever sends it makes anew.
_HOP_HEADERS = frozenset(
    b"connection keep-alive proxy-authenticate proxy-authorization te trailer transfer-encoding "
    b"upgrade content-length expect".split()
)


@dataclass(frozen=True)
class Asked:
    """A request on its way from the ingress to a replica."""

    method: str
    target: str
    headers: tuple[tuple[str, str], ...]
    body: bytes
    prompt: Prompt
    owner: str | None
    avoid: tuple[str, ...] = ()  # Replicas whose server did not take it.


@dataclass(frozen=True)
class ReplyHead:
    """What comes before the pieces of a reply's body."""

    status: int  # 0: the server did not take the request; nothing follows.
    headers: tuple[tuple[str, str], ...]
    replica: str


class EngineReplica:
    """A server of a model, one for a machine or a NUMA node."""

    def __init__(self, model: str, arguments: Sequence[str], numa: bool) -> None:
        self._name = serve.get_replica_context().replica_id.unique_id
        self._numa = NumaNode() if numa else None
        cpus = self._numa.cpus if self._numa else None
        self._server = Server(model, arguments, cpus, self._name)
        self._session: Any = None
        self._figures: dict[str, float] = {}
        threading.Thread(target=self._look, daemon=True).start()

    def _look(self) -> None:
        """On a thread of its own, since asking waits."""
        watch = Watch()
        while self._server.is_running():
            self._figures = watch.look(self._server.metrics(), time.monotonic())
            time.sleep(_LOOK_SECONDS)

    async def answer(self, asked: Asked) -> AsyncGenerator[ReplyHead | bytes, None]:
        """The head, then the pieces as they come. Who does not want them any more closes this, and
        the server ends the answer."""
        if self._session is None:
            self._session = aiohttp.ClientSession(
                connector=aiohttp.UnixConnector(self._server.path, limit=0, force_close=True),
                timeout=aiohttp.ClientTimeout(total=None),
                auto_decompress=False,
                skip_auto_headers=("Accept", "Accept-Encoding", "User-Agent", "Content-Type"),
            )
        session = self._session
        try:
            sent = await session.request(
                asked.method,
                f"http://localhost{asked.target}",
                headers=asked.headers,
                data=asked.body or None,
                allow_redirects=False,
            )
        except aiohttp.ClientConnectorError:
            yield ReplyHead(0, (), self._name)
            return
        async with sent as reply:
            headers = tuple(
                (name.decode("latin-1"), value.decode("latin-1"))
                for name, value in reply.raw_headers
                if name.lower() not in _HOP_HEADERS
            )
            yield ReplyHead(reply.status, headers, self._name)
            async for piece in reply.content.iter_any():
                yield piece

    async def check_health(self) -> None:
        await asyncio.to_thread(self._server.check)

    async def record_routing_stats(self) -> dict[str, float]:
        return self._figures

    async def record_autoscaling_stats(self) -> dict[str, float]:
        return {"queue_seconds": self._figures.get("queue_seconds", 0.0)}

    def __del__(self) -> None:
        # Where starting has failed there is none.
        if hasattr(self, "_server"):
            self._server.close()
        numa = getattr(self, "_numa", None)
        if numa is not None:
            numa.close()


class Ingress:
    """Reads a request, finds out what it is about, and sends on what the replica says."""

    def __init__(self, replicas: Any) -> None:
        self._replicas = replicas.options(method_name="answer", stream=True)
        self._owners: OrderedDict[str, str] = OrderedDict()

    async def __call__(self, request: Request) -> Response:
        try:
            body = await self._body(request)
        except ClientDisconnect:
            return Response(status_code=499)
        if body is None:
            return _refusal(413, f"body: expected at most {BODY_BYTES_MAX} bytes, found more")
        asked = self._asked(request, body)
        for _ in range(_TRIES_MAX):
            pieces = self._replicas.remote(asked)
            try:
                head = await pieces.__anext__()
            except asyncio.CancelledError:
                pieces.cancel()
                raise
            except Exception as error:  # Ray's, of many kinds: a replica that died, or never was.
                _log.warning("no reply of a replica: %s", type(error).__name__)
                break
            if head.status != 0:
                return self._reply(asked, head, pieces)
            asked = replace(asked, avoid=(*asked.avoid, head.replica))
        return _refusal(503, "the replica that was asked has gone", retry=True)

    def _reply(self, asked: Asked, head: ReplyHead, pieces: Any) -> Response:
        response = StreamingResponse(self._sent(asked, head, pieces), status_code=head.status)
        response.raw_headers = [
            (name.lower().encode("latin-1"), value.encode("latin-1"))
            for name, value in (*head.headers, ("x-cairn-replica", head.replica))
        ]
        return response

    async def _body(self, request: Request) -> bytes | None:
        pieces: list[bytes] = []
        size = 0
        async for piece in request.stream():
            size += len(piece)
            if size > BODY_BYTES_MAX:
                return None
            pieces.append(piece)
        return b"".join(pieces)

    def _asked(self, request: Request, body: bytes) -> Asked:
        path = request.scope["path"].removeprefix(request.scope.get("root_path", "").rstrip("/"))
        raw_path: bytes = request.scope.get("raw_path") or b""
        root = request.scope.get("root_path", "").rstrip("/").encode()
        target = raw_path.removeprefix(root).decode("latin-1") or "/"
        if request.scope["query_string"]:
            target += "?" + request.scope["query_string"].decode("latin-1")
        headers = [
            (name.decode("latin-1"), value.decode("latin-1"))
            for name, value in request.headers.raw
            if name not in _HOP_HEADERS
        ]
        if request.client is not None:
            # Behind those that proxies in front have put there: the server believes the last one.
            headers.append(("x-forwarded-for", request.client.host))
        prompt = prompt_of(path, dict(headers), body if request.method == "POST" else b"")
        owner = self._owners.get(prompt.owned) if prompt.owned is not None else None
        return Asked(request.method, target, tuple(headers), body, prompt, owner)

    async def _sent(
        self, asked: Asked, head: ReplyHead, pieces: Any
    ) -> AsyncGenerator[bytes, None]:
        # Where the beginning tells the name of something that this replica alone has.
        begin = b"" if makes_owned(asked.target.split("?")[0], asked.body) else None
        try:
            async for piece in pieces:
                if begin is not None:
                    begin += piece[:4096]
                    name = id_of(begin)
                    if name is not None:
                        self._own(name, head.replica)
                    if name is not None or len(begin) >= 4096:
                        begin = None
                yield piece
        finally:
            pieces.cancel()  # Of what has ended this is nothing.

    def _own(self, name: str, replica: str) -> None:
        self._owners[name] = replica
        self._owners.move_to_end(name)
        while len(self._owners) > _OWNERS_MAX:
            self._owners.popitem(last=False)


def _refusal(status: int, message: str, retry: bool = False) -> Response:
    kind = "invalid_request_error" if status < 500 else "unavailable_error"
    error = {"message": message, "type": kind, "param": None, "code": None}
    return JSONResponse(
        {"error": error}, status, headers={"retry-after": "1"} if retry else None
    )


class QueueTimePolicy:
    """So many replicas that prompts wait `target_seconds` or less until they are begun."""

    def __init__(self, target_seconds: float) -> None:
        self._target = target_seconds

    def __call__(self, context: Any) -> tuple[int, dict[str, Any]]:
        told = (context.aggregated_metrics or {}).get("queue_seconds", {})
        here = context.current_num_replicas
        waits = [told.get(replica, 0.0) for replica in context.running_replicas]
        wait = sum(waits) / len(waits) if waits else 0.0
        if wait > self._target:
            # What waits is spread over more; at most twice as many at a time.
            return min(math.ceil(here * wait / self._target), 2 * here), {}
        # One less where those that stay would not wait for long, and have not much to do.
        is_idle = wait < self._target / 4 and context.total_num_requests < here - 1
        return (here - 1 if is_idle or not context.total_num_requests else here), {}


@dataclass(frozen=True)
class Options:
    """What `application()` and `build()` take."""

    model: str = ""  # A file, a folder or a name, as `cairn serve` takes it; empty: the built-in.
    arguments: tuple[str, ...] = ()  # Further ones of `cairn serve`.
    replicas: tuple[int, int] = (1, 1)  # Least and most.
    per_machine: int = 1  # 0: no limit.
    numa: bool = False  # A replica has the processors of one NUMA node.
    cpus: float = 1  # That Ray counts for each replica.
    requests: int = 256  # That a replica has at a time.
    ingresses: int = 1
    queue_seconds: float = 2.0  # That prompts may wait before there are more replicas.
    scale_seconds: float = 30.0  # For how long that has to be so.

    @staticmethod
    def read(given: Mapping[str, str]) -> Options:
        """From texts, as `serve run` and configuration files have them.

        Raises:
            ValueError: a name that is none, or a value that cannot be.
        """
        read: dict[str, Any] = {}
        for name, value in given.items():
            text = str(value)
            if name == "model":
                read[name] = text
            elif name == "arguments":
                read[name] = tuple(shlex.split(text))
            elif name == "replicas":
                low, _, high = text.partition("-")
                read[name] = (int(low), int(high or low))
            elif name in ("per_machine", "requests", "ingresses"):
                read[name] = int(text)
            elif name in ("cpus", "queue_seconds", "scale_seconds"):
                read[name] = float(text)
            elif name == "numa" and text.lower() in ("true", "false"):
                read[name] = text.lower() == "true"
            else:
                raise ValueError(f"expected an option of cairn.serve_app, found {name}={text}")
        options = Options(**read)
        least, most = options.replicas
        if not 1 <= least <= most:
            raise ValueError(f"replicas: expected N or LEAST-MOST, found {least}-{most}")
        return options


def build(options: Options) -> Any:
    """The application, for `ray.serve.run()`."""
    least, most = options.replicas
    settings: dict[str, Any] = {"num_replicas": least}
    if most > least:
        policy = AutoscalingPolicy(
            policy_function=QueueTimePolicy,
            policy_kwargs={"target_seconds": options.queue_seconds},
        )
        settings = {
            "autoscaling_config": AutoscalingConfig(
                min_replicas=least,
                max_replicas=most,
                upscale_delay_s=options.scale_seconds,
                downscale_delay_s=10 * options.scale_seconds,
                metrics_interval_s=min(options.scale_seconds / 3, 10),
                look_back_period_s=options.scale_seconds,
                policy=policy,
            )
        }
    if options.per_machine and not options.numa:
        settings["max_replicas_per_node"] = options.per_machine
    replicas = serve.deployment(
        EngineReplica,
        name="cairn-engine",
        ray_actor_options={"num_cpus": options.cpus},
        max_ongoing_requests=options.requests,
        request_router_config=RequestRouterConfig(
            request_router_class="cairn.serve_app._router:PrefixRouter",
            request_routing_stats_period_s=_LOOK_SECONDS,
        ),
        health_check_period_s=5,
        graceful_shutdown_timeout_s=60,
        **settings,
    ).bind(options.model, list(options.arguments), options.numa)
    ingress = serve.deployment(
        Ingress,
        name="cairn",
        ray_actor_options={"num_cpus": 0.1},
        num_replicas=options.ingresses,
        max_ongoing_requests=options.requests * most,
    )
    return ingress.bind(replicas)


def application(given: dict[str, str]) -> Any:
    """The same from texts: `serve run cairn.serve_app:application model=MODEL.gguf`."""
    return build(Options.read(given))
