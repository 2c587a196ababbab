"""The rules of repeating, step by step, with a clock that the test moves."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from mqlite.client import discipline
from mqlite.client.call import Answer, Call, Lost, Unreached
from mqlite.client.discipline import Attempt, Patience, Pause, closed, exchange
from mqlite.client.operations import Operations
from mqlite.clock import ManualClock
from mqlite.errors import Closed, MqliteError, OutcomeUnknown, Unavailable

OK = Answer(200, {}, b'{"ok":true}')
LOST = Lost("cut off")
UNREACHED = Unreached("refused")
PATIENCE = Patience(answer_ms=30_000, repeat_ms=10_000, connect_ms=5_000)


class Exchange:
    """One call's exchange. It stands at the step that is to be done next."""

    def __init__(self, make: Callable[[Operations], Call[Any]], **patience: int) -> None:
        self.clock = ManualClock()
        call = make(Operations(self.clock))
        self._steps = exchange(call, PATIENCE._replace(**patience), self.clock, "http://h")
        self.step = next(self._steps)

    @property
    def attempt(self) -> Attempt:
        assert isinstance(self.step, Attempt)
        return self.step

    def go(self, came_of_it: object) -> None:
        self.step = self._steps.send(came_of_it)

    def again(self, outcome: object) -> float:
        """The outcome calls for another attempt; answers the pause before it."""
        self.go(outcome)
        assert isinstance(self.step, Pause)
        seconds = self.step.seconds
        self.clock.advance(int(seconds * 1000))
        self.go(None)
        return seconds

    def ends(self, outcome: object) -> Any:
        with pytest.raises(StopIteration) as end:
            self.go(outcome)
        return end.value.value


def complete(ops: Operations) -> Call[Any]:
    return ops.settle("Complete", "q", 1, "t")


def send(ops: Operations) -> Call[Any]:
    return ops.send("q", [], None, None)


def stats(ops: Operations) -> Call[Any]:
    return ops.stats("q")


def poll(ops: Operations) -> Call[Any]:
    return ops.receive("q", 1, "20s", "peek_lock", "")


CALLS = pytest.mark.parametrize("call", [complete, send, stats, poll])


@CALLS
def test_what_did_not_reach_the_broker_is_tried_a_few_times(call: Any) -> None:
    tried = Exchange(call)
    for _ in range(discipline.CONNECT_ATTEMPTS - 1):
        tried.again(UNREACHED)
    with pytest.raises(Unavailable, match="http://h: refused") as caught:
        tried.go(UNREACHED)
    assert caught.value.reason == "unreachable"


@CALLS
def test_connecting_ends_with_its_time(call: Any) -> None:
    tried = Exchange(call)
    tried.clock.advance(5_000)
    with pytest.raises(Unavailable):
        tried.go(UNREACHED)


def test_a_connection_that_is_made_late_is_as_good() -> None:
    tried = Exchange(complete)
    tried.again(UNREACHED)
    assert tried.ends(OK) is None


@pytest.mark.parametrize(
    ("call", "error"), [(complete, OutcomeUnknown), (poll, OutcomeUnknown), (stats, Unavailable)]
)
def test_repeats_are_bounded_in_number(call: Any, error: type[MqliteError]) -> None:
    tried = Exchange(call)
    for _ in range(discipline.ATTEMPTS - 1):
        tried.again(LOST)
    with pytest.raises(error, match="cut off"):
        tried.go(LOST)


@pytest.mark.parametrize(
    ("call", "error"), [(complete, OutcomeUnknown), (poll, OutcomeUnknown), (stats, Unavailable)]
)
def test_repeats_are_bounded_in_time(call: Any, error: type[MqliteError]) -> None:
    tried = Exchange(call)
    tried.clock.advance(60_000)  # however long the first answer took
    tried.again(LOST)
    tried.clock.advance(10_000)
    with pytest.raises(error):
        tried.go(LOST)


@CALLS
def test_an_unreachable_broker_leaves_what_was_lost_before_unknown(call: Any) -> None:
    if call is send:
        return
    tried = Exchange(call)
    tried.again(LOST)
    tried.again(UNREACHED)
    tried.clock.advance(10_000)
    with pytest.raises(Unavailable if call is stats else OutcomeUnknown, match="cut off"):
        tried.go(UNREACHED)


def test_a_send_is_not_repeated_once_it_may_have_arrived() -> None:
    tried = Exchange(send)
    tried.again(UNREACHED)
    with pytest.raises(OutcomeUnknown):
        tried.go(LOST)


def test_pauses_grow_and_spread(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(discipline, "FIRST_PAUSE", 0.1)
    spread = set()
    for _ in range(20):
        tried = Exchange(complete)
        pauses = [tried.again(LOST) for _ in range(discipline.ATTEMPTS - 1)]
        for number, pause in enumerate(pauses):
            whole = min(0.1 * 2**number, discipline.LONGEST_PAUSE)
            assert whole / 2 <= pause <= whole
        spread.add(tuple(pauses))
    assert len(spread) > 1


def test_a_repeated_long_poll_waits_for_what_is_left() -> None:
    tried = Exchange(poll)
    assert json.loads(tried.attempt.body)["wait_time_ms"] == 20_000
    tried.clock.advance(15_000)
    pause = tried.again(LOST)
    left = json.loads(tried.attempt.body)["wait_time_ms"]
    assert left == 5_000 - int(pause * 1000)
    tried.clock.advance(9_000)
    tried.again(LOST)
    assert "wait_time_ms" not in json.loads(tried.attempt.body)


@pytest.mark.parametrize(
    ("call", "seconds"),
    [
        (complete, 30),
        (poll, 50),
        (lambda ops: ops.redrive("q", "", 0, 0, 0), 50),
        (lambda ops: ops.purge("q", 0, 0), 50),
    ],
    ids=["complete", "poll", "redrive", "purge"],
)
def test_the_time_for_an_answer_covers_what_the_broker_may_take(call: Any, seconds: int) -> None:
    assert Exchange(call).attempt.timeout == seconds


def test_only_a_long_poll_is_marked_as_one() -> None:
    assert Exchange(poll).attempt.polls
    assert not Exchange(complete).attempt.polls
    assert not Exchange(lambda ops: ops.receive("q", 1, 0, "peek_lock", "")).attempt.polls


def test_closing_ends_the_repeats_and_says_what_is_known() -> None:
    tried = Exchange(complete)
    tried.go(UNREACHED)
    with pytest.raises(Closed):
        tried.go(closed())
    tried = Exchange(complete)
    tried.go(LOST)
    with pytest.raises(OutcomeUnknown):
        tried.go(closed())


def test_an_answer_is_never_asked_for_again() -> None:
    tried = Exchange(stats)
    busy = Answer(503, {}, b'{"code":"unavailable","message":"busy"}')
    with pytest.raises(Unavailable, match="busy"):
        tried.go(busy)


def test_a_lost_lease_found_by_a_repeat_is_the_answer() -> None:
    tried = Exchange(complete)
    tried.again(LOST)
    with pytest.raises(MqliteError, match="gone") as caught:
        tried.go(Answer(409, {}, b'{"code":"lock_lost","message":"gone"}'))
    assert caught.value.code == "lock_lost"
