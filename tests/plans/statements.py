"""Every SQL statement of the engine, found by itself: a new one cannot be forgotten."""

from __future__ import annotations

import importlib
import pkgutil
import re
import sqlite3
from collections.abc import Iterator
from importlib import resources
from typing import Any, Final

import mqlite.engine

VERBS: Final = ("SELECT", "INSERT", "UPDATE", "DELETE", "WITH")


def statements() -> dict[str, str]:
    """The module-level SQL constants of the engine by `module.NAME`; those in a tuple or a
    dictionary by `module.NAME[key]`; `module.NAME + OTHER` for an INSERT up to VALUES with each
    of the rows that its module has for it. Other parts of statements do not begin with a verb."""
    found: dict[str, str] = {}
    for module in pkgutil.iter_modules(mqlite.engine.__path__):
        if module.ispkg:
            continue
        made = _made_in(module.name)
        for name, text in made.items():
            if text.rstrip().endswith("VALUES"):
                found |= {f"{module.name}.{n}": t for n, t in _with_rows(name, text, made)}
            elif text.lstrip().startswith(VERBS):
                found[f"{module.name}.{name}"] = text
    return found


def sources() -> dict[str, str]:
    """The text of each module of the engine."""
    files = resources.files("mqlite.engine").iterdir()
    return {file.name: file.read_text() for file in files if file.name.endswith(".py")}


def _made_in(module: str) -> dict[str, str]:
    """The texts among the constants of a module, without those it imports."""
    source = (resources.files("mqlite.engine") / f"{module}.py").read_text()
    loaded = vars(importlib.import_module(f"mqlite.engine.{module}"))
    return {
        f"{name}{suffix}": text
        for name, value in loaded.items()
        if f"\n{name}: Final" in source
        for suffix, text in _texts(value)
    }


def _with_rows(name: str, into: str, made: dict[str, str]) -> Iterator[tuple[str, str]]:
    rows = {other: text for other, text in made.items() if re.match(r"\(\s*\?", text)}
    for other, row in rows.items():
        yield f"{name} + {other}", f"{into} {row}"
    if not rows:
        columns = into[into.index("(") :].count(",") + 1
        yield name, f"{into} ({', '.join('?' * columns)})"


def _texts(value: Any) -> Iterator[tuple[str, str]]:
    if isinstance(value, str):
        yield "", value
    elif isinstance(value, dict):
        yield from ((f"[{key}]", text) for key, text in value.items() if isinstance(text, str))
    elif isinstance(value, tuple):
        yield from ((f"[{i}]", text) for i, text in enumerate(value) if isinstance(text, str))


def migrations() -> dict[str, str]:
    """The scripts that make the schema, by name, in order."""
    files = resources.files("mqlite.engine.migrations").iterdir()
    found = {file.name: file.read_text() for file in files if file.name.endswith(".sql")}
    return dict(sorted(found.items()))


def schema() -> str:
    return "\n".join(migrations().values())


def plan(connection: sqlite3.Connection, sql: str) -> list[str]:
    """The lines of the query plan. What is bound does not matter to it."""
    rows = connection.execute(f"EXPLAIN QUERY PLAN {sql}", (0,) * sql.count("?"))
    return [row[3] for row in rows]


def accesses(connection: sqlite3.Connection, sql: str) -> list[str]:
    """How the statement reaches its rows, without repetition: `INDEX (what is sought)`,
    `rowid (...)` or `key (...)` for the table itself, `walk INDEX` for one that is read from its
    start, `scan TABLE`, and `sort`."""
    found: list[str] = []
    for line in plan(connection, sql):
        access = _access(line)
        if access and access not in found:
            found.append(access)
    return found


def _access(line: str) -> str:
    if "TEMP B-TREE" in line:
        return "sort"
    verb, _, rest = line.replace("COVERING ", "").partition(" ")
    if verb not in ("SEARCH", "SCAN") or "VIRTUAL TABLE" in rest or rest.startswith("(subquery"):
        return ""
    table, _, how = rest.partition(" USING ")
    if not how:
        return f"scan {table}"
    how = how.replace("INTEGER PRIMARY KEY", "rowid").replace("PRIMARY KEY", "key")
    how = how.removeprefix("INDEX ").replace(" AND rowid=?", "")
    if verb == "SCAN" or "ANY(" in how:  # over each value of the first column: no seek either
        return f"walk {how.split()[0]}"
    return how
