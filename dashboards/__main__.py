"""Writes the dashboards of Grafana into the package: ``python -m dashboards``."""

from __future__ import annotations

from pathlib import Path

from dashboards.grafana import read_dashboards, to_json

FOLDER = Path(__file__).parents[1] / "gateway/cli/dashboards/grafana/dashboards"

if __name__ == "__main__":
    for dashboard in read_dashboards():
        (FOLDER / f"{dashboard.uid}.json").write_text(to_json(dashboard), "utf-8")
