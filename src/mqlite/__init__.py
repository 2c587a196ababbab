"""mqlite: a durable message queue on one SQLite file; a library first, a broker when needed."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mqlite.api import (
        MQ as MQ,
        AsyncMQ as AsyncMQ,
    )
    from mqlite.broker.serve import (
        asgi as asgi,
    )
    from mqlite.client import (
        AsyncClient as AsyncClient,
        Client as Client,
        connect as connect,
        connect_async as connect_async,
    )
    from mqlite.clock import (
        ManualClock as ManualClock,
    )
    from mqlite.embedded import (
        AsyncEmbedded as AsyncEmbedded,
        AsyncTransaction as AsyncTransaction,
        Embedded as Embedded,
        Joined as Joined,
        Outbox as Outbox,
        Transaction as Transaction,
        configure as configure,
        open as open,
        open_async as open_async,
        outbox as outbox,
    )
    from mqlite.errors import (
        Canceled as Canceled,
        Closed as Closed,
        DatabaseLocked as DatabaseLocked,
        DedupConflict as DedupConflict,
        GroupRequired as GroupRequired,
        InTransaction as InTransaction,
        InvalidArgument as InvalidArgument,
        KeyConflict as KeyConflict,
        LockLost as LockLost,
        MessageTooLarge as MessageTooLarge,
        MqliteError as MqliteError,
        NameConflict as NameConflict,
        NotFound as NotFound,
        OutcomeUnknown as OutcomeUnknown,
        PermissionDenied as PermissionDenied,
        QueueChanged as QueueChanged,
        QueueNotEmpty as QueueNotEmpty,
        SchemaMismatch as SchemaMismatch,
        TransactionClosed as TransactionClosed,
        TransactionNotWritable as TransactionNotWritable,
        Unauthenticated as Unauthenticated,
        Unavailable as Unavailable,
        Unsupported as Unsupported,
        WrongProcess as WrongProcess,
    )
    from mqlite.keys import (
        AccessKey as AccessKey,
        CreatedKey as CreatedKey,
        KeyPage as KeyPage,
        generate_key_id as generate_key_id,
    )
    from mqlite.messages import (
        AsyncMessage as AsyncMessage,
        Message as Message,
    )
    from mqlite.model import (
        FilterTest as FilterTest,
        MessageData as MessageData,
        MoveResult as MoveResult,
        OutMessage as OutMessage,
        QueueConfig as QueueConfig,
        QueueInfo as QueueInfo,
        QueueStats as QueueStats,
        RenewResult as RenewResult,
        SettleResult as SettleResult,
        StoreStatus as StoreStatus,
        SubscriptionInfo as SubscriptionInfo,
    )
    from mqlite.observation.schema import (
        Observation as Observation,
    )
    from mqlite.receiver.jobs import (
        AsyncDelivery as AsyncDelivery,
        Delivery as Delivery,
    )
    from mqlite.receiver.outcomes import (
        Abandon as Abandon,
        Complete as Complete,
        Defer as Defer,
        Outcome as Outcome,
        Reject as Reject,
        Snooze as Snooze,
    )
    from mqlite.receiver.receivers import (
        AsyncReceiver as AsyncReceiver,
        Receiver as Receiver,
    )
    from mqlite.receiver.reports import (
        Counts as Counts,
    )
    from mqlite.receiver.workers import (
        Workers as Workers,
    )

__version__ = "0.1.0"

# Names are imported when they are first used: the command line answers `mqlite version`
# without loading an engine.
_HOMES = {
    "mqlite.clock": ("ManualClock",),
    "mqlite.client": ("AsyncClient", "Client", "connect", "connect_async"),
    "mqlite.api": ("MQ", "AsyncMQ"),
    "mqlite.broker.serve": ("asgi",),
    "mqlite.embedded": (
        "AsyncEmbedded",
        "Embedded",
        "configure",
        "open",
        "open_async",
        "outbox",
        "Transaction",
        "AsyncTransaction",
        "Joined",
        "Outbox",
    ),
    "mqlite.errors": (
        "Canceled",
        "Closed",
        "DatabaseLocked",
        "DedupConflict",
        "GroupRequired",
        "InTransaction",
        "InvalidArgument",
        "KeyConflict",
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
    "mqlite.keys": (
        "AccessKey",
        "CreatedKey",
        "KeyPage",
        "generate_key_id",
    ),
    "mqlite.messages": ("AsyncMessage", "Message"),
    "mqlite.model": (
        "FilterTest",
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
    "mqlite.observation.schema": ("Observation",),
    "mqlite.receiver.jobs": ("AsyncDelivery", "Delivery"),
    "mqlite.receiver.outcomes": (
        "Abandon",
        "Complete",
        "Defer",
        "Outcome",
        "Reject",
        "Snooze",
    ),
    "mqlite.receiver.receivers": ("AsyncReceiver", "Receiver"),
    "mqlite.receiver.reports": ("Counts",),
    "mqlite.receiver.workers": ("Workers",),
}
_HOME_OF = {name: module for module, names in _HOMES.items() for name in names}

__all__ = sorted(_HOME_OF)


def __getattr__(name: str) -> Any:
    if name not in _HOME_OF:
        raise AttributeError(f"module 'mqlite' has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(_HOME_OF[name]), name)
    return value


def __dir__() -> list[str]:
    return __all__
