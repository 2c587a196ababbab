"""What is taken out of the text of an error before it is kept."""

from __future__ import annotations

import pytest

from mqlite.observation.redaction import MAX_CHARS, redacted


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("cannot reach libsql://db-name.turso.io:8080/path?x=1 now", "cannot reach [url] now"),
        ("Authorization: Bearer abc.def", "Authorization: [redacted] [redacted]"),
        ("sent Bearer abc.def, twice", "sent Bearer [redacted], twice"),
        ("token=abc, api_key: 1", "token=[redacted], api_key: [redacted]"),
        ("password='two words' next", "password=[redacted] next"),
        ('{"secret": "two words", "n": 1}', '{"secret": [redacted], "n": 1}'),
        ("password='cut off in the mid", "password=[redacted]"),
        ("the key mqk_0123456789abcdef0123 is", "the key [redacted] is"),
        ("eyJhbGciOiJ9.eyJzdWIiOiIx.sig rest", "[redacted] rest"),
        ("digest " + "ab" * 20, "digest [redacted]"),
        ("no such table: mqlite_messages", "no such table: mqlite_messages"),
        ("two\nlines", "two lines"),
        ("MQLITE_TOKENS=one,two is set", "MQLITE_TOKENS=[redacted] is set"),
        ("token=abc,limit=5", "token=[redacted],limit=5"),
        ("tokens=['one', 'two'] next", "tokens=[redacted] next"),
        ('{"password": "a\\"b c", "n": 1}', '{"password": [redacted], "n": 1}'),
        ("secret => abc", "secret => [redacted]"),
        (
            "passphrase=a private_key=b cookie: c",
            "passphrase=[redacted] private_key=[redacted] cookie: [redacted]",
        ),
        ("_http://u:p@h -http://u:p@h", "_[url] -[url]"),
    ],
)
def test_what_looks_like_a_secret_is_taken_out(text: str, kept: str) -> None:
    assert redacted(text) == kept


def test_a_long_text_is_gone_through_once() -> None:
    """From each of its words on it took a second or more, and a sender may wait for it. So many
    texts would not end before a test is taken to hang."""
    for number in range(500):
        redacted(f"{number}-" + "a-" * 4000)


def test_a_text_of_any_length_is_kept_short() -> None:
    assert len(redacted("word " * 1_000_000)) == MAX_CHARS
