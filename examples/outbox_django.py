"""A row and the message about it in one commit, with Django: web workers send through the file,
one process owns the queue.

    python examples/outbox_django.py
"""

import tempfile
from pathlib import Path

import django
from django.conf import settings
from django.db import connection, models, transaction
from django.db.backends.signals import connection_created

import mqlite


def configure(database: Path) -> None:
    """What a project has in its settings.py and in an `AppConfig.ready`."""
    settings.configure(
        DATABASES={
            "default": {
                "ENGINE": "django.db.backends.sqlite3",
                "NAME": database,
                "OPTIONS": {"transaction_mode": "IMMEDIATE"},
            }
        },
        DEFAULT_AUTO_FIELD="django.db.models.AutoField",
    )
    django.setup()
    connection_created.connect(lambda connection, **_: mqlite.configure(connection), weak=False)


def main(database: Path) -> None:
    configure(database)

    class Order(models.Model):
        article = models.TextField()

        class Meta:
            app_label = "shop"

    def order(article: str) -> None:
        with transaction.atomic():
            Order.objects.create(article=article)
            mqlite.outbox(connection).send("order-events", f"ordered {article}")
            if article == "nothing":
                raise ValueError("nobody orders nothing")  # neither row nor message

    with mqlite.open(database) as mq:
        mq.create_queue("order-events")
        with connection.schema_editor() as editor:
            editor.create_model(Order)
        for article in ("book", "nothing", "pen"):
            try:
                order(article)
            except ValueError as error:
                print(f"refused: {error}")
        for message in mq.receive("order-events", max_messages=10):
            print(message.text)
            message.complete()
        print(f"orders: {Order.objects.count()}")
    connection.close()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        main(Path(folder) / "shop.db")
