"""Access keys: creating, listing and revoking them, through every way in."""

from __future__ import annotations

import hashlib
import re
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

import mqlite
from contract.ways import World, together
from mqlite import AccessKey, CreatedKey, InvalidArgument, KeyConflict, NotFound
from mqlite.api import MQ
from mqlite.clock import ManualClock

ID = "0123456789abcdef" * 2
UNKNOWN = "f" * 32
SORTS = ("id_asc", "created_desc")


def create(mq: MQ, id: str = "", **given: Any) -> CreatedKey:
    fields: dict[str, Any] = {"name": "worker", "permissions": ["send"]} | given
    return mq.create_key(id or mqlite.generate_key_id(), **fields)


def walk(mq: MQ, **asked: Any) -> list[str]:
    """The ids of all pages."""
    page = mq.list_keys(**asked)
    ids = [key.id for key in page.keys]
    while page.next_after_id:
        page = mq.list_keys(after_id=page.next_after_id, **asked)
        ids += [key.id for key in page.keys]
    return ids


def test_an_id_is_128_random_bits() -> None:
    made = {mqlite.generate_key_id() for _ in range(100)}
    assert len(made) == 100
    assert all(re.fullmatch("[0-9a-f]{32}", id) for id in made)


def test_a_created_key(mq: MQ, clock: ManualClock) -> None:
    created = create(mq, ID, name="orders-producer", permissions=["send"])
    assert re.fullmatch("mqk_[0-9a-f]{64}", created.token)
    assert created.key == AccessKey(
        id=ID, name="orders-producer", permissions=("send",), created_at_ms=clock.now()
    )
    assert mq.list_keys().keys == [created.key]


def test_only_a_digest_is_stored(world: World) -> None:
    token = create(world.mq).token
    [(digest,)] = world.rows("SELECT digest FROM mqlite_keys")
    assert digest == hashlib.sha256(token.encode()).digest()
    world.close()
    stored = b"".join(file.read_bytes() for file in world.path.parent.glob(f"{world.path.name}*"))
    assert token.encode() not in stored
    assert token.removeprefix("mqk_").encode() not in stored


def test_no_repr_shows_the_secret(mq: MQ) -> None:
    created = create(mq, ID)
    assert created.token
    for text in (repr(created), str(created), f"{created}", repr([created])):
        assert created.token not in text
        assert ID in text
    assert created.token not in repr(created.__rich_repr__())
    assert "token" not in repr(mq.list_keys())


@pytest.mark.parametrize(
    ("asked", "granted"),
    [
        (["send"], ("send",)),
        (["listen"], ("listen",)),
        (["listen", "send"], ("send", "listen")),
        (("send", "send"), ("send",)),
        (["manage"], ("manage",)),
        (["send", "manage", "listen"], ("manage",)),
        ({"listen": 1}, ("listen",)),
    ],
)
def test_permissions_are_put_in_order(mq: MQ, asked: Any, granted: tuple[str, ...]) -> None:
    created = create(mq, permissions=iter(asked))
    assert created.key.permissions == granted
    assert mq.list_keys().keys[0].permissions == granted


@pytest.mark.parametrize(
    "permissions", [[], "send", ["monitor"], ["send", "Listen"], [""], ["send,listen"], 5, None]
)
def test_other_permissions_are_refused(mq: MQ, permissions: Any) -> None:
    with pytest.raises(InvalidArgument, match=r"permissions .*send, listen, manage"):
        create(mq, permissions=permissions)
    assert mq.list_keys().keys == []


@pytest.mark.parametrize(
    "name", ["a", "x" * 128, "ü" * 64, "two words", 'q"uote', "line\nbreak", "🐝", "a\u0301"]
)
def test_names(mq: MQ, name: str) -> None:
    assert create(mq, name=name).key.name == name
    assert mq.list_keys().keys[0].name == name


@pytest.mark.parametrize(
    "name", ["", "x" * 129, "ü" * 65, " a", "a\n", "\u00a0a", "a\0b", "\ud800", 5, None, b"a"]
)
def test_other_names_are_refused(mq: MQ, name: Any) -> None:
    with pytest.raises(InvalidArgument, match=r"\bname\b"):
        create(mq, name=name)
    assert mq.list_keys().keys == []


def test_names_need_not_be_unique(mq: MQ) -> None:
    first, second = create(mq), create(mq)
    assert first.key.name == second.key.name
    assert first.token != second.token


