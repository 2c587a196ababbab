"""A plain evaluator that walks the tree, to hold the compiled one against.

It shares the operations on values with the real thing, and nothing of how a tree is turned into
something executable: scopes, laziness, loops and optional chains are done again, the simplest way.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mqlite.expr import Budget, Env, arithmetic as a, regex
from mqlite.expr.access import contains_value, fetch, slice_of
from mqlite.expr.builtins import BUILTINS
from mqlite.expr.builtins.loops import begin, opened, readable, truth
from mqlite.expr.calls import call_method, call_value
from mqlite.expr.checker import check
from mqlite.expr.comparison import ORDERINGS, equal
from mqlite.expr.errors import Fault
from mqlite.expr.integers import MAX_INT
from mqlite.expr.nodes import (
    Array,
    Binary,
    Builtin,
    Call,
    Chain,
    Conditional,
    Constant,
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
    Sequence,
    Slice,
    Unary,
)
from mqlite.expr.operations import (
    contains,
    ends_with,
    equal_ints,
    equal_strings,
    in_set,
    matches,
    matches_pattern,
    new_array,
    new_map,
    starts_with,
)
from mqlite.expr.optimiser import optimise
from mqlite.expr.ordering import descending, sort_by_keys
from mqlite.expr.parser import parse
from mqlite.expr.types import GROUPS, INT, STRING
from mqlite.expr.values import NIL_ANYS, AnyMap, Environment, is_nil


def evaluate(source: str, env: Env, values: Mapping[str, Any]) -> Any:
    """What an expression comes to. Raises ExprError from compiling and Fault from evaluating."""
    available = [name for name in BUILTINS if name not in env.disabled]
    tree = parse(source, builtins=available, overridden=env.functions, max_nodes=1000)
    check(tree, env, source)
    return Walker(env, values).walk(optimise(tree, source), {})


class EndOfChain(Exception):
    """An optional link has met nil."""


class Walker:
    def __init__(self, env: Env, values: Mapping[str, Any]) -> None:
        self.env = env
        self.values = values
        self.budget = Budget()
        self.remembered: dict[int, Any] = {}

    def walk(self, node: Node | None, scope: dict[str, Any]) -> Any:
        """The value of a node; `scope` holds `let` names, and pointers with a # in front."""
        match node:
            case Literal(value=value) | Constant(value=value):
                return value
            case Name(name=name):
                return self.name(name, scope)
            case Pointer(name=name):
                return readable(scope[f"#{name}"])
            case Remember(node=inner):
                self.remembered[id(node)] = self.walk(inner, scope)
                return self.remembered[id(node)]
            case Recall(source=source):
                return self.remembered[id(source)]
            case Unary(op="not" | "!", operand=operand):
                return not truth(self.walk(operand, scope))
            case Unary(op=op, operand=operand):
                value = self.walk(operand, scope)
                return a.negate(self.budget, value) if op == "-" else value
            case Binary():
                return self.binary(node, scope)
            case Conditional(condition=condition, then=then, otherwise=otherwise):
                if truth(self.walk(condition, scope)):
                    return True if then is None else self.walk(then, scope)
                return self.walk(otherwise, scope)
            case Chain(node=inner):
                try:
                    value = self.walk(inner, scope)
                except EndOfChain:
                    return None
                return None if is_nil(value) else value
            case Member():
                return self.member(node, scope)
            case Slice(base=base, start=start, stop=stop):
                sliced = self.walk(base, scope)
                last = MAX_INT if stop is None else self.walk(stop, scope)
                first = 0 if start is None else self.walk(start, scope)
                return slice_of(self.budget, sliced, last, first)
            case Call():
                return self.call(node, scope)
            case Builtin():
                return self.builtin(node, scope)
            case Predicate(body=body):
                return self.walk(body, scope)
            case Array(items=items):
                return new_array(self.budget, *[self.walk(item, scope) for item in items])
            case Map(pairs=pairs):
                parts = [self.walk(part, scope) for p in pairs for part in (p.key, p.value)]
                return new_map(self.budget, *parts)
            case Let(name=name, value=bound, body=body):
                return self.walk(body, {**scope, name: self.walk(bound, scope)})
            case Sequence(items=items):
                return [self.walk(item, scope) for item in items][-1]
        raise AssertionError(node)

    def name(self, name: str, scope: dict[str, Any]) -> Any:
        if name in scope:
            return scope[name]
        if name == "$env":
            return Environment(self.env.type_name, self.env.fields, self.values)
        if name in self.env.variables:
            return self.values[name]
        raise Fault(f"cannot fetch {name} from {self.env.type_name}")

    def binary(self, node: Binary, scope: dict[str, Any]) -> Any:
        left = self.walk(node.left, scope)
        match node.op:
            case "and" | "&&":
                return self.walk(node.right, scope) if truth(left) else False
            case "or" | "||":
                return True if truth(left) else self.walk(node.right, scope)
            case "??":
                return self.walk(node.right, scope) if is_nil(left) else left
        right = self.walk(node.right, scope)
        budget = self.budget
        match node.op:
            case "==" | "!=":
                return self.equal(node, left, right) is (node.op == "==")
            case "<" | "<=" | ">" | ">=":
                return ORDERINGS[node.op](budget, left, right)
            case "+":
                return a.add(budget, left, right)
            case "-":
                return a.subtract(budget, left, right)
            case "*":
                return a.multiply(budget, left, right)
            case "/":
                return a.divide(budget, left, right)
            case "%":
                return a.modulo(budget, left, right)
            case "**" | "^":
                return a.power(budget, left, right)
            case "..":
                return a.int_range(budget, left, right)
            case "in" if isinstance(right, frozenset):
                return in_set(right, budget, left)
            case "in":
                return contains_value(budget, left, right)
            case "matches" if isinstance(node.right, Literal) and isinstance(right, str):
                return matches_pattern(regex.compile(right), budget, left)
        words = {
            "matches": matches,
            "contains": contains,
            "startsWith": starts_with,
            "endsWith": ends_with,
        }
        return words[node.op](budget, left, right)

    def equal(self, node: Binary, left: Any, right: Any) -> bool:
        if node.left.type == node.right.type == STRING:
            return equal_strings(self.budget, left, right)
        if node.left.type == node.right.type == INT:
            return equal_ints(self.budget, left, right)
        return equal(self.budget, left, right)

    def member(self, node: Member, scope: dict[str, Any]) -> Any:
        base = self.walk(node.base, scope)
        if node.optional and is_nil(base):
            raise EndOfChain
        return fetch(self.budget, base, self.walk(node.key, scope))

    def call(self, node: Call, scope: dict[str, Any]) -> Any:
        arguments = [self.walk(argument, scope) for argument in node.arguments]
        callee = node.callee
        if isinstance(callee, Name) and callee.name in self.env.functions:
            return self.env.functions[callee.name].call(*arguments)
        if isinstance(callee, Member) and isinstance(callee.key, Literal):
            base = self.walk(callee.base, scope)
            if callee.optional and is_nil(base):
                raise EndOfChain
            return call_method(callee.key.value, self.budget, base, *arguments)
        return call_value(self.budget, self.walk(callee, scope), *arguments)

    # -- builtins --------------------------------------------------------------------------

    def builtin(self, node: Builtin, scope: dict[str, Any]) -> Any:
        loop = getattr(self, f"loop_{node.name}", None)
        if loop is None:
            arguments = [self.walk(argument, scope) for argument in node.arguments]
            if not BUILTINS[node.name].takes(len(arguments)):
                raise Fault("runtime error: index out of range")
            return BUILTINS[node.name].call(self.budget, *arguments)
        items = opened(self.budget, self.walk(node.arguments[0], scope))
        early = {**scope, "#": begin(items)[0], "#index": 0, "#acc": None}
        extra = [self.walk(argument, early) for argument in node.arguments[2:]]
        return loop(node, items, scope, *extra)

    def body(self, node: Builtin, scope: dict[str, Any], item: Any, **named: Any) -> Any:
        self.budget.visit()
        inner = {**scope, "#": item, **{f"#{name}": value for name, value in named.items()}}
        return self.walk(node.arguments[1], inner) if len(node.arguments) > 1 else readable(item)

    def hits(self, node: Builtin, items: Any, scope: dict[str, Any]) -> Any:
        return (item for item in items if truth(self.body(node, scope, item)))

    def mapped(self, node: Builtin, scope: dict[str, Any], item: Any) -> Any:
        if node.then_map is None:
            return readable(item)
        return self.walk(node.then_map, {**scope, "#": item})

    def loop_all(self, node: Builtin, items: Any, scope: dict[str, Any]) -> bool:
        return all(truth(self.body(node, scope, item)) for item in items)

    def loop_any(self, node: Builtin, items: Any, scope: dict[str, Any]) -> bool:
        return any(truth(self.body(node, scope, item)) for item in items)

    def loop_none(self, node: Builtin, items: Any, scope: dict[str, Any]) -> bool:
        return not self.loop_any(node, items, scope)

    def loop_one(self, node: Builtin, items: Any, scope: dict[str, Any]) -> bool:
        return sum(1 for _ in self.hits(node, items, scope)) == 1

    def loop_count(self, node: Builtin, items: Any, scope: dict[str, Any]) -> int:
        found = 0
        for _ in self.hits(node, items, scope):
            found += 1
            if found == node.threshold:
                break
        return found

    def loop_filter(self, node: Builtin, items: Any, scope: dict[str, Any]) -> list[Any]:
        kept = [self.mapped(node, scope, item) for item in self.hits(node, items, scope)]
        self.budget.grow(len(kept))
        return kept

    def loop_map(self, node: Builtin, items: Any, scope: dict[str, Any]) -> list[Any]:
        made = [self.body(node, scope, item, index=i) for i, item in enumerate(items)]
        self.budget.grow(len(made))
        return made

    def loop_find(self, node: Builtin, items: Any, scope: dict[str, Any]) -> Any:
        for item in self.hits(node, items, scope):
            return self.mapped(node, scope, item)
        if node.required:
            raise Fault("reflect: slice index out of range")
        return None

    def loop_findLast(self, node: Builtin, items: Any, scope: dict[str, Any]) -> Any:
        return self.loop_find(node, items[::-1], scope)

    def loop_findIndex(self, node: Builtin, items: Any, scope: dict[str, Any]) -> Any:
        return next(
            (i for i, item in enumerate(items) if truth(self.body(node, scope, item))), None
        )

    def loop_findLastIndex(self, node: Builtin, items: Any, scope: dict[str, Any]) -> Any:
        index = self.loop_findIndex(node, items[::-1], scope)
        return None if index is None else len(items) - 1 - index

    def loop_sum(self, node: Builtin, items: Any, scope: dict[str, Any]) -> Any:
        total: Any = 0
        for item in items:
            total = a.add(self.budget, self.body(node, scope, item), total)
        return total

    def loop_groupBy(self, node: Builtin, items: Any, scope: dict[str, Any]) -> AnyMap:
        groups = AnyMap(GROUPS.name, NIL_ANYS)
        for item in items:
            key = self.body(node, scope, item)
            groups.put(key, [*groups.get(key), readable(item)])
        return groups

    def loop_sortBy(
        self, node: Builtin, items: Any, scope: dict[str, Any], order: Any = "asc"
    ) -> Any:
        downwards = descending(order, "unknown order, use asc or desc")
        keys = [self.body(node, scope, item) for item in items]
        self.budget.grow(len(keys))
        return sort_by_keys(self.budget, [readable(item) for item in items], keys, downwards)

    def loop_reduce(self, node: Builtin, items: Any, scope: dict[str, Any], *start: Any) -> Any:
        numbered = list(enumerate(items))
        if not start and not numbered:
            raise Fault("reduce of empty array with no initial value")
        result = start[0] if start else readable(numbered.pop(0)[1])
        for index, item in numbered:
            result = self.body(node, scope, item, index=index, acc=result)
        return result
