"""Bodies as typed values, and what becomes of those that do not fit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, Literal, TypedDict

import msgspec
import pydantic
import pytest

import mqlite
from mqlite import InvalidArgument, Reject
from mqlite.testing import drain, open_memory


class Place(msgspec.Struct):
    floor: Literal["first", "second"]

    def __post_init__(self) -> None:
        if self.floor == "second":
            raise ValueError("closed \ud800")


class Card(msgspec.Struct, tag="card"):
    number: int


class Cash(msgspec.Struct, tag="cash"):
    amount: int


class ModelCard(pydantic.BaseModel):
    by: Literal["card"]


class ModelCash(pydantic.BaseModel):
    by: Literal["cash"]


ModelPaid = Annotated[ModelCard | ModelCash, pydantic.Field(discriminator="by")]


class Line(msgspec.Struct):
    article: str
    amount: Annotated[int, msgspec.Meta(gt=0)] = 1


class Order(msgspec.Struct):
    id: int
    lines: list[Line] = []


@dataclass
class DataOrder:
    id: int
    note: str = ""


class DictOrder(TypedDict):
    id: int


class ModelOrder(pydantic.BaseModel):
    id: int
    amount: int = pydantic.Field(default=1, gt=0)

    @pydantic.field_validator("id")
    @classmethod
    def positive(cls, value: int) -> int:
        if value <= 0:
            raise ValueError("must be positive")
        return value


@pydantic.dataclasses.dataclass
class CheckedOrder:
    id: int = pydantic.Field(gt=0)


CASES: list[tuple[Any, str, Any]] = [
    (Order, '{"id": 1, "lines": [{"article": "a"}]}', Order(1, [Line("a")])),
    (DataOrder, '{"id": 2}', DataOrder(2)),
    (DictOrder, '{"id": 3}', {"id": 3}),
    (ModelOrder, '{"id": 4}', ModelOrder(id=4)),
    (CheckedOrder, '{"id": 5}', CheckedOrder(5)),
    (list[ModelOrder], '[{"id": 6}]', [ModelOrder(id=6)]),
    (ModelPaid, '{"by": "cash"}', ModelCash(by="cash")),
    (ModelCard | ModelCash, '{"by": "card"}', ModelCard(by="card")),
    (list[int], "[1, 2]", [1, 2]),
    (dict[str, DataOrder], '{"a": {"id": 7}}', {"a": DataOrder(7)}),
    (Order | None, "null", None),
]


@pytest.fixture
def mq() -> Any:
    with open_memory() as mq:
        mq.create_queue("q")
        yield mq


@pytest.mark.parametrize(("kind", "body", "value"), CASES, ids=lambda v: str(v)[:30])
def test_a_body_is_decoded(mq: mqlite.Embedded, kind: Any, body: str, value: Any) -> None:
    seen: list[Any] = []
    mq.send("q", body)
    assert drain(mq, "q", seen.append, type=kind).completed == 1
    assert seen == [value]


def test_a_second_argument_is_the_message(mq: mqlite.Embedded) -> None:
    def handle(order: Order, message: mqlite.Delivery, retries: int = 3) -> None:
        seen.append((order.id, message.subject, retries))

    seen: list[Any] = []
    mq.send("q", '{"id": 1}', subject="new")
    drain(mq, "q", handle, type=Order)
    assert seen == [(1, "new", 3)]


def test_an_optional_second_argument_is_left_alone(mq: mqlite.Embedded) -> None:
    seen: list[Any] = []
    mq.send("q", '{"id": 1}')
    drain(mq, "q", lambda order, retries=3: seen.append((order.id, retries)), type=Order)
    assert seen == [(1, 3)]


MISFITS: list[tuple[Any, str, str]] = [
    (Order, '{"id": "secret"}', "$.id"),
    (Order, '{"lines": []}', "`id`"),
    (Order, '{"id": 1, "lines": [{"article": "x"}, {"article": "secret", "amount": 0}]}', "$.lines[1].amount"),
    (DataOrder, '{"id": 1, "note": ["secret"]}', "$.note"),
    (DictOrder, "{}", "`id`"),
    (ModelOrder, '{"id": "secret"}', "id: Input should be a valid integer"),
    (ModelOrder, '{"id": -1}', "id: Value error, must be positive"),
    (CheckedOrder, '{"id": 0}', "id: Input should be greater than 0"),
    (list[ModelOrder], '[{"id": 1}, {"amount": 1}]', "1.id: Field required"),
    (Order, "{secret", "malformed"),
    (Order, "", "truncated"),
    (ModelOrder, "{secret", "Invalid JSON"),
    (Place, '{"floor": "secret - at `$.floor`"}', "Invalid enum value - at `$.floor`"),
    (Literal["a", "b"], '"secret"', "Invalid enum value"),
    (Card | Cash, '{"type": "secret"}', "Invalid value - at `$.type`"),
    (Place, '{"floor": "second"}', r"closed \ud800"),
    (ModelPaid, '{"by": "secret"}', "Input tag found using 'by' does not match"),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "body", "named"), MISFITS, ids=lambda v: str(v)[:30])
def test_a_body_that_does_not_fit_is_dead_lettered_by_name(
    mq: mqlite.Embedded, kind: Any, body: str, named: str
) -> None:
    mq.send("q", body)
    reports: list[Any] = []
    counts = drain(mq, "q", lambda order: 1 / 0, type=kind, on_error=lambda *r: reports.append(r))
    assert counts.rejected == 1
    [letter] = mq.peek("q")
    assert letter.state == "dead_lettered"
    assert letter.dead_letter_reason == "InvalidPayload"
    assert named in letter.dead_letter_description
    assert "secret" not in letter.dead_letter_description
    assert len(letter.dead_letter_description) <= 500
    [(error, message)] = reports
    assert str(error) == letter.dead_letter_description
    assert message.seq_number == letter.seq_number


@pytest.mark.parametrize("body", [b"\xff\xfe", b"[" * 5000, b'"\\ud800"'])
def test_hostile_bodies_are_dead_lettered(mq: mqlite.Embedded, body: bytes) -> None:
    mq.send("q", body)
    assert drain(mq, "q", print, type=list[Any]).rejected == 1


def test_a_handler_of_typed_values_may_reject_by_itself(mq: mqlite.Embedded) -> None:
    mq.send("q", '{"id": 1}')
    drain(mq, "q", lambda order: Reject("sold out"), type=Order)
    assert mq.peek("q")[0].dead_letter_reason == "sold out"


class Opaque:
    pass


@pytest.mark.parametrize("kind", [Opaque, list[Opaque], int | Opaque])
def test_a_type_that_cannot_be_decoded_is_refused_at_once(mq: mqlite.Embedded, kind: Any) -> None:
    with pytest.raises(InvalidArgument, match="type cannot be decoded from JSON"):
        mq.worker("q", type=kind)(print)
