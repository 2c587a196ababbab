"""What a terminal gets to see, and nothing else does."""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout

import pytest

from mqlite.cli import streams
from mqlite.cli.deadletters import in_chunks
from mqlite.cli.output import Output, quoted, shown
from mqlite.model import MoveResult


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@contextmanager
def terminal() -> Iterator[Terminal]:
    """Both output streams are one terminal."""
    screen = Terminal()
    with redirect_stdout(screen), redirect_stderr(screen):
        yield screen


def test_colour_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    with terminal() as screen:
        Output("text").done(action="pause", queue="q")
        streams.error("bad")
        monkeypatch.setenv("NO_COLOR", "1")
        streams.warn("plain")
    assert screen.getvalue() == (
        "\x1b[32mok:\x1b[0m action=pause queue=q\n\x1b[31merror:\x1b[0m bad\nwarning: plain\n"
    )


def test_progress_on_a_terminal_is_gone_at_the_end() -> None:
    with terminal() as screen:
        in_chunks("redriving", MoveResult, limit=2500)
    assert screen.getvalue().split("\r\x1b[K") == [
        "",
        "redriving 1,000 of 2,500",
        "redriving 2,000 of 2,500",
        "redriving 2,500 of 2,500",
        "",
    ]


def test_no_colour_and_no_progress_elsewhere(capsys: pytest.CaptureFixture[str]) -> None:
    Output("text").done(queue="q")
    in_chunks("redriving", MoveResult, limit=2500)
    streams.error("bad")
    assert capsys.readouterr() == ("ok: queue=q\n", "error: bad\n")


@pytest.mark.parametrize(
    ("body", "text"),
    [
        (b"", '""'),
        (b"plain", '"plain"'),
        (b'a"b\\c', r'"a\"b\\c"'),
        (b"\a\b\f\n\r\t\v", r'"\a\b\f\n\r\t\v"'),
        (b"\x00\x1b\x7f", r'"\x00\x1b\x7f"'),
        (b"\xff\xc3", r'"\xff\xc3"'),
        ("é日🐝".encode(), '"é日🐝"'),
        ("\u00a0\u200b\U000e0001".encode(), r'"\u00a0\u200b\U000e0001"'),
    ],
)
def test_bodies_are_quoted_as_go_quotes_them(body: bytes, text: str) -> None:
    assert quoted(body) == text


@pytest.mark.parametrize(
    ("value", "text"), [("plain", "plain"), ("a b", '"a b"'), ("a\nb", r'"a\nb"'), (5, "5")]
)
def test_values_that_would_break_the_line_are_quoted(value: str | int, text: str) -> None:
    assert shown(value) == text
