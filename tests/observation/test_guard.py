"""The guard of secrets sees them where they must not be, and fails the run."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

TESTS = Path(__file__).parent.parent
TOKEN = "secret-of-a-test"
KEY = "mqk_" + "0" * 64
HALVES = "'secret-of-' + 'a-test'"
"""The token of a child, which is not to be read on the command line of the tests."""

LEAKS = {
    # name: (where the guard says it is, the body of a test)
    "log": ("a record of x", f"logger.warning('it is %s', {TOKEN!r})"),
    "quiet log": ("a record of x", f"logger.debug('%s', {KEY!r})"),
    "diagnostic record": (
        "a record of x",
        f"logger.warning('failed', extra={{'diagnostic': {{'provider': {TOKEN!r}}}}})",
    ),
    "traceback": (
        "a traceback of x",
        f"""
        try: raise ValueError({TOKEN!r})
        except ValueError: logger.exception('failed')""",
    ),
    "error": (
        "a NotFound",
        f"""
        try: raise mqlite.NotFound('no ' + {TOKEN!r})
        except mqlite.NotFound: pass""",
    ),
    "answer": ("an answer", f"wire.encode(wire.ErrorBody('internal', {TOKEN!r}))"),
    "tool": ("a tool's result", f"server._result({TOKEN!r})"),
    "metrics": (
        "the metrics",
        f"""
        with mqlite.open(':memory:') as mq:
            mq.create_queue({TOKEN!r})
            metrics.exposition(mq.observe())""",
    ),
    "printed": ("what a command prints", f"cli.main(['create-queue', {TOKEN!r}])"),
    "said": ("what a command says", f"cli.main([{TOKEN!r}])"),
    "said of a new key": (
        "what a command says",
        f"cli.main(['key', 'create', '--output', {KEY!r}])",
    ),
    "announced twice": ("what a command says", "announce(); streams.note(2 * ANNOUNCED)"),
    # URLs
    "base URL": ("the URL of a broker", f"mqlite.Client('http://h/{TOKEN}')"),
    "URL of a client": (
        "a URL that is asked for: POST /",
        f"""
        with mqlite.Client('http://127.0.0.1:1/{TOKEN}', retry_for=0) as client:
            with pytest.raises(mqlite.Unavailable):
                client.list_queues()""",
    ),
    "URL of an async client": (
        "a URL that is asked for: http://127.0.0.1:1/",
        f"""
        async def ask():
            async with mqlite.AsyncClient('http://127.0.0.1:1/{TOKEN}', retry_for=0) as client:
                await client.list_queues()
        with pytest.raises(mqlite.Unavailable):
            asyncio.run(ask())""",
    ),
    "URL of urllib": (
        "a URL that is asked for: http://",
        """
        with pytest.raises(OSError):
            urllib.request.urlopen('http://user:pw@127.0.0.1:1')""",
    ),
    "URL of a plain request": (
        "a URL that is asked for: /healthz?",
        f"""
        with mqlite.open(':memory:') as mq, mq.serving(tokens='off') as url:
            connection = http.client.HTTPConnection(url.removeprefix('http://'))
            connection.request('GET', '/healthz?{TOKEN}')
            connection.getresponse().read()
            connection.close()""",
    ),
    "target of a request": (
        "a URL that the broker is asked for: /healthz?",
        f"""
        with mqlite.open(':memory:') as mq, mq.serving(tokens='off') as url:
            host, port = url.removeprefix('http://').split(':')
            with socket.create_connection((host, int(port))) as connection:
                connection.sendall(b'GET /healthz?{TOKEN} HTTP/1.0\\r\\n\\r\\n')
                connection.recv(1)""",
    ),
    "target of a mount's request": (
        "a URL that the broker is asked for: x=",
        f"""
        async def ignore(event): pass
        scope = dict(type='http', method='GET', path='/healthz', headers=[])
        with mqlite.open(':memory:') as mq:
            app = mqlite.asgi(mq, tokens='off')
            asyncio.run(app(scope | dict(query_string=b'x={TOKEN}'), None, ignore))""",
    ),
    "URL of serving": (
        "the URL of a broker",
        f"""
        class Listener:
            def getsockname(self): return '127.0.0.1', {TOKEN!r}
        url_of(Listener())""",
    ),
    "name": (
        "a name that is looked up",
        f"""
        with pytest.raises(OSError):
            socket.getaddrinfo('{TOKEN}.invalid', 1)""",
    ),
    # processes
    "command line": ("the command line of a process", f"subprocess.run(['true', {TOKEN!r}])"),
    "shell": ("the command line of a process", f"subprocess.run('true {TOKEN}', shell=True)"),
    "system": ("the command line of a process", f"os.system('true {TOKEN}')"),
    "exec": (
        "the command line of a process",
        f"""
        process = os.fork()
        if not process:
            os.execlp('true', 'true', {TOKEN!r})
        os.waitpid(process, 0)""",
    ),
    "posix_spawn": (
        "the command line of a process",
        f"os.waitpid(os.posix_spawnp('true', ['true', {TOKEN!r}], os.environ), 0)",
    ),
    "title": ("the title of a process", f"entitle({TOKEN!r})"),
    "title of a child": (
        "the title of a process",
        f"""
        with python("entitle({HALVES}); print(flush=True); input()") as process:
            process.stdout.readline()
            process.kill()""",
    ),
    "title of a child's child": (
        "the title of a process",
        f"""
        program = PROGRAM + "entitle({HALVES})"
        line = ['sh', '-c', '"$0" -c "$1"; :', sys.executable, program]
        subprocess.run(line, env=os.environ | dict(MQLITE_TOKENS={TOKEN!r}))""",
    ),
    "standard error": (
        "standard error of a process",
        f"subprocess.run(['sh'], input=b'echo {TOKEN} >&2', capture_output=True)",
    ),
    "fork": (
        "a record of x",
        f"""
        process = os.fork()
        if not process:
            logger.warning({TOKEN!r})
            os._exit(0)
        os.waitpid(process, 0)""",
    ),
    "log of a child": (
        "a record of x",
        f"""
        with python("Authenticator([{HALVES}]); logger.warning({HALVES})"):
            pass""",
    ),
    "child with an environment of its own": (
        "a NotFound",
        f"""
        program = "mqlite.Client('http://h', token={HALVES}); mqlite.NotFound({HALVES})"
        with python(program, env={{'PATH': os.environ['PATH']}}):
            pass""",
    ),
    "child of a child": (
        "what a command prints",
        """
        line = f'{sys.executable} -m mqlite create-queue mqk_$ZEROS'
        subprocess.run(['sh'], input=line.encode(), env=os.environ | dict(ZEROS='0' * 64))""",
    ),
    "error of a child": (
        "an error that nobody handles",
        """
        with python('raise ValueError("mqk_" + 64 * "0")'):
            pass""",
    ),
    "error of a child's thread": (
        "an error that nobody handles",
        """
        with python('import threading; threading.Thread(target=lambda: {}[KEY]).start()'):
            pass""",
    ),
    # spellings
    "percent signs": (
        "a record of x",
        f"logger.warning('%s', ''.join(f'%{{ord(each):02X}}' for each in {TOKEN!r}))",
    ),
    "base64": (
        "a record of x",
        f"logger.warning('Basic %s', base64.b64encode(b'someone:{TOKEN}').decode())",
    ),
    "base64 in a path": (
        "a record of x",
        f"logger.warning('/path/%s/x', base64.urlsafe_b64encode(b'{KEY}').decode())",
    ),
    "beginning": ("a record of x", f"logger.warning({TOKEN[:12]!r})"),
    "beginning of a key": ("a record of x", f"logger.warning({KEY[:20]!r})"),
    "capitals": ("a record of x", f"logger.warning({TOKEN.upper()!r})"),
    # who tells the guard
    "token of a monitor": (
        "a record of x",
        """
        Authenticator(['of-administrators'], ['of-monitors'])
        logger.warning('of-monitors')""",
    ),
    "token of a client": (
        "a record of x",
        "mqlite.Client('http://h', token='of-a-client'); logger.warning('of-a-client')",
    ),
    "token of a short name": (
        "a record of x",
        "mqlite.Client('http://h', token='mqk_x'); logger.warning('mqk_x')",
    ),
    "token in an endpoint": (
        "a record of x",
        "mqlite.AsyncClient('mqlite://in-a%2Dname@h'); logger.warning('in-a-name')",
    ),
    "password in a refused endpoint": (
        "a record of x",
        """
        with pytest.raises(mqlite.InvalidArgument):
            mqlite.Client('http://someone:its-password@h')
        logger.warning('its-password')""",
    ),
    "token in an option of a URL": (
        "a record of x",
        """
        with pytest.raises(mqlite.InvalidArgument):
            mqlite.Client('http://h?authToken=in-an-option')
        logger.warning('in-an-option')""",
    ),
    "token of a command": (
        "a record of x",
        """
        cli.main(['list', '--endpoint', 'http://127.0.0.1:1', '--token', 'of-a-command'])
        logger.warning('of-a-command')""",
    ),
    "token of a process": (
        "a record of x",
        """
        subprocess.run(['true'], env=os.environ | dict(MQLITE_TOKENS='one-of-two,of-a-process'))
        logger.warning('of-a-process')""",
    ),
    "password of a database": (
        "a record of x",
        """
        subprocess.run(['true'], env=os.environ | dict(MQLITE_DB='postgres://u:of-postgres@h/d'))
        logger.warning('of-postgres')""",
    ),
    "token of a setting": (
        "a record of x",
        "serve.broker_auth('first-of-them, and-another'); logger.warning('and-another')",
    ),
}
HOLDERS = {
    # what holds a token or may: how it is made
    "Authenticator": "Authenticator('off')",
    "app.Broker": "mq = mqlite.open(':memory:'); mqlite.asgi(mq, tokens='off'); mq.close()",
    "mqlite.Client": "mqlite.Client('http://h')",
    "mqlite.AsyncClient": "mqlite.AsyncClient('http://h')",
    "Target": "mqlite.Client('http://h')",
    "endpoint.Endpoint": "endpoint.parse_endpoint('http://h')",
    "connect.Target": "connect.choose_target('http://h', '')",
    "serve.Auth": "serve.broker_auth('off')",
    "broker.Broker": "broker.Broker(Target('http://h', '', {}))",
    "CreatedKey": "wire.encode(CreatedKey(None, KEY))",
}
LEAKS |= {
    f"repr of {kind}": ("a repr", f"with showing({kind}): {made}") for kind, made in HOLDERS.items()
}
FINE = {
    "nothing": "pass",
    "a new key": f"""
        key = AccessKey(id='0' * 32, name='n', permissions=('send',), created_at_ms=1)
        server._result(wire.encode(CreatedKey(key, {KEY!r})).decode())""",
    "key create": "assert not cli.main('key create --name n --permissions send'.split())",
    "announcement": "announce()",
    "announcement of a process": (
        "subprocess.run(['sh'], input=f'echo \"{ANNOUNCED}\" >&2'.encode(), capture_output=True)"
    ),
    "short": "logger.warning('short')",
    "example": "streams.note('such as mqlite://token@host')",
    "child": "with python('logger.warning(KEY[:10])'): pass",
}
HEAD = f"""
import asyncio, base64, contextlib, ctypes, http.client, logging, os, socket, subprocess, sys
import urllib.request
import pytest
import mqlite
from mqlite import cli, endpoint, wire
from mqlite.broker import app, metrics
from mqlite.broker.auth import Authenticator
from mqlite.broker.server import url_of
from mqlite.cli import connect, serve, streams
from mqlite.client.target import Target
from mqlite.keys import AccessKey, CreatedKey
from mqlite.mcp import broker, server

