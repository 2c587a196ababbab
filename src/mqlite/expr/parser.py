"""Tokens to a syntax tree (spec section 3).

The methods are generators that yield the parts they descend into (see `trampoline`), so nesting is
limited by memory, never by the stack.
"""

from __future__ import annotations

from collections.abc import Container

from . import trampoline
from .cursor import Cursor
from .lexer import BRACKET, BYTES, EOF, IDENTIFIER, NUMBER, OPERATOR, STRING, Token
from .literals import number_value
from .nodes import (
    Array,
    Binary,
    Builtin,
    Call,
    Chain,
    Conditional,
    Let,
    Literal,
    Map,
    Member,
    Name,
    Node,
    Pair,
    Pointer,
    Predicate,
    Recall,
    Remember,
    Sequence,
    Slice,
    Unary,
)
from .operators import BINARY, COMPARISONS, NEGATABLE, RIGHT_ASSOCIATIVE, UNARY
from .trampoline import Steps

__all__ = ["PREDICATE_BUILTINS", "parse"]

# The builtins that take a body; what follows it is an optional last argument.
PREDICATE_BUILTINS: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(
        ["all", "none", "any", "one", "filter", "map", "find", "findIndex", "findLast"],
        ("value", "predicate"),
    ),
    **dict.fromkeys(["findLastIndex", "groupBy"], ("value", "predicate")),
    **dict.fromkeys(["count", "sum"], ("value", "predicate?")),
    **dict.fromkeys(["sortBy", "reduce"], ("value", "predicate", "value?")),
}

_NAMED_LITERALS = {"true": True, "false": False, "nil": None}

_KEY_EXPECTED = (
    "a map key must be a quoted string, a number, a identifier, "
    "or an expression enclosed in parentheses"
)


def parse(
    source: str, *, builtins: Container[str], overridden: Container[str] = (), max_nodes: int
) -> Node:
    """The tree of a source text.

    A call of a name in `builtins` is a builtin call, unless the environment overrides it.
    Raises ExprSyntaxError at the first token that fits no rule, or when the tree grows beyond
    `max_nodes` nodes.
    """
    parser = _Parser(source, builtins, overridden, max_nodes)
    return trampoline.run(parser.program())


