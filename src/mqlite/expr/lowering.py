"""Checked, optimised trees to executable forms."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from . import nodes, regex, trampoline
from .access import contains_value, fetch, slice_of
from .arithmetic import add, divide, int_range, modulo, multiply, negate, power, subtract
from .budget import Budget
from .builtins import BUILTINS, LOOPS, loops
from .builtins.loops import Loop, Run
from .calls import call_method, call_value
from .comparison import ORDERINGS, equal
from .control import Block, Choose, Coalesce, Element, Logic, LoopOver
from .environment import Env
from .errors import ExprTypeError, Fault
from .fastpaths import equal_to_literal, known_member
from .forms import AllValues, Apply, ChainEnd, Constant, Form, Local, Spine, Store, Variable
from .integers import MAX_INT
from .nodes import (
    Array,
    Binary,
    Builtin,
    Call,
    Chain,
    Conditional,
    Constant as ConstantNode,
    Let,
    Literal,
    Map,
    Member,
    Name,
    Node,
    Pointer,
    Predicate,
    Recall,
    Remember,
    Slice,
    Unary,
    is_literal,
)
from .operations import (
    contains,
    ends_with,
    equal_ints,
    equal_strings,
    in_set,
    inverted,
    matches,
    matches_pattern,
    new_array,
    new_map,
    starts_with,
)
from .trampoline import Steps, done
from .types import INT, STRING
from .values import Environment

__all__ = ["lower"]


def lower(tree: Node, env: Env) -> tuple[Form, int]:
    """The executable form of a tree, and how many local values its evaluation needs.

    Raises ExprTypeError for a pattern that folding has made and that is none.
    """
    lowering = _Lowering(env)
    form: Form = trampoline.run(lowering.visit(tree))
    return form, lowering.slots


def _pure(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function that costs nothing, in the shape of one that does."""

    def apply(_: Budget, *values: Any) -> Any:
        return function(*values)

    return apply


