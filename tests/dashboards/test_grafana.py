"""The files of Grafana: made by the code beside the package, and whole."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from dashboards.grafana import read_dashboards, to_json
from gateway.cli.commands.dashboards import FILES
from gateway.runtime.telemetry_names import METRICS

FOLDER = FILES / "grafana" / "dashboards"
PANELS = [
    pytest.param(panel, id=f"{file.stem}: {panel['title']}")
    for file in sorted(FOLDER.iterdir())
    for panel in json.loads(file.read_text("utf-8"))["panels"]
    if panel["type"] != "row"
]
SOURCE = {"type": "prometheus", "uid": "${datasource}"}
UNITS = {"s", "short", "reqps", "percentunit", "bytes"}
SUFFIX = re.compile(r"(_seconds)?(_total|_count|_sum|_bucket)?$")


def test_the_files_in_the_package_are_what_the_code_makes() -> None:
    """``python -m dashboards`` writes them again."""
    expected = {f"{each.uid}.json": to_json(each) for each in read_dashboards()}

    assert expected == {file.name: file.read_text("utf-8") for file in FOLDER.iterdir()}


@pytest.mark.parametrize("file", sorted(FOLDER.iterdir()), ids=lambda file: file.stem)
def test_a_dashboard_lets_its_reader_choose_the_data_source(file: Path) -> None:
    """And each panel has a place and a number of its own."""
    dashboard = json.loads(file.read_text("utf-8"))
    (variable,) = dashboard["templating"]["list"]
    places = [tuple(panel["gridPos"][key] for key in "xy") for panel in dashboard["panels"]]
    numbers = [panel["id"] for panel in dashboard["panels"]]

    assert ("datasource", "datasource", "prometheus") == (
        variable["name"],
        variable["type"],
        variable["query"],
    )
    assert len({*places}) == len(places)
    assert [*range(1, len(numbers) + 1)] == numbers


@pytest.mark.parametrize("panel", PANELS)
def test_a_panel_says_what_it_shows_and_in_what_unit(panel: dict[str, Any]) -> None:
    """Its metrics are those of the gateway, or of a process."""
    assert panel["description"].endswith((".", "gateway approve."))
    assert panel["fieldConfig"]["defaults"]["unit"] in UNITS
    assert SOURCE == panel["datasource"]
    for target in panel["targets"]:
        assert SOURCE == target["datasource"]
        assert target["legendFormat"]
        assert metrics(target["expr"]) <= {name.replace(".", "_") for name in METRICS}


def metrics(expression: str) -> set[str]:
    """Return the metrics of an expression, without those of every process."""
    without_labels = re.sub(r"\{[^}]*\}|\b(by|on) \([^)]*\)", "", expression)
    names = re.findall(r"\b(?:gateway|gen_ai|http)_\w+", without_labels)
    return {SUFFIX.sub("", name) for name in names}
