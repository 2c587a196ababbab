"""A pytest plugin that fails the run where a secret of a test shows up.

Secrets are the tokens a broker is configured with, of eight characters or more, and whatever
looks like the token of an access key. Looked at are log records, errors, answers and
metrics, what the command line prints, what processes write to standard error, and the `repr` of what
holds a token. Three places show a new secret, once, because that is what they are for: the
answer of CreateKey, the output of `key create`, and the notes of `serve` about a generated
token.
"""

from __future__ import annotations

import logging
import re
import subprocess
from collections.abc import Callable, Iterable, Iterator
from contextvars import ContextVar
from functools import wraps
from typing import Any, Final

import pytest

import mqlite.cli
from mqlite import wire
from mqlite.broker import metrics
from mqlite.broker.app import Broker
from mqlite.broker.auth import Authenticator
from mqlite.cli import streams
from mqlite.client import AsyncClient, Client
from mqlite.errors import MqliteError
from mqlite.keys import CreatedKey

_OF_A_KEY: Final = r"mqk_[0-9a-f]{64}"
_SHORTEST: Final = 8
_LONGEST_LOOK: Final = 256 * 1024

_known: set[str] = set()
_pattern = re.compile(_OF_A_KEY)
_found: list[str] = []
_shows_secrets: ContextVar[bool] = ContextVar("shows_secrets", default=False)


def learn(tokens: Iterable[Any]) -> None:
    """These are secrets from here on."""
    global _pattern
    new = {each for each in tokens if isinstance(each, str) and len(each) >= _SHORTEST} - _known
    if new:
        _known.update(new)
        _pattern = re.compile("|".join((_OF_A_KEY, *map(re.escape, sorted(_known)))))


def look(where: str, text: str | bytes) -> None:
    """Note a secret in the text."""
    if isinstance(text, bytes):
        text = text[:_LONGEST_LOOK].decode("utf-8", "replace")
    match = _pattern.search(text, 0, _LONGEST_LOOK)
    if match is not None:
        _found.append(f"{where}: {text[max(match.start() - 60, 0) : match.start()]}(the secret)")


def _after(owner: Any, name: str, then: Callable[..., object]) -> None:
    """Have `then(result, *args, **kwargs)` called after a function."""
    inner = getattr(owner, name)

    @wraps(inner)
    def watched(*args: Any, **kwargs: Any) -> Any:
        result = inner(*args, **kwargs)
        then(result, *args, **kwargs)
        return result

    setattr(owner, name, watched)


def _record(result: object, logger: logging.Logger, record: logging.LogRecord) -> None:
    look(f"a record of {record.name}", record.getMessage())
    for extra in ("diagnostic", "requests"):
        if hasattr(record, extra):
            look(f"a record of {record.name}", repr(getattr(record, extra)))
    if record.exc_info:
        look(f"a traceback of {record.name}", logging.Formatter().formatException(record.exc_info))


def _error(result: object, error: BaseException, *args: object, **kwargs: object) -> None:
    look(f"a {type(error).__name__}", " ".join(map(str, args)))


def _answer(result: bytes, value: object) -> None:
    if not isinstance(value, CreatedKey):
        look(f"an answer ({type(value).__name__})", result)


def _printed(result: object, text: str, *more: object) -> None:
    if not _shows_secrets.get():
        look("the command line", text)


def _ran(result: subprocess.CompletedProcess[Any], *args: object, **kwargs: object) -> None:
    if result.stderr:
        look("standard error of a process", result.stderr)


def _made(result: object, made: object, *args: object, **kwargs: object) -> None:
    look("a repr", repr(made))


def _configured(result: object, made: object, tokens: Any, monitors: Any = ()) -> None:
    learn(() if isinstance(tokens, str) else tokens)
    learn(monitors)


def _watch_the_command_line() -> None:
    inner = mqlite.cli._dispatch

    @wraps(inner)
    def dispatch(args: list[str]) -> int:
        marked = _shows_secrets.set(args[:2] == ["key", "create"])
        try:
            return inner(args)
        finally:
            _shows_secrets.reset(marked)

    mqlite.cli._dispatch = dispatch
    for name in ("write", "warn", "error"):
        _after(streams, name, _printed)


def pytest_configure() -> None:
    _after(Authenticator, "__init__", _configured)
    _after(logging.Logger, "handle", _record)
    _after(MqliteError, "__init__", _error)
    _after(wire, "encode", _answer)
    _after(metrics, "exposition", lambda result, found: look("the metrics", result))
    _after(subprocess, "run", _ran)
    for kind in (Broker, Client, AsyncClient, Authenticator):
        _after(kind, "__init__", _made)
    _watch_the_command_line()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown() -> Iterator[None]:
    yield
    leaked, _found[:] = _found.copy(), []
    if leaked:
        pytest.fail("a secret shows up in " + "; ".join(leaked), pytrace=False)
