"""ops/observability: the rules, the scrape job and the dashboard, held against what is exposed."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from external import PROMETHEUS, program
from mqlite.links import DOCS_URL
from ops.exposed import selectors, series

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "ops/observability"
RULES = FOLDER / "prometheus/rules.yml"
DASHBOARD = FOLDER / "grafana/dashboards/mqlite.json"


def alerts() -> dict[str, dict[str, Any]]:
    groups = yaml.safe_load(RULES.read_text())["groups"]
    return {rule["alert"]: rule for group in groups for rule in group["rules"]}


def dashboard() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(DASHBOARD.read_text())
    return found


def shown() -> Iterator[str]:
    """The expressions of the dashboard."""
    board = dashboard()
    for panel in board["panels"]:
        yield from (target["expr"] for target in panel.get("targets", ()))
    for variable in board["templating"]["list"]:
        if variable["type"] == "query":
            yield variable["query"]["query"]
    yield from (each["expr"] for each in board["annotations"]["list"])


def promtool(*words: str | Path) -> None:
    done = subprocess.run(
        [program("promtool", PROMETHEUS), *words], capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stdout + done.stderr


def unknown(expression: str) -> list[str]:
    """What an expression asks for that no broker has."""
    exposed = series()
    found = []
    for name, labels in selectors(expression):
        if name not in exposed:
            found.append(name)
            continue
        for label, values in labels.items():
            known = exposed[name].get(label, set())
            if label == "queue" or (known and known.issuperset(values)):
                continue
            found.append(f"{name} with {label} of {values}, there is {sorted(known)}")
    return found


def test_unknown_names_and_values_are_noticed() -> None:
    assert unknown('rate(mqlite_message_events_total{event="completed"}[5m])') == []
    assert unknown("mqlite_queue_depth > 1") == ["mqlite_queue_depth"]
    assert len(unknown('mqlite_queue_messages{state=~"active|dead"}')) == 1
    assert len(unknown('mqlite_queue_messages{status="active"}')) == 1


def test_the_rules_are_rules() -> None:
    promtool("check", "rules", "--lint=all", "--lint-fatal", RULES)


def test_the_rules_fire_when_they_should_and_only_then() -> None:
    promtool("test", "rules", FOLDER / "prometheus/rules_test.yml")


@pytest.mark.parametrize("alert", alerts())
def test_every_alert_is_seen_to_fire(alert: str) -> None:
    cases = yaml.safe_load((FOLDER / "prometheus/rules_test.yml").read_text())["tests"]
    fired = {
        sample["labels"]
        for case in cases
        for evaluation in case["promql_expr_test"]
        for sample in evaluation["exp_samples"]
    }
    assert f'{{alertname="{alert}"}}' in fired


@pytest.mark.parametrize("alert", alerts())
def test_an_alert_asks_for_what_is_exposed(alert: str) -> None:
    assert unknown(alerts()[alert]["expr"]) == []


@pytest.mark.parametrize("alert", alerts())
def test_an_alert_says_what_to_do(alert: str) -> None:
    rule = alerts()[alert]
    assert rule["labels"]["severity"] in ("warning", "critical")
    url, _, anchor = rule["annotations"]["runbook_url"].partition("#")
    page = url.removeprefix(f"{DOCS_URL}/blob/main/")
    titles = [
        line.lstrip("# ").strip().lower().replace(" ", "-")
        for line in (ROOT / page).read_text().splitlines()
        if line.startswith("#")
    ]
    assert anchor in titles


def test_the_scrape_job() -> None:
    promtool("check", "config", "--syntax-only", FOLDER / "prometheus/prometheus.yml")
    [job] = yaml.safe_load((FOLDER / "prometheus/prometheus.yml").read_text())["scrape_configs"]
    assert job["job_name"] == "mqlite"
    assert job["authorization"]["type"] == "Bearer"


@pytest.mark.parametrize("expression", list(shown()))
def test_the_dashboard_shows_what_is_exposed(expression: str) -> None:
    assert unknown(expression) == []


def test_the_dashboards_expressions_can_be_evaluated(tmp_path: Path) -> None:
    rules = [
        {"record": f"panel:{number}", "expr": expression.replace("$__rate_interval", "5m")}
        for number, expression in enumerate(shown())
        if not expression.startswith("label_values")
    ]
    assert len(rules) > 20
    file = tmp_path / "panels.yml"
    file.write_text(yaml.safe_dump({"groups": [{"name": "panels", "rules": rules}]}))
    promtool("check", "rules", file)


def test_two_brokers_can_be_told_apart() -> None:
    """What is not added up over brokers is named after the one it is of."""
    targets = [each for panel in dashboard()["panels"] for each in panel.get("targets", ())]
    single = [each for each in targets if " by (" not in each["expr"]]
    assert len(single) > 5
    assert [each["expr"] for each in single if "{{instance}}" not in each["legendFormat"]] == []


def test_panels_do_not_overlap_and_fill_their_rows() -> None:
    covered: set[tuple[int, int]] = set()
    panels = dashboard()["panels"]
    for place in (panel["gridPos"] for panel in panels):
        cells = {
            (x, y)
            for x in range(place["x"], place["x"] + place["w"])
            for y in range(place["y"], place["y"] + place["h"])
        }
        assert not cells & covered
        covered |= cells
    height = max(y for _, y in covered) + 1
    assert len(covered) == 24 * height
    assert len({panel["id"] for panel in panels}) == len(panels)


def test_the_provisioned_names_agree() -> None:
    sources = FOLDER / "grafana/provisioning/datasources/prometheus.yaml"
    boards = FOLDER / "grafana/provisioning/dashboards/mqlite.yaml"
    [source] = yaml.safe_load(sources.read_text())["datasources"]
    [provider] = yaml.safe_load(boards.read_text())["providers"]
    services = yaml.safe_load((FOLDER / "compose.yaml").read_text())["services"]
    assert source["url"] == "http://prometheus:9090"
    assert "prometheus" in services
    mounts = [volume.split(":")[1] for volume in services["grafana"]["volumes"]]
    assert provider["options"]["path"] in mounts
