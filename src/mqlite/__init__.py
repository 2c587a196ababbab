"""mqlite: a durable message queue on one SQLite file; a library first, a broker when needed."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mqlite.api import (
        MQ as MQ,
    )
    from mqlite.api import (
        AsyncMessage as AsyncMessage,
    )
    from mqlite.api import (
        AsyncMQ as AsyncMQ,
    )
    from mqlite.api import (
        Message as Message,
    )
    from mqlite.broker.serve import (
        asgi as asgi,
    )
    from mqlite.embedded import (
        AsyncEmbedded as AsyncEmbedded,
    )
    from mqlite.embedded import (
        Embedded as Embedded,
    )
    from mqlite.embedded import (
        configure as configure,
    )
    from mqlite.embedded import (
        open as open,
    )
    from mqlite.embedded import (
        open_async as open_async,
    )
    from mqlite.embedded import (
        outbox as outbox,
    )
    from mqlite.errors import (
        Canceled as Canceled,
    )
    from mqlite.errors import (
        Closed as Closed,
    )
    from mqlite.errors import (
        DatabaseLocked as DatabaseLocked,
    )
    from mqlite.errors import (
        DedupConflict as DedupConflict,
    )
    from mqlite.errors import (
        GroupRequired as GroupRequired,
    )
    from mqlite.errors import (
        InTransaction as InTransaction,
    )
    from mqlite.errors import (
        InvalidArgument as InvalidArgument,
    )
    from mqlite.errors import (
        LockLost as LockLost,
    )
    from mqlite.errors import (
        MessageTooLarge as MessageTooLarge,
    )
    from mqlite.errors import (
        MqliteError as MqliteError,
    )
    from mqlite.errors import (
        NameConflict as NameConflict,
    )
    from mqlite.errors import (
        NotFound as NotFound,
    )
    from mqlite.errors import (
        OutcomeUnknown as OutcomeUnknown,
    )
    from mqlite.errors import (
        PermissionDenied as PermissionDenied,
    )
    from mqlite.errors import (
        QueueChanged as QueueChanged,
    )
    from mqlite.errors import (
        QueueNotEmpty as QueueNotEmpty,
    )
    from mqlite.errors import (
        SchemaMismatch as SchemaMismatch,
    )
    from mqlite.errors import (
        TransactionClosed as TransactionClosed,
    )
    from mqlite.errors import (
        TransactionNotWritable as TransactionNotWritable,
    )
    from mqlite.errors import (
        Unauthenticated as Unauthenticated,
    )
    from mqlite.errors import (
        Unavailable as Unavailable,
    )
    from mqlite.errors import (
        Unsupported as Unsupported,
    )
    from mqlite.errors import (
        WrongProcess as WrongProcess,
    )
    from mqlite.model import (
        MessageData as MessageData,
    )
    from mqlite.model import (
        MoveResult as MoveResult,
    )
    from mqlite.model import (
        OutMessage as OutMessage,
    )
    from mqlite.model import (
        QueueConfig as QueueConfig,
    )
    from mqlite.model import (
        QueueInfo as QueueInfo,
    )
    from mqlite.model import (
        QueueStats as QueueStats,
    )
    from mqlite.model import (
        RenewResult as RenewResult,
    )
    from mqlite.model import (
        SettleResult as SettleResult,
    )
    from mqlite.model import (
        StoreStatus as StoreStatus,
    )
    from mqlite.model import (
        SubscriptionInfo as SubscriptionInfo,
    )

__version__ = "0.1.0"

# Names are imported when they are first used: the command line answers `mqlite version`
# without loading an engine.
_HOMES = {
    "mqlite.api": (
        "MQ",
        "AsyncMQ",
        "AsyncMessage",
        "Message",
    ),
    "mqlite.broker.serve": ("asgi",),
    "mqlite.embedded": (
        "AsyncEmbedded",
        "Embedded",
        "configure",
        "open",
        "open_async",
        "outbox",
    ),
    "mqlite.errors": (
        "Canceled",
        "Closed",
        "DatabaseLocked",
        "DedupConflict",
        "GroupRequired",
        "InTransaction",
        "InvalidArgument",
        "LockLost",
        "MessageTooLarge",
        "MqliteError",
        "NameConflict",
        "NotFound",
        "OutcomeUnknown",
        "PermissionDenied",
        "QueueChanged",
        "QueueNotEmpty",
        "SchemaMismatch",
        "TransactionClosed",
        "TransactionNotWritable",
        "Unauthenticated",
        "Unavailable",
        "Unsupported",
        "WrongProcess",
    ),
    "mqlite.model": (
        "MessageData",
        "MoveResult",
        "OutMessage",
        "QueueConfig",
        "QueueInfo",
        "QueueStats",
        "RenewResult",
        "SettleResult",
        "StoreStatus",
        "SubscriptionInfo",
    ),
}
_HOME_OF = {name: module for module, names in _HOMES.items() for name in names}

__all__ = sorted(_HOME_OF)


def __getattr__(name: str) -> Any:
    if name not in _HOME_OF:
        raise AttributeError(f"module 'mqlite' has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(_HOME_OF[name]), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOME_OF})
