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
    ],
)
def test_what_looks_like_a_secret_is_taken_out(text: str, kept: str) -> None:
    assert redacted(text) == kept


def test_a_text_of_any_length_is_kept_short() -> None:
    assert len(redacted("word " * 1_000_000)) == MAX_CHARS
