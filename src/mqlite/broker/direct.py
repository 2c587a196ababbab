"""Single sends over our own server, without an ASGI call for each.

A send waits for one thing, its number. Told it by a callback, it needs no task, no future and
no chain of coroutines (measured with 64 connections: 12 of a request's 70 us of processor
time). Whatever is out of the ordinary goes by the ASGI call, as if nobody had looked at it
before: so what a request is refused for is said in one place.
"""

from __future__ import annotations

import asyncio
import time
from typing import Final

from mqlite import wire
from mqlite.broker import queue_service
from mqlite.broker.app import INTERNAL, LOGGER, Answer, Broker, refusal
from mqlite.broker.asgi import Receive, Scope
from mqlite.broker.call import Call
from mqlite.broker.routes import ROUTES, Route
from mqlite.embedded.gathering import Single
from mqlite.engine.catalog import Queue

PATH: Final = "/mqlite.v1.QueueService/Send"
_ROUTE: Final[Route] = ROUTES[PATH]


def begin(broker: Broker, scope: Scope, receive: Receive, body: bytearray) -> bool:
    """Begin a request that has arrived as a whole, and whose `Respond` can be used. False
    where nothing has happened, and it needs an ASGI call. Called on the broker's loop."""
    if scope["path"] != PATH or scope["method"] != "POST" or broker.stopping:
        return False
    if len(body) > broker.limits.request_bytes:
        return False
    call = Call(broker, scope, receive)
    sending = DirectSend(call)
    begun = entered = False
    try:
        rights = broker.auth.identify(PATH, scope["headers"])
        if isinstance(rights, bytes) or _ROUTE.right not in rights:
            return False
        share = broker.budget.enter(settles=_ROUTE.settles, reads=_ROUTE.reads)
        entered = True
        call.hold(len(body), share)
        assert _ROUTE.decoder is not None
        begun = _hand_over(call, wire.decode(_ROUTE.decoder, body), sending)
    except Exception:
        LOGGER.debug("left to the ASGI call, which says why", exc_info=True)
    if entered and not begun:
        broker.budget.leave(call.held)
    return begun


def _hand_over(call: Call, request: wire.SendRequest, sending: DirectSend) -> bool:
    core = call.broker.core
    known = core.store.names.known(request.queue or "")
    if request.results or len(request.messages or ()) != 1 or not isinstance(known, Queue):
        return False
    queue, [message], at, ttl_ms = queue_service.outgoing(call, request)
    single = Single(message, None, sending)
    core.gathering.add(asyncio.get_running_loop(), queue, at, ttl_ms, single)
    return True


class DirectSend:
    """A send that was admitted, and waits for its number."""

    __slots__ = ("_answered", "_call", "_started")

    def __init__(self, call: Call) -> None:
        self._started = time.perf_counter()
        self._answered = False
        self._call = call

    def done(self) -> bool:
        return self._answered

    def set_result(self, seq: int, /) -> None:
        self._answer(Answer(200, wire.encode(wire.SendResponse([seq]))))

    def set_exception(self, error: BaseException, /) -> None:
        if isinstance(error, Exception):
            self._answer(refusal(error, self._call))
        else:  # somebody cancels every task of the loop: what came of the send is not known
            self._call.notes += ("code", "internal")
            self._answer(INTERNAL)

    def _leave(self) -> None:
        self._answered = True
        self._call.broker.budget.leave(self._call.held)

    def _answer(self, answer: Answer) -> None:
        call, broker = self._call, self._call.broker
        call.admitted = self._started
        self._leave()
        try:
            broker.respond(answer, call.scope)
            broker.record(PATH, answer, call, self._started)
        except Exception:  # other senders are to be told theirs
            LOGGER.exception("could not answer, or record the answer")