class _Parser(Cursor):
    def __init__(
        self, source: str, builtins: Container[str], overridden: Container[str], max_nodes: int
    ) -> None:
        super().__init__(source, max_nodes)
        self.builtins = builtins
        self.overridden = overridden
        self.predicate_depth = 0

    # -- sequences and statements ----------------------------------------------------------

    def program(self) -> Steps[Node]:
        node: Node = yield self.sequence()
        if self.current.kind != EOF:
            raise self.unexpected()
        return node

    def sequence(self) -> Steps[Node]:
        start = self.current.offset
        items: list[Node] = [(yield self.expression())]
        while self.accept(OPERATOR, ";"):
            if self.current.kind == EOF:
                break
            items.append((yield self.expression()))
        if len(items) == 1:
            return items[0]
        return self.made(Sequence(items, pos=start))

    def expression(self, precedence: int = 0) -> Steps[Node]:
        node: Node
        if precedence > 0:
            node = yield self.operation(precedence)
        elif self.accept(OPERATOR, "let"):
            node = yield self.let()
        elif self.accept(OPERATOR, "if"):
            node = yield self.if_else()
        else:
            operation: Node = yield self.operation(0)
            node = yield self.conditional(operation)
        return node

    def let(self) -> Steps[Node]:
        name = self.expect(IDENTIFIER)
        self.expect(OPERATOR, "=")
        value: Node = yield self.expression()
        self.expect(OPERATOR, ";")
        body: Node = yield self.sequence()
        return self.made(Let(name.value, value, body, pos=name.offset))

    def if_else(self) -> Steps[Node]:
        condition: Node = yield self.expression()
        then: Node = yield self.block()
        self.expect(OPERATOR, "else")
        otherwise: Node
        if self.accept(OPERATOR, "if"):
            otherwise = yield self.if_else()
        else:
            otherwise = yield self.block()
        return Conditional(condition, then, otherwise)

    def block(self) -> Steps[Node]:
        self.expect(BRACKET, "{")
        body: Node = yield self.sequence()
        self.expect(BRACKET, "}")
        return body

    # -- operators -------------------------------------------------------------------------

    def conditional(self, node: Node) -> Steps[Node]:
        while self.accept(OPERATOR, "?"):
            then: Node | None = None
            if not self.accept(OPERATOR, ":"):
                then = yield self.expression()
                self.expect(OPERATOR, ":")
            otherwise: Node = yield self.expression()
            node = self.made(Conditional(node, then, otherwise, pos=self.current.offset))
        return node

    def operation(self, precedence: int) -> Steps[Node]:
        """An operand and the infix operators after it that bind at least this tightly."""
        left: Node = yield self.operand()
        previous = ""
        while (taken := self.infix(precedence)) is not None:
            token, negation = taken
            if token.value == "|":
                left = yield self.call(self.expect(IDENTIFIER), [left])
            elif previous == "??" and token.value != "??":
                raise self.error(
                    f"Operator ({token.value}) and coalesce expressions (??) cannot be mixed. "
                    "Wrap either by parentheses.",
                    token,
                )
            elif token.value in COMPARISONS:
                left = yield self.comparison(left, token)
            else:
                left = yield self.binary(left, token)
                if negation is not None:
                    left = self.made(Unary("not", left, pos=negation.offset))
            previous = token.value
        return left

    def infix(self, precedence: int) -> tuple[Token, Token | None] | None:
        """Take the next infix operator, and the `not` before it, if it binds tightly enough."""
        if self.current.kind != OPERATOR:
            return None
        negation = self.current if self.accept(OPERATOR, "not") else None
        token = self.current
        if negation is not None and not (token.kind == OPERATOR and token.value in NEGATABLE):
            raise self.unexpected()
        if BINARY.get(token.value, -1) < precedence:
            self.at -= negation is not None
            return None
        self.at += 1
        return token, negation

    def binary(self, left: Node, token: Token) -> Steps[Node]:
        precedence = BINARY[token.value] + (token.value not in RIGHT_ASSOCIATIVE)
        right: Node = yield self.expression(precedence)
        return self.made(Binary(token.value, left, right, pos=token.offset))

    def comparison(self, left: Node, token: Token) -> Steps[Node]:
        """`a < b <= c`: each comparison but the first is joined on by `&&`."""
        whole: Node | None = None
        while True:
            right: Node = yield self.expression(BINARY[token.value] + 1)
            following = self.current
            chained = following.kind == OPERATOR and following.value in COMPARISONS
            middle = Remember(right, pos=right.pos) if chained else None
            compared = self.made(Binary(token.value, left, middle or right, pos=token.offset))
            if whole is None:
                whole = compared
            else:
                whole = self.made(Binary("&&", whole, compared, pos=token.offset))
            if middle is None:
                return whole
            left = Recall(middle, pos=right.pos)
            token = self.advance()

    def operand(self) -> Steps[Node]:
        token = self.current
        if token.kind == OPERATOR and token.value in UNARY:
            self.at += 1
            operand: Node = yield self.expression(UNARY[token.value])
            return self.made(Unary(token.value, operand, pos=token.offset))
        node: Node
        if self.accept(BRACKET, "("):
            node = yield self.sequence()
            self.expect(BRACKET, ")")
        elif self.predicate_depth and token.kind == OPERATOR and token.value in ("#", "."):
            node = self.pointer()
        elif self.accept(OPERATOR, "::"):
            node = yield self.call(self.expect(IDENTIFIER), [], overridable=False)
        elif token.kind == NUMBER:
            return self.number()
        elif token.kind == IDENTIFIER and token.value in _NAMED_LITERALS:
            self.at += 1
            return self.made(Literal(_NAMED_LITERALS[token.value], pos=token.offset))
        else:
            node = yield self.primary()
        postfixed: Node = yield self.postfix(node)
        return postfixed

    # -- primaries -------------------------------------------------------------------------

    def pointer(self) -> Node:
        # The dot of `.name` is left for the postfix: `.name` is `#.name`.
        start = self.current.offset
        name = ""
        if self.accept(OPERATOR, "#") and self.current.kind == IDENTIFIER:
            name = self.advance().value
        return self.made(Pointer(name, pos=start))

    def number(self) -> Node:
        token = self.advance()
        try:
            value = number_value(token.value)
        except ValueError as problem:
            raise self.error(str(problem)) from None
        return self.made(Literal(value, pos=token.offset))

    def primary(self) -> Steps[Node]:
        token = self.current
        node: Node
        if self.accept(BRACKET, "["):
            items: list[Node] = yield self.items()
            node = self.made(Array(items, pos=token.offset))
        elif self.accept(BRACKET, "{"):
            node = yield self.map(token)
        elif token.kind == STRING:
            self.at += 1
            node = self.made(Literal(token.value, pos=token.offset))
        elif token.kind == BYTES:
            self.at += 1
            node = self.made(Literal(token.payload, pos=token.offset))
        elif token.kind == IDENTIFIER:
            self.at += 1
            if self.sees(BRACKET, "("):
                node = yield self.call(token, [])
            else:
                node = self.made(Name(token.value, pos=token.offset))
        else:
            raise self.unexpected()
        return node

    def items(self) -> Steps[list[Node]]:
        """The items of an array, up to and including its bracket."""
        items: list[Node] = []
        while not self.accept(BRACKET, "]"):
            if items:
                self.expect(OPERATOR, ",")
                if self.accept(BRACKET, "]"):
                    break
            items.append((yield self.expression()))
        return items

    def map(self, opening: Token) -> Steps[Node]:
        pairs: list[Pair] = []
        while not self.accept(BRACKET, "}"):
            if pairs:
                self.expect(OPERATOR, ",")
                if self.accept(BRACKET, "}"):
                    break
                if self.sees(OPERATOR, ","):
                    raise self.unexpected()
            key: Node = yield self.map_key()
            self.expect(OPERATOR, ":")
            value: Node = yield self.expression()
            pairs.append(self.made(Pair(key, value, pos=opening.offset)))
        return self.made(Map(pairs, pos=opening.offset))

    def map_key(self) -> Steps[Node]:
        token = self.current
        if token.kind in (NUMBER, STRING, IDENTIFIER):
            self.at += 1
            return self.made(Literal(token.value, pos=token.offset))
        if not self.sees(BRACKET, "("):
            raise self.error(f"{_KEY_EXPECTED} (unexpected token {token})")
        key: Node = yield self.expression()
        return key

    # -- calls -----------------------------------------------------------------------------

    def call(self, name: Token, piped: list[Node], *, overridable: bool = True) -> Steps[Node]:
        """The call of a name whose opening bracket comes next; `piped` is its first argument."""
        arguments: list[Node]
        builtin = name.value in self.builtins
        if builtin and not (overridable and name.value in self.overridden):
            if name.value in PREDICATE_BUILTINS:
                arguments = yield self.predicate_arguments(name.value, piped)
            else:
                arguments = yield self.arguments(piped)
            return self.made(Builtin(name.value, arguments, pos=name.offset))
        callee = self.made(Name(name.value, pos=name.offset))
        arguments = yield self.arguments(piped)
        return self.made(Call(callee, arguments, pos=name.offset))

    def arguments(self, piped: list[Node]) -> Steps[list[Node]]:
        arguments = list(piped)
        self.expect(BRACKET, "(")
        while not self.accept(BRACKET, ")"):
            if len(arguments) > len(piped):
                self.expect(OPERATOR, ",")
                if self.accept(BRACKET, ")"):
                    break
            arguments.append((yield self.expression()))
        return arguments

    def predicate_arguments(self, name: str, piped: list[Node]) -> Steps[list[Node]]:
        arguments = list(piped)
        self.expect(BRACKET, "(")
        wanted = PREDICATE_BUILTINS[name][len(piped) :]
        for kind in wanted:
            if self.sees(BRACKET, ")"):
                if kind.endswith("?"):
                    break
                raise self.error(f"expected at least {len(wanted)} arguments")
            if len(arguments) > len(piped):
                self.expect(OPERATOR, ",")
            if kind.startswith("predicate"):
                arguments.append((yield self.predicate()))
            else:
                arguments.append((yield self.expression()))
        self.accept(OPERATOR, ",")
        self.expect(BRACKET, ")")
        return arguments

    def predicate(self) -> Steps[Node]:
        start = self.current
        self.predicate_depth += 1
        body: Node
        if self.sees(BRACKET, "{"):
            body = yield self.block()
        else:
            body = yield self.expression()
            if self.sees(OPERATOR, ";"):
                raise self.error("wrap predicate with brackets { and }")
        self.predicate_depth -= 1
        return self.made(Predicate(body, pos=start.offset))

    # -- postfix ---------------------------------------------------------------------------

    def postfix(self, node: Node) -> Steps[Node]:
        while True:
            token = self.current
            if token.kind == OPERATOR and token.value in (".", "?."):
                self.at += 1
                optional = token.value == "?."
                if optional and self.sees(BRACKET, "["):
                    node = yield self.index(node, optional=True)
                else:
                    node = yield self.member(node, optional)
            elif self.sees(BRACKET, "["):
                node = yield self.index(node, optional=False)
            else:
                return node

    def member(self, node: Node, optional: bool) -> Steps[Node]:
        name = self.advance()
        if name.kind != IDENTIFIER and not (name.kind == OPERATOR and name.value.isalpha()):
            raise self.error("expected name")
        continues = isinstance(node, Chain)
        base = node.node if isinstance(node, Chain) else node
        key = self.made(Literal(name.value, pos=name.offset))
        member = self.made(Member(base, key, optional, pos=name.offset))
        result: Node = member
        if self.sees(BRACKET, "("):
            member.method = True
            arguments: list[Node] = yield self.arguments([])
            result = self.made(Call(member, arguments, pos=name.offset))
        if continues or optional:
            result = self.made(Chain(result, pos=name.offset))
        return result

    def index(self, node: Node, optional: bool) -> Steps[Node]:
        opening = self.expect(BRACKET, "[").offset
        start: Node | None = None
        stop: Node | None = None
        if not self.sees(OPERATOR, ":"):
            start = yield self.expression()
        if start is not None and not self.sees(OPERATOR, ":"):
            result: Node = self.made(Member(node, start, optional, pos=opening))
            if optional:
                result = self.made(Chain(result, pos=opening))
            self.expect(BRACKET, "]")
            return result
        self.expect(OPERATOR, ":")
        if not self.sees(BRACKET, "]"):
            stop = yield self.expression()
        self.expect(BRACKET, "]")
        return self.made(Slice(node, start, stop, pos=opening))
