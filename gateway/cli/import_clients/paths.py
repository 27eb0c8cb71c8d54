"""Configuration files of other clients: where they are, and where servers stand in them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from gateway.options.environment import settings_dir

Client = Literal["claude", "cursor", "vscode"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientConfig:
    """A configuration file of a client."""

    label: str
    path: Path
    project: Path | None = None
    """The project's folder; None for the user's own file."""


SERVERS_KEY: Mapping[Client, str] = {
    "claude": "mcpServers",
    "cursor": "mcpServers",
    "vscode": "servers",
}
"""The key of the table of servers in a client's file."""


def client_configs(client: Client, folder: Path) -> tuple[ClientConfig, ...]:
    """Return the files of a client: the user's own first, then those of the project in *folder*."""
    home = Path.home()
    configs: Mapping[Client, tuple[tuple[str, Path], ...]] = {
        "claude": (
            ("Claude Desktop", settings_dir("Claude") / "claude_desktop_config.json"),
            ("Claude Code", home / ".claude.json"),
            ("Claude Code, project", folder / ".mcp.json"),
        ),
        "cursor": (
            ("Cursor", home / ".cursor" / "mcp.json"),
            ("Cursor, project", folder / ".cursor" / "mcp.json"),
        ),
        "vscode": (
            ("VS Code", settings_dir("Code") / "User" / "mcp.json"),
            ("VS Code, project", folder / ".vscode" / "mcp.json"),
        ),
    }
    return tuple(
        ClientConfig(label=label, path=path, project=folder if "project" in label else None)
        for label, path in configs[client]
    )


def server_tables(document: object, folder: Path) -> Iterator[Mapping[str, object]]:
    """Yield every table of servers in a client's file.

    Args:
        document: The file, parsed.
        folder: The project whose own servers count, in a file that holds several projects.
    """
    projects = _member(document, "projects")
    for holder in (document, _member(document, "mcp"), _member(projects, str(folder))):
        for key in ("mcpServers", "servers"):
            table = _member(holder, key)
            if isinstance(table, dict):
                yield table


def input_descriptions(document: object) -> dict[str, str]:
    """Return the inputs that a file of VS Code asks its user for: id to description."""
    found: dict[str, str] = {}
    for holder in (document, _member(document, "mcp")):
        inputs = _member(holder, "inputs")
        for item in inputs if isinstance(inputs, list) else ():
            name = _member(item, "id")
            if isinstance(name, str):
                found[name] = str(_member(item, "description") or "")
    return found


def _member(value: object, key: str) -> object:
    return value.get(key) if isinstance(value, dict) else None
