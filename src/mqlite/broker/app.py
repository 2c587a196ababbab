"""The broker as a plain ASGI 3 callable, to serve on its own or to mount under a prefix.

The order of checks is part of the contract: CORS preflight, authentication, path and
method, admission, size, decoding, and then the engine.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from http import HTTPStatus
from typing import TYPE_CHECKING, Final

import msgspec

from mqlite import wire
from mqlite.broker import discovery
from mqlite.broker.asgi import (
    JSON,
    RESPOND,
    TEXT,
    Header,
    Receive,
    Respond,
    Scope,
    Send,
    local_path,
    peer,
)
from mqlite.broker.auth import Authenticator, Refused, Tokens
from mqlite.broker.budget import Budget
from mqlite.broker.call import Call
from mqlite.broker.cors import Cors
from mqlite.broker.limits import Limits
from mqlite.broker.managed import ManagedKeys
from mqlite.broker.monitoring import METRICS_PATH, METRICS_TYPE, OK, Monitoring
from mqlite.broker.polls import Polls
from mqlite.broker.requestlog import Notes, RequestLog
from mqlite.broker.rights import denial
from mqlite.broker.routes import ROUTES, Route
from mqlite.errors import (
    Closed,
    MqliteError,
    NotFound,
    PermissionDenied,
    Unavailable,
    Unsupported,
)

if TYPE_CHECKING:
    from mqlite.embedded.core import Core

LOGGER: Final = logging.getLogger("mqlite.broker")
_LARGE_ANSWER: Final = 256 * 1024
_NOT_ALLOWED: Final = (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN)


class Answer(msgspec.Struct, frozen=True, gc=False):
    status: int
    body: bytes
    kind: Header = JSON
    more: tuple[Header, ...] = ()


INTERNAL: Final = Answer(500, wire.encode(wire.ErrorBody("internal", "internal server error")))


class Broker:
    """Answers the mqlite.v1 contract from one queue. Serves one event loop.

    `cors` is the allowed origin, None for none.
    """

    def __init__(
        self,
        core: Core,
        tokens: Tokens,
        *,
        monitor_tokens: Sequence[str] = (),
        cors: str | None = None,
        limits: Limits | None = None,
        metrics: bool = False,
    ) -> None:
        """Raises InvalidArgument for unusable tokens or origin, and for metrics without
        authentication."""
        self.core = core
        self.auth = Authenticator(tokens, monitor_tokens)
        self.keys = ManagedKeys(core)
        self.cors = Cors(cors)
        self.limits = limits or Limits()
        self.budget = Budget(self.limits)
        self.polls = Polls(self.budget, self.limits.polls)
        self.monitoring = Monitoring(core, ROUTES, auth=self.auth.on, metrics=metrics)
        self.log = RequestLog()
        self._draining = False
        self._started = time.monotonic()

    @property
    def uptime_ms(self) -> int:
        return int((time.monotonic() - self._started) * 1000)

    @property
    def closed(self) -> bool:
        """Whether the queue below takes no more work."""
        return self.core.closing

    @property
    def stopping(self) -> bool:
        """Whether new operations are refused."""
        return self._draining or self.core.closing

    def drain(self) -> None:
        """Refuse new operations and end the long polls. Called on the broker's loop."""
        self._draining = True
        self.polls.end_all()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            await self._http(scope, receive, send)
        elif scope["type"] == "lifespan":
            await _lifespan(receive, send)
        else:
            await send({"type": "websocket.close"})

    async def _http(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["method"] == "OPTIONS" and self.cors.on:
            await self.cors.preflight(send)
            return
        started = time.perf_counter()
        path = local_path(scope)
        call = Call(self, scope, receive)
        try:
            rights = self.auth.identify(path, scope["headers"])
            if isinstance(rights, bytes):
                rights, call.key_id = await self.keys.look_up(rights)
            call.rights = rights
            call.admitted = time.perf_counter()
            route = ROUTES.get(path)
            answer = await self._operation(route, call) if route else await self._open(path, call)
        except Exception as problem:
            if not call.admitted:
                self.monitoring.turned_away(problem)
            answer = refusal(problem, call)
        if not self.respond(answer, scope):
            await self.send(answer, send)
        self.record(path, answer, call, started)

    def record(self, path: str, answer: Answer, call: Call, started: float) -> None:
        """A request is answered: log it, and count it."""
        now = time.perf_counter()
        code = OK if answer.status < HTTPStatus.BAD_REQUEST else str(call.notes[-1])
        self.monitoring.answered(
            path, code, now - started, now - call.admitted if call.admitted else None
        )
        self.log.add(path, answer.status, call.notes, now - started, call.quiet)

    async def _open(self, path: str, call: Call) -> Answer:
        """What is no operation."""
        if path == "/":
            prefix = call.scope.get("root_path", "").rstrip("/")
            metrics = METRICS_PATH if self.monitoring.metrics else None
            card = discovery.card(ROUTES, auth=self.auth.on, metrics=metrics, prefix=prefix)
            return Answer(200, card)
        if path == METRICS_PATH and self.monitoring.metrics:
            if "observe" not in call.rights:
                raise PermissionDenied(denial("observe", call.rights))
            return Answer(200, await self.monitoring.exposition(call.rights), METRICS_TYPE)
        if path == discovery.HEALTH_PATH:
            return Answer(200, discovery.HEALTHY, TEXT)
        raise NotFound(f"{wire.NO_SUCH_PATH}: {path}")

    async def _operation(self, route: Route, call: Call) -> Answer:
        if route.right not in call.rights:
            raise PermissionDenied(denial(route.right, call.rights))
        if call.scope["method"] != "POST":
            raise Unsupported("POST is the only method of this path")
        if self.stopping:
            raise Closed("the broker is stopping")
        budget = self.budget
        share = budget.enter(settles=route.settles, reads=route.reads)
        try:
            request = None
            if route.decoder is not None:
                body = await call.body(share, self.limits.request_bytes)
                request = wire.decode(route.decoder, body)
            return Answer(200, wire.encode(await route.handler(call, request)))
        finally:
            budget.leave(call.held)

    def respond(self, answer: Answer, scope: Scope) -> bool:
        """Send a small answer in one write, where our own server is below. False where it
        must go by events."""
        respond: Respond | None = scope.get(RESPOND)
        if respond is None or len(answer.body) > _LARGE_ANSWER:
            return False
        return respond(answer.status, self._headers(answer), answer.body)

    async def send(self, answer: Answer, send: Send) -> None:
        """Send an answer by events."""
        body, headers = answer.body, self._headers(answer)
        if len(body) > _LARGE_ANSWER:
            await self._send_large(answer.status, headers, body, send)
            return
        try:
            await send({"type": "http.response.start", "status": answer.status, "headers": headers})
            await send({"type": "http.response.body", "body": body})
        except OSError:
            LOGGER.debug("the client was gone before its answer")

    def _headers(self, answer: Answer) -> list[Header]:
        """A fresh list each time: a middleware around us may add to it."""
        length = (b"content-length", b"%d" % len(answer.body))
        return [answer.kind, length, *self.cors.headers, *answer.more]

    async def _send_large(
        self, status: int, headers: list[Header], body: bytes, send: Send
    ) -> None:
        """Send an answer that is counted until the client has taken it: the last event waits
        for that. So slow readers hold up each other, and nobody else."""
        self.budget.answers += len(body)
        try:
            await send({"type": "http.response.start", "status": status, "headers": headers})
            await send({"type": "http.response.body", "body": body, "more_body": True})
            await send({"type": "http.response.body", "body": b""})
        except OSError:
            LOGGER.debug("the client was gone before its answer")
        finally:
            self.budget.answers -= len(body)


def refusal(problem: BaseException, call: Call) -> Answer:
    """The error envelope. What nobody foresaw is logged here and told to nobody."""
    if not isinstance(problem, MqliteError) or problem.status == HTTPStatus.INTERNAL_SERVER_ERROR:
        LOGGER.error("unexpected failure of %r", local_path(call.scope), exc_info=problem)
        call.notes += ("code", "internal")
        return INTERNAL
    if problem.status in _NOT_ALLOWED:
        call.notes += _who(problem, call)
    call.notes += ("code", problem.code)
    more: tuple[Header, ...] = ()
    if isinstance(problem, Unavailable) and problem.retry_after is not None:
        more = ((b"retry-after", b"%d" % problem.retry_after),)
    return Answer(problem.status, wire.encode(wire.ErrorBody.of(problem)), JSON, more)


def _who(problem: MqliteError, call: Call) -> Notes:
    """Who asked, as far as it is known."""
    address = peer(call.scope)
    key_id = problem.key_id if isinstance(problem, Refused) else call.key_id
    told: Notes = ("peer", address) if address else ()
    return (*told, "key", key_id) if key_id else told


async def _lifespan(receive: Receive, send: Send) -> None:
    """For servers that insist; nothing here depends on it."""
    while True:
        event = await receive()
        await send({"type": f"{event['type']}.complete"})
        if event["type"] == "lifespan.shutdown":
            return
