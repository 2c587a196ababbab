"""Answers that are no success, as the errors an in-process queue raises."""

from __future__ import annotations

from email.message import Message as Headers
from typing import Final

import msgspec

from mqlite import errors
from mqlite.errors import MqliteError, Unavailable, Unsupported

_KINDS: Final = (
    errors.InvalidArgument,
    errors.GroupRequired,
    errors.Unauthenticated,
    errors.PermissionDenied,
    errors.NotFound,
    errors.Unsupported,
    errors.DedupConflict,
    errors.NameConflict,
    errors.LockLost,
    errors.QueueNotEmpty,
    errors.QueueChanged,
    errors.MessageTooLarge,
    errors.Canceled,
    errors.OutcomeUnknown,
)
_BY_CODE: Final[dict[str, type[MqliteError]]] = {kind.code: kind for kind in _KINDS}
_UNKNOWN_PATH: Final = "no such path"


class _Envelope(msgspec.Struct):
    """The broker's error body, read leniently: a proxy may stand between."""

    code: str = ""
    message: str = ""
    reason: str = ""


def failure(status: int, headers: Headers, body: bytes) -> MqliteError:
    """The error that an answer with this status stands for."""
    try:
        envelope = msgspec.json.decode(body, type=_Envelope)
    except msgspec.DecodeError:
        return not_a_broker(status)
    code, message = envelope.code, envelope.message
    if status == 404 and (not code or message.startswith(_UNKNOWN_PATH)):
        return Unsupported(message or "this broker does not know the operation")
    if code == Unavailable.code:
        delay = headers.get("Retry-After", "")
        return Unavailable(
            message,
            reason=envelope.reason or "unspecified",
            retry_after=int(delay) if delay.isdigit() else None,
        )
    if code in _BY_CODE:
        return _BY_CODE[code](message)
    return MqliteError(f"{message} (code {code or 'none'}, HTTP status {status})")


def not_a_broker(status: int) -> MqliteError:
    return MqliteError(
        f"the endpoint answered HTTP status {status} in a form no mqlite broker uses;"
        " is it the right address?"
    )
