"""The text format of Prometheus, version 0.0.4: families of samples as lines.

Written here, with no library: a scrape is thousands of lines, and whoever writes them keeps
the senders of the same process from the interpreter.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Final

from mqlite.observation.schema import Histogram

CONTENT_TYPE: Final = b"text/plain; version=0.0.4; charset=utf-8"

Labels = Sequence[str]


def gauge(
    name: str, text: str, labels: Labels, samples: Iterable[tuple[Labels, float]]
) -> list[str]:
    """The lines of a family: its `name`, a `text` of one line that explains it, the names of
    its `labels`, and a value for each set of label values."""
    return [*_head("gauge", name, text), *_values(name, labels, samples)]


def counter(
    name: str, text: str, labels: Labels, samples: Iterable[tuple[Labels, float]]
) -> list[str]:
    """The same for what only grows; its name ends in `_total`."""
    return [*_head("counter", name, text), *_values(name, labels, samples)]


def histogram(
    name: str, text: str, labels: Labels, samples: Iterable[tuple[Labels, Histogram]]
) -> list[str]:
    """The same for durations in buckets, with at least one label."""
    lines = _head("histogram", name, text)
    for values, found in samples:
        pairs = _pairs(labels, values)
        lines += [
            f'{name}_bucket{{{pairs},le="{bucket.le:g}"}} {bucket.count}'
            for bucket in found.buckets
        ]
        lines += [
            f'{name}_bucket{{{pairs},le="+Inf"}} {found.count}',
            f"{name}_count{{{pairs}}} {found.count}",
            f"{name}_sum{{{pairs}}} {found.sum}",
        ]
    return lines


def written(families: Iterable[list[str]]) -> bytes:
    """The families as one answer."""
    return "".join(f"{line}\n" for lines in families for line in lines).encode()


def _head(kind: str, name: str, text: str) -> list[str]:
    return [f"# HELP {name} {text}", f"# TYPE {name} {kind}"]


def _values(name: str, labels: Labels, samples: Iterable[tuple[Labels, float]]) -> Iterable[str]:
    for values, value in samples:
        braces = f"{{{_pairs(labels, values)}}}" if labels else ""
        yield f"{name}{braces} {+value}"  # with a plus a bool is a number


def _pairs(labels: Labels, values: Labels) -> str:
    return ",".join(
        [f'{label}="{_escaped(value)}"' for label, value in zip(labels, values, strict=True)]
    )


@lru_cache(4096)
def _escaped(value: str) -> str:
    return value.replace("\\", r"\\").replace("\n", r"\n").replace('"', r"\"")
