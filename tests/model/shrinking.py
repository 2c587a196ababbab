"""A failed run of hundreds of steps, cut down to those that matter.

Hypothesis shrinks values first and well; what helps here is to leave out whole steps.
"""

from __future__ import annotations

from contextlib import suppress
from time import monotonic
from typing import Any

from .machine import QueueMachine

Step = tuple[str, dict[str, Any]]


def failure(steps: list[Step]) -> Exception | None:
    """What is wrong after these steps, if anything is."""
    machine = QueueMachine()
    try:
        for action, arguments in steps:
            machine.act(action, arguments)
            machine.same()
    except Exception as error:
        return error
    finally:
        with suppress(Exception):
            machine.teardown()
    return None


def shrunk(steps: list[Step], kind: type[Exception], seconds: float = 60) -> list[Step]:
    """The steps without any that a failure of this kind does not need; the first one opens
    the queue."""
    until = monotonic() + seconds
    size = len(steps) // 2
    while size and monotonic() < until:
        at = 1
        while at < len(steps) and monotonic() < until:
            fewer = steps[:at] + steps[at + size :]
            if len(fewer) > 1 and isinstance(failure(fewer), kind):
                steps = fewer
            else:
                at += size
        size //= 2
    return steps


def script(steps: list[Step]) -> str:
    return "\n".join(
        f"    {action}({', '.join(f'{name}={value!r}' for name, value in arguments.items())})"
        for action, arguments in steps
    )
