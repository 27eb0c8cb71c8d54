"""Configuration files of other MCP clients: import of their servers, and entries for this gateway.

Import replaces secrets by references to variables.
"""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import chain, count
from pathlib import Path
from typing import Literal

from gateway.errors import ConfigError
from gateway.options.environment import settings_dir
from gateway.runtime.json_schema import as_object, as_objects
from gateway.runtime.secret_scanner import Span, find_in_arguments, find_secret, looks_random

Client = Literal["claude", "cursor", "vscode"]
_KEYS = ("command", "args", "env", "envFile", "cwd", "url", "headers", "disabled")
_IGNORED_KEYS = frozenset({"type", "name", "description", "gallery", "version", "transport"})
"""Ignored keys of server entries."""
_VARIABLE = re.compile(r"\$\{([^}]+)\}")
_ENV_NAME = re.compile(r"(?:env:)?[A-Za-z_][A-Za-z0-9_]*(?::-.*)?", re.DOTALL)


def client_files(client: Client, folder: Path) -> tuple[Path, ...]:
    """Return the configuration files of *client*: first the user's, last that of a project."""
    home = Path.home()
    files: Mapping[Client, tuple[Path, ...]] = {
        "claude": (
            settings_dir("Claude") / "claude_desktop_config.json",
            home / ".claude.json",
            folder / ".mcp.json",
        ),
        "cursor": (home / ".cursor/mcp.json", folder / ".cursor/mcp.json"),
        "vscode": (settings_dir("Code") / "User/mcp.json", folder / ".vscode/mcp.json"),
    }
    return files[client]


def server_entries(document: object, folder: Path) -> Iterator[tuple[str, object]]:
    """Yield the name and the entry of each server in a client's configuration file.

    Args:
        document: Parsed file.
        folder: Project folder. Servers of other projects in the file are left out.
    """
    projects = member(document, "projects")
    for holder in (document, member(document, "mcp"), member(projects, str(folder))):
        for key in ("mcpServers", "servers"):
            yield from as_object(member(holder, key)).items()


def input_descriptions(document: object) -> dict[str, str]:
    """Return the descriptions of a VS Code file's inputs for the user, keyed by input id."""
    holders = (document, member(document, "mcp"))
    inputs = [item for holder in holders for item in as_objects(member(holder, "inputs"))]
    return {str(item.get("id")): str(item.get("description") or "") for item in inputs}


def member(value: object, key: str) -> object:
    """Return ``value[key]``, or None if that does not exist."""
    return value.get(key) if isinstance(value, dict) else None


def is_this_gateway(entry: object) -> bool:
    """Return whether *entry* starts this gateway."""
    args = member(entry, "args")
    words = [str(item) for item in args] if isinstance(args, list) else []
    program = re.split(r"[\\/]", str(member(entry, "command")))[-1].removesuffix(".exe")
    is_program = program == "gateway" and words[:1] == ["serve"]
    return is_program or words[:3] == ["-m", "gateway", "serve"]


@dataclass(frozen=True, slots=True, kw_only=True)
class RequiredVariable:
    """Environment variable that an imported server needs."""

    variable: str
    server: str
    where: str
    """Field that contained the value, such as ``env.API_KEY``, or the client's question for it."""


