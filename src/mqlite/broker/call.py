"""One request as its handler sees it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from mqlite.broker.asgi import BODY, Event, Receive, Scope, header
from mqlite.broker.budget import Share
from mqlite.broker.requestlog import Notes
from mqlite.broker.rights import Rights
from mqlite.errors import Canceled, MessageTooLarge

if TYPE_CHECKING:
    from mqlite.broker.app import Broker


class Call(msgspec.Struct):
    """What a handler may use, and what it tells the request log.

    `quiet` marks an answer that is no news; `held` is the part of the byte budget the
    request has taken; `rights` is what its credential allows, `key_id` whose token that is,
    if it is an access key's, and `admitted` when that was known (`perf_counter`; 0 until then).
    """

    broker: Broker
    scope: Scope
    receive: Receive
    notes: Notes = ()
    quiet: bool = False
    held: int = 0
    rights: Rights = frozenset()
    key_id: str = ""
    admitted: float = 0.0

    async def body(self, share: Share, limit: int) -> bytes | bytearray:
        """The whole request body, counted against the budget while it arrives.

        Raises MessageTooLarge above `limit` bytes, Unavailable when the budget is full,
        Canceled when the client went away.
        """
        whole = self.scope.get(BODY)
        body = whole() if whole is not None else None
        if body is not None:
            self.hold(len(body), share)
            return _within(body, limit)
        event = await self.receive()
        body = self._admitted(event, share)
        if not event.get("more_body"):
            return _within(body, limit)
        declared = header(self.scope, b"content-length")
        if declared is not None and declared.isdigit() and int(declared) > limit:
            raise _too_large(limit)
        gathered = bytearray(body)
        while event.get("more_body"):
            event = await self.receive()
            gathered += self._admitted(event, share)
            _within(gathered, limit)
        return gathered

    def hold(self, size: int, share: Share) -> None:
        """Count more bytes of the request. Raises Unavailable when the budget is full."""
        self.broker.budget.hold(size, share)
        self.held += size

    def _admitted(self, event: Event, share: Share) -> bytes:
        """The event's part of the body, counted."""
        if event["type"] == "http.disconnect":
            raise Canceled("the client went away")
        chunk: bytes = event.get("body", b"")
        self.hold(len(chunk), share)
        return chunk


def _within(body: bytes | bytearray, limit: int) -> bytes | bytearray:
    if len(body) > limit:
        raise _too_large(limit)
    return body


def _too_large(limit: int) -> MessageTooLarge:
    return MessageTooLarge(f"the request is larger than {limit} bytes")
