"""A queue inside a program: send, receive, settle, and look at what failed.

python examples/embedded.py
"""

import tempfile
from pathlib import Path

import mqlite


def main(database: Path) -> None:
    with mqlite.open(database) as mq:
        mq.create_queue("mails", lock_duration="1m", max_delivery_count=3)
        mq.send("mails", "ada@example.com", subject="welcome")
        mq.send("mails", "nobody", subject="welcome")
        mq.send("mails", "bob@example.com", subject="reminder", at="1d")

        while messages := mq.receive("mails", max_messages=10):
            for message in messages:
                if "@" in message.text:
                    print(f"{message.subject} to {message.text}")
                    message.complete()
                else:
                    message.reject("no address", f"{message.text!r} is not an address")

        for letter in mq.peek("mails", state="dead_lettered"):
            print(f"failed: {letter.dead_letter_description}")
        print(f"for later: {mq.stats('mails').scheduled}")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        main(Path(folder) / "mq.db")
