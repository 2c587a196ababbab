"""Requests to the broker, and its answers as the text that an agent gets."""

from __future__ import annotations

import re
import threading
from contextlib import closing
from typing import Any, Final
from urllib.parse import urlsplit

import anyio
import anyio.to_thread
import msgspec
from mcp.server.mcpserver.exceptions import ToolError

from mqlite.client.call import Answer, Lost, Outcome, Unreached
from mqlite.client.connections import Connections
from mqlite.client.discipline import Attempt
from mqlite.client.failures import from_a_gateway
from mqlite.client.target import Target
from mqlite.errors import InvalidArgument
from mqlite.wire import NO_SUCH_PATH

DEFAULT_ENDPOINT: Final = "http://127.0.0.1:6754"

MAX_SHOWN: Final = 4000
"""So many characters are shown of an answer that is not as it should be."""

_MAX_CALLS: Final = 32
_CODE: Final = re.compile(r"[a-z_]{1,64}")


def tool_error(code: str, text: str) -> ToolError:
    """A failure as the agent is told it: `error:`, the code, what happened."""
    return ToolError(f"error: {code}: {text}")


def endpoint_setting(text: str) -> str:
    """The endpoint that MQLITE_ENDPOINT names. Raises InvalidArgument, without repeating the
    text: somebody may have put a token there."""
    endpoint = text.strip().rstrip("/") or DEFAULT_ENDPOINT
    try:
        scheme = urlsplit(endpoint).scheme
    except ValueError:
        scheme = ""
    if scheme not in ("http", "https"):
        raise InvalidArgument(
            f"MQLITE_ENDPOINT must be an http or https URL, such as {DEFAULT_ENDPOINT}"
        )
    return endpoint


class Broker:
    """Carries requests to one broker, each over a connection of its own: cancelling a request
    closes just that connection, and a broker whose client goes away gives back what a receive
    was about to lock."""

    def __init__(self, target: Target) -> None:
        self.target = target
        # Apart from the threads that carry the protocol: long polls must not hold those up.
        self._limiter = anyio.CapacityLimiter(_MAX_CALLS)

    async def post(self, route: str, request: dict[str, Any], *, reads: bool) -> str:
        """The JSON object that the broker answers to a request for `Service/Method`, as it
        stands. `reads` says that nothing is changed. Raises ToolError. Nothing is sent twice."""
        outcome = await self._exchange(f"/mqlite.v1.{route}", msgspec.json.encode(request))
        if isinstance(outcome, Answer) and 200 <= outcome.status < 300:
            return _object(outcome)
        raise _failure(outcome, self.target.base_url, reads)

    async def _exchange(self, path: str, body: bytes) -> Outcome:
        connections = Connections(self.target)
        timeout = self.target.patience.answer_ms / 1000
        attempt = Attempt(path, body, timeout, polls=True)
        try:
            return await anyio.to_thread.run_sync(
                _carry, connections, attempt, abandon_on_cancel=True, limiter=self._limiter
            )
        except anyio.get_cancelled_exc_class():
            # In a thread: closing waits for an attempt that is still connecting.
            threading.Thread(target=connections.close, daemon=True).start()
            raise


def _carry(connections: Connections, attempt: Attempt) -> Outcome:
    with closing(connections):
        return connections.attempt(attempt)


def _object(answer: Answer) -> str:
    """The text of a JSON object. Raises ToolError for anything else, such as a proxy's page."""
    try:
        text = answer.body.decode()
        msgspec.json.decode(text, type=dict[str, msgspec.Raw])
    except (UnicodeDecodeError, msgspec.DecodeError, RecursionError):
        raise _no_broker(answer) from None
    return text


class _Envelope(msgspec.Struct):
    code: str
    message: str = ""


def _failure(outcome: Outcome, base_url: str, reads: bool) -> ToolError:
    if isinstance(outcome, Answer) and not from_a_gateway(outcome):
        return _refusal(outcome)
    if isinstance(outcome, Answer):
        outcome = Lost(f"a gateway answered {_shown(outcome)}")
    missing = f"no answer from the broker at {base_url}: {outcome.reason[:MAX_SHOWN]}"
    if reads or isinstance(outcome, Unreached):
        return tool_error("unavailable", f"{missing}; nothing was done")
    return tool_error("outcome_unknown", f"{missing}; it may or may not have been done")


def _refusal(answer: Answer) -> ToolError:
    """What the broker says. One that lacks the operation says not_found, which an agent would
    take for a queue."""
    try:
        envelope = msgspec.json.decode(answer.body, type=_Envelope)
    except (msgspec.DecodeError, RecursionError):
        return _no_broker(answer)
    if not _CODE.fullmatch(envelope.code):
        return _no_broker(answer)
    lacks = answer.status == 404 and envelope.message.startswith(NO_SUCH_PATH)
    return tool_error("unsupported" if lacks else envelope.code, _shown(answer))


def _no_broker(answer: Answer) -> ToolError:
    return tool_error(
        "internal",
        "the endpoint answers in a form no mqlite broker uses; is MQLITE_ENDPOINT right?"
        f" {_shown(answer)}",
    )


def _shown(answer: Answer) -> str:
    body = answer.body.decode(errors="replace").strip()
    return f"HTTP status {answer.status} {body[:MAX_SHOWN]}"
