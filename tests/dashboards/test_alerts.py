"""Firing and clearing of alerts, tested by `promtool` with generated series."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Mapping
from itertools import accumulate
from pathlib import Path
from typing import NamedTuple

import pytest
import yaml

from gateway.cli.commands.dashboards import FILES
from tests.dashboards.prometheus import program

RULES = FILES / "prometheus" / "alerts.yml"
PHASES = (10, 80, 10)
"""Minutes of the three phases of a test: normal, faulty, normal."""
WINDOW = 5
"""Minutes over which the expressions of the alert rules compute rates."""
ONE = '{job="gateway",instance="a"}'
SEARCHES = "gateway_search_duration_seconds"
CALLS = 'gateway_tool_duration_seconds_count{gen_ai_tool_type="function",gateway_server_name="a"'
RESULTS = 'gateway_search_results_%s{gateway_match_kind="match"%s}'
HTTP = "http_server_request_duration_seconds_count"
ROUTE = 'job="gateway",instance="a",http_route="/mcp",http_response_status_code'
WANT_VECTORS = '{gateway_search_strategy="auto",gateway_cache_hit="false"}'
STORE = 'gateway_store_failures_total{gateway_store_name="a"}'
BUILDS = "gateway_index_build_duration_seconds_count"
UP = {f"up{ONE}": "1 1 1"}
OF_GATEWAY = {f"gateway_servers{ONE}": "1 1 1"}


class Case(NamedTuple):
    """Values of series in the three phases, keyed by series.

    ``_`` means no value; a value after ``+`` is an increase per minute.
    """

    alert: str
    series: Mapping[str, str]
    fires: bool = True
    late: int = 2 * WINDOW + 1
    """Maximum number of minutes between the end of the alert's waiting time and its firing."""


def searches(slow: str) -> dict[str, str]:
    """Return a histogram of ten searches per minute, some of which take more than a second."""
    fast = " ".join(str(10 - int(item)) for item in slow.split())
    buckets = {"0.1": fast, "1.0": fast, "2.0": "10 10 10", "+Inf": "10 10 10"}
    return {f'{SEARCHES}_bucket{{le="{le}"}}': f"+{item}" for le, item in buckets.items()}


CASES = (
    Case("GatewayDown", {f"up{ONE}": "1 0 1"}),
    Case("GatewayDown", {'up{job="else",instance="b"}': "1 0 1"}, fires=False),
    Case("GatewayIndexNotBuilt", {**UP, f"gateway_index_age_seconds{ONE}": "1 _ 1"}),
    Case(
        "GatewayIndexNotBuilt",
        {
            **UP,
            f"gateway_index_age_seconds{ONE}": "1 1 1",
            BUILDS + '{job="gateway",instance="a",error_type="E"}': "+0 1 0",
        },
    ),
    Case("GatewayServerDown", {'gateway_servers{gateway_server_state="down"}': "0 1 0"}),
    Case("GatewayServerDown", {'gateway_servers{gateway_server_state="up"}': "1 1 1"}, fires=False),
    Case("GatewayApprovalsPending", {f"gateway_approvals_pending{ONE}": "0 2 0"}),
    Case("GatewayStoreFailing", {STORE: "_ 1 1"}, late=1),
    Case("GatewayStoreFailing", {STORE: "+0 1 0"}),
    Case(
        "GatewayRequestsFailing",
        {**OF_GATEWAY, f'{HTTP}{{{ROUTE}="200"}}': "+9 9 9", f'{HTTP}{{{ROUTE}="503"}}': "+0 1 0"},
    ),
    Case(
        "GatewayRequestsFailing",
        {
            **OF_GATEWAY,
            f'{HTTP}{{{ROUTE}="200"}}': "+99 9 99",
            f'{HTTP}{{{ROUTE}="404"}}': "+0 9 0",
        },
        fires=False,
    ),
    Case("GatewayRequestsFailing", {f'{HTTP}{{{ROUTE}="503"}}': "+0 1 0"}, fires=False),
    Case(
        "GatewaySearchesWithoutVectors",
        {
            "gateway_search_fallbacks_total": "+0 6 0",
            f"{SEARCHES}_count{WANT_VECTORS}": "+10 10 10",
            f'{SEARCHES}_count{{gateway_search_strategy="graph"}}': "+99 99 99",
        },
    ),
    Case(
        "GatewaySearchesWithoutVectors",
        {
            "gateway_search_fallbacks_total": "+0 4 0",
            f"{SEARCHES}_count{WANT_VECTORS}": "+10 10 10",
        },
        fires=False,
    ),
    Case(
        "GatewayNothingFound",
        {RESULTS % ("bucket", ',le="0.0"'): "+1 4 1", RESULTS % ("count", ""): "+10 10 10"},
    ),
    Case(
        "GatewayNothingFound",
        {RESULTS % ("bucket", ',le="0.0"'): "+1 2 1", RESULTS % ("count", ""): "+10 10 10"},
        fires=False,
    ),
    Case("GatewaySearchSlow", searches("0 2 0")),
    Case("GatewaySearchSlow", searches("0 0 0"), fires=False),
    Case("GatewayCallsFailing", {f"{CALLS}}}": "+9 6 9", f'{CALLS},error_type="E"}}': "+0 3 0"}),
    Case(
        "GatewayCallsFailing",
        {f"{CALLS}}}": "+9 8 9", f'{CALLS},error_type="E"}}': "+0 2 0"},
        fires=False,
    ),
)