@pytest.mark.parametrize(
    "id", ["", "0", ID.upper(), ID + "0", f" {ID[1:]}", ID[:-1] + "g", ID[:-1] + "\n", 5, "٣" * 32]
)
def test_what_is_no_id_is_refused(mq: MQ, id: Any) -> None:
    fields: dict[str, Any] = {"name": "worker", "permissions": ["send"]}
    with pytest.raises(InvalidArgument, match=r"\bid\b"):
        mq.create_key(id, **fields)
    with pytest.raises(InvalidArgument, match=r"\bid\b"):
        mq.revoke_key(id)
    if id:
        for sort in SORTS:
            with pytest.raises(InvalidArgument, match="after_id"):
                mq.list_keys(after_id=id, sort=sort)  # type: ignore[arg-type]


def test_an_id_that_is_taken_is_a_conflict_and_shows_no_secret(mq: MQ) -> None:
    created = create(mq, ID)
    for _ in range(2):
        with pytest.raises(KeyConflict, match=ID) as conflict:
            create(mq, ID, name="another", permissions=["manage"])
        assert created.token not in str(conflict.value)
        mq.revoke_key(ID)
    [key] = mq.list_keys().keys
    assert (key.name, key.permissions) == ("worker", ("send",))


def test_of_many_who_want_an_id_one_gets_it(world: World) -> None:
    def attempt(_: int) -> CreatedKey | None:
        try:
            return create(world.mq, ID)
        except KeyConflict:
            return None

    assert len([made for made in together(8, attempt) if made]) == 1


def test_expiry(world: World) -> None:
    in_an_hour = world.clock.now() + 3_600_000
    exactly = world.at(3_600_000)
    assert create(world.mq, expires_at=exactly).key.expires_at_ms == in_an_hour
    assert create(world.mq).key.expires_at_ms == 0
    assert create(world.mq, expires_at=world.at(1)).key.expires_at_ms == world.clock.now() + 1


@pytest.mark.parametrize("ms", [0, -1, -(10**12)])
def test_an_expiry_that_is_not_in_the_future_is_refused(world: World, ms: int) -> None:
    with pytest.raises(InvalidArgument, match="expires_at"):
        create(world.mq, expires_at=world.at(ms))
    assert world.mq.list_keys().keys == []


@pytest.mark.parametrize(
    "at",
    [
        datetime(1970, 1, 1, tzinfo=UTC),
        datetime(1960, 1, 1, tzinfo=UTC),
        datetime(2100, 1, 1),
        "tomorrow",
        True,
        2**62,
    ],
)
def test_an_expiry_that_would_mean_never_or_nothing_is_refused(mq: MQ, at: Any) -> None:
    with pytest.raises(InvalidArgument, match="expires_at"):
        create(mq, expires_at=at)
    assert mq.list_keys().keys == []


@pytest.mark.parametrize("at", ["90x", "2030-01-01", []])
def test_an_expiry_that_is_no_time_names_all_that_is_accepted(mq: MQ, at: Any) -> None:
    accepted = (
        "neither a point in time nor a duration.*use a datetime with a time zone, a timedelta"
    )
    with pytest.raises(InvalidArgument, match=f"expires_at is {accepted}"):
        create(mq, expires_at=at)
    with pytest.raises(InvalidArgument, match=f"at is {accepted}"):
        mq.send("q", at=at)


def test_a_point_in_time_keeps_its_milliseconds(world: World) -> None:
    """Some, of the years after 2038, lie beside what a number of seconds can hold."""
    later = 2_190_000_000_000 - world.clock.now()
    for ms in range(later, later + 100):
        created = create(world.mq, expires_at=world.at(ms))
        assert created.key.expires_at_ms == world.clock.now() + ms


def test_revocation_is_for_good_and_can_be_repeated(mq: MQ, clock: ManualClock) -> None:
    create(mq, ID)
    clock.advance(5)
    mq.revoke_key(ID)
    revoked_at = clock.now()
    clock.advance(5)
    mq.revoke_key(ID)
    [key] = mq.list_keys().keys
    assert key.revoked_at_ms == revoked_at


def test_an_unknown_key_cannot_be_revoked(mq: MQ) -> None:
    create(mq, ID)
    with pytest.raises(NotFound, match=UNKNOWN):
        mq.revoke_key(UNKNOWN)
    assert mq.list_keys().keys[0].revoked_at_ms == 0


