"""Builtins on strings."""

from __future__ import annotations

from collections.abc import Callable

from mqlite.expr.arithmetic import to_int
from mqlite.expr.budget import MEMORY_BUDGET, Budget
from mqlite.expr.errors import Fault
from mqlite.expr.text import (
    WHITE_SPACE,
    byte_offset,
    from_bytes,
    joined,
    replace_broken,
    same_domain,
)
from mqlite.expr.types import ARRAY, BOOL, INT, STRING, STRINGS
from mqlite.expr.values import NIL_STRINGS, Value, go_name

from .arguments import need_string
from .registry import builtin, signature

_ONE = signature(STRING, gives=STRING)
_TWO = signature(STRING, STRING, gives=STRING)

# Greek letters with an iota below: their capital is one character, but not to `str.upper`.
_IOTA_CAPITALS = {
    **{code: code + 8 for start in (0x1F80, 0x1F90, 0x1FA0) for code in range(start, start + 8)},
    **{0x1FB3: 0x1FBC, 0x1FC3: 0x1FCC, 0x1FF3: 0x1FFC},
}


@builtin("trim", _ONE, _TWO)
def trim(budget: Budget, text: Value, chars: Value = WHITE_SPACE) -> str:
    """The text without white space, or without the given characters, at its ends."""
    text, chars = need_string(text), need_string(chars)
    budget.build(len(text))
    return str(text.strip(chars))


@builtin("trimPrefix", _TWO, _ONE)
def trim_prefix(budget: Budget, text: Value, prefix: Value = " ") -> str:
    """The text without a prefix."""
    whole, part = same_domain(need_string(text), need_string(prefix))
    budget.read(whole)
    return _text(whole.removeprefix(part))


@builtin("trimSuffix", _TWO, _ONE)
def trim_suffix(budget: Budget, text: Value, suffix: Value = " ") -> str:
    """The text without a suffix."""
    whole, part = same_domain(need_string(text), need_string(suffix))
    budget.read(whole)
    return _text(whole.removesuffix(part))


def _text(text: str | bytes) -> str:
    return from_bytes(text) if isinstance(text, bytes) else text


@builtin("upper", _ONE)
def upper(budget: Budget, text: Value) -> str:
    """The text in capitals, character by character."""
    return _mapped(budget, need_string(text), str.upper, _upper)


@builtin("lower", _ONE)
def lower(budget: Budget, text: Value) -> str:
    """The text in small letters, character by character."""
    return _mapped(budget, need_string(text), str.lower, _lower)


def _mapped(
    budget: Budget, text: str, whole: Callable[[str], str], one: Callable[[str], str]
) -> str:
    budget.build(len(text))
    if text.isascii():
        return whole(text)
    return "".join(map(one, replace_broken(text)))


def _upper(char: str) -> str:
    if ord(char) in _IOTA_CAPITALS:
        return chr(_IOTA_CAPITALS[ord(char)])
    capital = char.upper()
    return capital if len(capital) == 1 else char


def _lower(char: str) -> str:
    if char == "İ":
        return "i"
    small = char.lower()
    return small if len(small) == 1 else char


_SPLIT = (
    signature(STRING, STRING, gives=STRINGS),
    signature(STRING, STRING, INT, gives=STRINGS),
)


@builtin("split", *_SPLIT)
def split(budget: Budget, text: Value, separator: Value, count: Value = -1) -> Value:
    """The pieces of a text between separators."""
    return _split(budget, need_string(text), need_string(separator), to_int(count), keep=False)


@builtin("splitAfter", *_SPLIT)
def split_after(budget: Budget, text: Value, separator: Value, count: Value = -1) -> Value:
    """The pieces of a text, each with the separator after it."""
    return _split(budget, need_string(text), need_string(separator), to_int(count), keep=True)


