"""The steps of the Dockerfile, without Docker: its build in a fresh virtual environment, from the files
it copies, and what that made started as the image starts it."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from mqlite import __version__
from ops.test_deployment import PORT, ROOT, instructions

INSTALLED = "/opt/mqlite"
OFFLINE = re.compile(r"NewConnectionError|NameResolutionError|ConnectTimeout|ProxyError")


def copy_context(words: str, into: Path) -> None:
    *sources, target = words.split()
    for source in map(ROOT.joinpath, sources):
        if source.is_dir():
            unpacked = shutil.ignore_patterns("__pycache__")
            shutil.copytree(source, into / target, ignore=unpacked)
        else:
            shutil.copy(source, into / target)


def run(line: str, folder: Path) -> None:
    done = subprocess.run(
        ["/bin/sh", "-c", line], cwd=folder, capture_output=True, text=True, timeout=300
    )
    said = done.stdout + done.stderr
    if done.returncode and OFFLINE.search(said) and os.environ.get("CI") != "true":
        pytest.skip("offline: the packages of the image cannot be fetched")
    assert done.returncode == 0, said


@pytest.fixture
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The environment that the first stage makes, out of nothing but what it copies."""
    context, target = tmp_path_factory.mktemp("context"), tmp_path_factory.mktemp("image")
    steps = instructions()
    for what, text in steps[: [what for what, _ in steps].index("FROM", 1)]:
        if what == "COPY":
            copy_context(text, context)
        elif what == "RUN":
            python = text.replace("python -m venv", f"{sys.executable} -m venv")
            run(python.replace(INSTALLED, str(target)), context)
    return target


def test_what_is_built_starts_answers_its_health_check_and_can_install_no_more(
    installed: Path, tmp_path: Path
) -> None:
    last = dict(instructions())
    [program], arguments = json.loads(last["ENTRYPOINT"]), json.loads(last["CMD"])
    [check] = re.findall(r"CMD (\[.*\])", last["HEALTHCHECK"])
    listen = [word.replace(f":{PORT}", "127.0.0.1:0") for word in arguments]
    environment = {"PATH": f"{installed}/bin", "MQLITE_DB": f"file:{tmp_path}/mq.db"}
    with subprocess.Popen(
        [installed / "bin" / program, *listen], env=environment, stderr=subprocess.PIPE, text=True
    ) as broker:
        try:
            assert broker.stderr is not None
            said: list[str] = []
            while not said or not said[-1].startswith("ready: "):
                said.append(broker.stderr.readline())
                assert said[-1], "".join(said)
            url = said[-1].split()[1]
            python, *words = [
                word.replace(f"http://127.0.0.1:{PORT}", url) for word in json.loads(check)
            ]
            health = subprocess.run(
                [installed / "bin" / python, *words], capture_output=True, text=True
            )
            assert health.returncode == 0, health.stderr
        finally:
            broker.terminate()
            broker.communicate(timeout=60)
    assert broker.returncode == 0
    assert any(line.startswith(f"mqlite {__version__}") for line in said)
    pip = subprocess.run([installed / "bin/python", "-m", "pip"], capture_output=True, text=True)
    assert "No module named pip" in pip.stderr
