"""Which failures pass, and how long to wait for that."""

from __future__ import annotations

import random
from typing import Final

from mqlite import errors
from mqlite.errors import MqliteError

_LASTING: Final = (
    errors.Unauthenticated,
    errors.PermissionDenied,
    errors.NotFound,
    errors.Unsupported,
    errors.Closed,
    errors.InvalidArgument,
    errors.WrongProcess,
    errors.InTransaction,
)
_FIRST_PAUSE_MS: Final = 250
_LONGEST_PAUSE_MS: Final = 5000


def lasting(error: BaseException) -> bool:
    """Whether trying again is no use. What a proxy says while the broker behind it restarts
    passes."""
    return isinstance(error, _LASTING) or not isinstance(error, MqliteError)


def pause_ms(failures: int, error: BaseException | None = None) -> int:
    """How long to wait after so many failures in a row (from 1): longer and longer, up to
    5 s, at least as long as the broker asks for, and never two receivers alike."""
    longest = min(_FIRST_PAUSE_MS * 2 ** min(failures - 1, 10), _LONGEST_PAUSE_MS)
    asked = min((getattr(error, "retry_after", None) or 0) * 1000, _LONGEST_PAUSE_MS)
    return max(int(longest * random.uniform(0.5, 1)), asked)
