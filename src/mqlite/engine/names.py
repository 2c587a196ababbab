"""Which names queues, subscriptions and topics may have."""

from __future__ import annotations

from mqlite.errors import InvalidArgument, NotFound
from mqlite.model import MAX_NAME_BYTES


def check_name(name: str, field: str = "name") -> None:
    """A name that a user gives: 1 to 255 bytes of UTF-8 without control characters.

    Raises InvalidArgument naming `field`.
    """
    check_present(name, field)
    if any(ord(char) < 0x20 or 0x7F <= ord(char) < 0xA0 for char in name):
        raise InvalidArgument(f"{field} must not contain control characters")
    if len(name.encode()) > MAX_NAME_BYTES:
        raise InvalidArgument(f"{field} must be 1 to {MAX_NAME_BYTES} bytes of UTF-8")


def check_present(name: str, field: str = "queue") -> None:
    """A name that is looked up must be there; whether it exists is another question."""
    if not isinstance(name, str):
        raise InvalidArgument(f"{field} must be text, got {type(name).__name__}")
    if not name:
        raise InvalidArgument(f"{field} must not be empty")
    if name.isascii():
        return
    try:
        name.encode()
    except UnicodeEncodeError:
        raise InvalidArgument(f"{field} must be valid Unicode text") from None


def no_queue(name: str) -> NotFound:
    return NotFound(f"queue {name!r} does not exist")
