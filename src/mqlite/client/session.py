"""Attempts over aiohttp, for the tasks of one event loop."""

from __future__ import annotations

import asyncio
import os
import ssl
from collections.abc import Generator
from contextlib import contextmanager
from io import BytesIO
from typing import TYPE_CHECKING, Any, Final

from mqlite.client.call import Lost, Outcome, Unreached, received
from mqlite.client.discipline import Attempt, closed
from mqlite.client.target import IDLE_SECONDS, Target
from mqlite.errors import Closed, MqliteError
from mqlite.links import install_hint

try:
    import aiohttp
    import yarl
except ImportError:
    if not TYPE_CHECKING:
        aiohttp = None

_MOST_AT_ONCE: Final = 64
"""Attempts under way, beside long polls: those do not keep others from going on."""
_LARGE: Final = 1024 * 1024
_QUIET: Final = 0.05


class Session:
    """Carries attempts to one broker. Belongs to the event loop that first uses it."""

    def __init__(self, target: Target) -> None:
        """Raises ImportError, naming the extra, without aiohttp."""
        if aiohttp is None:
            raise ImportError(f"the async client needs the client extra: {install_hint('client')}")
        self._target = target
        self._tls: dict[str, Any] = {"ssl": target.ssl_context()} if target.secure else {}
        self._closed = False
        self._loop: asyncio.AbstractEventLoop | None = None

    def _start(self, loop: asyncio.AbstractEventLoop) -> None:
        target = self._target
        self._loop = loop
        self._closing = asyncio.Event()
        self._room = asyncio.Semaphore(_MOST_AT_ONCE)
        self._polls: set[asyncio.Task[Outcome]] = set()
        self._under_way = 0
        self._quiet = asyncio.Event()
        self._busy_at = 0.0
        self._http = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0, keepalive_timeout=IDLE_SECONDS, **self._tls),
            headers=target.headers,
            cookie_jar=aiohttp.DummyCookieJar(),
            auto_decompress=False,
        )

    @contextmanager
    def entered(self) -> Generator[None]:
        """For the duration of an operation, for which `close` waits. Raises Closed, and
        MqliteError on another event loop than that of the first one."""
        if self._closed:
            raise closed()
        self._check_loop()
        self._under_way += 1
        try:
            yield
        finally:
            self._under_way -= 1
            if self._closed and not self._under_way:
                self._quiet.set()

    def _check_loop(self) -> None:
        loop = asyncio.get_running_loop()
        if self._loop is None:
            self._start(loop)
        elif self._loop is not loop:
            raise MqliteError(
                "this client belongs to another event loop; make one in each (connect_async)"
            )

    async def attempt(self, attempt: Attempt) -> Outcome:
        """What came of it. Raises Closed for a long poll that `close` broke off."""
        assert self._loop is not None
        if self._loop.time() - self._busy_at > _QUIET:
            # The broker may have closed connections while nothing happened here. Two rounds
            # of the loop, and it has been noticed: such a connection is not used.
            await asyncio.sleep(0)
            await asyncio.sleep(0)
        try:
            if attempt.polls:
                return await self._poll(attempt)
            async with self._room:
                return await self._post(attempt)
        finally:
            self._busy_at = self._loop.time()

    async def pause(self, seconds: float) -> Closed | None:
        """Sleep; Closed if the client was closed meanwhile."""
        try:
            async with asyncio.timeout(seconds):
                await self._closing.wait()
        except TimeoutError:
            return None
        return closed()

    async def drain(self) -> None:
        """Refuse what is new, break off long polls, and wait for what else is under way."""
        self._closed = True
        if self._loop is None:
            return
        self._check_loop()
        self._closing.set()
        for poll in self._polls:
            poll.cancel()
        if self._under_way:
            await self._quiet.wait()

    async def close(self) -> None:
        """Close the connections."""
        if self._loop is not None:
            await self._http.close()

    async def _poll(self, attempt: Attempt) -> Outcome:
        if self._closed:
            raise closed()
        poll = asyncio.ensure_future(self._post(attempt))
        self._polls.add(poll)
        try:
            return await poll
        except asyncio.CancelledError:
            if self._closed and poll.cancelled() and not _cancelling():
                raise closed() from None
            raise
        finally:
            self._polls.discard(poll)

    async def _post(self, attempt: Attempt) -> Outcome:
        target = self._target
        body: Any = attempt.body if len(attempt.body) <= _LARGE else BytesIO(attempt.body)
        url = yarl.URL(target.base_url + attempt.path, encoded=True)
        timeout = aiohttp.ClientTimeout(
            # It counts the silence only from when the whole request was sent.
            total=target.connect_seconds + 2 * attempt.timeout,
            sock_connect=target.connect_seconds,
            sock_read=attempt.timeout,
        )
        try:
            async with self._http.post(
                url, data=body, timeout=timeout, allow_redirects=False
            ) as response:
                return received(response.status, response.headers, await response.read())
        except (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError) as error:
            return Unreached(_reason(error))
        except TimeoutError:
            return Lost("no answer came in time")
        except (aiohttp.ClientError, OSError) as error:
            return Lost(f"the connection broke ({_reason(error)})")


def _cancelling() -> bool:
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


def _reason(error: BaseException) -> str:
    """What the system said, where it did: asyncio's and aiohttp's own texts repeat the
    address."""
    inner = getattr(error, "certificate_error", None) or getattr(error, "os_error", error)
    if isinstance(inner, OSError):
        number = 0 if isinstance(inner, ssl.SSLError) else inner.errno or 0
        said = os.strerror(number) if number > 0 else inner.strerror
        return said or str(inner) or type(error).__name__
    return str(inner) or type(error).__name__