def _charged(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function of the environment, which is taken to look at each character it is given."""

    def apply(budget: Budget, *values: Any) -> Any:
        for value in values:
            if type(value) is str:
                budget.visit(len(value))
        return function(*values)

    return apply


_OPERATIONS: dict[str, Callable[..., Any]] = {
    "+": add,
    "-": subtract,
    "*": multiply,
    "/": divide,
    "%": modulo,
    "**": power,
    "^": power,
    "..": int_range,
    "in": contains_value,
    "matches": matches,
    "contains": contains,
    "startsWith": starts_with,
    "endsWith": ends_with,
    "==": equal,
    **ORDERINGS,
}

# The loops of a builtin that has taken over the map behind it.
_MAPPING_LOOPS = {
    "filter": loops.filter_map,
    "find": loops.find_map,
    "findLast": loops.find_last_map,
}


# Arguments that the checker never saw, see `Builtin.takes`.
_TOO_FEW = "runtime error: index out of range"

_NAMED_POINTERS = {"index": loops.INDEX, "acc": loops.ACCUMULATOR}


class _Lowering:
    def __init__(self, env: Env) -> None:
        self.env = env
        self.slots = 0
        self.lets: list[tuple[str, int]] = []
        self.pointers: list[int] = []
        self.remembered: dict[int, int] = {}

    def visit(self, node: Node) -> Steps[Form]:
        form: Form = yield _VISITORS[type(node)](self, node)
        return form

    def visit_all(self, nodes: list[Node]) -> Steps[list[Form]]:
        forms: list[Form] = []
        for node in nodes:
            forms.append((yield self.visit(node)))
        return forms

    def new_slots(self, count: int = 1) -> int:
        first = self.slots
        self.slots += count
        return first

    # -- values ----------------------------------------------------------------------------

    def literal(self, node: Literal | ConstantNode) -> Steps[Form]:
        return done(Constant(node.value))

    def name(self, node: Name) -> Steps[Form]:
        for name, slot in reversed(self.lets):
            if name == node.name:
                return done(Local(slot))
        if node.name == "$env":
            make = partial(Environment, self.env.type_name, self.env.fields)
            return done(Apply(_pure(make), node.pos, AllValues()))
        if node.name in self.env.variables:
            return done(Variable(node.name))
        message = f"cannot fetch {node.name} from {self.env.type_name}"
        return done(Apply(_fails(message), node.pos))

    def pointer(self, node: Pointer) -> Steps[Form]:
        slot = self.pointers[-1]
        if node.name in _NAMED_POINTERS:
            return done(Local(slot + _NAMED_POINTERS[node.name]))
        if node.name:
            raise ExprTypeError(f"unknown pointer {node.name}")
        return done(Element(slot, node.pos))

    def remember(self, node: Remember) -> Steps[Form]:
        slot = self.remembered[id(node)] = self.new_slots()
        return Store(slot, (yield self.visit(node.node)))

    def recall(self, node: Recall) -> Steps[Form]:
        return done(Local(self.remembered[id(node.source)]))

    def array(self, node: Array) -> Steps[Form]:
        items: list[Form] = yield self.visit_all(node.items)
        return Apply(new_array, node.pos, *items)

    def map(self, node: Map) -> Steps[Form]:
        parts: list[Form] = []
        for pair in node.pairs:
            parts.append((yield self.visit(pair.key)))
            parts.append((yield self.visit(pair.value)))
        return Apply(new_map, node.pos, *parts)

    # -- operators -------------------------------------------------------------------------

    def unary(self, node: Unary) -> Steps[Form]:
        operand: Form = yield self.visit(node.operand)
        if node.op == "+":
            return operand
        function = negate if node.op == "-" else inverted
        return Apply(function, node.pos, operand)

    def binary(self, node: Binary) -> Steps[Form]:
        left: Form = yield self.visit(node.left)
        right: Form = yield self.visit(node.right)
        if node.op == "matches" and is_literal(node.right, str):
            return self.match(str(node.right.value), left, node.pos)
        match node.op:
            case "and" | "&&":
                return Logic(False, node.pos, left, right)
            case "or" | "||":
                return Logic(True, node.pos, left, right)
            case "??":
                return Coalesce(left, right)
            case "in" if isinstance(right, Constant) and isinstance(right.value, frozenset):
                return Apply(partial(in_set, right.value), node.pos, left)
            case "==" | "!=":
                same = self.equality(node, left, right)
                return same if node.op == "==" else Apply(inverted, node.pos, same)
        return Apply(_OPERATIONS[node.op], node.pos, left, right)

    def equality(self, node: Binary, left: Form, right: Form) -> Form:
        if node.left.type == node.right.type == STRING:
            fast = equal_to_literal(left, right, node.pos)
            return fast or Apply(equal_strings, node.pos, left, right)
        if node.left.type == node.right.type == INT:
            return Apply(equal_ints, node.pos, left, right)
        return Apply(equal, node.pos, left, right)

    def match(self, pattern: str, left: Form, pos: int) -> Form:
        try:
            compiled = regex.compile(pattern)
        except regex.PatternError as problem:
            raise ExprTypeError(str(problem)) from None
        return Apply(partial(matches_pattern, compiled), pos, left)

    def conditional(self, node: Conditional) -> Steps[Form]:
        condition: Form = yield self.visit(node.condition)
        then: Form | None = None
        if node.then is not None:
            then = yield self.visit(node.then)
        otherwise: Form = yield self.visit(node.otherwise)
        return Choose(node.pos, condition, then, otherwise)

    # -- access and calls ------------------------------------------------------------------

    def chain(self, node: Chain) -> Steps[Form]:
        inner: Form = yield self.visit(node.node)
        return ChainEnd(inner)

    def member(self, node: Member) -> Steps[Form]:
        name = node.key.value if isinstance(node.key, Literal) else None
        of_env = isinstance(node.base, Name) and node.base.name == "$env"
        if of_env and isinstance(name, str) and name in self.env.variables:
            return Apply(lambda budget, values: values[name], node.pos, AllValues())
        base: Form = yield self.visit(node.base)
        key: Form = yield self.visit(node.key)
        fast = known_member(node, base, key)
        return fast or Spine(fetch, node.pos, base, key, optional=node.optional)

    def slice(self, node: Slice) -> Steps[Form]:
        parts: list[Form] = [(yield self.visit(node.base))]
        for bound, missing in ((node.stop, MAX_INT), (node.start, 0)):
            parts.append(Constant(missing) if bound is None else (yield self.visit(bound)))
        return Apply(slice_of, node.pos, *parts)

    def call(self, node: Call) -> Steps[Form]:
        arguments: list[Form] = yield self.visit_all(node.arguments)
        callee = node.callee
        if isinstance(callee, Name) and callee.name in self.env.functions:
            function = self.env.functions[callee.name]
            if len(arguments) != len(function.signature.parameters):
                return Apply(_fails(_TOO_FEW), node.pos, *arguments)
            return Apply(_charged(function.call), node.pos, *arguments)
        if isinstance(callee, Member) and is_literal(callee.key, str):
            base: Form = yield self.visit(callee.base)
            method = partial(call_method, str(callee.key.value))
            optional = callee.optional
            return Spine(method, node.pos, base, *arguments, optional=optional, others_first=True)
        called: Form = yield self.visit(callee)
        return Spine(call_value, node.pos, called, *arguments, others_first=True)

    def builtin(self, node: Builtin) -> Steps[Form]:
        if node.name in LOOPS:
            loop: Form = yield self.loop(node)
            return loop
        arguments: list[Form] = yield self.visit_all(node.arguments)
        builtin = BUILTINS[node.name]
        if not builtin.takes(len(arguments)):
            return Apply(_fails(_TOO_FEW), node.pos, *arguments)
        return Apply(builtin.call, node.pos, *arguments)

    def loop(self, node: Builtin) -> Steps[Form]:
        collection: Form = yield self.visit(node.arguments[0])
        slot = self.new_slots(3)
        self.pointers.append(slot)
        body_node = node.arguments[1] if len(node.arguments) > 1 else Pointer("", pos=node.pos)
        body: Form = yield self.visit(body_node)
        start = _starter(LOOPS[node.name], node)
        if node.then_map is not None:
            mapped: Form = yield self.visit(node.then_map)
            body = Choose(node.pos, body, mapped, Constant(loops.SKIP))
            start = _starter(_MAPPING_LOOPS[node.name], node)
        # Also what comes after the body is evaluated inside the loop, before its first turn.
        extra: list[Form] = yield self.visit_all(node.arguments[2:])
        self.pointers.pop()
        return LoopOver(start, node.pos, slot, collection, body, *extra)

    def predicate(self, node: Predicate) -> Steps[Form]:
        body: Form = yield self.visit(node.body)
        return body

    # -- scopes ----------------------------------------------------------------------------

    def let(self, node: Let) -> Steps[Form]:
        value: Form = yield self.visit(node.value)
        slot = self.new_slots()
        self.lets.append((node.name, slot))
        body: Form = yield self.visit(node.body)
        self.lets.pop()
        return Block(Store(slot, value), body)

    def sequence(self, node: nodes.Sequence) -> Steps[Form]:
        items: list[Form] = yield self.visit_all(node.items)
        return Block(*items)


def _starter(loop: Callable[[Run], Loop], node: Builtin) -> Callable[..., Loop]:
    threshold, required = node.threshold, node.required

    def start(budget: Budget, items: Any, slot: int, extra: Sequence[Any]) -> Loop:
        return loop(Run(budget, items, slot, extra, threshold, required))

    return start


def _fails(message: str) -> Callable[..., Any]:
    def fail(budget: Budget, *_: Any) -> None:
        raise Fault(message)

    return fail


_VISITORS: dict[type[Node], Callable[[_Lowering, Any], Steps[Form]]] = {
    Array: _Lowering.array,
    Binary: _Lowering.binary,
    Builtin: _Lowering.builtin,
    Call: _Lowering.call,
    Chain: _Lowering.chain,
    Conditional: _Lowering.conditional,
    ConstantNode: _Lowering.literal,
    Let: _Lowering.let,
    Literal: _Lowering.literal,
    Map: _Lowering.map,
    Member: _Lowering.member,
    Name: _Lowering.name,
    Pointer: _Lowering.pointer,
    Predicate: _Lowering.predicate,
    Recall: _Lowering.recall,
    Remember: _Lowering.remember,
    nodes.Sequence: _Lowering.sequence,
    Slice: _Lowering.slice,
    Unary: _Lowering.unary,
}