def _split(budget: Budget, text: str, separator: str, count: int, *, keep: bool) -> Value:
    if count == 0:
        return NIL_STRINGS
    budget.read(text)
    if not separator:
        return _characters(budget, text, count)
    whole, part = same_domain(text, separator)
    budget.visit(whole.count(part) + 1)
    pieces = whole.split(part, count - 1 if count > 0 else -1)
    if keep:
        pieces[:-1] = [piece + part for piece in pieces[:-1]]
    return tuple(map(_text, pieces))


def _characters(budget: Budget, text: str, count: int) -> tuple[str, ...]:
    budget.visit(len(text))
    if count < 0 or count >= len(text):
        return tuple(text)
    return (*text[: count - 1], text[count - 1 :])


@builtin(
    "replace",
    signature(STRING, STRING, STRING, gives=STRING),
    signature(STRING, STRING, STRING, INT, gives=STRING),
)
def replace(budget: Budget, text: Value, old: Value, new: Value, count: Value = -1) -> str:
    """The text with some or all occurrences of a part replaced."""
    text, old, new = need_string(text), need_string(old), need_string(new)
    limit = to_int(count)
    whole, part, other = same_domain(text, old, new)
    found = whole.count(part)
    replaced = found if limit < 0 else min(found, limit)
    budget.build(len(whole) + replaced * len(other))
    return joined(_text(whole.replace(part, other, replaced)))


@builtin("repeat", signature(STRING, INT, gives=STRING))
def repeat(budget: Budget, text: Value, count: Value) -> str:
    """The text several times in a row."""
    text, times = need_string(text), to_int(count)
    if times < 0:
        raise Fault(f"invalid argument for repeat (expected positive integer, got {times})")
    if times > MEMORY_BUDGET:
        raise Fault("memory budget exceeded")
    budget.grow(byte_offset(text, len(text)) * times)
    return joined(text * times)


@builtin(
    "join",
    signature(ARRAY, STRING, gives=STRING),
    signature(STRINGS, STRING, gives=STRING),
    signature(ARRAY, gives=STRING),
    signature(STRINGS, gives=STRING),
)
def join(budget: Budget, parts: Value, separator: Value = "") -> str:
    """The strings of an array, one after the other."""
    separator = need_string(separator)
    if type(parts) is not tuple and not isinstance(parts, list):
        raise Fault(f"invalid argument for join (type {go_name(parts)})")
    budget.visit(len(parts))
    strings = [need_string(part) for part in parts]
    budget.build(sum(map(len, strings)) + len(separator) * len(strings))
    return joined(separator.join(strings))


_POSITION = signature(STRING, STRING, gives=INT)
_TEST = signature(STRING, STRING, gives=BOOL)


@builtin("indexOf", _POSITION)
def index_of(budget: Budget, text: Value, part: Value) -> int:
    """The byte offset of the first occurrence, or -1."""
    return _position(budget, need_string(text), need_string(part), last=False)


@builtin("lastIndexOf", _POSITION)
def last_index_of(budget: Budget, text: Value, part: Value) -> int:
    """The byte offset of the last occurrence, or -1."""
    return _position(budget, need_string(text), need_string(part), last=True)


def _position(budget: Budget, text: str, part: str, *, last: bool) -> int:
    budget.read(text)
    whole, wanted = same_domain(text, part)
    at = whole.rfind(wanted) if last else whole.find(wanted)
    return byte_offset(text, at) if isinstance(whole, str) and at > 0 else at


@builtin("hasPrefix", _TEST)
def has_prefix(budget: Budget, text: Value, part: Value) -> bool:
    """Whether the text starts with a part."""
    whole, wanted = same_domain(need_string(text), need_string(part))
    budget.read(whole)
    return bool(whole.startswith(wanted))


@builtin("hasSuffix", _TEST)
def has_suffix(budget: Budget, text: Value, part: Value) -> bool:
    """Whether the text ends with a part."""
    whole, wanted = same_domain(need_string(text), need_string(part))
    budget.read(whole)
    return bool(whole.endswith(wanted))
