"""The queue does what a naive model of the specification does, call for call.

`MQLITE_MODEL_SEEDS="7 8"` replaces the seeds, `MQLITE_MODEL_RUNS` and `MQLITE_MODEL_STEPS` the
length.
"""

from __future__ import annotations

import os
import random
import traceback

import pytest
from hypothesis import HealthCheck, Phase, seed, settings
from hypothesis.stateful import run_state_machine_as_test

from .machine import QueueMachine
from .shrinking import failure, script, shrunk

SEEDS = os.environ.get("MQLITE_MODEL_SEEDS", "1 2 3 random").split()
RUNS = int(os.environ.get("MQLITE_MODEL_RUNS", "10"))
STEPS = int(os.environ.get("MQLITE_MODEL_STEPS", "150"))
SETTINGS = settings(
    max_examples=2,
    stateful_step_count=STEPS,
    deadline=None,
    database=None,
    report_multiple_bugs=False,
    phases=(Phase.generate,),
    suppress_health_check=list(HealthCheck),
)


@pytest.mark.usefixtures("small_chunks")
@pytest.mark.parametrize("start", SEEDS)
def test_the_queue_behaves_as_the_model(start: str) -> None:
    number = random.SystemRandom().randrange(2**32) if start == "random" else int(start)
    print(f"to repeat this run: MQLITE_MODEL_SEEDS={number}")
    for run in range(RUNS):
        _run(number * 10_000 + run)


def _run(number: int) -> None:
    """One long run. Hypothesis would make most of many runs by varying the one before; what
    finds bugs here is variety. The first of its two is the trivial one."""

    @seed(number)
    class Seeded(QueueMachine):
        pass

    try:
        run_state_machine_as_test(Seeded, settings=SETTINGS)
    except Exception as error:
        steps = shrunk(QueueMachine.last.steps, type(error))
        reason = traceback.format_exception(failure(steps) or error, limit=-3, chain=False)
        raise AssertionError(f"{''.join(reason)}\nafter\n{script(steps)}") from None