@dataclass(slots=True, kw_only=True)
class Conversion:
    """Converter of server entries, which names variables for secrets after the server."""

    inputs: Mapping[str, str] = field(default_factory=dict)
    """Descriptions of a VS Code file's inputs for the user, keyed by input id."""
    project: Path | None = None
    required: list[RequiredVariable] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    secrets: dict[str, str] = field(default_factory=dict)
    """Secret values, keyed by the variable that replaces them. They are never displayed, and only
    written to files that contained them before."""

    def entry(self, name: str, original: object) -> dict[str, object]:
        """Return this gateway's entry for a server of another client.

        Raises:
            ConfigError: If the gateway cannot use the server.
        """
        if not isinstance(original, dict):
            raise ConfigError("it is no object")
        original = dict(original)
        if isinstance(address := original.pop("serverUrl", None), str):
            original.setdefault("url", address)
        members = {key: original[key] for key in _KEYS if key in original}
        if "sse" in (original.get("type"), original.get("transport")):
            members["type"] = "sse"
        if not isinstance(members.get("command", members.get("url")), str):
            raise ConfigError("the entry has neither a command nor a url")
        if omitted := sorted(original.keys() - members.keys() - _IGNORED_KEYS):
            self.notes.append(f"{name}: left out: {', '.join(omitted)}")
        return {key: self._convert(name, key, value) for key, value in members.items()}

    def _convert(self, server: str, key: str, value: object) -> object:
        if isinstance(value, list):
            arguments = [self._expand(server, item) for item in value]
            secrets = {place: (name, span) for place, name, span in find_in_arguments(arguments)}
            return [
                self.hide(server, f"args[{place}]", text, *secrets.get(place, ("", None)))
                for place, text in enumerate(arguments)
            ]
        if isinstance(value, dict):
            texts = {name: self._expand(server, item) for name, item in value.items()}
            return {
                name: self.hide(server, f"{key}.{name}", text, name, find_secret(name, text))
                for name, text in texts.items()
            }
        if not isinstance(value, str):
            return value
        text = self._expand(server, value)
        if key != "url":
            return text
        return self.hide(server, key, text, key, find_secret(key, text))

    def _expand(self, server: str, value: object) -> str:
        """Return *value* with variables of other clients written as ``${NAME}``."""
        return _VARIABLE.sub(lambda match: self._reference(server, match[0], match[1]), str(value))

    def _reference(self, server: str, whole: str, name: str) -> str:
        if name.startswith("input:"):
            input_id = name.removeprefix("input:")
            variable = _variable_name(input_id)
            where = self.inputs.get(input_id) or f"the input {input_id!r} of VS Code"
            self.secrets.setdefault(variable, whole)
            self._require(variable, server, where)
            return f"${{{variable}}}"
        meanings = {"userHome": "${HOME}", "pathSeparator": os.sep, "/": os.sep}
        if self.project is not None:
            meanings["workspaceFolder"] = str(self.project)
        if name in meanings:
            return meanings[name]
        if name != "workspaceFolder" and _ENV_NAME.fullmatch(name):
            return f"${{{name.removeprefix('env:')}}}"
        self.notes.append(f"{server}: {whole} is not known here: write what it stands for")
        return whole

    def hide(self, server: str, where: str, text: str, name: str, secret: Span | None) -> str:
        """Return *text* with a secret replaced by a reference to a variable.

        Args:
            server: Server that uses the text.
            where: Field of the entry, such as ``env.API_KEY``.
            text: Value of the field.
            name: Name for the variable; empty is ``secret``.
            secret: Start and end of the secret. None leaves the text unchanged, with a note if it
                looks random.
        """
        if secret is None:
            if looks_random(text):
                self.notes.append(
                    f"{server}: {where} looks random; if it is a secret, write ${{NAME}} instead"
                )
            return text
        before, value, after = text[: secret[0]], text[slice(*secret)], text[secret[1] :]
        # The name begins with the server, because servers may have different values of API_KEY.
        prefix, variable_name = _variable_name(server), _variable_name(name or "secret")
        variable_name = (
            variable_name if variable_name.startswith(f"{prefix}_") else f"{prefix}_{variable_name}"
        )
        names = chain([variable_name], (f"{variable_name}_{number}" for number in count(2)))
        # A number is appended if another secret has this name.
        variable = next(name for name in names if self.secrets.setdefault(name, value) == value)
        self._require(variable, server, where)
        return f"{before}${{{variable}}}{after}"

    def _require(self, variable: str, server: str, where: str) -> None:
        item = RequiredVariable(variable=variable, server=server, where=where)
        if item not in self.required:
            self.required.append(item)


def _variable_name(name: str) -> str:
    plain = re.sub(r"\W+", "_", name, flags=re.ASCII).strip("_").upper()
    return plain if plain and not plain[0].isdigit() else f"SECRET_{plain}"


def table_key(client: Client) -> str:
    """Return the key of the servers in a client's file."""
    return "servers" if client == "vscode" else "mcpServers"


def stdio_entry(client: Client, config: Path) -> dict[str, object]:
    """Return the entry with which *client* starts this gateway with the file *config*."""
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
"""Path of the file in a project, and reference to the gateway's token, keyed by client."""
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
    """Text to copy into a client's configuration, so that it uses this gateway."""

    client: str
    transport: Literal["stdio", "http"]
    place: str
    """Place for the text, such as a path in a project."""
    text: str
    """JSON or Python, with only a reference to the token."""


def client_snippets(
    *, config: Path | None = None, url: str = "", needs_token: bool = False
) -> tuple[ClientSnippet, ...]:
    """Return the configurations with which Claude, Cursor, VS Code and OpenAI use this gateway.

    Args:
        config: Configuration file of the gateway, for clients on this machine; None skips them.
        url: Address of MCP over HTTP; empty skips HTTP clients.
        needs_token: True if the address requires a token.
    """
    snippets = []
    for client, (place, token) in _CLIENTS.items():
        table = table_key(client)
        if config:
            text = _to_text({table: {"gateway": stdio_entry(client, config)}})
            snippets.append(ClientSnippet(client, "stdio", place, text))
        if url:
            entry: dict[str, object] = {} if client == "cursor" else {"type": "http"}
            entry |= {"url": url}
            entry |= {"headers": {"Authorization": f"Bearer {token}"}} if needs_token else {}
            asks = {"inputs": [_INPUT]} if needs_token and client == "vscode" else {}
            text = _to_text({**asks, table: {"gateway": entry}})
            snippets.append(ClientSnippet(client, "http", place, text))
    if config:
        text = _PROGRAM.format(config=str(config.absolute()))
        snippets.append(ClientSnippet("openai", "stdio", "a program", text))
    if url:
        tool = {"type": "mcp", "server_label": "gateway", "server_url": url}
        tool |= {"authorization": "GATEWAY_TOKEN"} if needs_token else {}
        text = _to_text([{**tool, "require_approval": "always"}])
        snippets.append(ClientSnippet("openai", "http", "the tools of a response", text))
    return tuple(snippets)


def _to_text(document: object) -> str:
    return json.dumps(document, ensure_ascii=False, indent=2)
