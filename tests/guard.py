"""A pytest plugin that fails the run where a secret of a test shows up.

Secrets are

- the tokens that a broker is configured with and those that a client, a command or a process
  is given, of eight characters or more,
- whatever looks like the token of an access key,
- what stands before the host of a URL, or in an option of it that is called a token or a
  password.

They are found as they are, cut short, in percent signs and in base64. Looked at are log records
with their tracebacks and diagnostic fields, errors, answers and metrics, what commands print,
what tools answer, the `repr` of what holds a token, URLs (those asked for on either side,
those of brokers, names that are looked up), the command lines and titles of processes, and what
processes write to standard error. Python processes that the tests start look for themselves,
too. The looking is in `guarding`.

Three places show a new secret, once, because that is what they are for: the answer of
CreateKey (also where an MCP tool hands it on), the output of `key create`, and the notes of
`serve` about a generated token. No test is excepted: a token on a command line is tested with
commands that run in the process of the tests.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

import guarding
from guarding import processes, reports

_late: list[str] = []
"""What was found after the last test of a process."""


def pytest_configure() -> None:
    reports.begin()
    guarding.start()
    processes.guard_children()


def pytest_unconfigure() -> None:
    reports.end()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown() -> Iterator[None]:
    yield
    processes.look_at_title("self")
    if leaked := reports.new():
        pytest.fail("a secret shows up in " + "; ".join(leaked), pytrace=False)


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    _late.extend(reports.new())
    output = getattr(session.config, "workeroutput", None)
    if output is not None:  # of a worker of pytest-xdist, whose exit status nobody asks for
        output["secrets"] = _late
    elif _late:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    _late.extend(getattr(node, "workeroutput", {}).get("secrets", ()))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    for each in _late:
        terminalreporter.write_line(f"after the last test a secret shows up in {each}", red=True)
