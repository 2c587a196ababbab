"""Workers with typed payloads, for the command line:

    export MQLITE_DB=file:./mq.db
    mqlite create-queue orders && mqlite create-queue mails --retry-initial-delay 10s
    mqlite send orders '{"id": 1, "articles": ["book"]}'
    mqlite worker examples.typed_worker:workers

or, with MQLITE_ENDPOINT and MQLITE_TOKEN, over a broker. A body that is no `Order` is
dead-lettered with a reason that names the field.
"""

from dataclasses import dataclass

import msgspec

import mqlite

workers = mqlite.Workers()


class Order(msgspec.Struct):
    id: int
    articles: list[str]


@dataclass
class Mail:
    to: str
    text: str = ""


@workers.worker("orders", type=Order, concurrency=4)
def on_order(order: Order) -> None:
    print(f"order {order.id}: {', '.join(order.articles)}", flush=True)


@workers.worker("mails", type=Mail, retry_delay=lambda message: 2**message.delivery_count)
def on_mail(mail: Mail, message: mqlite.Delivery) -> None:
    print(f"mail {message.seq_number} to {mail.to}", flush=True)
