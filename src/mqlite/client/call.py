"""One request as data: what is sent, how its answer is read, whether it may be repeated.

Nothing here does I/O. `operations` describes calls, `discipline` says what happens to one,
and a transport, sync or async, carries its attempts.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from enum import Enum, auto
from functools import cache
from typing import Any, Final, Generic, NamedTuple, Protocol, TypeVar

import msgspec

from mqlite import arguments, wire
from mqlite.errors import MessageTooLarge, MqliteError

T = TypeVar("T")
A = TypeVar("A", bound=msgspec.Struct)


class Safety(Enum):
    """What a second delivery of the same request would do."""

    READ = auto()
    """Nothing: it changes nothing."""
    REPEATABLE = auto()
    """Nothing beyond the first: receipts, attempt ids and generations see to that, or it
    says what shall be so."""
    ONCE = auto()
    """It might be done twice."""


class Headers(Protocol):
    """The headers of an answer, whatever the case of a name."""

    def get(self, name: str, default: str, /) -> str: ...


class Answer(NamedTuple):
    """A whole HTTP answer."""

    status: int
    headers: Headers
    body: bytes


def received(status: int, headers: Headers, body: bytes) -> Answer | Lost:
    """What was read until its end. An end that only the connection's is might be a cut, within
    the headers even; brokers always say how long an answer is."""
    if headers.get("Content-Length", "") or headers.get("Transfer-Encoding", ""):
        return Answer(status, headers, body)
    return Lost("the answer was cut off, or does not say where it ends")


class Lost(NamedTuple):
    """The request was handed over and no answer came: it may or may not have been done."""

    reason: str


class Unreached(NamedTuple):
    """The request cannot have reached the broker whole: it was not done."""

    reason: str


Outcome = Answer | Lost | Unreached


class Arrival(NamedTuple):
    """What else there is to know about an answer: when its request was sent, in milliseconds
    of `Clock.elapsed`, and its `Date`."""

    sent: int
    date: str


class Call(NamedTuple, Generic[T]):
    """One request of the contract.

    `finish` makes the result of the decoded answer. A call with a `wait_ms` is a long poll,
    which closing the client breaks off; the broker may work on one for `work_ms`. Where a
    repeat is refused with one of `done_if`, the first attempt has done it.
    """

    path: str
    request: wire.Request
    decoder: msgspec.json.Decoder[Any]
    finish: Callable[[Any, Arrival], T]
    safety: Safety
    wait_ms: int = 0
    work_ms: int = 0
    done_if: tuple[type[MqliteError], ...] = ()

    @property
    def method(self) -> str:
        return self.path.rpartition("/")[2]


def call_to(
    operation: str,
    request: wire.Request,
    kind: type[A],
    finish: Callable[[A, Arrival], T],
    safety: Safety,
    *,
    wait_ms: int = 0,
    work_ms: int = 0,
    done_if: tuple[type[MqliteError], ...] = (),
) -> Call[T]:
    """A call of `Service/Method`, which answers a `kind`."""
    path = f"/mqlite.v1.{operation}"
    return Call(path, request, _decoder(kind), finish, safety, wait_ms, work_ms, done_if)


@cache
def _decoder(kind: type[Any]) -> msgspec.json.Decoder[Any]:
    return msgspec.json.Decoder(kind)


Steps = Generator[Call[Any], Any, T]
"""An operation of several calls: it yields each and receives its result."""

_encoder: Final = msgspec.json.Encoder()


def encoded(call: Call[Any], waited_ms: int) -> bytes:
    """The request's body; a repeated long poll waits for what is left of its time.

    Raises InvalidArgument for text that is no Unicode, MessageTooLarge.
    """
    request = call.request
    if call.wait_ms and waited_ms:
        left = max(call.wait_ms - waited_ms, 0) or None
        request = msgspec.structs.replace(request, wait_time_ms=left)
    try:
        body = _encoder.encode(request)
    except UnicodeEncodeError:
        for field, value in msgspec.structs.asdict(request).items():
            if isinstance(value, str):
                arguments.text(value, field)
        raise
    if len(body) > wire.MAX_REQUEST_BYTES:
        raise MessageTooLarge(f"the request is over {wire.MAX_REQUEST_BYTES} bytes")
    return body
