"""Drives a plan: its operations one by one, and its pauses."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable
from typing import Any, Generic, TypeVar

from mqlite.clock import Clock
from mqlite.engine.steps import Operation, Pause, Plan
from mqlite.errors import Canceled

T = TypeVar("T")
E = TypeVar("E", threading.Event, asyncio.Event)


class Stop(Generic[E]):
    """A wish that a plan ends early. The event only pokes: a clock sets it too."""

    def __init__(self, event: E) -> None:
        self.requested = False
        self.event: E = event

    def request(self) -> None:
        """With an asyncio event, on its loop's thread."""
        self.requested = True
        self.event.set()


def drive(
    plan: Plan[T], run: Callable[[Operation[Any]], Any], clock: Clock, stop: Stop[threading.Event]
) -> T:
    """The plan's result. An operation's error is raised inside the plan. Once `stop` is
    requested nothing starts any more: `Canceled` is raised inside the plan, which may
    answer with what it has done; otherwise it is raised here."""
    course = _Course(plan)
    while (step := course.next(stop)) is not None:
        if isinstance(step, Pause):
            end = clock.elapsed() + step.ms
            while (left := _left(clock, end, stop)) > 0:
                clock.wait(clock.now() + left, stop.event)
            continue
        try:
            course.answer = run(step)
        except BaseException as error:
            course.error = error
    return course.result


async def drive_async(
    plan: Plan[T],
    run: Callable[[Operation[Any]], Awaitable[Any]],
    clock: Clock,
    stop: Stop[asyncio.Event],
) -> T:
    """`drive` for a task."""
    course = _Course(plan)
    while (step := course.next(stop)) is not None:
        if isinstance(step, Pause):
            end = clock.elapsed() + step.ms
            while (left := _left(clock, end, stop)) > 0:
                await clock.wait_async(clock.now() + left, stop.event)
            continue
        try:
            course.answer = await run(step)
        except BaseException as error:
            course.error = error
    return course.result


class _Course(Generic[T]):
    """How far a plan has come."""

    result: T

    def __init__(self, plan: Plan[T]) -> None:
        self.answer: Any = None
        self.error: BaseException | None = None
        self._plan = plan

    def next(self, stop: Stop[Any]) -> Operation[Any] | Pause | None:
        """The next step to take; None at the end, with `result` set."""
        try:
            while True:
                step = self._advance()
                if not stop.requested:
                    return step
                self.error = Canceled("stopped before it was done")
        except StopIteration as end:
            self.result = end.value
            return None

    def _advance(self) -> Operation[Any] | Pause:
        answer, self.answer = self.answer, None
        error, self.error = self.error, None
        return self._plan.send(answer) if error is None else self._plan.throw(error)


def _left(clock: Clock, end: int, stop: Stop[Any]) -> int:
    stop.event.clear()
    return 0 if stop.requested else end - clock.elapsed()
