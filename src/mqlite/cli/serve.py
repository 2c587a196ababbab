"""`mqlite serve`: the broker, its settings, and what it says when it starts."""

from __future__ import annotations

import errno
import ipaddress
import logging
import os
import shlex
import shutil
import sys
from contextlib import ExitStack
from typing import TYPE_CHECKING, Final, Literal, NamedTuple

import mqlite
from mqlite.arguments import bearer_token
from mqlite.cli import environment, streams
from mqlite.cli.command import command, flag, option
from mqlite.cli.streams import CommandError
from mqlite.errors import InvalidArgument
from mqlite.keys import generate_token

if TYPE_CHECKING:
    from mqlite.embedded import Embedded

DEFAULT_ADDR: Final = ":6754"

_OFF: Final = ("", "off", "false", "0")
_SWITCHES: Final = (*_OFF, "on", "true", "1")


class Auth(NamedTuple):
    """The tokens to accept, or "off"; `generated` is one made up for this run."""

    tokens: list[str] | Literal["off"]
    generated: str = ""

    def __repr__(self) -> str:
        return f"Auth({'off' if self.tokens == 'off' else len(self.tokens)})"


@command("serve", help="Run a broker on the database of MQLITE_DB until it is stopped.")
@option("--addr", help="address to listen on (or MQLITE_ADDR; default :6754)")
@flag("--insecure-allow-remote", help="without auth, accept connections from other machines")
@flag("--metrics", help="serve /metrics to monitors and administrators (or MQLITE_METRICS=on)")
@option(
    "--diagnostic-log",
    metavar="path",
    help="keep failures and recoveries in a file of their own (or MQLITE_DIAGNOSTIC_LOG)",
)
def serve(
    addr: str | None,
    insecure_allow_remote: bool | None,
    metrics: bool | None,
    diagnostic_log: str | None,
) -> None:
    address = listen_address(addr, os.environ.get("MQLITE_ADDR"))
    auth = broker_auth(os.environ.get("MQLITE_TOKENS"))
    if auth.tokens == "off" and not (insecure_allow_remote or is_loopback(address)):
        raise CommandError(
            f"refusing to serve on {address} with MQLITE_TOKENS=off: other machines could reach"
            f" it. Use --addr 127.0.0.1:{_port(address)}, or --insecure-allow-remote"
        )
    monitors = monitor_tokens(os.environ.get("MQLITE_MONITOR_TOKENS"), auth)
    refuse_what_is_not_there()
    with_metrics = metrics_setting(metrics, auth)
    from mqlite.broker.cors import origin_setting

    cors = origin_setting(os.environ.get("MQLITE_CORS"), auth=auth.tokens != "off")
    _log_to_stderr()
    with ExitStack() as stack:
        _keep_diagnostics(stack, diagnostic_log)
        mq = stack.enter_context(environment.embedded(environment.retention()))
        _run(mq, address, auth, monitors, cors, bool(insecure_allow_remote), with_metrics)
    logging.getLogger("mqlite.broker").info("database closed")


def _run(
    mq: Embedded,
    address: str,
    auth: Auth,
    monitors: list[str],
    cors: str | None,
    allow_remote: bool,
    metrics: bool,
) -> None:
    from mqlite.broker.serve import serve as serve_broker

    status = mq.status()
    mode = "off" if auth.tokens == "off" else "bearer tokens"

    def ready(url: str) -> None:
        streams.note(f"mqlite {mqlite.__version__}, {status.backend} {status.location}")
        streams.note(f"auth: {mode}, CORS: {cors or 'off'}")
        for warning in status.warnings:
            streams.warn(warning)
        _announce(url, auth)

    try:
        serve_broker(
            mq,
            address,
            tokens=auth.tokens,
            monitor_tokens=monitors,
            cors=cors,
            insecure_allow_remote=allow_remote,
            metrics=metrics,
            ready=ready,
        )
    except ImportError as error:
        raise CommandError(str(error)) from None
    except OSError as error:
        raise CommandError(_cannot_listen(address, error)) from None


def _announce(url: str, auth: Auth) -> None:
    """Say that connections are accepted, and what to type next where nobody has chosen a
    token yet. The token is printed here and nowhere else."""
    streams.note(f"ready: {url}")
    if auth.generated:
        streams.note(
            "\nIn another terminal:\n\n"
            f"  export MQLITE_ENDPOINT={url} MQLITE_TOKEN={auth.generated}\n"
            f"  {_program()} create-queue jobs && {_program()} send jobs hello\n"
            f"  {_program()} receive jobs\n"
        )


def _program() -> str:
    """How to call this program from another shell."""
    path = os.path.abspath(sys.argv[0])
    if os.path.basename(path) == "__main__.py":
        return f"{shlex.quote(sys.executable)} -m mqlite"
    return "mqlite" if shutil.which("mqlite") == path else shlex.quote(path)


