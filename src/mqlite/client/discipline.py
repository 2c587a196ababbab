"""What happens to a call that fails: the rules of repeating, written once, without I/O.

- Sent again is only what provably did not reach the broker, and what may be repeated
  (`Safety`), each a bounded number of times within a bounded time.
- An answer is an answer: also one that says nothing was done is handed to the caller, who
  knows whether waiting makes sense.
- Where an answer was lost and cannot be asked for again, the error says so (OutcomeUnknown).
"""

from __future__ import annotations

import random
from collections.abc import Generator
from typing import Any, Final, NamedTuple, TypeVar

import msgspec

from mqlite.client.call import Answer, Arrival, Call, Lost, Outcome, Safety, Unreached, encoded
from mqlite.client.failures import failure, from_a_gateway, not_a_broker
from mqlite.clock import Clock
from mqlite.errors import Closed, MqliteError, OutcomeUnknown, Unavailable

T = TypeVar("T")

CONNECT_ATTEMPTS: Final = 3
ATTEMPTS: Final = 10
FIRST_PAUSE: Final = 0.1
LONGEST_PAUSE: Final = 2.0


class Patience(NamedTuple):
    """How long to wait for an answer beyond what the broker was asked to wait, for how long to
    begin new attempts once one was lost, and for how long to try to connect."""

    answer_ms: int
    repeat_ms: int
    connect_ms: int


class Attempt(NamedTuple):
    """Send this and answer the `Outcome`. `timeout` is in seconds; `polls` marks what closing
    breaks off."""

    path: str
    body: bytes
    timeout: float
    polls: bool


class Pause(NamedTuple):
    """Sleep, and answer None; sooner, with Closed, when the client is closed."""

    seconds: float


Exchange = Generator[Attempt | Pause, Any, T]
"""Yields what is to be done, receives what came of it, and returns the call's result."""


def exchange(call: Call[T], patience: Patience, clock: Clock, base_url: str) -> Exchange[T]:
    """Drive one call. Raises what the broker answered, Unavailable where nothing was done or
    a read got no answer, OutcomeUnknown, Closed."""
    began = clock.elapsed()
    give_up = began + patience.connect_ms
    lost: Lost | None = None
    failures = 0
    while True:
        sent = clock.elapsed()
        body = encoded(call, sent - began)
        timeout = (call.wait_ms + call.work_ms + patience.answer_ms) / 1000
        outcome: Outcome = yield Attempt(call.path, body, timeout, call.wait_ms > 0)
        if isinstance(outcome, Answer) and not from_a_gateway(outcome):
            return _result(call, outcome, sent, repeated=lost is not None)
        if isinstance(outcome, Answer):
            outcome = Lost(f"a gateway answered HTTP status {outcome.status}")
        if isinstance(outcome, Lost):
            if lost is None:
                give_up, failures = clock.elapsed() + patience.repeat_ms, 0
            lost = outcome
        failures += 1
        if not _goes_on(call, lost, failures, give_up - clock.elapsed()):
            raise _given_up(call, lost, outcome, base_url)
        if (closed := (yield Pause(_pause(failures)))) is not None:
            raise _given_up(call, lost, outcome, base_url) if lost else closed


def _goes_on(call: Call[Any], lost: Lost | None, failures: int, left_ms: int) -> bool:
    if left_ms <= 0:
        return False
    if lost is None:
        return failures < CONNECT_ATTEMPTS
    return call.safety is not Safety.ONCE and failures < ATTEMPTS


def _pause(failures: int) -> float:
    """Doubling, and spread, so that clients of a broker that restarts do not come at once."""
    pause = min(FIRST_PAUSE * 2.0 ** (failures - 1), LONGEST_PAUSE)
    return pause * (0.5 + random.random() / 2)


def _result(call: Call[T], answer: Answer, sent: int, *, repeated: bool) -> T:
    if answer.status != 200:
        problem = failure(call.method, answer)
        if not (repeated and isinstance(problem, call.done_if)):
            raise problem
        answer = Answer(200, answer.headers, b"{}")
    try:
        decoded = call.decoder.decode(answer.body)
    except (msgspec.DecodeError, RecursionError):
        raise not_a_broker(answer.status) from None
    return call.finish(decoded, Arrival(sent, answer.headers.get("Date", "")))


def _given_up(
    call: Call[Any], lost: Lost | None, last: Lost | Unreached, base_url: str
) -> MqliteError:
    if lost is None:
        return unreachable(base_url, last.reason)
    if call.safety is Safety.READ:
        return unreachable(base_url, lost.reason)
    return OutcomeUnknown(
        f"no answer to {call.method} from the broker at {base_url}: {lost.reason};"
        " it may or may not have been done"
    )


def unreachable(base_url: str, reason: str) -> MqliteError:
    return Unavailable(f"cannot reach the broker at {base_url}: {reason}", reason="unreachable")


def closed() -> Closed:
    return Closed("this client is closed")
