"""Processes: their command lines, which everybody on the machine can read, and what they
write to standard error. Those that run Python look for themselves, too."""

from __future__ import annotations

import atexit
import os
from collections.abc import Iterable, Mapping
from contextlib import suppress
from functools import wraps
from pathlib import Path
from typing import Any, Final

from guarding.hooks import after, before, when_audited, when_imported
from guarding.places import without_the_announcement
from guarding.reports import VARIABLE, look
from guarding.secret import credentials, learn

_CHILD: Final = str(Path(__file__).with_name("child"))
_TOKENS: Final = ("MQLITE_TOKEN", "MQLITE_TOKENS", "MQLITE_MONITOR_TOKENS")
_URLS: Final = ("MQLITE_ENDPOINT", "MQLITE_DB")


def watch() -> None:
    when_imported("subprocess", _watch_subprocess)
    when_imported("threading", lambda it: before(it, "excepthook", _thread_ended))
    when_audited("subprocess.Popen", lambda program, words, folder, env: _started(words, env))
    when_audited("os.exec", lambda program, words, env: _started(words, env))
    when_audited("os.posix_spawn", lambda program, words, env: _started(words, env))
    when_audited("os.system", lambda line: _started(line, None))
    when_audited("sys.excepthook", lambda hook, kind, error, trace: _ended(error))
    _learn_settings(os.environ)
    atexit.register(look_at_title, "self")


def guard_children() -> None:
    """Have the Python processes that are started from here on look for themselves."""
    import subprocess

    os.environ.update(_guarded(os.environ))
    inner: Any = subprocess.Popen.__init__

    @wraps(inner)
    def started(self: Any, *args: Any, env: Any = None, **kwargs: Any) -> None:
        inner(self, *args, env=env if env is None else _guarded(env), **kwargs)

    subprocess.Popen.__init__ = started  # type: ignore[method-assign]


def look_at_title(process: int | str) -> None:
    """At what `ps` shows of a process now, where the system tells."""
    for file in ("cmdline", "comm"):
        with suppress(OSError):
            title = Path(f"/proc/{process}/{file}").read_bytes()
            look("the title of a process", title.replace(b"\0", b" "))


def _guarded(environment: Mapping[str, str]) -> dict[str, str]:
    paths = environment.get("PYTHONPATH", "").split(os.pathsep)
    return {
        **environment,
        VARIABLE: os.environ[VARIABLE],
        "PYTHONPATH": os.pathsep.join(
            [_CHILD, *(each for each in paths if each and each != _CHILD)]
        ),
    }


def _watch_subprocess(subprocess: Any) -> None:
    for name in ("send_signal", "wait", "communicate"):
        before(subprocess.Popen, name, _running)
    after(subprocess.Popen, "communicate", _communicated)


def _running(process: Any, *args: object, **kwargs: object) -> None:
    if process.returncode is None:
        look_at_title(process.pid)


def _communicated(result: tuple[Any, Any], *args: object, **kwargs: object) -> None:
    error = result[1]
    if error:
        text = error.decode("utf-8", "replace") if isinstance(error, bytes) else error
        look("standard error of a process", without_the_announcement(text))


def _started(words: str | bytes | os.PathLike[str] | Iterable[Any], environment: Any) -> None:
    _learn_settings(os.environ if environment is None else environment)
    line = [words] if isinstance(words, str | bytes | os.PathLike) else words
    look("the command line of a process", " ".join(map(os.fsdecode, line)))


def _learn_settings(environment: Mapping[str, str]) -> None:
    for name in _TOKENS:
        learn(environment.get(name, "").split(","))
    for name in _URLS:
        learn(credentials(environment.get(name, "")))


def _thread_ended(details: Any) -> None:
    _ended(details.exc_value)


def _ended(error: BaseException) -> None:
    import traceback

    look("an error that nobody handles", "".join(traceback.format_exception(error)))
