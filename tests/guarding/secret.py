"""What is a secret, and whether a text holds one, plain, cut short or in another spelling."""

from __future__ import annotations

import binascii
import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import Any, Final
from urllib.parse import parse_qs, unquote, urlsplit

_OF_A_KEY: Final = re.compile(r"mqk_[0-9a-f]{16,}")
"""The token of an access key, or one that `serve` made up: more than a glimpse of it."""

_IN_A_URL: Final = re.compile(r"://(?!\[?token@)[^\s/?#@'\"<>]+@")
"""Whoever writes it. (The help and the errors show `mqlite://token@host` as an example.)"""

_SHORTEST: Final = 8
_TELLING: Final = 12
"""So many characters of a longer token are as bad as all of it."""

_BASE64: Final = re.compile(r"[A-Za-z0-9+/_-]{11,}")
_URL_SAFE: Final = str.maketrans("-_", "+/")
_SHOWN_BEFORE: Final = 60

_known: set[str] = set()


def learn(tokens: Iterable[Any]) -> None:
    """These are secrets from here on. Short words are not, or everything would hold one."""
    for token in tokens:
        if not isinstance(token, str):
            continue
        token = token.strip().lower()
        if len(token) >= _SHORTEST or re.match("mqk_.", token):
            _known.add(token if len(token) < _TELLING + 4 else token[:_TELLING])


def credentials(url: str) -> list[str]:
    """What is secret of a URL: the password or the token before the host, and the values of
    options that are called so."""
    with suppress(ValueError):
        parts = urlsplit(url)
        options = parse_qs(parts.query)
        named = [options[name] for name in options if re.search("(?i)token|password", name)]
        userinfo = parts.netloc.rpartition("@")[0]
        return [unquote(userinfo.rpartition(":")[2]), *(value for each in named for value in each)]
    return []


def before_one(text: str) -> str | None:
    """What stands before the first secret that is found in the text; None without any."""
    for reading in _readings(text):
        for at in _places(reading):
            return reading[max(at - _SHOWN_BEFORE, 0) : at]
    return None


def _places(text: str) -> Iterator[int]:
    lower = text.lower()
    yield from (at for token in tuple(_known) if (at := lower.find(token)) >= 0)
    yield from (match.start() for match in _OF_A_KEY.finditer(lower))
    if "://" in text:
        yield from (match.start() + len("://") for match in _IN_A_URL.finditer(text))


def _readings(text: str) -> Iterator[str]:
    """The text, and what it says to who undoes percent signs and base64."""
    yield text
    if "%" in text:
        yield unquote(text)
    if runs := _BASE64.findall(text):
        yield "\n".join(_decoded(run[skipped:]) for run in runs for skipped in range(4))


def _decoded(run: str) -> str:
    """From the first character on, which may not be where it began: that is tried four times."""
    padded = run.translate(_URL_SAFE) + "A" * (-len(run) % 4)
    return binascii.a2b_base64(padded).decode("latin-1")
