"""What the user is told."""

from __future__ import annotations

import pytest

from mqlite.expr import (
    Env,
    ExprError,
    ExprRuntimeError,
    ExprSyntaxError,
    ExprTypeError,
    compile,
)
from mqlite.expr.message import MESSAGE_ENV, Sample, compile_filter
from mqlite.expr.suggest import nearest
from mqlite.expr.types import STRING


def refused(source: str) -> ExprError:
    with pytest.raises(ExprError) as caught:
        compile(source, MESSAGE_ENV)
    return caught.value


def test_layout_shows_the_line_and_the_column() -> None:
    error = refused("1 +\n  nope")
    assert (error.line, error.column, error.message) == (2, 3, "unknown name nope")
    assert str(error) == "unknown name nope (2:3)\n |   nope\n | ..^"


@pytest.mark.parametrize(
    ("source", "meant"),
    [
        ("subjcet", "subject"),
        ("subjects", "subject"),
        ("propertie.x", "properties"),
        ("messageId", "message_id"),
        ("body_jsn.amount > 1", "body_json"),
        ("Subject", "subject"),
        ('durations("1h")', "duration"),
        ("uper(subject)", None),
        ("startsWit(subject)", None),
        ("hour(1)", None),
        ("minuts(1)", "minutes"),
        ("$env.subjec", "subject"),
        ("let amount = 1; amunt", "amount"),
        ("nope", None),
        ("x", None),
    ],
)
def test_a_mistyped_name_gets_the_nearest_as_a_last_line(source: str, meant: str | None) -> None:
    error = refused(source)
    assert error.message.startswith("unknown name")
    last = str(error).split("\n")[-1]
    if meant is None:
        assert error.hint is None
        assert last.endswith("^")
    else:
        assert error.hint == last == f'did you mean "{meant}"?'


def test_nothing_is_near_to_a_name_of_few_letters() -> None:
    assert nearest("ab", ["abc", "b"]) is None
    assert nearest("LEN", ["len"]) == "len"


@pytest.mark.parametrize(
    ("source", "kind"),
    [
        ("1 +", ExprSyntaxError),
        ('"abc', ExprSyntaxError),
        ("subject == 1", ExprTypeError),
        ('subject matches "("', ExprTypeError),
        ("5 % 0 == 1", ExprTypeError),
    ],
)
def test_refusals_say_what_kind_they_are(source: str, kind: type[ExprError]) -> None:
    assert type(refused(source)) is kind


def test_a_filter_must_be_boolean() -> None:
    with pytest.raises(ExprTypeError, match=r"^expected bool, but got string$") as caught:
        compile_filter("subject")
    assert caught.value.line is None


def test_failures_name_the_place() -> None:
    program = compile("first[0] == 1", Env({"first": STRING.__class__("any", "unknown")}))
    with pytest.raises(ExprRuntimeError) as caught:
        program.run({"first": []})
    assert caught.value.column == 6
    assert "index out of range: 0 (array length is 0)" in str(caught.value)


def test_an_error_on_an_empty_line_has_nothing_to_show() -> None:
    error = refused("")
    assert str(error) == error.message == "unexpected token EOF"


@pytest.mark.parametrize(
    ("source", "position"),
    [
        ("indexOf(1, nope)", (1, 9)),
        ('replace(1, nope, "x")', (1, 12)),
        ("get(nope)", (1, 1)),
        ("upper(nope, 1)", (1, 7)),
    ],
)
def test_arguments_are_checked_as_they_are_asked_for(
    source: str, position: tuple[int, int]
) -> None:
    error = refused(source)
    assert (error.line, error.column) == position


@pytest.mark.parametrize(
    "source",
    [
        "body_json.f(len())",
        "body_json.f(hours())",
        "body_json.f(ceil(1, 2))",
        "body_json.l[len(1, 2):]",
        "$env?.[nope]",
        "body_json.f(nope)",
        "body_json.f(first())",
        "body_json.f(date())",
        "body_json.f(max(), concat(), median())",
    ],
)
def test_where_the_reference_does_not_check_it_fails_later(source: str) -> None:
    """Nothing is known of what is called, so its arguments are not looked at."""
    with pytest.raises(ExprRuntimeError):
        compile(source, MESSAGE_ENV).run(Sample(body=b'{"l": [1]}').values())


def test_messages_can_be_logged_whatever_they_quote() -> None:
    sample = Sample(body=b"\xff" * 100_000)
    with pytest.raises(ExprRuntimeError) as caught:
        compile_filter("int(body_text) == 1").matches(sample)
    assert len(caught.value.message) < 1100
    assert str(caught.value).encode()


def test_text_that_no_bytes_stand_for_is_no_danger() -> None:
    sample = Sample(subject="\ud800.x", properties={"\udfff": "\ud800"})
    for source in (
        'subject[1:] contains "x"',
        'subject matches "x"',
        "toJSON(properties) != upper(subject)",
        "property_keys[0] < subject",
    ):
        assert compile_filter(source).matches(sample) in (True, False)
