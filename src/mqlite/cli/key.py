"""Commands on access keys."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Final, cast

from mqlite.cli import streams
from mqlite.cli.command import Integer, OneOf, option, store_command
from mqlite.cli.connect import Session
from mqlite.cli.output import Output, shown
from mqlite.cli.streams import CommandError
from mqlite.cli.times import read_time
from mqlite.errors import MqliteError, OutcomeUnknown
from mqlite.keys import (
    DEFAULT_KEY_PAGE,
    KEY_SORTS,
    MAX_KEY_PAGE,
    AccessKey,
    CreatedKey,
    KeySort,
    Permission,
    generate_key_id,
)

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_LAST_MS: Final = 253_402_300_799_999
"""The end of the year 9999, with which dates end."""


@store_command(
    "key create",
    help="Create an access key, and print its secret token: it cannot be shown again.",
)
@option("--name", required=True, help="what it is for; need not be unique")
@option("--permissions", required=True, metavar="list", help="send, listen, send,listen, or manage")
@option("--id", "id_", metavar="id", help="its public id (default: a new one)")
@option("--expires", metavar="time", help="RFC 3339 time, or a duration from now (default: never)")
@option("--expires-at-ms", type=Integer(0, _LAST_MS), help="the same in epoch ms (0: never)")
def create(
    session: Session,
    name: str,
    permissions: str,
    id_: str | None,
    expires: str | None,
    expires_at_ms: int | None,
) -> None:
    if not streams.deliverable():
        raise CommandError(
            "standard output goes nowhere, so the token would be lost; no key is made"
        )
    id_ = generate_key_id() if id_ is None else id_
    # The engine says which there are; what is none reaches it as it was given.
    wanted = cast("list[Permission]", [word.strip() for word in permissions.split(",")])
    expiry = _expiry(expires, expires_at_ms)
    with session.connect() as mq, _told_by_its_id(id_):
        created = mq.create_key(id_, name=name, permissions=wanted, expires_at=expiry)
    try:
        _show_created(session.out, created)
        streams.flush()
    except streams.OutputLost as lost:
        raise streams.OutputLost(f"{lost}: the token is lost, so revoke the key {id_}") from None


def _expiry(expires: str | None, expires_at_ms: int | None) -> datetime | None:
    if expires is None:
        return _time(expires_at_ms) if expires_at_ms else None
    if expires_at_ms is not None:
        raise CommandError("--expires and --expires-at-ms exclude each other; give one of them")
    return read_time(expires, "--expires", time.time_ns() // 1_000_000)


@contextmanager
def _told_by_its_id(id_: str) -> Iterator[None]:
    """Say which key to look for where it is not known whether it was made. A refusal has a
    class of its own; what has none is an answer that nobody understands."""
    told = f"the id of the key was to be {id_}"
    try:
        yield
    except KeyboardInterrupt:
        streams.warn(told)
        raise
    except MqliteError as error:
        if type(error) not in (MqliteError, OutcomeUnknown):
            raise
        raise CommandError(f"{error} ({told})") from None


def _show_created(out: Output, created: CreatedKey) -> None:
    """The one place that prints a token."""
    if out.json:
        out.document(created)
        return
    key = created.key
    out.done(
        action="key-create",
        id=key.id,
        name=key.name,
        permissions=",".join(key.permissions),
        expires=_moment(key.expires_at_ms),
        token=created.token,
    )
    streams.note("keep the token safe: it cannot be shown again")


@store_command("key list", help="List access keys, without their secrets.")
@option("--after-id", default="", metavar="id", help="go on after this key")
@option(
    "--limit", type=Integer(1, MAX_KEY_PAGE), default=DEFAULT_KEY_PAGE, help="at most this many"
)
@option(
    "--sort", type=OneOf(*KEY_SORTS), default="id_asc", help="id_asc, or newest first: created_desc"
)
def list_keys(session: Session, after_id: str, limit: int, sort: KeySort | None) -> None:
    sort = sort or "id_asc"
    with session.connect() as mq:
        page = mq.list_keys(after_id=after_id, limit=limit, sort=sort)
    if session.out.json:
        session.out.document(page)
        return
    session.out.rows(page.keys, _line, none="(no keys)")
    if page.next_after_id:
        session.out.line(
            f"more: mqlite key list --sort {sort} --limit {limit} --after-id {page.next_after_id}"
        )


def _line(key: AccessKey) -> str:
    return (
        f"{key.id} permissions={','.join(key.permissions):<11}"
        f" created={_moment(key.created_at_ms)} expires={_moment(key.expires_at_ms)}"
        f" revoked={_moment(key.revoked_at_ms)} name={shown(key.name)}"
    )


@store_command("key revoke", help="Let an access key in no more, for good.")
@option("--id", "id_", required=True, metavar="id", help="its public id")
def revoke(session: Session, id_: str) -> None:
    with session.connect() as mq:
        mq.revoke_key(id_)
    session.out.done(action="key-revoke", id=id_)


def _moment(ms: int) -> str:
    """As RFC 3339 in UTC; `never` for 0."""
    return _time(min(ms, _LAST_MS)).strftime("%Y-%m-%dT%H:%M:%SZ") if ms else "never"


def _time(ms: int) -> datetime:
    return _EPOCH + timedelta(milliseconds=ms)
