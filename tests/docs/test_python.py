"""docs/python.md against the package: its operations, attributes and errors."""

from __future__ import annotations

import re

import pytest

import mqlite
from mqlite import errors
from mqlite.embedded import Embedded
from mqlite.embedded.options import Options
from mqlite.model import MessageData, QueueSettings

from . import pages

PAGE = "docs/python.md"


def public(kind: type) -> list[str]:
    return [name for name in dir(kind) if not name.startswith("_") and name != "core"]


@pytest.mark.parametrize("name", public(Embedded))
def test_every_operation_is_named(name: str) -> None:
    assert re.search(rf"\b{name}\(|`mq\.{name}`", pages.text(PAGE))


@pytest.mark.parametrize("name", public(mqlite.Message))
def test_every_attribute_of_a_message_is_named(name: str) -> None:
    part = pages.section(PAGE, "Receiving") + pages.section(PAGE, "Settling")
    assert name == "mq" or re.search(rf"`{name}\b", part)


def test_every_field_of_a_peeked_message_is_named() -> None:
    named = set(re.findall(r"`(\w+)[`(]", pages.section(PAGE, "Receiving")))
    assert set(MessageData.__struct_fields__) <= named


def test_every_setting_is_named() -> None:
    named = pages.quoted(pages.section(PAGE, "Queues and topics"))
    assert set(QueueSettings.__annotations__) <= set(named)


def test_every_option_is_named() -> None:
    table = pages.rows(pages.section(PAGE, "Opening"))
    named = [name for row in table for name in pages.quoted(row[0])]
    assert sorted(named) == sorted(Options.__annotations__)


def test_every_error_is_named_and_no_other() -> None:
    table = pages.rows(pages.section(PAGE, "Errors"))
    named = {name for row in table for name in re.findall(r"`([A-Z]\w+)`", row[0])}
    kinds = [kind for kind in vars(errors).values() if isinstance(kind, type)]
    raised = {kind.__name__ for kind in kinds if issubclass(kind, errors.MqliteError)}
    assert named == raised - {"MqliteError"} | {"ValueError"}
    assert all(hasattr(mqlite, name) for name in raised)
