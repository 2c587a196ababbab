"""What calling a tool does: check the arguments, ask the broker, answer what it says."""

from __future__ import annotations

import base64
import re
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final, NamedTuple

import msgspec
from mcp.server.mcpserver.exceptions import ToolError

from mqlite.errors import InvalidArgument
from mqlite.mcp.arguments import Argument, check
from mqlite.mcp.broker import MAX_SHOWN, Broker, tool_error

Given = Mapping[str, Any]
Request = dict[str, Any]

_LIST_QUEUES: Final = "AdminService/ListQueues"
_CREATED: Final = "{}\n"
_KEY_ID: Final = re.compile(r"[0-9a-f]{32}")


class Effect(NamedTuple):
    """What a tool does to the broker, as far as a host wants to know before it allows a call.
    `destroys`: no other tool brings back what is gone. `repeats`: the same call again changes
    nothing more."""

    reads: bool = False
    destroys: bool = False
    repeats: bool = False


async def forward(broker: Broker, tool: Tool, request: Request) -> str:
    return await broker.post(tool.route, request, reads=tool.effect.reads)


class Tool(NamedTuple):
    """`request` makes the request's body of checked arguments and may raise InvalidArgument;
    `run` asks the broker, for most tools once."""

    name: str
    route: str
    about: str
    arguments: tuple[Argument, ...] = ()
    effect: Effect = Effect()
    request: Callable[[Given], Request] = dict
    run: Callable[[Broker, Tool, Request], Awaitable[str]] = forward


async def call(broker: Broker, tool: Tool, given: Given) -> str:
    """The broker's answer as it stands. Raises ToolError."""
    try:
        check(tool.arguments, given)
        request = tool.request(given)
    except InvalidArgument as problem:
        raise tool_error(problem.code, str(problem)) from None
    return await tool.run(broker, tool, request)


class _Listed(msgspec.Struct):
    name: str
    kind: str


class _Listing(msgspec.Struct):
    queues: list[_Listed] | None


async def create_missing(broker: Broker, tool: Tool, request: Request) -> str:
    """CreateQueue, unless the queue is there: it would set everything that this tool cannot
    name back to its default. Any other use of the name is for the broker to refuse."""
    listed = await broker.post(_LIST_QUEUES, {}, reads=True)
    try:
        queues = msgspec.json.decode(listed, type=_Listing).queues or []
    except msgspec.ValidationError:
        raise tool_error(
            "internal", f"ListQueues answered no list of queues: {listed[:MAX_SHOWN]}"
        ) from None
    if any(queue.name == request["name"] and queue.kind == "queue" for queue in queues):
        return _CREATED
    return await forward(broker, tool, request)


async def create_named_key(broker: Broker, tool: Tool, request: Request) -> str:
    """CreateKey. A failure tells the id: by it the key can be found and revoked, if it was
    made after all."""
    try:
        return await forward(broker, tool, request)
    except ToolError as failure:
        if not _KEY_ID.fullmatch(request["id"]):
            raise
        raise ToolError(f"{failure}; key id {request['id']}") from None


def one_message(given: Given) -> Request:
    message = {name: given[name] for name in ("message_id", "group_id") if name in given}
    message["body"] = base64.b64encode(given["body"].encode()).decode()
    return {"queue": given["queue"], "messages": [message]}


def with_reason(given: Given) -> Request:
    request = dict(given)
    if "reason" in request:
        request["dead_letter_reason"] = request.pop("reason")
    return request


def bounded(given: Given) -> Request:
    """To the broker, no `max` and a `max` of 0 are everything; before it is deleted for good
    that has to be said."""
    everything, most = given.get("all", False), given.get("max")
    if everything and most is not None:
        raise InvalidArgument("max and all exclude each other; give one of them")
    if not everything and (most is None or most < 1):
        raise InvalidArgument(
            "max must be 1 or more; to delete every dead letter of the queue, give all: true"
        )
    return {name: value for name, value in given.items() if name != "all"}
