"""What every queue handle is built on: its receivers and its workers. The machinery is imported
when it is used."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Unpack, overload
from weakref import WeakSet

from mqlite.api import MQ, AsyncMQ, H, T
from mqlite.clock import Clock

if TYPE_CHECKING:
    from mqlite.receiver.options import Declare, ReceiverOptions, RunOptions
    from mqlite.receiver.receivers import AsyncReceiver, Receiver
    from mqlite.receiver.running import Run
    from mqlite.receiver.workers import Workers


class Handle(ABC):
    """What a receiver needs of a queue, besides its operations."""

    remote: ClassVar[bool] = True
    """Whether an answer can get lost on its way; then it retries a receive by itself."""

    @property
    @abstractmethod
    def clock(self) -> Clock:
        """What leases are measured by."""

    @abstractmethod
    def blocking(self) -> MQ:
        """Another handle on the same queue, for threads, to be closed by itself."""

    @cached_property
    def _runs(self) -> WeakSet[Run]:
        return WeakSet()

    def _end_runs(self) -> None:
        """Tell the receivers on this handle that it is being closed."""
        for run in list(self._runs):
            run.closed()

    @cached_property
    def workers(self) -> Workers:
        """The handlers declared with `worker`."""
        from mqlite.receiver.workers import Workers

        return Workers()

    @overload
    def worker(self, queue: str, *, type: type[T], **options: Unpack[RunOptions]) -> Declare[T]: ...

    @overload
    def worker(self, queue: str, **options: Unpack[ReceiverOptions]) -> Callable[[H], H]: ...

    def worker(self, queue: str, **options: Unpack[ReceiverOptions]) -> Any:
        return self.workers.worker(queue, **options)


class SyncHandle(Handle, MQ):
    """The base of the sync queue handles."""

    def receiver(self, queue: str, **options: Unpack[ReceiverOptions]) -> Receiver:
        from mqlite.receiver.receivers import Receiver

        return Receiver(self, queue, options)

    def run_workers(self, *, handle_signals: bool = True) -> bool:
        return self.workers.run(self, handle_signals=handle_signals)


class AsyncHandle(Handle, AsyncMQ):
    """The base of the async queue handles."""

    def receiver(self, queue: str, **options: Unpack[ReceiverOptions]) -> AsyncReceiver:
        from mqlite.receiver.receivers import AsyncReceiver

        return AsyncReceiver(self, queue, options)

    async def run_workers(self, *, handle_signals: bool = False) -> bool:
        return await self.workers.run_async(self, handle_signals=handle_signals)
