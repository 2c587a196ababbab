"""Usage, help and exit codes."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable

import pytest

import mqlite
from mqlite.cli import COMMANDS

from .conftest import Run


def test_help_names_every_command(cli: Run) -> None:
    printed = cli("help").out
    assert [name for name in COMMANDS if f"\n  {name}  " not in printed] == []


@pytest.mark.parametrize("spelling", ["help", "-h", "-help", "--help"])
def test_help_goes_to_stdout(cli: Run, spelling: str) -> None:
    result = cli(spelling)
    assert (result.code, result.err) == (0, "")
    assert result.out.startswith("Usage: mqlite <command>")


@pytest.mark.parametrize("spelling", ["version", "-v", "--version"])
def test_version(cli: Run, spelling: str) -> None:
    assert cli(spelling) == (0, f"mqlite {mqlite.__version__}\n", "")


@pytest.mark.parametrize("name", ["version", "help"])
def test_version_and_help_take_no_arguments(cli: Run, name: str) -> None:
    result = cli(name, "more")
    assert result.code == 1
    assert result.err == f"error: {name} takes no arguments, got 'more'\n"


def test_help_of_a_command_says_how_to_get_it(cli: Run) -> None:
    problem = "error: help takes no arguments, got 'receive'; try 'mqlite receive -h'\n"
    assert cli("help", "receive") == (1, "", problem)


def test_without_a_command_the_commands_are_listed(cli: Run) -> None:
    assert cli() == (2, cli("help").out, "error: no command given\n")


@pytest.mark.parametrize(
    ("args", "problem"),
    [
        (("nonsense",), "unknown command 'nonsense'"),
        (("recieve", "jobs"), "unknown command 'recieve', did you mean 'receive'?"),
        (("Creat-queue",), "unknown command 'Creat-queue', did you mean 'create-queue'?"),
        (("--output", "json", "list"), "the command comes before its flags, got '--output'"),
    ],
)
def test_an_unknown_command_is_two_lines(cli: Run, args: tuple[str, ...], problem: str) -> None:
    assert cli(*args) == (2, "", f"error: {problem}\n'mqlite help' lists the commands\n")


@pytest.mark.parametrize("name", [name for name, entry in COMMANDS.items() if entry.target])
def test_a_command_explains_its_flags_on_stderr(cli: Run, name: str) -> None:
    result = cli(*name.split(), "-h")
    assert (result.code, result.out) == (0, "")
    assert result.err.startswith(f"Usage: mqlite {name} [flags]")


@pytest.mark.parametrize(
    "name", sorted({name for name in COMMANDS if COMMANDS[name].target} - {"mcp"})
)
def test_data_and_admin_commands_take_the_connection_flags(cli: Run, name: str) -> None:
    flags = cli(*name.split(), "-h").err
    expected = name != "serve"
    assert all((flag in flags) is expected for flag in ("--endpoint", "--token", "--output"))


@pytest.mark.parametrize(
    ("args", "problem"),
    [
        (("list", "--nonsense"), "no such flag '--nonsense'"),
        (("receive", "q", "-mx", "5"), "no such flag '-mx', did you mean '--max'?"),
        (("create-queue", "q", "--dedupe=1h"), "no such flag '--dedupe', did you mean '--dedup'?"),
        (("receive", "q", "--max"), "Option '--max' requires a value."),
        (("receive", "q", "--max", "many"), "Invalid value for '--max': 'many' is not an integer"),
        (
            ("receive", "q", "--wait", "5"),
            "Invalid value for '--wait': '5' is not a duration such as 500ms, 30s, 1h30m, 7d or 2w",
        ),
        (("purge-dlq", "q", "--all=maybe"), "Invalid value for '--all': 'maybe' is not a valid"),
    ],
)
def test_a_flag_that_cannot_be_read_is_two_lines(
    cli: Run, args: tuple[str, ...], problem: str
) -> None:
    result = cli(*args)
    assert (result.code, result.out) == (2, "")
    first, second = result.err.splitlines()
    assert first.startswith(f"error: {problem}")
    assert second == f"'mqlite {args[0]} -h' lists the flags"


@pytest.mark.parametrize(
    ("args", "takes"),
    [
        (("create-queue",), "<name>, got 0"),
        (("create-queue", "a", "b"), "<name>, got 2"),
        (("subscribe", "topic"), "<topic> <name>, got 1"),
        (("unsubscribe", "topic"), "<topic> <name>, got 1"),
        (("receive",), "<queue>, got 0"),
        (("receive-deferred", "q", "1"), "<queue>, got 2"),
        (("peek", "q", "x"), "<queue>, got 2"),
        (("metrics",), "<queue>, got 0"),
        (("complete", "q", "1"), "<queue> <seq> <lock-token>, got 2"),
        (("cancel", "q"), "<queue> <seq>, got 1"),
        (("list", "x"), "no arguments, got 1"),
        (("list-subscriptions", "x"), "no arguments, got 1"),
        (("test-filter",), "<expr> [body], got 0"),
        (("test-filter", "true", "a", "b"), "<expr> [body], got 3"),
        (("status", "x"), "no arguments, got 1"),
        (("vacuum", "x"), "no arguments, got 1"),
        (("serve", "x"), "no arguments, got 1"),
        (("redrive", "a", "b"), "<queue>, got 2"),
        (("purge-dlq", "a", "b", "--all"), "<queue>, got 2"),
        (("send",), "<queue> <body>..., got 0"),
    ],
)
def test_exact_arity(cli: Run, args: tuple[str, ...], takes: str) -> None:
    count = "argument" if takes.endswith(" 1") else "arguments"
    assert cli(*args) == (1, "", f"error: mqlite {args[0]} takes {takes} {count}\n")


def test_a_boolean_with_its_value_apart_is_told_where_it_goes(cli: Run) -> None:
    result = cli("create-queue", "q", "--dead-letter-on-expire", "false")
    assert result.code == 1
    assert result.err.endswith("got 2 arguments; a boolean flag takes its value after '='\n")


@pytest.mark.parametrize(
    ("args", "problem"),
    [
        (("receive", "q", "--max", "0"), "--max must be 1 to 256, got 0"),
        (("receive", "q", "--max", "257"), "--max must be 1 to 256, got 257"),
        (("receive", "q", "--wait", "21s"), "--wait must be 0 to 20s, got '21s'"),
        (("receive", "q", "--wait", "-1s"), "--wait must be 0 to 20s, got '-1s'"),
        (("peek", "q", "--max", "1001"), "--max must be 1 to 1000, got 1001"),
        (("peek", "q", "--state", "lost"), "--state must be active, locked, deferred, scheduled"),
        (("send", "q", "x", "--priority", "1001"), "--priority must be -1000 to 1000, got 1001"),
        (("list", "--output", "xml"), "--output must be text or json, got 'xml'"),
        (("create-queue", "q", "--ordering", "lifo"), "--ordering must be standard, group_fifo"),
        (("redrive", "q", "--max", "-1"), "--max must be 0 or more, got -1"),
        (("cancel", "q", "0"), "<seq> must be 1 or more, got 0"),
        (("complete", "q", "x", "token"), "'x' is not an integer"),
        (("receive", "q", "--no-ack", "--delete"), "--no-ack and --delete exclude each other"),
    ],
)
def test_a_value_out_of_range_is_refused_naming_what_is_accepted(
    cli: Run, args: tuple[str, ...], problem: str
) -> None:
    result = cli(*args)
    assert (result.code, result.out) == (1, "")
    assert problem in result.err
    assert result.err.count("\n") == 1


def test_an_error_of_the_queue_is_one_line(cli: Run) -> None:
    result = cli("send", "nowhere\x1b[31m", "x")
    assert result.code == 1
    assert result.err.startswith("error: ")
    assert result.err.count("\n") == 1
    assert "\x1b" not in result.err


def test_the_exit_code_of_the_process(
    process: Callable[..., subprocess.CompletedProcess[str]],
) -> None:
    assert process("list").returncode == 0
    assert process("send", "nowhere", "x").returncode == 1
    assert process("list", "--nonsense").returncode == 2


@pytest.mark.parametrize("args", [("help",), ("version",), ("list",), ()])
def test_a_pipe_that_nobody_reads_is_one_line(args: tuple[str, ...]) -> None:
    read, write = os.pipe()
    os.close(read)
    command = [sys.executable, "-m", "mqlite", *args]
    result = subprocess.run(command, stdout=write, stderr=subprocess.PIPE, text=True, timeout=60)
    os.close(write)
    assert result.returncode == 1
    assert result.stderr.endswith("error: cannot write to standard output: Broken pipe\n")
    assert "Traceback" not in result.stderr
    assert "Exception ignored" not in result.stderr
