"""Chosen entities as text for elsewhere: servers of an ``mcp.json``, a virtual server. Pure.

No secret is exported: what stands in a configuration instead of a reference becomes one.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass

from gateway.errors import InvalidRequestError
from gateway.manifests.client_files import Conversion, RequiredVariable
from gateway.manifests.config_file import server_table
from gateway.manifests.json_edit import parse_object
from gateway.mcp.naming import to_server_name
from gateway.runtime.json_schema import as_object
from gateway.runtime.secret_scanner import Span, find_in_arguments, find_secret, looks_random
from gateway.sources.virtual import VirtualServer, aliases
from gateway.types import Entity, JsonObject

_WITH_SECRETS = frozenset(("command", "args", "env", "headers", "url", "auth", "openapi"))
"""The members of a server's entry that may hold secrets."""
_PLAIN = frozenset(
    ("type", "cwd", "envFile", "description", "disabled", "trusted", "tools", "prompts")
) | {"resources", "status", "enabled", "tags", "scopes"}
"""Those that hold none. All others mean nothing here, and are left out."""
_REFERENCE = re.compile(r"\$\{([^}]*?)(?::-([^}]*))?\}")


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerExport:
    """Servers of a configuration, for another one."""

    document: JsonObject
    """An ``mcp.json``."""
    variables: tuple[RequiredVariable, ...] = ()
    """What has to be set elsewhere, since a secret stood in its place."""
    missing: tuple[str, ...] = ()
    """The names that no server of the configuration has."""


def servers_of(entities: Iterable[Entity]) -> frozenset[str]:
    """Return the names of the servers that list *entities*, or that they are."""
    return frozenset(entity.server for entity in entities)


def export_servers(text: str, names: Collection[str], *, where: str) -> ServerExport:
    """Return the servers and virtual servers called *names*, with those behind virtual ones.

    Args:
        text: The configuration, an ``mcp.json``.
        names: As servers are called here.
        where: The file, for messages.

    Raises:
        ConfigError: The text is no such file.
    """
    _, table = server_table(text, where=where)
    virtual = as_object(parse_object(text, where=where).get("virtualServers"))
    shown = {name: entry for name, entry in virtual.items() if name in names}
    wanted = {*names, *(server for entry in shown.values() for server in _behind(entry))}
    conversion = Conversion()
    servers = {
        name: _without_secrets(conversion, name, entry)
        for name, entry in table.items()
        if to_server_name(name) in wanted
    }
    document: dict[str, object] = {"mcpServers": servers}
    if shown:
        document["virtualServers"] = shown
    found = {*map(to_server_name, servers), *shown}
    return ServerExport(
        document=document,
        variables=tuple(conversion.required),
        missing=tuple(sorted(wanted - found)),
    )


def export_virtual_server(
    name: str, entities: Iterable[Entity], original: Callable[[Entity], tuple[str, str]]
) -> JsonObject:
    """Return the tools among *entities* as a virtual server of an ``mcp.json``, by exposed name.

    Args:
        name: Of the virtual server.
        entities: What is no tool of a server is left out.
        original: Returns the server of a tool and that server's own name of it.

    Raises:
        ConfigError: The name cannot be used.
        InvalidRequestError: There is no tool.
    """
    tools = {
        entity.exposed_name: "/".join(original(entity))
        for entity in entities
        if entity.kind == "tool" and not entity.described
    }
    if not tools:
        raise InvalidRequestError("a virtual server shows tools: choose at least one")
    table = VirtualServer(name=name, tools=aliases(tools))
    return {"virtualServers": {table.name: {"tools": dict(sorted(tools.items()))}}}


def _behind(entry: object) -> Iterable[str]:
    """Yield the servers of which a virtual server shows something."""
    for kind in ("tools", "resources", "prompts"):
        for alias in as_object(as_object(entry).get(kind)).values():
            target = as_object(alias).get("tool") if isinstance(alias, dict) else alias
            yield str(target).partition("/")[0]


def _without_secrets(conversion: Conversion, server: str, entry: object) -> object:
    if not isinstance(entry, dict):
        return entry
    return {
        key: _masked(conversion, server, key, value) if key in _WITH_SECRETS else value
        for key, value in entry.items()
        if key in _WITH_SECRETS | _PLAIN
    }


def _masked(conversion: Conversion, server: str, key: str, value: object) -> object:
    """Return the member *key* of an entry with references in place of secrets."""
    if isinstance(value, list):
        texts = [_without_defaults(str(item)) for item in value]
        named = {place: (name, span) for place, name, span in find_in_arguments(texts)}
        return [
            conversion.hide(server, f"{key}[{at}]", text, *named.get(at, ("", _find("", text))))
            for at, text in enumerate(texts)
        ]
    members: Mapping[str, object] = value if isinstance(value, dict) else {key: value}
    masked = dict(members)
    for name, text in members.items():
        if isinstance(text, str):
            plain = _without_defaults(text)
            place = f"{key}.{name}" if members is value else key
            masked[name] = conversion.hide(server, place, plain, name, _find(name, plain))
    return masked if members is value else masked[key]


def _without_defaults(text: str) -> str:
    """Return *text* without defaults of references that may be secrets: ``${NAME:-default}``."""

    def plain(found: re.Match[str]) -> str:
        default = found[2]
        return f"${{{found[1]}}}" if default and find_secret("secret", default) else found[0]

    return _REFERENCE.sub(plain, text)


def _find(name: str, text: str) -> Span | None:
    """Return where a secret stands in *text*, also beside references or if it only looks so."""
    beside = _REFERENCE.sub(lambda found: " " * len(found[0]), text)
    if beside != text:
        return find_secret("", beside)
    return find_secret(name, text) or ((0, len(text)) if looks_random(text) else None)
