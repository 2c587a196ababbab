"""What the package shows of itself, and what it says to an option it does not know."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest

import mqlite
import mqlite.client
from mqlite.broker.serve import serve, serving
from mqlite.testing import drain, open_memory


@pytest.mark.parametrize("package", ["mqlite", "mqlite.client"])
def test_only_public_names_are_shown_also_before_they_are_used(package: str) -> None:
    program = f"""
import {package} as package
assert dir(package) == sorted(package.__all__), dir(package)
for name in package.__all__:
    getattr(package, name)
assert dir(package) == sorted(package.__all__), dir(package)
"""
    subprocess.run([sys.executable, "-c", program], check=True)


UNKNOWN: dict[str, Callable[[Any], Any]] = {
    "open": lambda mq: mqlite.open(":memory:", insecure=1),  # type: ignore[call-arg]
    "connect": lambda mq: mqlite.connect("http://h", insecure=1),  # type: ignore[call-arg]
    "asgi": lambda mq: mqlite.asgi(mq, tokens="off", insecure=1),  # type: ignore[call-arg]
    "serve": lambda mq: serve(mq, "127.0.0.1:0", tokens="off", insecure=1),  # type: ignore[call-arg]
    "serving": lambda mq: serving(mq, tokens="off", insecure=1).__enter__(),  # type: ignore[call-arg]
    "mq.serve": lambda mq: mq.serve("127.0.0.1:0", tokens="off", insecure=1),
    "mq.serving": lambda mq: mq.serving(tokens="off", insecure=1).__enter__(),
    "receiver": lambda mq: mq.receiver("q", insecure=1),
    "worker": lambda mq: mq.worker("q", insecure=1),
    "drain": lambda mq: drain(mq, "q", print, insecure=1),  # type: ignore[call-arg]
}


@pytest.mark.parametrize("call", UNKNOWN)
def test_an_unknown_option_is_refused_alike_everywhere(call: str) -> None:
    with (
        open_memory() as mq,
        pytest.raises(mqlite.InvalidArgument, match=r"^unknown option 'insecure'; known are \w+, "),
    ):
        UNKNOWN[call](mq)


MISTYPED: list[tuple[Callable[[Any], Any], str]] = [
    (lambda mq: mqlite.open(None), "^the database must be text or a path, got NoneType: "),  # type: ignore[arg-type]
    (
        lambda mq: mqlite.open(":memory:", max_message_bytes="1MB"),
        "^max_message_bytes must be an i",
    ),  # type: ignore[arg-type]
    (lambda mq: mqlite.open(":memory:", max_message_bytes=0), "^max_message_bytes must be an int"),
    (lambda mq: mqlite.open(":memory:", dlq_max_count=-1), "^dlq_max_count must be an integer fro"),
    (lambda mq: mqlite.open(":memory:", clock=5), r"^clock must be a mqlite\.Clock, got int"),  # type: ignore[arg-type]
    (lambda mq: mqlite.open(":memory:", logger="x"), r"^logger must be a logging\.Logger, got str"),  # type: ignore[arg-type]
    (lambda mq: mqlite.asgi(mq, tokens="off", cors=5), "^the CORS origin must be printable ASCII"),  # type: ignore[arg-type]
    (lambda mq: mqlite.asgi("mq.db", tokens="off"), r"^mq must be a queue of mqlite\.open"),  # type: ignore[arg-type]
    (lambda mq: mqlite.asgi(mqlite.connect("http://h"), tokens="off"), "^mq must .* got Client$"),  # type: ignore[arg-type]
]


@pytest.mark.parametrize(("call", "said"), MISTYPED)
def test_an_option_of_another_type_is_refused_by_name(
    call: Callable[[Any], Any], said: str
) -> None:
    with open_memory() as mq, pytest.raises(mqlite.InvalidArgument, match=said):
        call(mq)


def test_an_unknown_field_of_a_message_is_refused_like_an_option() -> None:
    known = "known are message_id, .*, priority"
    with open_memory() as mq:
        mq.create_queue("q")
        with pytest.raises(mqlite.InvalidArgument, match=rf"^unknown field 'prio'; {known}$"):
            mq.send("q", "work", prio=1)  # type: ignore[call-arg]
        assert mq.stats("q").total == 0


@pytest.mark.parametrize("call", ["serve", "serving", "mq.serve", "mq.serving"])
def test_all_options_of_serving_are_named(call: str) -> None:
    with open_memory() as mq, pytest.raises(mqlite.InvalidArgument) as caught:
        UNKNOWN[call](mq)
    for name in (
        "monitor_tokens",
        "cors",
        "limits",
        "metrics",
        "insecure_allow_remote",
        "timeouts",
    ):
        assert name in str(caught.value)
