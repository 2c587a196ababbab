"""The ways in which callers hold a connection and a transaction on it."""

from __future__ import annotations

import sqlite3
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple

import django.db
import sqlalchemy
from django.conf import settings
from django.db.utils import ConnectionHandler
from django.utils.connection import ConnectionProxy
from sqlalchemy import orm

import mqlite

if not settings.configured:
    settings.configure(DATABASES={}, USE_TZ=True)
    django.setup()


class Caller(ABC):
    """Somebody with a connection. `handle` is what is joined."""

    handle: Any

    @abstractmethod
    def execute(self, sql: str) -> list[Any]: ...

    @abstractmethod
    def transaction(self) -> AbstractContextManager[object]:
        """Commits at the end; an exception rolls back."""

    @abstractmethod
    def nested(self) -> AbstractContextManager[object]:
        """A savepoint; an exception rolls back to it."""

    def order(self, number: int) -> None:
        self.execute(f"INSERT INTO orders VALUES ({number})")


class Sqlite3(Caller):
    def __init__(self, connection: sqlite3.Connection, begin: str = "") -> None:
        self.handle = connection
        self._begin = begin

    def execute(self, sql: str) -> list[Any]:
        return [tuple(row) for row in self.handle.execute(sql).fetchall()]

    @contextmanager
    def transaction(self) -> Iterator[None]:
        if self._begin:
            self.handle.execute(self._begin)
        try:
            yield
        except BaseException:
            self._end("ROLLBACK")
            raise
        self._end("COMMIT")

    def _end(self, how: str) -> None:
        # With autocommit=True commit() and rollback() do nothing.
        if self._begin:
            self.handle.execute(how)
        else:
            getattr(self.handle, how.lower())()

    @contextmanager
    def nested(self) -> Iterator[None]:
        self.handle.execute("SAVEPOINT caller")
        try:
            yield
        except BaseException:
            self.handle.execute("ROLLBACK TO caller")
            self.handle.execute("RELEASE caller")
            raise
        self.handle.execute("RELEASE caller")


class Alchemy(Caller):
    def __init__(self, handle: Any) -> None:
        self.handle = handle

    def execute(self, sql: str) -> list[Any]:
        result = self.handle.execute(sqlalchemy.text(sql))
        return [tuple(row) for row in result] if result.returns_rows else []

    def transaction(self) -> AbstractContextManager[object]:
        manager: AbstractContextManager[object] = self.handle.begin()
        return manager

    def nested(self) -> AbstractContextManager[object]:
        manager: AbstractContextManager[object] = self.handle.begin_nested()
        return manager


class Django(Caller):
    def __init__(self, alias: str) -> None:
        self._alias = alias
        self.handle = ConnectionProxy(django.db.connections, alias)

    def execute(self, sql: str) -> list[Any]:
        with self.handle.cursor() as cursor:
            cursor.execute(sql)
            return list(cursor.fetchall()) if cursor.description else []

    def transaction(self) -> AbstractContextManager[object]:
        manager: AbstractContextManager[object] = django.db.transaction.atomic(self._alias)
        return manager

    nested = transaction


def sqlite3_caller(
    path: Path, resources: ExitStack, *, begin: str = "", configured: bool = False, **options: Any
) -> Caller:
    connection = resources.enter_context(closing(sqlite3.connect(path, **options)))
    if configured:
        mqlite.configure(connection)
    return Sqlite3(connection, begin)


def alchemy_engine(
    path: Path, resources: ExitStack, *, configured: bool = False, **options: Any
) -> Any:
    engine = sqlalchemy.create_engine(f"sqlite:///{path}", connect_args=options)
    resources.callback(engine.dispose)
    if configured:
        mqlite.configure(engine)
    return engine


def alchemy_caller(path: Path, resources: ExitStack, **options: Any) -> Caller:
    return Alchemy(resources.enter_context(alchemy_engine(path, resources, **options).connect()))


def session_caller(path: Path, resources: ExitStack, **options: Any) -> Caller:
    return Alchemy(resources.enter_context(orm.Session(alchemy_engine(path, resources, **options))))


_aliases = count()


def django_alias(path: Path, resources: ExitStack, **options: Any) -> str:
    """A database of Django's, which is forgotten afterwards."""
    alias = f"joins{next(_aliases)}"
    handler = ConnectionHandler(
        {
            "default": {},
            alias: {"ENGINE": "django.db.backends.sqlite3", "NAME": path, "OPTIONS": options},
        }
    )
    django.db.connections.databases[alias] = handler.databases[alias]
    resources.callback(django.db.connections.databases.pop, alias)
    resources.callback(django.db.connections[alias].close)
    return alias


def django_caller(
    path: Path, resources: ExitStack, *, configured: bool = False, **options: Any
) -> Caller:
    if not configured:
        return Django(django_alias(path, resources, **options))
    alias = django_alias(path, resources, transaction_mode="IMMEDIATE", **options)
    caller = Django(alias)
    mqlite.configure(caller.handle)
    return caller


class Mode(NamedTuple):
    name: str
    connect: Callable[..., Caller]
    missing: str = ""
    """Why it cannot be tried with this Python."""


NO_AUTOCOMMIT = "" if sys.version_info >= (3, 12) else "sqlite3 has no autocommit before 3.12"

MODES = (
    Mode("sqlite3", sqlite3_caller),
    Mode("sqlite3-configured", partial(sqlite3_caller, configured=True)),
    Mode("sqlite3-immediate", partial(sqlite3_caller, isolation_level="IMMEDIATE")),
    Mode("sqlite3-exclusive", partial(sqlite3_caller, isolation_level="EXCLUSIVE")),
    Mode("sqlite3-none-begin", partial(sqlite3_caller, begin="BEGIN", isolation_level=None)),
    Mode(
        "sqlite3-none-begin-immediate",
        partial(sqlite3_caller, begin="BEGIN IMMEDIATE", isolation_level=None),
    ),
    Mode(
        "sqlite3-none-configured",
        partial(sqlite3_caller, begin="BEGIN IMMEDIATE", isolation_level=None, configured=True),
    ),
    Mode(
        "sqlite3-autocommit-true",
        partial(sqlite3_caller, begin="BEGIN", autocommit=True),
        NO_AUTOCOMMIT,
    ),
    Mode("sqlite3-autocommit-false", partial(sqlite3_caller, autocommit=False), NO_AUTOCOMMIT),
    Mode("sqlalchemy", alchemy_caller),
    Mode("sqlalchemy-configured", partial(alchemy_caller, configured=True)),
    Mode("sqlalchemy-session", session_caller),
    Mode("sqlalchemy-session-configured", partial(session_caller, configured=True)),
    Mode("django", django_caller),
    Mode("django-configured", partial(django_caller, configured=True)),
)
