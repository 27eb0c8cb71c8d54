"""Entries of this gateway for other clients: what stands in a file or a program to use it. Pure."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from gateway.plugins.manifests.client_files import Client


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


_CLIENTS: Mapping[Client, tuple[str, str]] = {
    "claude": (".mcp.json", "${GATEWAY_TOKEN}"),
    "cursor": (".cursor/mcp.json", "${env:GATEWAY_TOKEN}"),
    "vscode": (".vscode/mcp.json", "${input:gateway-token}"),
}
"""The file of a project, and how a client refers to a secret: by the environment, or by asking."""
_INPUT: Mapping[str, object] = {
    "type": "promptString",
    "id": "gateway-token",
    "description": "Token of the gateway",
    "password": True,
}
_PROGRAM = """\
from openai import OpenAI
from gateway import AutoDiscoveryClient, Gateway

gateway = Gateway()
gateway.add_config({config!r})
client = AutoDiscoveryClient(OpenAI(), gateway)
"""


@dataclass(frozen=True, slots=True)
class ClientSnippet:
    """What a client needs to use this gateway."""

    client: str
    transport: Literal["stdio", "http"]
    place: str
    """Where it goes, such as a file in a project."""
    text: str
    """JSON or Python; a token in it is a reference."""


def client_snippets(
    *, config: Path | None = None, url: str = "", needs_token: bool = False
) -> tuple[ClientSnippet, ...]:
    """Return how Claude, Cursor, VS Code and an OpenAI client use this gateway.

    Args:
        config: Its configuration, for clients on this machine; None leaves these out.
        url: Where it serves MCP over HTTP; empty leaves that out.
        needs_token: Whether a token is needed there.
    """
    made = []
    for client, (place, token) in _CLIENTS.items():
        table = table_key(client)
        if config:
            text = _to_text({table: {"gateway": stdio_entry(client, config)}})
            made.append(ClientSnippet(client, "stdio", place, text))
        if url:
            entry: dict[str, object] = {} if client == "cursor" else {"type": "http"}
            entry |= {"url": url}
            entry |= {"headers": {"Authorization": f"Bearer {token}"}} if needs_token else {}
            asks = {"inputs": [_INPUT]} if needs_token and client == "vscode" else {}
            text = _to_text({**asks, table: {"gateway": entry}})
            made.append(ClientSnippet(client, "http", place, text))
    if config:
        text = _PROGRAM.format(config=str(config.absolute()))
        made.append(ClientSnippet("openai", "stdio", "a program", text))
    if url:
        tool = {"type": "mcp", "server_label": "gateway", "server_url": url}
        tool |= {"authorization": "GATEWAY_TOKEN"} if needs_token else {}
        text = _to_text([{**tool, "require_approval": "always"}])
        made.append(ClientSnippet("openai", "http", "the tools of a response", text))
    return tuple(made)


def _to_text(document: object) -> str:
    return json.dumps(document, ensure_ascii=False, indent=2)
