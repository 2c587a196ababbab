"""Log records, errors, answers, metrics, what is printed, and the `repr` of what holds a token."""

from __future__ import annotations

import re
from collections.abc import Callable
from contextvars import ContextVar
from functools import wraps
from typing import Any, Final

from guarding.hooks import after, before, when_imported
from guarding.reports import look
from guarding.secret import credentials, learn

_ANNOUNCED: Final = re.compile(
    r"^  export MQLITE_ENDPOINT=\S+ MQLITE_TOKEN=mqk_[0-9a-f]{64}$", re.MULTILINE
)

_CREATED: Final = re.compile(r'(\{"key":\{[^{}]*\},"token":")mqk_[0-9a-f]{64}("\}\n?)')

_makes_a_key: ContextVar[bool] = ContextVar("makes_a_key", default=False)


def watch() -> None:
    when_imported("logging", lambda it: after(it.Logger, "handle", _record))
    when_imported("mqlite.endpoint", _watch_endpoints)
    when_imported("mqlite.errors", lambda it: after(it.MqliteError, "__init__", _error))
    when_imported("mqlite.wire", lambda it: after(it, "encode", _answer))
    when_imported("mqlite.broker.metrics", lambda it: after(it, "exposition", _metrics))
    when_imported("mqlite.broker.auth", lambda it: _watch_tokens(it.Authenticator))
    when_imported("mqlite.broker.app", lambda it: _watch_repr(it.Broker))
    when_imported("mqlite.client.target", lambda it: _watch_target(it.Target))
    when_imported("mqlite.client.sync", lambda it: _watch_repr(it.Client))
    when_imported("mqlite.client.asynchronous", lambda it: _watch_repr(it.AsyncClient))
    when_imported("mqlite.mcp.broker", lambda it: _watch_repr(it.Broker))
    when_imported("mqlite.mcp.server", lambda it: after(it, "_result", _tool_result))
    when_imported("mqlite.cli", _watch_commands)
    when_imported("mqlite.cli.streams", _watch_what_is_printed)
    when_imported("mqlite.cli.connect", _watch_the_choice)
    when_imported("mqlite.cli.serve", _watch_the_settings)


def without_the_announcement(text: str) -> str:
    """What `serve` prints, without the line that shows the token it made up, once."""
    return _ANNOUNCED.sub("", text, count=1)


def _watch_endpoints(endpoint: Any) -> None:
    before(endpoint, "parse_endpoint", lambda text: learn(credentials(text)))
    after(endpoint, "parse_endpoint", _shows)


def _watch_tokens(authenticator: type) -> None:
    before(authenticator, "__init__", _configured)
    _watch_repr(authenticator)


def _watch_target(target: type) -> None:
    before(target, "__init__", _dialled)
    _watch_repr(target)


def _watch_commands(cli: Any) -> None:
    cli._dispatch = _marking(cli._dispatch)


def _watch_what_is_printed(streams: Any) -> None:
    after(streams, "write", _printed)
    after(streams, "note", _noted)


def _watch_the_choice(connect: Any) -> None:
    before(connect, "choose_target", _dialled_from_the_command_line)
    after(connect, "choose_target", _shows)


def _watch_the_settings(serve: Any) -> None:
    before(serve, "broker_auth", _set)
    before(serve, "monitor_tokens", _set)
    after(serve, "broker_auth", _shows)


def _watch_repr(kind: type) -> None:
    after(kind, "__init__", lambda result, made, *args, **kwargs: look("a repr", repr(made)))


def _record(result: object, logger: Any, record: Any) -> None:
    look(f"a record of {record.name}", record.getMessage())
    for extra in ("diagnostic", "requests"):
        if hasattr(record, extra):
            look(f"a record of {record.name}", repr(getattr(record, extra)))
    if record.exc_info:
        import logging

        look(f"a traceback of {record.name}", logging.Formatter().formatException(record.exc_info))


def _error(result: object, error: BaseException, *args: object, **kwargs: object) -> None:
    look(f"a {type(error).__name__}", " ".join(map(str, args)))


def _answer(result: bytes, value: Any) -> None:
    kind = type(value).__name__
    if kind == "CreatedKey":
        look("a repr", repr(value))
    else:
        look(f"an answer ({kind})", result)


def _metrics(result: bytes | str, *args: object) -> None:
    look("the metrics", result)


def _configured(made: object, tokens: Any, monitors: Any = ()) -> None:
    for each in (tokens, monitors):
        learn(each if isinstance(each, list | tuple) else [each])


def _dialled(made: object, endpoint: Any, token: Any, options: object = None) -> None:
    learn([token, *(credentials(endpoint) if isinstance(endpoint, str) else ())])


def _dialled_from_the_command_line(endpoint: str | None, token: str | None) -> None:
    learn([token, *credentials(endpoint or "")])


def _set(setting: str | None, *args: object) -> None:
    learn((setting or "").split(","))


def _shows(result: object, *args: object) -> None:
    look("a repr", repr(result))


def _tool_result(result: object, text: str, **kwargs: object) -> None:
    created = _CREATED.fullmatch(text)  # the answer of CreateKey, handed on
    look("a tool's result", text if created is None else created[1] + created[2])


def _marking(dispatch: Callable[[list[str]], int]) -> Callable[[list[str]], int]:
    """The dispatcher of commands, telling of the one that shows a new token."""

    @wraps(dispatch)
    def watched(args: list[str]) -> int:
        marked = _makes_a_key.set(args[:2] == ["key", "create"])
        try:
            return dispatch(args)
        finally:
            _makes_a_key.reset(marked)

    return watched


def _printed(result: object, text: str) -> None:
    if not _makes_a_key.get():
        look("what a command prints", text)


def _noted(result: object, text: str) -> None:
    look("what a command says", without_the_announcement(text))