def listen_address(flag: str | None, setting: str | None) -> str:
    """The address by precedence; one that was given blank is an error, not the default."""
    for name, value in (("--addr", flag), ("MQLITE_ADDR", setting)):
        if value is not None:
            if not value.strip():
                raise CommandError(f"{name} is blank; give an address such as 127.0.0.1:6754")
            return value.strip()
    return DEFAULT_ADDR


def broker_auth(setting: str | None) -> Auth:
    """MQLITE_TOKENS: unset or blank makes up a token, `off` disables, else a comma list."""
    value = (setting or "").strip()
    if not value:
        if setting is not None:
            streams.warn("MQLITE_TOKENS is set, but empty: a token is made for this run")
        token = generate_token()
        return Auth([token], token)
    if value.lower() == "off":
        return Auth("off")
    tokens = [token.strip() for token in value.split(",") if token.strip()]
    if not tokens:
        raise CommandError("MQLITE_TOKENS holds no token; unset it to have one made, or use 'off'")
    if "off" in map(str.lower, tokens):
        raise CommandError("MQLITE_TOKENS is either 'off' or a list of tokens, not both")
    return Auth([bearer_token(token, "MQLITE_TOKENS") for token in tokens])


def monitor_tokens(setting: str | None, auth: Auth) -> list[str]:
    """MQLITE_MONITOR_TOKENS: a comma list; unset, blank or `off` is none."""
    if not _is_set(setting):
        return []
    tokens = [token.strip() for token in (setting or "").split(",") if token.strip()]
    if not tokens:
        raise CommandError("MQLITE_MONITOR_TOKENS holds no token; unset it or set it to off")
    if auth.tokens == "off":
        raise CommandError("MQLITE_MONITOR_TOKENS needs authentication, but MQLITE_TOKENS is off")
    if not set(tokens).isdisjoint(auth.tokens):
        raise CommandError("MQLITE_MONITOR_TOKENS and MQLITE_TOKENS must not share a token")
    return [bearer_token(token, "MQLITE_MONITOR_TOKENS") for token in tokens]


def is_loopback(address: str) -> bool:
    """Whether only this machine can reach `address`; any name but localhost may be more."""
    host = address.rpartition(":")[0].removeprefix("[").removesuffix("]")
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _port(address: str) -> str:
    port = address.rpartition(":")[2]
    return port if port.isdigit() else DEFAULT_ADDR.removeprefix(":")


def metrics_setting(flag: bool | None, auth: Auth) -> bool:
    """Whether to serve /metrics, by precedence."""
    value = os.environ.get("MQLITE_METRICS", "").strip()
    switch = value.lower()
    if switch not in _SWITCHES:
        raise CommandError(f"MQLITE_METRICS must be on, true, 1, off, false or 0, got {value!r}")
    on = switch not in _OFF if flag is None else flag
    if on and auth.tokens == "off":
        name = "MQLITE_METRICS" if flag is None else "--metrics"
        raise CommandError(f"{name} needs authentication, but MQLITE_TOKENS is off")
    return on


def _keep_diagnostics(stack: ExitStack, flag: str | None) -> None:
    """The diagnostic log by precedence, until the stack unwinds; one that was given blank is
    none."""
    path = os.environ.get("MQLITE_DIAGNOSTIC_LOG") if flag is None else flag
    if not _is_set(path):
        return
    from mqlite.diagnostics import diagnostic_log
    from mqlite.stores.sqlite.location import parse_location

    database = parse_location(environment.database()).path
    kept = diagnostic_log((path or "").strip(), logging.getLogger("mqlite"), database=database)
    try:
        stack.enter_context(kept)
    except InvalidArgument as problem:
        name = "MQLITE_DIAGNOSTIC_LOG" if flag is None else "--diagnostic-log"
        raise CommandError(f"{name}: {problem}") from None


def refuse_what_is_not_there() -> None:
    """Raise CommandError where a documented setting asks for what this version has not got."""
    if os.environ.get("MQLITE_UI", "").strip().lower() not in (*_OFF, "no"):
        raise _missing("MQLITE_UI", "the console")


def _is_set(value: str | None) -> bool:
    return (value or "").strip().lower() not in ("", "off")


def _missing(setting: str, what: str) -> CommandError:
    return CommandError(
        f"{setting} asks for {what}, which this version does not have; unset it or set it to off"
    )


def _cannot_listen(address: str, problem: OSError) -> str:
    if problem.errno == errno.EADDRINUSE:
        return f"{address} is in use; is another broker running? Choose another with --addr"
    return problem.strerror or str(problem)


def _log_to_stderr() -> None:
    from mqlite.broker.requestlog import LineFormatter

    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(LineFormatter(color=sys.stderr.isatty()))
    logging.basicConfig(level=logging.INFO, handlers=[handler])
    logging.getLogger("uvicorn").setLevel(logging.WARNING)