logger = logging.getLogger('x')
KEY = {KEY!r}
ANNOUNCED = f'  export MQLITE_ENDPOINT=http://127.0.0.1:1 MQLITE_TOKEN={{KEY}}\\n'
PROGRAM = '''
import ctypes, logging, mqlite
from mqlite.broker.auth import Authenticator
logger = logging.getLogger('x')
KEY = "mqk_" + 64 * "0"
def entitle(name): ctypes.CDLL(None).prctl(15, name.encode(), 0, 0, 0)
'''

def entitle(name):
    ctypes.CDLL(None).prctl(15, name.encode(), 0, 0, 0)

@contextlib.contextmanager
def showing(kind):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kind, '__repr__', lambda self: {TOKEN!r})
        yield

def announce():
    streams.note('\\nIn another terminal:\\n\\n' + ANNOUNCED)

def python(program, **options):
    return subprocess.Popen([sys.executable, '-c', PROGRAM + program],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, **options)

@pytest.fixture(autouse=True)
def around(tmp_path, monkeypatch):
    entitle('python')
    logger.setLevel(logging.DEBUG)
    monkeypatch.setenv('MQLITE_DB', str(tmp_path / 'mq.db'))
    Authenticator([{TOKEN!r}, 'short'])
"""
TEST = """
def test_{name}():
    if True:
        {code}
