"""Invariants of the database, checked by the tests and by `mqlite doctor`."""

from __future__ import annotations

from typing import Final

from mqlite.engine.steps import Statement, Steps, operation

CHECKS: Final = {
    "a line has no head, or more than one": """
        SELECT queue_id, line FROM mqlite_messages WHERE line IS NOT NULL
         GROUP BY queue_id, line HAVING sum(head) <> 1""",
    "the head of a line is not its smallest": """
        SELECT queue_id, line FROM mqlite_messages WHERE line IS NOT NULL
         GROUP BY queue_id, line HAVING min(CASE WHEN head THEN seq END) <> min(seq)""",
    "a message outside a line is not its own head": """
        SELECT seq FROM mqlite_messages WHERE line IS NULL AND head <> 1""",
    "a dead letter stands in a line": """
        SELECT seq FROM mqlite_messages WHERE state = 'dead_lettered' AND line IS NOT NULL""",
    "a message is in the wrong line": """
        SELECT m.seq FROM mqlite_messages AS m JOIN mqlite_queues AS q ON q.id = m.queue_id
         WHERE m.state <> 'dead_lettered' AND m.line IS NOT
               (CASE WHEN q.ordering_mode = 'strict_fifo' THEN '' ELSE m.group_id END)""",
    "a locked message has no token or deadline": """
        SELECT seq FROM mqlite_messages
         WHERE state = 'locked' AND (lock_token IS NULL OR locked_until = 0)""",
    "an unlocked message has a token or deadline": """
        SELECT seq FROM mqlite_messages
         WHERE state <> 'locked' AND (lock_token IS NOT NULL OR locked_until <> 0)""",
    "a message has no queue": """
        SELECT seq FROM mqlite_messages AS m
         WHERE NOT EXISTS (SELECT 1 FROM mqlite_queues AS q
                            WHERE q.id = m.queue_id AND q.deleted_at IS NULL)""",
    "a payload is missing": """
        SELECT seq FROM mqlite_messages AS m WHERE payload_id IS NOT NULL
           AND NOT EXISTS (SELECT 1 FROM mqlite_payloads AS p WHERE p.id = m.payload_id)""",
    "a payload belongs to no message": """
        SELECT id FROM mqlite_payloads AS p
         WHERE NOT EXISTS (SELECT 1 FROM mqlite_messages AS m WHERE m.payload_id = p.id)
           AND NOT EXISTS (SELECT 1 FROM mqlite_finished AS f WHERE f.payload_id = p.id)""",
}


@operation(reads=True)
def examine() -> Steps[list[str]]:
    """What is wrong with the database, a line each; empty when it is sound."""
    problems: list[str] = []
    for problem, sql in CHECKS.items():
        rows = yield Statement(sql)
        if rows:
            problems.append(f"{problem}: {', '.join(str(row) for row in rows[:5])}")
    return problems
