"""The recipes of the pages, held against what they speak of: files, secrets, images, users."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterator

import pytest
import yaml

from docs import pages
from mqlite import __version__
from ops.test_deployment import ROOT, manifests, pod

DEPLOYMENT, OPERATIONS = "docs/deployment.md", "docs/operations.md"
PAGES = ["README.md", *(f"docs/{page.name}" for page in sorted((ROOT / "docs").glob("*.md")))]

NEEDS_THE_FILE = re.compile(r"\bmqlite (backup(?!.* --verify)|doctor|vacuum)\b")
SECRET = re.compile(r"\$\(openssl|\$\{?\w*TOKENS?\b")
BEFORE_A_PROGRAM = re.compile(r"(\w+\(\) \{ |\w+=(\$\([^)]*\)|\S*)\s*)*")
KEPT_IN_THE_SHELL = re.compile(r"export |printf |[^<]*<<<")


def commands(page: str) -> Iterator[str]:
    for block in pages.shell(page):
        yield from block


def shows(line: str) -> bool:
    """Whether a program gets a secret among its arguments, where everybody can read them."""
    programs = [BEFORE_A_PROGRAM.sub("", part.strip(), 1) for part in re.split(r"\||&&", line)]
    return any(SECRET.search(each) and not KEPT_IN_THE_SHELL.match(each) for each in programs)


def test_a_secret_among_arguments_is_noticed() -> None:
    assert shows('fly secrets set MQLITE_TOKENS="$(openssl rand -hex 32)"')
    assert shows('kubectl create secret generic m --from-literal=t="$TOKEN"')
    assert shows('curl -H "Authorization: Bearer $MQLITE_TOKEN" http://h')
    assert not shows('A=$(openssl rand -hex 32) MQLITE_TOKEN="$A" mqlite serve')
    assert not shows('export MQLITE_TOKEN=$TOKEN && printf %s "$TOKEN" | fly secrets import')


@pytest.mark.parametrize("page", PAGES)
def test_no_secret_is_among_the_arguments_of_a_program(page: str) -> None:
    assert [line for line in commands(page) if shows(line)] == []


@pytest.mark.parametrize("page", PAGES)
def test_a_command_on_the_file_works_also_with_an_endpoint_in_the_environment(page: str) -> None:
    typed = [*commands(page), *re.findall(r"^    (\S.*)$", pages.text(page), re.MULTILINE)]
    found = [line for line in typed if NEEDS_THE_FILE.search(line)]
    assert [line for line in found if "--endpoint=" not in line] == []


def test_commands_on_the_file_are_looked_for() -> None:
    assert len([line for line in commands(OPERATIONS) if NEEDS_THE_FILE.search(line)]) > 5


@pytest.mark.parametrize("page", [DEPLOYMENT, OPERATIONS])
def test_the_files_that_are_named_are_there(page: str) -> None:
    named = {word for line in commands(page) for word in re.findall(r"\bops/[\w./*-]+", line)}
    assert named
    assert [word for word in named if not list(ROOT.glob(word))] == []


def test_the_secrets_that_are_made_are_those_that_the_pod_reads() -> None:
    made = {}
    for line in commands(DEPLOYMENT):
        if secret := re.search(r"create secret generic (\S+) --from-file=(\S+)=/dev/stdin$", line):
            made[secret[1]] = secret[2]
            dry_run(line, secret[2])
    read = [each["valueFrom"]["secretKeyRef"] for each in environment() if "valueFrom" in each]
    assert made == {secret["name"]: secret["key"] for secret in read}


def environment() -> list[dict[str, dict[str, dict[str, str]]]]:
    [container] = pod()["containers"]
    found: list[dict[str, dict[str, dict[str, str]]]] = container["env"]
    return found


def dry_run(line: str, key: str) -> None:
    """The secret as kubectl would make it, where there is one."""
    if shutil.which("kubectl") is None:
        return
    done = subprocess.run(
        ["/bin/sh", "-c", f"TOKEN=secret MONITOR_TOKEN=secret; {line} --dry-run=client -o yaml"],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    assert yaml.safe_load(done.stdout)["data"] == {key: "c2VjcmV0"}


def test_the_image_has_one_name() -> None:
    [broker] = pod()["containers"]
    [shell] = manifests("restore.yaml")["Pod"]["spec"]["containers"]
    assert broker["image"] == shell["image"] == f"registry.example.com/mqlite:{__version__}"
    [named] = [line for line in commands(DEPLOYMENT) if line.startswith("sed ")]
    assert f"s|{broker['image']}|" in named


def test_the_pod_of_the_restore_has_the_user_and_the_volume_of_the_brokers() -> None:
    spec, (broker,) = manifests("restore.yaml")["Pod"]["spec"], pod()["containers"]
    [shell] = spec["containers"]
    assert spec["securityContext"] == pod()["securityContext"]
    assert shell["securityContext"] == broker["securityContext"]
    assert shell["volumeMounts"] == broker["volumeMounts"]
    assert [each for each in broker["env"] if each["name"] == "MQLITE_DB"] == shell["env"]
    stateful = manifests("broker.yaml")["StatefulSet"]
    [claim] = stateful["spec"]["volumeClaimTemplates"]
    [volume] = spec["volumes"]
    name = f"{claim['metadata']['name']}-{stateful['metadata']['name']}-0"
    assert volume["persistentVolumeClaim"]["claimName"] == name


def test_the_service_does_not_find_the_pod_of_the_restore() -> None:
    labels = manifests("restore.yaml")["Pod"]["metadata"]["labels"]
    selector = manifests("broker.yaml")["Service"]["spec"]["selector"]
    assert not selector.items() <= labels.items()
