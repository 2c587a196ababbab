"""The expression language of subscription filters: expr-lang v1.17.8 in pure Python.

    program = compile('subject == "a"', Env({"subject": STRING}), expect=bool)
    program.run({"subject": "a"})

Knows nothing of queues; `mqlite.expr.message` adds what a filter over messages may name.
"""

from .budget import Budget
from .environment import Env, Function
from .errors import ExprError, ExprRuntimeError, ExprSyntaxError, ExprTypeError
from .program import MAX_NODES, Program, compile

__all__ = [
    "MAX_NODES",
    "Budget",
    "Env",
    "ExprError",
    "ExprRuntimeError",
    "ExprSyntaxError",
    "ExprTypeError",
    "Function",
    "Program",
    "compile",
]
