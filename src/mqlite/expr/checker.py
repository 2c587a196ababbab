"""The static check (spec section 5): gives every node its type, or refuses the tree."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from . import gotime, nodes, regex, trampoline
from .access_types import KeyRefused, got_type, member_type
from .builtins import BUILTINS
from .environment import Env
from .errors import ExprTypeError
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
    Slice,
    Unary,
    is_literal,
)
from .operator_types import Refused, binary_type, conditional_type, unary_type
from .predicate_types import RULES as PREDICATE_RULES
from .signatures import Misfit, argument_misfit, count_misfit
from .suggest import nearest
from .trampoline import Steps, done
from .types import (
    ANY,
    ARRAY,
    BOOL,
    BYTES,
    FLOAT,
    INT,
    MAP,
    NIL,
    STRING,
    UNKNOWN,
    Signature,
    Type,
    array_of,
    function_type,
)

__all__ = ["check"]

_LITERAL_TYPES: dict[type, Type] = {
    type(None): NIL,
    bool: BOOL,
    int: INT,
    float: FLOAT,
    str: STRING,
    bytes: BYTES,
}


def check(tree: Node, env: Env, source: str) -> Type:
    """Give every node of a tree its type and return the whole tree's.

    Raises ExprTypeError at the first node, in order of evaluation, that breaks a rule.
    """
    return trampoline.run(_Checker(env, source).visit(tree))


@dataclass(slots=True)
class _Scope:
    """Inside a predicate: what `#` is, and which named pointers there are."""

    element: Type
    pointers: Mapping[str, Type]


class _Checker:
    def __init__(self, env: Env, source: str) -> None:
        self.env = env
        self.source = source
        self.lets: list[tuple[str, Type]] = []
        self.scopes: list[_Scope] = []

    def visit(self, node: Node) -> Steps[Type]:
        node.type = yield _VISITORS[type(node)](self, node)
        return node.type

    def visit_all(self, nodes: list[Node]) -> Steps[list[Type]]:
        types: list[Type] = []
        for node in nodes:
            types.append((yield self.visit(node)))
        return types

    def error(self, node: Node, message: str, hint: str | None = None) -> ExprTypeError:
        return ExprTypeError(message, self.source, node.pos, hint)

    # -- names and literals ----------------------------------------------------------------

    def literal(self, node: Literal) -> Steps[Type]:
        return done(_LITERAL_TYPES[type(node.value)])

    def name(self, node: Name) -> Steps[Type]:
        return done(self.let_type(node.name) or self.resolve(node, node.name))

    def let_type(self, name: str) -> Type | None:
        return next((known for bound, known in reversed(self.lets) if bound == name), None)

    def resolve(self, node: Node, name: str) -> Type:
        """The type of a name that is no `let` name."""
        if name == "$env":
            return ANY
        if name in self.env.variables:
            return self.env.variables[name]
        if name in self.env.functions:
            return function_type(self.env.functions[name].signature)
        if name in BUILTINS and name not in self.env.disabled:
            return BUILTINS[name].type
        raise self.unknown_name(node, name)

    def unknown_name(self, node: Node, name: str, *, called: bool = False) -> ExprTypeError:
        known = [*self.env.variables, *(bound for bound, _ in self.lets)]
        if called:
            known = [*self.env.functions, *(b for b in BUILTINS if b not in self.env.disabled)]
        near = nearest(name, known)
        hint = None if near is None else f'did you mean "{near}"?'
        return self.error(node, f"unknown name {name}", hint)

    def pointer(self, node: Pointer) -> Steps[Type]:
        scope = self.scopes[-1]
        if not node.name:
            return done(scope.element)
        if node.name in scope.pointers:
            return done(scope.pointers[node.name])
        raise self.error(node, f"unknown pointer #{node.name}")

    # -- operators -------------------------------------------------------------------------

    def unary(self, node: Unary) -> Steps[Type]:
        operand: Type = yield self.visit(node.operand)
        try:
            return unary_type(node.op, operand)
        except Refused as refusal:
            raise self.error(node, str(refusal)) from None

    def binary(self, node: Binary) -> Steps[Type]:
        left: Type = yield self.visit(node.left)
        right: Type = yield self.visit(node.right)
        if node.op == "matches" and isinstance(node.right, Literal):
            self.check_pattern(node, node.right.value)
        try:
            return binary_type(node.op, left, right)
        except Refused as refusal:
            raise self.error(node, str(refusal)) from None

    def check_pattern(self, node: Binary, pattern: object) -> None:
        if isinstance(pattern, str):
            try:
                regex.compile(pattern)
            except regex.PatternError as problem:
                raise self.error(node, str(problem)) from None

    def remember(self, node: Remember) -> Steps[Type]:
        remembered: Type = yield self.visit(node.node)
        return remembered

    def recall(self, node: Recall) -> Steps[Type]:
        return done(node.source.type)

    def conditional(self, node: Conditional) -> Steps[Type]:
        condition: Type = yield self.visit(node.condition)
        if not condition.is_bool and not condition.is_unknown:
            raise self.error(
                node.condition, f"non-bool expression (type {condition}) used as condition"
            )
        then: Type = condition
        if node.then is not None:
            then = yield self.visit(node.then)
        otherwise: Type = yield self.visit(node.otherwise)
        return conditional_type(then, otherwise)

    # -- access ----------------------------------------------------------------------------

    def chain(self, node: Chain) -> Steps[Type]:
        result: Type = yield self.visit(node.node)
        return result

    def member(self, node: Member) -> Steps[Type]:
        if isinstance(node.base, Name) and node.base.name == "$env":
            return self.env_member(node)
        base: Type = yield self.visit(node.base)
        key: Type = yield self.visit(node.key)
        name = node.key.value if isinstance(node.key, Literal) else None
        if isinstance(name, str):
            if base.is_unknown:
                return UNKNOWN
            method = gotime.method_signature(base, name)
            if method is not None:
                return function_type(method, receiver=base)
        try:
            return member_type(base, key, name, method=node.method)
        except Refused as refusal:
            raise self.error(node, str(refusal)) from None
        except KeyRefused as refusal:
            raise self.error(node.key, str(refusal)) from None

    def env_member(self, node: Member) -> Type:
        # The reference does not look at a computed name: what it is made of stays unchecked.
        if not isinstance(node.key, Literal) or not isinstance(node.key.value, str):
            return UNKNOWN
        name = node.key.value
        if name in self.env.variables:
            return self.env.variables[name]
        if node.optional:
            return UNKNOWN
        raise self.unknown_name(node, name)

    def slice(self, node: Slice) -> Steps[Type]:
        base: Type = yield self.visit(node.base)
        if base.is_unknown:
            # The reference does not look at the bounds then: a name there stays unchecked.
            return UNKNOWN
        if not base.is_string and not base.is_array:
            raise self.error(node, f"cannot slice {base}")
        for bound in (node.start, node.stop):
            if bound is not None:
                kind: Type = yield self.visit(bound)
                if not kind.is_integer and not kind.is_unknown:
                    raise self.error(bound, f"non-integer slice index {kind}")
        return base

    # -- calls -----------------------------------------------------------------------------

    def call(self, node: Call) -> Steps[Type]:
        callee: Type = yield self.callee(node.callee)
        if isinstance(node.callee, Name) and node.callee.name == "$env":
            callee = self.env.type
        if callee.is_unknown:
            return UNKNOWN
        if callee.kind != "function":
            raise self.error(node, f"{callee} is not callable")
        name = self.called_name(node.callee)
        if callee.signature is None:
            yield self.visit_all(node.arguments)
            return UNKNOWN
        if callee.signature.results > 2:
            raise self.error(node, f"func {name} returns more then two values")
        fitted: Type = yield self.fit(node, name, (callee.signature,))
        return fitted

    def fit(self, node: Call | Builtin, name: str, signatures: Sequence[Signature]) -> Steps[Type]:
        """The result of the first signature that the arguments fit, or the last one's error.

        Arguments are checked one by one as a signature asks for them: what comes after the one at
        fault is not looked at.
        """
        types: list[Type] = []
        failure = Misfit(f"no signature of {name}")
        for signature in signatures:
            misfit = count_misfit(name, signature, len(node.arguments))
            if misfit is not None:
                types += yield self.visit_all(node.arguments[len(types) :])
                failure = misfit
                continue
            for index, wanted in enumerate(signature.parameters):
                if index == len(types):
                    types.append((yield self.visit(node.arguments[index])))
                misfit = argument_misfit(name, wanted, types[index], index)
                if misfit is not None:
                    failure = misfit
                    break
            else:
                return signature.result
        place = node if failure.argument is None else node.arguments[failure.argument]
        raise self.error(place, failure.message)

    def callee(self, node: Node) -> Steps[Type]:
        if isinstance(node, Name) and self.let_type(node.name) is None:
            try:
                node.type = self.resolve(node, node.name)
            except ExprTypeError:
                raise self.unknown_name(node, node.name, called=True) from None
            return node.type
        found: Type = yield self.visit(node)
        return found

    def called_name(self, callee: Node) -> str:
        if isinstance(callee, Name):
            return callee.name
        if isinstance(callee, Member) and is_literal(callee.key, str):
            return str(callee.key.value)
        return "function"

    def builtin(self, node: Builtin) -> Steps[Type]:
        if node.name in PREDICATE_RULES:
            predicated: Type = yield self.predicate_builtin(node)
            return predicated
        if node.name == "get":
            got: Type = yield self.get(node)
            return got
        builtin = BUILTINS[node.name]
        if builtin.judge is None:
            fitted: Type = yield self.fit(node, node.name, builtin.signatures)
            return fitted
        types: list[Type] = yield self.visit_all(node.arguments)
        try:
            return builtin.judge(types)
        except Refused as refusal:
            raise self.error(node, str(refusal)) from None

    def get(self, node: Builtin) -> Steps[Type]:
        if len(node.arguments) != 2:
            message = f"invalid number of arguments (expected 2, got {len(node.arguments)})"
            raise self.error(node, message)
        base_node, key_node = node.arguments
        base: Type = yield self.visit(base_node)
        key: Type = yield self.visit(key_node)
        if isinstance(base_node, Name) and base_node.name == "$env":
            if isinstance(key_node, Literal) and isinstance(key_node.value, str):
                return self.env.variables.get(key_node.value, UNKNOWN)
            return UNKNOWN
        try:
            return got_type(base, key)
        except Refused as refusal:
            raise self.error(base_node, str(refusal)) from None
        except KeyRefused as refusal:
            raise self.error(key_node, str(refusal)) from None

    def predicate_builtin(self, node: Builtin) -> Steps[Type]:
        rule = PREDICATE_RULES[node.name]
        collection: Type = yield self.visit(node.arguments[0])
        if not collection.is_array and not collection.is_unknown:
            message = f"builtin {node.name} takes only array (got {collection})"
            raise self.error(node.arguments[0], message)
        body: Type | None = None
        if len(node.arguments) > 1:
            element = collection.item if collection.is_array else UNKNOWN
            self.scopes.append(_Scope(element, rule.pointers))
            body = yield self.visit(node.arguments[1])
            self.scopes.pop()
            if body.is_nil:
                message = "predicate should has one input and one output param"
                raise self.error(node.arguments[1], message)
            if rule.wants_bool and not body.is_bool and not body.is_unknown:
                message = f"predicate should return boolean (got {body})"
                raise self.error(node.arguments[1], message)
        if len(node.arguments) > 2:
            last: Type = yield self.visit(node.arguments[2])
            if node.name == "sortBy" and not last.is_string and not last.is_unknown:
                message = f"cannot use {last} as argument (type string) to call sortBy "
                raise self.error(node.arguments[2], message)
        return rule.result(collection, body)

    def predicate(self, node: Predicate) -> Steps[Type]:
        body: Type = yield self.visit(node.body)
        return body

    # -- collections and scopes ------------------------------------------------------------

    def array(self, node: Array) -> Steps[Type]:
        types: list[Type] = yield self.visit_all(node.items)
        if not types:
            return ARRAY
        alike = all((a.name, a.kind) == (b.name, b.kind) for a, b in pairwise(types))
        return array_of(types[-1] if alike else UNKNOWN)

    def map(self, node: Map) -> Steps[Type]:
        for pair in node.pairs:
            yield self.visit(pair)
        return MAP

    def pair(self, node: Pair) -> Steps[Type]:
        yield self.visit(node.key)
        yield self.visit(node.value)
        return NIL

    def let(self, node: Let) -> Steps[Type]:
        self.check_unused(node)
        bound: Type = yield self.visit(node.value)
        self.lets.append((node.name, bound))
        body: Type = yield self.visit(node.body)
        self.lets.pop()
        return body

    def check_unused(self, node: Let) -> None:
        what: str | None = None
        if node.name in self.env.variables:
            what = ""
        elif node.name in self.env.functions:
            what = "function "
        elif node.name in BUILTINS:
            what = "builtin "
        elif self.let_type(node.name) is not None:
            what = "variable "
        if what is not None:
            raise self.error(node, f"cannot redeclare {what}{node.name}")

    def sequence(self, node: nodes.Sequence) -> Steps[Type]:
        types: list[Type] = yield self.visit_all(node.items)
        return types[-1]


_VISITORS: dict[type[Node], Callable[[_Checker, Any], Steps[Type]]] = {
    Array: _Checker.array,
    Binary: _Checker.binary,
    Builtin: _Checker.builtin,
    Call: _Checker.call,
    Chain: _Checker.chain,
    Conditional: _Checker.conditional,
    Let: _Checker.let,
    Literal: _Checker.literal,
    Map: _Checker.map,
    Member: _Checker.member,
    Name: _Checker.name,
    Pair: _Checker.pair,
    Pointer: _Checker.pointer,
    Predicate: _Checker.predicate,
    Recall: _Checker.recall,
    Remember: _Checker.remember,
    nodes.Sequence: _Checker.sequence,
    Slice: _Checker.slice,
    Unary: _Checker.unary,
}
