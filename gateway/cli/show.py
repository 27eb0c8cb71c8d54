"""Values -> what people read. Nothing here prints."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from gateway.cli.screen import printable
from gateway.runtime.text import one_line
from gateway.types import Entity, IndexReport, InvokeResult, Match, SearchResult

_ABOUT_CHARS = 120


def about(text: str) -> str:
    """Give the first sentence of a description, safe to print."""
    return printable(one_line(text, limit=_ABOUT_CHARS))


def plain_table(*headings: str, title: str = "") -> Table:
    """Make a table without a frame."""
    table = Table(box=None, header_style="bold", title_justify="left", title=title or None)
    for heading in headings:
        table.add_column(heading, overflow="fold")
    return table


def found(result: SearchResult) -> RenderableType:
    """Show what a search found."""
    if not result.matches:
        return nothing(result)
    if result.mode == "browse":
        return _matches("tools, by name", result.matches, ranked=False)
    first = _matches("tool", result.matches)
    lists = (
        ("call before", result.prerequisites),
        ("related", result.related),
        ("next steps", result.next_steps),
    )
    return Group(first, *(_matches(name, given) for name, given in lists if given))


def nothing(result: SearchResult) -> RenderableType:
    """Say that nothing was found, and what came nearest all the same."""
    if not result.counts.eligible:
        return Text("Nothing was found: there is nothing of this kind, tag and status here.")
    lines = ["Nothing was found."]
    if result.nearest is not None:
        near = result.nearest
        sure = f"confidence {near.confidence:.0%}"
        lines.append(f"Nearest: {printable(near.name)}, {sure}: {about(near.description)}")
    if result.unmatched:
        lines.append(f"Nothing holds these words: {printable(', '.join(result.unmatched))}")
    return Text("\n".join(lines))


def _matches(name: str, given: Sequence[Match], *, ranked: bool = True) -> Table:
    table = plain_table(name, *(("confidence",) if ranked else ()), "server", "about")
    for match in given:
        certain = Text(f"{match.confidence:.0%}", style=_style(match.confidence))
        table.add_row(
            Text(match.name, style="bold"),
            *((certain,) if ranked else ()),
            match.server,
            about(match.description),
        )
    return table


def _style(confidence: float) -> str:
    return "green" if confidence >= 0.6 else "yellow" if confidence >= 0.5 else "red"


def listed(entities: Sequence[Entity]) -> RenderableType:
    """Show the catalog."""
    table = plain_table("tool", "server", "needs", "about")
    for entity in entities:
        name = Text(entity.exposed_name, style="bold")
        needs = printable(", ".join(entity.required))
        table.add_row(name, entity.server, needs, about(entity.description))
    servers = ", ".join(sorted({entity.server for entity in entities}))
    return Group(table, Text(f"{len(entities)} tools; servers: {servers or 'none'}", style="dim"))


def answered(result: InvokeResult) -> str:
    """Write a tool's answer: its texts, the names of other blocks, else its structured content."""
    parts = [block.text or f"[{block.type}; --json shows it]" for block in result.content]
    if not parts and result.structured is not None:
        return json.dumps(result.structured, ensure_ascii=False, indent=2, default=str)
    return "\n".join(parts)


def vectors(count: int, *, embedded: int) -> str:
    """Say how many vectors an index has, and how many texts were embedded for it.

    There are more texts than vectors: a tool has several, and some measure the model.
    """
    return f"{count}; texts embedded now: {embedded or 'none, all were in the store'}"


def built(report: IndexReport, path: Path) -> RenderableType:
    """Show what an index build did."""
    table = plain_table("index", "")
    table.add_row("tools", str(report.tools))
    table.add_row("vectors", vectors(report.vectors, embedded=report.embedded_texts))
    table.add_row("graph", f"{report.graph_nodes} nodes, {report.graph_edges} edges")
    table.add_row("time", f"{report.duration_s:.2f} s, starting the servers included")
    table.add_row("vector store", str(path))
    return table


def stored(path: Path, size_bytes: int, count: int) -> RenderableType:
    """Show what the vector store holds."""
    table = plain_table("vector store", str(path))
    table.add_row("vectors", str(count))
    table.add_row("size", f"{size_bytes / 1024:.0f} KiB")
    if not count:
        table.add_row("", "Nothing is stored yet: gateway index build")
    return table
