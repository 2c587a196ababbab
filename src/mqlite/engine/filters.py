"""Filters of subscriptions: compiled once, run over messages that are on their way.

The language takes longer to import than all the rest: it is, when a filter is first met.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from typing import TYPE_CHECKING, Final, TypeAlias

from mqlite.errors import InvalidArgument
from mqlite.model import FilterTest, OutMessage

if TYPE_CHECKING:
    from mqlite.expr import Budget
    from mqlite.expr.message import Filter, Sample

_CACHED: Final = 1024
_TELLS_NO_VALUE: Final = re.compile(
    r"invalid operation: |index out of range: |interface conversion: |invalid argument for "
    r"|reflect|runtime error: |operator |cannot use |illegal base64|memory budget|work budget"
)
_CONVERTED: Final = re.compile(r"(invalid operation: (?:int|float))\(.*", re.DOTALL)
_ABSENT: Final = re.compile(r"cannot fetch (\w+) from \S+$")


Matches: TypeAlias = "Callable[[Sample, Budget | None], bool]"
"""A compiled filter. Raises an exception of any kind, on which the message does not pass."""


class Uncompiled(Exception):
    """The filter cannot be used, for a reason that shows the place in lines of its own."""


class Unusable:
    """Stands for a filter that does not compile."""

    def __init__(self, reason: str) -> None:
        self.reason = reason

    def matches(self, sample: Sample, budget: Budget | None = None) -> bool:
        raise Uncompiled(self.reason)


@lru_cache(_CACHED)
def compiled(expr: str) -> Filter | Unusable:
    """The filter of this text."""
    from mqlite.expr.message import compile_filter

    try:
        return compile_filter(expr)
    except Exception as error:
        return Unusable(_whole(error))


def check_expr(expr: str) -> None:
    """Raises InvalidArgument for a filter that cannot be used."""
    found = compiled(expr)
    if isinstance(found, Unusable):
        raise InvalidArgument(found.reason)


def sample_of(message: OutMessage, enqueued_at: int, visible_at: int) -> Sample:
    """The message as filters see it. Times are epoch milliseconds."""
    from mqlite.expr.message import Sample

    return Sample(
        message.subject,
        message.body,
        message.properties,
        message.group_id,
        message.correlation_id,
        message.reply_to,
        message.message_id,
        message.content_type,
        enqueued_at,
        visible_at,
    )


def dry_run(expr: str, message: OutMessage | None, enqueued_at: int, visible_at: int) -> FilterTest:
    """Whether the filter can be used, and what publishing would make of the message."""
    found = compiled(expr)
    if isinstance(found, Unusable):
        return FilterTest(valid=False, error=found.reason, ran=False, matched=False)
    if message is None:
        return FilterTest(valid=True, ran=False, matched=False)
    try:
        matched = found.matches(sample_of(message, enqueued_at, visible_at))
    except Exception as error:
        return FilterTest(valid=True, error=_whole(error), ran=True, matched=False)
    return FilterTest(valid=True, ran=True, matched=matched)


def failure_text(error: Exception, expr: str) -> str:
    """A line for the log. Some errors of the language quote values, which may be of the
    message's body, and that has no place in a log."""
    from mqlite.expr import ExprError

    if not isinstance(error, ExprError):
        return _whole(error).partition("\n")[0]
    place = f" ({error.line}:{error.column})" if error.line else ""
    message = _CONVERTED.sub(r"\1(…)", error.message)
    absent = _ABSENT.match(message)
    if (absent and absent[1] in expr) or _TELLS_NO_VALUE.match(message):
        return message + place
    return f"failed{place}: try it with a sample to see why"


def _whole(error: Exception) -> str:
    from mqlite.expr import ExprError

    if isinstance(error, ExprError | Uncompiled):
        return str(error)
    return f"unexpected {type(error).__name__}"
