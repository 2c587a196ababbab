"""One exception class per failure; HTTP status and wire code live on the class.

In-process queues and HTTP clients raise the same classes, so a handler written for
one works with the other. `code` is the broker's error code, `status` its HTTP status.
"""

from __future__ import annotations

from typing import ClassVar


class MqliteError(Exception):
    """Base of every error this package raises on purpose."""

    code: ClassVar[str] = "internal"
    status: ClassVar[int] = 500


class InvalidArgument(MqliteError, ValueError):
    """An argument is missing, of the wrong kind, or outside the accepted values."""

    code = "invalid_argument"
    status = 400


class GroupRequired(MqliteError):
    """A `group_fifo` queue was sent a message without a `group_id`."""

    code = "group_required"
    status = 400


class Unauthenticated(MqliteError):
    """The request carries no credential, or one the broker does not know."""

    code = "unauthenticated"
    status = 401


class PermissionDenied(MqliteError):
    """The credential is valid but lacks the permission this operation needs."""

    code = "permission_denied"
    status = 403


class NotFound(MqliteError):
    """The queue, topic, subscription or message does not exist."""

    code = "not_found"
    status = 404


class Unsupported(MqliteError):
    """The broker does not know this operation, or refuses the method used for it."""

    code = "unimplemented"
    status = 405


class DedupConflict(MqliteError):
    """Inside the dedup window the same `message_id` was used with another body."""

    code = "already_exists"
    status = 409


class NameConflict(MqliteError):
    """The name already belongs to an entity of another kind; queues, subscriptions
    and topics share one namespace."""

    code = "name_conflict"
    status = 409


class KeyConflict(MqliteError):
    """An access key with this id, or this token, exists; its token is not shown again."""

    code = "key_conflict"
    status = 409


class LockLost(MqliteError):
    """The lock token does not hold a live lease on the message."""

    code = "lock_lost"
    status = 409


class QueueNotEmpty(MqliteError):
    """A queue that still holds messages, in whatever state, cannot be deleted."""

    code = "queue_not_empty"
    status = 409


class QueueChanged(MqliteError):
    """The name now belongs to another queue than the given `generation`."""

    code = "queue_changed"
    status = 409


class MessageTooLarge(MqliteError):
    """A message body, or a whole request, is over its size limit."""

    code = "message_too_large"
    status = 413


class Canceled(MqliteError):
    """The caller went away before the operation started; nothing was written."""

    code = "canceled"
    status = 499


class Unavailable(MqliteError):
    """The queue cannot take the operation now; nothing was written.

    `reason` is `overloaded`, `database_locked`, `disk_full`, `read_only`, `storage` or
    `closing`; from a client also `unreachable`, or `unspecified`. `retry_after` is the number of
    seconds after which trying again makes sense, or None where waiting does not help.
    """

    code = "unavailable"
    status = 503

    def __init__(self, message: str, *, reason: str, retry_after: int | None = None) -> None:
        super().__init__(message)
        self.reason = reason
        self.retry_after = retry_after


class Closed(Unavailable):
    """The queue is closed or closing and takes no new work."""

    def __init__(self, message: str = "this queue is closed") -> None:
        super().__init__(message, reason="closing")


class OutcomeUnknown(MqliteError):
    """The write was sent but its acknowledgement was lost: it may or may not have been
    applied. Reconcile before trying again."""

    code = "outcome_unknown"
    status = 503


class DatabaseLocked(MqliteError):
    """Another owner has this database file open."""


class SchemaMismatch(MqliteError):
    """The file's schema is newer, altered, incomplete, or another program's."""


class InTransaction(MqliteError):
    """The calling context has an open transaction on this queue, and the call is not
    made through it."""


class TransactionClosed(MqliteError):
    """The transaction has already been committed or rolled back."""


class TransactionNotWritable(MqliteError):
    """The caller's transaction cannot be upgraded to a writing one."""


class WrongProcess(MqliteError):
    """The queue was opened by the parent of this process; open it again after the fork."""
