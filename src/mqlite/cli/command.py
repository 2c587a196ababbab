"""What every command has in common: its command line, its flags, and how it fails."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, Final

import click

from mqlite.cli import argv, streams
from mqlite.cli.connect import Session, choose_target
from mqlite.cli.hints import nearest
from mqlite.cli.output import FORMS, Output
from mqlite.cli.streams import CommandError
from mqlite.durations import MAX_MS, parse_duration
from mqlite.errors import MqliteError

Body = Callable[..., None]


class Command(click.Command):
    """A click command that reads Go-style command lines."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        options = {
            name.removeprefix("--"): param
            for param in self.params
            if isinstance(param, click.Option)
            for name in param.opts
        }
        line = argv.parse(args, options)
        self._check_arity(ctx, line.positionals)
        return super().parse_args(ctx, line.words())

    def get_help_option(self, ctx: click.Context) -> None:
        """None: `-h` is ours, since it may be spelled in any of Go's ways."""

    def _check_arity(self, ctx: click.Context, words: list[str]) -> None:
        given = len(words)
        wanted = [param for param in self.params if isinstance(param, click.Argument)]
        least = sum(param.required for param in wanted)
        most = given if any(param.nargs < 0 for param in wanted) else len(wanted)
        if not least <= given <= most:
            form = " ".join(param.make_metavar(ctx) for param in wanted) or "no arguments"
            count = "1 argument" if given == 1 else f"{given} arguments"
            hint = "; a boolean flag takes its value after '='" if words[-1:] in _BOOLEANS else ""
            raise CommandError(f"{ctx.info_name} takes {form}, got {count}{hint}")


class Integer(click.ParamType[int]):
    """An integer from `least` to `most`. What is no number is a misused flag; what is out
    of range is refused with the accepted values, never clamped."""

    name = "n"

    def __init__(self, least: int, most: int = MAX_MS) -> None:
        self.least = least
        self.most = most

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        try:
            number = int(value)
        except ValueError:
            self.fail(f"{value!r} is not an integer", param)
        if self.least <= number <= self.most:
            return number
        open_end = self.most == MAX_MS and number < self.least
        bounds = f"{self.least} or more" if open_end else f"{self.least} to {self.most}"
        raise CommandError(f"{_named(param)} must be {bounds}, got {number}")


class OneOf(click.ParamType[str | None]):
    """One of a few words; an empty one counts as not given."""

    name = "word"

    def __init__(self, *words: str) -> None:
        self.words = words

    def convert(
        self, value: str, param: click.Parameter | None, ctx: click.Context | None
    ) -> str | None:
        if value and value not in self.words:
            accepted = ", ".join(self.words[:-1]) + f" or {self.words[-1]}"
            raise CommandError(f"{_named(param)} must be {accepted}, got {value!r}")
        return value or None


class DurationText(click.ParamType[str]):
    """A duration in Go's syntax plus `d` and `w`; passed on as text."""

    name = "duration"

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        try:
            parse_duration(value)
        except ValueError:
            self.fail(f"{value!r} is not a duration such as 500ms, 30s, 1h30m, 7d or 2w", param)
        return value


class Value(click.Option):
    """An option that takes a value, described by the name of its kind."""

    def make_metavar(self, ctx: click.Context) -> str:
        return self.metavar or self.type.name


SEQ: Final = Integer(1)
DURATION: Final = DurationText()
_FORM: Final = OneOf(*FORMS)
_BOOLEANS: Final = (["true"], ["false"])


def option(*names: str, **settings: Any) -> Callable[[Body], Body]:
    """An option that takes a value."""
    return _declare(lambda: Value(names, **settings))


def flag(*names: str, help: str) -> Callable[[Body], Body]:
    """A boolean option; None when it was not given."""
    return _declare(lambda: argv.Flag(*names, help=help))


def positional(name: str, metavar: str, **settings: Any) -> Callable[[Body], Body]:
    return _declare(lambda: click.Argument([name], metavar=metavar, **settings))


def command(name: str, *, help: str) -> Callable[[Body], Command]:
    """A command that is not addressed to a store."""
    return click.command(name, cls=Command, help=help, options_metavar="[flags]")


def store_command(name: str, *, help: str) -> Callable[[Body], Command]:
    """A command on an embedded store or a broker; it is given a `Session` first."""

    def decorate(body: Body) -> Command:
        @wraps(body)
        def call(*, endpoint: str | None, token: str | None, output: str, **params: Any) -> None:
            body(Session(choose_target(endpoint, token), Output(output)), **params)

        made = command(name, help=help)(call)
        made.params.extend(_connection_options())
        return made

    return decorate


def _connection_options() -> list[click.Parameter]:
    return [
        Value(["--endpoint"], metavar="url", help="talk to this broker (or MQLITE_ENDPOINT)"),
        Value(["--token"], metavar="bearer", help="token for the broker (or MQLITE_TOKEN)"),
        Value(["--output"], type=_FORM, default="text", help="text or json"),
    ]


def _declare(make: Callable[[], click.Parameter]) -> Callable[[Body], Body]:
    def decorate(body: Body) -> Body:
        declared: list[click.Parameter] = body.__dict__.setdefault("__click_params__", [])
        declared.append(make())
        return body

    return decorate


def _named(param: click.Parameter | None) -> str:
    assert param is not None
    return param.opts[0] if isinstance(param, click.Option) else f"<{param.name}>"


def run(chosen: click.Command, name: str, args: list[str]) -> int:
    """Run one command; answers the exit code. Raises CommandError."""
    ctx = click.Context(chosen, info_name=f"mqlite {name}")
    try:
        with chosen.make_context(ctx.info_name, args) as ctx:
            chosen.invoke(ctx)
    except argv.HelpRequested:
        streams.note(chosen.get_help(ctx))
    except click.UsageError as error:
        if isinstance(error, click.BadParameter) and isinstance(error.param, click.Argument):
            raise CommandError(error.format_message()) from None
        streams.error(_misuse(error, chosen))
        streams.note(f"'{ctx.info_name} -h' lists the flags")
        return 2
    except MqliteError as error:
        raise CommandError(str(error)) from None
    except OSError as error:
        reason = error.strerror or str(error)
        where = f"{error.filename}: " if error.filename else ""
        raise CommandError(where + reason) from None
    return 0


def _misuse(error: click.UsageError, chosen: click.Command) -> str:
    if not isinstance(error, click.NoSuchOption):
        return error.format_message()
    flags = [name.lstrip("-") for param in chosen.params for name in param.opts if name[:1] == "-"]
    given = error.option_name
    return f"no such flag {given!r}{nearest(given.lstrip('-'), flags, '--')}"
