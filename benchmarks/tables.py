"""Figures for a person: rows as a table, figures by name as lines."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from rich.console import Console
from rich.table import Table

_WIDTH = 180
"""Columns of a table that goes into a file."""


def print_table(title: str, rows: Sequence[Mapping[str, object]], *, caption: str = "") -> None:
    """Print *rows* as a table; the first row's keys head the columns. Numbers stand right."""
    table = Table(title=title, caption=caption or None)
    heads = list(dict.fromkeys(name for row in rows for name in row))
    for head in heads:
        numeric = any(isinstance(row.get(head), int | float) for row in rows)
        table.add_column(head, justify="right" if numeric else "left")
    for row in rows:
        table.add_row(*(_cell(row.get(head)) for head in heads))
    console = Console()
    (console if console.is_terminal else Console(width=_WIDTH)).print(table)


def print_figures(figures: Mapping[str, object], *, as_json: bool) -> None:
    """Print *figures*, a line each, or as one JSON document."""
    if as_json:
        print(json.dumps(figures, indent=2, ensure_ascii=False))
        return
    for name, value in figures.items():
        print(f"{name:40} {_cell(value)}")


def percents(figures: Mapping[str, float | None], names: Sequence[str]) -> dict[str, str]:
    """Return the figures as percentages with one digit; a dash where there is none."""
    found = {name: figures.get(name) for name in names}
    return {name: "-" if value is None else f"{100 * value:.1f}" for name, value in found.items()}


def _cell(value: object) -> str:
    if value is None:
        return "-"
    if isinstance(value, float):
        return f"{value:.3f}" if abs(value) < 1000 else f"{value:,.0f}"
    return str(value)
