"""A row and the message about it in one commit, with the standard library's sqlite3.

python examples/outbox_sqlite3.py
"""

import sqlite3
import tempfile
from contextlib import closing
from pathlib import Path

import mqlite


def order(connection: sqlite3.Connection, mq: mqlite.Embedded, article: str) -> None:
    with connection:
        connection.execute("INSERT INTO orders (article) VALUES (?)", (article,))
        mq.join(connection).send("order-events", f"ordered {article}")
        if article == "nothing":
            raise ValueError("nobody orders nothing")  # neither row nor message


def main(database: Path) -> None:
    with mqlite.open(database) as mq, closing(sqlite3.connect(database)) as connection:
        mq.create_queue("order-events")
        mqlite.configure(connection)
        connection.execute("CREATE TABLE orders (id INTEGER PRIMARY KEY, article TEXT)")
        for article in ("book", "nothing", "pen"):
            try:
                order(connection, mq, article)
            except ValueError as error:
                print(f"refused: {error}")
        for message in mq.receive("order-events", max_messages=10):
            print(message.text)
            message.complete()
        [(count,)] = connection.execute("SELECT count(*) FROM orders")
        print(f"orders: {count}")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        main(Path(folder) / "shop.db")
