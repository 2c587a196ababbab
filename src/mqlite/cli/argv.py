"""Command lines in Go's manner, put into the one form that click reads without doubt.

Long flags take one dash or two, `--flag value` or `--flag=value`; a boolean takes a value
only after `=`; flags and positionals mix until a bare `--`; the value of a flag is the
next word, whatever it looks like.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import click


class Flag(click.Option):
    """A boolean option: `--all`, `--all=false`. None when it was not given."""

    def __init__(self, *names: str, help: str) -> None:
        super().__init__(names, type=click.BOOL, help=help)

    def get_help_record(self, ctx: click.Context) -> tuple[str, str]:
        return self.opts[0], self.help or ""


class HelpRequested(Exception):
    """The command line asks for the command's flags."""


class CommandLine(NamedTuple):
    """A command line taken apart: `--name=value` words, and what is not a flag."""

    flags: list[str]
    positionals: list[str]

    def words(self) -> list[str]:
        return [*self.flags, "--", *self.positionals]


def parse(args: Sequence[str], options: dict[str, click.Option]) -> CommandLine:
    """Take `args` apart. `options` maps names without dashes.

    Raises HelpRequested, and click's NoSuchOption and BadOptionUsage.
    """
    line = CommandLine([], [])
    rest = iter(args)
    for word in rest:
        if word == "--":
            line.positionals.extend(rest)
        elif word == "-" or not word.startswith("-"):
            line.positionals.append(word)
        else:
            name, equals, value = word.removeprefix("-").removeprefix("-").partition("=")
            option = _option(word, name, options)
            if not equals:
                value = "true" if isinstance(option, Flag) else _next(rest, name)
            line.flags.append(f"--{name}={value}")
    return line


def _option(word: str, name: str, options: dict[str, click.Option]) -> click.Option:
    if name in options:
        return options[name]
    if name in ("h", "help"):
        raise HelpRequested
    raise click.NoSuchOption(word.partition("=")[0])


def _next(rest: Iterator[str], name: str) -> str:
    try:
        return next(rest)
    except StopIteration:
        raise click.BadOptionUsage(name, f"Option '--{name}' requires a value.") from None
