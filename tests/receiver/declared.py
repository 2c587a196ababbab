"""Handlers as a program declares them, for a type checker: `test_typing` runs it.

What it has to refuse is marked; a mark that it does not need is an error, too.
"""

from __future__ import annotations

from typing import Any, TypedDict, assert_type

import msgspec

import mqlite


class Order(msgspec.Struct):
    id: int


class Mail(msgspec.Struct):
    to: str


class Line(TypedDict):
    article: str


workers = mqlite.Workers()


@workers.worker("orders", type=Order, concurrency=4)
def on_order(order: Order) -> int:
    return order.id


@workers.worker("orders", type=Order)
def on_order_with_message(order: Order, message: mqlite.Delivery, retries: int = 3) -> None: ...


@workers.worker("orders", type=Order)
async def on_order_async(order: Order, message: mqlite.AsyncDelivery) -> None: ...


@workers.worker("orders", type=Order)
def on_anything(value: object) -> None: ...


@workers.worker("lines", type=list[Line])
def on_lines(lines: list[Line]) -> None: ...


@workers.worker("lines", type=dict)
def on_line(line: dict[str, str]) -> None: ...


@workers.worker("orders", type=Order | None)
def on_perhaps(order: Order | None) -> None: ...


@workers.worker("messages")
def on_message(message: mqlite.Delivery) -> None: ...


assert_type(on_order(Order(1)), int)
on_order_with_message(Order(1), mqlite.Delivery(), retries=1)
on_message(message=mqlite.Delivery())
workers.worker("orders", type=Order)(print)
workers.worker("orders", type=Order)(lambda order: order.id)


@workers.worker("orders", type=Order)  # type: ignore[arg-type]
def takes_another_type(mail: Mail) -> None: ...


@workers.worker("orders", type=Order)  # type: ignore[arg-type]
async def takes_another_type_async(mail: Mail) -> None: ...


@workers.worker("orders", type=Order)  # type: ignore[arg-type]
def takes_the_message_first(message: mqlite.Delivery, order: Order) -> None: ...


@workers.worker("lines", type=list[Line])  # type: ignore[arg-type]
def takes_one(line: Line) -> None: ...


def on_mail(mail: Mail) -> None: ...


def declare(
    mq: mqlite.MQ,
    async_mq: mqlite.AsyncMQ,
    embedded: mqlite.Embedded | mqlite.AsyncEmbedded,
    client: mqlite.Client | mqlite.AsyncClient,
    options: Any,
) -> None:
    """Every way in is held to the same."""
    mq.worker("mails", type=Mail)(on_mail)
    mq.worker("mails", **options)(on_mail)
    mq.worker("orders", type=Order)(on_mail)  # type: ignore[arg-type]
    async_mq.worker("orders", type=Order)(on_mail)  # type: ignore[arg-type]
    embedded.worker("orders", type=Order)(on_mail)  # type: ignore[arg-type]
    client.worker("orders", type=Order)(on_mail)  # type: ignore[arg-type]
    mq.worker("orders", type=Order, speed=1)  # type: ignore[call-overload]
