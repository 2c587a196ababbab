"""Access keys as the tests of the broker use them."""

from __future__ import annotations

from typing import Any, Final

import mqlite
from broker.support import Api
from mqlite.embedded import Embedded
from mqlite.keys import CreatedKey, Permission

MONITOR: Final = "mqk_monitor"
QUEUE: Final = "/mqlite.v1.QueueService/"
ADMIN: Final = "/mqlite.v1.AdminService/"
AUTH: Final = "/mqlite.v1.AuthService/"


def create(mq: Embedded, *permissions: Permission, **given: Any) -> CreatedKey:
    return mq.create_key(mqlite.generate_key_id(), name="k", permissions=permissions, **given)


def status(url: str, token: str, path: str = f"{QUEUE}Stats") -> int:
    return Api(url, token).request("POST", path, b'{"queue": "q"}').status
