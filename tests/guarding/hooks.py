"""Getting to see what a function is given and what it answers."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from functools import wraps
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType
from typing import Any

_imports: dict[str, list[Callable[[Any], None]]] = {}
_events: dict[str, Callable[..., None]] = {}


def before(owner: Any, name: str, first: Callable[..., object]) -> None:
    """Have `first(*args, **kwargs)` called before a function."""
    inner = getattr(owner, name)

    @wraps(inner)
    def watched(*args: Any, **kwargs: Any) -> Any:
        first(*args, **kwargs)
        return inner(*args, **kwargs)

    setattr(owner, name, watched)


def after(owner: Any, name: str, then: Callable[..., object]) -> None:
    """Have `then(result, *args, **kwargs)` called after a function."""
    inner = getattr(owner, name)

    @wraps(inner)
    def watched(*args: Any, **kwargs: Any) -> Any:
        result = inner(*args, **kwargs)
        then(result, *args, **kwargs)
        return result

    setattr(owner, name, watched)


def when_imported(module: str, act: Callable[[Any], None]) -> None:
    """Have `act(module)` called as soon as it is there, before anybody takes a name from it."""
    if not _imports:
        sys.meta_path.insert(0, _Finder())
    _imports.setdefault(module, []).append(act)
    if module in sys.modules:
        act(sys.modules[module])


def when_audited(event: str, act: Callable[..., None]) -> None:
    """Have `act(*arguments)` called at an audit event of Python."""
    assert event not in _events
    if not _events:
        sys.addaudithook(_audited)
    _events[event] = act


class _Finder(MetaPathFinder):
    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if name not in _imports:
            return None
        spec = PathFinder.find_spec(name, path, target)
        if spec is not None and spec.loader is not None:
            after(spec.loader, "exec_module", _imported)
        return spec


def _imported(result: object, module: ModuleType) -> None:
    for act in _imports[module.__name__]:
        act(module)


def _audited(event: str, arguments: tuple[Any, ...]) -> None:
    act = _events.get(event)
    if act is not None:
        act(*arguments)