def samples(phases: str) -> str:
    """Return the samples of a series, one per minute, in promtool's format."""
    values = phases.removeprefix("+").split()
    minutes = [value for value, length in zip(values, PHASES, strict=True) for _ in range(length)]
    if phases.startswith("+"):
        minutes = [str(total) for total in accumulate(map(int, minutes))]
    return " ".join(minutes)


def check(case: Case, rules: Mapping[str, Mapping[str, object]]) -> dict[str, object]:
    """Return the promtool test of *case*: the alert fires only after its time, and clears."""
    hold = str(rules[case.alert]["for"])
    wait = int(hold[:-1]) * {"m": 1, "h": 60}[hold[-1]]
    began, ended = PHASES[0], PHASES[0] + PHASES[1]
    expected = {began + wait - 1: 0, began + wait + case.late: 1, ended + WINDOW + 1: 0}
    firing = f'count(ALERTS{{alertname="{case.alert}",alertstate="firing"}}) or vector(0)'
    series = [{"series": name, "values": samples(values)} for name, values in case.series.items()]
    tests = [
        {
            "expr": firing,
            "eval_time": f"{minute}m",
            "exp_samples": [{"labels": "{}", "value": value if case.fires else 0}],
        }
        for minute, value in expected.items()
    ]
    return {"interval": "1m", "input_series": series, "promql_expr_test": tests}


def promtool(*arguments: str) -> str:
    """Run promtool and return its output."""
    done = subprocess.run(
        [program("promtool"), *arguments], capture_output=True, text=True, check=False
    )
    assert 0 == done.returncode, done.stdout + done.stderr
    return done.stdout + done.stderr


@pytest.fixture
def rules() -> Mapping[str, Mapping[str, object]]:
    """Alert rules, keyed by name."""
    (group,) = yaml.safe_load(RULES.read_text("utf-8"))["groups"]
    return {rule["alert"]: rule for rule in group["rules"]}


def test_alert_fires_after_its_waiting_time_and_clears(
    tmp_path: Path, rules: Mapping[str, Mapping[str, object]]
) -> None:
    """Short faults and small shares of faults must not fire an alert."""
    tests = {
        "rule_files": [str(RULES)],
        "evaluation_interval": "1m",
        "tests": [check(case, rules) for case in CASES],
    }
    file = tmp_path / "tests.yml"
    file.write_text(yaml.safe_dump(tests), "utf-8")

    assert {*rules} == {case.alert for case in CASES if case.fires}
    assert "SUCCESS" in promtool("test", "rules", str(file))


def test_annotation_of_every_alert_names_a_remedy(
    rules: Mapping[str, Mapping[str, Mapping[str, str]]],
) -> None:
    """The person on call has neither the code nor the time to read it."""
    severities = {rule["labels"]["severity"] for rule in rules.values()}

    assert {"critical", "warning"} == severities
    for rule in rules.values():
        assert {"alert", "expr", "for", "labels", "annotations"} == {*rule}
        assert ["summary", "description", "docs"] == [*rule["annotations"]]
        assert "docs/telemetry.md#alerts" == rule["annotations"]["docs"]


def test_promtool_accepts_the_configuration_and_its_rules() -> None:
    assert "10 rules found" in promtool("check", "config", str(FILES / "prometheus/prometheus.yml"))


def test_docs_list_every_alert(rules: Mapping[str, Mapping[str, Mapping[str, str]]]) -> None:
    """Alerts link to the list."""
    page = (Path(__file__).parents[2] / "docs" / "telemetry.md").read_text("utf-8")
    rows = re.findall(r"^\| (Gateway\w+) \| (\w+) \| (\w+) \|", page, re.MULTILINE)

    assert "\n### Alerts\n" in page
    assert rows == [(name, rule["labels"]["severity"], rule["for"]) for name, rule in rules.items()]
