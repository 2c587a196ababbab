"""A position in the tokens of a source, and the node budget of the tree made from them."""

from __future__ import annotations

from typing import TypeVar

from .errors import ExprSyntaxError
from .lexer import EOF, Token, tokenize
from .nodes import Node

__all__ = ["Cursor"]

N = TypeVar("N", bound=Node)


class Cursor:
    """What the parser reads from. All errors it raises are ExprSyntaxError."""

    def __init__(self, source: str, max_nodes: int) -> None:
        self.source = source
        self.unread = tokenize(source)
        self.tokens: list[Token] = []
        self.at = 0
        self.nodes_left = max_nodes

    @property
    def current(self) -> Token:
        """The next token; read from the source only now, so that errors come in order."""
        if self.at == len(self.tokens):
            self.tokens.append(next(self.unread))
        return self.tokens[self.at]

    def advance(self) -> Token:
        """Take the next token, whatever it is; there must be one."""
        token = self.current
        if token.kind == EOF:
            raise self.error("unexpected end of expression")
        self.at += 1
        return token

    def sees(self, kind: str, value: str) -> bool:
        """Whether this token comes next."""
        token = self.current
        return token.kind == kind and token.value == value

    def accept(self, kind: str, value: str) -> bool:
        """Take this token if it comes next."""
        seen = self.sees(kind, value)
        self.at += seen
        return seen

    def expect(self, kind: str, value: str | None = None) -> Token:
        """Take a token that must come next."""
        token = self.current
        if token.kind != kind or (value is not None and token.value != value):
            raise self.unexpected()
        self.at += 1
        return token

    def error(self, message: str, token: Token | None = None) -> ExprSyntaxError:
        """An error at a token, the next one by default."""
        return ExprSyntaxError(message, self.source, (token or self.current).offset)

    def unexpected(self) -> ExprSyntaxError:
        """The error that the next token fits no rule."""
        return self.error(f"unexpected token {self.current}")

    def made(self, node: N, cost: int = 1) -> N:
        """Charge a new node to the budget (spec 15.1)."""
        self.nodes_left -= cost
        if self.nodes_left < 0:
            raise self.error("compilation failed: expression exceeds maximum allowed nodes")
        return node
