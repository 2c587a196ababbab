"""The deployment files, parsed and held against the code: ports, paths, settings, patience."""

from __future__ import annotations

import re
import shutil
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

from mqlite.broker.discovery import HEALTH_PATH
from mqlite.broker.limits import Timeouts
from mqlite.cli.serve import DEFAULT_ADDR
from mqlite.stores.sqlite.store import CLOSE_S

ROOT = Path(__file__).parents[2]
OPS = ROOT / "ops"
PORT = int(DEFAULT_ADDR.removeprefix(":"))
STOP_S = Timeouts().grace + CLOSE_S
"""What the broker takes at most between a signal and its end."""

DEPLOYED = [
    ROOT / "Dockerfile",
    ROOT / "fly.toml",
    *(file for file in sorted(OPS.rglob("*")) if file.is_file()),
]


def known_settings() -> set[str]:
    """The environment variables that the command reads."""
    sources = "".join(file.read_text() for file in (ROOT / "src/mqlite").rglob("*.py"))
    return set(re.findall(r"\"(MQLITE_[A-Z_]+)\"", sources))


def manifests(name: str) -> dict[str, dict[str, Any]]:
    """By kind, what a file of Kubernetes manifests holds."""
    documents = yaml.safe_load_all((OPS / "kubernetes" / name).read_text())
    return {document["kind"]: document for document in documents}


def pod() -> dict[str, Any]:
    found: dict[str, Any] = manifests("broker.yaml")["StatefulSet"]["spec"]["template"]["spec"]
    return found


@pytest.mark.parametrize("file", DEPLOYED, ids=lambda file: str(file.relative_to(ROOT)))
def test_settings_exist(file: Path) -> None:
    named = set(re.findall(r"\bMQLITE_[A-Z_]+\b", file.read_text()))
    assert named <= known_settings()


@pytest.mark.parametrize("file", DEPLOYED, ids=lambda file: str(file.relative_to(ROOT)))
def test_no_file_holds_a_secret(file: Path) -> None:
    assert not re.search(r"mqk_\w+|TOKENS?\s*[=:]\s*[\"']?\w", file.read_text())


# Docker


def instructions() -> list[tuple[str, str]]:
    text = re.sub(r"^#.*\n", "", (ROOT / "Dockerfile").read_text(), flags=re.MULTILINE)
    lines = text.replace("\\\n", " ").splitlines()
    return [(line.split()[0], line.split(maxsplit=1)[1]) for line in lines if line.strip()]


def test_the_image_listens_where_it_says() -> None:
    last = dict(instructions())
    assert int(last["EXPOSE"]) == PORT
    assert last["CMD"] == f'["serve", "--addr", ":{PORT}"]'
    assert f"http://127.0.0.1:{PORT}{HEALTH_PATH}" in last["HEALTHCHECK"]


def test_the_image_does_not_run_as_root_and_keeps_its_data_in_the_volume() -> None:
    last = dict(instructions())
    assert re.fullmatch(r"[1-9]\d*:[1-9]\d*", last["USER"])
    assert f"MQLITE_DB=file:{last['VOLUME']}/" in last["ENV"]
    owned = [
        text for what, text in instructions() if what == "RUN" and last["VOLUME"] in text.split()
    ]
    uid = last["USER"].partition(":")[0]
    assert len(owned) == 1
    assert f"--uid {uid} " in owned[0]
    assert "--owner=mqlite" in owned[0]


def test_the_image_has_the_python_that_is_tested() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    version = project["tool"]["mypy"]["python_version"]
    bases = {text.split()[0] for what, text in instructions() if what == "FROM"}
    assert bases == {f"python:{version}-slim-bookworm"}


# Kubernetes


def test_one_pod_owns_the_file() -> None:
    spec = manifests("broker.yaml")["StatefulSet"]["spec"]
    assert spec["replicas"] == 1
    [claim] = spec["volumeClaimTemplates"]
    assert claim["spec"]["accessModes"] == ["ReadWriteOnce"]


def test_the_pods_port_and_probes() -> None:
    [container] = pod()["containers"]
    assert container["ports"] == [{"name": "http", "containerPort": PORT}]
    for probe in ("readinessProbe", "livenessProbe"):
        assert container[probe]["httpGet"] == {"path": HEALTH_PATH, "port": "http"}
    assert container["args"] == ["serve", "--addr", f":{PORT}"]
    [port] = manifests("broker.yaml")["Service"]["spec"]["ports"]
    assert (port["port"], port["targetPort"]) == (PORT, "http")


