"""Command lines in Go's manner."""

from __future__ import annotations

import click
import pytest

from mqlite.cli.argv import Flag, HelpRequested, parse

OPTIONS: dict[str, click.Option] = {
    "max": click.Option(["--max"]),
    "group": click.Option(["--group"]),
    "all": Flag("--all", help=""),
}


@pytest.mark.parametrize(
    "args",
    [
        ["--max", "5"],
        ["-max", "5"],
        ["--max=5"],
        ["-max=5"],
    ],
)
def test_one_dash_or_two_and_a_value_apart_or_attached(args: list[str]) -> None:
    assert parse(args, OPTIONS) == (["--max=5"], [])


def test_a_boolean_takes_a_value_only_after_the_equals_sign() -> None:
    assert parse(["--all", "orders"], OPTIONS) == (["--all=true"], ["orders"])
    assert parse(["-all=false", "orders"], OPTIONS) == (["--all=false"], ["orders"])


def test_flags_and_positionals_mix() -> None:
    line = parse(["a", "--max", "5", "b", "-all", "c"], OPTIONS)
    assert line == (["--max=5", "--all=true"], ["a", "b", "c"])


def test_after_a_bare_dash_dash_everything_is_positional() -> None:
    line = parse(["--max=5", "--", "--all", "-h", "--", "-"], OPTIONS)
    assert line == (["--max=5"], ["--all", "-h", "--", "-"])


def test_the_value_of_a_flag_is_the_next_word_whatever_it_is() -> None:
    line = parse(["--max", "-1", "--group", "--", "--group", "--all"], OPTIONS)
    assert line == (["--max=-1", "--group=--", "--group=--all"], [])


def test_a_lone_dash_is_positional_and_a_negative_number_is_not() -> None:
    assert parse(["-"], OPTIONS).positionals == ["-"]
    with pytest.raises(click.NoSuchOption):
        parse(["-1"], OPTIONS)


@pytest.mark.parametrize("spelling", ["-h", "-help", "--help", "--h"])
def test_help_in_any_spelling(spelling: str) -> None:
    with pytest.raises(HelpRequested):
        parse(["orders", spelling], OPTIONS)


def test_an_unknown_flag_does_not_repeat_its_value() -> None:
    with pytest.raises(click.NoSuchOption) as caught:
        parse(["--tokn=secret"], OPTIONS)
    assert "secret" not in caught.value.format_message()


def test_a_flag_without_its_value() -> None:
    with pytest.raises(click.BadOptionUsage, match="--max"):
        parse(["--max"], OPTIONS)
