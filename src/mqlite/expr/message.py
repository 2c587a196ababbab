"""Filters over messages: what they may name, and what a message gives for it (spec section 17)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from .arithmetic import to_int
from .budget import Budget
from .environment import Env, Function
from .errors import ExprSyntaxError, Fault
from .gotime import DURATION_UNITS, Duration, Time, parse_duration_units
from .jsontext import from_json
from .lexer import is_blank
from .program import Program, compile
from .text import from_bytes, quote, to_bytes
from .types import DURATION, INT, MAP, STRING, STRING_MAP, STRINGS, TIME, Signature
from .values import StringMap, Uint8, Value, go_name

__all__ = ["MAX_SOURCE_BYTES", "MESSAGE_ENV", "Filter", "Sample", "compile_filter"]

MAX_SOURCE_BYTES = 4096
"""How long a filter may be."""

READS_TEXT, READS_JSON = 1, 2
"""Which of the body's variables are worked out."""


def _units(unit: str) -> Callable[[Value], Duration]:
    scale = DURATION_UNITS[unit]

    def units(count: Value) -> Duration:
        # A dynamic argument that is no number counts as 0, and so does a byte.
        usable = type(count) is float or (isinstance(count, int) and not isinstance(count, bool))
        if not usable or type(count) is Uint8:
            return Duration(0)
        return Duration(to_int(count) * scale)

    return units


def _duration(text: Value) -> Duration:
    if type(text) is not str:
        raise Fault(f"duration: want string, got {go_name(text)}")
    try:
        return parse_duration_units(text)
    except ValueError:
        raise Fault(f"invalid duration {quote(text)}") from None


MESSAGE_ENV = Env(
    variables={
        **dict.fromkeys(
            ["subject", "group_id", "correlation_id", "reply_to", "message_id", "content_type"],
            STRING,
        ),
        "properties": STRING_MAP,
        "property_keys": STRINGS,
        "subject_parts": STRINGS,
        "body_size": INT,
        "body_text": STRING,
        "body_json": MAP,
        "enqueued_at": TIME,
        "visible_at": TIME,
    },
    functions={
        **{
            name: Function(Signature((INT,), DURATION), _units(unit))
            for name, unit in {
                "seconds": "s",
                "minutes": "m",
                "hours": "h",
                "days": "d",
                "weeks": "w",
            }.items()
        },
        "duration": Function(Signature((STRING,), DURATION), _duration),
    },
    disabled=frozenset(["duration"]),
    type_name="engine.filterEnv",
    fields={
        "Subject": "subject",
        "Properties": "properties",
        "GroupID": "group_id",
        "CorrelationID": "correlation_id",
        "ReplyTo": "reply_to",
        "MessageID": "message_id",
        "ContentType": "content_type",
        "EnqueuedAt": "enqueued_at",
        "VisibleAt": "visible_at",
        "SubjectParts": "subject_parts",
        "BodySize": "body_size",
        "PropertyKeys": "property_keys",
        "BodyText": "body_text",
        "BodyJSON": "body_json",
    },
)
"""The names a filter may use, and their types."""


@dataclass(slots=True)
class Sample:
    """A message as filters see it. Times are milliseconds since the epoch.

    What filters read is worked out once per sample, however many filters look at it, and the body
    only for filters that mention it.
    """

    subject: str = ""
    body: bytes = b""
    properties: Mapping[str, str] = field(default_factory=dict)
    group_id: str = ""
    correlation_id: str = ""
    reply_to: str = ""
    message_id: str = ""
    content_type: str = ""
    enqueued_at_ms: int = 0
    visible_at_ms: int | None = None
    """None if the message is visible as soon as it is enqueued."""
    _projected: list[dict[str, Value] | None] = field(
        default_factory=lambda: [None] * 4, init=False, repr=False, compare=False
    )

    def values(self, reads: int = READS_TEXT | READS_JSON) -> Mapping[str, Value]:
        """A value for each variable; those of the body stay empty unless `reads` names them."""
        found = self._projected[reads]
        if found is None:
            found = self._projected[reads] = self._without_body()
            if reads & READS_TEXT:
                found["body_text"] = from_bytes(self.body)
            if reads & READS_JSON:
                found["body_json"] = self._decoded()
        return found

    def _without_body(self) -> dict[str, Value]:
        enqueued_at = Time.from_millis(self.enqueued_at_ms)
        visible = self.visible_at_ms
        return {
            "subject": self.subject,
            "group_id": self.group_id,
            "correlation_id": self.correlation_id,
            "reply_to": self.reply_to,
            "message_id": self.message_id,
            "content_type": self.content_type,
            "properties": StringMap(self.properties),
            "property_keys": tuple(sorted(self.properties, key=to_bytes)),
            "subject_parts": tuple(self.subject.split(".")) if self.subject else (),
            "body_size": len(self.body),
            "body_text": "",
            "body_json": {},
            "enqueued_at": enqueued_at,
            "visible_at": enqueued_at if visible is None else Time.from_millis(visible),
        }

    def _decoded(self) -> dict[str, Value]:
        if self.content_type and "json" not in self.content_type.lower():
            return {}
        try:
            decoded = from_json(from_bytes(self.body))
        except Fault:
            return {}
        return decoded if isinstance(decoded, dict) else {}


class Filter:
    """A compiled filter; immutable."""

    __slots__ = ("_reads", "program", "source")

    def __init__(self, source: str, program: Program | None) -> None:
        self.source = source
        self.program = program
        """None if the source is blank and every message matches."""
        names = program.names if program else frozenset()
        self._reads = READS_TEXT * ("body_text" in names) | READS_JSON * ("body_json" in names)

    def matches(self, sample: Sample, budget: Budget | None = None) -> bool:
        """Whether a message passes. Raises ExprRuntimeError, on which it must be taken not to.

        The filters that one publishing call evaluates should be given the same `budget`.
        """
        program = self.program
        if program is None:
            return True
        result: bool = program.run(sample.values(self._reads), budget)
        return result


def compile_filter(source: str) -> Filter:
    """Compile a filter; a blank one matches everything.

    Raises ExprSyntaxError if it is longer than `MAX_SOURCE_BYTES`, has too many nodes or is no
    expression, and ExprTypeError if the static check refuses it or its result is no boolean.
    """
    if is_blank(source):
        return Filter(source, None)
    size = len(source.encode("utf-8", "replace"))
    if size > MAX_SOURCE_BYTES:
        raise ExprSyntaxError(f"expression too long ({size} > {MAX_SOURCE_BYTES} bytes)")
    return Filter(source, compile(source, MESSAGE_ENV, expect=bool))