def test_the_pods_volume_holds_the_database() -> None:
    [container] = pod()["containers"]
    [mount] = container["volumeMounts"]
    settings = {entry["name"]: entry.get("value", "") for entry in container["env"]}
    assert settings["MQLITE_DB"].startswith(f"file:{mount['mountPath']}/")
    assert pod()["securityContext"]["runAsUser"] == pod()["securityContext"]["fsGroup"]
    assert dict(instructions())["USER"] == "{runAsUser}:{runAsGroup}".format(
        **pod()["securityContext"]
    )


def test_labels_and_secrets_agree() -> None:
    broker = manifests("broker.yaml")
    label = {"app.kubernetes.io/name": "mqlite"}
    assert broker["Service"]["spec"]["selector"] == label
    assert broker["Service"]["metadata"]["labels"] == label
    assert broker["StatefulSet"]["spec"]["selector"]["matchLabels"] == label
    monitor = manifests("servicemonitor.yaml")["ServiceMonitor"]["spec"]
    assert monitor["selector"]["matchLabels"] == label
    [endpoint] = monitor["endpoints"]
    secrets = {
        entry["name"]: entry["valueFrom"]["secretKeyRef"]
        for entry in pod()["containers"][0]["env"]
        if "valueFrom" in entry
    }
    assert endpoint["authorization"]["credentials"] == secrets["MQLITE_MONITOR_TOKENS"]
    policy = manifests("network.yaml")["NetworkPolicy"]["spec"]
    assert policy["podSelector"]["matchLabels"] == label


def test_kustomize_reads_the_manifests() -> None:
    kubectl = shutil.which("kubectl")
    if kubectl is None:
        pytest.skip("kubectl is not here; see https://kubernetes.io/docs/tasks/tools/")
    done = subprocess.run(
        [kubectl, "kustomize", str(OPS / "kubernetes")], capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
    kinds = {document["kind"] for document in yaml.safe_load_all(done.stdout)}
    assert kinds == {"Namespace", "Service", "StatefulSet", "NetworkPolicy"}


# The others


def test_fly() -> None:
    settings = tomllib.loads((ROOT / "fly.toml").read_text())
    [mount] = settings["mounts"]
    assert settings["env"]["MQLITE_DB"].startswith(f"file:{mount['destination']}/")
    service = settings["http_service"]
    assert service["internal_port"] == PORT
    assert [check["path"] for check in service["checks"]] == [HEALTH_PATH]
    assert (ROOT / settings["build"]["dockerfile"]).exists()


def test_compose() -> None:
    folder = OPS / "observability"
    stack = yaml.safe_load((folder / "compose.yaml").read_text())
    broker = stack["services"]["broker"]
    assert (folder / broker["build"] / "Dockerfile").exists()
    ports = [port for service in stack["services"].values() for port in service["ports"]]
    assert f"127.0.0.1:{PORT}:{PORT}" in ports
    assert all(port.startswith("127.0.0.1:") for port in ports)
    assert broker["volumes"] == [f"data:{dict(instructions())['VOLUME']}"]
    for service in ("prometheus", "grafana"):
        for volume in stack["services"][service]["volumes"]:
            assert (folder / volume.split(":")[0]).is_dir()
    job = yaml.safe_load((folder / "prometheus/prometheus.yml").read_text())["scrape_configs"][0]
    assert job["static_configs"] == [{"targets": [f"broker:{PORT}"]}]
    assert job["authorization"]["credentials_file"] in {
        f"/run/secrets/{name}" for name in stack["secrets"]
    }


def seconds(text: str) -> int:
    return int(text.removesuffix("s"))


def test_everybody_waits_longer_than_the_broker_takes_to_stop() -> None:
    stack = yaml.safe_load((OPS / "observability/compose.yaml").read_text())
    unit = (OPS / "systemd/mqlite.service").read_text()
    timeout = re.search(r"^TimeoutStopSec=(\d+)$", unit, re.MULTILINE)
    assert timeout is not None
    patience = {
        "kubernetes": pod()["terminationGracePeriodSeconds"],
        "fly": seconds(tomllib.loads((ROOT / "fly.toml").read_text())["kill_timeout"]),
        "compose": seconds(stack["services"]["broker"]["stop_grace_period"]),
        "systemd": int(timeout[1]),
    }
    assert {who: given for who, given in patience.items() if given <= STOP_S} == {}
