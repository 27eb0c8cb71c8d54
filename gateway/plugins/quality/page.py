"""A report as one HTML page that loads nothing from elsewhere. Pure.

What servers say of their tools is data: all of it is escaped.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from html import escape
from pathlib import Path
from string import Template

from gateway.plugins.quality.report import EvalReport

_TOOL = ("id", "found", "requests", "median_place", "outranked_by", "missing_words")


def to_page(report: EvalReport) -> str:
    """Return *report* as a page: figures, tools, pairs and every miss."""
    template = Template(Path(__file__).with_name("page.html").read_text(encoding="utf-8"))
    names = [*report.summary.figures]
    summaries = {"all": report.summary, **report.by_source, **report.by_language}
    figures = [
        (key, each.requests, *_values(each.figures, names)) for key, each in summaries.items()
    ]
    tools = [[getattr(tool, name) for name in _TOOL] for tool in report.tools]
    pairs = [
        (pair.wanted, pair.first, pair.requests, "one tool or two?" if pair.are_twins else "")
        for pair in report.pairs
    ]
    missed = [
        (each.request.text, each.request.source, each.tools, each.places, each.found)
        for each in report.outcomes
        if each.missed
    ]
    return template.substitute(
        catalog=f"{len(report.catalog)} tools, strategy {escape(report.strategy)}",
        figures=_table(("", "requests", *names), figures),
        tokens=_table(("", "tokens"), asdict(report.cost).items() if report.cost else ()),
        curve=_table(
            ("tools", *names),
            ((each.tools, *_values(each.figures, names)) for each in report.curve),
        ),
        tools=_table([name.replace("_", " ") for name in _TOOL], tools),
        pairs=_table(("wanted", "came first", "requests", "equal"), pairs),
        missed=_table(("request", "source", "wanted", "place", "found instead"), missed),
    )


def _values(figures: Mapping[str, float], names: Iterable[str]) -> list[str]:
    values = map(figures.get, names)
    return ["" if value is None else f"{value:.1%}" for value in values]


def _table(heads: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    lines = [_line(heads, "th"), *(_line(row, "td") for row in rows)]
    return "\n".join(lines)


def _line(cells: Iterable[object], tag: str) -> str:
    return f"<tr>{''.join(f'<{tag}>{escape(_text(cell))}</{tag}>' for cell in cells)}</tr>"


def _text(cell: object) -> str:
    if cell is None:
        return "not found"
    return ", ".join(map(_text, cell)) if isinstance(cell, tuple | Mapping) else str(cell)
