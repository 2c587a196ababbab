"""Throw mutated expressions at the filter language: `python tests/expr/fuzz.py --inputs N --seed S`.

Seeds are the recorded vectors, where they are there, and a few expressions of our own. What must
hold: only the language's own errors, no input that takes long, memory that stays bounded. A failure
prints the source, which is all that is needed to reproduce it.
"""

from __future__ import annotations

import argparse
import json
import random
import resource
import sys
import time
import traceback
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

from mqlite.expr import Budget, ExprError, compile
from mqlite.expr.builtins import BUILTINS
from mqlite.expr.message import MESSAGE_ENV, Sample, compile_filter

VECTORS = Path(__file__).resolve().parents[2].parent / "shared" / "vectors" / "expr_golden.jsonl"

TOO_LONG = 5.0
"""Seconds of processor time that one input may take."""

WORK = 50_000
"""A small work budget: what costs more is cut short, as it would be later in real life."""

OWN_SEEDS = (
    'subject_parts[0] == "orders" && properties["tier"] == "gold"',
    "visible_at - enqueued_at > days(1)",
    '"amount" in body_json && body_json.amount > 100',
    "let x = body_json.l; map(filter(x, # > 1), {# * 2})[0] ?? len(x)",
    "reduce(1..9, #acc + # * #index, 0) == sum(map(1..9, #))",
    'date("2024-02-29", "2006-01-02", "Europe/Berlin").AddDate(1, 0, 0).Format("Mon Jan _2")',
    "if subject matches '^o+' { body_json?.m?.a } else { {a: [1, 2.5, nil]}.a[-1] }",
    "groupBy(body_json.items, .tag).x | map(.id) | toJSON() | fromJSON()",
)

WORDS = (
    *BUILTINS, *MESSAGE_ENV.variables, *MESSAGE_ENV.functions, "and", "or", "not", "in", "matches",
    "contains", "let", "if", "else", "nil", "true", "#", "#acc", "#index", "?.", "??", "..", "**",
    "(", ")", "[", "]", "{", "}", ",", ";", ":", "|", "==", "<", "%", "-", "1", "0.5", "1e308",
    "9223372036854775807", "0x7f", '""', '"é"', "`", '"', "b'\\xff'", "\n", "\\", "\x00", "😀",
)  # fmt: skip

SAMPLE = Sample(
    subject="orders.eu.new",
    properties={"tier": "gold", "n": "5"},
    body=b'{"i":3,"f":2.5,"s":"a","t":true,"z":null,"l":[1,2],"m":{"a":1},"items":[{"id":1}]}',
    enqueued_at_ms=1_700_000_000_123,
)

AROUND = (
    "(@)", "[@]", "-@", "not @", "{a: @}", "(@) ?? 1", "map(@, #)", "@?.x", "all([1], @)",
    # Places at which the checker does not look.
    "body_json.f(@)", "$env?.[@]", "body_json.l[@:]",
)  # fmt: skip

Mutation = Callable[[random.Random, str, str], str]


def _delete(rng: random.Random, text: str, other: str) -> str:
    start = rng.randrange(len(text) + 1)
    return text[:start] + text[start + rng.randrange(1, 8) :]


def _insert(rng: random.Random, text: str, other: str) -> str:
    at = rng.randrange(len(text) + 1)
    return f"{text[:at]} {rng.choice(WORDS)} {text[at:]}"


def _splice(rng: random.Random, text: str, other: str) -> str:
    return text[: rng.randrange(len(text) + 1)] + other[rng.randrange(len(other) + 1) :]


def _nest(rng: random.Random, text: str, other: str) -> str:
    for _ in range(rng.choice((1, 2, 40))):
        text = rng.choice(AROUND).replace("@", text)
    return text


def _swap(rng: random.Random, text: str, other: str) -> str:
    pieces = text.split(" ")
    pieces[rng.randrange(len(pieces))] = rng.choice(WORDS)
    return " ".join(pieces)


def _repeat(rng: random.Random, text: str, other: str) -> str:
    start = rng.randrange(len(text) + 1)
    part = text[start : start + rng.randrange(1, 20)]
    return text[:start] + part * rng.choice((2, 3, 50)) + text[start:]


MUTATIONS: Sequence[Mutation] = (_delete, _insert, _splice, _nest, _swap, _repeat)


def seeds() -> list[str]:
    """The expressions to start from."""
    if not VECTORS.is_file():
        return list(OWN_SEEDS)
    lines = VECTORS.read_text(encoding="utf-8").split("\n")
    recorded = [json.loads(line)["expr"] for line in lines if line]
    return [*OWN_SEEDS, *(source for source in recorded if len(source) < 300)]


def mutated(rng: random.Random, corpus: Sequence[str]) -> str:
    """A source that may or may not be an expression."""
    text = rng.choice(corpus)
    for _ in range(rng.choice((0, 1, 1, 2, 3))):
        text = rng.choice(MUTATIONS)(rng, text, rng.choice(corpus))
    return text[:6000]


def try_one(source: str) -> str:
    """What became of a source; lets through any error that is not the language's own."""
    kind = "passed"
    try:
        compile_filter(source).matches(SAMPLE, Budget(WORK))
    except ExprError as error:
        kind = type(error).__name__
    try:
        # A filter must be a boolean; as a plain expression more of them run.
        compile(source, MESSAGE_ENV).run(SAMPLE.values(), Budget(WORK))
    except ExprError:
        return kind
    return "ran"


def fuzz(inputs: int, seed: int) -> Counter[str]:
    """Try so many sources; raises AssertionError at the first that breaks a promise."""
    rng = random.Random(seed)
    corpus = seeds()
    outcomes: Counter[str] = Counter()
    for _ in range(inputs):
        source = mutated(rng, corpus)
        started = time.process_time()
        try:
            outcomes[try_one(source)] += 1
        except Exception as error:
            raise AssertionError(f"{source!r} raised {error!r}") from error
        if time.process_time() - started > TOO_LONG:
            raise AssertionError(f"{source!r} took {time.process_time() - started:.1f} s")
    return outcomes


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--inputs", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    started = time.monotonic()
    try:
        outcomes = fuzz(options.inputs, options.seed)
    except AssertionError:
        traceback.print_exc()
        return 1
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    shown = ", ".join(f"{name} {count}" for name, count in outcomes.most_common())
    print(
        f"{options.inputs} inputs in {time.monotonic() - started:.0f} s, peak {peak} MiB: {shown}"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
