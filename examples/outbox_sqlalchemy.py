"""A row and the message about it in one commit, with a SQLAlchemy session.

python examples/outbox_sqlalchemy.py
"""

import tempfile
from pathlib import Path

from sqlalchemy import create_engine, func, select
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, mapped_column

import mqlite


class Base(DeclarativeBase):
    pass


class Order(Base):
    __tablename__ = "orders"
    id: Mapped[int] = mapped_column(primary_key=True)
    article: Mapped[str]


def order(session: Session, mq: mqlite.Embedded, article: str) -> None:
    with session.begin():
        session.add(Order(article=article))
        mq.join(session).send("order-events", f"ordered {article}")
        if article == "nothing":
            raise ValueError("nobody orders nothing")  # neither row nor message


def main(database: Path) -> None:
    engine = create_engine(f"sqlite:///{database}")
    mqlite.configure(engine)
    with mqlite.open(database) as mq, Session(engine) as session:
        mq.create_queue("order-events")
        Base.metadata.create_all(engine)
        for article in ("book", "nothing", "pen"):
            try:
                order(session, mq, article)
            except ValueError as error:
                print(f"refused: {error}")
        for message in mq.receive("order-events", max_messages=10):
            print(message.text)
            message.complete()
        print(f"orders: {session.scalar(select(func.count()).select_from(Order))}")
    engine.dispose()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        main(Path(folder) / "shop.db")
