"""Answers that are no success, as the errors an in-process queue raises."""

from __future__ import annotations

import re
from typing import Final

import msgspec

from mqlite import errors
from mqlite.client.call import Answer
from mqlite.errors import MqliteError, Unavailable, Unsupported
from mqlite.wire import NO_SUCH_PATH

_BY_CODE: Final[dict[str, type[MqliteError]]] = {
    kind.code: kind
    for kind in vars(errors).values()
    if isinstance(kind, type) and issubclass(kind, MqliteError) and "code" in vars(kind)
}
del _BY_CODE[MqliteError.code], _BY_CODE[Unavailable.code]  # those are told with more than a text
_SECONDS: Final = re.compile(r"[0-9]{1,9}")
_UNKNOWN_FIELD: Final = re.compile(r"[\w :]*unknown field [`'\"](\w+)[`'\"]")


class _Envelope(msgspec.Struct):
    """The broker's error body, read leniently: a proxy may stand between."""

    code: str = ""
    message: str = ""
    reason: str = ""


_envelopes: Final = msgspec.json.Decoder(_Envelope)


class UnknownField(Unsupported):
    """The broker is older than a field of the request."""

    def __init__(self, message: str, field: str) -> None:
        super().__init__(message)
        self.field = field


def failure(method: str, answer: Answer) -> MqliteError:
    """The error that this answer to a request for `method` stands for."""
    status = answer.status
    try:
        envelope = _envelopes.decode(answer.body)
    except (msgspec.DecodeError, RecursionError):
        return not_a_broker(status)
    code, message = envelope.code, envelope.message
    if status == 404 and not code:
        return Unsupported(
            f"the endpoint does not know the operation {method}, and answered in a form no mqlite"
            " broker uses; is it the right address, with its prefix?"
        )
    if status == 404 and message.startswith(NO_SUCH_PATH):
        return Unsupported(f"this broker does not know the operation {method} ({message})")
    if code == Unavailable.code:
        delay = answer.headers.get("Retry-After", "")
        return Unavailable(
            message,
            reason=envelope.reason or "unspecified",
            retry_after=int(delay) if _SECONDS.fullmatch(delay) else None,
        )
    # At its start: further on a message may quote what the caller wrote.
    # Fields are not the caller's to choose: one that is not known is newer than the broker.
    if status == 400 and (unknown := _UNKNOWN_FIELD.match(message)):
        field = unknown[1]
        return UnknownField(
            f"this broker does not know the field {field} of {method} ({message})", field
        )
    if code in _BY_CODE:
        return _BY_CODE[code](message)
    return MqliteError(f"{message} (code {code or 'none'}, HTTP status {status})")


def refusal(code: str, message: str) -> MqliteError:
    """The error of one slot of an answer."""
    return _BY_CODE[code](message) if code in _BY_CODE else MqliteError(f"{message} (code {code})")


def from_a_gateway(answer: Answer) -> bool:
    """Whether a server failed that stands before the broker: what became of the request is
    not known then."""
    if answer.status < 500:
        return False
    try:
        return not _envelopes.decode(answer.body).code
    except (msgspec.DecodeError, RecursionError):
        return True


def not_a_broker(status: int) -> MqliteError:
    return MqliteError(
        f"the endpoint answered HTTP status {status} in a form no mqlite broker uses;"
        " is it the right address?"
    )
