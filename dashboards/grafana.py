"""Dashboards as Grafana provisions them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Literal

import msgspec
from grafana_foundation_sdk.builders import common, prometheus, stat, timeseries
from grafana_foundation_sdk.builders import dashboard as builders
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.models.common import LegendDisplayMode, LegendPlacement, VisibilityMode
from grafana_foundation_sdk.models.dashboard import (
    DashboardCursorSync,
    DashboardLinkType,
    DataSourceRef,
)

TAG = "tool-gateway"
_SOURCE = DataSourceRef(type_val="prometheus", uid="${datasource}")
_SIZES = {"series": (8, 8), "value": (6, 5)}
"""Width, of 24 columns, and height of a panel, by its kind."""


class Query(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One expression, and the legend of its series."""

    expression: str
    legend: str


class Panel(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One panel."""

    title: str
    description: str
    unit: str
    """As Grafana calls it."""
    queries: tuple[Query, ...]
    kind: Literal["series", "value"] = "series"
    """Lines over time, or the last value as a number."""


class Dashboard(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One dashboard."""

    uid: str
    title: str
    description: str
    rows: Mapping[str, tuple[Panel, ...]]
    """Panels by the heading of their row."""


def read_dashboards() -> tuple[Dashboard, ...]:
    """Return the dashboards of ``panels.yaml``."""
    text = Path(__file__).with_name("panels.yaml").read_bytes()
    return msgspec.yaml.decode(text, type=tuple[Dashboard, ...])


def to_json(dashboard: Dashboard) -> str:
    """Return *dashboard* as a file that Grafana reads."""
    sources = builders.DatasourceVariable("datasource").label("Data source").type("prometheus")
    others = builders.DashboardLink("Gateway").type(DashboardLinkType.DASHBOARDS).tags([TAG])
    board = builders.Dashboard(dashboard.title).uid(dashboard.uid).tags([TAG])
    board.description(dashboard.description).timezone("browser").time("now-1h", "now")
    board.refresh("30s").tooltip(DashboardCursorSync.CROSSHAIR)
    board.with_variable(sources).link(others.keep_time(True))
    identifier = 0
    for heading, panels in dashboard.rows.items():
        identifier += 1
        board.with_row(builders.Row(heading).id(identifier))
        for panel in panels:
            identifier += 1
            board.with_panel(_panel(panel, identifier))
    return JSONEncoder(sort_keys=True, indent=2).encode(board.build()) + "\n"


def _panel(panel: Panel, identifier: int) -> timeseries.Panel | stat.Panel:
    built: timeseries.Panel | stat.Panel
    if panel.kind == "value":
        built = stat.Panel().decimals(0)
    else:
        legend = common.VizLegendOptions().display_mode(LegendDisplayMode.LIST)
        legend.placement(LegendPlacement.BOTTOM).show_legend(True)
        lines = timeseries.Panel().min(0).fill_opacity(10).show_points(VisibilityMode.NEVER)
        built = lines.legend(legend)
    width, height = _SIZES[panel.kind]
    built.id(identifier).title(panel.title).description(panel.description).unit(panel.unit)
    built.datasource(_SOURCE).span(width).height(height)
    for number, query in enumerate(panel.queries):
        target = prometheus.Dataquery().expr(query.expression).legend_format(query.legend)
        built.with_target(target.ref_id("ABC"[number]).datasource(_SOURCE).range())
    return built
