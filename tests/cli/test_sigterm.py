"""SIGTERM: a command that it ends cleans up, says so, and exits with 143."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator

import pytest

from mqlite.cli.sigterm import Sigterm

pytestmark = pytest.mark.skipif(os.name == "nt", reason="a signal of POSIX")


@pytest.fixture(autouse=True)
def handler() -> Iterator[None]:
    before = signal.signal(signal.SIGTERM, signal.SIG_DFL)
    yield
    signal.signal(signal.SIGTERM, before)


def terminate() -> None:
    signal.raise_signal(signal.SIGTERM)


def run(program: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60
    )


def test_it_interrupts_until_the_block_ends() -> None:
    with Sigterm() as sigterm:
        assert not sigterm.came
        with pytest.raises(KeyboardInterrupt):
            terminate()
        assert sigterm.came
    assert signal.getsignal(signal.SIGTERM) == signal.SIG_DFL


def test_the_second_of_two_does_not_end_the_cleaning_up_and_a_third_does() -> None:
    with Sigterm():
        with pytest.raises(KeyboardInterrupt):
            terminate()
        terminate()
        with pytest.raises(KeyboardInterrupt):
            terminate()


@pytest.mark.parametrize("chosen", [signal.SIG_IGN, lambda number, frame: None])
def test_what_somebody_else_has_chosen_holds(chosen: signal.Handlers) -> None:
    signal.signal(signal.SIGTERM, chosen)
    with Sigterm() as sigterm:
        terminate()
        assert not sigterm.came
    assert signal.getsignal(signal.SIGTERM) == chosen


def test_another_thread_changes_nothing() -> None:
    found: list[object] = []

    def enter() -> None:
        with Sigterm():
            found.append(signal.getsignal(signal.SIGTERM))

    thread = threading.Thread(target=enter)
    thread.start()
    thread.join()
    assert found == [signal.SIG_DFL]


def test_a_forked_child_is_no_command_and_ends_as_it_would_have() -> None:
    program = (
        "import os, signal, sys; from mqlite.cli.sigterm import Sigterm\n"
        "with Sigterm():\n"
        "    child = os.fork()\n"
        "    if not child:\n"
        "        signal.raise_signal(signal.SIGTERM)\n"
        "    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))\n"
    )
    child = run(program)
    assert (child.stdout, child.stderr) == (f"{-signal.SIGTERM}\n", "")


def test_a_command_says_that_it_was_terminated() -> None:
    program = (
        "import signal; from mqlite.cli import main, streams\n"
        "streams.write = lambda text: signal.raise_signal(signal.SIGTERM)\n"
        "raise SystemExit(main(['list']))\n"
    )
    child = run(program)
    assert (child.returncode, child.stderr) == (143, "error: terminated\n")
