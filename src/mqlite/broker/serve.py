"""The ways to put a queue on the network.

`tokens` never has a default: it is a list of the bearer tokens of administrators, or "off".
Access keys are let in beside them. The options:

- `monitor_tokens`: of callers that may observe, and nothing else.
- `cors`: the origin whose pages may call, `*` for every one; none by default.
- `limits`: what is admitted at once, see `Limits`.
- `metrics`: serve `/metrics` to monitors and administrators.
"""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from typing import TYPE_CHECKING, Protocol, Unpack

from mqlite.arguments import check_known
from mqlite.broker.app import Broker
from mqlite.broker.auth import Tokens
from mqlite.broker.limits import Timeouts
from mqlite.broker.options import Options, ServeOptions
from mqlite.errors import InvalidArgument
from mqlite.links import install_hint

if TYPE_CHECKING:
    from mqlite.broker.server import BrokerServer
    from mqlite.embedded.core import Core


class Open(Protocol):
    """An open in-process queue, sync or async."""

    @property
    def core(self) -> Core: ...


def asgi(mq: Open, *, tokens: Tokens, **options: Unpack[Options]) -> Broker:
    """An ASGI application, to mount in another one under any prefix; needs no lifespan.

    Raises InvalidArgument for unusable tokens, for metrics without any, and for an unknown
    option.
    """
    check_known(options, Options, "option")
    if not hasattr(mq, "core"):
        raise InvalidArgument(
            f"mq must be a queue of mqlite.open or mqlite.open_async, got {type(mq).__name__}"
        )
    return Broker(mq.core, tokens, **options)


def serve(
    mq: Open,
    addr: str,
    *,
    tokens: Tokens,
    insecure_allow_remote: bool = False,
    timeouts: Timeouts | None = None,
    ready: Callable[[str], None] | None = None,
    **options: Unpack[Options],
) -> None:
    """Serve on `addr` until SIGTERM or SIGINT, or until the queue is closed; then finish
    what was admitted and return. The queue stays open.

    `ready` is called with the URL once connections are accepted. Raises InvalidArgument,
    also for tokens "off" on an address that others can reach unless
    `insecure_allow_remote`; OSError when the address cannot be taken.
    """
    check_known(options, ServeOptions, "option")
    broker = asgi(mq, tokens=tokens, **options)
    with _listening(broker, addr, insecure_allow_remote) as (listener, url):
        server = _server(broker, timeouts, (lambda: ready(url)) if ready else None)
        server.run(sockets=[listener])


@contextmanager
def serving(
    mq: Open,
    addr: str = "127.0.0.1:0",
    *,
    tokens: Tokens,
    insecure_allow_remote: bool = False,
    timeouts: Timeouts | None = None,
    **options: Unpack[Options],
) -> Iterator[str]:
    """`serve` in a thread of its own, for the duration of a `with` block; yields the URL.

    Raises as `serve`.
    """
    check_known(options, ServeOptions, "option")
    broker = asgi(mq, tokens=tokens, **options)
    with _listening(broker, addr, insecure_allow_remote) as (listener, url):
        ready = threading.Event()
        server = _server(broker, timeouts, ready.set)
        failure: list[BaseException] = []

        def run() -> None:
            try:
                server.run(sockets=[listener])
            except BaseException as problem:
                failure.append(problem)
            finally:
                ready.set()

        thread = threading.Thread(target=run, name="mqlite-broker", daemon=True)
        thread.start()
        ready.wait()
        try:
            if not failure:
                yield url
        finally:
            server.should_exit = True
            thread.join()
        if failure:
            raise failure[0]


@contextmanager
def _listening(
    broker: Broker, addr: str, allow_remote: bool
) -> Iterator[tuple[socket.socket, str]]:
    _require_extra()
    from mqlite.broker.server import bind, is_loopback, url_of

    with bind(addr) as listener:
        if not (broker.auth.on or allow_remote or is_loopback(listener)):
            raise InvalidArgument(
                f"refusing to serve on {addr} without authentication: others can reach it; give"
                " tokens, or insecure_allow_remote=True"
            )
        yield listener, url_of(listener)


def _server(
    broker: Broker, timeouts: Timeouts | None, ready: Callable[[], None] | None
) -> BrokerServer:
    from mqlite.broker.server import BrokerServer

    return BrokerServer(broker, timeouts or Timeouts(), ready)


def _require_extra() -> None:
    """`asgi` works without the server's packages; what serves says what it misses."""
    if not (find_spec("uvicorn") and find_spec("httptools")):
        raise ImportError(f"serving needs the broker extra: {install_hint('broker')}")