"""
WITHOUT_A_CACHE = ["-p", "no:cacheprovider"]
LATE = f"""
import logging

def pytest_sessionfinish():
    logging.getLogger('x').warning({KEY!r})
"""

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="sets the title of a process"),
    pytest.mark.parametrize("workers", [[], ["-n", "2"]], ids=["alone", "workers"]),
]


def run(folder: Path, workers: list[str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "guard", *WITHOUT_A_CACHE, *workers, folder],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": os.pathsep.join([str(TESTS), *sys.path])},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=120,
    )


def test_a_leak_fails_the_test_and_what_may_be_shown_does_not(
    tmp_path: Path, workers: list[str]
) -> None:
    bodies = {name: code for name, (_, code) in LEAKS.items()} | FINE
    tests = (TEST.format(name=_named(name), code=code) for name, code in bodies.items())
    (tmp_path / "test_it.py").write_text(HEAD + "".join(tests))
    ran = run(tmp_path, workers)
    assert ran.returncode == 1, ran.stdout
    failed = dict(
        re.findall(
            r"ERROR at teardown of test_(\w+) _+\n(?:\[gw.*\n)?a secret shows up in (.*)",
            ran.stdout,
        )
    )
    assert failed.keys() == {_named(name) for name in LEAKS}, ran.stdout
    for name, (where, _) in LEAKS.items():
        assert where in failed[_named(name)]
    assert f"{len(bodies)} passed" in ran.stdout
    assert f"{len(LEAKS)} errors" in ran.stdout
    assert not re.search("shows up in.*(secret-of|mqk_0)", ran.stdout), "the guard shows it itself"


def test_a_leak_after_the_last_test_fails_the_run(tmp_path: Path, workers: list[str]) -> None:
    (tmp_path / "conftest.py").write_text(LATE)
    (tmp_path / "test_it.py").write_text("def test_it(): pass\n")
    ran = run(tmp_path, workers)
    assert ran.returncode == 1, ran.stdout
    assert "1 passed" in ran.stdout
    assert "after the last test a secret shows up in a record of x: (the secret)" in ran.stdout


def _named(words: str) -> str:
    return re.sub(r"\W", "_", words)
