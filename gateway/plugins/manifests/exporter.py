"""Chosen entities as text for elsewhere: servers of an ``mcp.json``, a virtual server. Pure.

No secret is exported: what stands in a configuration instead of a reference becomes one.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass

from gateway.config.config_file import server_table
from gateway.config.json_edit import parse_object
from gateway.errors import InvalidRequestError
from gateway.plugins.manifests.client_files import Conversion, RequiredVariable
from gateway.runtime.json_schema import as_object
from gateway.runtime.naming import to_server_name
from gateway.runtime.secret_scanner import Span, find_in_arguments, find_secret, looks_random
from gateway.sources.virtual import VirtualServer, aliases
from gateway.types import Entity, JsonObject

_SHOWN = frozenset(("tools", "prompts", "resources"))
"""The members of a server's entry that name things of it, and hold no secrets."""
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
    members = as_object(entry).items()
    return {
        key: value if key in _SHOWN else _masked(conversion, server, key, key, value)
        for key, value in members
    }


def _masked(conversion: Conversion, server: str, where: str, name: str, value: object) -> object:
    """Return what stands under *name* in an entry, with references in place of secrets."""
    if isinstance(value, dict):
        return {
            key: _masked(conversion, server, f"{where}.{key}", key, item)
            for key, item in value.items()
        }
    if isinstance(value, str):
        text = _without_defaults(value)
        return _hidden(conversion, server, where, text, name, _find(name, text))
    if not isinstance(value, list):
        return value
    texts = [_without_defaults(str(item)) for item in value]
    named = {at: (flag, span) for at, flag, span in find_in_arguments(texts)}
    return [
        _hidden(conversion, server, f"{where}[{at}]", text, *named.get(at, ("", _find("", text))))
        for at, text in enumerate(texts)
    ]


def _hidden(
    conversion: Conversion, server: str, where: str, text: str, name: str, secret: Span | None
) -> str:
    """Return *text* with references in place of *secret* and all others that stand in it."""
    while secret is not None:
        text = conversion.hide(server, where, text, name, secret)
        secret = _find(name, text)
    return text


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
