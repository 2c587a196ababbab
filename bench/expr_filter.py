"""What a filter costs: `python bench/expr_filter.py`.

A typical filter against the same test written by hand in Python, as a ratio, and against other
expression languages where they are installed (`pip install common-expression-language cel-python`).
Each figure is the best of many short runs, taken in turns, so that a busy machine disturbs all alike.
"""

from __future__ import annotations

import argparse
import importlib
import json
import timeit
from collections.abc import Callable, Mapping
from typing import Any

from mqlite.expr import Budget
from mqlite.expr.message import Sample, compile_filter

FILTER = 'subject_parts[0] == "orders" && properties["tier"] == "gold"'

PROPERTIES = {"tier": "gold", "region": "eu"}
SAMPLE = Sample(
    subject="orders.eu.new",
    properties=PROPERTIES,
    body=b'{"amount": 150, "items": [{"sku": "A1", "price": 9.5}, {"sku": "B2", "price": 20}]}',
    enqueued_at_ms=1_700_000_000_000,
    visible_at_ms=1_700_090_000_000,
)

OTHERS = (
    "body_size < 4096",
    "visible_at - enqueued_at > days(1)",
    'len(subject_parts) >= 2 && subject_parts[1] == "eu"',
    'subject matches "^orders\\\\."',
    '"amount" in body_json && body_json.amount > 100',
    'any(body_json.items, .sku == "B2")',
)


def by_hand(values: Mapping[str, Any]) -> bool:
    """The filter as a Python programmer would write it, over the same values."""
    return values["subject_parts"][0] == "orders" and values["properties"].get("tier", "") == "gold"


def by_hand_over_a_message(sample: Sample) -> bool:
    """The same over a message, which has no parts of its subject yet."""
    return sample.subject.split(".")[0] == "orders" and sample.properties.get("tier") == "gold"


def contenders() -> dict[str, Callable[[], object]]:
    """What is measured, by name."""
    compiled = compile_filter(FILTER)
    program = compiled.program
    assert program is not None
    values = SAMPLE.values(0)
    budget = Budget()
    found: dict[str, Callable[[], object]] = {
        "python, by hand": lambda: by_hand(values),
        "mqlite.expr": lambda: program.run(values, budget),
        "python, by hand, over a message": lambda: by_hand_over_a_message(SAMPLE),
        "mqlite.expr, filter over a message": lambda: compiled.matches(SAMPLE, budget),
    }
    plain = {"subject_parts": ["orders", "eu", "new"], "properties": PROPERTIES}
    for name, load in (("common-expression-language", _rust_cel), ("cel-python", _python_cel)):
        try:
            found[name] = load(plain)
        except ImportError:
            print(f"{name}: not installed, left out")
    return found


def _rust_cel(values: dict[str, Any]) -> Callable[[], object]:
    cel = importlib.import_module("cel")
    if hasattr(cel, "compile"):
        program = cel.compile(FILTER)
        return lambda: program.execute(values)
    return lambda: cel.evaluate(FILTER, values)


def _python_cel(values: dict[str, Any]) -> Callable[[], object]:
    celpy = importlib.import_module("celpy")
    environment = celpy.Environment()
    program = environment.program(environment.compile(FILTER))
    activation = celpy.json_to_cel(values)
    return lambda: program.evaluate(activation)


def _matching(source: str) -> Callable[[], object]:
    compiled, budget = compile_filter(source), Budget(2**62)
    return lambda: compiled.matches(SAMPLE, budget)


def measured(functions: dict[str, Callable[[], object]], seconds: float) -> dict[str, float]:
    """The least time of one call of each, in nanoseconds."""
    best = dict.fromkeys(functions, float("inf"))
    timers = {name: timeit.Timer(function) for name, function in functions.items()}
    calls = {name: max(timer.autorange()[0] // 20, 1) for name, timer in timers.items()}
    until = timeit.default_timer() + seconds
    while timeit.default_timer() < until:
        for name, timer in timers.items():
            best[name] = min(best[name], timer.timeit(calls[name]) / calls[name] * 1e9)
    return best


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=10.0, help="how long to measure")
    parser.add_argument("--json", action="store_true", help="print figures for a program to read")
    options = parser.parse_args()
    functions = contenders()
    assert all(function() for function in functions.values()), "all must come to the same result"
    figures = measured(functions, options.seconds)
    others = {source: _matching(source) for source in OTHERS}
    figures |= measured(others, options.seconds / 2)
    figures["a new message's values"] = measured({"": lambda: Sample(subject="a.b").values(0)}, 1)[
        ""
    ]
    if options.json:
        print(json.dumps({name: round(figure, 1) for name, figure in figures.items()}))
        return
    base = figures["python, by hand"]
    for name, figure in figures.items():
        print(f"{name:55} {figure:10.0f} ns {figure / base:8.2f} x")


if __name__ == "__main__":
    main()
