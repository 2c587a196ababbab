"""What an operation may ask of the store that runs it.

An operation is a generator: it yields steps and is sent their answers. It does no I/O,
starts no thread, reads no clock and knows no driver, so one implementation serves sync
and async callers and every store (the idea is psycopg 3's).
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from functools import partial, wraps
from typing import (
    Any,
    Final,
    Generic,
    Literal,
    NamedTuple,
    ParamSpec,
    TypeVar,
)

import msgspec

T = TypeVar("T")
P = ParamSpec("P")
Row = tuple[Any, ...]
Stage = Literal["compile", "evaluate"]
"""Where a filter failed: it cannot be used at all, or failed for a message."""


class _Step(msgspec.Struct, frozen=True, gc=False):
    """Made in a quarter of the time of a tuple with names, and there are five in a send."""


class _Effect(_Step, frozen=True, tag=True, array_like=True):
    """What is to be told once the transaction is committed."""


class Statement(_Step, frozen=True):
    """One SQL statement; answered with its rows, `list[Row]`."""

    sql: str
    params: Sequence[Any] = ()


class Many(_Step, frozen=True):
    """One SQL statement run once for each row of parameters; answered with None."""

    sql: str
    rows: Sequence[Sequence[Any]]


class Insert(_Step, frozen=True):
    """Rows for a table with an ascending integer key; answered with the new keys, in order.

    `into` is the statement up to and with VALUES, `values` the parenthesis of one row.
    `in_turn` says that a row's values look at the rows before it.
    """

    into: str
    values: str
    rows: Sequence[Sequence[Any]]
    in_turn: bool = False


class Now(_Step, frozen=True):
    """The store's present time; answered with epoch milliseconds."""


class Resolve(_Step, frozen=True):
    """What a name stands for; answered with a `Queue`, a `Topic` or None."""

    name: str


class QueueById(_Step, frozen=True):
    """The live queue with this id; answered with a `Queue` or None."""

    id: int


class Earliest(_Step, frozen=True):
    """The earliest time at which work of this kind can be due, as far as the store knows
    without looking; 0 where it would have to look."""

    kind: str


class Due(_Effect, frozen=True):
    """Work of `kind` falls due at `at` (epoch ms): a lock runs out, a scheduled message
    becomes visible, a message expires. Published only after the commit."""

    kind: str
    at: int


class Ready(_Effect, frozen=True):
    """`number` messages became claimable in the queue: that many waiting receivers are
    woken, in order of waiting. Published only after the commit."""

    queue_id: int
    number: int


class Gone(_Effect, frozen=True):
    """The queue of this name is deleted: every receiver that waits on it is woken."""

    queue_id: int
    name: str


class Changed(_Effect, frozen=True):
    """The entity of this name was created, changed or removed: what was known of it is
    stale from here on, inside this transaction too."""

    name: str


class Event(_Effect, frozen=True):
    """A message effect, counted only after the commit that made it true."""

    event: str
    queue_id: int
    number: int = 1


class Unrouted(_Effect, frozen=True):
    """A subscription's filter failed for `number` messages, which it did not get; told only
    after the commit."""

    queue_id: int
    subscription: str
    expr: str
    error: str
    number: int
    stage: Stage = "evaluate"


class Last(_Step, frozen=True):
    """The last step that touches the store; effects may follow. A remote store may commit in
    the same round trip; a group of operations need not be able to undo it, if it is the only
    write, since a statement that fails has done nothing."""

    step: Statement | Insert


NOW: Final = Now()
LOCK_DUE: Final = "lock"
SCHEDULE_DUE: Final = "schedule"
EXPIRY_DUE: Final = "expiry"

Effect = Due | Ready | Gone | Changed | Event | Unrouted
Step = (
    Statement
    | tuple[Statement, ...]
    | Many
    | Insert
    | Now
    | Resolve
    | QueueById
    | Earliest
    | Effect
    | Last
)
Steps = Generator[Step, Any, T]


class Operation(msgspec.Struct, Generic[T], eq=False):
    """A bounded transaction, ready to be run by any store, more than once if need be.

    `size` is its weight in bytes for admission. `settles` marks what may use the part of
    the pending budget that sends cannot fill. `reads` marks one that writes nothing.
    """

    name: str
    start: Callable[[], Steps[T]]
    size: int = 0
    settles: bool = False
    reads: bool = False

    def __repr__(self) -> str:
        return f"<Operation {self.name}>"


def operation(
    *, settles: bool = False, reads: bool = False
) -> Callable[[Callable[P, Steps[T]]], Callable[P, Operation[T]]]:
    """Turn a generator function into one that answers the `Operation` to be run."""

    def decorate(function: Callable[P, Steps[T]]) -> Callable[P, Operation[T]]:
        @wraps(function)
        def prepared(*args: P.args, **kwargs: P.kwargs) -> Operation[T]:
            start = partial(function, *args, **kwargs)
            return Operation(function.__name__, start, settles=settles, reads=reads)

        return prepared

    return decorate


class Pause(NamedTuple):
    """A plan's wish to be left alone for `ms` milliseconds; answered with None."""

    ms: int


Plan = Generator[Operation[Any] | Pause, Any, T]
"""Work that is long or waits: each operation it yields is a transaction of its own,
answered with its result; between two of them the plan can be cancelled."""


class Pass(NamedTuple):
    """A maintenance pass. It runs at least every `every_ms`, and when work of the `due`
    kind falls due. A pass with a `due` kind emits, where it finds more work, a `Due` for
    the earliest: what it leaves unsaid is taken for absent."""

    name: str
    every_ms: int
    start: Callable[[], Plan[Any]]
    due: str | None = None
