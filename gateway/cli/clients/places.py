"""Where other clients keep their servers, as a table."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from gateway.options.environment import settings_dir

Client = Literal["claude", "cursor", "vscode"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A file of a client."""

    label: str
    path: Path
    project: Path | None = None
    """The folder that it belongs to; None is the user's own."""


TABLES: Mapping[Client, str] = {"claude": "mcpServers", "cursor": "mcpServers", "vscode": "servers"}
"""The key under which a client wants its servers."""


def places(client: Client, folder: Path) -> tuple[Place, ...]:
    """Give the files of *client*, the user's own first, then those of the project in *folder*."""
    home = Path.home()
    table: Mapping[Client, tuple[Place, ...]] = {
        "claude": (
            Place(
                label="Claude Desktop", path=settings_dir("Claude") / "claude_desktop_config.json"
            ),
            Place(label="Claude Code", path=home / ".claude.json"),
            Place(label="Claude Code, project", path=folder / ".mcp.json", project=folder),
        ),
        "cursor": (
            Place(label="Cursor", path=home / ".cursor" / "mcp.json"),
            Place(label="Cursor, project", path=folder / ".cursor" / "mcp.json", project=folder),
        ),
        "vscode": (
            Place(label="VS Code", path=settings_dir("Code") / "User" / "mcp.json"),
            Place(label="VS Code, project", path=folder / ".vscode" / "mcp.json", project=folder),
        ),
    }
    return table[client]


def tables(whole: object, folder: Path) -> Iterator[Mapping[str, object]]:
    """Give every table of servers in a client's file.

    Args:
        whole: The file, parsed.
        folder: The project whose own servers count, where one file holds those of several.
    """
    if not isinstance(whole, dict):
        return
    inner = whole.get("mcp")
    projects = whole.get("projects")
    project = projects.get(str(folder)) if isinstance(projects, dict) else None
    for holder in (whole, inner, project):
        for key in ("mcpServers", "servers"):
            table = holder.get(key) if isinstance(holder, dict) else None
            if isinstance(table, dict):
                yield table


def inputs(whole: object) -> dict[str, str]:
    """Give what a file of VS Code asks its user for: the description of each input, by id."""
    found: dict[str, str] = {}
    for holder in (whole, whole.get("mcp") if isinstance(whole, dict) else None):
        asked = holder.get("inputs") if isinstance(holder, dict) else None
        for each in asked if isinstance(asked, list) else ():
            if isinstance(each, dict) and isinstance(each.get("id"), str):
                found[each["id"]] = str(each.get("description") or "")
    return found
