"""The errors a user of the language can see, and how they are laid out (spec section 16)."""

from __future__ import annotations

from .text import replace_broken

__all__ = ["ExprError", "ExprRuntimeError", "ExprSyntaxError", "ExprTypeError", "Fault"]


class ExprError(Exception):
    """An expression was refused or failed.

    `message` is the bare sentence; `line` and `column` (code points, from 1) say where, or are
    None where the language gives no position; `str()` is the whole text with the source excerpt,
    and `hint`, if any, as its last line.
    """

    def __init__(
        self,
        message: str,
        source: str = "",
        offset: int | None = None,
        hint: str | None = None,
    ) -> None:
        message = _presentable(message)
        self.message = message
        self.hint = hint
        self.line: int | None = None
        self.column: int | None = None
        text = message
        if offset is not None:
            self.line, self.column = line_and_column(source, offset)
            text = _layout(message, source, self.line, self.column)
        super().__init__(text if hint is None else f"{text}\n{hint}")


class ExprSyntaxError(ExprError):
    """The text is not an expression: bad characters, bad grammar, or over a limit."""


class ExprTypeError(ExprError):
    """The expression can be parsed but was refused by the static check."""


class ExprRuntimeError(ExprError):
    """The expression was accepted, but this evaluation failed."""


class Fault(Exception):
    """A failure inside an evaluation, on its way to becoming an `ExprRuntimeError`.

    Operations on values know no source positions; whoever applies them for a node of the tree
    adds the node's offset. The innermost offset wins.
    """

    def __init__(self, message: str, offset: int | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.offset = offset

    def at(self, offset: int) -> Fault:
        """Note where the fault happened, unless that is already known; returns the fault."""
        if self.offset is None:
            self.offset = offset
        return self


_LONGEST_MESSAGE = 1000


def _presentable(message: str) -> str:
    """A message that can be logged, whatever the value it quotes."""
    if len(message) > _LONGEST_MESSAGE:
        message = f"{message[:_LONGEST_MESSAGE]}…"
    return replace_broken(message)


def line_and_column(source: str, offset: int) -> tuple[int, int]:
    """The 1-based line and column of an offset; only LF ends a line."""
    line = source.count("\n", 0, offset) + 1
    return line, offset - (source.rfind("\n", 0, offset) + 1) + 1


def _layout(message: str, source: str, line: int, column: int) -> str:
    shown = source.split("\n")[line - 1].replace("\t", " ")
    if not shown:
        return message
    return f"{message} ({line}:{column})\n | {shown}\n | {'.' * (column - 1)}^"