def test_a_revocation_at_the_beginning_of_time_is_one(world: World) -> None:
    """Zero would say that it is not revoked."""
    create(world.mq, ID)
    world.clock.set(0)
    world.mq.revoke_key(ID)
    assert world.mq.list_keys().keys[0].revoked_at_ms > 0


def test_keys_outlive_a_restart(world: World) -> None:
    key = create(world.mq, ID, expires_at=world.at(1000)).key
    assert world.reopen().list_keys().keys == [key]


def test_pages_by_id(mq: MQ) -> None:
    ids = sorted(create(mq).key.id for _ in range(7))
    assert walk(mq) == ids
    assert walk(mq, limit=1) == ids
    assert walk(mq, limit=3) == ids
    assert mq.list_keys(limit=7).next_after_id == ""
    page = mq.list_keys(limit=6)
    assert (len(page.keys), page.next_after_id) == (6, ids[5])


def test_the_newest_come_first_and_of_one_moment_the_highest_id(mq: MQ, clock: ManualClock) -> None:
    made = []
    for _ in range(3):
        made.append(sorted((create(mq).key.id for _ in range(4)), reverse=True))
        clock.advance(1)
    expected = [id for moment in reversed(made) for id in moment]
    for limit in (1, 3, 4, 5, 100):
        assert walk(mq, sort="created_desc", limit=limit) == expected


def test_the_default_page_holds_a_hundred(mq: MQ) -> None:
    for _ in range(101):
        create(mq)
    assert len(mq.list_keys().keys) == 100
    assert len(mq.list_keys(limit=1000).keys) == 101


def test_a_cursor_by_id_need_not_exist(mq: MQ) -> None:
    """The immediate predecessor of an id and a limit of 1 look a key up."""
    create(mq, ID)
    before = f"{int(ID, 16) - 1:032x}"
    assert [key.id for key in mq.list_keys(after_id=before, limit=1).keys] == [ID]
    assert mq.list_keys(after_id=ID).keys == []
    assert mq.list_keys(after_id=UNKNOWN).keys == []


def test_a_cursor_by_creation_must_exist(mq: MQ) -> None:
    create(mq, ID)
    with pytest.raises(InvalidArgument, match="after_id"):
        mq.list_keys(after_id=UNKNOWN, sort="created_desc")
    mq.revoke_key(ID)
    assert mq.list_keys(after_id=ID, sort="created_desc").keys == []


@pytest.mark.parametrize("limit", [0, -1, 1001, 2**63, True, "5", None])
def test_a_limit_is_1_to_1000(mq: MQ, limit: Any) -> None:
    with pytest.raises(InvalidArgument, match=r"limit must be .*1 to 1000"):
        mq.list_keys(limit=limit)


@pytest.mark.parametrize("sort", ["created_asc", "ID_ASC", "id_asc ", "name", 5])
def test_another_order_is_refused(mq: MQ, sort: Any) -> None:
    with pytest.raises(InvalidArgument, match="sort"):
        mq.list_keys(sort=sort)


@pytest.mark.parametrize("sort", SORTS)
def test_a_page_is_not_disturbed_by_what_is_made_and_revoked_meanwhile(
    mq: MQ, clock: ManualClock, sort: Any
) -> None:
    """What was there is listed once, in its place; what is new may be."""
    there = set()
    for _ in range(20):
        there.add(create(mq).key.id)
        clock.advance(1)
    expected = [id for id in walk(mq, sort=sort) if id in there]
    seen: list[str] = []
    page = mq.list_keys(sort=sort, limit=3)
    while True:
        seen += [key.id for key in page.keys]
        create(mq)
        clock.advance(1)
        mq.revoke_key(seen[-1])
        if not page.next_after_id:
            break
        page = mq.list_keys(sort=sort, limit=3, after_id=page.next_after_id)
    assert len(seen) == len(set(seen))
    assert [id for id in seen if id in there] == expected


def test_expired_and_revoked_keys_stay_in_the_list(world: World) -> None:
    ids = {create(world.mq, expires_at=world.at(10)).key.id for _ in range(3)}
    world.mq.revoke_key(min(ids))
    world.later(10**9)
    assert {key.id for key in world.mq.list_keys().keys} == ids


def test_a_relative_expiry_counts_from_now() -> None:
    with mqlite.open(":memory:", clock=ManualClock()) as mq:
        created = create(mq, expires_at=timedelta(days=30))
        assert created.key.expires_at_ms == created.key.created_at_ms + 30 * 86_400_000
