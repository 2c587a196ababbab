"""One request as its handler sees it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from mqlite.broker.asgi import BODY, Event, Receive, Scope, header
from mqlite.broker.budget import Budget, Share
from mqlite.broker.requestlog import Notes
from mqlite.errors import Canceled, MessageTooLarge

if TYPE_CHECKING:
    from mqlite.broker.app import Broker


class Call(msgspec.Struct):
    """What a handler may use, and what it tells the request log.

    `quiet` marks an answer that is no news; `held` is the part of the byte budget the
    request has taken.
    """

    broker: Broker
    scope: Scope
    receive: Receive
    notes: Notes = ()
    quiet: bool = False
    held: int = 0

    async def body(self, budget: Budget, share: Share, limit: int) -> bytes | bytearray:
        """The whole request body, counted against the budget while it arrives.

        Raises MessageTooLarge above `limit` bytes, Unavailable when the budget is full,
        Canceled when the client went away.
        """
        whole = self.scope.get(BODY)
        body = whole() if whole is not None else None
        if body is not None:
            return _within(self._counted(body, budget, share), limit)
        event = await self.receive()
        body = self._admitted(event, budget, share)
        if not event.get("more_body"):
            return _within(body, limit)
        declared = header(self.scope, b"content-length")
        if declared is not None and declared.isdigit() and int(declared) > limit:
            raise _too_large(limit)
        gathered = bytearray(body)
        while event.get("more_body"):
            event = await self.receive()
            gathered += self._admitted(event, budget, share)
            _within(gathered, limit)
        return gathered

    def _admitted(self, event: Event, budget: Budget, share: Share) -> bytes:
        """The event's part of the body, counted."""
        if event["type"] == "http.disconnect":
            raise Canceled("the client went away")
        return self._counted(event.get("body", b""), budget, share)

    def _counted(self, chunk: bytes, budget: Budget, share: Share) -> bytes:
        budget.hold(len(chunk), share)
        self.held += len(chunk)
        return chunk


def _within(body: bytes | bytearray, limit: int) -> bytes | bytearray:
    if len(body) > limit:
        raise _too_large(limit)
    return body


def _too_large(limit: int) -> MessageTooLarge:
    return MessageTooLarge(f"the request is larger than {limit} bytes")
