"""What the holder of a credential may do."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, Literal, get_args

from mqlite.keys import Permission

Right = Literal["send", "listen", "manage", "observe", "keys"]
Rights = frozenset[Right]

ADMINISTRATOR: Final[Rights] = frozenset(get_args(Right))
MONITOR: Final[Rights] = frozenset({"observe"})
ANYBODY: Final[Rights] = ADMINISTRATOR - {"keys"}
"""Where authentication is off: nobody there can be trusted with keys that outlive that."""

_GRANTED: Final[dict[Permission, Rights]] = {
    "send": frozenset({"send"}),
    "listen": frozenset({"listen"}),
    "manage": ADMINISTRATOR,
}


def rights_of(permissions: Iterable[Permission]) -> Rights:
    """What an access key with these permissions may do."""
    return frozenset[Right]().union(*(_GRANTED[permission] for permission in permissions))


def denial(right: Right, held: Rights) -> str:
    """What a caller is told who has other rights, and not this one."""
    if held == ANYBODY:
        return "access keys cannot be managed while authentication is off"
    if right == "observe":
        return "this needs the permission manage, or the token of a monitor"
    return f"this needs the permission {'manage' if right == 'keys' else right}"
