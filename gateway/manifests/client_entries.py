"""Entries of this gateway for other clients: what stands in a file or a program to use it. Pure."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from gateway.manifests.client_files import Client


def table_key(client: Client) -> str:
    """Return the key of the table of servers in a client's file."""
    return "servers" if client == "vscode" else "mcpServers"


def stdio_entry(client: Client, config: Path) -> dict[str, object]:
    """Return the entry by which a client on this machine starts this gateway with *config*."""
    command = Path(sys.executable).parent / f"gateway{'.exe' * (sys.platform == 'win32')}"
    arguments = ["serve", "--config", str(config.absolute())]
    if not command.is_file():
        command, arguments = Path(sys.executable), ["-m", "gateway", *arguments]
    entry: dict[str, object] = {"command": str(command), "args": arguments}
    return {"type": "stdio", **entry} if client == "vscode" else entry


_TOKENS: Mapping[Client, str] = {
    "claude": "${GATEWAY_TOKEN}",
    "cursor": "${env:GATEWAY_TOKEN}",
    "vscode": "${input:gateway-token}",
}
"""How each client refers to a secret: by the environment, or by asking its user."""


def http_entry(client: Client, url: str, *, needs_token: bool) -> dict[str, object]:
    """Return the entry by which a client connects to *url*; a token is a reference."""
    entry: dict[str, object] = {"url": url} if client == "cursor" else {"type": "http", "url": url}
    if needs_token:
        entry["headers"] = {"Authorization": f"Bearer {_TOKENS[client]}"}
    return entry


def client_document(client: Client, entry: Mapping[str, object]) -> dict[str, object]:
    """Return what stands in a client's file to have *entry* as the server ``gateway``."""
    document: dict[str, object] = {table_key(client): {"gateway": dict(entry)}}
    if client == "vscode" and "${input:" in str(entry):
        asked = {"type": "promptString", "id": "gateway-token", "password": True}
        document = {"inputs": [{**asked, "description": "Token of the gateway"}], **document}
    return document


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientSnippet:
    """What a client needs to use this gateway."""

    client: str
    transport: Literal["stdio", "http"]
    place: str
    """Where it goes, such as a file in a project."""
    text: str
    """JSON or Python; a token in it is a reference."""


_PLACES: Mapping[Client, str] = {
    "claude": ".mcp.json",
    "cursor": ".cursor/mcp.json",
    "vscode": ".vscode/mcp.json",
}
_OPENAI = """\
from openai import OpenAI
from gateway import AutoDiscoveryClient, Gateway

gateway = Gateway()
gateway.add_config({config!r})
client = AutoDiscoveryClient(OpenAI(), gateway)
"""


def client_snippets(
    *, config: Path | None = None, url: str = "", needs_token: bool = False
) -> tuple[ClientSnippet, ...]:
    """Return how Claude, Cursor, VS Code and an OpenAI client use this gateway.

    Args:
        config: Its configuration, for clients on this machine; None leaves these out.
        url: Where it serves MCP over HTTP; empty leaves that out.
        needs_token: Whether a token is needed there.
    """
    snippets = []
    for client, place in _PLACES.items():
        entries: Mapping[Literal["stdio", "http"], Mapping[str, object] | None] = {
            "stdio": stdio_entry(client, config) if config else None,
            "http": http_entry(client, url, needs_token=needs_token) if url else None,
        }
        for transport, entry in entries.items():
            if entry is not None:
                text = json.dumps(client_document(client, entry), indent=2)
                snippets.append(_snippet(client, transport, place, text))
    if config:
        text = _OPENAI.format(config=str(config.absolute()))
        snippets.append(_snippet("openai", "stdio", "a program", text))
    if url:
        tool = {"type": "mcp", "server_label": "gateway", "server_url": url}
        tool |= {"authorization": "GATEWAY_TOKEN"} if needs_token else {}
        text = json.dumps([{**tool, "require_approval": "always"}], indent=2)
        snippets.append(_snippet("openai", "http", "tools of a response", text))
    return tuple(snippets)


def _snippet(
    client: str, transport: Literal["stdio", "http"], place: str, text: str
) -> ClientSnippet:
    return ClientSnippet(client=client, transport=transport, place=place, text=text)
