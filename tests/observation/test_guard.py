"""The guard of secrets sees them where they must not be."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

TESTS = Path(__file__).parent.parent
TOKEN = "secret-of-a-test"
KEY = "mqk_" + "0" * 64

LEAKS = {
    "log": f"logging.getLogger('mqlite').warning('it is %s', {TOKEN!r})",
    "quiet log": f"logging.getLogger('mqlite').debug('%s', {KEY!r})",
    "traceback": f"""
        try: raise ValueError({TOKEN!r})
        except ValueError: logging.getLogger('mqlite').exception('failed')""",
    "error": f"""
        try: raise mqlite.NotFound('no ' + {TOKEN!r})
        except mqlite.NotFound: pass""",
    "answer": f"wire.encode(wire.ErrorBody('internal', {TOKEN!r}))",
    "metrics": f"""
        with mqlite.open(':memory:') as mq:
            mq.create_queue({TOKEN!r})
            metrics.exposition(mq.observe())""",
    "command line": f"cli.main(['create-queue', {TOKEN!r}])",
    "process": f"""
        subprocess.run(['sh', '-c', 'echo {TOKEN} >&2'], capture_output=True)""",
}
FINE = {
    "nothing": "pass",
    "a new key": f"wire.encode(CreatedKey(None, {KEY!r}))",
    "key create": "cli.main(['key', 'create', '--name', 'n', '--permission', 'send'])",
    "short": "logging.getLogger('mqlite').warning('short')",
}
HEAD = """
import logging, subprocess
import pytest
import mqlite
from mqlite import cli, wire
from mqlite.broker import metrics
from mqlite.broker.auth import Authenticator
from mqlite.keys import CreatedKey

@pytest.fixture(autouse=True)
def around(tmp_path, monkeypatch):
    logging.getLogger('mqlite').setLevel(logging.DEBUG)
    monkeypatch.setenv('MQLITE_DB', str(tmp_path / 'mq.db'))
    Authenticator([{token!r}, 'short'])
"""
TEST = """
def test_{name}():
    if True:
        {code}
"""


def test_a_leak_fails_the_test_and_what_may_be_shown_does_not(tmp_path: Path) -> None:
    tests = (TEST.format(name=_named(name), code=code) for name, code in (LEAKS | FINE).items())
    (tmp_path / "test_it.py").write_text(HEAD.format(token=TOKEN) + "".join(tests))
    ran = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "guard", "-p", "no:cacheprovider", tmp_path],
        env=os.environ | {"PYTHONPATH": os.pathsep.join([str(TESTS), *sys.path])},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=60,
    )
    assert ran.returncode == 1
    failed = set(
        re.findall(r"ERROR at teardown of test_(\w+) _+\na secret shows up in", ran.stdout)
    )
    assert failed == {_named(name) for name in LEAKS}, ran.stdout
    assert f"{len(LEAKS | FINE)} passed, {len(LEAKS)} errors" in ran.stdout


def _named(words: str) -> str:
    return words.replace(" ", "_")
