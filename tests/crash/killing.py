"""Starting a child, hearing what it says, and killing it."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

from patience import PATIENCE_S

CHILD: Final = Path(__file__).with_name("child.py")

Fact = list[Any]


class Child:
    """A process that works on the queue until it is killed. `facts` are all that it has said."""

    def __init__(self, scenario: str, database: Path, hold: str = "") -> None:
        self.facts: list[Fact] = []
        self._process = subprocess.Popen(
            [sys.executable, str(CHILD), scenario, str(database), hold],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        self._watchdog = threading.Timer(PATIENCE_S, self._process.kill)
        self._watchdog.start()

    def hear(self, number: int) -> None:
        """Wait until it has said so many facts more."""
        for _ in range(number):
            line = self._out.readline()
            if not line:
                raise AssertionError(f"the child has ended: {self._errors()}")
            self.facts.append(json.loads(line))

    def hear_until_held(self) -> None:
        """Wait until it stands at its chosen point."""
        while not self.facts or self.facts[-1][0] != "at":
            self.hear(1)

    def kill(self) -> None:
        """Kill it, and hear what it could still say."""
        self._process.kill()
        self.facts += [json.loads(line) for line in self._whole_lines()]
        self._process.wait()
        self._watchdog.cancel()
        self._out.close()
        self._error.close()

    def said(self, what: str) -> list[Fact]:
        return [fact[1:] for fact in self.facts if fact[0] == what]

    def _whole_lines(self) -> Iterator[bytes]:
        return (line for line in self._out.read().splitlines(True) if line.endswith(b"\n"))

    def _errors(self) -> str:
        return self._error.read().decode()

    @property
    def _out(self) -> Any:
        return self._process.stdout

    @property
    def _error(self) -> Any:
        return self._process.stderr

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if not self._out.closed:
            self.kill()
