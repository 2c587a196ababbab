"""Consumes a queue of a broker, which has to be there, until it is told to stop (SIGTERM,
Ctrl-C).

    export MQLITE_ENDPOINT=http://127.0.0.1:6754 MQLITE_TOKEN=mqk_...
    mqlite create-queue orders && mqlite send orders '{"id": 1, "cents": 500}'
    python examples/remote_consumer.py
"""

import logging
import os
import sys

import mqlite


def handle(message: mqlite.Delivery) -> None:
    """Returning completes the message, raising gives it back for another try."""
    order = message.json()
    if order["cents"] <= 0:
        raise mqlite.Reject("bad amount", f"{order['cents']} cents")
    if order.get("wait") and message.delivery_count == 1:
        raise mqlite.Snooze("1s")
    print(f"order {order['id']}: {order['cents']} cents", flush=True)


def main() -> None:
    logging.basicConfig(level=logging.INFO)
    endpoint = os.environ.get("MQLITE_ENDPOINT", "http://127.0.0.1:6754")
    token = os.environ.get("MQLITE_TOKEN", "")
    with mqlite.connect(endpoint, token=token) as mq:
        receiver = mq.receiver("orders", concurrency=4)
        receiver.run(handle)
        print(receiver.counts)


if __name__ == "__main__":
    try:
        main()
    except mqlite.MqliteError as error:  # no such queue, a token that is refused
        sys.exit(f"error: {error}")
